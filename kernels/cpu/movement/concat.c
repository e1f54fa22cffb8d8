/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Concat of tensors of one layout: a row of the output is a row of each input, one behind the other. Rows are written in order, so
 * that the output is one stream, however many inputs there are; where those of the inputs are a few bytes, blocks of rows are.
 * Mixtures of layouts are sl_cpu_copy's.
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

/* Along rows all inputs, along columns some of them. */
static struct sl_part inputs_of(const struct concat *c, const struct sl_part *part)
{
        return sl_part_along(part, SL_AXIS_COLUMNS, c->n_inputs);
}

static int64_t bytes_up_to(const struct concat *c, int64_t end)
{
        int64_t bytes = 0;

        for (int64_t i = 0; i < end; i++)
                bytes += (int64_t)c->row_bytes[i];
        return bytes;
}

#define NARROW      16   /* bytes of an input's row that are moved without a call */
#define BLOCK_BYTES 8192 /* of the output, which stay in the L1 cache while one input after the other is written to them */

#define PLACE(size)                                                                                                                \
        case size:                                                                                                                 \
                for (int64_t r = 0; r < rows; r++)                                                                                 \
                        memcpy(to + r * pitch, from + r * (size), size);                                                           \
                return

/* The rows of one input, @size bytes each, to rows that are @pitch bytes apart. */
static void place_rows(int64_t rows, size_t size, char *restrict to, int64_t pitch, const char *restrict from)
{
        switch (size) {
                PLACE(1);
                PLACE(2);
                PLACE(4);
                PLACE(8);
                PLACE(12);
                PLACE(16);
        default:
                for (int64_t r = 0; r < rows; r++)
                        memcpy(to + r * pitch, from + (size_t)r * size, size);
        }
}

static bool is_narrow(const struct concat *c, const struct sl_part *inputs)
{
        for (int64_t i = inputs->first; i < inputs->end; i++)
                if (c->row_bytes[i] > NARROW)
                        return false;
        return true;
}

static void run_narrow(const struct concat *c, const struct sl_binding *binding, struct sl_part rows, struct sl_part inputs)
{
        int64_t row_bytes = bytes_up_to(c, c->n_inputs), block = BLOCK_BYTES / (row_bytes + 1) + 1;

        for (int64_t r = rows.first, n; r < rows.end; r += n) {
                char *to = (char *)binding->outputs[0] + r * row_bytes + bytes_up_to(c, inputs.first);

                n = rows.end - r < block ? rows.end - r : block;
                for (int64_t i = inputs.first; i < inputs.end; i++) {
                        place_rows(
                                n, c->row_bytes[i], to, row_bytes, (const char *)binding->inputs[i] + (size_t)r * c->row_bytes[i]);
                        to += c->row_bytes[i];
                }
        }
}

static int concat_run(const void *state, const struct sl_binding *binding)
{
        const struct concat *c = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, c->rows), inputs = inputs_of(c, binding->part);
        int64_t row_bytes = bytes_up_to(c, c->n_inputs);
        char *row = (char *)binding->outputs[0] + rows.first * row_bytes + bytes_up_to(c, inputs.first);

        if (is_narrow(c, &inputs)) {
                run_narrow(c, binding, rows, inputs);
                return 0;
        }
        for (int64_t r = rows.first; r < rows.end; r++, row += row_bytes) {
                char *to = row;

                for (int64_t i = inputs.first; i < inputs.end; i++) {
                        memcpy(to, (const char *)binding->inputs[i] + (size_t)r * c->row_bytes[i], c->row_bytes[i]);
                        to += c->row_bytes[i];
                }
        }
        return 0;
}

static int64_t concat_units(const void *state, uint32_t axis)
{
        const struct concat *c = state;

        return axis == SL_AXIS_ROWS ? c->rows : c->n_inputs;
}

static bool concat_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct concat *c = state;
        struct sl_part inputs = inputs_of(c, part), rows = sl_part_along(part, SL_AXIS_ROWS, c->rows);
        int64_t row_bytes = bytes_up_to(c, c->n_inputs), first = bytes_up_to(c, inputs.first);

        if (operand != SL_REACH_OUTPUT) {
                rows.end = (int64_t)operand >= inputs.first && (int64_t)operand < inputs.end ? rows.end : rows.first;
                return sl_reach_rows(&rows, operand < c->n_inputs ? (int64_t)c->row_bytes[operand] : 0, ret_reach);
        }
        if (part->axis == SL_AXIS_ROWS)
                return sl_reach_rows(part, row_bytes, ret_reach);
        *ret_reach = (struct sl_reach){.first = first,
                .bytes = bytes_up_to(c, inputs.end) - first,
                .pitch = row_bytes,
                .runs = inputs.end > inputs.first ? c->rows : 0};
        return true;
}

const struct sl_cpu_loop sl_cpu_concat = {.state_bytes = sizeof(struct concat),
        .plan = concat_plan,
        .run = concat_run,
        .units = concat_units,
        .reach = concat_reach,
        .instead = &sl_cpu_copy};
