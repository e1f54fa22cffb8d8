/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GatherND: rows of input 0 by tuples of indices. Each index is checked where it is used: it may come from a client.
 */
#include "cpu/movement/loops.h"

#include <errno.h>
#include <string.h>

struct gather_nd {
        int64_t tuples, of_batch; /* tuples of one batch */
        int64_t batch_bytes, row_bytes;
        uint32_t depth;
        bool wide;                                      /* indices are int64, else int32 */
        int64_t sizes[SL_RANK_MAX], steps[SL_RANK_MAX]; /* of what a tuple names; steps in bytes */
};

static bool gather_nd_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *data = &node->inputs[0], *indices = &node->inputs[1];
        uint32_t batch = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_BATCH_DIMS, 0), rank = data->shape.rank;
        int64_t bytes = (int64_t)sl_dtype_bytes(data->dtype), batches = 1;
        struct gather_nd *g = state;

        (void)sizes;
        if (data->layout != SL_LAYOUT_PLAIN || indices->layout != SL_LAYOUT_PLAIN || node->outputs[0].layout != SL_LAYOUT_PLAIN ||
                (indices->dtype != SL_DTYPE_I64 && indices->dtype != SL_DTYPE_I32) || sl_cpu_is_empty(data) ||
                sl_cpu_is_empty(indices) || !bytes)
                return false;
        g->depth = (uint32_t)indices->shape.dims[indices->shape.rank - 1];
        g->wide = indices->dtype == SL_DTYPE_I64;
        g->tuples = 1;
        for (uint32_t d = 0; d + 1 < indices->shape.rank; d++)
                g->tuples *= indices->shape.dims[d];
        for (uint32_t d = rank; d-- > 0; bytes *= data->shape.dims[d]) {
                if (d + 1 == batch + g->depth)
                        g->row_bytes = bytes;
                if (d + 1 == batch)
                        g->batch_bytes = bytes;
                if (d >= batch && d < batch + g->depth) {
                        g->sizes[d - batch] = data->shape.dims[d];
                        g->steps[d - batch] = bytes;
                }
                batches *= d < batch ? data->shape.dims[d] : 1;
        }
        g->of_batch = g->tuples / batches;
        return true;
}

#define DEFINE_OFFSET(name, type)                                                                                                  \
        static inline int64_t name(const struct gather_nd *g, const type *tuple)                                                   \
        {                                                                                                                          \
                int64_t at = 0;                                                                                                    \
                                                                                                                                   \
                for (uint32_t k = 0; k < g->depth; k++) {                                                                          \
                        int64_t index = tuple[k], size = g->sizes[k];                                                              \
                                                                                                                                   \
                        if (index < -size || index >= size)                                                                        \
                                return -ERANGE;                                                                                    \
                        at += (index < 0 ? index + size : index) * g->steps[k];                                                    \
                }                                                                                                                  \
                return at;                                                                                                         \
        }

DEFINE_OFFSET(offset_of_wide, int64_t)
DEFINE_OFFSET(offset_of, int32_t)

static inline void move_row(char *to, const char *from, int64_t bytes)
{
        switch (bytes) {
        case 4:
                memcpy(to, from, 4);
                break;
        case 8:
                memcpy(to, from, 8);
                break;
        default:
                memcpy(to, from, (size_t)bytes);
                break;
        }
}

static int gather_nd_run(const void *state, const struct sl_binding *binding)
{
        const struct gather_nd *g = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, g->tuples);
        const char *x = (const char *)binding->inputs[0] + rows.first / g->of_batch * g->batch_bytes;
        char *y = (char *)binding->outputs[0] + rows.first * g->row_bytes;
        int64_t left = g->of_batch - rows.first % g->of_batch;

        for (int64_t i = rows.first; i < rows.end; i++, y += g->row_bytes, left--) {
                if (!left) {
                        x += g->batch_bytes;
                        left = g->of_batch;
                }
                int64_t at = g->wide ? offset_of_wide(g, (const int64_t *)binding->inputs[1] + i * g->depth)
                                     : offset_of(g, (const int32_t *)binding->inputs[1] + i * g->depth);

                if (at < 0)
                        return (int)at;
                move_row(y, x + at, g->row_bytes);
        }
        return 0;
}

static int64_t gather_nd_units(const void *state, uint32_t axis)
{
        const struct gather_nd *g = state;

        return axis == SL_AXIS_ROWS ? g->tuples : 0;
}

/* Of the data any row is read. */
static bool gather_nd_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct gather_nd *g = state;

        if (operand == SL_REACH_OUTPUT)
                return sl_reach_rows(part, g->row_bytes, ret_reach);
        return operand == 1 && sl_reach_rows(part, g->depth * (g->wide ? 8 : 4), ret_reach);
}

const struct sl_cpu_loop sl_cpu_gather_nd = {.state_bytes = sizeof(struct gather_nd),
        .plan = gather_nd_plan,
        .run = gather_nd_run,
        .units = gather_nd_units,
        .reach = gather_nd_reach};
