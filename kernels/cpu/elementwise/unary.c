/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of one element that a compiler vectorises by itself, and two rare ones that call the C library. Input and output have
 * one shape and layout, so both are seen flat; the output may lie exactly on the input.
 */
#include "cpu/base/bfloat16.h"
#include "cpu/base/vector_math.h"
#include "cpu/elementwise/loops.h"

#include <math.h>

typedef void flat_function(int64_t n, void *result, const void *argument, float a, float b);

#define DEFINE_FLAT(name, type, expression)                                                                                        \
        SL_CPU_CLONES static void name(int64_t n, void *result, const void *argument, float a, float b)                            \
        {                                                                                                                          \
                const type *in = argument;                                                                                         \
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

/* The upper bound wins over a lower one that is above it; a NaN stays a NaN. */
static inline float bound(float x, float low, float high)
{
        float risen = x < low ? low : x;

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
DEFINE_FLAT(sign, float, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x)
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
DEFINE_FLAT(selu, float, x > 0.0f ? a * x : b * (sl_exp(x) - 1.0f))
DEFINE_FLAT(celu, float, x > 0.0f ? x : a * (sl_exp(x / a) - 1.0f))
DEFINE_FLAT(mish, float, mish_of(x))
DEFINE_FLAT(thresholded_relu, float, x > a ? x : 0.0f)
DEFINE_FLAT(softsign, float, x / (1.0f + fabsf(x)))
DEFINE_FLAT(shrink, float, shrunk(x, a, b))
DEFINE_FLAT(invert, uint8_t, !x)

DEFINE_FLAT(relu_bf16, uint16_t, x & 0x8000 && x <= 0xff80 ? 0 : x)
DEFINE_FLAT(clip_bf16, uint16_t, sl_narrow_bf16(bound(sl_widen_bf16(x), a, b)))
DEFINE_FLAT(tangent_bf16, uint16_t, sl_narrow_bf16(sl_tanh(sl_widen_bf16(x))))
DEFINE_FLAT(sigmoid_bf16, uint16_t, sl_narrow_bf16(sl_sigmoid(sl_widen_bf16(x))))
DEFINE_FLAT(gelu_bf16, uint16_t, sl_narrow_bf16(sl_gelu(sl_widen_bf16(x))))
DEFINE_FLAT(gelu_by_tanh_bf16, uint16_t, sl_narrow_bf16(sl_gelu_tanh(sl_widen_bf16(x))))

static flat_function *const functions_bf16[SL_OP_COUNT] = {
        [SL_OP_RELU] = relu_bf16,
        [SL_OP_CLIP] = clip_bf16,
        [SL_OP_TANH] = tangent_bf16,
        [SL_OP_SIGMOID] = sigmoid_bf16,
        [SL_OP_GELU] = gelu_bf16,
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
        [SL_OP_SELU] = selu,
        [SL_OP_CELU] = celu,
        [SL_OP_MISH] = mish,
        [SL_OP_THRESHOLDED_RELU] = thresholded_relu,
        [SL_OP_SOFTSIGN] = softsign,
        [SL_OP_SHRINK] = shrink,
        [SL_OP_NOT] = invert,
};

struct unary {
        flat_function *function;
        int64_t elements, bytes;
        float a, b;
};

static void read_parameters(const struct sl_node_desc *node, struct unary *unary)
{
        switch (node->op) {
        case SL_OP_LEAKY_RELU:
                unary->a = (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 0.01);
                break;
        case SL_OP_HARD_SIGMOID:
                unary->a = (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 0.2);
                unary->b = (float)sl_attrs_float(&node->attrs, SL_ATTR_BETA, 0.5);
                break;
        case SL_OP_CLIP:
                unary->a = (float)sl_attrs_float(&node->attrs, SL_ATTR_MIN, (double)-INFINITY);
                unary->b = (float)sl_attrs_float(&node->attrs, SL_ATTR_MAX, (double)INFINITY);
                break;
        case SL_OP_SELU:
                unary->a = (float)sl_attrs_float(&node->attrs, SL_ATTR_GAMMA, 1.05070102214813232421875);
                unary->b = unary->a * (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1.67326319217681884765625);
                break;
        case SL_OP_CELU:
        case SL_OP_THRESHOLDED_RELU:
                unary->a = (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1);
                break;
        case SL_OP_SHRINK:
                unary->a = (float)sl_attrs_float(&node->attrs, SL_ATTR_LAMBD, 0.5);
                unary->b = (float)sl_attrs_float(&node->attrs, SL_ATTR_BIAS, 0);
                break;
        default:
                break;
        }
}

static bool unary_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct unary *unary = state;
        bool narrow = x->dtype == SL_DTYPE_BF16;

        (void)sizes;
        if (!narrow && x->dtype != (node->op == SL_OP_NOT ? SL_DTYPE_BOOL : SL_DTYPE_F32))
                return false;
        if (y->dtype != x->dtype || !sl_cpu_same_place(x, y))
                return false;
        unary->function = narrow ? functions_bf16[node->op] : functions[node->op];
        if (node->op == SL_OP_GELU && sl_attrs_int(&node->attrs, SL_ATTR_APPROXIMATE, 0))
                unary->function = narrow ? gelu_by_tanh_bf16 : gelu_by_tanh;
        unary->elements = (int64_t)sl_shape_elements(&x->shape);
        unary->bytes = (int64_t)sl_dtype_bytes(x->dtype);
        read_parameters(node, unary);
        return unary->function != NULL;
}

static int unary_run(const void *state, const struct sl_binding *binding)
{
        const struct unary *unary = state;
        struct sl_part part = sl_flat_part(binding->part, unary->elements);

        unary->function(part.end - part.first, (char *)binding->outputs[0] + part.first * unary->bytes,
                (const char *)binding->inputs[0] + part.first * unary->bytes, unary->a, unary->b);
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
