/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TreeEnsemble of version 5 of the domain: nodes and leaves are named by their places. Its items are the nodes, then the leaves; a
 * leaf may be led to from anywhere.
 */
#include "import/forest.h"
#include "import/ml.h"

#include "shape/trees.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define ITEMS_MAX (INT32_MAX / 4)

struct lists {
        const int64_t *features, *yes, *no, *yes_is_leaf, *no_is_leaf, *missing, *roots, *targets;
        const uint8_t *modes;
        double *splits, *weights, *members; /* owned */
        size_t n, n_leaves, n_roots, n_members;
        bool is_double;
};

static void lists_deinit(struct lists *lists)
{
        free(lists->splits);
        free(lists->weights);
        free(lists->members);
}

static const int64_t *ints_of(struct sl_expansion *x, const char *name, size_t n, bool optional)
{
        size_t there;
        const int64_t *ints = sl_ml_ints(x, name, &there);

        if (there != n && !(optional && !there))
                sl_expand_wrong(x, "lists of its trees have different lengths");
        return there == n ? ints : NULL;
}

static const uint8_t *modes_of(struct sl_expansion *x, size_t n)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(x->node, "nodes_modes");
        uint32_t index;

        if (!attr || !attr->t) {
                sl_expand_wrong(x, "it has no nodes_modes");
                return NULL;
        }
        if (x->result == 0)
                x->result = sl_import_tensor(x->im, attr->t, x->node->name, &index);
        if (x->result < 0)
                return NULL;
        if (x->im->graph->values[index].tensor.dtype != SL_DTYPE_U8 ||
                sl_shape_elements(&x->im->graph->values[index].tensor.shape) != n)
                sl_expand_wrong(x, "lists of its trees have different lengths");
        return x->im->graph->values[index].data;
}

static void read_lists(struct sl_expansion *x, struct lists *lists)
{
        size_t n;

        lists->features = sl_ml_ints(x, "nodes_featureids", &lists->n);
        lists->targets = sl_ml_ints(x, "leaf_targetids", &lists->n_leaves);
        lists->roots = sl_ml_ints(x, "tree_roots", &lists->n_roots);
        if (!lists->n || !lists->n_leaves || !lists->n_roots || lists->n > ITEMS_MAX || lists->n_leaves > ITEMS_MAX ||
                lists->n_roots > lists->n)
                sl_expand_wrong(x, "it has no nodes, no leaves or no roots, or more than it may have");
        lists->yes = ints_of(x, "nodes_truenodeids", lists->n, false);
        lists->no = ints_of(x, "nodes_falsenodeids", lists->n, false);
        lists->yes_is_leaf = ints_of(x, "nodes_trueleafs", lists->n, false);
        lists->no_is_leaf = ints_of(x, "nodes_falseleafs", lists->n, false);
        lists->missing = ints_of(x, "nodes_missing_value_tracks_true", lists->n, true);
        lists->modes = modes_of(x, lists->n);
        lists->splits = sl_ml_doubles(x, "", "nodes_splits", &n, &lists->is_double);
        if (n != lists->n)
                sl_expand_wrong(x, "lists of its trees have different lengths");
        lists->weights = sl_ml_doubles(x, "", "leaf_weights", &n, &lists->is_double);
        if (n != lists->n_leaves)
                sl_expand_wrong(x, "lists of its trees have different lengths");
        lists->members = sl_ml_doubles(x, "", "membership_values", &lists->n_members, &lists->is_double);
        if (lists->n_members > ITEMS_MAX)
                sl_expand_wrong(x, "it has more members than it may have");
}

/* A node or a leaf as an item; UINT32_MAX: there is none. */
static uint32_t item_at(const struct lists *lists, int64_t index, bool is_leaf)
{
        if (index < 0 || (uint64_t)index >= (is_leaf ? lists->n_leaves : lists->n))
                return UINT32_MAX;
        return (uint32_t)index + (is_leaf ? (uint32_t)lists->n : 0);
}

/* The members of a node go up to the next NaN. */
static void take_members(const struct lists *lists, struct sl_forest_item *item, uint32_t *next)
{
        item->first = *next;
        while (*next < lists->n_members && !isnan(lists->members[*next]))
                ++*next;
        item->count = *next - item->first;
        *next += *next < lists->n_members;
}

static void read_node(struct sl_expansion *x, const struct lists *lists, size_t i, struct sl_forest_item *item)
{
        item->mode = lists->modes[i];
        item->missing_true = lists->missing && lists->missing[i];
        item->split = lists->splits[i];
        item->yes = item_at(lists, lists->yes[i], lists->yes_is_leaf[i]);
        item->no = item_at(lists, lists->no[i], lists->no_is_leaf[i]);
        if (item->mode > SL_BRANCH_MEMBER)
                sl_expand_wrong(x, "node %zu has mode %d, outside [0,%d]", i, (int)item->mode, SL_BRANCH_MEMBER);
        if (item->yes == UINT32_MAX || item->no == UINT32_MAX)
                sl_expand_wrong(x, "node %zu has child %" PRId64 " or %" PRId64 ", of which one is not there", i, lists->yes[i],
                        lists->no[i]);
        if (lists->features[i] < 0 || lists->features[i] > INT32_MAX / 2)
                sl_expand_wrong(x, "node %zu looks at feature %" PRId64 ", outside [0,%d]", i, lists->features[i], INT32_MAX / 2);
        item->feature = (uint32_t)lists->features[i];
}

static void fill_forest(struct sl_expansion *x, const struct lists *lists, struct sl_forest *forest)
{
        uint32_t member = 0;

        for (size_t i = 0; i < lists->n && x->result == 0; i++) {
                read_node(x, lists, i, &forest->items[i]);
                if (forest->items[i].mode == SL_BRANCH_MEMBER)
                        take_members(lists, &forest->items[i], &member);
        }
        for (size_t i = 0; i < lists->n_members && x->result == 0; i++)
                forest->members[i] = lists->members[i];
        for (uint32_t i = 0; i < lists->n_leaves && x->result == 0; i++) {
                forest->items[lists->n + i] = (struct sl_forest_item){.mode = SL_BRANCH_LEAF, .first = i, .count = 1};
                forest->entries[i] = (struct sl_forest_entry){(uint32_t)lists->targets[i], lists->weights[i]};
                if (lists->targets[i] < 0 || lists->targets[i] >= forest->n_targets)
                        sl_expand_wrong(
                                x, "leaf %u has target %" PRId64 ", outside [0,%u)", i, lists->targets[i], forest->n_targets);
        }
        for (size_t i = 0; i < lists->n_roots && x->result == 0; i++) {
                forest->roots[i] = item_at(lists, lists->roots[i], false);
                if (forest->roots[i] == UINT32_MAX)
                        sl_expand_wrong(x, "root %zu is node %" PRId64 ", which is not there", i, lists->roots[i]);
        }
}

static uint32_t emit_lists(struct sl_expansion *x, const struct lists *lists, int64_t targets, int64_t sum)
{
        static const int sums[] = {SL_TREE_AVERAGE, SL_TREE_SUM, SL_TREE_MIN, SL_TREE_MAX};
        struct sl_forest forest = {0};
        uint32_t rows = sl_ml_rows(x, true), scores = SL_VALUE_NONE;

        if (x->result == 0)
                x->result = sl_forest_init(&forest, (uint32_t)(lists->n + lists->n_leaves), (uint32_t)lists->n_roots,
                        (uint32_t)lists->n_leaves, (uint32_t)lists->n_members);
        forest.n_targets = (uint32_t)targets;
        forest.sum = sums[sum & 3];
        forest.is_double = lists->is_double;
        if (x->result == 0)
                fill_forest(x, lists, &forest);
        if (x->result == 0)
                x->result = sl_forest_emit(x->im, x->node, &forest, rows, sl_expand_dtype(x, rows), &scores);
        sl_forest_deinit(&forest);
        return scores;
}

SL_ML(tree_ensemble)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        int64_t targets = sl_expand_int(&x, "n_targets", 1), sum = sl_expand_int(&x, "aggregate_function", 1);
        int64_t post = sl_expand_int(&x, "post_transform", 0);
        struct lists lists = {0};
        uint32_t scores;

        (void)draft;
        if (targets < 1 || targets > SL_TREE_TARGETS_MAX || sum < 0 || sum > 3 || post < 0 || post >= SL_POST_LIMIT)
                sl_expand_wrong(&x,
                        "n_targets is %" PRId64 ", aggregate_function %" PRId64 ", post_transform %" PRId64
                        ": outside [1,%d], [0,3] or [0,%d]",
                        targets, sum, post, SL_TREE_TARGETS_MAX, SL_POST_LIMIT - 1);
        if (x.result == 0)
                read_lists(&x, &lists);
        scores = emit_lists(&x, &lists, targets, sum);
        /* A single target is transformed by PROBIT alone, as ONNX Runtime does it. */
        if (targets == 1 && post != SL_POST_PROBIT)
                post = SL_POST_NONE;
        sl_expand_output(&x, 0, sl_ml_transform(&x, scores, (enum sl_post_transform)post));
        lists_deinit(&lists);
        return sl_expansion_end(&x);
}
