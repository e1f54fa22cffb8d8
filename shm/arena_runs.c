/* SPDX-License-Identifier: Apache-2.0 */
#include "arena_runs.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

static size_t table_bytes(uint32_t n_pages)
{
        return (size_t)n_pages * sizeof(struct sl_page);
}

int sl_runs_init(struct sl_runs *runs, uint32_t n_pages)
{
        void *table = mmap(NULL, table_bytes(n_pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (table == MAP_FAILED)
                return -ENOMEM;
        *runs = (struct sl_runs){.pages = table, .n_pages = n_pages};
        return 0;
}

void sl_runs_deinit(struct sl_runs *runs)
{
        if (runs->pages)
                munmap(runs->pages, table_bytes(runs->n_pages));
        runs->pages = NULL;
}

static void set_pages(struct sl_runs *runs, uint32_t page, uint32_t pages)
{
        atomic_store_explicit(&runs->pages[page].pages, pages, memory_order_release);
}

void sl_runs_give(struct sl_runs *runs, uint32_t page)
{
        uint32_t pages = sl_run_pages(runs, page);

        sl_page_set(runs, page, SL_PAGE_FREE, 0);
        sl_stack_push(&runs->stacks[sl_class_floor(pages)], runs->pages, page);
}

/* Cuts @page down to @pages and gives the rest back. The rest is a run before the first part shrinks: a sweeper that walks by at
 * the same time steps over both or over each. */
static void cut(struct sl_runs *runs, uint32_t page, uint32_t pages)
{
        uint32_t rest = sl_run_pages(runs, page) - pages;

        if (rest == 0)
                return;
        set_pages(runs, page + pages, rest);
        set_pages(runs, page, pages);
        sl_runs_give(runs, page + pages);
}

static uint32_t take_class(struct sl_runs *runs, uint32_t class, uint32_t pages)
{
        uint32_t page = sl_stack_pop(&runs->stacks[class], runs->pages);

        if (page == SL_NO_PAGE)
                return SL_NO_PAGE;
        if (sl_run_pages(runs, page) < pages) {
                sl_runs_give(runs, page);
                return SL_NO_PAGE;
        }
        cut(runs, page, pages);
        return page;
}

static uint32_t take_fresh(struct sl_runs *runs, uint32_t pages)
{
        uint32_t page = atomic_load_explicit(&runs->fresh, memory_order_relaxed);

        do {
                if (pages > runs->n_pages - page)
                        return SL_NO_PAGE;
        } while (!atomic_compare_exchange_weak_explicit(
                &runs->fresh, &page, page + pages, memory_order_acq_rel, memory_order_relaxed));
        sl_page_set(runs, page, SL_PAGE_FREE, 0);
        set_pages(runs, page, pages);
        return page;
}

uint32_t sl_runs_take(struct sl_runs *runs, uint32_t pages)
{
        uint32_t class = sl_class_ceil(pages);
        uint32_t page = take_class(runs, class, pages);

        if (page == SL_NO_PAGE)
                page = take_fresh(runs, pages);
        for (uint32_t c = class + 1; page == SL_NO_PAGE && c < SL_ARENA_CLASSES; c++)
                page = take_class(runs, c, pages);
        if (page == SL_NO_PAGE && sl_class_units(class) > pages) /* a run of an odd length counts as the class below */
                page = take_class(runs, class - 1, pages);
        return page;
}

void sl_runs_sweep_collect(struct sl_runs *runs)
{
        for (uint32_t class = 0; class < SL_ARENA_CLASSES; class ++) {
                uint32_t page = sl_stack_pop_all(&runs->stacks[class]);

                for (; page != SL_NO_PAGE; page = sl_stack_below(runs->pages, page))
                        sl_page_set(runs, page, SL_PAGE_SWEPT, 0);
        }
}

static bool is_swept(const struct sl_runs *runs, uint32_t page)
{
        return page < atomic_load_explicit(&runs->fresh, memory_order_acquire) &&
               SL_PAGE_STATE(sl_page_get(runs, page)) == SL_PAGE_SWEPT;
}

/* Takes the swept runs that follow @page into its run. Return: the page behind. */
static uint32_t join(struct sl_runs *runs, uint32_t page)
{
        uint32_t end = page + sl_run_pages(runs, page);

        while (is_swept(runs, end)) {
                uint32_t pages = sl_run_pages(runs, end);

                sl_page_set(runs, end, SL_PAGE_NONE, 0);
                set_pages(runs, end, 0);
                end += pages;
        }
        set_pages(runs, page, end - page);
        return end;
}

/* Makes the run that ends where the fresh pages begin fresh as well. Only the sweeper lowers the border. */
static bool make_fresh(struct sl_runs *runs, uint32_t page, uint32_t end)
{
        uint32_t expected = end;

        if (atomic_load_explicit(&runs->fresh, memory_order_relaxed) != end)
                return false;
        sl_page_set(runs, page, SL_PAGE_NONE, 0);
        set_pages(runs, page, 0);
        if (atomic_compare_exchange_strong_explicit(&runs->fresh, &expected, page, memory_order_acq_rel, memory_order_relaxed))
                return true;
        set_pages(runs, page, end - page);
        return false;
}

void sl_runs_sweep_join(struct sl_runs *runs)
{
        uint32_t page = 0;

        while (page < atomic_load_explicit(&runs->fresh, memory_order_acquire)) {
                if (is_swept(runs, page)) {
                        uint32_t end = join(runs, page);

                        if (!make_fresh(runs, page, end))
                                sl_runs_give(runs, page);
                        page = end;
                } else {
                        uint32_t pages = sl_run_pages(runs, page);

                        page += pages ? pages : 1; /* 0: just being cut by another thread, its inner pages are 0 too */
                }
        }
}
