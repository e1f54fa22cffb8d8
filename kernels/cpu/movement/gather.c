/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gather: rows of input 0 by the indices of input 1. Each index is checked where it is used: it may come from a client. A constant
 * table of float32 may lie in halves (base/narrow.h): its rows are widened as they are copied.
 */
#include "cpu/base/bfloat16.h"
#include "cpu/base/float16.h"
#include "cpu/base/narrow.h"
#include "cpu/movement/loops.h"
#include "shape/rules.h"

#include <errno.h>
#include <string.h>

struct gather {
        int64_t outer, rows, indices;
        size_t row_bytes, from_bytes; /* of a row of the output, and as it lies in the table */
        uint32_t wide;                /* indices are int64, else int32 */
        uint32_t narrow;              /* what the table lies in: SL_DTYPE_F16, SL_DTYPE_BF16; NONE: as it is */
};

static bool gather_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *data = &node->inputs[0], *indices = &node->inputs[1];
        struct gather *g = state;
        uint32_t axis;

        (void)sizes;
        if (node->n_inputs != 2 || data->layout != SL_LAYOUT_PLAIN || indices->layout != SL_LAYOUT_PLAIN ||
                node->outputs[0].layout != SL_LAYOUT_PLAIN)
                return false;
        if (indices->dtype != SL_DTYPE_I64 && indices->dtype != SL_DTYPE_I32)
                return false;
        if (sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), data->shape.rank, &axis, NULL))
                return false;
        g->outer = 1;
        g->rows = data->shape.dims[axis];
        g->indices = (int64_t)sl_shape_elements(&indices->shape);
        g->row_bytes = sl_dtype_bytes(data->dtype);
        g->wide = indices->dtype == SL_DTYPE_I64;
        for (uint32_t d = 0; d < data->shape.rank; d++) {
                if (d < axis)
                        g->outer *= data->shape.dims[d];
                if (d > axis)
                        g->row_bytes *= (size_t)data->shape.dims[d];
        }
        g->from_bytes = g->row_bytes;
        return g->row_bytes || sl_dtype_bytes(data->dtype);
}

static bool narrow_gather_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct gather *g = state;

        if (!gather_plan(node, state, sizes))
                return false;
        g->narrow = sl_narrow_dtype(node, 0, (int64_t)sl_shape_elements(&node->inputs[0].shape));
        return g->narrow != SL_DTYPE_NONE;
}

static void narrow_gather_weights(void *state, const struct sl_packed *packed)
{
        struct gather *g = state;

        if (packed && packed[0].data_bytes)
                g->from_bytes = g->row_bytes / 2;
        else
                g->narrow = SL_DTYPE_NONE;
}

SL_CPU_CLONES static void widen_f16(float *restrict to, const uint16_t *restrict from, size_t n)
{
        for (size_t i = 0; i < n; i++)
                to[i] = sl_widen_f16(from[i]);
}

SL_CPU_CLONES static void widen_bf16(float *restrict to, const uint16_t *restrict from, size_t n)
{
        for (size_t i = 0; i < n; i++)
                to[i] = sl_widen_bf16(from[i]);
}

/* @rows that follow each other. */
static void move_rows(const struct gather *g, char *to, const char *from, int64_t rows)
{
        size_t bytes = (size_t)rows * g->row_bytes;

        if (g->narrow == SL_DTYPE_F16)
                widen_f16((float *)(void *)to, (const uint16_t *)(const void *)from, bytes / sizeof(float));
        else if (g->narrow == SL_DTYPE_BF16)
                widen_bf16((float *)(void *)to, (const uint16_t *)(const void *)from, bytes / sizeof(float));
        else
                memcpy(to, from, bytes);
}

static int64_t index_at(const struct gather *g, const void *indices, int64_t i)
{
        return g->wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

/* Where the indices are rows one behind another, inside the data: the first of them, read once; else -1. */
static int64_t start_of_run(const struct gather *g, const void *indices)
{
        int64_t first = g->indices ? index_at(g, indices, 0) : -1;

        if (first < 0 || first > g->rows - g->indices)
                return -1;
        for (int64_t i = 1; i < g->indices; i++) {
                if (index_at(g, indices, i) != first + i)
                        return -1;
        }
        return first;
}

/* What the indices from @first to @end name, of one slice. */
static int copy_rows(const struct gather *g, char *y, const char *x, const void *indices, int64_t first, int64_t end)
{
        for (int64_t i = first; i < end; i++, y += g->row_bytes) {
                int64_t index = index_at(g, indices, i);

                if (index < -g->rows || index >= g->rows)
                        return -ERANGE;
                move_rows(g, y, x + (size_t)(index < 0 ? index + g->rows : index) * g->from_bytes, 1);
        }
        return 0;
}

/* Rows of the output, those of a slice behind each other. */
static int gather_run(const void *state, const struct sl_binding *binding)
{
        const struct gather *g = state;
        int64_t start = g->outer > 1 ? start_of_run(g, binding->inputs[1]) : -1;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, g->outer * g->indices);
        char *y = (char *)binding->outputs[0] + (size_t)rows.first * g->row_bytes;
        int result = 0;

        for (int64_t r = rows.first, n; r < rows.end && !result; r += n, y += (size_t)n * g->row_bytes) {
                const char *x = (const char *)binding->inputs[0] + (size_t)(r / g->indices * g->rows) * g->from_bytes;
                int64_t first = r % g->indices;

                n = g->indices - first < rows.end - r ? g->indices - first : rows.end - r;
                if (start >= 0)
                        move_rows(g, y, x + (size_t)(start + first) * g->from_bytes, n);
                else
                        result = copy_rows(g, y, x, binding->inputs[1], first, first + n);
        }
        return result;
}

static int64_t gather_units(const void *state, uint32_t axis)
{
        const struct gather *g = state;

        return axis == SL_AXIS_ROWS ? g->outer * g->indices : 0;
}

/* Any row is read. */
static bool gather_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct gather *g = state;

        return operand == SL_REACH_OUTPUT && sl_reach_rows(part, (int64_t)g->row_bytes, ret_reach);
}

const struct sl_cpu_loop sl_cpu_gather = {
        .state_bytes = sizeof(struct gather), .plan = gather_plan, .run = gather_run, .units = gather_units, .reach = gather_reach};

static bool narrow_gather_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        int64_t elements = (int64_t)sl_shape_elements(&node->inputs[0].shape);

        if (index == 0)
                sl_cpu_form_narrow(
                        ret_packed, "table", (int64_t[]){elements, 0, 0, 0}, elements, sl_narrow_dtype(node, 0, elements));
        return index == 0;
}

static int narrow_gather_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        int64_t elements = (int64_t)sl_shape_elements(&node->inputs[index].shape);

        return sl_narrow(sl_narrow_dtype(node, index, elements), plain, elements, ret_data);
}

/* There is no other way to have the table so. */
static double narrow_gather_seconds(const struct sl_core_figures *core, const void *state)
{
        (void)core;
        (void)state;
        return 0;
}

const struct sl_cpu_loop sl_cpu_narrow_gather = {.state_bytes = sizeof(struct gather),
        .plan = narrow_gather_plan,
        .run = gather_run,
        .units = gather_units,
        .reach = gather_reach,
        .form = narrow_gather_form,
        .repack = narrow_gather_repack,
        .weights = narrow_gather_weights,
        .seconds = narrow_gather_seconds};
