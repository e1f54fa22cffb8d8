/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An inverted bottleneck (MBConv): a depthwise Conv with the pointwise ones around it becomes one node, where nobody else reads
 * what lies between them and where the backend has a kernel for it that gains. If it does not with the one that projects, the one
 * that expands is joined alone. Images of unknown sizes are joined where a large one would gain: who runs the node looks again.
 * Last, when every Conv has its activation and residual, and those of bytes are no longer Conv.
 */
#include "pass.h"

#include "backend.h"
#include "base/error.h"
#include "graph.h"
#include "pass/match.h"
#include "shape/mbconv.h"
#include "shape/rules.h"

#include <string.h>

/* Nodes of the parts; SL_VALUE_NONE where nothing projects. */
struct block {
        uint32_t nodes[SL_MBCONV_PARTS];
};

static const struct sl_tensor *tensor_of(const struct sl_graph *graph, uint32_t value)
{
        return &graph->values[value].tensor;
}

static bool is_convolution(const struct sl_graph *graph, uint32_t node)
{
        const struct sl_node *n = &graph->nodes[node];

        return !n->dead && n->op == SL_OP_CONV && tensor_of(graph, n->inputs[0])->dtype == SL_DTYPE_F32 &&
               tensor_of(graph, n->inputs[0])->shape.rank == 4 && sl_graph_is_constant(graph, n->inputs[1]);
}

static bool is_depthwise(const struct sl_graph *graph, uint32_t node)
{
        const struct sl_node *n = &graph->nodes[node];
        const int64_t *w;

        if (!is_convolution(graph, node))
                return false;
        w = tensor_of(graph, n->inputs[1])->shape.dims;
        return w[1] == 1 && sl_attrs_int(&n->attrs, SL_ATTR_GROUP, 1) == w[0];
}

static bool is_pointwise(const struct sl_graph *graph, uint32_t node)
{
        const struct sl_node *n = &graph->nodes[node];
        const int64_t *w;

        if (!is_convolution(graph, node) || sl_attrs_int(&n->attrs, SL_ATTR_GROUP, 1) != 1)
                return false;
        w = tensor_of(graph, n->inputs[1])->shape.dims;
        for (uint32_t i = 0; i < 4; i++)
                if (w[2 + i / 2] != 1 || sl_attrs_ints(&n->attrs, SL_ATTR_STRIDES, i / 2, 1) != 1 ||
                        sl_attrs_ints(&n->attrs, SL_ATTR_PADS, i, 0) != 0)
                        return false;
        return true;
}

/* Of an image whose size is not known: what lies between the convolutions then is larger than any cache. */
#define SIDE 256

/* Is it known how large a sample of it is, or at least how many channels it has? */
static bool has_channels(const struct sl_graph *graph, uint32_t value)
{
        return sl_dim_known(tensor_of(graph, value)->shape.dims[1]);
}

static uint32_t find_expand(const struct sl_graph *graph, uint32_t depthwise)
{
        uint32_t image = graph->nodes[depthwise].inputs[0], maker = sl_match_made(graph, image, SL_OP_CONV);

        if (maker == SL_VALUE_NONE || !is_pointwise(graph, maker) || graph->nodes[maker].epilogue.has_residual ||
                sl_graph_only_user(graph, image) != depthwise || !has_channels(graph, image))
                return SL_VALUE_NONE;
        return maker;
}

static uint32_t find_project(const struct sl_graph *graph, uint32_t depthwise)
{
        uint32_t image = graph->nodes[depthwise].outputs[0], user = sl_graph_only_user(graph, image);

        if (user == SL_VALUE_NONE || !is_pointwise(graph, user) || graph->nodes[user].inputs[0] != image ||
                graph->nodes[depthwise].epilogue.has_residual)
                return SL_VALUE_NONE;
        return user;
}

static uint32_t last_node(const struct block *block)
{
        uint32_t project = block->nodes[SL_MBCONV_PROJECT];

        return project == SL_VALUE_NONE ? block->nodes[SL_MBCONV_DEPTHWISE] : project;
}

/* Returns how many inputs the joined node has. */
static uint32_t list_inputs(const struct sl_graph *graph, const struct block *block, uint32_t inputs[SL_MBCONV_INPUTS])
{
        const struct sl_node *last = &graph->nodes[last_node(block)];

        for (uint32_t i = 0; i < SL_MBCONV_INPUTS; i++)
                inputs[i] = SL_VALUE_NONE;
        inputs[SL_MBCONV_IMAGE] = graph->nodes[block->nodes[SL_MBCONV_EXPAND]].inputs[0];
        for (int part = 0; part < SL_MBCONV_PARTS; part++) {
                uint32_t weights = sl_mbconv_weights(part);
                const struct sl_node *node;

                if (block->nodes[part] == SL_VALUE_NONE)
                        continue;
                node = &graph->nodes[block->nodes[part]];
                inputs[weights] = node->inputs[1];
                inputs[weights + 1] = node->n_inputs > 2 ? node->inputs[2] : SL_VALUE_NONE;
        }
        if (!last->epilogue.has_residual)
                return SL_MBCONV_RESIDUAL;
        inputs[SL_MBCONV_RESIDUAL] = last->inputs[last->n_inputs - 1];
        return SL_MBCONV_INPUTS;
}

/* The window of the depthwise node, and the activations of those that are not the last. */
static int list_attrs(const struct sl_graph *graph, const struct block *block, struct sl_attrs *attrs)
{
        int64_t activations[2] = {SL_ACT_NONE, SL_ACT_NONE};
        double alpha[2] = {0}, beta[2] = {0};
        int r;

        *attrs = graph->nodes[block->nodes[SL_MBCONV_DEPTHWISE]].attrs;
        for (uint32_t part = 0; part < SL_MBCONV_PROJECT; part++) {
                const struct sl_epilogue *epilogue = &graph->nodes[block->nodes[part]].epilogue;

                if (block->nodes[part] == last_node(block))
                        continue;
                activations[part] = epilogue->activation;
                alpha[part] = epilogue->act_a;
                beta[part] = epilogue->act_b;
        }
        r = sl_attrs_set_ints(attrs, SL_ATTR_ACTIVATIONS, activations, 2);
        r = r ? r : sl_attrs_set_floats(attrs, SL_ATTR_ACTIVATION_ALPHA, alpha, 2);
        return r ? r : sl_attrs_set_floats(attrs, SL_ATTR_ACTIVATION_BETA, beta, 2);
}

/* As a kernel for one sample would see it. */
static struct sl_tensor seen(const struct sl_graph *graph, uint32_t value, bool is_image)
{
        struct sl_tensor tensor = {0};

        if (value == SL_VALUE_NONE)
                return tensor;
        tensor = *tensor_of(graph, value);
        if (tensor.shape.rank && !sl_dim_known(tensor.shape.dims[0]))
                tensor.shape.dims[0] = 1;
        for (uint32_t i = 2; i < tensor.shape.rank && is_image; i++)
                if (!sl_dim_known(tensor.shape.dims[i]))
                        tensor.shape.dims[i] = SIDE;
        tensor.layout = is_image ? SL_LAYOUT_CHANNELS_LAST : SL_LAYOUT_PLAIN;
        return tensor;
}

/* As large as the image makes it. */
static bool fit_output(struct sl_node_desc *desc)
{
        struct sl_node_desc conv;

        if (sl_mbconv_conv(desc, sl_mbconv_last(desc), &conv, NULL) < 0)
                return false;
        desc->outputs[0].shape = conv.outputs[0].shape;
        if (desc->epilogue.has_residual)
                desc->inputs[desc->n_inputs - 1].shape = conv.outputs[0].shape;
        return true;
}

static bool gains(const struct sl_graph *graph, const struct block *block, const uint32_t *inputs, uint32_t n_inputs,
        const struct sl_attrs *attrs, const struct sl_pass_options *options)
{
        const struct sl_planner *planner = options->backend->planner;
        const struct sl_node *last = &graph->nodes[last_node(block)];
        struct sl_node_desc desc = {.op = SL_OP_MBCONV,
                .n_inputs = n_inputs,
                .n_outputs = 1,
                .attrs = *attrs,
                .epilogue = last->epilogue,
                .outputs = {seen(graph, last->outputs[0], true)}};

        for (uint32_t i = 0; i < n_inputs; i++)
                desc.inputs[i] = seen(graph, inputs[i], i == SL_MBCONV_IMAGE || i == SL_MBCONV_RESIDUAL);
        return fit_output(&desc) && planner->gains(options->target, &desc) && planner->supports(options->target, &desc);
}

/* Return: 1 the block is one node; 0 it stays as it is; -ENOMEM. */
static int join(struct sl_graph *graph, const struct block *block, const struct sl_pass_options *options)
{
        uint32_t last = last_node(block), inputs[SL_MBCONV_INPUTS], n_inputs = list_inputs(graph, block, inputs);
        struct sl_epilogue epilogue = graph->nodes[last].epilogue;
        struct sl_attrs attrs;
        int r = list_attrs(graph, block, &attrs);

        if (r < 0 || !gains(graph, block, inputs, n_inputs, &attrs, options))
                return r;
        r = sl_match_become(graph, last, SL_OP_MBCONV, inputs, n_inputs);
        graph->nodes[last].attrs = attrs;
        graph->nodes[last].epilogue = epilogue;
        return r < 0 ? r : 1;
}

static int join_around(struct sl_graph *graph, uint32_t depthwise, const struct sl_pass_options *options)
{
        struct block block = {.nodes = {[SL_MBCONV_DEPTHWISE] = depthwise}};
        int r;

        block.nodes[SL_MBCONV_EXPAND] = find_expand(graph, depthwise);
        block.nodes[SL_MBCONV_PROJECT] = find_project(graph, depthwise);
        if (block.nodes[SL_MBCONV_EXPAND] == SL_VALUE_NONE)
                return 0;
        r = join(graph, &block, options);
        if (r != 0 || block.nodes[SL_MBCONV_PROJECT] == SL_VALUE_NONE)
                return r;
        block.nodes[SL_MBCONV_PROJECT] = SL_VALUE_NONE;
        return join(graph, &block, options);
}

int sl_pass_join_mbconv(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        if (!options->backend->planner->gains)
                return 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (is_depthwise(graph, i) && join_around(graph, i, options) < 0)
                        return sl_error_set(error, ENOMEM, "node \"%s\": no memory for a block", graph->nodes[i].name);
        return sl_pass_remove_dead(graph, error);
}
