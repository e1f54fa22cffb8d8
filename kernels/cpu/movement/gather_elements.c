/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GatherElements: an element of input 0 for each index of input 1, in any layout. Each index is checked where it is used: it may
 * come from a client.
 */
#include "cpu/base/walk.h"
#include "cpu/movement/loops.h"
#include "shape/rules.h"

#include <errno.h>

/* The walk is over the result, the indices, and the data as if it had no axis. */
enum { RESULT, INDICES, DATA, TENSORS };

struct gather_elements {
        size_t bytes;
        bool wide; /* indices are int64, else int32 */
        int64_t axis_size, axis_stride;
        struct sl_walk walk;
};

static bool gather_elements_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *data = &node->inputs[0], *indices = &node->inputs[1];
        struct gather_elements *g = state;
        struct sl_walk *walk = &g->walk;
        uint32_t axis;

        (void)sizes;
        if (indices->dtype != SL_DTYPE_I64 && indices->dtype != SL_DTYPE_I32)
                return false;
        if (sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), data->shape.rank, &axis, NULL))
                return false;
        walk->rank = indices->shape.rank;
        walk->n_tensors = TENSORS;
        for (uint32_t d = 0; d < walk->rank; d++)
                walk->sizes[d] = indices->shape.dims[d];
        sl_tensor_strides(&node->outputs[0], walk->strides[RESULT]);
        sl_tensor_strides(indices, walk->strides[INDICES]);
        sl_tensor_strides(data, walk->strides[DATA]);
        g->bytes = sl_dtype_bytes(data->dtype);
        g->wide = indices->dtype == SL_DTYPE_I64;
        g->axis_size = data->shape.dims[axis];
        g->axis_stride = walk->strides[DATA][axis];
        walk->strides[DATA][axis] = 0;
        sl_walk_order(walk);
        return g->bytes > 0;
}

#define DEFINE_GATHER(name, type, index_type)                                                                                      \
        static int name(const struct gather_elements *g, type *y, const index_type *indices, const type *x)                        \
        {                                                                                                                          \
                int64_t n = sl_walk_row_length(&g->walk), across = sl_walk_row_stride(&g->walk, DATA);                             \
                int64_t y_step = sl_walk_row_stride(&g->walk, RESULT), i_step = sl_walk_row_stride(&g->walk, INDICES);             \
                                                                                                                                   \
                for (int64_t i = 0; i < n; i++) {                                                                                  \
                        int64_t index = indices[i * i_step];                                                                       \
                                                                                                                                   \
                        if (index < -g->axis_size || index >= g->axis_size)                                                        \
                                return -ERANGE;                                                                                    \
                        index += index < 0 ? g->axis_size : 0;                                                                     \
                        y[i * y_step] = x[i * across + index * g->axis_stride];                                                    \
                }                                                                                                                  \
                return 0;                                                                                                          \
        }

#define DEFINE_GATHERS(bits)                                                                                                       \
        DEFINE_GATHER(gather_##bits##_wide, uint##bits##_t, int64_t)                                                               \
        DEFINE_GATHER(gather_##bits, uint##bits##_t, int32_t)                                                                      \
        static int gather_row_##bits(const struct gather_elements *g, const struct sl_walk_row *row, const struct sl_binding *b)   \
        {                                                                                                                          \
                uint##bits##_t *y = (uint##bits##_t *)b->outputs[0] + row->offset[RESULT];                                         \
                const uint##bits##_t *x = (const uint##bits##_t *)b->inputs[0] + row->offset[DATA];                                \
                                                                                                                                   \
                if (g->wide)                                                                                                       \
                        return gather_##bits##_wide(g, y, (const int64_t *)b->inputs[1] + row->offset[INDICES], x);                \
                return gather_##bits(g, y, (const int32_t *)b->inputs[1] + row->offset[INDICES], x);                               \
        }

DEFINE_GATHERS(8)
DEFINE_GATHERS(16)
DEFINE_GATHERS(32)
DEFINE_GATHERS(64)

static int gather_row(const struct gather_elements *g, const struct sl_walk_row *row, const struct sl_binding *binding)
{
        switch (g->bytes) {
        case 1:
                return gather_row_8(g, row, binding);
        case 2:
                return gather_row_16(g, row, binding);
        case 4:
                return gather_row_32(g, row, binding);
        default:
                return gather_row_64(g, row, binding);
        }
}

static int gather_elements_run(const void *state, const struct sl_binding *binding)
{
        const struct gather_elements *all = state;
        struct gather_elements own = *all;
        struct sl_walk_row row;
        struct sl_walk room;
        int r;

        own.walk = *sl_walk_take(&all->walk, binding->part, &room, &row);
        if (sl_walk_is_empty(&own.walk))
                return 0;
        do
                r = gather_row(&own, &row, binding);
        while (!r && sl_walk_next(&own.walk, &row, 1));
        return r;
}

static int64_t gather_elements_units(const void *state, uint32_t axis)
{
        const struct gather_elements *g = state;

        return sl_walk_units(&g->walk, axis);
}

/* Of the data any element is read. */
static bool gather_elements_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct gather_elements *g = state;

        if (operand == SL_REACH_OUTPUT)
                return sl_walk_reach(&g->walk, part, RESULT, (int64_t)g->bytes, ret_reach);
        return operand == 1 && sl_walk_reach(&g->walk, part, INDICES, g->wide ? 8 : 4, ret_reach);
}

const struct sl_cpu_loop sl_cpu_gather_elements = {.state_bytes = sizeof(struct gather_elements),
        .plan = gather_elements_plan,
        .run = gather_elements_run,
        .units = gather_elements_units,
        .reach = gather_elements_reach};
