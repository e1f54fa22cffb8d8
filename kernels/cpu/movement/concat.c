/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Concat of tensors of one layout: a row of the output is a row of each input, one behind the other. Rows are written in order, so
 * that the output is one stream, however many inputs there are. Mixtures of layouts are sl_cpu_copy's.
 */
#include "cpu/movement/loops.h"
#include "shape/rules.h"

#include <stddef.h>
#include <string.h>

struct concat {
        int64_t rows;
        uint32_t n_inputs;
        size_t row_bytes[SL_NODE_INPUTS_MAX];
};

/* Dimensions in the order in which they lie in memory, and the place of @axis among them. */
static uint32_t order_dims(const struct sl_tensor *tensor, uint32_t axis, int64_t ret_dims[SL_RANK_MAX])
{
        uint32_t rank = tensor->shape.rank;
        bool last = tensor->layout == SL_LAYOUT_CHANNELS_LAST && rank >= 3;

        for (uint32_t d = 0; d < rank; d++)
                ret_dims[last && d > 1 ? d - 1 : last && d == 1 ? rank - 1 : d] = tensor->shape.dims[d];
        return last && axis > 1 ? axis - 1 : last && axis == 1 ? rank - 1 : axis;
}

static bool concat_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *y = &node->outputs[0];
        struct concat *c = state;
        int64_t dims[SL_RANK_MAX];
        uint32_t axis;

        if (sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), y->shape.rank, &axis, NULL))
                return false;
        c->rows = 1;
        for (uint32_t d = 0, at = order_dims(y, axis, dims); d < at; d++)
                c->rows *= dims[d];
        c->n_inputs = node->n_inputs;
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                const struct sl_tensor *x = &node->inputs[i];

                if (!sl_cpu_same_layout(x, y) || x->dtype != y->dtype)
                        return false;
                c->row_bytes[i] = c->rows ? sl_tensor_bytes(x) / (size_t)c->rows : 0;
        }
        sizes->state_bytes = offsetof(struct concat, row_bytes) + c->n_inputs * sizeof(c->row_bytes[0]);
        return true;
}

static int concat_run(const void *state, const struct sl_binding *binding)
{
        const struct concat *c = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, c->rows);
        char *to = binding->outputs[0];

        for (uint32_t i = 0; i < c->n_inputs; i++)
                to += (size_t)rows.first * c->row_bytes[i];
        for (int64_t r = rows.first; r < rows.end; r++)
                for (uint32_t i = 0; i < c->n_inputs; i++) {
                        memcpy(to, (const char *)binding->inputs[i] + (size_t)r * c->row_bytes[i], c->row_bytes[i]);
                        to += c->row_bytes[i];
                }
        return 0;
}

static int64_t concat_units(const void *state, uint32_t axis)
{
        const struct concat *c = state;

        return axis == SL_AXIS_ROWS ? c->rows : 0;
}

static bool concat_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct concat *c = state;
        int64_t row_bytes = 0;

        for (uint32_t i = 0; i < c->n_inputs; i++)
                row_bytes += operand == SL_REACH_OUTPUT || operand == i ? (int64_t)c->row_bytes[i] : 0;
        return sl_reach_rows(part, row_bytes, ret_reach);
}

const struct sl_cpu_loop sl_cpu_concat = {.state_bytes = sizeof(struct concat),
        .plan = concat_plan,
        .run = concat_run,
        .units = concat_units,
        .reach = concat_reach,
        .instead = &sl_cpu_copy};
