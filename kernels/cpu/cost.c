/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cost.h"

#include "cpu/isa.h"
#include "op.h"

double sl_cost_traffic(const struct sl_core_figures *core, double bytes)
{
        return bytes / (bytes > (double)sl_cpu_cache_bytes() ? core->far : core->near);
}

/* What of whole vectors so many filters fill. */
static double filled(int64_t filters)
{
        return (double)filters / (double)((filters + 15) / 16 * 16);
}

/* What the library reaches of a core, by channels of a group: grouped kernels waste most lanes. */
static double library_share(const struct sl_node_desc *node)
{
        const struct sl_shape *weights = &node->inputs[1].shape;
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), least = weights->dims[1];

        if (node->op != SL_OP_CONV)
                return 0.94;
        if (groups == 1)
                return 0.94 * filled(weights->dims[0]);
        if (weights->dims[0] / groups < least)
                least = weights->dims[0] / groups;
        return least == 1 ? 0.35 : least < 8 ? 0.2 : least < 16 ? 0.46 : 0.8;
}

static bool is_one_row(const struct sl_node_desc *node)
{
        const struct sl_shape *y = &node->outputs[0].shape;

        return node->op != SL_OP_CONV && y->rank && sl_shape_elements(y) == (uint64_t)y->dims[y->rank - 1];
}

/* It fetches nothing ahead, so that the time of the weights comes on top; one row times a matrix it reads as a stream. */
static double library_weights(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        return (double)sl_tensor_bytes(&node->inputs[1]) / (is_one_row(node) ? core->stream : core->weights);
}

/* Products hide what they read; windows of single channels do not. */
static double library_traffic(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        if (node->op != SL_OP_CONV || node->inputs[1].shape.rank < 2 || node->inputs[1].shape.dims[1] != 1)
                return 0;
        return sl_cost_traffic(core, (double)sl_tensor_bytes(&node->inputs[0]) + (double)sl_tensor_bytes(&node->outputs[0]));
}

double sl_cost_activation(const struct sl_core_figures *core, uint32_t activation, double elements, bool library)
{
        switch (activation) {
        case SL_ACT_NONE:
        case SL_ACT_RELU:
        case SL_ACT_CLIP:
                return 0;
        case SL_ACT_LEAKY_RELU:
        case SL_ACT_HARD_SWISH:
                return elements * (library ? 38 : 15) / core->flops;
        default:
                return elements * (library ? 72 : 38) / core->flops;
        }
}

double sl_cost_residual(const struct sl_core_figures *core, double elements)
{
        return 4 * elements / (8 * elements > (double)sl_cpu_cache_bytes() ? core->far : core->near);
}

/* Where the channels do not fill the last vector, it adds a residual lane by lane. */
static double library_residual(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        double elements = (double)sl_shape_elements(&node->outputs[0].shape);

        if (node->op != SL_OP_CONV || !node->epilogue.has_residual)
                return 0;
        return node->outputs[0].shape.dims[1] % 16 ? elements * 285 / core->flops : 2 * sl_cost_residual(core, elements);
}

static double library_store(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        bool grouped = node->op == SL_OP_CONV && sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) > 1;

        return grouped ? 0 : (double)sl_shape_elements(&node->outputs[0].shape) * SL_COST_STORE * 0.8 / core->flops;
}

/* It has no code from one layout to the other: the input is turned in scratch before. */
static double library_turn(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0];

        return x->shape.rank > 2 && x->layout != node->outputs[0].layout ? 2 * (double)sl_tensor_bytes(x) / core->far : 0;
}

double sl_cost_library(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        double flops = 2.0 * (double)sl_op_multiply_adds(node);

        if (node->n_inputs < 2)
                return SL_COST_LAUNCH + (double)sl_tensor_bytes(&node->inputs[0]) / core->near;
        return SL_COST_LAUNCH +
               sl_cost_activation(core, node->epilogue.activation, (double)sl_shape_elements(&node->outputs[0].shape), true) +
               library_residual(core, node) + library_store(core, node) + library_turn(core, node) + library_traffic(core, node) +
               library_weights(core, node) + flops / core->flops / library_share(node);
}
