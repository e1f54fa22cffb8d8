/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorScatter: rows of an update go into a cache from where each sample says, as one piece, or two where a circular cache ends.
 * Over its own cache only the update is written. A place is checked where it is used: it may come from a client.
 */
#include "cpu/movement/loops.h"
#include "shape/rules.h"

#include <errno.h>
#include <string.h>

struct tensor_scatter {
        int64_t samples, rows; /* rows: of a sample, each of which is a cache */
        int64_t cached, n;     /* elements of a row's cache and update */
        size_t bytes;          /* of such an element */
        bool told, circular;
};

static bool scatter_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *cache = &node->inputs[0];
        struct tensor_scatter *s = state;
        uint32_t axis;

        (void)sizes;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && node->inputs[i].layout != SL_LAYOUT_PLAIN)
                        return false;
        if (node->outputs[0].layout != SL_LAYOUT_PLAIN || sl_cpu_is_empty(cache) ||
                sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -2), cache->shape.rank, &axis, NULL))
                return false;
        *s = (struct tensor_scatter){.samples = cache->shape.dims[0],
                .rows = 1,
                .cached = cache->shape.dims[axis],
                .n = node->inputs[1].shape.dims[axis],
                .bytes = sl_dtype_bytes(cache->dtype),
                .told = sl_cpu_input(node, 2) != NULL,
                .circular = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0) != 0};
        for (uint32_t i = 1; i < axis; i++)
                s->rows *= cache->shape.dims[i];
        for (uint32_t i = axis + 1; i < cache->shape.rank; i++)
                s->bytes *= (size_t)cache->shape.dims[i];
        return true;
}

/* Where a sample's update begins. -ERANGE: it would reach beyond the cache. */
static int64_t start_of(const struct tensor_scatter *s, const struct sl_binding *binding, int64_t sample)
{
        int64_t start = s->told ? ((const int64_t *)binding->inputs[2])[sample] : 0;

        if (start < 0 || (!s->circular && start > s->cached - s->n))
                return -ERANGE;
        return s->circular ? start % s->cached : start;
}

static void write_row(const struct tensor_scatter *s, char *to, const char *from, int64_t start)
{
        for (int64_t i = 0, run, at = start; i < s->n; i += run, at = 0) {
                run = s->n - i < s->cached - at ? s->n - i : s->cached - at;
                memcpy(to + (size_t)at * s->bytes, from + (size_t)i * s->bytes, (size_t)run * s->bytes);
        }
}

static int scatter_run(const void *state, const struct sl_binding *binding)
{
        const struct tensor_scatter *s = state;
        struct sl_part part = sl_part_along(binding->part, SL_AXIS_ROWS, s->samples * s->rows);
        size_t row_bytes = (size_t)s->cached * s->bytes;
        bool copies = binding->outputs[0] != binding->inputs[0];

        for (int64_t row = part.first; row < part.end; row++) {
                char *to = (char *)binding->outputs[0] + (size_t)row * row_bytes;
                int64_t start = start_of(s, binding, row / s->rows);

                if (start < 0 && s->n)
                        return -ERANGE;
                if (copies)
                        memcpy(to, (const char *)binding->inputs[0] + (size_t)row * row_bytes, row_bytes);
                if (s->n)
                        write_row(s, to, (const char *)binding->inputs[1] + (size_t)(row * s->n) * s->bytes, start);
        }
        return 0;
}

static int64_t scatter_units(const void *state, uint32_t axis)
{
        const struct tensor_scatter *s = state;

        return axis == SL_AXIS_ROWS ? s->samples * s->rows : 0;
}

/* All of the places may be read. */
static bool scatter_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct tensor_scatter *s = state;

        if (operand == SL_REACH_OUTPUT || operand == 0)
                return sl_reach_rows(part, s->cached * (int64_t)s->bytes, ret_reach);
        return operand == 1 && sl_reach_rows(part, s->n * (int64_t)s->bytes, ret_reach);
}

const struct sl_cpu_loop sl_cpu_tensor_scatter = {.state_bytes = sizeof(struct tensor_scatter),
        .plan = scatter_plan,
        .run = scatter_run,
        .units = scatter_units,
        .reach = scatter_reach};
