/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A MatMul by a constant of few bits behind DequantizeLinear, maybe turned, becomes starling.NibbleMatMul: whatever has one scale
 * for several elements that follow each other in the depth of a column.
 */
#include "pass.h"

#include "base/error.h"
#include "graph.h"
#include "pass/match.h"
#include "shape/nibbles.h"
#include "shape/quantize.h"

#include <stdlib.h>

/* The matrix [depth, columns] as it lies in the constant. */
struct matrix {
        struct sl_nibbles n;
        struct sl_scales scales;
        int64_t depth_stride, column_stride; /* in elements of the constant */
        uint32_t dtype;
        const uint8_t *elements, *zeros; /* a byte each; zeros: NULL for 0 */
        const float *factors;
};

/* What is behind 0 of an element as it is stored: 8 for what has a sign. */
static int offset_of(uint32_t dtype)
{
        return dtype == SL_DTYPE_I4 || dtype == SL_DTYPE_I2 ? 8 : 0;
}

static int number_of(const uint8_t *bytes, int64_t at, uint32_t dtype)
{
        return offset_of(dtype) ? (int8_t)bytes[at] + offset_of(dtype) : bytes[at];
}

static bool is_few_bits(uint32_t dtype)
{
        return dtype == SL_DTYPE_I4 || dtype == SL_DTYPE_U4 || dtype == SL_DTYPE_I2 || dtype == SL_DTYPE_U2;
}

/* A Transpose of a matrix that makes @value, looked through. */
static bool look_behind_turn(const struct sl_graph *graph, uint32_t *value)
{
        uint32_t node = sl_match_made(graph, *value, SL_OP_TRANSPOSE);

        if (node == SL_VALUE_NONE)
                return false;
        *value = graph->nodes[node].inputs[0];
        return true;
}

/* How many elements of the depth share a scale: so many, or all. 0: another axis has the blocks, or none. */
static int64_t block_along(const struct sl_node_desc *desc, const struct matrix *m, bool turned)
{
        int64_t all = (m->n.depth + SL_NIBBLE_GROUP - 1) / SL_NIBBLE_GROUP * SL_NIBBLE_GROUP;
        int64_t axis = sl_attrs_int(&desc->attrs, SL_ATTR_AXIS, 1);
        bool along_depth = (axis < 0 ? axis + 2 : axis) == (turned ? 1 : 0);

        if (!m->scales.block)
                return all;
        if (!m->scales.blocks)
                return along_depth ? 0 : all;
        return along_depth && m->scales.block % SL_NIBBLE_GROUP == 0 ? m->scales.block : 0;
}

static bool read_matrix(const struct sl_graph *graph, uint32_t dequantize, bool turned, struct matrix *m)
{
        const struct sl_node *node = &graph->nodes[dequantize];
        struct sl_node_desc desc;

        if (sl_graph_describe(graph, dequantize, &desc) < 0 || desc.inputs[0].shape.rank != 2 ||
                !is_few_bits(desc.inputs[0].dtype) || desc.inputs[1].dtype != SL_DTYPE_F32 ||
                desc.outputs[0].dtype != SL_DTYPE_F32 || !sl_shape_elements(&desc.inputs[0].shape) ||
                sl_scales_read(&desc, &m->scales, NULL))
                return false;
        m->dtype = desc.inputs[0].dtype;
        m->n.depth = desc.inputs[0].shape.dims[turned];
        m->n.columns = desc.inputs[0].shape.dims[!turned];
        m->depth_stride = turned ? 1 : m->n.columns;
        m->column_stride = turned ? m->n.depth : 1;
        m->n.block = block_along(&desc, m, turned);
        if (!m->n.block || m->n.block > INT32_MAX)
                return false;
        m->n.blocks = (m->n.depth - 1) / m->n.block + 1;
        m->n.has_zeros = node->n_inputs > 2 && node->inputs[2] != SL_VALUE_NONE;
        m->elements = sl_graph_constant(graph, node->inputs[0]);
        m->factors = sl_graph_constant(graph, node->inputs[1]);
        m->zeros = m->n.has_zeros ? sl_graph_constant(graph, node->inputs[2]) : NULL;
        return m->elements && m->factors && (m->zeros || !m->n.has_zeros);
}

/* The constants of the node, in memory of the graph. */
struct parts {
        uint8_t *nibbles, *zeros;
        float *scales;
};

static void write_block(const struct matrix *m, int64_t column, int64_t block, const struct parts *to)
{
        int64_t first = block * m->n.block, end = first + m->n.block < m->n.depth ? first + m->n.block : m->n.depth;
        int64_t at = column * m->n.blocks + block, start = column * m->column_stride + first * m->depth_stride;
        int64_t scale = sl_scale_of(&m->scales, start);
        uint8_t *bytes = to->nibbles + at * (m->n.block / 2);

        to->scales[at] = m->factors[scale];
        to->zeros[at] = (uint8_t)(m->zeros ? number_of(m->zeros, scale, m->dtype) : offset_of(m->dtype));
        for (int64_t k = first; k < end; k++) {
                int q = number_of(m->elements, start + (k - first) * m->depth_stride, m->dtype) & 15;

                bytes[(k - first) / 2] |= (uint8_t)(q << ((k - first) % 2 ? 4 : 0));
        }
}

static int add_constant(
        struct sl_graph *graph, uint32_t node, uint32_t dtype, const struct sl_shape *shape, const void *data, uint32_t *ret_value)
{
        struct sl_tensor tensor = {.dtype = dtype, .shape = *shape};

        return sl_graph_add_constant(graph, graph->nodes[node].name, &tensor, data, ret_value);
}

static int become(struct sl_graph *graph, uint32_t index, const struct matrix *m, const struct parts *parts)
{
        const struct sl_shape matrix = {3, {m->n.columns, m->n.blocks, m->n.block / 2}}, blocks = {2, {m->n.columns, m->n.blocks}};
        uint32_t inputs[4] = {graph->nodes[index].inputs[0]};
        int r = add_constant(graph, index, SL_DTYPE_U8, &matrix, parts->nibbles, &inputs[1]);

        r = r < 0 ? r : add_constant(graph, index, SL_DTYPE_F32, &blocks, parts->scales, &inputs[2]);
        r = r < 0 ? r : add_constant(graph, index, SL_DTYPE_U8, &blocks, parts->zeros, &inputs[3]);
        r = r < 0 ? r : sl_match_become(graph, index, SL_OP_NIBBLE_MATMUL, inputs, 4);
        return r < 0 ? r : sl_attrs_set_int(&graph->nodes[index].attrs, SL_ATTR_BLOCK_SIZE, m->n.block);
}

static int fuse(struct sl_graph *graph, uint32_t index, const struct matrix *m)
{
        uint64_t blocks = (uint64_t)(m->n.columns * m->n.blocks), bytes = blocks * (uint64_t)(m->n.block / 2);
        struct parts parts = {.nibbles = sl_graph_alloc(graph, bytes),
                .zeros = sl_graph_alloc(graph, blocks),
                .scales = sl_graph_alloc(graph, blocks * sizeof(float))};

        if (!parts.nibbles || !parts.zeros || !parts.scales)
                return -ENOMEM;
        for (uint64_t i = 0; i < bytes; i++)
                parts.nibbles[i] = 0;
        for (int64_t column = 0; column < m->n.columns; column++)
                for (int64_t block = 0; block < m->n.blocks; block++)
                        write_block(m, column, block, &parts);
        sl_graph_drop_copies(graph);
        return become(graph, index, m, &parts);
}

static bool is_plain_product(const struct sl_graph *graph, const struct sl_node *node)
{
        return node->op == SL_OP_MATMUL && node->n_inputs == 2 && !node->epilogue.activation && !node->epilogue.has_residual &&
               graph->values[node->inputs[0]].tensor.dtype == SL_DTYPE_F32 && graph->values[node->inputs[0]].tensor.shape.rank > 1;
}

int sl_pass_fuse_nibbles(struct sl_graph *graph, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                struct matrix m = {.depth_stride = 0};
                uint32_t weights, dequantize;
                bool turned;
                int r;

                if (graph->nodes[i].dead || !is_plain_product(graph, &graph->nodes[i]))
                        continue;
                weights = graph->nodes[i].inputs[1];
                turned = look_behind_turn(graph, &weights);
                dequantize = sl_match_made(graph, weights, SL_OP_DEQUANTIZE_LINEAR);
                if (dequantize == SL_VALUE_NONE || !read_matrix(graph, dequantize, turned, &m))
                        continue;
                r = fuse(graph, i, &m);
                if (r < 0)
                        return sl_error_set(error, -r, "node \"%s\": no memory for its weights of 4 bits", graph->nodes[i].name);
                r = sl_graph_infer_node(graph, i, error);
                if (r < 0)
                        return r;
        }
        return 0;
}
