/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree ensembles in lists of attributes: a node is what stands at one place of nodes_*, named by its tree and its number there, and
 * a leaf's weights name it so. What the lists contradict is refused here, what the trees do in forest.c.
 */
#include "import/forest.h"
#include "import/ml.h"

#include "base/cleanup.h"
#include "shape/trees.h"

#include <inttypes.h>
#include <string.h>

#define ITEMS_MAX (INT32_MAX / 4)

/* A node's name and where it stands. */
struct place {
        int64_t tree, number;
        uint32_t at;
};

struct places {
        struct place *sorted;
        size_t n;
};

/* The lists of one kind of leaf, "target" or "class". */
struct lists {
        const int64_t *trees, *numbers, *features, *yes, *no, *missing;
        const Onnx__AttributeProto *modes;
        const int64_t *leaf_trees, *leaf_numbers, *leaf_targets;
        size_t n, n_leaf;
        double *splits, *weights, *base; /* owned */
        size_t n_base;
        bool is_double;
};

static void lists_deinit(struct lists *lists)
{
        free(lists->splits);
        free(lists->weights);
        free(lists->base);
}

static void wrong(struct sl_expansion *x, const char *name)
{
        if (x->result == 0)
                x->result = sl_error_set(x->im->error, EBADMSG, "node \"%s\" (%s): attribute %s is missing or has another length",
                        x->node->name, x->node->proto->op_type, name);
}

/* A list of @n integers; @optional: it may be absent. */
static const int64_t *ints_of(struct sl_expansion *x, const char *name, size_t n, bool optional)
{
        size_t there;
        const int64_t *ints = sl_ml_ints(x, name, &there);

        if (there != n && !(optional && !there))
                wrong(x, name);
        return there == n ? ints : NULL;
}

static void read_nodes(struct sl_expansion *x, struct lists *lists)
{
        size_t n;

        lists->trees = sl_ml_ints(x, "nodes_treeids", &lists->n);
        if (!lists->n || lists->n > ITEMS_MAX)
                wrong(x, "nodes_treeids");
        lists->numbers = ints_of(x, "nodes_nodeids", lists->n, false);
        lists->features = ints_of(x, "nodes_featureids", lists->n, false);
        lists->yes = ints_of(x, "nodes_truenodeids", lists->n, false);
        lists->no = ints_of(x, "nodes_falsenodeids", lists->n, false);
        lists->missing = ints_of(x, "nodes_missing_value_tracks_true", lists->n, true);
        lists->modes = sl_onnx_attr(x->node, "nodes_modes");
        if (!lists->modes || lists->modes->n_strings != lists->n)
                wrong(x, "nodes_modes");
        lists->splits = sl_ml_doubles(x, "nodes_values", "nodes_values_as_tensor", &n, &lists->is_double);
        if (n != lists->n)
                wrong(x, "nodes_values");
}

static void read_leaves(struct sl_expansion *x, const char *kind, struct lists *lists)
{
        char names[4][32], tensor[32];
        static const char *const ends[] = {"treeids", "nodeids", "ids", "weights"};

        for (int i = 0; i < 4; i++)
                snprintf(names[i], sizeof(names[i]), "%s_%s", kind, ends[i]);
        snprintf(tensor, sizeof(tensor), "%s_weights_as_tensor", kind);
        lists->weights = sl_ml_doubles(x, names[3], tensor, &lists->n_leaf, &lists->is_double);
        if (!lists->n_leaf || lists->n_leaf > ITEMS_MAX)
                wrong(x, names[3]);
        lists->leaf_trees = ints_of(x, names[0], lists->n_leaf, false);
        lists->leaf_numbers = ints_of(x, names[1], lists->n_leaf, false);
        lists->leaf_targets = ints_of(x, names[2], lists->n_leaf, false);
        lists->base = sl_ml_doubles(x, "base_values", "base_values_as_tensor", &lists->n_base, &lists->is_double);
}

static int compare_places(const void *a, const void *b)
{
        const struct place *x = a, *y = b;

        if (x->tree != y->tree)
                return x->tree < y->tree ? -1 : 1;
        return (x->number > y->number) - (x->number < y->number);
}

static int refuse_node(struct sl_expansion *x, int64_t tree, int64_t number, const char *what)
{
        return sl_error_set(x->im->error, EBADMSG, "node \"%s\" (%s): node %" PRId64 " of tree %" PRId64 " %s", x->node->name,
                x->node->proto->op_type, number, tree, what);
}

static int sort_places(struct sl_expansion *x, const struct lists *lists, struct places *places)
{
        bool sorted = true;

        *places = (struct places){.sorted = malloc(lists->n * sizeof(*places->sorted)), .n = lists->n};
        if (!places->sorted)
                return -ENOMEM;
        for (size_t i = 0; i < lists->n; i++) {
                places->sorted[i] = (struct place){lists->trees[i], lists->numbers[i], (uint32_t)i};
                sorted = sorted && (!i || compare_places(&places->sorted[i - 1], &places->sorted[i]) < 0);
        }
        if (!sorted)
                qsort(places->sorted, lists->n, sizeof(*places->sorted), compare_places);
        for (size_t i = 1; i < lists->n; i++)
                if (!compare_places(&places->sorted[i - 1], &places->sorted[i]))
                        return refuse_node(x, places->sorted[i].tree, places->sorted[i].number, "is there twice");
        return 0;
}

/* UINT32_MAX: there is none. */
static uint32_t find_place(const struct places *places, int64_t tree, int64_t number)
{
        const struct place key = {.tree = tree, .number = number};
        const struct place *found = bsearch(&key, places->sorted, places->n, sizeof(key), compare_places);

        return found ? found->at : UINT32_MAX;
}

static int mode_of(const ProtobufCBinaryData *word)
{
        static const char *const words[] = {
                "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};

        for (int i = 0; i <= SL_BRANCH_LEAF; i++)
                if (word->len == strlen(words[i]) && !memcmp(word->data, words[i], word->len) && i != SL_BRANCH_MEMBER)
                        return i;
        return -EINVAL;
}

static int read_item(
        struct sl_expansion *x, const struct lists *lists, const struct places *places, size_t i, struct sl_forest_item *item)
{
        int mode = mode_of(&lists->modes->strings[i]);

        if (mode < 0)
                return refuse_node(x, lists->trees[i], lists->numbers[i], "has a mode that is unknown");
        *item = (struct sl_forest_item){.mode = (uint8_t)mode};
        if (mode == SL_BRANCH_LEAF)
                return 0;
        item->missing_true = lists->missing && lists->missing[i];
        item->split = lists->splits[i];
        item->yes = find_place(places, lists->trees[i], lists->yes[i]);
        item->no = find_place(places, lists->trees[i], lists->no[i]);
        if (item->yes == UINT32_MAX || item->no == UINT32_MAX)
                return refuse_node(x, lists->trees[i], lists->numbers[i], "has a child that is not there");
        if (lists->features[i] < 0 || lists->features[i] > INT32_MAX / 2)
                return refuse_node(x, lists->trees[i], lists->numbers[i], "looks at a feature out of range");
        item->feature = (uint32_t)lists->features[i];
        return 0;
}

/* The first node of each tree that no other leads to. Trees come in the order of the file. */
static int find_roots(struct sl_expansion *x, const struct lists *lists, const struct places *places, struct sl_forest *forest)
{
        SL_CLEANUP(sl_cleanup_free) uint8_t *led_to = calloc(lists->n, 1);
        SL_CLEANUP(sl_cleanup_free) uint8_t *is_rooted = calloc(lists->n, 1); /* by the place of a tree's first name */
        SL_CLEANUP(sl_cleanup_free) uint32_t *first = malloc(lists->n * sizeof(*first));

        if (!led_to || !is_rooted || !first)
                return -ENOMEM;
        for (size_t i = 0; i < lists->n; i++) {
                const struct place *place = &places->sorted[i];
                bool same = i && places->sorted[i - 1].tree == place->tree;

                first[place->at] = same ? first[places->sorted[i - 1].at] : place->at;
                if (forest->items[i].mode != SL_BRANCH_LEAF)
                        led_to[forest->items[i].yes] = led_to[forest->items[i].no] = 1;
        }
        for (size_t i = 0; i < lists->n; i++)
                if (!led_to[i] && !is_rooted[first[i]]) {
                        is_rooted[first[i]] = 1;
                        forest->roots[forest->n_roots++] = (uint32_t)i;
                }
        for (size_t i = 0; i < lists->n; i++)
                if (!is_rooted[first[i]])
                        return sl_error_set(x->im->error, EBADMSG, "node \"%s\" (%s): tree %" PRId64 " has no root", x->node->name,
                                x->node->proto->op_type, lists->trees[i]);
        return 0;
}

static int compare_entries(const void *a, const void *b)
{
        const struct sl_forest_entry *x = a, *y = b;

        return (x->target > y->target) - (x->target < y->target);
}

static double join_weights(int sum, double a, double b)
{
        if (sum == SL_TREE_MIN)
                return b < a ? b : a;
        if (sum == SL_TREE_MAX)
                return b > a ? b : a;
        return a + b;
}

/* By target, each once. */
static void order_entries(struct sl_forest *forest, struct sl_forest_item *leaf)
{
        struct sl_forest_entry *entries = forest->entries + leaf->first;
        uint32_t kept = 0;
        bool ascend = true;

        for (uint32_t i = 1; i < leaf->count; i++)
                ascend = ascend && entries[i - 1].target < entries[i].target;
        if (ascend)
                return;
        qsort(entries, leaf->count, sizeof(*entries), compare_entries);
        for (uint32_t i = 0; i < leaf->count; i++) {
                if (kept && entries[kept - 1].target == entries[i].target)
                        entries[kept - 1].weight = join_weights(forest->sum, entries[kept - 1].weight, entries[i].weight);
                else
                        entries[kept++] = entries[i];
        }
        leaf->count = kept;
}

/* What a branch weighs is nothing. */
static int read_entries(struct sl_expansion *x, const struct lists *lists, const struct places *places, struct sl_forest *forest)
{
        SL_CLEANUP(sl_cleanup_free) uint32_t *leaf_of = malloc(lists->n_leaf * sizeof(*leaf_of));
        uint32_t first = 0;

        if (!leaf_of)
                return -ENOMEM;
        for (size_t i = 0; i < lists->n_leaf; i++) {
                leaf_of[i] = find_place(places, lists->leaf_trees[i], lists->leaf_numbers[i]);
                if (leaf_of[i] == UINT32_MAX)
                        return refuse_node(x, lists->leaf_trees[i], lists->leaf_numbers[i], "has a weight and is not there");
                if (lists->leaf_targets[i] < 0 || lists->leaf_targets[i] >= forest->n_targets)
                        return refuse_node(x, lists->leaf_trees[i], lists->leaf_numbers[i], "has a target out of range");
                forest->items[leaf_of[i]].count += forest->items[leaf_of[i]].mode == SL_BRANCH_LEAF;
        }
        for (uint32_t i = 0; i < forest->n_items; i++) {
                forest->items[i].first = first;
                first += forest->items[i].count;
                forest->items[i].count = 0;
        }
        for (size_t i = 0; i < lists->n_leaf; i++) {
                struct sl_forest_item *leaf = &forest->items[leaf_of[i]];

                if (leaf->mode == SL_BRANCH_LEAF)
                        forest->entries[leaf->first + leaf->count++] =
                                (struct sl_forest_entry){(uint32_t)lists->leaf_targets[i], lists->weights[i]};
        }
        for (uint32_t i = 0; i < forest->n_items; i++)
                order_entries(forest, &forest->items[i]);
        return 0;
}

static int fill_forest(struct sl_expansion *x, const struct lists *lists, const struct places *places, struct sl_forest *forest)
{
        int result = 0;

        forest->n_roots = 0;
        for (size_t i = 0; i < lists->n && result == 0; i++)
                result = read_item(x, lists, places, i, &forest->items[i]);
        if (result == 0)
                result = find_roots(x, lists, places, forest);
        return result < 0 ? result : read_entries(x, lists, places, forest);
}

/* The base values of all targets: as many as there are, or one for each. */
static int take_base(struct sl_expansion *x, struct lists *lists, struct sl_forest *forest)
{
        if (!lists->n_base)
                return 0;
        if (lists->n_base != 1 && lists->n_base != forest->n_targets)
                return sl_import_wrong(x->im, x->node, "it wants one base value, or one for each target");
        forest->base = malloc(forest->n_targets * sizeof(*forest->base));
        for (uint32_t i = 0; forest->base && i < forest->n_targets; i++)
                forest->base[i] = lists->base[lists->n_base == 1 ? 0 : i];
        return forest->base ? 0 : -ENOMEM;
}

static void read_lists(struct sl_expansion *x, const char *kind, struct lists *lists)
{
        *lists = (struct lists){.n = 0};
        read_nodes(x, lists);
        if (x->result == 0)
                read_leaves(x, kind, lists);
}

/* The scores of all targets, as a step. @forest has the targets and how they are summed up. */
static uint32_t emit_lists(struct sl_expansion *x, struct lists *lists, const struct sl_forest *like)
{
        struct sl_forest forest = {0};
        struct places places = {0};
        uint32_t rows, scores = SL_VALUE_NONE;

        rows = sl_ml_rows(x, true);
        if (x->result == 0)
                x->result = sl_forest_init(&forest, (uint32_t)lists->n, (uint32_t)lists->n, (uint32_t)lists->n_leaf, 0);
        forest.n_targets = like->n_targets;
        forest.sum = like->sum;
        forest.is_double = lists->is_double;
        if (x->result == 0)
                x->result = sort_places(x, lists, &places);
        if (x->result == 0)
                x->result = fill_forest(x, lists, &places, &forest);
        if (x->result == 0)
                x->result = take_base(x, lists, &forest);
        if (x->result == 0)
                x->result = sl_forest_emit(x->im, x->node, &forest, rows, SL_DTYPE_F32, &scores);
        free(places.sorted);
        sl_forest_deinit(&forest);
        return scores;
}

static int64_t targets_of(struct sl_expansion *x, const char *name)
{
        int64_t targets = sl_expand_int(x, name, 1);

        if (targets < 1 || targets > SL_TREE_TARGETS_MAX)
                sl_expand_wrong(x, "%s is %" PRId64 ", outside [1,%d]", name, targets, SL_TREE_TARGETS_MAX);
        return targets;
}

/* A single target is transformed by PROBIT alone, as ONNX Runtime does it. */
static enum sl_post_transform post_of_targets(enum sl_post_transform post, int64_t targets)
{
        return targets == 1 && post != SL_POST_PROBIT ? SL_POST_NONE : post;
}

SL_ML(tree_regressor)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_forest like = {0};
        struct sl_attrs attrs = {0};
        struct lists lists;
        uint32_t scores;
        int64_t targets;

        (void)draft;
        targets = targets_of(&x, "n_targets");
        like.n_targets = (uint32_t)targets;
        if (x.result == 0)
                x.result = sl_onnx_word(im, node, "aggregate_function", "SUM AVERAGE MIN MAX", SL_ATTR_MODE, &attrs);
        like.sum = (int)sl_attrs_int(&attrs, SL_ATTR_MODE, SL_TREE_SUM);
        read_lists(&x, "target", &lists);
        scores = emit_lists(&x, &lists, &like);
        sl_expand_output(&x, 0, sl_ml_transform(&x, scores, post_of_targets(sl_ml_post(&x), targets)));
        lists_deinit(&lists);
        return sl_expansion_end(&x);
}

/* All weights are for class 0: one score stands for two classes. */
static bool is_binary(const struct lists *lists, size_t n_labels)
{
        for (size_t i = 0; i < lists->n_leaf; i++)
                if (lists->leaf_targets[i])
                        return false;
        return n_labels <= 2;
}

static bool all_positive(const struct lists *lists)
{
        for (size_t i = 0; i < lists->n_leaf; i++)
                if (!(lists->weights[i] >= 0))
                        return false;
        return true;
}

/*
 * Weights that are all positive sum up to a share; others to a number whose sign decides, and so do those that become a share by
 * LOGISTIC. A classifier with one label says 1 or 0.
 */
static void read_binary(const struct lists *lists, struct sl_ml_classes *classes)
{
        static const int64_t truth[] = {0, 1};
        bool share = all_positive(lists);

        if (classes->n_labels == 1) {
                classes->labels = truth;
                classes->n_labels = 2;
                classes->post = classes->post == SL_POST_PROBIT ? SL_POST_PROBIT : SL_POST_NONE;
                return;
        }
        classes->form = share ? SL_SCORES_SHARE : SL_SCORES_SIGNED;
        classes->threshold = share && classes->post != SL_POST_LOGISTIC ? 0.5 : 0;
}

SL_ML(tree_classifier)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_ml_classes classes = {.post = sl_ml_post(&x)};
        struct sl_forest like = {.sum = SL_TREE_SUM};
        struct lists lists = {0};
        uint32_t scores;

        (void)draft;
        sl_ml_labels(&x, "classlabels_int64s", "classlabels_strings", &classes);
        if (x.result == 0 && classes.n_labels > SL_TREE_TARGETS_MAX)
                sl_expand_wrong(&x, "it has %zu labels, at most %d", classes.n_labels, SL_TREE_TARGETS_MAX);
        if (classes.vocabulary && classes.n_labels == 1)
                sl_expand_refuse(&x, "a classifier with one label, a string: it says true or false");
        like.n_targets = (uint32_t)classes.n_labels;
        if (x.result == 0)
                read_lists(&x, "class", &lists);
        if (x.result == 0 && is_binary(&lists, classes.n_labels)) {
                like.n_targets = 1;
                lists.n_base = lists.n_base ? 1 : 0;
                read_binary(&lists, &classes);
        }
        scores = emit_lists(&x, &lists, &like);
        sl_ml_classify(&x, scores, &classes);
        lists_deinit(&lists);
        return sl_expansion_end(&x);
}
