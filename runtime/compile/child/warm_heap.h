/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a process of one thread has touched before it needs it, and gives to its own malloc(): graphs of a small network take
 * some megabytes, and most of that time the kernel clears pages. The pieces follow each other in the heap, so that they are one
 * when they are freed; the last stays, or all would go back to the kernel. Zeroed it is empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_WARM_HEAP_BYTES (16u << 20)
#define SL_WARM_PIECE      (64u << 10) /* below what malloc() maps by itself */

struct sl_warm_heap {
        uint32_t n;
        void *pieces[SL_WARM_HEAP_BYTES / SL_WARM_PIECE];
};

/* Touches a megabyte more. False: it has all, or there is no memory. */
bool sl_warm_heap_grow(struct sl_warm_heap *heap);

/* malloc() has it from here on. */
void sl_warm_heap_open(struct sl_warm_heap *heap);
