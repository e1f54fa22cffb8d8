/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to bytes (or floats), element by element: another scale, the sum of two, and their activation; to and from float32. What
 * an operand is beyond its zero point, which is exact, times one factor; the sum is rounded before the result's zero point comes to
 * it, which may be odd: ties go to the even number of steps.
 */
#include "cpu/base/isa.h"
#include "cpu/elementwise/loops.h"
#include "cpu/elementwise/quantize_avx512.h"

#include <math.h>

struct add {
        int64_t elements;
        float x_factor, addend_factor, x_zero, addend_zero, y_zero;
        float low, high; /* in units of the result, of bytes whole ones */
        uint32_t x_dtype, addend_dtype, y_dtype;
};

static double limit_of(const struct add *add, double units)
{
        return add->y_dtype == SL_DTYPE_F32 ? units : rint(units);
}

/* Where the activation cuts, in units of the result; false for one that does more than that. */
static bool read_limits(const struct sl_node_desc *node, double scale, double zero, struct add *add)
{
        const struct sl_epilogue *e = &node->epilogue;
        double low = add->y_dtype == SL_DTYPE_F32 ? -INFINITY : add->y_dtype == SL_DTYPE_I8 ? INT8_MIN : 0;
        double high = add->y_dtype == SL_DTYPE_F32 ? INFINITY : low + UINT8_MAX;

        if (e->activation == SL_ACT_RELU)
                low = fmax(low, zero);
        if (e->activation == SL_ACT_CLIP) {
                low = fmin(fmax(low, limit_of(add, (double)e->act_a / scale) + zero), high);
                high = fmax(fmin(high, limit_of(add, (double)e->act_b / scale) + zero), low);
        }
        add->low = (float)low;
        add->high = (float)high;
        return e->activation == SL_ACT_NONE || e->activation == SL_ACT_RELU || e->activation == SL_ACT_CLIP;
}

static bool add_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        const struct sl_tensor *addend = node->n_inputs > 1 && node->inputs[1].dtype != SL_DTYPE_NONE ? &node->inputs[1] : NULL;
        bool real = sl_cpu_is_f32(y);
        double y_scale = real ? 1.0 : sl_attrs_float(&node->attrs, SL_ATTR_Y_SCALE, 1.0);
        double y_zero = real ? 0.0 : (double)sl_attrs_int(&node->attrs, SL_ATTR_Y_ZERO, 0);
        double x_factor = sl_attrs_float(&node->attrs, SL_ATTR_X_SCALE, 1.0) / y_scale;
        double addend_factor = addend ? sl_attrs_float(&node->attrs, SL_ATTR_ADDEND_SCALE, 1.0) / y_scale : 0.0;
        struct add *add = state;

        (void)sizes;
        if (!sl_cpu_is_byte(x) || !sl_cpu_same_place(x, y) || !(real || sl_cpu_is_byte(y)) || node->epilogue.has_residual)
                return false;
        if (addend && (!sl_cpu_is_byte(addend) || !sl_cpu_same_place(addend, y)))
                return false;
        add->elements = (int64_t)sl_shape_elements(&y->shape);
        add->x_dtype = x->dtype;
        add->addend_dtype = addend ? addend->dtype : SL_DTYPE_NONE;
        add->y_dtype = y->dtype;
        add->x_factor = (float)x_factor;
        add->addend_factor = (float)addend_factor;
        add->x_zero = (float)sl_attrs_int(&node->attrs, SL_ATTR_X_ZERO, 0);
        add->addend_zero = (float)sl_attrs_int(&node->attrs, SL_ATTR_ADDEND_ZERO, 0);
        add->y_zero = (float)y_zero;
        return read_limits(node, y_scale, y_zero, add);
}

#define LIMITED(value)       ((value) < low ? low : (value) > high ? high : (value))
#define TO_BYTE(type, value) ((type)(int32_t)LIMITED(rintf(value) + y_zero))
#define TO_REAL(type, value) LIMITED(value)

/* A byte that is stored may lie anywhere, also in @s: what the loops read of it is copied. */
#define LOCAL_NUMBERS                                                                                                              \
        float x_factor = s->x_factor, x_zero = s->x_zero, y_zero = s->y_zero, low = s->low, high = s->high;                        \
        int64_t n = s->elements;                                                                                                   \
                                                                                                                                   \
        (void)y_zero

#define DEFINE_ADD(name, x_type, addend_type, y_type, convert)                                                                     \
        SL_CPU_CLONES static void add_##name(const struct add *s, void *result, const void *left, const void *right)               \
        {                                                                                                                          \
                const x_type *x = left;                                                                                            \
                const addend_type *a = right;                                                                                      \
                y_type *y = result;                                                                                                \
                float addend_factor = s->addend_factor, addend_zero = s->addend_zero;                                              \
                LOCAL_NUMBERS;                                                                                                     \
                                                                                                                                   \
                _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                               \
                {                                                                                                                  \
                        float value = ((float)x[i] - x_zero) * x_factor + ((float)a[i] - addend_zero) * addend_factor;             \
                        y[i] = convert(y_type, value);                                                                             \
                }                                                                                                                  \
        }

#define DEFINE_RESCALE(name, x_type, y_type, convert)                                                                              \
        SL_CPU_CLONES static void rescale_##name(const struct add *s, void *result, const void *left)                              \
        {                                                                                                                          \
                const x_type *x = left;                                                                                            \
                y_type *y = result;                                                                                                \
                LOCAL_NUMBERS;                                                                                                     \
                                                                                                                                   \
                _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                               \
                {                                                                                                                  \
                        float value = ((float)x[i] - x_zero) * x_factor;                                                           \
                        y[i] = convert(y_type, value);                                                                             \
                }                                                                                                                  \
        }

/* Every pair of operands with every result. */
#define ADD_RESULTS(X, name, ...)                                                                                                  \
        X(name##_u8, __VA_ARGS__, uint8_t, TO_BYTE)                                                                                \
        X(name##_i8, __VA_ARGS__, int8_t, TO_BYTE)                                                                                 \
        X(name##_f32, __VA_ARGS__, float, TO_REAL)

ADD_RESULTS(DEFINE_ADD, u8_u8, uint8_t, uint8_t)
ADD_RESULTS(DEFINE_ADD, u8_i8, uint8_t, int8_t)
ADD_RESULTS(DEFINE_ADD, i8_u8, int8_t, uint8_t)
ADD_RESULTS(DEFINE_ADD, i8_i8, int8_t, int8_t)
ADD_RESULTS(DEFINE_RESCALE, u8, uint8_t)
ADD_RESULTS(DEFINE_RESCALE, i8, int8_t)

static uint32_t result_index(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 ? 0 : dtype == SL_DTYPE_I8 ? 1 : 2;
}

/* Bytes alone, a part of them. */
static void run_vectors(const struct add *s, const struct sl_binding *binding, const struct sl_part *part)
{
        const uint8_t *addend = s->addend_dtype == SL_DTYPE_NONE ? NULL : (const uint8_t *)binding->inputs[1] + part->first;

        sl_sum_bytes_avx512(part->end - part->first, &(struct sl_byte_sum){.x = (const uint8_t *)binding->inputs[0] + part->first,
                                                             .addend = addend,
                                                             .y = (uint8_t *)binding->outputs[0] + part->first,
                                                             .x_factor = s->x_factor,
                                                             .addend_factor = s->addend_factor,
                                                             .x_zero = s->x_zero,
                                                             .addend_zero = s->addend_zero,
                                                             .y_zero = s->y_zero,
                                                             .low = s->low,
                                                             .high = s->high,
                                                             .x_signed = s->x_dtype == SL_DTYPE_I8,
                                                             .addend_signed = s->addend_dtype == SL_DTYPE_I8});
}

static bool has_vectors(const struct add *s)
{
        return s->y_dtype != SL_DTYPE_F32 && sl_cpu_has_avx512();
}

static int64_t add_units(const void *state, uint32_t axis)
{
        const struct add *s = state;

        return has_vectors(s) ? sl_flat_units(s->elements, axis) : 0;
}

static bool add_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct add *s = state;

        return (operand == SL_REACH_OUTPUT || operand < 2) && sl_flat_reach(part, s->elements, 1, ret_reach);
}

static int add_run(const void *state, const struct sl_binding *binding)
{
        static void (*const adds[2][2][3])(const struct add *, void *, const void *, const void *) = {
                {{add_u8_u8_u8, add_u8_u8_i8, add_u8_u8_f32}, {add_u8_i8_u8, add_u8_i8_i8, add_u8_i8_f32}},
                {{add_i8_u8_u8, add_i8_u8_i8, add_i8_u8_f32}, {add_i8_i8_u8, add_i8_i8_i8, add_i8_i8_f32}},
        };
        static void (*const rescales[2][3])(const struct add *, void *, const void *) = {
                {rescale_u8_u8, rescale_u8_i8, rescale_u8_f32},
                {rescale_i8_u8, rescale_i8_i8, rescale_i8_f32},
        };
        const struct add *s = state;
        uint32_t x = s->x_dtype == SL_DTYPE_I8, a = s->addend_dtype == SL_DTYPE_I8, y = result_index(s->y_dtype);

        if (has_vectors(s)) {
                struct sl_part part = sl_flat_part(binding->part, s->elements);

                run_vectors(s, binding, &part);
                return 0;
        }
        if (s->addend_dtype == SL_DTYPE_NONE)
                rescales[x][y](s, binding->outputs[0], binding->inputs[0]);
        else
                adds[x][a][y](s, binding->outputs[0], binding->inputs[0], binding->inputs[1]);
        return 0;
}

const struct sl_cpu_loop sl_cpu_quantized_add = {.state_bytes = sizeof(struct add),
        .plan = add_plan,
        .run = add_run,
        .units = add_units,
        .reach = add_reach,
        .fuses_epilogue = true};
