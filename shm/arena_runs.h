/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lower half of an arena: runs of whole pages. See arena.c for the picture and for how fragmentation is met.
 *
 * Invariants, in terms of the page table:
 *   - runs tile [0, fresh): the first page of a run has pages != 0, all others have pages == 0, and so has every page from fresh
 * on;
 *   - a free run is in exactly one stack, or in the hands of exactly one thread;
 *   - state is not NONE only at the first page of a run and inside slabs.
 *
 * Threads: all functions but init and deinit from any thread, lock-free; sl_runs_sweep_* by one thread at a time.
 */
#pragma once

#include "arena_class.h"
#include "arena_stack.h"

#include <stdalign.h>

#define SL_PAGE_STATE(word) ((word)&0xffu)
#define SL_PAGE_VALUE(word) ((word) >> 8)

enum sl_page_state {
        SL_PAGE_NONE,      /* inside a run, or never used */
        SL_PAGE_FREE,      /* first page of a run that is free or in transit */
        SL_PAGE_SWEPT,     /* first page of a run in the hands of the sweeper */
        SL_PAGE_LARGE,     /* first page of a run that is one block in use */
        SL_PAGE_SLAB,      /* first page of a slab; the value is its class */
        SL_PAGE_SLAB_REST, /* further page of a slab; the value is the distance from the first */
};

struct sl_runs {
        struct sl_page *pages; /* lazily backed private memory */
        uint32_t n_pages;
        struct sl_page_stack stacks[SL_ARENA_CLASSES];
        alignas(64) _Atomic uint32_t fresh; /* pages from here on were never cut, or were given back whole */
};

/* Return: 0, -ENOMEM. */
int sl_runs_init(struct sl_runs *runs, uint32_t n_pages);
void sl_runs_deinit(struct sl_runs *runs);

/* A run of exactly @pages, in state FREE and the caller's alone; SL_NO_PAGE when there is none. */
uint32_t sl_runs_take(struct sl_runs *runs, uint32_t pages);

/* Gives back a run that is the caller's alone. */
void sl_runs_give(struct sl_runs *runs, uint32_t page);

/* Collects all free runs (the caller adds slabs in state SWEPT) ... */
void sl_runs_sweep_collect(struct sl_runs *runs);

/* ... and gives them back, neighbours joined, the last ones to the fresh pages. */
void sl_runs_sweep_join(struct sl_runs *runs);

static inline void sl_page_set(struct sl_runs *runs, uint32_t page, uint32_t state, uint32_t value)
{
        atomic_store_explicit(&runs->pages[page].state, value << 8 | state, memory_order_release);
}

static inline uint32_t sl_page_get(const struct sl_runs *runs, uint32_t page)
{
        return atomic_load_explicit(&runs->pages[page].state, memory_order_acquire);
}

static inline uint32_t sl_run_pages(const struct sl_runs *runs, uint32_t page)
{
        return atomic_load_explicit(&runs->pages[page].pages, memory_order_acquire);
}
