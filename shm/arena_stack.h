/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock-free stacks of pages, linked through a table of page words in private memory. The upper half of a top is a tag that every
 * change increases, so that a page that went and came back in between is noticed; a thread would have to stall for 2^32 changes of
 * one stack inside one pop to be fooled. Any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define SL_NO_PAGE UINT32_MAX

struct sl_page {
        _Atomic uint64_t free_blocks; /* of a slab: bit i says that block i is free */
        _Atomic uint32_t next;        /* in a stack: index + 1 of the page below; 0: none */
        _Atomic uint32_t pages;       /* at the first page of a run: its length; 0 everywhere else */
        _Atomic uint32_t state;       /* enum sl_page_state, with a slab's class or a distance in the bits above */
};

struct sl_page_stack {
        _Atomic uint64_t top; /* tag << 32 | index + 1 */
};

static inline uint64_t sl_stack_top(uint64_t old, uint32_t link)
{
        return ((old >> 32) + 1) << 32 | link;
}

static inline void sl_stack_push(struct sl_page_stack *stack, struct sl_page *pages, uint32_t page)
{
        uint64_t old = atomic_load_explicit(&stack->top, memory_order_relaxed);

        do
                atomic_store_explicit(&pages[page].next, (uint32_t)old, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(
                &stack->top, &old, sl_stack_top(old, page + 1), memory_order_release, memory_order_relaxed));
}

/* The top page, which is the caller's alone from now on; SL_NO_PAGE when there is none. */
static inline uint32_t sl_stack_pop(struct sl_page_stack *stack, struct sl_page *pages)
{
        uint64_t old = atomic_load_explicit(&stack->top, memory_order_acquire);
        uint32_t below;

        do {
                if ((uint32_t)old == 0)
                        return SL_NO_PAGE;
                below = atomic_load_explicit(&pages[(uint32_t)old - 1].next, memory_order_relaxed);
        } while (!atomic_compare_exchange_weak_explicit(
                &stack->top, &old, sl_stack_top(old, below), memory_order_acquire, memory_order_acquire));
        return (uint32_t)old - 1;
}

/* All pages at once: the first, linked through next; SL_NO_PAGE when there are none. */
static inline uint32_t sl_stack_pop_all(struct sl_page_stack *stack)
{
        uint64_t old = atomic_load_explicit(&stack->top, memory_order_relaxed);

        while (!atomic_compare_exchange_weak_explicit(
                &stack->top, &old, sl_stack_top(old, 0), memory_order_acquire, memory_order_relaxed))
                ;
        return (uint32_t)old - 1; /* 0 - 1 is SL_NO_PAGE */
}

/* The page below @page in a list that sl_stack_pop_all() took. */
static inline uint32_t sl_stack_below(const struct sl_page *pages, uint32_t page)
{
        return atomic_load_explicit(&pages[page].next, memory_order_relaxed) - 1;
}
