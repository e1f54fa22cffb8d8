/* SPDX-License-Identifier: Apache-2.0 */
/* Walks in turns, without vectors: a comparison becomes 0 or 1, so that nothing is predicted. */
#include "cpu/ml/trees.h"

#define GROUP 8

void sl_tree_walk_narrow(const struct sl_tree_walk *walk, int32_t *at, const int32_t *rows, int walks)
{
        const uint32_t columns = (1u << walk->column_bits) - 1, bits = walk->column_bits;
        const int32_t *nodes = walk->nodes, *keys = walk->keys;

        for (int first = 0; first < walks; first += GROUP) {
                uint32_t moved = 1;

                while (moved) {
                        moved = 0;
                        for (int i = first; i < first + GROUP; i++) {
                                const int32_t *node = nodes + 2 * (int64_t)at[i];
                                uint32_t word = (uint32_t)node[1], offset = word >> bits;

                                at[i] += (int32_t)(offset + (keys[(uint32_t)rows[i] + (word & columns)] <= node[0]));
                                moved |= offset;
                        }
                }
        }
}

void sl_tree_walk_wide(const struct sl_tree_walk *walk, int32_t *at, const int32_t *rows, int walks)
{
        const uint64_t columns = (1ull << walk->column_bits) - 1;
        const uint32_t bits = walk->column_bits;
        const int64_t *nodes = walk->nodes, *keys = walk->keys;

        for (int first = 0; first < walks; first += GROUP) {
                uint64_t moved = 1;

                while (moved) {
                        moved = 0;
                        for (int i = first; i < first + GROUP; i++) {
                                const int64_t *node = nodes + 2 * (int64_t)at[i];
                                uint64_t word = (uint64_t)node[1], offset = word >> bits;

                                at[i] += (int32_t)(offset + (uint64_t)(keys[(uint32_t)rows[i] + (word & columns)] <= node[0]));
                                moved |= offset;
                        }
                }
        }
}
