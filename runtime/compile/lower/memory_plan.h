/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static memory plan: blocks of bytes, each alive from one step to another, get offsets in one workspace so that blocks which are
 * alive at the same time never share a byte. Pure arithmetic; any thread.
 *
 * Greedy: block after block goes into the smallest gap that holds it between the blocks that live at the same time, or behind them
 * when there is none. Three orders are tried (size, size times lifetime, time) until one meets the lower bound; then each is
 * repaired for a while: whatever ends at the top goes to the front. The best plan stays.
 *
 * Sources: Y. Pisarchyk, J. Lee, "Efficient Memory Management for Deep Neural Net Inference", arXiv:2001.03288, 2020, section 5
 * (offsets, greedy by size).
 */
#pragma once

#include <stdint.h>

#define SL_MEMORY_ALIGNMENT 64u

/* Alive in steps [first, last], both included. */
struct sl_block {
        uint64_t bytes;
        uint32_t first, last;
        uint64_t offset; /* the result, a multiple of SL_MEMORY_ALIGNMENT */
};

/* Fills all offsets. @ret_bytes: of the workspace. Return: 0, -ENOMEM, -EOVERFLOW (sizes that no plan file may hold). */
int sl_memory_plan(struct sl_block *blocks, uint32_t n_blocks, uint64_t *ret_bytes);

/* The most bytes that are alive in one step: no plan needs less. Return: 0, -ENOMEM, -EOVERFLOW. */
int sl_memory_lower_bound(const struct sl_block *blocks, uint32_t n_blocks, uint64_t *ret_bytes);
