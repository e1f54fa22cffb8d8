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
        return r ? r : copy_input(node);
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
