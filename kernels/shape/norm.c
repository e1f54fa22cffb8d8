/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <inttypes.h>

static int copy_input(struct sl_node_desc *node)
{
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = node->inputs[0].shape;
        return 0;
}

/* Inputs 1 to @last are vectors with one element per channel. */
static int check_channel_vectors(const struct sl_node_desc *node, uint32_t last, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int r = 0;

        if (in->rank < 2)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 2 at least", in->rank);
        for (uint32_t i = 1; i <= last && !r; i++)
                r = sl_vector_of(node, i, in->dims[1], error);
        return r;
}

int sl_shape_batch_norm(struct sl_node_desc *node, struct sl_error *error)
{
        int r = check_channel_vectors(node, 4, error);

        return r ? r : copy_input(node);
}

/* A Concat with four vectors behind what it joins. */
int sl_shape_normalized_concat(struct sl_node_desc *node, struct sl_error *error)
{
        uint32_t joined = node->n_inputs - 4;
        int r;

        if (node->inputs[0].shape.rank < 2 || sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0) != 1 || node->epilogue.has_residual)
                return sl_error_set(error, EINVAL, "rank %u, axis %" PRId64 ": wants channels, along axis 1, and no residual",
                        node->inputs[0].shape.rank, sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0));
        node->n_inputs = joined;
        r = sl_shape_concat(node, error);
        node->n_inputs = joined + 4;
        for (uint32_t i = joined; i < joined + 4 && !r; i++)
                r = sl_vector_of(node, i, node->outputs[0].shape.dims[1], error);
        return r;
}

int sl_shape_instance_norm(struct sl_node_desc *node, struct sl_error *error)
{
        int r = check_channel_vectors(node, 2, error);

        if (!r && node->inputs[0].shape.rank < 3)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 3 at least", node->inputs[0].shape.rank);
        return r ? r : copy_input(node);
}

int sl_shape_layer_norm(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), in->rank, &axis, error);

        r = r ? r : sl_shape_fits(&node->inputs[1].shape, in, "input 1", error);
        if (!r && sl_input_present(node, 2))
                r = sl_shape_fits(&node->inputs[2].shape, in, "input 2", error);
        if (r)
                return r;
        /* Means, and one over deviations. */
        for (uint32_t i = 1; i < node->n_outputs; i++) {
                node->outputs[i] = (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = *in};
                for (uint32_t d = axis; d < in->rank; d++)
                        node->outputs[i].shape.dims[d] = 1;
        }
        return copy_input(node);
}

int sl_shape_lrn(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t size = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0);

        if (size < 1 || size > INT32_MAX)
                return sl_error_set(error, EINVAL, "attribute size is %" PRId64 ", outside [1,%d]", size, INT32_MAX);
        if (node->inputs[0].shape.rank < 2)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 2 at least", node->inputs[0].shape.rank);
        return copy_input(node);
}

int sl_shape_softmax(struct sl_node_desc *node, struct sl_error *error)
{
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), node->inputs[0].shape.rank, &axis, error);

        return r ? r : copy_input(node);
}

int sl_shape_rms_norm(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), in->rank, &axis, error);

        r = r ? r : sl_shape_fits(&node->inputs[1].shape, in, "input 1", error);
        copy_input(node);
        node->outputs[0].dtype = node->inputs[1].dtype;
        return r;
}

int sl_shape_group_norm(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_NUM_GROUPS, 0), merged;
        const struct sl_shape *scale = &node->inputs[1].shape;
        int r = sl_size_wanted(node, 0, 1, error);

        if (r)
                return r;
        if (in->rank < 2)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 2 or more", in->rank);
        if (groups < 1 || in->dims[1] % groups)
                return sl_error_set(error, EINVAL, "attribute num_groups is %" PRId64 ", input 0 has %" PRId64 " channels", groups,
                        in->dims[1]);
        if (scale->rank != 1 ||
                (sl_dim_merge(scale->dims[0], in->dims[1], &merged) && sl_dim_merge(scale->dims[0], groups, &merged)))
                return sl_error_set(error, EINVAL, "input 1 has neither one element per channel nor per group");
        r = sl_vector_of(node, 2, scale->dims[0], error);
        return r ? r : copy_input(node);
}

int sl_shape_lp_norm(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t p = sl_attrs_int(&node->attrs, SL_ATTR_P, 2);
        uint32_t axis;
        int r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), node->inputs[0].shape.rank, &axis, error);

        if (!r && p != 1 && p != 2)
                return sl_error_set(error, EINVAL, "attribute p is %" PRId64 ", neither 1 nor 2", p);
        return r ? r : copy_input(node);
}

int sl_shape_mean_variance_norm(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_attr *axes = sl_attrs_find(&node->attrs, SL_ATTR_AXES);
        uint32_t mask;

        if (!axes && node->inputs[0].shape.rank < 4)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 4 at least", node->inputs[0].shape.rank);
        if (axes && axes->type != SL_ATTR_TYPE_INTS)
                return sl_error_set(error, EINVAL, "attribute axes is not a list of integers");
        int r = axes ? sl_axes_resolve(axes, node->inputs[0].shape.rank, &mask, error) : 0;

        return r ? r : copy_input(node);
}
