/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of one element that a compiler vectorises by itself, and rare ones that call the C library. Input and output have one
 * shape and layout, so both are seen flat; the output may lie exactly on the input. float16, and bfloat16 where it has no function
 * of its own, is computed in float32, in pieces.
 */
#include "cpu/base/bfloat16.h"
#include "cpu/base/vector_math.h"
#include "cpu/base/vector_math_f64.h"
#include "cpu/elementwise/loops.h"
#include "cpu/elementwise/narrow_piece.h"

#include <math.h>

typedef void flat_function(int64_t n, void *result, const void *argument, double a, double b);

/* P: the type of the parameters. */
#define DEFINE_FUNCTION(CLONES, P, name, type, expression)                                                                         \
        CLONES static void name(int64_t n, void *result, const void *argument, double first, double second)                        \
        {                                                                                                                          \
                const type *in = argument;                                                                                         \
                const P a = (P)first, b = (P)second;                                                                               \
                type *y = result;                                                                                                  \
                                                                                                                                   \
                (void)a;                                                                                                           \
                (void)b;                                                                                                           \
                _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                               \
                {                                                                                                                  \
                        type x = in[i];                                                                                            \
                        y[i] = (type)(expression);                                                                                 \
                }                                                                                                                  \
        }

#define PLAIN
#define DEFINE_FLAT(name, type, expression)  DEFINE_FUNCTION(SL_CPU_CLONES, float, name, type, expression)
#define DEFINE_F64(name, expression)         DEFINE_FUNCTION(SL_CPU_CLONES, double, name##_f64, double, expression)
#define DEFINE_CALL(name, expression)        DEFINE_FUNCTION(PLAIN, float, name, float, expression)
#define DEFINE_CALL_F64(name, expression)    DEFINE_FUNCTION(PLAIN, double, name##_f64, double, expression)
#define DEFINE_WHOLE(name, type, expression) DEFINE_FUNCTION(SL_CPU_CLONES, double, name, type, expression)

/* A parameter of an integer function: from the least to the most of the type. */
static inline int64_t bound_of(double parameter)
{
        return parameter >= 0x1p63 ? INT64_MAX : (int64_t)parameter;
}

/* The upper bound wins over a lower one that is above it; a NaN stays a NaN. */
static inline float bound(float x, float low, float high)
{
        float risen = x < low ? low : x;

        return risen > high ? high : risen;
}

static inline double bound_f64(double x, double low, double high)
{
        double risen = x < low ? low : x;

        return risen > high ? high : risen;
}

/* x * tanh(log(1 + e^x)), which is x to the last bit where e^x would be too large. */
static inline float mish_of(float x)
{
        float e = sl_exp(x < 20.0f ? x : 20.0f), n = e * (e + 2.0f);

        return x > 20.0f ? x : x * (n / (n + 2.0f));
}

static inline float shrunk(float x, float threshold, float bias)
{
        return x < -threshold ? x + bias : x > threshold ? x - bias : 0.0f;
}

DEFINE_FLAT(relu, float, x < 0.0f ? 0.0f : x)
DEFINE_FLAT(leaky_relu, float, x < 0.0f ? a * x : x)
DEFINE_FLAT(hard_sigmoid, float, bound(a *x + b, 0.0f, 1.0f))
DEFINE_FLAT(hard_swish, float, x *bound(x / 6.0f + 0.5f, 0.0f, 1.0f))
DEFINE_FLAT(clip, float, bound(x, a, b))
DEFINE_FLAT(negate, float, -x)
DEFINE_FLAT(absolute, float, fabsf(x))
DEFINE_FLAT(floors, float, floorf(x))
DEFINE_FLAT(ceils, float, ceilf(x))
DEFINE_FLAT(rounds, float, rintf(x))
DEFINE_FLAT(sign, float, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? 0.0f : x)
DEFINE_FLAT(square_root, float, sqrtf(x))
DEFINE_FLAT(reciprocal, float, 1.0f / x)
DEFINE_FLAT(error_function, float, sl_erf(x))
DEFINE_FLAT(power_of_e, float, sl_exp(x))
DEFINE_FLAT(tangent, float, sl_tanh(x))
DEFINE_FLAT(sigmoid, float, sl_sigmoid(x))
DEFINE_FLAT(gelu, float, sl_gelu(x))
DEFINE_FLAT(gelu_by_tanh, float, sl_gelu_tanh(x))
DEFINE_FLAT(sine, float, sinf(x))
DEFINE_FLAT(cosine, float, cosf(x))
DEFINE_FLAT(logarithm, float, sl_log(x))
DEFINE_FLAT(elu, float, x > 0.0f ? x : a * sl_exp_less_one(x))
DEFINE_FLAT(selu, float, x > 0.0f ? a * x : b * sl_exp_less_one(x))
DEFINE_FLAT(celu, float, x > 0.0f ? x : a * sl_exp_less_one(x / a))
DEFINE_FLAT(mish, float, mish_of(x))
DEFINE_FLAT(thresholded_relu, float, x > a ? x : 0.0f)
DEFINE_FLAT(softsign, float, x / (1.0f + fabsf(x)))
DEFINE_FLAT(shrink, float, shrunk(x, a, b))
DEFINE_FLAT(invert, uint8_t, !x)

DEFINE_FLAT(relu_bf16, uint16_t, x > 0x8000 && x <= 0xff80 ? 0 : x)
DEFINE_FLAT(clip_bf16, uint16_t, sl_narrow_bf16(bound(sl_widen_bf16(x), a, b)))
DEFINE_FLAT(tangent_bf16, uint16_t, sl_narrow_bf16(sl_tanh(sl_widen_bf16(x))))
DEFINE_FLAT(sigmoid_bf16, uint16_t, sl_narrow_bf16(sl_sigmoid(sl_widen_bf16(x))))
DEFINE_FLAT(gelu_bf16, uint16_t, sl_narrow_bf16(sl_gelu(sl_widen_bf16(x))))
DEFINE_FLAT(gelu_by_tanh_bf16, uint16_t, sl_narrow_bf16(sl_gelu_tanh(sl_widen_bf16(x))))

DEFINE_CALL(tan_of, tanf(x))
DEFINE_CALL(arc_sine, asinf(x))
DEFINE_CALL(arc_cosine, acosf(x))
DEFINE_CALL(arc_tangent, atanf(x))
DEFINE_CALL(hyperbolic_sine, sinhf(x))
DEFINE_CALL(hyperbolic_cosine, coshf(x))
DEFINE_CALL(area_sine, asinhf(x))
DEFINE_CALL(area_cosine, acoshf(x))
DEFINE_CALL(area_tangent, atanhf(x))

DEFINE_F64(relu, x < 0.0 ? 0.0 : x)
DEFINE_F64(leaky_relu, x < 0.0 ? a * x : x)
DEFINE_F64(hard_sigmoid, bound_f64(a *x + b, 0.0, 1.0))
DEFINE_F64(hard_swish, x *bound_f64(x / 6.0 + 0.5, 0.0, 1.0))
DEFINE_F64(clip, bound_f64(x, a, b))
DEFINE_F64(negate, -x)
DEFINE_F64(absolute, fabs(x))
DEFINE_F64(floors, floor(x))
DEFINE_F64(ceils, ceil(x))
DEFINE_F64(rounds, rint(x))
DEFINE_F64(sign, x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x == 0.0 ? 0.0 : x)
DEFINE_F64(square_root, sqrt(x))
DEFINE_F64(reciprocal, 1.0 / x)
DEFINE_F64(power_of_e, sl_exp_f64(x))
DEFINE_F64(sigmoid, 1.0 / (1.0 + sl_exp_f64(-x)))
DEFINE_F64(softsign, x / (1.0 + fabs(x)))
DEFINE_F64(thresholded_relu, x > a ? x : 0.0)
DEFINE_CALL_F64(tangent, tanh(x))
DEFINE_CALL_F64(error_function, erf(x))
DEFINE_CALL_F64(sine, sin(x))
DEFINE_CALL_F64(cosine, cos(x))
DEFINE_CALL_F64(logarithm, log(x))
DEFINE_CALL_F64(elu, x < 0.0 ? a * expm1(x) : x)

#define DEFINE_CLIP(name, type)                                                                                                    \
        SL_CPU_CLONES static void name(int64_t n, void *result, const void *argument, double first, double second)                 \
        {                                                                                                                          \
                const type *in = argument, least = (type)bound_of(first), most = (type)bound_of(second);                           \
                type *y = result;                                                                                                  \
                                                                                                                                   \
                _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                               \
                {                                                                                                                  \
                        type x = in[i] < least ? least : in[i];                                                                    \
                                                                                                                                   \
                        y[i] = x > most ? most : x;                                                                                \
                }                                                                                                                  \
        }

/* Integers wrap around. */
#define DEFINE_WHOLES(name, type, unsigned_type)                                                                                   \
        DEFINE_WHOLE(relu_##name, type, x < 0 ? 0 : x)                                                                             \
        DEFINE_WHOLE(negate_##name, unsigned_type, 0 - x)                                                                          \
        DEFINE_WHOLE(absolute_##name, type, x < 0 ? 0 - (unsigned_type)x : (unsigned_type)x)                                       \
        DEFINE_WHOLE(sign_##name, type, (x > 0) - (x < 0))                                                                         \
        DEFINE_WHOLE(invert_##name, unsigned_type, ~x)                                                                             \
        DEFINE_CLIP(clip_##name, type)

DEFINE_WHOLES(i64, int64_t, uint64_t)
DEFINE_WHOLES(i32, int32_t, uint32_t)
DEFINE_WHOLES(i8, int8_t, uint8_t)
DEFINE_WHOLE(invert_u8, uint8_t, ~x)
DEFINE_CLIP(clip_u8, uint8_t)

static flat_function *const functions_bf16[SL_OP_COUNT] = {
        [SL_OP_RELU] = relu_bf16,
        [SL_OP_CLIP] = clip_bf16,
        [SL_OP_TANH] = tangent_bf16,
        [SL_OP_SIGMOID] = sigmoid_bf16,
        [SL_OP_GELU] = gelu_bf16,
};

#define WHOLES(name)                                                                                                               \
        {                                                                                                                          \
                [SL_OP_RELU] = relu_##name, [SL_OP_NEG] = negate_##name, [SL_OP_ABS] = absolute_##name,                            \
                [SL_OP_SIGN] = sign_##name, [SL_OP_BITWISE_NOT] = invert_##name, [SL_OP_CLIP] = clip_##name                        \
        }

static flat_function *const functions_i64[SL_OP_COUNT] = WHOLES(i64);
static flat_function *const functions_i32[SL_OP_COUNT] = WHOLES(i32);
static flat_function *const functions_i8[SL_OP_COUNT] = WHOLES(i8);
static flat_function *const functions_u8[SL_OP_COUNT] = {[SL_OP_BITWISE_NOT] = invert_u8, [SL_OP_CLIP] = clip_u8};
static flat_function *const functions_bool[SL_OP_COUNT] = {[SL_OP_NOT] = invert};

static flat_function *const functions_f64[SL_OP_COUNT] = {
        [SL_OP_RELU] = relu_f64,
        [SL_OP_LEAKY_RELU] = leaky_relu_f64,
        [SL_OP_HARD_SIGMOID] = hard_sigmoid_f64,
        [SL_OP_HARD_SWISH] = hard_swish_f64,
        [SL_OP_CLIP] = clip_f64,
        [SL_OP_NEG] = negate_f64,
        [SL_OP_ABS] = absolute_f64,
        [SL_OP_FLOOR] = floors_f64,
        [SL_OP_CEIL] = ceils_f64,
        [SL_OP_ROUND] = rounds_f64,
        [SL_OP_SIGN] = sign_f64,
        [SL_OP_SQRT] = square_root_f64,
        [SL_OP_RECIPROCAL] = reciprocal_f64,
        [SL_OP_EXP] = power_of_e_f64,
        [SL_OP_SIGMOID] = sigmoid_f64,
        [SL_OP_SOFTSIGN] = softsign_f64,
        [SL_OP_THRESHOLDED_RELU] = thresholded_relu_f64,
        [SL_OP_TANH] = tangent_f64,
        [SL_OP_ERF] = error_function_f64,
        [SL_OP_SIN] = sine_f64,
        [SL_OP_COS] = cosine_f64,
        [SL_OP_LOG] = logarithm_f64,
        [SL_OP_ELU] = elu_f64,
};

static flat_function *const functions[SL_OP_COUNT] = {
        [SL_OP_RELU] = relu,
        [SL_OP_LEAKY_RELU] = leaky_relu,
        [SL_OP_HARD_SIGMOID] = hard_sigmoid,
        [SL_OP_HARD_SWISH] = hard_swish,
        [SL_OP_CLIP] = clip,
        [SL_OP_NEG] = negate,
        [SL_OP_ABS] = absolute,
        [SL_OP_FLOOR] = floors,
        [SL_OP_CEIL] = ceils,
        [SL_OP_ROUND] = rounds,
        [SL_OP_SIGN] = sign,
        [SL_OP_SQRT] = square_root,
        [SL_OP_RECIPROCAL] = reciprocal,
        [SL_OP_ERF] = error_function,
        [SL_OP_EXP] = power_of_e,
        [SL_OP_TANH] = tangent,
        [SL_OP_SIGMOID] = sigmoid,
        [SL_OP_GELU] = gelu,
        [SL_OP_SIN] = sine,
        [SL_OP_COS] = cosine,
        [SL_OP_LOG] = logarithm,
        [SL_OP_ELU] = elu,
        [SL_OP_SELU] = selu,
        [SL_OP_CELU] = celu,
        [SL_OP_MISH] = mish,
        [SL_OP_THRESHOLDED_RELU] = thresholded_relu,
        [SL_OP_SOFTSIGN] = softsign,
        [SL_OP_SHRINK] = shrink,
        [SL_OP_TAN] = tan_of,
        [SL_OP_ASIN] = arc_sine,
        [SL_OP_ACOS] = arc_cosine,
        [SL_OP_ATAN] = arc_tangent,
        [SL_OP_SINH] = hyperbolic_sine,
        [SL_OP_COSH] = hyperbolic_cosine,
        [SL_OP_ASINH] = area_sine,
        [SL_OP_ACOSH] = area_cosine,
        [SL_OP_ATANH] = area_tangent,
};

static flat_function *const *const functions_of[SL_DTYPE_LIMIT] = {
        [SL_DTYPE_F32] = functions,
        [SL_DTYPE_F64] = functions_f64,
        [SL_DTYPE_BF16] = functions_bf16,
        [SL_DTYPE_I64] = functions_i64,
        [SL_DTYPE_I32] = functions_i32,
        [SL_DTYPE_I8] = functions_i8,
        [SL_DTYPE_U8] = functions_u8,
        [SL_DTYPE_BOOL] = functions_bool,
};

struct unary {
        flat_function *function;
        int64_t elements, bytes;
        uint32_t narrow; /* the type of 16 bits that is computed in float32, or SL_DTYPE_NONE */
        double a, b;
};

static void read_parameters(const struct sl_node_desc *node, struct unary *unary)
{
        switch (node->op) {
        case SL_OP_LEAKY_RELU:
                unary->a = sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 0.01);
                break;
        case SL_OP_HARD_SIGMOID:
                unary->a = sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 0.2);
                unary->b = sl_attrs_float(&node->attrs, SL_ATTR_BETA, 0.5);
                break;
        case SL_OP_CLIP:
                unary->a = sl_attrs_float(&node->attrs, SL_ATTR_MIN, (double)-INFINITY);
                unary->b = sl_attrs_float(&node->attrs, SL_ATTR_MAX, (double)INFINITY);
                break;
        case SL_OP_SELU:
                unary->a = sl_attrs_float(&node->attrs, SL_ATTR_GAMMA, 1.05070102214813232421875);
                unary->b =
                        (double)((float)unary->a * (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1.67326319217681884765625));
                break;
        case SL_OP_ELU:
        case SL_OP_CELU:
        case SL_OP_THRESHOLDED_RELU:
                unary->a = sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1);
                break;
        case SL_OP_SHRINK:
                unary->a = sl_attrs_float(&node->attrs, SL_ATTR_LAMBD, 0.5);
                unary->b = sl_attrs_float(&node->attrs, SL_ATTR_BIAS, 0);
                break;
        default:
                break;
        }
}

static double least_of(uint32_t dtype)
{
        return dtype == SL_DTYPE_I64 ? -0x1p63 : dtype == SL_DTYPE_I32 ? -0x1p31 : dtype == SL_DTYPE_I8 ? -128.0 : 0.0;
}

static double most_of(uint32_t dtype)
{
        return dtype == SL_DTYPE_I64 ? 0x1p63 : dtype == SL_DTYPE_I32 ? 0x1p31 - 1 : dtype == SL_DTYPE_I8 ? 127.0 : 255.0;
}

/* Bounds of integers, of which those that are absent are the limits. False: one is not of the type. */
static bool bounds_are_whole(uint32_t dtype, struct unary *unary)
{
        if (unary->a == -(double)INFINITY)
                unary->a = least_of(dtype);
        if (unary->b == (double)INFINITY)
                unary->b = most_of(dtype);
        return unary->a >= least_of(dtype) && unary->a <= most_of(dtype) && unary->b >= least_of(dtype) &&
               unary->b <= most_of(dtype);
}

static bool unary_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        bool narrow = x->dtype == SL_DTYPE_BF16 || x->dtype == SL_DTYPE_F16;
        struct unary *unary = state;

        (void)sizes;
        if (x->dtype >= SL_DTYPE_LIMIT || y->dtype != x->dtype || !sl_cpu_same_place(x, y))
                return false;
        unary->function = functions_of[x->dtype] ? functions_of[x->dtype][node->op] : NULL;
        if (narrow && !unary->function) {
                unary->narrow = x->dtype;
                unary->function = functions[node->op];
        }
        if (node->op == SL_OP_GELU && unary->function && sl_attrs_int(&node->attrs, SL_ATTR_APPROXIMATE, 0))
                unary->function = x->dtype == SL_DTYPE_BF16 ? gelu_by_tanh_bf16 : gelu_by_tanh;
        unary->elements = (int64_t)sl_shape_elements(&x->shape);
        unary->bytes = (int64_t)sl_dtype_bytes(x->dtype);
        read_parameters(node, unary);
        if (node->op == SL_OP_CLIP && !sl_dtype_is_float(x->dtype) && !bounds_are_whole(x->dtype, unary))
                return false;
        return unary->function != NULL;
}

static void run_narrow(const struct unary *unary, int64_t n, char *result, const char *argument)
{
        float piece[SL_NARROW_PIECE];

        for (int64_t at = 0, m; at < n; at += m) {
                m = n - at < SL_NARROW_PIECE ? n - at : SL_NARROW_PIECE;
                sl_narrow_piece_load(unary->narrow, m, piece, argument + at * unary->bytes, 1);
                unary->function(m, piece, piece, unary->a, unary->b);
                sl_narrow_piece_store(unary->narrow, m, result + at * unary->bytes, piece);
        }
}

static int unary_run(const void *state, const struct sl_binding *binding)
{
        const struct unary *unary = state;
        struct sl_part part = sl_flat_part(binding->part, unary->elements);
        const char *argument = (const char *)binding->inputs[0] + part.first * unary->bytes;
        char *result = (char *)binding->outputs[0] + part.first * unary->bytes;

        if (unary->narrow)
                run_narrow(unary, part.end - part.first, result, argument);
        else
                unary->function(part.end - part.first, result, argument, unary->a, unary->b);
        return 0;
}

static int64_t unary_units(const void *state, uint32_t axis)
{
        const struct unary *unary = state;

        return sl_flat_units(unary->elements, axis);
}

static bool unary_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct unary *unary = state;

        return (operand == 0 || operand == SL_REACH_OUTPUT) && sl_flat_reach(part, unary->elements, unary->bytes, ret_reach);
}

const struct sl_cpu_loop sl_cpu_unary = {
        .state_bytes = sizeof(struct unary), .plan = unary_plan, .run = unary_run, .units = unary_units, .reach = unary_reach};
