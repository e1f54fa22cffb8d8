/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators on two elements: arithmetic, comparisons, logic; and those that reduce many inputs by one of them. Operands broadcast
 * and may lie in any layout: all of that is in the strides of a walk. The loops promise the compiler that a row of the result
 * does not run into its operands later on; it may lie exactly on the left one.
 */
#include "cpu/base/bfloat16.h"
#include "cpu/base/walk.h"
#include "cpu/elementwise/loops.h"

#include <math.h>
#include <stddef.h>

/* One row: @n results side by side; an operand steps by 1 or stays (0), or takes any other step. */
typedef void row_function(int64_t n, void *result, const void *left, int64_t left_step, const void *right, int64_t right_step);

#define DEFINE_ROW(name, type, result_type, expression)                                                                            \
        SL_CPU_CLONES static void name(                                                                                            \
                int64_t n, void *result, const void *left, int64_t left_step, const void *right, int64_t right_step)               \
        {                                                                                                                          \
                const type *l = left, *r = right;                                                                                  \
                result_type *y = result;                                                                                           \
                                                                                                                                   \
                if (left_step == 1 && right_step == 1) {                                                                           \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                type a = l[i], b = r[i];                                                                           \
                                y[i] = (result_type)(expression);                                                                  \
                        }                                                                                                          \
                } else if (left_step == 1 && right_step == 0) {                                                                    \
                        type b = r[0];                                                                                             \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                type a = l[i];                                                                                     \
                                y[i] = (result_type)(expression);                                                                  \
                        }                                                                                                          \
                } else if (left_step == 0 && right_step == 1) {                                                                    \
                        type a = l[0];                                                                                             \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                type b = r[i];                                                                                     \
                                y[i] = (result_type)(expression);                                                                  \
                        }                                                                                                          \
                } else {                                                                                                           \
                        for (int64_t i = 0; i < n; i++) {                                                                          \
                                type a = l[i * left_step], b = r[i * right_step];                                                  \
                                y[i] = (result_type)(expression);                                                                  \
                        }                                                                                                          \
                }                                                                                                                  \
        }

/* Minimum and maximum hand a NaN on from either side, as numpy does. */
DEFINE_ROW(add_f32, float, float, a + b)
DEFINE_ROW(sub_f32, float, float, a - b)
DEFINE_ROW(mul_f32, float, float, a *b)
DEFINE_ROW(div_f32, float, float, a / b)
DEFINE_ROW(power_f32, float, float, powf(a, b))
DEFINE_ROW(min_f32, float, float, a < b || a != a ? a : b)
DEFINE_ROW(max_f32, float, float, a > b || a != a ? a : b)
DEFINE_ROW(prelu_f32, float, float, a < 0.0f ? a * b : a)
DEFINE_ROW(equal_f32, float, uint8_t, a == b)
DEFINE_ROW(greater_f32, float, uint8_t, a > b)
DEFINE_ROW(greater_or_equal_f32, float, uint8_t, a >= b)
DEFINE_ROW(less_f32, float, uint8_t, a < b)
DEFINE_ROW(less_or_equal_f32, float, uint8_t, a <= b)

/* Integers wrap around, so they are computed without a sign where that makes no difference. */
DEFINE_ROW(add_i64, uint64_t, uint64_t, a + b)
DEFINE_ROW(sub_i64, uint64_t, uint64_t, a - b)
DEFINE_ROW(mul_i64, uint64_t, uint64_t, a *b)
DEFINE_ROW(min_i64, int64_t, int64_t, a < b ? a : b)
DEFINE_ROW(max_i64, int64_t, int64_t, a > b ? a : b)
DEFINE_ROW(equal_i64, int64_t, uint8_t, a == b)
DEFINE_ROW(greater_i64, int64_t, uint8_t, a > b)
DEFINE_ROW(greater_or_equal_i64, int64_t, uint8_t, a >= b)
DEFINE_ROW(less_i64, int64_t, uint8_t, a < b)
DEFINE_ROW(less_or_equal_i64, int64_t, uint8_t, a <= b)

DEFINE_ROW(add_i32, uint32_t, uint32_t, a + b)
DEFINE_ROW(sub_i32, uint32_t, uint32_t, a - b)
DEFINE_ROW(mul_i32, uint32_t, uint32_t, a *b)
DEFINE_ROW(min_i32, int32_t, int32_t, a < b ? a : b)
DEFINE_ROW(max_i32, int32_t, int32_t, a > b ? a : b)
DEFINE_ROW(equal_i32, int32_t, uint8_t, a == b)
DEFINE_ROW(greater_i32, int32_t, uint8_t, a > b)
DEFINE_ROW(greater_or_equal_i32, int32_t, uint8_t, a >= b)
DEFINE_ROW(less_i32, int32_t, uint8_t, a < b)
DEFINE_ROW(less_or_equal_i32, int32_t, uint8_t, a <= b)

DEFINE_ROW(and_bool, uint8_t, uint8_t, (a != 0) & (b != 0))
DEFINE_ROW(or_bool, uint8_t, uint8_t, (a != 0) | (b != 0))
DEFINE_ROW(xor_bool, uint8_t, uint8_t, (a != 0) ^ (b != 0))

DEFINE_ROW(add_bf16, uint16_t, uint16_t, sl_narrow_bf16(sl_widen_bf16(a) + sl_widen_bf16(b)))
DEFINE_ROW(sub_bf16, uint16_t, uint16_t, sl_narrow_bf16(sl_widen_bf16(a) - sl_widen_bf16(b)))
DEFINE_ROW(mul_bf16, uint16_t, uint16_t, sl_narrow_bf16(sl_widen_bf16(a) * sl_widen_bf16(b)))

/* Squares are what Pow is mostly used for, and a product gives the same bits. */
static void pow_f32(int64_t n, void *result, const void *left, int64_t left_step, const void *right, int64_t right_step)
{
        if (right_step == 0 && *(const float *)right == 2.0f)
                mul_f32(n, result, left, left_step, left, left_step);
        else
                power_f32(n, result, left, left_step, right, right_step);
}

static row_function *const rows_f32[SL_OP_COUNT] = {
        [SL_OP_ADD] = add_f32,
        [SL_OP_SUB] = sub_f32,
        [SL_OP_MUL] = mul_f32,
        [SL_OP_DIV] = div_f32,
        [SL_OP_POW] = pow_f32,
        [SL_OP_PRELU] = prelu_f32,
        [SL_OP_MIN] = min_f32,
        [SL_OP_MAX] = max_f32,
        [SL_OP_SUM] = add_f32,
        [SL_OP_MEAN] = add_f32,
        [SL_OP_EQUAL] = equal_f32,
        [SL_OP_GREATER] = greater_f32,
        [SL_OP_GREATER_OR_EQUAL] = greater_or_equal_f32,
        [SL_OP_LESS] = less_f32,
        [SL_OP_LESS_OR_EQUAL] = less_or_equal_f32,
};

static row_function *const rows_bf16[SL_OP_COUNT] = {
        [SL_OP_ADD] = add_bf16,
        [SL_OP_SUB] = sub_bf16,
        [SL_OP_MUL] = mul_bf16,
};

static row_function *const rows_i64[SL_OP_COUNT] = {
        [SL_OP_ADD] = add_i64,
        [SL_OP_SUB] = sub_i64,
        [SL_OP_MUL] = mul_i64,
        [SL_OP_MIN] = min_i64,
        [SL_OP_MAX] = max_i64,
        [SL_OP_SUM] = add_i64,
        [SL_OP_EQUAL] = equal_i64,
        [SL_OP_GREATER] = greater_i64,
        [SL_OP_GREATER_OR_EQUAL] = greater_or_equal_i64,
        [SL_OP_LESS] = less_i64,
        [SL_OP_LESS_OR_EQUAL] = less_or_equal_i64,
};

static row_function *const rows_i32[SL_OP_COUNT] = {
        [SL_OP_ADD] = add_i32,
        [SL_OP_SUB] = sub_i32,
        [SL_OP_MUL] = mul_i32,
        [SL_OP_MIN] = min_i32,
        [SL_OP_MAX] = max_i32,
        [SL_OP_SUM] = add_i32,
        [SL_OP_EQUAL] = equal_i32,
        [SL_OP_GREATER] = greater_i32,
        [SL_OP_GREATER_OR_EQUAL] = greater_or_equal_i32,
        [SL_OP_LESS] = less_i32,
        [SL_OP_LESS_OR_EQUAL] = less_or_equal_i32,
};

static row_function *const rows_bool[SL_OP_COUNT] = {
        [SL_OP_AND] = and_bool,
        [SL_OP_OR] = or_bool,
        [SL_OP_XOR] = xor_bool,
};

static row_function *find_row(uint32_t op, uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                return rows_f32[op];
        case SL_DTYPE_BF16:
                return rows_bf16[op];
        case SL_DTYPE_I64:
                return rows_i64[op];
        case SL_DTYPE_I32:
                return rows_i32[op];
        case SL_DTYPE_BOOL:
                return rows_bool[op];
        default:
                return NULL;
        }
}

/* What @part has of them. */
static void walk_rows(const struct sl_walk *all, const struct sl_part *part, row_function *function, int64_t bytes,
        int64_t result_bytes, char *result, const char *left, const char *right)
{
        struct sl_walk room;
        struct sl_walk_row row;
        const struct sl_walk *walk = sl_walk_take(all, part, &room, &row);
        int64_t n = sl_walk_row_length(walk), left_step = sl_walk_row_stride(walk, 1), right_step = sl_walk_row_stride(walk, 2);

        if (sl_walk_is_empty(walk))
                return;
        do
                function(n, result + row.offset[0] * result_bytes, left + row.offset[1] * bytes, left_step,
                        right + row.offset[2] * bytes, right_step);
        while (sl_walk_next(walk, &row, 1));
}

struct binary {
        row_function *function;
        int64_t bytes, result_bytes;
        struct sl_walk walk;
};

static bool binary_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct binary *binary = state;

        (void)sizes;
        if (node->n_inputs != 2 || node->inputs[0].dtype != node->inputs[1].dtype)
                return false;
        binary->function = find_row(node->op, node->inputs[0].dtype);
        binary->bytes = (int64_t)sl_dtype_bytes(node->inputs[0].dtype);
        binary->result_bytes = (int64_t)sl_dtype_bytes(node->outputs[0].dtype);
        return binary->function && sl_walk_elements(&binary->walk, &node->outputs[0], node->inputs, 2);
}

static int binary_run(const void *state, const struct sl_binding *binding)
{
        const struct binary *b = state;

        walk_rows(&b->walk, binding->part, b->function, b->bytes, b->result_bytes, binding->outputs[0], binding->inputs[0],
                binding->inputs[1]);
        return 0;
}

static int64_t binary_units(const void *state, uint32_t axis)
{
        const struct binary *b = state;

        return sl_walk_units(&b->walk, axis);
}

static bool binary_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct binary *b = state;
        bool result = operand == SL_REACH_OUTPUT;

        return sl_walk_reach(&b->walk, part, result ? 0 : operand + 1, result ? b->result_bytes : b->bytes, ret_reach);
}

const struct sl_cpu_loop sl_cpu_binary = {
        .state_bytes = sizeof(struct binary), .plan = binary_plan, .run = binary_run, .units = binary_units, .reach = binary_reach};

/* The first step joins inputs 0 and 1; each later one joins the output so far and one more input. */
struct variadic {
        row_function *function;
        int64_t bytes, elements;
        float divisor; /* 0: none */
        uint32_t n_steps;
        struct sl_walk steps[SL_NODE_INPUTS_MAX];
};

static bool variadic_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *y = &node->outputs[0];
        struct variadic *variadic = state;

        variadic->function = find_row(node->op, node->inputs[0].dtype);
        if (!variadic->function || node->n_inputs < 2)
                return false;
        for (uint32_t i = 1; i < node->n_inputs; i++) {
                struct sl_tensor operands[2] = {i == 1 ? node->inputs[0] : *y, node->inputs[i]};

                if (node->inputs[i].dtype != node->inputs[0].dtype)
                        return false;
                if (!sl_walk_elements(&variadic->steps[variadic->n_steps++], y, operands, 2))
                        return false;
        }
        variadic->bytes = (int64_t)sl_dtype_bytes(y->dtype);
        variadic->elements = (int64_t)sl_shape_elements(&y->shape);
        variadic->divisor = node->op == SL_OP_MEAN ? (float)node->n_inputs : 0.0f;
        sizes->state_bytes = offsetof(struct variadic, steps) + variadic->n_steps * sizeof(struct sl_walk);
        return true;
}

static int variadic_run(const void *state, const struct sl_binding *binding)
{
        const struct variadic *variadic = state;
        void *y = binding->outputs[0];

        for (uint32_t i = 0; i < variadic->n_steps; i++)
                walk_rows(&variadic->steps[i], NULL, variadic->function, variadic->bytes, variadic->bytes, y,
                        i ? y : binding->inputs[0], binding->inputs[i + 1]);
        if (variadic->divisor != 0.0f)
                div_f32(variadic->elements, y, y, 1, &variadic->divisor, 0);
        return 0;
}

const struct sl_cpu_loop sl_cpu_variadic = {.state_bytes = sizeof(struct variadic), .plan = variadic_plan, .run = variadic_run};
