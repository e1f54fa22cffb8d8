/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include "arena_class.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024ull
#define MIB (1024 * KIB)

static struct sl_arena *arena_of(uint64_t bytes)
{
        struct sl_arena *arena = NULL;

        cr_assert_eq(sl_arena_new(bytes, &arena), 0);
        return arena;
}

static uint64_t take(struct sl_arena *arena, uint64_t bytes)
{
        uint64_t offset = 0;

        cr_assert_eq(sl_arena_take(arena, bytes, &offset), 0, "%lu bytes", (unsigned long)bytes);
        return offset;
}

Test(arena_class, four_steps_per_doubling_lose_at_most_a_quarter)
{
        for (uint64_t units = 1; units < 100000; units++) {
                uint32_t floor = sl_class_floor(units), ceil = sl_class_ceil(units);

                cr_assert_leq(sl_class_units(floor), units);
                cr_assert_gt(sl_class_units(floor + 1), units);
                cr_assert_geq(sl_class_units(ceil), units);
                cr_assert(ceil == 0 || sl_class_units(ceil - 1) < units);
                cr_assert_lt(sl_class_units(ceil) * 4, units * 5);
        }
        cr_expect_lt(sl_class_ceil(UINT32_MAX), SL_ARENA_CLASSES);
}

Test(arena, the_largest_free_run_is_that_between_blocks_in_use)
{
        struct sl_arena *arena = arena_of(MIB);
        uint64_t blocks[8];

        cr_assert_eq(sl_arena_largest(arena), MIB);
        for (int i = 0; i < 8; i++)
                blocks[i] = take(arena, 128 * KIB);
        cr_assert_eq(sl_arena_largest(arena), 0);
        sl_arena_give(arena, blocks[2]);
        sl_arena_give(arena, blocks[5]);
        cr_assert_eq(sl_arena_largest(arena), 128 * KIB);
        sl_arena_give(arena, blocks[4]);
        cr_assert_eq(sl_arena_largest(arena), 256 * KIB);
        blocks[2] = take(arena, 64); /* a slab at the start of the first gap or in the second */
        cr_assert_geq(sl_arena_largest(arena), 128 * KIB);
        sl_arena_give(arena, blocks[2]);
        cr_assert_eq(sl_arena_largest(arena), 256 * KIB);
        sl_arena_free(arena);
}

Test(arena, offsets_are_aligned_and_inside)
{
        struct sl_arena *arena = arena_of(8 * MIB);

        for (uint64_t bytes = 1; bytes < 200000; bytes = bytes * 5 / 4 + 1) {
                uint64_t offset = take(arena, bytes);

                cr_expect_eq(offset % SL_ARENA_ALIGNMENT, 0);
                cr_expect_leq(offset + bytes, 8 * MIB);
        }
        sl_arena_free(arena);
}

Test(arena, impossible_requests_are_refused)
{
        struct sl_arena *arena = NULL;
        uint64_t offset = 7;

        cr_expect_eq(sl_arena_new(0, &arena), -EINVAL);
        cr_expect_eq(sl_arena_new(4095, &arena), -EINVAL);
        cr_expect_eq(sl_arena_new(UINT64_MAX, &arena), -EINVAL);
        cr_expect_eq(sl_arena_new(UINT64_C(4096) * UINT32_MAX, &arena), -EINVAL, "one page number means none");
        cr_expect_null(arena);
        arena = arena_of(64 * KIB);
        cr_expect_eq(sl_arena_take(arena, 0, &offset), -EINVAL);
        cr_expect_eq(sl_arena_take(arena, 64 * KIB + 1, &offset), -ENOMEM);
        cr_expect_eq(sl_arena_take(arena, UINT64_MAX, &offset), -ENOMEM);
        cr_expect_eq(offset, 7);
        cr_expect_null(sl_arena_free(arena));
        cr_expect_null(sl_arena_free(NULL));
}

Test(arena, giving_twice_or_giving_what_was_never_taken_is_refused_and_changes_nothing)
{
        struct sl_arena *arena = arena_of(4 * MIB);
        uint64_t sizes[] = {64, 100, 1280, 5000, 14336, 16384, 100000, MIB};

        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                uint64_t keep = take(arena, sizes[i]), offset = take(arena, sizes[i]);
                uint64_t used = sl_arena_used(arena);

                cr_expect_eq(sl_arena_give(arena, offset + 1), -EINVAL);
                cr_expect_eq(sl_arena_give(arena, offset + 32), -EINVAL);
                if (sizes[i] > 64)
                        cr_expect_eq(sl_arena_give(arena, offset + 64), -EINVAL, "%lu", (unsigned long)sizes[i]);
                if (sizes[i] > 4096)
                        cr_expect_eq(sl_arena_give(arena, offset + 4096), -EINVAL);
                cr_expect_eq(sl_arena_used(arena), used);
                cr_expect_eq(sl_arena_give(arena, offset), 0);
                cr_expect_eq(sl_arena_give(arena, offset), -EINVAL);
                cr_expect_eq(sl_arena_give(arena, keep), 0);
                cr_expect_eq(sl_arena_give(arena, keep), -EINVAL);
        }
        cr_expect_eq(sl_arena_used(arena), 0);
        cr_expect_eq(sl_arena_give(arena, 4 * MIB), -EINVAL);
        cr_expect_eq(sl_arena_give(arena, UINT64_MAX), -EINVAL);
        cr_expect_eq(sl_arena_give(arena, 3 * MIB), -EINVAL);
        sl_arena_free(arena);
}

Test(arena, a_block_given_back_serves_the_next_of_its_size)
{
        struct sl_arena *arena = arena_of(16 * MIB);
        uint64_t sizes[] = {64, 3000, 16 * KIB, 100000, 3 * MIB};

        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                uint64_t offset = take(arena, sizes[i]);

                for (int round = 0; round < 1000; round++) {
                        cr_assert_eq(sl_arena_give(arena, offset), 0);
                        cr_assert_eq(take(arena, sizes[i]), offset);
                }
                cr_assert_eq(sl_arena_give(arena, offset), 0);
        }
        sl_arena_free(arena);
}

Test(arena, one_block_may_be_the_whole_arena_again_and_again)
{
        for (uint64_t bytes = 4 * KIB; bytes <= 20 * MIB; bytes = bytes * 3 / 2 / 4096 * 4096 + 4096) {
                struct sl_arena *arena = arena_of(bytes);

                for (int i = 0; i < 3; i++) {
                        cr_assert_eq(take(arena, bytes), 0);
                        cr_assert_eq(sl_arena_used(arena), bytes);
                        cr_assert_eq(sl_arena_give(arena, 0), 0);
                }
                sl_arena_free(arena);
        }
}

static uint64_t take_all(struct sl_arena *arena, uint64_t bytes, uint64_t *offsets)
{
        uint64_t n = 0;

        while (sl_arena_take(arena, bytes, &offsets[n]) == 0)
                n++;
        return n;
}

Test(arena, small_blocks_fill_the_arena_and_join_to_one_large_block_again)
{
        const uint64_t bytes = 2 * MIB;
        uint64_t *offsets = calloc(bytes / 64 + 1, sizeof(*offsets));
        struct sl_arena *arena = arena_of(bytes);
        const uint64_t sizes[] = {64, 640, 3584, 16 * KIB, 64};

        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                uint64_t n = take_all(arena, sizes[i], offsets);

                cr_expect_geq(n * sizes[i] * 100, bytes * 97, "%lu blocks of %lu", (unsigned long)n, (unsigned long)sizes[i]);
                for (uint64_t k = 0; k < n; k++)
                        cr_assert_eq(sl_arena_give(arena, offsets[k]), 0);
                cr_assert_eq(take(arena, bytes), 0);
                cr_assert_eq(sl_arena_give(arena, 0), 0);
        }
        sl_arena_free(arena);
        free(offsets);
}

Test(arena, a_large_free_block_is_split_for_smaller_ones)
{
        struct sl_arena *arena = arena_of(MIB);

        cr_assert_eq(take(arena, MIB), 0);
        cr_assert_eq(sl_arena_give(arena, 0), 0);
        for (int i = 0; i < 16; i++)
                take(arena, 64 * KIB);
        cr_expect_eq(sl_arena_used(arena), MIB);
        sl_arena_free(arena);
}

Test(arena, an_arena_of_one_page_still_serves_any_small_size)
{
        const uint64_t sizes[] = {64, 128, 320, 1280, 2560, 3584, 4096};

        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                struct sl_arena *arena = arena_of(4 * KIB);

                cr_expect_eq(take(arena, sizes[i]), 0);
                cr_expect_eq(sl_arena_give(arena, 0), 0);
                sl_arena_free(arena);
        }
}

/* ---- threads -------------------------------------------------------------------------------------------------------- */

#define THREADS     4
#define HELD        24
#define STEPS       20000
#define CROWD_BYTES (3 * MIB)

/* Each thread owns the 64-byte units of its blocks: an owner that is not 0 where a block was taken is an overlap. */
struct crowd {
        struct sl_arena *arena;
        _Atomic uint8_t *owners;
        uint8_t *memory; /* plain bytes: a block that changes its thread without being handed over is a race */
        _Atomic uint32_t broken;
        _Atomic uint32_t next;
};

static void own(struct crowd *crowd, uint64_t offset, uint64_t bytes, uint8_t from, uint8_t to)
{
        memset(crowd->memory + offset, to, bytes);
        for (uint64_t unit = offset / 64; unit < (offset + bytes + 63) / 64; unit++)
                if (atomic_exchange_explicit(&crowd->owners[unit], to, memory_order_relaxed) != from)
                        atomic_fetch_add(&crowd->broken, 1);
}

static uint64_t some_size(unsigned *seed)
{
        unsigned r = (unsigned)rand_r(seed);

        return r % 16 == 0 ? 1 + (unsigned)rand_r(seed) % 200000 : 1 + (unsigned)rand_r(seed) % (64u << r % 9);
}

static void *live_in_crowd(void *context)
{
        struct crowd *crowd = context;
        uint8_t me = (uint8_t)(1 + atomic_fetch_add(&crowd->next, 1));
        unsigned seed = me;
        struct {
                uint64_t offset, bytes;
        } held[HELD] = {0};

        for (int step = 0; step < STEPS + HELD; step++) {
                int i = step < STEPS ? rand_r(&seed) % HELD : step - STEPS;

                if (held[i].bytes) {
                        own(crowd, held[i].offset, held[i].bytes, me, 0);
                        if (sl_arena_give(crowd->arena, held[i].offset) < 0)
                                atomic_fetch_add(&crowd->broken, 1);
                        held[i].bytes = 0;
                } else if (step < STEPS) {
                        held[i].bytes = some_size(&seed);
                        if (sl_arena_take(crowd->arena, held[i].bytes, &held[i].offset) < 0)
                                held[i].bytes = 0;
                        else
                                own(crowd, held[i].offset, held[i].bytes, 0, me);
                }
        }
        return NULL;
}

Test(arena, blocks_in_use_never_overlap_whatever_threads_do)
{
        struct crowd crowd = {.arena = arena_of(CROWD_BYTES), .owners = calloc(CROWD_BYTES / 64, 1), .memory = malloc(CROWD_BYTES)};
        pthread_t threads[THREADS];

        for (int i = 0; i < THREADS; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, live_in_crowd, &crowd), 0);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(crowd.broken, 0);
        cr_expect_eq(sl_arena_used(crowd.arena), 0);
        cr_expect_eq(take(crowd.arena, CROWD_BYTES), 0, "all joins again");
        sl_arena_free(crowd.arena);
        free((void *)crowd.owners);
        free(crowd.memory);
}

static void *give_all(void *context)
{
        struct crowd *crowd = context;
        uintptr_t given = 0;

        for (uint64_t offset = 0; offset < CROWD_BYTES; offset += 64)
                given += sl_arena_give(crowd->arena, offset) == 0;
        return (void *)given;
}

Test(arena, of_two_threads_that_give_one_block_exactly_one_succeeds)
{
        struct crowd crowd = {.arena = arena_of(CROWD_BYTES)};
        pthread_t threads[2];
        uintptr_t taken = 0, given = 0;
        uint64_t offset;

        for (uint64_t bytes = 64; sl_arena_take(crowd.arena, bytes, &offset) == 0; bytes = bytes < 40000 ? bytes * 2 : 64)
                taken++;
        for (int i = 0; i < 2; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, give_all, &crowd), 0);
        for (int i = 0; i < 2; i++) {
                void *n;

                pthread_join(threads[i], &n);
                given += (uintptr_t)n;
        }
        cr_expect_eq(given, taken);
        cr_expect_eq(sl_arena_used(crowd.arena), 0);
        sl_arena_free(crowd.arena);
}
