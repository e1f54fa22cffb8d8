/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gather: rows of input 0 by the indices of input 1. Each index is checked where it is used: it may come from a client.
 */
#include "cpu/movement/loops.h"
#include "shape/rules.h"

#include <errno.h>
#include <string.h>

struct gather {
        int64_t outer, rows, indices;
        size_t row_bytes;
        uint32_t wide; /* indices are int64, else int32 */
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
        return g->row_bytes || sl_dtype_bytes(data->dtype);
}

static int64_t index_at(const struct gather *g, const void *indices, int64_t i)
{
        return g->wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
}

/* Are the indices rows one behind another, inside the data? */
static bool is_one_run(const struct gather *g, const void *indices)
{
        int64_t first = g->indices ? index_at(g, indices, 0) : -1;

        if (first < 0 || first > g->rows - g->indices)
                return false;
        for (int64_t i = 1; i < g->indices; i++) {
                if (index_at(g, indices, i) != first + i)
                        return false;
        }
        return true;
}

static int copy_rows(const struct gather *g, char *y, const char *x, const void *indices)
{
        for (int64_t i = 0; i < g->indices; i++) {
                int64_t index = index_at(g, indices, i);

                if (index < -g->rows || index >= g->rows)
                        return -ERANGE;
                memcpy(y + (size_t)i * g->row_bytes, x + (size_t)(index < 0 ? index + g->rows : index) * g->row_bytes,
                        g->row_bytes);
        }
        return 0;
}

static int gather_run(const void *state, const struct sl_binding *binding)
{
        const struct gather *g = state;
        const char *x = binding->inputs[0];
        char *y = binding->outputs[0];
        bool run = g->outer > 1 && is_one_run(g, binding->inputs[1]);
        size_t first = run ? (size_t)index_at(g, binding->inputs[1], 0) * g->row_bytes : 0;
        int result = 0;

        for (int64_t o = 0; o < g->outer && !result; o++) {
                if (run)
                        memcpy(y, x + first, (size_t)g->indices * g->row_bytes);
                else
                        result = copy_rows(g, y, x, binding->inputs[1]);
                x += (size_t)g->rows * g->row_bytes;
                y += (size_t)g->indices * g->row_bytes;
        }
        return result;
}

const struct sl_cpu_loop sl_cpu_gather = {.state_bytes = sizeof(struct gather), .plan = gather_plan, .run = gather_run};
