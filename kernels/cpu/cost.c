#include "cpu/cost.h"

#include "op.h"

/* What the library reaches of a core, by channels of a group: depthwise kernels wait for the cache, grouped ones waste most lanes.
 */
static double library_share(const struct sl_node_desc *node)
{
        const struct sl_shape *weights = &node->inputs[1].shape;
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), least = weights->dims[1];

        if (node->op != SL_OP_CONV)
                return 0.97;
        if (groups > 1 && weights->dims[0] / groups < least)
                least = weights->dims[0] / groups;
        if (groups == 1)
                return 0.97;
        return least == 1 ? 0.28 : least < 8 ? 0.17 : least < 16 ? 0.4 : 0.7;
}

double sl_cost_activation(uint32_t activation, double elements, bool library)
{
        switch (activation) {
        case SL_ACT_NONE:
        case SL_ACT_RELU:
        case SL_ACT_CLIP:
                return 0;
        case SL_ACT_LEAKY_RELU:
        case SL_ACT_HARD_SWISH:
                return elements * 0.05e-9;
        default:
                return elements * (library ? 0.38e-9 : 0.2e-9);
        }
}

/* Where the channels do not fill the last vector, it adds a residual lane by lane. */
static double library_residual(const struct sl_node_desc *node)
{
        const struct sl_tensor *y = &node->outputs[0];

        if (node->op != SL_OP_CONV || !node->epilogue.has_residual || y->shape.dims[1] % 16 == 0)
                return 0;
        return (double)sl_shape_elements(&y->shape) * 1.5e-9;
}

/* It has no code from one layout to the other: the input is turned in scratch before. */
static double library_turn(const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0];

        return x->shape.rank > 2 && x->layout != node->outputs[0].layout ? 2 * (double)sl_tensor_bytes(x) / SL_COST_FAR : 0;
}

double sl_cost_library(const struct sl_node_desc *node)
{
        double flops = 2.0 * (double)sl_op_multiply_adds(node);

        if (node->n_inputs < 2)
                return SL_COST_LAUNCH + (double)sl_tensor_bytes(&node->inputs[0]) / SL_COST_NEAR;
        /* It fetches nothing ahead, so that half of the time of the weights comes on top. */
        return SL_COST_LAUNCH +
               sl_cost_activation(node->epilogue.activation, (double)sl_shape_elements(&node->outputs[0].shape), true) +
               library_residual(node) + library_turn(node) + flops / SL_COST_FLOPS / library_share(node) +
               0.5 * (double)sl_tensor_bytes(&node->inputs[1]) / SL_COST_BYTES;
}
