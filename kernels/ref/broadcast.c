/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of several tensors, element by element with numpy's broadcast.
 */
#include "element.h"
#include "kernels.h"
#include "walk.h"

#include <string.h>

static void walk_inputs(struct sl_ref_walk *walk, const struct sl_node_desc *node, const struct sl_binding *binding)
{
        sl_ref_walk_init(walk, &node->outputs[0].shape, node->n_inputs, binding->pace);
        for (uint32_t k = 0; k < node->n_inputs; k++)
                sl_ref_walk_broadcast(walk, k, &node->inputs[k].shape);
}

/* Of two numbers a NaN is both the smallest and the largest. */
static double fold_float(uint32_t op, double a, double b)
{
        switch (op) {
        case SL_OP_SUB:
                return a - b;
        case SL_OP_MUL:
                return a * b;
        case SL_OP_DIV:
                return a / b;
        case SL_OP_MIN:
                return isnan(a) || a < b ? a : b;
        case SL_OP_MAX:
                return isnan(a) || a > b ? a : b;
        default:
                return a + b;
        }
}

/* A division by zero gives 0, and -1 does not trap on the least number. */
static uint64_t divide_signed(int64_t a, int64_t b)
{
        if (!b)
                return 0;
        return b == -1 ? -(uint64_t)a : (uint64_t)(a / b);
}

static uint64_t fold_bits(uint32_t op, uint64_t a, uint64_t b, bool is_unsigned)
{
        bool less = is_unsigned ? a < b : (int64_t)a < (int64_t)b;

        switch (op) {
        case SL_OP_SUB:
                return a - b;
        case SL_OP_MUL:
                return a * b;
        case SL_OP_DIV:
                if (is_unsigned)
                        return b ? a / b : 0;
                return divide_signed((int64_t)a, (int64_t)b);
        case SL_OP_MIN:
                return less ? a : b;
        case SL_OP_MAX:
                return less ? b : a;
        case SL_OP_BITWISE_AND:
                return a & b;
        case SL_OP_BITWISE_OR:
                return a | b;
        case SL_OP_BITWISE_XOR:
                return a ^ b;
        default:
                return a + b;
        }
}

static void arithmetic_floats(const struct sl_node_desc *node, const struct sl_binding *binding, struct sl_ref_walk *walk)
{
        uint32_t dtype = node->inputs[0].dtype;

        for (int64_t i = 0; walk->left; sl_ref_walk_next(walk), i++) {
                double result = sl_ref_load(binding->inputs[0], walk->offsets[0], dtype);

                for (uint32_t k = 1; k < node->n_inputs; k++)
                        result = fold_float(node->op, result, sl_ref_load(binding->inputs[k], walk->offsets[k], dtype));
                if (node->op == SL_OP_MEAN)
                        result /= node->n_inputs;
                sl_ref_store(binding->outputs[0], i, dtype, result);
        }
}

static void arithmetic_integers(const struct sl_node_desc *node, const struct sl_binding *binding, struct sl_ref_walk *walk)
{
        uint32_t dtype = node->inputs[0].dtype;
        bool is_unsigned = sl_ref_is_unsigned(dtype);

        for (int64_t i = 0; walk->left; sl_ref_walk_next(walk), i++) {
                uint64_t result = sl_ref_load_bits(binding->inputs[0], walk->offsets[0], dtype);

                for (uint32_t k = 1; k < node->n_inputs; k++)
                        result = fold_bits(
                                node->op, result, sl_ref_load_bits(binding->inputs[k], walk->offsets[k], dtype), is_unsigned);
                sl_ref_store_bits(binding->outputs[0], i, dtype, result);
        }
}

int sl_ref_arithmetic(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct sl_ref_walk walk;

        walk_inputs(&walk, node, binding);
        if (sl_dtype_is_float(node->inputs[0].dtype))
                arithmetic_floats(node, binding, &walk);
        else
                arithmetic_integers(node, binding, &walk);
        return 0;
}

/* The remainder has the sign of the divisor, or with @truncate, as C's, that of the dividend; of a division by zero it is 0. */
static uint64_t remainder_of_bits(uint64_t a, uint64_t b, bool is_unsigned, bool truncate)
{
        int64_t rest;

        if (!b || (!is_unsigned && b == UINT64_MAX))
                return 0;
        if (is_unsigned)
                return a % b;
        rest = (int64_t)a % (int64_t)b;
        if (!truncate && rest && (rest < 0) != ((int64_t)b < 0))
                rest += (int64_t)b;
        return (uint64_t)rest;
}

/* The same of floats: the quotient is rounded down, or with @truncate towards zero. */
static double remainder_of(double a, double b, bool truncate)
{
        double rest = fmod(a, b);

        if (truncate || isnan(rest))
                return rest;
        if (rest == 0)
                return copysign(0, b);
        return (rest < 0) != (b < 0) ? rest + b : rest;
}

int sl_ref_modulo(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        bool truncate = sl_attrs_int(&node->attrs, SL_ATTR_FMOD, 0), is_unsigned = sl_ref_is_unsigned(node->inputs[0].dtype);
        const void *a = binding->inputs[0], *b = binding->inputs[1];
        uint32_t dtype = node->inputs[0].dtype;
        struct sl_ref_walk walk;

        walk_inputs(&walk, node, binding);
        for (int64_t i = 0; walk.left; sl_ref_walk_next(&walk), i++) {
                const int64_t *at = walk.offsets;

                if (sl_dtype_is_float(dtype))
                        sl_ref_store(binding->outputs[0], i, dtype,
                                remainder_of(sl_ref_load(a, at[0], dtype), sl_ref_load(b, at[1], dtype), truncate));
                else
                        sl_ref_store_bits(binding->outputs[0], i, dtype,
                                remainder_of_bits(sl_ref_load_bits(a, at[0], dtype), sl_ref_load_bits(b, at[1], dtype), is_unsigned,
                                        truncate));
        }
        return 0;
}

/* By the width of the type or more, or by less than nothing, only the sign is left of a shift to the right. */
static uint64_t shifted(uint64_t x, uint64_t by, uint32_t dtype, bool right)
{
        bool is_unsigned = sl_ref_is_unsigned(dtype);

        if (by >= sl_dtype_bits(dtype))
                return right && !is_unsigned && (int64_t)x < 0 ? UINT64_MAX : 0;
        if (!right)
                return x << by;
        return is_unsigned ? x >> by : (uint64_t)((int64_t)x >> by);
}

int sl_ref_shift(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        uint32_t dtype = node->inputs[0].dtype;
        bool right = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0);
        struct sl_ref_walk walk;

        walk_inputs(&walk, node, binding);
        for (int64_t i = 0; walk.left; sl_ref_walk_next(&walk), i++) {
                uint64_t x = sl_ref_load_bits(binding->inputs[0], walk.offsets[0], dtype);
                uint64_t by = sl_ref_load_bits(binding->inputs[1], walk.offsets[1], dtype);

                sl_ref_store_bits(binding->outputs[0], i, dtype, shifted(x, by, dtype, right));
        }
        return 0;
}

/* base^exponent that wraps; what is below 1 is 0. */
static uint64_t power_of_bits(uint64_t base, uint64_t exponent, bool exponent_signed)
{
        uint64_t result = 1;

        if (exponent_signed && (int64_t)exponent < 0)
                return base == 1 ? 1 : base == UINT64_MAX ? (exponent & 1 ? base : 1) : 0;
        for (; exponent; exponent >>= 1, base *= base)
                if (exponent & 1)
                        result *= base;
        return result;
}

int sl_ref_power(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        uint32_t dtype = node->inputs[0].dtype, by = node->inputs[1].dtype;
        bool integers = !sl_dtype_is_float(dtype) && !sl_dtype_is_float(by);
        const void *base = binding->inputs[0], *exponent = binding->inputs[1];
        struct sl_ref_walk walk;

        walk_inputs(&walk, node, binding);
        for (int64_t i = 0; walk.left; sl_ref_walk_next(&walk), i++) {
                const int64_t *at = walk.offsets;

                if (integers)
                        sl_ref_store_bits(binding->outputs[0], i, dtype,
                                power_of_bits(sl_ref_load_bits(base, at[0], dtype), sl_ref_load_bits(exponent, at[1], by),
                                        !sl_ref_is_unsigned(by)));
                else
                        sl_ref_store(binding->outputs[0], i, dtype,
                                pow(sl_ref_load(base, at[0], dtype), sl_ref_load(exponent, at[1], by)));
        }
        return 0;
}

int sl_ref_prelu(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        uint32_t dtype = node->inputs[0].dtype;
        const void *in = binding->inputs[0], *slope = binding->inputs[1];
        struct sl_ref_walk walk;

        walk_inputs(&walk, node, binding);
        for (int64_t i = 0; walk.left; sl_ref_walk_next(&walk), i++) {
                const int64_t *at = walk.offsets;

                if (sl_dtype_is_float(dtype)) {
                        double x = sl_ref_load(in, at[0], dtype);

                        sl_ref_store(binding->outputs[0], i, dtype, x < 0 ? x * sl_ref_load(slope, at[1], dtype) : x);
                } else {
                        uint64_t x = sl_ref_load_bits(in, at[0], dtype);
                        bool negative = !sl_ref_is_unsigned(dtype) && (int64_t)x < 0;

                        sl_ref_store_bits(binding->outputs[0], i, dtype, negative ? x * sl_ref_load_bits(slope, at[1], dtype) : x);
                }
        }
        return 0;
}

/* @order: -1, 0, 1 for less, equal, greater; 2 for numbers that have no order. */
static bool holds(uint32_t op, int order)
{
        switch (op) {
        case SL_OP_EQUAL:
                return order == 0;
        case SL_OP_GREATER:
                return order == 1;
        case SL_OP_GREATER_OR_EQUAL:
                return order == 0 || order == 1;
        case SL_OP_LESS:
                return order == -1;
        default:
                return order == -1 || order == 0;
        }
}

static int order_of(const void *a, int64_t a_at, const void *b, int64_t b_at, uint32_t dtype)
{
        if (sl_dtype_is_float(dtype)) {
                double x = sl_ref_load(a, a_at, dtype), y = sl_ref_load(b, b_at, dtype);

                return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
        }
        uint64_t x = sl_ref_load_bits(a, a_at, dtype), y = sl_ref_load_bits(b, b_at, dtype);
        if (sl_ref_is_unsigned(dtype))
                return (x > y) - (x < y);
        return ((int64_t)x > (int64_t)y) - ((int64_t)x < (int64_t)y);
}

int sl_ref_compare(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const void *a = binding->inputs[0], *b = binding->inputs[1];
        uint32_t dtype = node->inputs[0].dtype;
        uint8_t *out = binding->outputs[0];
        struct sl_ref_walk walk;

        walk_inputs(&walk, node, binding);
        for (; walk.left; sl_ref_walk_next(&walk), out++) {
                const int64_t *at = walk.offsets;

                if (node->op == SL_OP_AND)
                        *out = sl_ref_load_bits(a, at[0], dtype) && sl_ref_load_bits(b, at[1], dtype);
                else if (node->op == SL_OP_OR)
                        *out = sl_ref_load_bits(a, at[0], dtype) || sl_ref_load_bits(b, at[1], dtype);
                else if (node->op == SL_OP_XOR)
                        *out = sl_ref_load_bits(a, at[0], dtype) != sl_ref_load_bits(b, at[1], dtype);
                else
                        *out = holds(node->op, order_of(a, at[0], b, at[1], dtype));
        }
        return 0;
}

int sl_ref_where(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        size_t bytes = sl_dtype_bytes(node->outputs[0].dtype);
        char *out = binding->outputs[0];
        struct sl_ref_walk walk;

        walk_inputs(&walk, node, binding);
        for (; walk.left; sl_ref_walk_next(&walk), out += bytes) {
                int from = sl_ref_load_bits(binding->inputs[0], walk.offsets[0], SL_DTYPE_BOOL) ? 1 : 2;

                memcpy(out, (const char *)binding->inputs[from] + walk.offsets[from] * (int64_t)bytes, bytes);
        }
        return 0;
}
