/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by decision trees. Whatever the tables say is checked at use: they come from the model. */
#include "shape/trees.h"
#include "element.h"
#include "kernels.h"
#include "pace.h"

#include <errno.h>

struct votes {
        const struct sl_node_desc *node;
        struct sl_tree_form form;
        struct sl_tree_data data;
        struct sl_pace *pace;
        const void *rows;
        double *sums; /* of the least and the most: NaN until there is one */
};

static int64_t key_of(const struct votes *v, int64_t element, bool low)
{
        double x = sl_ref_load(v->rows, element, v->node->inputs[0].dtype);

        return v->node->inputs[0].dtype == SL_DTYPE_F64 ? sl_tree_key_64(x, low) : sl_tree_key_32((float)x, low);
}

/* The leaf that a row comes to. */
static int find_leaf(const struct votes *v, int64_t row, int64_t at, uint64_t *steps, int64_t *ret_leaf)
{
        while (sl_pace_on(v->pace, 1)) {
                struct sl_tree_node node;
                int32_t column;

                if (at >= v->form.nodes || (*steps)++ >= v->form.visits)
                        return -ERANGE;
                node = sl_tree_node_at(&v->form, v->data.nodes, at);
                if (!node.offset)
                        break;
                column = node.column < v->form.columns ? v->data.columns[node.column] : -1;
                if (column < 0 || column / 2 >= v->form.features)
                        return -ERANGE;
                at += node.offset + (key_of(v, row * v->form.features + column / 2, column & 1) <= node.key);
        }
        *ret_leaf = at;
        return 0;
}

static int add_vote(const struct votes *v, int64_t target, double weight)
{
        double *sum;

        if (target < 0 || target >= v->form.targets)
                return -ERANGE;
        sum = &v->sums[target];
        if (v->form.sum == SL_TREE_MIN)
                *sum = fmin(*sum, weight);
        else if (v->form.sum == SL_TREE_MAX)
                *sum = fmax(*sum, weight);
        else
                *sum += weight;
        return 0;
}

static int add_list(const struct votes *v, int64_t list)
{
        uint32_t dtype = v->node->inputs[5].dtype;
        int64_t start, end;
        int r = 0;

        if (list < 0 || list >= v->form.lists)
                return -ERANGE;
        start = v->data.list_starts[list];
        end = v->data.list_starts[list + 1];
        if (start < 0 || end < start || end > v->form.entries || end - start > v->form.targets)
                return -ERANGE;
        for (int64_t i = start; i < end && !r && sl_pace_on(v->pace, 1); i++)
                r = add_vote(v, v->data.targets[i], sl_ref_load(v->data.weights, i, dtype));
        return r;
}

static int vote_of_tree(const struct votes *v, int64_t row, int64_t tree, uint64_t *steps)
{
        int64_t leaf;
        int r;

        if (v->data.roots[tree] < 0)
                return -ERANGE;
        r = find_leaf(v, row, v->data.roots[tree], steps, &leaf);
        if (r || sl_pace_status(v->pace))
                return r;
        if (v->form.has_lists)
                return add_list(v, v->data.leaf_lists[leaf]);
        return add_vote(v, v->data.targets[tree], sl_ref_load(v->data.weights, leaf, v->node->inputs[5].dtype));
}

static void store_row(const struct votes *v, int64_t row, void *out)
{
        for (int64_t i = 0; i < v->form.targets && sl_pace_on(v->pace, 1); i++) {
                bool none = v->form.sum >= SL_TREE_MIN && isnan(v->sums[i]);
                double sum = none ? 0 : v->sums[i];

                if (v->form.sum == SL_TREE_AVERAGE)
                        sum /= (double)v->form.trees;
                if (v->form.has_base)
                        sum += sl_ref_load(v->data.base, i, v->node->inputs[6].dtype);
                sl_ref_store(out, row * v->form.targets + i, v->node->outputs[0].dtype, sum);
        }
}

int sl_ref_trees(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct votes v = {.node = node, .pace = binding->pace, .rows = binding->inputs[0], .sums = binding->scratch};
        int r = sl_tree_form_read(node, &v.form, NULL);

        v.data = sl_tree_data_of(binding->inputs, node->n_inputs);
        for (int64_t row = 0; row < v.form.rows && !r; row++) {
                uint64_t steps = 0;

                for (int64_t i = 0; i < v.form.targets && sl_pace_on(v.pace, 1); i++)
                        v.sums[i] = v.form.sum >= SL_TREE_MIN ? NAN : 0;
                for (int64_t tree = 0; tree < v.form.trees && !r && sl_pace_on(v.pace, 1); tree++)
                        r = vote_of_tree(&v, row, tree, &steps);
                store_row(&v, row, binding->outputs[0]);
                if (!sl_pace_on(v.pace, 1))
                        break;
        }
        return r;
}

size_t sl_ref_scratch_trees(const struct sl_node_desc *node)
{
        return (size_t)sl_attrs_int(&node->attrs, SL_ATTR_LENGTH, 0) * sizeof(double);
}
