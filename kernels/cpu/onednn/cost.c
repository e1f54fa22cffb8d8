/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/onednn/cost.h"

#include "base/bytes.h"
#include "cpu/base/cost.h"
#include "op.h"

/* Of an image: they fill no vector. */
#define FEW_CHANNELS 4

/* What of whole vectors so many filters fill. */
static double filled(int64_t filters)
{
        return (double)filters / (double)((filters + 15) / 16 * 16);
}

/* What oneDNN reaches of a core, by channels of a group: grouped kernels waste most lanes. */
static double onednn_share(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        const struct sl_shape *weights = &node->inputs[1].shape;
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), least = weights->dims[1];

        if (node->op != SL_OP_CONV)
                return core->onednn_product;
        if (groups == 1 && least <= FEW_CHANNELS)
                return core->onednn_first * filled(weights->dims[0]);
        if (groups == 1)
                return core->onednn_product * filled(weights->dims[0]);
        if (weights->dims[0] / groups < least)
                least = weights->dims[0] / groups;
        if (least == 1)
                return core->onednn_depthwise;
        return least < 8 ? core->onednn_groups_4 : least < 16 ? core->onednn_groups_8 : core->onednn_groups_16;
}

static bool is_one_row(const struct sl_node_desc *node)
{
        const struct sl_shape *y = &node->outputs[0].shape;

        return node->op != SL_OP_CONV && y->rank && sl_shape_elements(y) == (uint64_t)y->dims[y->rank - 1];
}

static double products_rate(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        return node->inputs[0].dtype == SL_DTYPE_BF16 ? core->bf16 : core->flops;
}

/* It fetches nothing ahead, so that the time of the weights comes on top; one row times a matrix it reads as a stream. */
static double onednn_weights(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        return (double)sl_tensor_bytes(&node->inputs[1]) / (is_one_row(node) ? core->stream : core->weights);
}

/* Products hide what they read; windows of single channels do not. */
static double onednn_traffic(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        if (node->op != SL_OP_CONV || node->inputs[1].shape.rank < 2 || node->inputs[1].shape.dims[1] != 1)
                return 0;
        return sl_cost_traffic(core, (double)sl_tensor_bytes(&node->inputs[0]) + (double)sl_tensor_bytes(&node->outputs[0]));
}

/* Where the channels do not fill the last vector, it adds a residual lane by lane. */
static double onednn_residual(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        double elements = (double)sl_shape_elements(&node->outputs[0].shape);

        if (node->op != SL_OP_CONV || !node->epilogue.has_residual)
                return 0;
        return node->outputs[0].shape.dims[1] % 16 ? elements * core->onednn_ragged / core->flops
                                                   : 2 * sl_cost_residual(core, elements);
}

static double onednn_store(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        bool grouped = node->op == SL_OP_CONV && sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) > 1;

        return grouped ? 0 : (double)sl_shape_elements(&node->outputs[0].shape) * core->store * 0.8 / core->flops;
}

/* It has no code from one layout to the other: the input is turned in scratch before. */
static double onednn_turn(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0];

        return x->shape.rank > 2 && x->layout != node->outputs[0].layout ? 2 * (double)sl_tensor_bytes(x) / core->far : 0;
}

static bool multiplies_bytes(const struct sl_node_desc *node)
{
        return node->op == SL_OP_QUANTIZED_CONV || node->op == SL_OP_QUANTIZED_MATMUL;
}

#define TILE_BYTES 64 /* of a row, in a tile of AMX */

/* Few channels fill a part of a tile of AMX; windows of single ones wait for something else. */
static double bytes_rate(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        int64_t channels = node->op == SL_OP_QUANTIZED_CONV ? node->inputs[1].shape.dims[1] : TILE_BYTES;
        double filled = channels > 1 ? (double)channels / (double)sl_align_up((size_t)channels, TILE_BYTES) : 1;

        return core->tiles * filled > core->bytes ? core->tiles * filled : core->bytes;
}

/* What is stored costs the more, the faster the products are. */
static double onednn_bytes(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        double elements = (double)sl_shape_elements(&node->outputs[0].shape), flops = 2.0 * (double)sl_op_multiply_adds(node);

        return core->onednn_call + sl_cost_activation(core, node->epilogue.activation, elements, true) +
               flops / bytes_rate(core, node) / onednn_share(core, node) + elements * core->store / core->flops +
               (double)sl_tensor_bytes(&node->inputs[1]) / core->weights;
}

double sl_cost_onednn(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        double flops = 2.0 * (double)sl_op_multiply_adds(node);

        if (multiplies_bytes(node))
                return onednn_bytes(core, node);
        if (node->n_inputs < 2)
                return core->onednn_call + (double)sl_tensor_bytes(&node->inputs[0]) / core->near;
        return core->onednn_call +
               sl_cost_activation(core, node->epilogue.activation, (double)sl_shape_elements(&node->outputs[0].shape), true) +
               onednn_residual(core, node) + onednn_store(core, node) + onednn_turn(core, node) + onednn_traffic(core, node) +
               onednn_weights(core, node) + flops / products_rate(core, node) / onednn_share(core, node);
}
