/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/byte_epilogue.h"

#include "cpu/base/operator.h"
#include "cpu/base/vector_math.h"
#include "cpu/gemm/epilogue.h"

#include <math.h>

/* Rounding keeps the order, so that the limits of the activation and of a byte are one, in steps of the result. */
static void set_limits(struct sl_byte_epilogue *f, const struct sl_cpu_epilogue *real)
{
        float least = f->y_dtype == SL_DTYPE_I8 ? INT8_MIN : 0, most = least + UINT8_MAX;

        f->low = real->least;
        f->high = real->most;
        if (f->y_dtype == SL_DTYPE_F32)
                return;
        f->low = fminf(fmaxf(rintf(f->low * f->y_factor) + f->y_zero, least), most);
        f->high = fminf(fmaxf(rintf(f->high * f->y_factor) + f->y_zero, least), most);
}

bool sl_byte_epilogue_plan(const struct sl_node_desc *node, struct sl_byte_epilogue *ret_epilogue)
{
        const struct sl_tensor *y = &node->outputs[0], *residual = &node->inputs[node->n_inputs - 1];
        uint32_t own = node->n_inputs - (node->epilogue.has_residual ? 1 : 0);
        struct sl_node_desc bare = {.epilogue = node->epilogue};
        struct sl_cpu_epilogue real;
        struct sl_byte_epilogue epilogue = {.y_dtype = y->dtype,
                .y_factor = (float)(1.0 / sl_attrs_float(&node->attrs, SL_ATTR_Y_SCALE, 1.0)),
                .y_zero = (float)sl_attrs_int(&node->attrs, SL_ATTR_Y_ZERO, 0),
                .addend_scale = (float)sl_attrs_float(&node->attrs, SL_ATTR_ADDEND_SCALE, 1.0),
                .addend_zero = (float)sl_attrs_int(&node->attrs, SL_ATTR_ADDEND_ZERO, 0),
                .has_bias = own > 3 && node->inputs[3].dtype != SL_DTYPE_NONE,
                .has_scales = node->inputs[2].shape.dims[0] != 1};

        bare.epilogue.has_residual = 0;
        if (!sl_cpu_epilogue_plan(&bare, &real) || !(sl_cpu_is_f32(y) || sl_cpu_is_byte(y)))
                return false;
        epilogue.activation = real.activation;
        epilogue.act_a = real.act_a;
        set_limits(&epilogue, &real);
        if (node->epilogue.has_residual) {
                if (!sl_cpu_is_byte(residual) && !(sl_cpu_is_f32(residual) && sl_cpu_is_f32(y)))
                        return false;
                if (!sl_cpu_same_place(residual, y))
                        return false;
                epilogue.addend_dtype = residual->dtype;
        }
        *ret_epilogue = epilogue;
        return true;
}

/* The numbers of the columns, with nothing to look up. A byte that is stored may lie anywhere: they are copied. */
struct columns {
        float scales[SL_BYTE_COLUMNS_MAX];
        int32_t bias[SL_BYTE_COLUMNS_MAX];
};

/* The sum with its bias is exact, and rounded once; what 32 bits may not hold is WIDE. */
#define OF_SUM(i)      ((float)(sums[i] + bias[i]) * scales[i])
#define OF_WIDE_SUM(i) ((float)((double)sums[i] + (double)bias[i]) * scales[i])
#define OF_REAL(i)     (reals[i])
#define TO_REAL(value) (value)
#define TO_UNIT(value) (rintf((value)*factor) + zero)

/* A NaN becomes the least byte, and stays one as a float. */
#define BOUND_BYTE(value) value = value > low ? value : low, value = value < high ? value : high
#define BOUND_REAL(value) value = value < low ? low : value, value = value > high ? high : value

#define DEFINE_STORE(name, type, of, convert, bound, whole)                                                                        \
        SL_CPU_CLONES static void name(                                                                                            \
                const struct sl_byte_epilogue *f, const struct sl_byte_sums *b, const struct columns *columns, void *result)       \
        {                                                                                                                          \
                float low = f->low, high = f->high, factor = f->y_factor, zero = f->y_zero;                                        \
                const float *restrict scales = columns->scales;                                                                    \
                const int32_t *restrict bias = columns->bias;                                                                      \
                int64_t n = b->columns;                                                                                            \
                                                                                                                                   \
                (void)factor, (void)zero, (void)scales, (void)bias;                                                                \
                for (int64_t row = 0; row < b->rows; row++) {                                                                      \
                        const int32_t *sums = b->sums + row * b->sums_stride;                                                      \
                        const float *reals = (const float *)sums;                                                                  \
                        type *y = (type *)result + (b->row + row) * b->channels + b->column;                                       \
                                                                                                                                   \
                        (void)sums, (void)reals;                                                                                   \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                float value = convert(of(i));                                                                      \
                                                                                                                                   \
                                bound(value);                                                                                      \
                                y[i] = (type)(whole)value;                                                                         \
                        }                                                                                                          \
                }                                                                                                                  \
        }

DEFINE_STORE(store_sums_u8, uint8_t, OF_SUM, TO_UNIT, BOUND_BYTE, int32_t)
DEFINE_STORE(store_sums_i8, int8_t, OF_SUM, TO_UNIT, BOUND_BYTE, int32_t)
DEFINE_STORE(store_sums_f32, float, OF_SUM, TO_REAL, BOUND_REAL, float)
DEFINE_STORE(store_reals_u8, uint8_t, OF_REAL, TO_UNIT, BOUND_BYTE, int32_t)
DEFINE_STORE(store_reals_i8, int8_t, OF_REAL, TO_UNIT, BOUND_BYTE, int32_t)
DEFINE_STORE(store_reals_f32, float, OF_REAL, TO_REAL, BOUND_REAL, float)

/* The sums become real numbers where they lie. */
#define DEFINE_REALS(name, of)                                                                                                     \
        SL_CPU_CLONES static void name(int64_t n, int32_t *row, const struct columns *columns)                                     \
        {                                                                                                                          \
                const float *restrict scales = columns->scales;                                                                    \
                const int32_t *restrict bias = columns->bias;                                                                      \
                const int32_t *sums = row;                                                                                         \
                float *reals = (float *)row;                                                                                       \
                                                                                                                                   \
                _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                               \
                {                                                                                                                  \
                        float real = of(i);                                                                                        \
                                                                                                                                   \
                        reals[i] = real;                                                                                           \
                }                                                                                                                  \
        }

DEFINE_REALS(make_reals, OF_SUM)
DEFINE_REALS(make_reals_of_wide, OF_WIDE_SUM)

#define DEFINE_ADDEND(name, type)                                                                                                  \
        SL_CPU_CLONES static void name(int64_t n, float *restrict reals, const type *restrict addend, float scale, float zero)     \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        reals[i] += ((float)addend[i] - zero) * scale;                                                             \
        }

DEFINE_ADDEND(add_u8, uint8_t)
DEFINE_ADDEND(add_i8, int8_t)
DEFINE_ADDEND(add_f32, float)

static void add_residual(const struct sl_byte_epilogue *f, int64_t n, float *reals, const void *residual, int64_t at)
{
        if (f->addend_dtype == SL_DTYPE_U8)
                add_u8(n, reals, (const uint8_t *)residual + at, f->addend_scale, f->addend_zero);
        else if (f->addend_dtype == SL_DTYPE_I8)
                add_i8(n, reals, (const int8_t *)residual + at, f->addend_scale, f->addend_zero);
        else
                add_f32(n, reals, (const float *)residual + at, 1.0f, 0.0f);
}

#define DEFINE_ACTIVATION(name, expression)                                                                                        \
        SL_CPU_CLONES static void name(int64_t n, float *reals, float a)                                                           \
        {                                                                                                                          \
                (void)a;                                                                                                           \
                _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                               \
                {                                                                                                                  \
                        float x = reals[i];                                                                                        \
                        reals[i] = (expression);                                                                                   \
                }                                                                                                                  \
        }

DEFINE_ACTIVATION(sigmoid, sl_sigmoid(x))
DEFINE_ACTIVATION(hyperbolic_tangent, sl_tanh(x))
DEFINE_ACTIVATION(leaky_relu, x < 0.0f ? a * x : x)
DEFINE_ACTIVATION(gelu, sl_gelu(x))
DEFINE_ACTIVATION(hard_swish, sl_hard_swish(x))
DEFINE_ACTIVATION(swish, sl_swish(x, a))
DEFINE_ACTIVATION(elu, x < 0.0f ? a * (sl_exp(x) - 1.0f) : x)

static void activate(const struct sl_byte_epilogue *epilogue, int64_t n, float *reals)
{
        static void (*const functions[])(int64_t, float *, float) = {
                [SL_ACT_SIGMOID] = sigmoid,
                [SL_ACT_TANH] = hyperbolic_tangent,
                [SL_ACT_LEAKY_RELU] = leaky_relu,
                [SL_ACT_GELU_ERF] = gelu,
                [SL_ACT_HARD_SWISH] = hard_swish,
                [SL_ACT_SWISH] = swish,
                [SL_ACT_ELU] = elu,
        };

        functions[epilogue->activation](n, reals, epilogue->act_a);
}

/* What is more than a factor and limits. */
static void make_all_reals(const struct sl_byte_epilogue *f, const struct sl_byte_sums *b, const struct columns *columns, bool wide,
        const void *residual)
{
        for (int64_t row = 0; row < b->rows; row++) {
                int32_t *sums = b->sums + row * b->sums_stride;
                float *reals = (float *)sums;

                (wide ? make_reals_of_wide : make_reals)(b->columns, sums, columns);
                if (residual)
                        add_residual(f, b->columns, reals, residual, (b->row + row) * b->channels + b->column);
                if (f->activation != SL_ACT_NONE)
                        activate(f, b->columns, reals);
        }
}

static uint32_t result_index(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 ? 0 : dtype == SL_DTYPE_I8 ? 1 : 2;
}

void sl_byte_epilogue(const struct sl_byte_epilogue *f, const struct sl_byte_sums *b, const float *scales, const int32_t *bias,
        const void *residual, void *y)
{
        static void (*const stores[2][3])(
                const struct sl_byte_epilogue *, const struct sl_byte_sums *, const struct columns *, void *) = {
                {store_sums_u8, store_sums_i8, store_sums_f32},
                {store_reals_u8, store_reals_i8, store_reals_f32},
        };
        bool wide = false, reals;
        struct columns columns;

        for (int64_t i = 0; i < b->columns; i++) {
                columns.scales[i] = scales[f->has_scales ? b->column + i : 0];
                columns.bias[i] = bias ? bias[b->column + i] : 0;
                wide |= columns.bias[i] > f->bias_limit || columns.bias[i] < -f->bias_limit;
        }
        reals = wide || residual || f->activation != SL_ACT_NONE;
        if (reals)
                make_all_reals(f, b, &columns, wide, residual);
        stores[reals][result_index(f->y_dtype)](f, b, &columns, y);
}
