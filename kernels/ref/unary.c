/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"
#include "kernels.h"

/* Attributes, read once per launch. */
struct unary {
        uint32_t op, dtype;
        double alpha, beta, gamma, lambd, bias, min, max;
        bool tanh_gelu;
};

static double gelu(double x, bool tanh_form)
{
        if (tanh_form)
                return 0.5 * x * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
        return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

/* Comparisons are written so that a NaN passes through. */
static double clip(double x, double min, double max)
{
        x = x < min ? min : x;
        return x > max ? max : x;
}

static double sign(double x)
{
        return isnan(x) ? x : (double)((x > 0) - (x < 0));
}

static double softplus(double x)
{
        return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double shrink(const struct unary *u, double x)
{
        if (x < -u->lambd)
                return x + u->bias;
        return x > u->lambd ? x - u->bias : 0;
}

/* The inverse functions, and those that only activations are made of. */
static double apply_rarer(const struct unary *u, double x)
{
        switch (u->op) {
        case SL_OP_ACOS:
                return acos(x);
        case SL_OP_ACOSH:
                return acosh(x);
        case SL_OP_ASIN:
                return asin(x);
        case SL_OP_ASINH:
                return asinh(x);
        case SL_OP_ATAN:
                return atan(x);
        case SL_OP_ATANH:
                return atanh(x);
        case SL_OP_COSH:
                return cosh(x);
        case SL_OP_SINH:
                return sinh(x);
        case SL_OP_TAN:
                return tan(x);
        case SL_OP_SELU:
                return u->gamma * (x > 0 ? x : u->alpha * expm1(x));
        case SL_OP_CELU:
                return x > 0 ? x : u->alpha * expm1(x / u->alpha);
        case SL_OP_MISH:
                return x * tanh(softplus(x));
        case SL_OP_THRESHOLDED_RELU:
                return x > u->alpha ? x : 0;
        case SL_OP_SOFTSIGN:
                return x / (1 + fabs(x));
        case SL_OP_SHRINK:
                return shrink(u, x);
        default:
                return clip(x, u->min, u->max);
        }
}

static double apply_float(const struct unary *u, double x)
{
        switch (u->op) {
        case SL_OP_RELU:
                return x < 0 ? 0 : x;
        case SL_OP_LEAKY_RELU:
                return x < 0 ? u->alpha * x : x;
        case SL_OP_ELU:
                return x < 0 ? u->alpha * expm1(x) : x;
        case SL_OP_SIGMOID:
                return 1 / (1 + exp(-x));
        case SL_OP_HARD_SIGMOID:
                return clip(u->alpha * x + u->beta, 0, 1);
        case SL_OP_HARD_SWISH:
                return x * clip(x / 6 + 0.5, 0, 1);
        case SL_OP_TANH:
                return tanh(x);
        case SL_OP_SOFTPLUS:
                return softplus(x);
        case SL_OP_GELU:
                return gelu(x, u->tanh_gelu);
        case SL_OP_ERF:
                return erf(x);
        case SL_OP_EXP:
                return exp(x);
        case SL_OP_LOG:
                return log(x);
        case SL_OP_SQRT:
                return sqrt(x);
        case SL_OP_RECIPROCAL:
                return 1 / x;
        case SL_OP_NEG:
                return -x;
        case SL_OP_ABS:
                return fabs(x);
        case SL_OP_FLOOR:
                return floor(x);
        case SL_OP_CEIL:
                return ceil(x);
        case SL_OP_ROUND:
                return rint(x);
        case SL_OP_SIGN:
                return sign(x);
        case SL_OP_SIN:
                return sin(x);
        case SL_OP_COS:
                return cos(x);
        default:
                return apply_rarer(u, x);
        }
}

static uint64_t apply_unsigned(const struct unary *u, uint64_t x)
{
        uint64_t min = sl_ref_saturate(u->min, u->dtype), max = sl_ref_saturate(u->max, u->dtype);

        switch (u->op) {
        case SL_OP_NOT:
                return !x;
        case SL_OP_BITWISE_NOT:
                return ~x;
        case SL_OP_SHRINK:
                return sl_ref_saturate(shrink(u, (double)x), u->dtype);
        case SL_OP_NEG:
                return -x;
        case SL_OP_SIGN:
                return x != 0;
        case SL_OP_CLIP:
                x = x < min ? min : x;
                return x > max ? max : x;
        default:
                return x;
        }
}

static uint64_t apply_signed(const struct unary *u, int64_t x)
{
        /* In 64 bits, so that the least number of a narrow type stays negative. */
        int64_t min = (int64_t)sl_ref_saturate(u->min, SL_DTYPE_I64), max = (int64_t)sl_ref_saturate(u->max, SL_DTYPE_I64);

        switch (u->op) {
        case SL_OP_RELU:
                return x < 0 ? 0 : (uint64_t)x;
        case SL_OP_NEG:
                return -(uint64_t)x;
        case SL_OP_ABS:
                return x < 0 ? -(uint64_t)x : (uint64_t)x;
        case SL_OP_SIGN:
                return (uint64_t)((x > 0) - (x < 0));
        case SL_OP_BITWISE_NOT:
                return ~(uint64_t)x;
        case SL_OP_SHRINK:
                return sl_ref_saturate(shrink(u, (double)x), u->dtype);
        case SL_OP_CLIP:
                x = x < min ? min : x;
                return (uint64_t)(x > max ? max : x);
        default:
                return (uint64_t)x;
        }
}

/* Selu's constants are those of its paper, as near as float32 has them. */
static double default_alpha(uint32_t op)
{
        switch (op) {
        case SL_OP_LEAKY_RELU:
                return 0.01;
        case SL_OP_HARD_SIGMOID:
                return 0.2;
        case SL_OP_SELU:
                return 1.67326319217681884765625;
        default:
                return 1;
        }
}

static struct unary read_unary(const struct sl_node_desc *node)
{
        return (struct unary){
                .op = node->op,
                .dtype = node->inputs[0].dtype,
                .alpha = sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, default_alpha(node->op)),
                .beta = sl_attrs_float(&node->attrs, SL_ATTR_BETA, 0.5),
                .gamma = sl_attrs_float(&node->attrs, SL_ATTR_GAMMA, 1.05070102214813232421875),
                .lambd = sl_attrs_float(&node->attrs, SL_ATTR_LAMBD, 0.5),
                .bias = sl_attrs_float(&node->attrs, SL_ATTR_BIAS, 0),
                .min = sl_attrs_float(&node->attrs, SL_ATTR_MIN, -(double)INFINITY),
                .max = sl_attrs_float(&node->attrs, SL_ATTR_MAX, (double)INFINITY),
                .tanh_gelu = sl_attrs_int(&node->attrs, SL_ATTR_APPROXIMATE, 0),
        };
}

int sl_ref_unary(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t elements = (int64_t)sl_shape_elements(&node->inputs[0].shape);
        const struct unary u = read_unary(node);
        const void *in = binding->inputs[0];
        void *out = binding->outputs[0];

        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++) {
                if (sl_dtype_is_float(u.dtype))
                        sl_ref_store(out, i, u.dtype, apply_float(&u, sl_ref_load(in, i, u.dtype)));
                else if (sl_ref_is_unsigned(u.dtype))
                        sl_ref_store_bits(out, i, u.dtype, apply_unsigned(&u, sl_ref_load_bits(in, i, u.dtype)));
                else
                        sl_ref_store_bits(out, i, u.dtype, apply_signed(&u, (int64_t)sl_ref_load_bits(in, i, u.dtype)));
        }
        return 0;
}

int sl_ref_predicate(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t elements = (int64_t)sl_shape_elements(&node->inputs[0].shape);
        bool negative = sl_attrs_int(&node->attrs, SL_ATTR_DETECT_NEGATIVE, 1);
        bool positive = sl_attrs_int(&node->attrs, SL_ATTR_DETECT_POSITIVE, 1);
        uint8_t *out = binding->outputs[0];

        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++) {
                double x = sl_ref_load(binding->inputs[0], i, node->inputs[0].dtype);

                bool is_wanted = node->op == SL_OP_IS_NAN ? isnan(x) : isinf(x) && (x < 0 ? negative : positive);

                out[i] = is_wanted;
        }
        return 0;
}
