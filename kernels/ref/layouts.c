/* SPDX-License-Identifier: Apache-2.0 */
#include "layouts.h"

#include "op.h"

/* Kernels for as many channels read the PLAIN image that a model is given. */
#define FEW_CHANNELS 16

static bool has_layouts(const struct sl_tensor *tensor)
{
        return tensor->dtype != SL_DTYPE_NONE && tensor->shape.rank >= 3 && tensor->shape.rank <= 5;
}

bool sl_layouts_agree(const struct sl_tensor *tensor)
{
        int64_t pixels = 1;

        for (uint32_t i = 2; i < tensor->shape.rank && pixels <= 1; i++)
                pixels *= tensor->shape.dims[i];
        return !has_layouts(tensor) || tensor->shape.dims[1] <= 1 || pixels <= 1;
}

static bool is_elementwise(const struct sl_node_desc *node)
{
        return sl_op_traits(node->op) & SL_OP_ELEMENTWISE;
}

/* Is the input one of those that have the layout of the node? */
static bool follows(const struct sl_node_desc *node, uint32_t input)
{
        if (node->inputs[input].dtype == SL_DTYPE_NONE)
                return false;
        if (input == 0 || is_elementwise(node) || node->op == SL_OP_CONCAT)
                return true;
        return node->epilogue.has_residual && input == node->n_inputs - 1;
}

static bool begins(const struct sl_node_desc *node)
{
        return node->op == SL_OP_CONV || node->op == SL_OP_CONV_TRANSPOSE || node->op == SL_OP_QUANTIZED_CONV ||
               node->op == SL_OP_MBCONV;
}

static bool reads_last(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (follows(node, i) && node->inputs[i].layout == SL_LAYOUT_CHANNELS_LAST)
                        return true;
        return false;
}

/* [C, 1, 1] beside [N, C, H, W] is [1, C, 1, 1]. */
static void widen(struct sl_shape *shape, uint32_t rank)
{
        uint32_t added = rank - shape->rank;

        for (uint32_t i = rank; i-- > 0;)
                shape->dims[i] = i < added ? 1 : shape->dims[i - added];
        shape->rank = rank;
}

static bool reads_plain(const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0];

        return node->op == SL_OP_CONV && x->layout == SL_LAYOUT_PLAIN && x->shape.dims[1] < FEW_CHANNELS;
}

/* All of them can lie so, or none does. */
static bool turn_inputs(struct sl_node_desc *node)
{
        uint32_t rank = node->outputs[0].shape.rank;

        for (uint32_t i = reads_plain(node) ? 1 : 0; i < node->n_inputs; i++) {
                struct sl_tensor *tensor = &node->inputs[i];

                if (!follows(node, i))
                        continue;
                if (is_elementwise(node) && tensor->shape.rank < rank)
                        widen(&tensor->shape, rank);
                if (tensor->shape.rank != rank)
                        return false;
                tensor->layout = SL_LAYOUT_CHANNELS_LAST;
        }
        return true;
}

bool sl_layouts_wants_last(const struct sl_node_desc *node)
{
        return sl_op_traits(node->op) & (SL_OP_SPATIAL | SL_OP_ELEMENTWISE) && node->n_outputs && has_layouts(&node->outputs[0]) &&
               (begins(node) || reads_last(node));
}

bool sl_layouts_set_last(struct sl_node_desc *node)
{
        if (!turn_inputs(node))
                return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (has_layouts(&node->outputs[i]))
                        node->outputs[i].layout = SL_LAYOUT_CHANNELS_LAST;
        return true;
}
