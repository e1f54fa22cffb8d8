/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two layers, both lock-free, both with their words in a private table of 24 bytes per 4 KiB page (1/170 of the arena, backed by
 * memory only where it was touched):
 *
 *     blocks from 16 KiB on     one run of pages each
 *     blocks below 16 KiB       slabs: a run of 1 to 7 pages cut into 2 to 64 blocks of one class without a remainder
 *
 *     +-----------+---------------+------------------+-------+----------------------+
 *     | slab 64 B | slab 1280 B   | large block      | free  | fresh pages ...      |
 *     +-----------+---------------+------------------+-------+----------------------+
 *
 * A slab with a free block is in the stack of its class, or in the hands of the one thread that popped it; only that thread clears
 * bits of free_blocks. Whoever sets a bit in a word that was 0 pushes the slab. So take and give are a pop, a bit and a push.
 *
 * Fragmentation. Sizes are rounded up to one of four classes per doubling, and a freed block serves its class again. A run is cut
 * from the fresh pages, else from the smallest larger run; nothing is joined on the way. Only when a request would be refused the
 * whole arena is swept once: slabs without a block in use become runs again and free neighbours are joined. A sweep that would find
 * nothing new since the last one is left out. Blocks in use never move, so an arena may still refuse what its free bytes would
 * hold.
 *
 * Threads: another thread's pop hides a slab or a run for some instructions. At the very edge of the arena a take may therefore be
 * refused although a block is about to appear; it looks three times before it says so.
 */
#include "arena.h"

#include "arena_runs.h"
#include "base/bytes.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#define LARGE_BYTES    (16u * 1024u)
#define SLAB_CLASSES   27u /* 64 B to 14 KiB */
#define LARGER_CLASSES 8u  /* how far above its own class a small block may be placed */
#define ATTEMPTS       3u

struct slab_class {
        alignas(64) struct sl_page_stack slabs;
};

struct sl_arena {
        struct sl_runs runs;
        struct slab_class classes[SLAB_CLASSES];
        alignas(64) _Atomic uint64_t taken_bytes; /* ever */
        alignas(64) _Atomic uint64_t given_bytes; /* ever */
        alignas(64) _Atomic uint32_t sweeping;
        uint64_t swept_at; /* given_bytes when the last sweep began; the sweeper's */
};

static uint64_t block_bytes(uint32_t class)
{
        return sl_class_units(class) * SL_ARENA_ALIGNMENT;
}

/* Blocks in a slab of @pages. */
static uint32_t slab_blocks(uint32_t class, uint32_t pages)
{
        uint64_t blocks = (uint64_t)pages * SL_PAGE_BYTES / block_bytes(class);

        return blocks < 64 ? (uint32_t)blocks : 64;
}

/* The shortest run that blocks fill without a remainder, of at least 16 KiB where 64 blocks are that much. */
static uint32_t slab_pages(uint32_t class)
{
        uint32_t units = (uint32_t)sl_class_units(class);

        while (units > 7)
                units /= 2;
        return units;
}

static uint64_t all_blocks(uint32_t n)
{
        return n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

int sl_arena_new(uint64_t bytes, struct sl_arena **ret_arena)
{
        uint64_t pages = bytes / SL_PAGE_BYTES;
        struct sl_arena *arena;

        if (pages == 0 || pages >= SL_NO_PAGE)
                return -EINVAL;
        arena = aligned_alloc(alignof(struct sl_arena), sizeof(*arena));
        if (!arena)
                return -ENOMEM;
        *arena = (struct sl_arena){0};
        if (sl_runs_init(&arena->runs, (uint32_t)pages) < 0) {
                free(arena);
                return -ENOMEM;
        }
        *ret_arena = arena;
        return 0;
}

struct sl_arena *sl_arena_free(struct sl_arena *arena)
{
        if (arena)
                sl_runs_deinit(&arena->runs);
        free(arena);
        return NULL;
}

static void count_taken(struct sl_arena *arena, uint64_t bytes)
{
        atomic_fetch_add_explicit(&arena->taken_bytes, bytes, memory_order_relaxed);
}

static void count_given(struct sl_arena *arena, uint64_t bytes)
{
        atomic_fetch_add_explicit(&arena->given_bytes, bytes, memory_order_relaxed);
}

/* ---- slabs ---------------------------------------------------------------------------------------------------------- */

/* A new slab with all of its blocks free, in the caller's hands. Where there is no room for a whole one, a shorter one will do. */
static uint32_t make_slab(struct sl_arena *arena, uint32_t class)
{
        struct sl_runs *runs = &arena->runs;
        uint32_t pages = slab_pages(class);
        uint32_t page = sl_runs_take(runs, pages);

        if (page == SL_NO_PAGE) {
                pages = (uint32_t)((block_bytes(class) + SL_PAGE_BYTES - 1) / SL_PAGE_BYTES);
                page = sl_runs_take(runs, pages);
        }
        if (page == SL_NO_PAGE)
                return SL_NO_PAGE;
        atomic_store_explicit(&runs->pages[page].free_blocks, all_blocks(slab_blocks(class, pages)), memory_order_relaxed);
        for (uint32_t i = 1; i < pages; i++)
                sl_page_set(runs, page + i, SL_PAGE_SLAB_REST, i);
        sl_page_set(runs, page, SL_PAGE_SLAB, class);
        return page;
}

/* Takes a block of the slab @page, which the caller holds, and puts the slab back if it has more. */
static uint64_t take_block(struct sl_arena *arena, uint32_t class, uint32_t page)
{
        struct sl_page *slab = &arena->runs.pages[page];
        uint64_t free_blocks = atomic_load_explicit(&slab->free_blocks, memory_order_acquire);
        uint32_t block = (uint32_t)__builtin_ctzll(free_blocks);
        uint64_t bit = UINT64_C(1) << block;

        if (atomic_fetch_and_explicit(&slab->free_blocks, ~bit, memory_order_acq_rel) & ~bit)
                sl_stack_push(&arena->classes[class].slabs, arena->runs.pages, page);
        count_taken(arena, block_bytes(class));
        return (uint64_t)page * SL_PAGE_BYTES + block * block_bytes(class);
}

static bool take_small(struct sl_arena *arena, uint64_t bytes, uint64_t *ret_offset)
{
        uint32_t class = sl_class_ceil(sl_align_up(bytes, SL_ARENA_ALIGNMENT) / SL_ARENA_ALIGNMENT);
        uint32_t page = sl_stack_pop(&arena->classes[class].slabs, arena->runs.pages);

        if (page == SL_NO_PAGE)
                page = make_slab(arena, class);
        for (uint32_t i = 0; page == SL_NO_PAGE && i < LARGER_CLASSES && class + 1 < SLAB_CLASSES; i++)
                page = sl_stack_pop(&arena->classes[++class].slabs, arena->runs.pages);
        if (page == SL_NO_PAGE)
                return false;
        *ret_offset = take_block(arena, class, page);
        return true;
}

static int give_block(struct sl_arena *arena, uint32_t page, uint32_t class, uint64_t offset)
{
        struct sl_page *slab = &arena->runs.pages[page];
        uint64_t inside = offset - (uint64_t)page * SL_PAGE_BYTES;
        uint64_t block = inside / block_bytes(class);

        if (inside % block_bytes(class) || block >= slab_blocks(class, sl_run_pages(&arena->runs, page)))
                return -EINVAL;

        uint64_t bit = UINT64_C(1) << block;
        uint64_t before = atomic_fetch_or_explicit(&slab->free_blocks, bit, memory_order_acq_rel);

        if (before & bit)
                return -EINVAL;
        if (before == 0)
                sl_stack_push(&arena->classes[class].slabs, arena->runs.pages, page);
        count_given(arena, block_bytes(class));
        return 0;
}

/* ---- large blocks --------------------------------------------------------------------------------------------------- */

static bool take_large(struct sl_arena *arena, uint64_t bytes, uint64_t *ret_offset)
{
        struct sl_runs *runs = &arena->runs;
        uint64_t exact = sl_align_up(bytes, SL_PAGE_BYTES) / SL_PAGE_BYTES;
        uint64_t rounded = sl_class_units(sl_class_ceil(exact));
        uint32_t page = rounded <= runs->n_pages ? sl_runs_take(runs, (uint32_t)rounded) : SL_NO_PAGE;

        if (page == SL_NO_PAGE && exact < rounded)
                page = sl_runs_take(runs, (uint32_t)exact);
        if (page == SL_NO_PAGE)
                return false;
        sl_page_set(runs, page, SL_PAGE_LARGE, 0);
        count_taken(arena, (uint64_t)sl_run_pages(runs, page) * SL_PAGE_BYTES);
        *ret_offset = (uint64_t)page * SL_PAGE_BYTES;
        return true;
}

static int give_large(struct sl_arena *arena, uint32_t page)
{
        uint32_t expected = SL_PAGE_LARGE;
        uint64_t bytes = (uint64_t)sl_run_pages(&arena->runs, page) * SL_PAGE_BYTES;

        if (!atomic_compare_exchange_strong_explicit(
                    &arena->runs.pages[page].state, &expected, SL_PAGE_FREE, memory_order_acq_rel, memory_order_relaxed))
                return -EINVAL;
        sl_runs_give(&arena->runs, page);
        count_given(arena, bytes);
        return 0;
}

/* ---- the sweep ------------------------------------------------------------------------------------------------------ */

/* Turns the slab @page into a swept run if none of its blocks is in use. The caller holds it. */
static bool dissolve_slab(struct sl_arena *arena, uint32_t class, uint32_t page)
{
        struct sl_runs *runs = &arena->runs;
        uint32_t pages = sl_run_pages(runs, page);
        uint64_t free_blocks = atomic_load_explicit(&runs->pages[page].free_blocks, memory_order_acquire);

        if (free_blocks != all_blocks(slab_blocks(class, pages)))
                return false;
        sl_page_set(runs, page, SL_PAGE_SWEPT, 0);
        for (uint32_t i = 1; i < pages; i++)
                sl_page_set(runs, page + i, SL_PAGE_NONE, 0);
        return true;
}

static void sweep_slabs(struct sl_arena *arena, uint32_t class)
{
        struct sl_page_stack *slabs = &arena->classes[class].slabs;
        uint32_t page = sl_stack_pop_all(slabs);

        while (page != SL_NO_PAGE) {
                uint32_t below = sl_stack_below(arena->runs.pages, page);

                if (!dissolve_slab(arena, class, page))
                        sl_stack_push(slabs, arena->runs.pages, page);
                page = below;
        }
}

/* Return: false when looking again is useless, as nothing was given since the last sweep. */
static bool sweep(struct sl_arena *arena)
{
        if (atomic_exchange_explicit(&arena->sweeping, 1, memory_order_acquire)) {
                sched_yield(); /* another thread sweeps; its joined runs are as good as ours */
                return true;
        }

        uint64_t given = atomic_load_explicit(&arena->given_bytes, memory_order_relaxed);
        bool useful = given != arena->swept_at;

        if (useful) {
                arena->swept_at = given;
                sl_runs_sweep_collect(&arena->runs);
                for (uint32_t class = 0; class < SLAB_CLASSES; class ++)
                        sweep_slabs(arena, class);
                sl_runs_sweep_join(&arena->runs);
        }
        atomic_store_explicit(&arena->sweeping, 0, memory_order_release);
        return useful;
}

/* ---- the interface -------------------------------------------------------------------------------------------------- */

int sl_arena_take(struct sl_arena *arena, uint64_t bytes, uint64_t *ret_offset)
{
        if (bytes == 0)
                return -EINVAL;
        if (bytes > (uint64_t)arena->runs.n_pages * SL_PAGE_BYTES)
                return -ENOMEM;
        for (uint32_t i = 0; i < ATTEMPTS; i++) {
                bool taken = bytes > LARGE_BYTES - LARGE_BYTES / 8 ? take_large(arena, bytes, ret_offset)
                                                                   : take_small(arena, bytes, ret_offset);

                if (taken)
                        return 0;
                if (!sweep(arena))
                        break;
        }
        return -ENOMEM;
}

int sl_arena_give(struct sl_arena *arena, uint64_t offset)
{
        uint64_t page = offset / SL_PAGE_BYTES;

        if (page >= arena->runs.n_pages)
                return -EINVAL;

        uint32_t word = sl_page_get(&arena->runs, (uint32_t)page);

        if (SL_PAGE_STATE(word) == SL_PAGE_LARGE && offset % SL_PAGE_BYTES == 0)
                return give_large(arena, (uint32_t)page);
        if (SL_PAGE_STATE(word) == SL_PAGE_SLAB_REST) {
                page -= SL_PAGE_VALUE(word);
                word = sl_page_get(&arena->runs, (uint32_t)page);
        }
        if (SL_PAGE_STATE(word) != SL_PAGE_SLAB)
                return -EINVAL;
        return give_block(arena, (uint32_t)page, SL_PAGE_VALUE(word), offset);
}

uint64_t sl_arena_used(const struct sl_arena *arena)
{
        uint64_t given = atomic_load_explicit(&arena->given_bytes, memory_order_relaxed);

        return atomic_load_explicit(&arena->taken_bytes, memory_order_relaxed) - given;
}

static bool is_free(const struct sl_arena *arena, uint32_t page)
{
        uint32_t word = sl_page_get(&arena->runs, page), class = SL_PAGE_VALUE(word);

        if (SL_PAGE_STATE(word) == SL_PAGE_FREE || SL_PAGE_STATE(word) == SL_PAGE_SWEPT)
                return true;
        return SL_PAGE_STATE(word) == SL_PAGE_SLAB &&
               atomic_load_explicit(&arena->runs.pages[page].free_blocks, memory_order_acquire) ==
                       all_blocks(slab_blocks(class, sl_run_pages(&arena->runs, page)));
}

/* Runs may be joined and cut meanwhile: a page that begins none by then is passed over. */
uint64_t sl_arena_largest(const struct sl_arena *arena)
{
        const struct sl_runs *runs = &arena->runs;
        uint32_t fresh = atomic_load_explicit(&runs->fresh, memory_order_acquire), row = 0, largest = 0, pages;

        for (uint32_t page = 0; page < fresh; page += pages) {
                pages = sl_run_pages(runs, page);
                pages = pages == 0 || pages > fresh - page ? 1 : pages;
                row = is_free(arena, page) ? row + pages : 0;
                largest = row > largest ? row : largest;
        }
        row += runs->n_pages - fresh;
        return (uint64_t)(row > largest ? row : largest) * SL_PAGE_BYTES;
}
