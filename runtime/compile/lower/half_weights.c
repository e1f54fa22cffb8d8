/* SPDX-License-Identifier: Apache-2.0 */
#include "half_weights.h"

#include "base/error.h"
#include "graph.h"
#include "lower_options.h"
#include "op.h"
#include "shape/recurrent.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* From here on a number is rounded to infinity: half a step above the largest float16. */
#define F16_OVERFLOW 65520.0f

/* What kernels may keep so: the first and the last input that are weights. */
static const struct row {
        uint32_t op, first, last;
} rows[] = {
        {SL_OP_MATMUL, 1, 1},
        {SL_OP_GEMM, 1, 1},
        {SL_OP_LSTM, SL_RNN_W, SL_RNN_R},
        {SL_OP_GRU, SL_RNN_W, SL_RNN_R},
        {SL_OP_RNN, SL_RNN_W, SL_RNN_R},
        {SL_OP_GATHER, 0, 0},
        {SL_OP_CONV, 1, 1}, /* over one pixel */
};

static const struct row *find_row(uint32_t op)
{
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (rows[i].op == op)
                        return &rows[i];
        return NULL;
}

static bool is_float_constant(const struct sl_graph *graph, uint32_t value)
{
        return sl_graph_is_constant(graph, value) && graph->values[value].tensor.dtype == SL_DTYPE_F32;
}

/* The constant may lie in a file, at any address. */
static bool fits_f16(const struct sl_graph *graph, uint32_t value)
{
        const char *data = graph->values[value].data;
        uint64_t n = sl_shape_elements(&graph->values[value].tensor.shape);
        bool fits = true;

        for (uint64_t i = 0; i < n; i++) {
                float weight;

                memcpy(&weight, data + i * sizeof(weight), sizeof(weight));
                fits = fits & !(fabsf(weight) >= F16_OVERFLOW && fabsf(weight) < INFINITY);
        }
        return fits;
}

/* A convolution over more is no product of one row. */
static bool is_single_pixel(const struct sl_graph *graph, const struct sl_node *node)
{
        const struct sl_shape *x = &graph->values[node->inputs[0]].tensor.shape;

        return x->rank == 4 && x->dims[2] == 1 && x->dims[3] == 1;
}

/* NONE: nothing to mark; F32: one of its weights is too large. */
static uint32_t dtype_for(const struct sl_graph *graph, const struct sl_node *node, uint32_t weights)
{
        const struct row *row = node->dead ? NULL : find_row(node->op);
        bool any = false, fit = true;

        if (row && node->op == SL_OP_CONV && !is_single_pixel(graph, node))
                return SL_DTYPE_NONE;
        for (uint32_t i = row ? row->first : 1; row && i <= row->last && i < node->n_inputs; i++) {
                if (!is_float_constant(graph, node->inputs[i]))
                        continue;
                any = true;
                fit = fit && (weights == SL_WEIGHTS_BF16 || fits_f16(graph, node->inputs[i]));
        }
        if (!any)
                return SL_DTYPE_NONE;
        return !fit ? SL_DTYPE_F32 : weights == SL_WEIGHTS_BF16 ? SL_DTYPE_BF16 : SL_DTYPE_F16;
}

int sl_half_weights_mark(struct sl_graph *graph, uint32_t weights, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < graph->n_nodes && weights != SL_WEIGHTS_FP32 && r == 0; i++) {
                struct sl_node *node = &graph->nodes[i];
                uint32_t dtype = dtype_for(graph, node, weights);

                if (dtype && sl_attrs_set_int(&node->attrs, SL_ATTR_WEIGHTS, dtype) < 0)
                        r = sl_error_set(error, ENOSPC, "node \"%s\" has no room for an attribute more", node->name);
                for (uint32_t b = 0; b < node->n_bodies && !node->dead && r == 0; b++)
                        r = sl_half_weights_mark(node->bodies[b], weights, error);
        }
        return r;
}

bool sl_half_weights_overflow(const struct sl_node *node)
{
        return sl_attrs_int(&node->attrs, SL_ATTR_WEIGHTS, SL_DTYPE_NONE) == SL_DTYPE_F32;
}
