/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu: of each row of a matrix one end is kept, and the other is 0. */
#include "cpu/movement/loops.h"

#include <string.h>

struct trilu {
        int64_t rows, columns, all; /* of a matrix; rows of all matrices */
        int64_t diagonal;           /* from -rows to columns */
        int64_t bytes;
        bool upper;
};

static bool trilu_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0];
        int64_t k = sl_attrs_int(&node->attrs, SL_ATTR_K, 0);
        struct trilu *t = state;

        (void)sizes;
        if (sl_cpu_input(node, 1) || x->layout != SL_LAYOUT_PLAIN || node->outputs[0].layout != SL_LAYOUT_PLAIN ||
                sl_cpu_is_empty(x))
                return false;
        t->rows = x->shape.dims[x->shape.rank - 2];
        t->columns = x->shape.dims[x->shape.rank - 1];
        t->all = (int64_t)sl_shape_elements(&x->shape) / t->columns;
        t->diagonal = k > t->columns ? t->columns : k < -t->rows ? -t->rows : k;
        t->bytes = (int64_t)sl_dtype_bytes(x->dtype);
        t->upper = sl_attrs_int(&node->attrs, SL_ATTR_UPPER, 1);
        return true;
}

static int64_t within(int64_t x, int64_t most)
{
        return x < 0 ? 0 : x > most ? most : x;
}

static int trilu_run(const void *state, const struct sl_binding *binding)
{
        const struct trilu *t = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, t->all);
        int64_t row = t->columns * t->bytes;

        for (int64_t r = rows.first; r < rows.end; r++) {
                int64_t begin = t->upper ? within(r % t->rows + t->diagonal, t->columns) : 0;
                int64_t end = t->upper ? t->columns : within(r % t->rows + t->diagonal + 1, t->columns);
                const char *x = (const char *)binding->inputs[0] + r * row;
                char *y = (char *)binding->outputs[0] + r * row;

                memset(y, 0, (size_t)(begin * t->bytes));
                if (x != y)
                        memcpy(y + begin * t->bytes, x + begin * t->bytes, (size_t)((end - begin) * t->bytes));
                memset(y + end * t->bytes, 0, (size_t)(row - end * t->bytes));
        }
        return 0;
}

static int64_t trilu_units(const void *state, uint32_t axis)
{
        return axis == SL_AXIS_ROWS ? ((const struct trilu *)state)->all : 0;
}

static bool trilu_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct trilu *t = state;

        (void)operand;
        return sl_reach_rows(part, t->columns * t->bytes, ret_reach);
}

const struct sl_cpu_loop sl_cpu_trilu = {
        .state_bytes = sizeof(struct trilu), .plan = trilu_plan, .run = trilu_run, .units = trilu_units, .reach = trilu_reach};
