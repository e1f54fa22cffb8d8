/* SPDX-License-Identifier: Apache-2.0 */
/* Images sampled at places that are data. */
#include "rules.h"

#include <inttypes.h>

int sl_shape_grid_sample(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape, *grid = &node->inputs[1].shape;
        int64_t mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0), padding = sl_attrs_int(&node->attrs, SL_ATTR_PADDING_MODE, 0);
        char text[SL_SHAPE_TEXT_BYTES], grid_text[SL_SHAPE_TEXT_BYTES];
        struct sl_shape out = {.rank = x->rank};
        int64_t merged;

        if (x->rank < 4 || x->rank > 5 || grid->rank != x->rank || sl_dim_merge(grid->dims[grid->rank - 1], x->rank - 2, &merged) ||
                sl_dim_merge(x->dims[0], grid->dims[0], &out.dims[0]))
                return sl_error_set(error, EINVAL, "inputs 0 and 1 are %s and %s, want images and a grid of places in them",
                        sl_shape_print(x, text), sl_shape_print(grid, grid_text));
        if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
                return sl_error_set(
                        error, EINVAL, "attribute mode is %" PRId64 ", padding_mode %" PRId64 ", outside [0,2]", mode, padding);
        for (uint32_t i = 2; i < x->rank; i++)
                if (x->dims[i] == 0 || x->dims[i] > INT32_MAX)
                        return sl_error_set(
                                error, EINVAL, "dimension %u of input 0 is %" PRId64 ", outside [1,%d]", i, x->dims[i], INT32_MAX);
        out.dims[1] = x->dims[1];
        for (uint32_t i = 2; i < x->rank; i++)
                out.dims[i] = grid->dims[i - 1];
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return sl_dtype_is_float(node->inputs[1].dtype)
                       ? 0
                       : sl_error_set(error, EINVAL, "input 1 is %s, wants a floating type", sl_dtype_name(node->inputs[1].dtype));
}

/* Of matrices of 2 x 3 or 3 x 4, and of a list of 4 or 5 sizes; both say it as far as they are known. */
static int count_axes(const struct sl_node_desc *node, int64_t *ret_axes, struct sl_error *error)
{
        const struct sl_shape *theta = &node->inputs[0].shape, *sizes = &node->inputs[1].shape;
        int64_t columns = theta->rank == 3 ? theta->dims[2] : 0, axes = theta->rank == 3 ? theta->dims[1] : 0;
        uint32_t length = 0;
        int r = 0;

        if (sl_dim_merge(axes, sl_dim_known(columns) ? columns - 1 : columns, &axes) < 0)
                axes = 0;
        if (!sl_dim_known(axes) || sizes->rank != 1 || sl_dim_known(sizes->dims[0])) {
                r = sl_parameter_length(node, 1, &length, error);
                if (r == 0 && sl_dim_merge(axes, (int64_t)length - 2, &axes) < 0)
                        axes = 0;
        }
        if (r == 0 && (axes < 2 || axes > 3))
                r = sl_error_set(error, EINVAL, "input 0 wants matrices of 2 x 3 and 4 sizes, or of 3 x 4 and 5");
        *ret_axes = axes;
        return r;
}

/* A grid of sizes that only data tell. */
static int affine_grid_of_data(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t axes;
        int r;

        if (!sl_input_present(node, 1))
                return sl_error_set(error, EINVAL, "the sizes of the grid are missing");
        r = count_axes(node, &axes, error);
        if (r < 0)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){.rank = (uint32_t)axes + 2, .dims = {node->inputs[0].shape.dims[0]}};
        for (int64_t i = 0; i < axes; i++)
                node->outputs[0].shape.dims[i + 1] = SL_DIM_UNKNOWN;
        node->outputs[0].shape.dims[axes + 1] = axes;
        return 0;
}

int sl_shape_affine_grid(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *theta = &node->inputs[0].shape;
        const struct sl_attr *sizes = sl_attrs_find(&node->attrs, SL_ATTR_SIZES);
        int64_t merged, axes;

        if (!sizes)
                return affine_grid_of_data(node, error);
        if (sizes->type != SL_ATTR_TYPE_INTS)
                return sl_error_set(error, EINVAL, "attribute sizes is no list of integers");
        axes = (int64_t)sizes->count - 2;
        if (axes < 2 || axes > 3 || theta->rank != 3 || sl_dim_merge(theta->dims[0], sizes->ints[0], &merged) ||
                sl_dim_merge(theta->dims[1], axes, &merged) || sl_dim_merge(theta->dims[2], axes + 1, &merged))
                return sl_error_set(error, EINVAL, "input 0 and %u sizes do not fit", sizes->count);
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){.rank = (uint32_t)axes + 2, .dims = {sizes->ints[0]}};
        for (uint32_t i = 0; i < sizes->count; i++)
                if (sizes->ints[i] < 0 || sizes->ints[i] > INT32_MAX)
                        return sl_error_set(error, EINVAL, "the sizes have the element %" PRId64, sizes->ints[i]);
        for (int64_t i = 0; i < axes; i++)
                node->outputs[0].shape.dims[i + 1] = sizes->ints[i + 2];
        node->outputs[0].shape.dims[axes + 1] = axes;
        return 0;
}
