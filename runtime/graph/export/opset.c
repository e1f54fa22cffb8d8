/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which opset a file wants. Operators mean the same in all opsets from 20 to 28, but for GroupNormalization, whose scale is one of
 * each group before opset 21, and one of each channel since.
 */
#include "base/error.h"
#include "export/exporter.h"

#include <inttypes.h>

/* The first opsets with operators that came later, and with forms of older ones that did. */
#define OPSET_SCATTER 24
#define OPSET_WINDOWS 25
#define OPSET_BITS    26
#define OPSET_LINEAR  27
#define OPSET_FLOORED 28

/* The first opsets with GroupNormalization by channels and bytes in blocks, with attention, and the IR versions that they came
 * with. */
#define OPSET_BLOCKS    21
#define OPSET_ATTENTION 23

static bool is_of_16_bits(uint32_t dtype)
{
        return dtype == SL_DTYPE_I16 || dtype == SL_DTYPE_U16;
}

static int64_t opset_of_quantize(const struct sl_graph *graph, const struct sl_node *node)
{
        uint32_t bytes = node->op == SL_OP_QUANTIZE_LINEAR ? node->outputs[0] : node->inputs[0];

        if (node->op == SL_OP_DEQUANTIZE_LINEAR && sl_attrs_find(&node->attrs, SL_ATTR_OUTPUT_DTYPE))
                return OPSET_ATTENTION;
        if (sl_attrs_find(&node->attrs, SL_ATTR_BLOCK_SIZE) || sl_attrs_find(&node->attrs, SL_ATTR_OUTPUT_DTYPE))
                return OPSET_BLOCKS;
        return is_of_16_bits(graph->values[bytes].tensor.dtype) ? OPSET_BLOCKS : SL_EXPORT_OPSET;
}

/* Where there are as many groups as channels, both mean the same. */
static bool has_scales_of(const struct sl_graph *graph, const struct sl_node *node, bool groups)
{
        int64_t channels = graph->values[node->inputs[0]].tensor.shape.dims[1];
        int64_t n_groups = sl_attrs_int(&node->attrs, SL_ATTR_NUM_GROUPS, 0);
        int64_t scales = graph->values[node->inputs[1]].tensor.shape.dims[0];

        return n_groups != channels && scales == (groups ? n_groups : channels);
}

static int64_t opset_of_attention(const struct sl_node *node)
{
        if (sl_attrs_find(&node->attrs, SL_ATTR_LEFT_WINDOW) || sl_attrs_find(&node->attrs, SL_ATTR_RIGHT_WINDOW))
                return OPSET_WINDOWS;
        return node->n_inputs > 6 ? OPSET_SCATTER : OPSET_ATTENTION;
}

/* Remainders of floats that are rounded down, and shifts of numbers with a sign. */
static int64_t opset_by_type(const struct sl_graph *graph, const struct sl_node *node)
{
        uint32_t dtype = graph->values[node->inputs[0]].tensor.dtype;
        bool is_signed = dtype == SL_DTYPE_I8 || dtype == SL_DTYPE_I16 || dtype == SL_DTYPE_I32 || dtype == SL_DTYPE_I64;

        if (node->op == SL_OP_BIT_SHIFT)
                return is_signed ? OPSET_FLOORED : SL_EXPORT_OPSET;
        return sl_dtype_is_float(dtype) && !sl_attrs_int(&node->attrs, SL_ATTR_FMOD, 0) ? OPSET_FLOORED : SL_EXPORT_OPSET;
}

static int64_t least_opset(const struct sl_graph *graph, const struct sl_node *node)
{
        switch (node->op) {
        case SL_OP_ATTENTION:
                return opset_of_attention(node);
        case SL_OP_TENSOR_SCATTER:
                return OPSET_SCATTER;
        case SL_OP_BIT_CAST:
        case SL_OP_CUM_PROD:
                return OPSET_BITS;
        case SL_OP_LINEAR_ATTENTION:
                return OPSET_LINEAR;
        case SL_OP_MOD:
        case SL_OP_BIT_SHIFT:
                return opset_by_type(graph, node);
        case SL_OP_SPACE_TO_DEPTH:
                return sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0) ? OPSET_FLOORED : SL_EXPORT_OPSET;
        case SL_OP_ROTARY_EMBEDDING:
        case SL_OP_RMS_NORM:
                return OPSET_ATTENTION;
        case SL_OP_GROUP_NORM:
                return has_scales_of(graph, node, false) ? OPSET_BLOCKS : SL_EXPORT_OPSET;
        case SL_OP_QUANTIZE_LINEAR:
        case SL_OP_DEQUANTIZE_LINEAR:
                return opset_of_quantize(graph, node);
        default:
                return SL_EXPORT_OPSET;
        }
}

static int64_t opset_of_type(uint32_t dtype)
{
        if (!sl_dtype_is_small(dtype))
                return SL_EXPORT_OPSET;
        if (dtype == SL_DTYPE_U2 || dtype == SL_DTYPE_I2)
                return OPSET_WINDOWS;
        return dtype == SL_DTYPE_F8E8M0 ? OPSET_SCATTER : dtype == SL_DTYPE_F4E2M1 ? OPSET_ATTENTION : OPSET_BLOCKS;
}

/* Types of few bits came one after the other, to all operators that take them. */
static int64_t opset_of_types(const struct sl_graph *graph, const struct sl_node *node)
{
        int64_t most = SL_EXPORT_OPSET;

        for (uint32_t i = 0; i < node->n_inputs + node->n_outputs; i++) {
                uint32_t value = i < node->n_inputs ? node->inputs[i] : node->outputs[i - node->n_inputs];
                int64_t opset = value == SL_VALUE_NONE ? SL_EXPORT_OPSET : opset_of_type(graph->values[value].tensor.dtype);

                most = opset > most ? opset : most;
        }
        return most;
}

int sl_export_want_opset(struct sl_exporter *e, const struct sl_node *from)
{
        int64_t least = least_opset(e->graph, from), of_types = opset_of_types(e->graph, from);

        least = least > of_types ? least : of_types;

        if (from->op == SL_OP_GROUP_NORM && has_scales_of(e->graph, from, true))
                e->bound_node = from->name;
        if (least > e->opset)
                e->opset = least;
        if (e->bound_node && e->opset >= OPSET_BLOCKS)
                return sl_error_set(e->error, ENOTSUP,
                        "node \"%s\": a GroupNormalization with one scale for each group is not in opset %" PRId64
                        ", which other nodes want",
                        e->bound_node, e->opset);
        return 0;
}

int64_t sl_export_ir_version(int64_t opset)
{
        if (opset >= OPSET_SCATTER)
                return opset >= OPSET_FLOORED ? 14 : opset >= OPSET_WINDOWS ? 13 : 12;
        return opset >= OPSET_ATTENTION ? 11 : opset >= OPSET_BLOCKS ? 10 : 9;
}
