/* SPDX-License-Identifier: Apache-2.0 */
#include "trees.h"

#include "rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define COLUMN_BITS_NARROW 31
#define COLUMN_BITS_WIDE   32

/* But for how many rows there are. */
static int want_sizes(const struct sl_node_desc *node, struct sl_error *error)
{
        int r = sl_size_wanted(node, 0, 1, error);

        for (uint32_t i = 1; i < node->n_inputs && !r; i++)
                for (uint32_t d = 0; d < node->inputs[i].shape.rank && !r; d++)
                        r = sl_size_wanted(node, i, d, error);
        return r;
}

static int wants(uint32_t index, const struct sl_tensor *tensor, const char *what, struct sl_error *error)
{
        char text[SL_SHAPE_TEXT_BYTES];

        return sl_error_set(error, EINVAL, "input %u is %s %s, wants %s", index, sl_dtype_name(tensor->dtype),
                sl_shape_print(&tensor->shape, text), what);
}

static bool is_vector(const struct sl_tensor *tensor, uint32_t dtype)
{
        return tensor->dtype == dtype && tensor->shape.rank == 1;
}

static int check_vector(const struct sl_node_desc *node, uint32_t index, int64_t least, int64_t most, struct sl_error *error)
{
        const struct sl_tensor *tensor = &node->inputs[index];

        if (!is_vector(tensor, SL_DTYPE_I32))
                return wants(index, tensor, "a vector of int32", error);
        if (tensor->shape.dims[0] < least || tensor->shape.dims[0] > most)
                return sl_error_set(error, EINVAL, "input %u has %" PRId64 " elements, wants %" PRId64 " to %" PRId64, index,
                        tensor->shape.dims[0], least, most);
        return 0;
}

static int check_nodes(const struct sl_node_desc *node, struct sl_tree_form *form, struct sl_error *error)
{
        const struct sl_tensor *nodes = &node->inputs[2];

        form->wide = nodes->dtype == SL_DTYPE_I64;
        if ((nodes->dtype != SL_DTYPE_I32 && !form->wide) || nodes->shape.rank != 2 || nodes->shape.dims[1] != 2 ||
                nodes->shape.dims[0] < 1 || nodes->shape.dims[0] > INT32_MAX)
                return wants(2, nodes, "pairs of int32 or int64", error);
        if (node->inputs[0].dtype == SL_DTYPE_F64 && !form->wide)
                return wants(2, nodes, "pairs of int64 for rows of float64", error);
        form->nodes = nodes->shape.dims[0];
        return 0;
}

/* Targets and weights, of trees and nodes or of lists. */
static int check_leaves(const struct sl_node_desc *node, struct sl_tree_form *form, struct sl_error *error)
{
        const struct sl_tensor *weights = &node->inputs[5];
        int r = 0;

        form->has_lists = sl_input_present(node, 7);
        if (form->has_lists != sl_input_present(node, 8))
                return sl_error_set(error, EINVAL, "inputs 7 and 8 come together");
        if (!is_vector(weights, SL_DTYPE_F32) && !is_vector(weights, SL_DTYPE_F64))
                return wants(5, weights, "a vector of float32 or float64", error);
        form->entries = weights->shape.dims[0];
        r = form->has_lists ? check_vector(node, 4, form->entries, form->entries, error)
                            : check_vector(node, 4, form->trees, form->trees, error);
        if (!r && !form->has_lists && form->entries != form->nodes)
                r = wants(5, weights, "a weight for each node", error);
        if (r || !form->has_lists)
                return r;
        r = check_vector(node, 7, form->nodes, form->nodes, error);
        r = r ? r : check_vector(node, 8, 2, INT32_MAX, error);
        form->lists = r ? 0 : node->inputs[8].shape.dims[0] - 1;
        return r;
}

static int check_attrs(const struct sl_node_desc *node, struct sl_tree_form *form, struct sl_error *error)
{
        int64_t bits = sl_attrs_int(&node->attrs, SL_ATTR_COLUMN_BITS, 0), sum = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0);
        int64_t visits = sl_attrs_int(&node->attrs, SL_ATTR_VISITS, 0);

        form->targets = sl_attrs_int(&node->attrs, SL_ATTR_LENGTH, 0);
        if (form->targets < 1 || form->targets > SL_TREE_TARGETS_MAX)
                return sl_error_set(
                        error, EINVAL, "%" PRId64 " targets, at least 1 and at most %d", form->targets, SL_TREE_TARGETS_MAX);
        if (bits < 0 || bits > (form->wide ? COLUMN_BITS_WIDE : COLUMN_BITS_NARROW) || visits < 0)
                return sl_error_set(error, EINVAL, "attributes column_bits and visits are %" PRId64 " and %" PRId64, bits, visits);
        if (sum < SL_TREE_SUM || sum > SL_TREE_MAX)
                return sl_error_set(error, EINVAL, "attribute mode is %" PRId64 ", outside [%d,%d]", sum, SL_TREE_SUM, SL_TREE_MAX);
        form->column_bits = (uint32_t)bits;
        form->visits = (uint64_t)visits;
        form->sum = (enum sl_tree_sum)sum;
        return 0;
}

static int check_base(const struct sl_node_desc *node, struct sl_tree_form *form, struct sl_error *error)
{
        form->has_base = sl_input_present(node, 6);
        if (form->has_base &&
                (!is_vector(&node->inputs[6], node->inputs[5].dtype) || node->inputs[6].shape.dims[0] != form->targets))
                return wants(6, &node->inputs[6], "a number for each target, of the type of the weights", error);
        return 0;
}

int sl_tree_form_read(const struct sl_node_desc *node, struct sl_tree_form *ret_form, struct sl_error *error)
{
        const struct sl_tensor *x = &node->inputs[0];
        struct sl_tree_form form = {.rows = x->shape.dims[0], .features = x->shape.dims[1]};
        int r = want_sizes(node, error);

        if (r)
                return r;
        if ((x->dtype != SL_DTYPE_F32 && x->dtype != SL_DTYPE_F64) || x->shape.rank != 2)
                return wants(0, x, "rows of float32 or float64", error);
        r = check_vector(node, 1, 1, INT32_MAX, error);
        form.columns = r ? 0 : node->inputs[1].shape.dims[0];
        r = r ? r : check_nodes(node, &form, error);
        r = r ? r : check_vector(node, 3, 1, form.nodes, error);
        form.trees = r ? 0 : node->inputs[3].shape.dims[0];
        r = r ? r : check_leaves(node, &form, error);
        r = r ? r : check_attrs(node, &form, error);
        r = r ? r : check_base(node, &form, error);
        if (!r)
                *ret_form = form;
        return r;
}

int sl_shape_trees(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t to = sl_attrs_int(&node->attrs, SL_ATTR_TO, SL_DTYPE_F32);
        struct sl_tree_form form;
        int r = sl_tree_form_read(node, &form, error);

        if (r)
                return r;
        if (to != SL_DTYPE_F32 && to != SL_DTYPE_F64)
                return sl_error_set(error, EINVAL, "attribute to is %" PRId64 ", wants float32 or float64", to);
        node->outputs[0].dtype = (uint32_t)to;
        node->outputs[0].shape = (struct sl_shape){.rank = 2, .dims = {node->inputs[0].shape.dims[0], form.targets}};
        return 0;
}

struct sl_tree_data sl_tree_data_of(const void *const *inputs, uint32_t n_inputs)
{
        return (struct sl_tree_data){
                .columns = inputs[1],
                .nodes = inputs[2],
                .roots = inputs[3],
                .targets = inputs[4],
                .weights = inputs[5],
                .base = n_inputs > 6 ? inputs[6] : NULL,
                .leaf_lists = n_inputs > 8 ? inputs[7] : NULL,
                .list_starts = n_inputs > 8 ? inputs[8] : NULL,
        };
}

static bool columns_fit(const struct sl_tree_form *form, const struct sl_tree_data *data)
{
        for (int64_t i = 0; i < form->columns; i++)
                if (data->columns[i] < 0 || data->columns[i] / 2 >= form->features)
                        return false;
        return true;
}

/* The key of a leaf keeps a walk where it is. */
static bool nodes_fit(const struct sl_tree_form *form, const struct sl_tree_data *data)
{
        int64_t never = form->wide ? SL_TREE_NEVER_64 : SL_TREE_NEVER_32;

        for (int64_t i = 0; i < form->nodes; i++) {
                struct sl_tree_node node = sl_tree_node_at(form, data->nodes, i);
                bool fits = node.offset ? node.offset < form->nodes - 1 - i : node.key == never;

                if (!fits || node.column >= form->columns)
                        return false;
        }
        return true;
}

static bool list_fits(const struct sl_tree_form *form, const struct sl_tree_data *data, int64_t list)
{
        int64_t start = data->list_starts[list], end = data->list_starts[list + 1], before = -1;

        if (start < 0 || end < start || end > form->entries)
                return false;
        for (int64_t i = start; i < end; before = data->targets[i++])
                if (data->targets[i] <= before || data->targets[i] >= form->targets)
                        return false;
        return true;
}

static bool leaves_fit(const struct sl_tree_form *form, const struct sl_tree_data *data)
{
        bool fits = true;

        for (int64_t i = 0; i < form->trees && !form->has_lists && fits; i++)
                fits = data->targets[i] >= 0 && data->targets[i] < form->targets;
        for (int64_t i = 0; i < form->nodes && form->has_lists && fits; i++)
                fits = data->leaf_lists[i] >= 0 && data->leaf_lists[i] < form->lists;
        for (int64_t i = 0; i < form->lists && fits; i++)
                fits = (!i || data->list_starts[i] >= data->list_starts[i - 1]) && list_fits(form, data, i);
        return fits;
}

static bool roots_fit(const struct sl_tree_form *form, const struct sl_tree_data *data)
{
        for (int64_t i = 0; i < form->trees; i++)
                if (data->roots[i] < (i ? data->roots[i - 1] : 0) || data->roots[i] >= form->nodes)
                        return false;
        return true;
}

uint64_t sl_trees_visits(const struct sl_tree_form *form, const struct sl_tree_data *data, uint32_t *depths)
{
        uint64_t visits = 0;

        for (int64_t i = form->nodes - 1; i >= 0; i--) {
                struct sl_tree_node node = sl_tree_node_at(form, data->nodes, i);
                uint32_t left = depths[i + node.offset], right;

                depths[i] = 1;
                if (!node.offset)
                        continue;
                right = depths[i + node.offset + 1];
                depths[i] += left > right ? left : right;
        }
        for (int64_t i = 0; i < form->trees; i++)
                visits += depths[data->roots[i]];
        return visits;
}

int sl_trees_check(const struct sl_tree_form *form, const struct sl_tree_data *data)
{
        uint32_t *depths;
        uint64_t visits;

        if (!columns_fit(form, data) || !nodes_fit(form, data) || !roots_fit(form, data) || !leaves_fit(form, data))
                return -ERANGE;
        depths = calloc((size_t)form->nodes, sizeof(*depths));
        if (!depths)
                return -ENOMEM;
        visits = sl_trees_visits(form, data, depths);
        free(depths);
        return visits == form->visits ? 0 : -ERANGE;
}
