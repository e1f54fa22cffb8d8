/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decision trees as files have them, and their way into the tables of starling.Trees (kernels/shape/trees.h). An item is a node or
 * a leaf of the file. Private to this folder; one owner, who fills the arrays and frees the forest.
 */
#pragma once

#include "import/importer.h"

enum sl_branch_mode {
        SL_BRANCH_LEQ,
        SL_BRANCH_LT,
        SL_BRANCH_GTE,
        SL_BRANCH_GT,
        SL_BRANCH_EQ,
        SL_BRANCH_NEQ,
        SL_BRANCH_MEMBER,
        SL_BRANCH_LEAF,
};

struct sl_forest_item {
        uint8_t mode;         /* enum sl_branch_mode */
        uint8_t missing_true; /* a NaN goes to `yes` */
        uint32_t feature;
        uint32_t yes, no;      /* items */
        uint32_t first, count; /* of a leaf: its entries; of a MEMBER: its members */
        double split;
};

struct sl_forest_entry {
        uint32_t target;
        double weight;
};

struct sl_forest {
        uint32_t n_items, n_roots, n_entries, n_members, n_targets;
        struct sl_forest_item *items;
        uint32_t *roots;
        struct sl_forest_entry *entries; /* by leaf */
        double *members;
        double *base;   /* of each target; NULL: none */
        int sum;        /* enum sl_tree_sum */
        bool is_double; /* weights and base are kept as float64 */
};

/* Room for so many, zeroed. -ENOMEM; the arrays that are there are freed by sl_forest_deinit(). */
int sl_forest_init(struct sl_forest *forest, uint32_t n_items, uint32_t n_roots, uint32_t n_entries, uint32_t n_members);
void sl_forest_deinit(struct sl_forest *forest);

/*
 * The trees over the rows @rows, F32 or F64, as a node that is emitted as a step; @ret_scores is [N, targets] of type @to.
 * -EBADMSG: an item that two lead to (so a cycle, too), a feature that the rows lack; -ENOMEM, -E2BIG.
 */
int sl_forest_emit(struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_forest *forest, uint32_t rows,
        uint32_t to, uint32_t *ret_scores);
