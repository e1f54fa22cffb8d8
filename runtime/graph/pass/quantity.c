/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/quantity.h"

#include "graph.h"

#define SCALE_INPUT 1
#define ZERO_INPUT  2

static bool is_byte(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_I8;
}

static bool is_single(const struct sl_graph *graph, uint32_t value)
{
        return sl_graph_is_constant(graph, value) && sl_shape_elements(&graph->values[value].tensor.shape) == 1;
}

static bool read_zero(const struct sl_graph *graph, uint32_t zero, struct sl_quantity *quantity)
{
        const void *data = sl_graph_constant(graph, zero);

        if (zero == SL_VALUE_NONE)
                return true;
        if (!is_single(graph, zero) || graph->values[zero].tensor.dtype != quantity->dtype)
                return false;
        quantity->zero = quantity->dtype == SL_DTYPE_I8 ? *(const int8_t *)data : *(const uint8_t *)data;
        return true;
}

bool sl_quantity_read(const struct sl_graph *graph, uint32_t scale, uint32_t zero, uint32_t dtype, struct sl_quantity *ret_quantity)
{
        struct sl_quantity quantity = {.dtype = dtype};

        if (!is_byte(dtype) || !is_single(graph, scale) || graph->values[scale].tensor.dtype != SL_DTYPE_F32)
                return false;
        quantity.scale = *(const float *)sl_graph_constant(graph, scale);
        if (!(quantity.scale > 1e-30f && quantity.scale < 1e30f) || !read_zero(graph, zero, &quantity))
                return false;
        *ret_quantity = quantity;
        return true;
}

bool sl_quantity_of(const struct sl_graph *graph, const struct sl_node *node, struct sl_quantity *ret_quantity)
{
        bool to_bytes = node->op == SL_OP_QUANTIZE_LINEAR;
        uint32_t zero = node->n_inputs > ZERO_INPUT ? node->inputs[ZERO_INPUT] : SL_VALUE_NONE;
        uint32_t real = to_bytes ? node->inputs[0] : node->outputs[0], bytes = to_bytes ? node->outputs[0] : node->inputs[0];

        if (!to_bytes && node->op != SL_OP_DEQUANTIZE_LINEAR)
                return false;
        if (sl_attrs_int(&node->attrs, SL_ATTR_BLOCK_SIZE, 0) || graph->values[real].tensor.dtype != SL_DTYPE_F32)
                return false;
        return sl_quantity_read(graph, node->inputs[SCALE_INPUT], zero, graph->values[bytes].tensor.dtype, ret_quantity);
}

uint32_t sl_quantity_bytes(const struct sl_graph *graph, uint32_t value, struct sl_quantity *ret_quantity)
{
        uint32_t maker = sl_graph_producer(graph, value);

        if (maker == SL_VALUE_NONE || graph->nodes[maker].op != SL_OP_DEQUANTIZE_LINEAR ||
                !sl_quantity_of(graph, &graph->nodes[maker], ret_quantity))
                return SL_VALUE_NONE;
        return graph->nodes[maker].inputs[0];
}

uint32_t sl_quantity_user(const struct sl_graph *graph, uint32_t value, struct sl_quantity *ret_quantity)
{
        uint32_t user = sl_graph_only_user(graph, value);

        if (user == SL_VALUE_NONE || graph->nodes[user].op != SL_OP_QUANTIZE_LINEAR || graph->nodes[user].inputs[0] != value ||
                !sl_quantity_of(graph, &graph->nodes[user], ret_quantity))
                return SL_VALUE_NONE;
        return user;
}

bool sl_quantity_equal(const struct sl_quantity *a, const struct sl_quantity *b)
{
        return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}
