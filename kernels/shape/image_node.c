/* SPDX-License-Identifier: Apache-2.0 */
#include "image_node.h"

#include "op.h"
#include "window.h"

#define LINE_RANK  3
#define IMAGE_RANK 4

static bool is_convolution(const struct sl_node_desc *node)
{
        return (node->op == SL_OP_CONV || node->op == SL_OP_QUANTIZED_CONV) && node->n_inputs > 1 &&
               node->n_inputs <= SL_NODE_INPUTS_MAX && node->n_outputs == 1;
}

/* An image of width 1 under windows of width 1 that stay in it. */
static bool is_upright(const struct sl_node_desc *node, const struct sl_window *w)
{
        return node->inputs[0].shape.rank == IMAGE_RANK && node->inputs[0].shape.dims[3] == 1 &&
               node->inputs[0].shape.dims[2] > 1 && w->kernel[1] == 1 && !w->pad_begin[1] && !w->pad_end[1];
}

/* [N,C,L] or [N,C,L,1] to [N,C,1,L]. */
static void lay_down(struct sl_tensor *tensor, uint32_t rank)
{
        if (tensor->shape.rank != rank)
                return;
        tensor->shape.rank = IMAGE_RANK;
        tensor->shape.dims[3] = tensor->shape.dims[2];
        tensor->shape.dims[2] = 1;
}

static bool write_window(const struct sl_window *w, struct sl_attrs *attrs)
{
        int64_t kernel[] = {1, w->kernel[0]}, strides[] = {1, w->stride[0]}, dilations[] = {1, w->dilation[0]};
        int64_t pads[] = {0, w->pad_begin[0], 0, w->pad_end[0]};

        sl_attrs_remove(attrs, SL_ATTR_SAME);
        return !sl_attrs_set_ints(attrs, SL_ATTR_KERNEL_SHAPE, kernel, 2) &&
               !sl_attrs_set_ints(attrs, SL_ATTR_STRIDES, strides, 2) &&
               !sl_attrs_set_ints(attrs, SL_ATTR_DILATIONS, dilations, 2) && !sl_attrs_set_ints(attrs, SL_ATTR_PADS, pads, 4);
}

const struct sl_node_desc *sl_image_node(const struct sl_node_desc *node, struct sl_node_desc *room)
{
        uint32_t rank = node->inputs[0].shape.rank;
        struct sl_window window;

        if (!is_convolution(node) || rank > IMAGE_RANK || node->inputs[1].shape.rank != rank ||
                node->outputs[0].shape.rank != rank || sl_window_read(node, &window, NULL))
                return node;
        if (rank != LINE_RANK && !is_upright(node, &window))
                return node;
        *room = *node;
        for (uint32_t i = 0; i < room->n_inputs; i++)
                lay_down(&room->inputs[i], rank);
        lay_down(&room->outputs[0], rank);
        return write_window(&window, &room->attrs) ? room : node;
}
