/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off: the list below is a table */
/*
 * starling.Trees: decision trees that vote on each row of input 0, in one form for all modes of branching, all ways of missing
 * values and all operators of ai.onnx.ml that hold trees. Pure; any thread.
 *
 *   input 0  rows [N, F], F32 or F64
 *   input 1  columns, I32 [C]: the features that the trees look at, feature * 2 + side. A NaN is larger than every number on side 0
 *            and smaller on side 1, so that a node says by its column where missing values go.
 *   input 2  nodes [n, 2]: key and word, both I32, or both I64 (always so for rows of F64)
 *   input 3  the root of each tree, I32 [T], ascending
 *   input 4  targets, I32: of each tree, or of each entry of the lists
 *   input 5  weights, F32 or F64: of each node, or of each entry of the lists
 *   input 6  what is added to each target at the end, of the type of the weights, [LENGTH]; may be absent
 *   input 7  the list of each node, I32 [n]          } together, or none of the two: then a tree has one target, input 4, and
 *   input 8  where each list starts, I32 [L + 1]     } its leaves one weight each, in input 5
 *
 * The numbers of a row are compared as integers (sl_tree_key_32(), sl_tree_key_64()) that have the order of the numbers, so that
 * each kind of comparison is one: `x <= key`. The two children of a node lie side by side, behind it: word is column | offset <<
 * COLUMN_BITS, and the next node is this one + offset + (x <= key). A leaf has offset 0 and the key that no x reaches, so that
 * another step from it ends where it began. Offsets are never negative: every walk ends. VISITS is the sum over the trees of the
 * nodes on their longest ways.
 */
/* clang-format on */
#pragma once

#include "node.h"
#include "op.h"

#include <math.h>
#include <string.h>

#define SL_TREE_TARGETS_MAX (1 << 24)

enum sl_tree_sum { SL_TREE_SUM, SL_TREE_AVERAGE, SL_TREE_MIN, SL_TREE_MAX };

struct sl_tree_form {
        int64_t rows, features, columns, nodes, trees, entries, lists, targets;
        uint32_t column_bits;
        bool wide; /* nodes of I64 */
        bool has_lists, has_base;
        enum sl_tree_sum sum;
        uint64_t visits;
};

/* As shape rule and kernels read the node, whose shapes are static. -EINVAL. */
int sl_tree_form_read(const struct sl_node_desc *node, struct sl_tree_form *ret_form, struct sl_error *error);

/* The data of inputs 1 to 8. */
struct sl_tree_data {
        const int32_t *columns;
        const void *nodes;
        const int32_t *roots, *targets;
        const void *weights, *base;
        const int32_t *leaf_lists, *list_starts;
};

struct sl_tree_data sl_tree_data_of(const void *const *inputs, uint32_t n_inputs);

/*
 * Every index and offset lies inside, targets of a list ascend, and VISITS is what it says: kernels need not look any more. Takes
 * time and memory in proportion to the nodes. -ENOMEM; -ERANGE: something lies outside.
 */
int sl_trees_check(const struct sl_tree_form *form, const struct sl_tree_data *data);

/* The sum over the trees of the nodes on their longest ways. @depths: room for one number for each node. */
uint64_t sl_trees_visits(const struct sl_tree_form *form, const struct sl_tree_data *data, uint32_t *depths);

#define SL_TREE_NEVER_32 INT32_MIN /* the key of leaves */
#define SL_TREE_NEVER_64 INT64_MIN

static inline int32_t sl_tree_key_32(float x, bool low)
{
        float sum = x + 0.0f; /* of the zeros the positive one */
        int32_t bits;

        if (isnan(x))
                return low ? INT32_MIN + 1 : INT32_MAX;
        memcpy(&bits, &sum, sizeof(bits));
        return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}

static inline int64_t sl_tree_key_64(double x, bool low)
{
        double sum = x + 0.0;
        int64_t bits;

        if (isnan(x))
                return low ? INT64_MIN + 1 : INT64_MAX;
        memcpy(&bits, &sum, sizeof(bits));
        return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1);
}

/* A node of either width. */
struct sl_tree_node {
        int64_t key, column, offset;
};

static inline struct sl_tree_node sl_tree_node_at(const struct sl_tree_form *form, const void *nodes, int64_t index)
{
        uint64_t word, key;

        if (form->wide) {
                key = ((const uint64_t *)nodes)[2 * index];
                word = ((const uint64_t *)nodes)[2 * index + 1];
        } else {
                key = (uint64_t)(int64_t)((const int32_t *)nodes)[2 * index];
                word = ((const uint32_t *)nodes)[2 * index + 1];
        }
        return (struct sl_tree_node){
                (int64_t)key, (int64_t)(word & ((1ull << form->column_bits) - 1)), (int64_t)(word >> form->column_bits)};
}
