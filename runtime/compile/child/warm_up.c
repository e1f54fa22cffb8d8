/* SPDX-License-Identifier: Apache-2.0 */
#include "warm_up.h"

#include "base/cleanup.h"
#include "graph.h"
#include "lower.h"
#include "lower_options.h"

#include <stdbool.h>
#include <sys/mman.h>

#define CHANNELS 16
#define CLASSES  10

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_lowered *, sl_lowered_free)

/* Weights of 0.5; SL_VALUE_NONE without memory. */
static uint32_t add_weights(struct sl_graph *graph, struct sl_shape shape)
{
        const struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = shape};
        uint64_t n = sl_shape_elements(&shape);
        float *data = sl_graph_alloc(graph, n * sizeof(*data));
        uint32_t value;

        for (uint64_t i = 0; data && i < n; i++)
                data[i] = 0.5f;
        return data && sl_graph_add_constant(graph, "weights", &tensor, data, &value) == 0 ? value : SL_VALUE_NONE;
}

/* Return: the value that it makes; SL_VALUE_NONE. */
static uint32_t add_node(struct sl_graph *graph, uint32_t op, uint32_t input, uint32_t weights)
{
        const struct sl_tensor unknown = {.dtype = SL_DTYPE_F32};
        const uint32_t inputs[] = {input, weights};
        uint32_t output, node;

        if (input == SL_VALUE_NONE || sl_graph_add_value(graph, sl_op_name(op), SL_VALUE_COMPUTED, &unknown, &output) < 0 ||
                sl_graph_add_node(graph, op, sl_op_name(op), inputs, weights == SL_VALUE_NONE ? 1 : 2, &output, 1, &node) < 0)
                return SL_VALUE_NONE;
        if (op == SL_OP_CONV && sl_attrs_set_ints(&graph->nodes[node].attrs, SL_ATTR_KERNEL_SHAPE, (int64_t[]){3, 3}, 2) < 0)
                return SL_VALUE_NONE;
        return sl_graph_infer_node(graph, node, NULL) == 0 ? output : SL_VALUE_NONE;
}

/* Two convolutions, one of which keeps its channels, a mean over the pixels, a product, shares. */
static bool build(struct sl_graph *graph)
{
        const struct sl_tensor image = {.dtype = SL_DTYPE_F32, .shape = {4, {SL_DIM_BATCH, 3, 16, 16}}};
        uint32_t input, value;

        if (sl_graph_add_value(graph, "image", SL_VALUE_INPUT, &image, &input) < 0)
                return false;
        value = add_node(graph, SL_OP_CONV, input, add_weights(graph, (struct sl_shape){4, {CHANNELS, 3, 3, 3}}));
        value = add_node(graph, SL_OP_RELU, value, SL_VALUE_NONE);
        value = add_node(graph, SL_OP_CONV, value, add_weights(graph, (struct sl_shape){4, {CHANNELS, CHANNELS, 3, 3}}));
        value = add_node(graph, SL_OP_GLOBAL_AVERAGE_POOL, value, SL_VALUE_NONE);
        value = add_node(graph, SL_OP_FLATTEN, value, SL_VALUE_NONE);
        value = add_node(graph, SL_OP_MATMUL, value, add_weights(graph, (struct sl_shape){2, {CHANNELS, CLASSES}}));
        value = add_node(graph, SL_OP_SOFTMAX, value, SL_VALUE_NONE);
        return value != SL_VALUE_NONE && sl_graph_set_ports(graph, &input, 1, &value, 1) == 0;
}

void sl_compile_warm_up(void)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = NULL;
        SL_CLEANUP(sl_cleanup_fd) int fd = memfd_create("starling-warm-up", MFD_CLOEXEC);
        struct sl_lower_options options;

        sl_lower_options_init(&options);
        if (fd < 0 || sl_graph_new(&graph) < 0 || !build(graph) || sl_lower_rewrite(graph, &options, NULL) < 0)
                return;
        if (sl_lowered_new_in(graph, &options, NULL, fd, &lowered, NULL) == 0)
                (void)sl_lowered_write(lowered, fd, NULL);
}
