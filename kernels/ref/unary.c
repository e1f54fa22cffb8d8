#include "element.h"
#include "kernels.h"

/* Attributes, read once per launch. */
struct unary {
        uint32_t op, dtype;
        double alpha, beta, min, max;
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
                return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
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
                return clip(x, u->min, u->max);
        }
}

static uint64_t apply_unsigned(const struct unary *u, uint64_t x)
{
        uint64_t min = sl_ref_saturate(u->min, u->dtype), max = sl_ref_saturate(u->max, u->dtype);

        switch (u->op) {
        case SL_OP_NOT:
                return !x;
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
        case SL_OP_CLIP:
                x = x < min ? min : x;
                return (uint64_t)(x > max ? max : x);
        default:
                return (uint64_t)x;
        }
}

static struct unary read_unary(const struct sl_node_desc *node)
{
        double alpha = node->op == SL_OP_LEAKY_RELU ? 0.01 : node->op == SL_OP_HARD_SIGMOID ? 0.2 : 1;

        return (struct unary){
                .op = node->op,
                .dtype = node->inputs[0].dtype,
                .alpha = sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, alpha),
                .beta = sl_attrs_float(&node->attrs, SL_ATTR_BETA, 0.5),
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

        for (int64_t i = 0; i < elements; i++) {
                if (sl_dtype_is_float(u.dtype))
                        sl_ref_store(out, i, u.dtype, apply_float(&u, sl_ref_load(in, i, u.dtype)));
                else if (sl_ref_is_unsigned(u.dtype))
                        sl_ref_store_bits(out, i, u.dtype, apply_unsigned(&u, sl_ref_load_bits(in, i, u.dtype)));
                else
                        sl_ref_store_bits(out, i, u.dtype, apply_signed(&u, (int64_t)sl_ref_load_bits(in, i, u.dtype)));
        }
        return 0;
}
