/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CumSum and CumProd of PLAIN tensors, [outer, size, inner] along size. Each column runs by itself in the order of `ref`, floats in
 * double and integers in 64 bits that wrap, so that no bit differs; side by side go 64 columns, or eight rows.
 */
#include "cpu/reduce/loops.h"
#include "shape/rules.h"

#define COLUMNS  64
#define TOGETHER 8

struct running {
        int64_t outer, size, inner, bytes;
        bool exclusive, backward;
        void (*run)(const struct running *r, int64_t row, int64_t step, int width, const void *in, void *out);
};

#define PLUS(a, b)  ((a) + (b))
#define TIMES(a, b) ((a) * (b))

/* Value i of column j lies at i * @row + j * @step. */
#define DEFINE_RUNNING(name, T, A, START, JOIN)                                                                                    \
        static inline __attribute__((always_inline)) void along_##name(                                                            \
                const struct running *r, int64_t row, int64_t step, int width, const T *x, T *y, bool exclusive)                   \
        {                                                                                                                          \
                A sums[COLUMNS];                                                                                                   \
                                                                                                                                   \
                for (int j = 0; j < width; j++)                                                                                    \
                        sums[j] = START;                                                                                           \
                for (int64_t k = 0; k < r->size; k++) {                                                                            \
                        int64_t at = (r->backward ? r->size - 1 - k : k) * row;                                                    \
                                                                                                                                   \
                        for (int j = 0; j < width; j++) {                                                                          \
                                A with = JOIN(sums[j], (A)x[at + j * step]);                                                       \
                                                                                                                                   \
                                y[at + j * step] = (T)(exclusive ? sums[j] : with);                                                \
                                sums[j] = with;                                                                                    \
                        }                                                                                                          \
                }                                                                                                                  \
        }                                                                                                                          \
                                                                                                                                   \
        SL_CPU_CLONES static void name(const struct running *r, int64_t row, int64_t step, int width, const void *in, void *out)   \
        {                                                                                                                          \
                if (width == COLUMNS && !r->exclusive)                                                                             \
                        along_##name(r, row, 1, COLUMNS, in, out, false);                                                          \
                else if (width == TOGETHER && row == 1 && !r->exclusive)                                                           \
                        along_##name(r, 1, step, TOGETHER, in, out, false);                                                        \
                else                                                                                                               \
                        along_##name(r, row, step, width, in, out, r->exclusive);                                                  \
        }

DEFINE_RUNNING(sum_f32, float, double, 0, PLUS)
DEFINE_RUNNING(sum_f64, double, double, 0, PLUS)
DEFINE_RUNNING(sum_i32, int32_t, uint64_t, 0, PLUS)
DEFINE_RUNNING(sum_i64, int64_t, uint64_t, 0, PLUS)
DEFINE_RUNNING(product_f32, float, double, 1, TIMES)
DEFINE_RUNNING(product_f64, double, double, 1, TIMES)
DEFINE_RUNNING(product_i32, int32_t, uint64_t, 1, TIMES)
DEFINE_RUNNING(product_i64, int64_t, uint64_t, 1, TIMES)

static bool running_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0];
        bool products = node->op == SL_OP_CUM_PROD;
        struct running *r = state;
        uint32_t axis;

        (void)sizes;
        if (sl_cpu_input(node, 1) || x->layout != SL_LAYOUT_PLAIN || node->outputs[0].layout != SL_LAYOUT_PLAIN ||
                sl_cpu_is_empty(x) || sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), x->shape.rank, &axis, NULL))
                return false;
        r->outer = r->inner = 1;
        for (uint32_t d = 0; d < x->shape.rank; d++) {
                r->outer *= d < axis ? x->shape.dims[d] : 1;
                r->inner *= d > axis ? x->shape.dims[d] : 1;
        }
        r->size = x->shape.dims[axis];
        r->bytes = (int64_t)sl_dtype_bytes(x->dtype);
        r->exclusive = sl_attrs_int(&node->attrs, SL_ATTR_EXCLUSIVE, 0);
        r->backward = sl_attrs_int(&node->attrs, SL_ATTR_REVERSE, 0);
        r->run = x->dtype == SL_DTYPE_F32   ? products ? product_f32 : sum_f32
                 : x->dtype == SL_DTYPE_F64 ? products ? product_f64 : sum_f64
                 : x->dtype == SL_DTYPE_I32 ? products ? product_i32 : sum_i32
                 : x->dtype == SL_DTYPE_I64 ? products ? product_i64 : sum_i64
                                            : NULL;
        return r->run;
}

static void run_columns(const struct running *r, const struct sl_binding *binding, int64_t row, int64_t step, int width, int64_t at)
{
        r->run(r, row, step, width, (const char *)binding->inputs[0] + at * r->bytes, (char *)binding->outputs[0] + at * r->bytes);
}

static int64_t inner_units(const struct running *r)
{
        return (r->inner + COLUMNS - 1) / COLUMNS;
}

static int running_run(const void *state, const struct sl_binding *binding)
{
        const struct running *r = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, r->outer);
        struct sl_part columns = sl_part_along(binding->part, SL_AXIS_COLUMNS, inner_units(r));

        for (int64_t o = rows.first, n; o < rows.end && r->inner == 1 && columns.end > columns.first; o += n) {
                n = rows.end - o < TOGETHER ? rows.end - o : TOGETHER;
                run_columns(r, binding, 1, r->size, (int)n, o * r->size);
        }
        for (int64_t o = rows.first; o < rows.end && r->inner > 1; o++)
                for (int64_t c = columns.first * COLUMNS; c < columns.end * COLUMNS && c < r->inner; c += COLUMNS) {
                        int width = (int)(r->inner - c < COLUMNS ? r->inner - c : COLUMNS);

                        run_columns(r, binding, r->inner, 1, width, o * r->size * r->inner + c);
                }
        return 0;
}

static int64_t running_units(const void *state, uint32_t axis)
{
        const struct running *r = state;

        return axis == SL_AXIS_ROWS ? r->outer : inner_units(r);
}

static bool running_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct running *r = state;

        if (operand != 0 && operand != SL_REACH_OUTPUT)
                return false;
        if (part->axis == SL_AXIS_ROWS)
                return sl_reach_rows(part, r->size * r->inner * r->bytes, ret_reach);
        return sl_reach_columns(part, COLUMNS * r->bytes, r->inner * r->bytes, r->outer * r->size, ret_reach);
}

const struct sl_cpu_loop sl_cpu_running = {.state_bytes = sizeof(struct running),
        .plan = running_plan,
        .run = running_run,
        .units = running_units,
        .reach = running_reach};
