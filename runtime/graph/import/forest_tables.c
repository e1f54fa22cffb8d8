/* SPDX-License-Identifier: Apache-2.0 */
#include "import/forest_layout.h"

#include "base/cleanup.h"
#include "shape/trees.h"

/* The draft gets a constant of these dimensions, whose data the caller fills. */
static void *add_table(
        struct sl_forest_layout *l, struct sl_draft *draft, uint32_t input, uint32_t dtype, int64_t rows, int64_t columns)
{
        struct sl_tensor tensor = {.dtype = dtype, .shape = {.rank = columns ? 2 : 1, .dims = {rows, columns}}};
        void *data;

        if (sl_tensor_bytes(&tensor) > l->im->limits->tensor_bytes ||
                (l->im->constant_bytes += sl_tensor_bytes(&tensor)) > l->im->limits->constant_bytes) {
                l->refused = true;
                return NULL;
        }
        data = sl_graph_alloc(l->im->graph, sl_tensor_bytes(&tensor) + 1);
        if (data && sl_graph_add_constant(l->im->graph, l->node->name, &tensor, data, &draft->inputs[input]) < 0)
                return NULL;
        return data;
}

static uint32_t bits_of(uint32_t n)
{
        return n ? 32 - (uint32_t)__builtin_clz(n) : 0;
}

static bool is_narrow(const struct sl_forest_layout *l)
{
        uint32_t most = 0;

        for (uint32_t i = 0; i < l->n_slots; i++)
                most = l->slots[i].offset > most ? l->slots[i].offset : most;
        return !l->wide && bits_of(l->n_columns - 1) < 32 && bits_of(most) + bits_of(l->n_columns - 1) <= 32;
}

static int write_columns(struct sl_forest_layout *l, struct sl_draft *draft)
{
        int32_t *columns;

        if (!l->n_columns)
                sl_forest_column(l, 0, false);
        columns = add_table(l, draft, 1, SL_DTYPE_I32, l->n_columns, 0);
        for (uint32_t i = 0; columns && i < l->n_sides; i++)
                if (l->numbers[i])
                        columns[l->numbers[i] - 1] = (int32_t)l->sides[i];
        return columns ? 0 : -ENOMEM;
}

static int write_nodes(struct sl_forest_layout *l, struct sl_draft *draft)
{
        bool narrow = is_narrow(l);
        uint32_t bits = narrow ? bits_of(l->n_columns - 1) : 32;
        void *nodes = add_table(l, draft, 2, narrow ? SL_DTYPE_I32 : SL_DTYPE_I64, l->n_slots, 2);

        for (uint32_t i = 0; nodes && i < l->n_slots; i++) {
                const struct sl_forest_slot *slot = &l->slots[i];
                uint64_t word = slot->column | (uint64_t)slot->offset << bits;
                bool never = slot->key == SL_TREE_NEVER_64;

                if (narrow) {
                        ((int32_t *)nodes)[2 * i] = never ? SL_TREE_NEVER_32 : (int32_t)slot->key;
                        ((uint32_t *)nodes)[2 * i + 1] = (uint32_t)word;
                } else {
                        ((int64_t *)nodes)[2 * i] = slot->key;
                        ((uint64_t *)nodes)[2 * i + 1] = word;
                }
        }
        return nodes ? sl_attrs_set_int(&draft->attrs, SL_ATTR_COLUMN_BITS, bits) : -ENOMEM;
}

static void put_weight(void *weights, uint32_t to, uint32_t i, double weight)
{
        if (to == SL_DTYPE_F64)
                ((double *)weights)[i] = weight;
        else
                ((float *)weights)[i] = (float)weight;
}

/* The one target of the tree whose slots are [first, end), if no leaf has more than one entry; -1. */
static int64_t only_target(const struct sl_forest_layout *l, uint32_t first, uint32_t end)
{
        int64_t target = -2;

        for (uint32_t i = first; i < end; i++) {
                const struct sl_forest_item *leaf =
                        l->slots[i].item < l->forest->n_items ? &l->forest->items[l->slots[i].item] : NULL;

                if (!leaf || !leaf->count)
                        continue;
                if (leaf->count > 1 || (target >= 0 && l->forest->entries[leaf->first].target != target))
                        return -1;
                target = l->forest->entries[leaf->first].target;
        }
        return target == -2 ? 0 : target;
}

static uint32_t end_of_tree(const struct sl_forest_layout *l, const int32_t *roots, uint32_t tree)
{
        return tree + 1 < l->forest->n_roots ? (uint32_t)roots[tree + 1] : l->n_slots;
}

static bool have_one_target_each(const struct sl_forest_layout *l, const int32_t *roots)
{
        for (uint32_t t = 0; t < l->forest->n_roots; t++)
                if (only_target(l, (uint32_t)roots[t], end_of_tree(l, roots, t)) < 0)
                        return false;
        return true;
}

/* The least and the most of nothing is nothing. */
static double weight_of_nothing(const struct sl_forest *forest)
{
        return forest->sum >= SL_TREE_MIN ? (double)NAN : 0;
}

static int write_weights(struct sl_forest_layout *l, struct sl_draft *draft, const int32_t *roots, uint32_t to)
{
        int32_t *targets = add_table(l, draft, 4, SL_DTYPE_I32, l->forest->n_roots, 0);
        void *weights = targets ? add_table(l, draft, 5, to, l->n_slots, 0) : NULL;

        if (!weights)
                return -ENOMEM;
        for (uint32_t t = 0; t < l->forest->n_roots; t++)
                targets[t] = (int32_t)only_target(l, (uint32_t)roots[t], end_of_tree(l, roots, t));
        for (uint32_t i = 0; i < l->n_slots; i++) {
                const struct sl_forest_item *leaf =
                        l->slots[i].item < l->forest->n_items ? &l->forest->items[l->slots[i].item] : NULL;

                put_weight(weights, to, i,
                        leaf && leaf->count ? l->forest->entries[leaf->first].weight : weight_of_nothing(l->forest));
        }
        return 0;
}

/* Each leaf has a list of its own; list 0, which is empty, is that of what is no leaf. */
static int write_lists(struct sl_forest_layout *l, struct sl_draft *draft, uint32_t to)
{
        uint32_t n_entries = 0, n_lists = 1;
        int32_t *targets, *lists, *starts;
        void *weights;

        for (uint32_t i = 0; i < l->n_slots; i++)
                if (l->slots[i].item < l->forest->n_items) {
                        n_entries += l->forest->items[l->slots[i].item].count;
                        n_lists++;
                }
        targets = add_table(l, draft, 4, SL_DTYPE_I32, n_entries, 0);
        weights = targets ? add_table(l, draft, 5, to, n_entries, 0) : NULL;
        lists = weights ? add_table(l, draft, 7, SL_DTYPE_I32, l->n_slots, 0) : NULL;
        starts = lists ? add_table(l, draft, 8, SL_DTYPE_I32, (int64_t)n_lists + 1, 0) : NULL;
        if (!starts)
                return -ENOMEM;
        n_entries = n_lists = 0;
        starts[++n_lists] = 0;
        for (uint32_t i = 0; i < l->n_slots; i++) {
                const struct sl_forest_item *leaf =
                        l->slots[i].item < l->forest->n_items ? &l->forest->items[l->slots[i].item] : NULL;

                if (!leaf)
                        continue;
                for (uint32_t k = 0; k < leaf->count; k++, n_entries++) {
                        targets[n_entries] = (int32_t)l->forest->entries[leaf->first + k].target;
                        put_weight(weights, to, n_entries, l->forest->entries[leaf->first + k].weight);
                }
                lists[i] = (int32_t)n_lists;
                starts[++n_lists] = (int32_t)n_entries;
        }
        return 0;
}

static int write_base(struct sl_forest_layout *l, struct sl_draft *draft, uint32_t to)
{
        void *base = l->forest->base ? add_table(l, draft, 6, to, l->forest->n_targets, 0) : NULL;

        for (uint32_t i = 0; base && i < l->forest->n_targets; i++)
                put_weight(base, to, i, l->forest->base[i]);
        return base || !l->forest->base ? 0 : -ENOMEM;
}

static int write_visits(struct sl_forest_layout *l, struct sl_draft *draft)
{
        const struct sl_value *values = l->im->graph->values;
        const void *inputs[9] = {NULL};
        SL_CLEANUP(sl_cleanup_free) uint32_t *depths = calloc(l->n_slots, sizeof(*depths));
        struct sl_tree_form form = {.nodes = l->n_slots, .trees = l->forest->n_roots};
        struct sl_tree_data data;

        if (!depths)
                return -ENOMEM;
        for (uint32_t i = 1; i < 4; i++)
                inputs[i] = values[draft->inputs[i]].data;
        form.wide = values[draft->inputs[2]].tensor.dtype == SL_DTYPE_I64;
        form.column_bits = (uint32_t)sl_attrs_int(&draft->attrs, SL_ATTR_COLUMN_BITS, 0);
        data = sl_tree_data_of(inputs, 4);
        return sl_attrs_set_int(&draft->attrs, SL_ATTR_VISITS, (int64_t)sl_trees_visits(&form, &data, depths));
}

int32_t *sl_forest_add_roots(struct sl_forest_layout *l, struct sl_draft *draft)
{
        return add_table(l, draft, 3, SL_DTYPE_I32, l->forest->n_roots, 0);
}

int sl_forest_write_tables(struct sl_forest_layout *l, struct sl_draft *draft, const int32_t *roots)
{
        uint32_t dtype = l->forest->is_double ? SL_DTYPE_F64 : SL_DTYPE_F32;
        int result = write_columns(l, draft);

        if (result == 0)
                result = write_nodes(l, draft);
        if (result == 0)
                result = write_visits(l, draft);
        if (result == 0)
                result = have_one_target_each(l, roots) ? write_weights(l, draft, roots, dtype) : write_lists(l, draft, dtype);
        return result < 0 ? result : write_base(l, draft, dtype);
}
