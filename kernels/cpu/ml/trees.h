/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks down decision trees (shape/trees.h), many at a time, so that the loads of one hide behind those of the others. A lane is
 * one row in one tree. Nodes and keys have been checked; a walk ends because offsets are positive.
 */
#pragma once

#include <stdint.h>

#define SL_TREE_WALKS 512

struct sl_tree_walk {
        const void *nodes; /* pairs of key and word */
        const void *keys;  /* of rows, as wide as those of the nodes */
        uint32_t column_bits;
};

/*
 * Walk i starts at node @at[i] and ends with its leaf there; its row's keys start at element @rows[i]. @walks: a multiple of 16, at
 * most SL_TREE_WALKS.
 */
typedef void sl_tree_walk_fn(const struct sl_tree_walk *walk, int32_t *at, const int32_t *rows, int walks);

sl_tree_walk_fn sl_tree_walk_narrow, sl_tree_walk_wide; /* any processor */
sl_tree_walk_fn sl_tree_walk_narrow_avx512;             /* where isa.h says so */
