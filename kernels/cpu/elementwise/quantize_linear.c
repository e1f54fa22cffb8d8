/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QuantizeLinear and DequantizeLinear of float32 with one scale for the whole tensor, in any layout. The scale and the zero point
 * are read at launch; DynamicQuantizeLinear makes them of the least and the greatest element. A quotient is a true division, so
 * that ties fall as they do elsewhere.
 */
#include "cpu/base/isa.h"
#include "cpu/elementwise/loops.h"
#include "cpu/elementwise/quantize_avx512.h"

#include <math.h>
#include <string.h>

#define LANES 16

struct scaling {
        int64_t elements;
        uint32_t has_zero, byte_dtype;
        uint32_t n_outputs; /* of DynamicQuantizeLinear: the scale and the zero point may be left out */
};

static bool is_single(const struct sl_tensor *tensor)
{
        return sl_shape_elements(&tensor->shape) == 1;
}

static bool scaling_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        bool to_bytes = node->op == SL_OP_QUANTIZE_LINEAR;
        const struct sl_tensor *real = to_bytes ? &node->inputs[0] : &node->outputs[0];
        const struct sl_tensor *bytes = to_bytes ? &node->outputs[0] : &node->inputs[0];
        bool has_zero = node->n_inputs > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;
        struct scaling *scaling = state;

        (void)sizes;
        if (!sl_cpu_is_f32(real) || !sl_cpu_is_byte(bytes) || !sl_cpu_same_place(real, bytes) || !sl_cpu_is_f32(&node->inputs[1]))
                return false;
        if (!is_single(&node->inputs[1]) || sl_attrs_int(&node->attrs, SL_ATTR_BLOCK_SIZE, 0))
                return false;
        if (has_zero && (node->inputs[2].dtype != bytes->dtype || !is_single(&node->inputs[2])))
                return false;
        scaling->elements = (int64_t)sl_shape_elements(&real->shape);
        scaling->has_zero = has_zero;
        scaling->byte_dtype = bytes->dtype;
        return true;
}

static float read_zero(const struct scaling *scaling, const struct sl_binding *binding)
{
        if (!scaling->has_zero)
                return 0.0f;
        return scaling->byte_dtype == SL_DTYPE_I8 ? *(const int8_t *)binding->inputs[2] : *(const uint8_t *)binding->inputs[2];
}

/* A NaN becomes the least. */
#define DEFINE_QUANTIZE(name, type, low, high)                                                                                     \
        SL_CPU_CLONES static void name(int64_t n, type *restrict y, const float *restrict x, float scale, float zero)              \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++) {                                                                                  \
                        float value = rintf(x[i] / scale) + zero;                                                                  \
                        value = value >= (low) ? value : (low);                                                                    \
                        value = value <= (high) ? value : (high);                                                                  \
                        y[i] = (type)(int32_t)value;                                                                               \
                }                                                                                                                  \
        }

DEFINE_QUANTIZE(quantize_u8, uint8_t, 0.0f, 255.0f)
DEFINE_QUANTIZE(quantize_i8, int8_t, -128.0f, 127.0f)

#define DEFINE_DEQUANTIZE(name, type)                                                                                              \
        SL_CPU_CLONES static void name(int64_t n, float *restrict y, const type *restrict x, float scale, float zero)              \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        y[i] = ((float)x[i] - zero) * scale;                                                                       \
        }

DEFINE_DEQUANTIZE(dequantize_u8, uint8_t)
DEFINE_DEQUANTIZE(dequantize_i8, int8_t)

static int quantize_run(const void *state, const struct sl_binding *binding)
{
        const struct scaling *s = state;
        float scale = *(const float *)binding->inputs[1], zero = read_zero(s, binding);
        struct sl_part part = sl_flat_part(binding->part, s->elements);
        const float *x = (const float *)binding->inputs[0] + part.first;
        void *y = (uint8_t *)binding->outputs[0] + part.first;
        int64_t n = part.end - part.first;

        if (sl_cpu_has_avx512())
                sl_quantize_avx512(n, y, x, scale, (int32_t)zero, s->byte_dtype == SL_DTYPE_I8 ? INT8_MIN : 0);
        else if (s->byte_dtype == SL_DTYPE_I8)
                quantize_i8(n, y, x, scale, zero);
        else
                quantize_u8(n, y, x, scale, zero);
        return 0;
}

static bool dynamic_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct scaling *scaling = state;

        (void)sizes;
        if (!sl_cpu_is_f32(x) || y->dtype != SL_DTYPE_U8 || !sl_cpu_same_place(x, y))
                return false;
        scaling->elements = (int64_t)sl_shape_elements(&x->shape);
        scaling->n_outputs = node->n_outputs;
        return true;
}

/* 0 is always among them; a NaN is not. */
SL_CPU_CLONES static void find_range(int64_t n, const float *restrict x, float *ret_least, float *ret_most)
{
        float least[LANES] = {0}, most[LANES] = {0};
        int64_t i = 0;

        for (; i + LANES <= n; i += LANES)
                for (int64_t k = 0; k < LANES; k++) {
                        least[k] = x[i + k] < least[k] ? x[i + k] : least[k];
                        most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
                }
        for (; i < n; i++) {
                least[0] = x[i] < least[0] ? x[i] : least[0];
                most[0] = x[i] > most[0] ? x[i] : most[0];
        }
        for (int64_t k = 1; k < LANES; k++) {
                least[0] = least[k] < least[0] ? least[k] : least[0];
                most[0] = most[k] > most[0] ? most[k] : most[0];
        }
        *ret_least = least[0];
        *ret_most = most[0];
}

/* Nothing but zeros has a scale of 0, and stays zeros. */
static int dynamic_run(const void *state, const struct sl_binding *binding)
{
        const struct scaling *s = state;
        uint8_t *y = binding->outputs[0];
        float least, most, scale, zero;

        (sl_cpu_has_avx512() ? sl_range_avx512 : find_range)(s->elements, binding->inputs[0], &least, &most);
        scale = (most - least) / 255;
        zero = scale > 0 ? rintf(-least / scale) : 0;
        zero = zero >= 0 ? (zero <= 255 ? zero : 255) : 0;
        if (s->n_outputs > 1)
                *(float *)binding->outputs[1] = scale;
        if (s->n_outputs > 2)
                *(uint8_t *)binding->outputs[2] = (uint8_t)zero;
        if (!(scale > 0))
                memset(y, 0, (size_t)s->elements);
        else if (sl_cpu_has_avx512())
                sl_quantize_avx512(s->elements, y, binding->inputs[0], scale, (int32_t)zero, 0);
        else
                quantize_u8(s->elements, y, binding->inputs[0], scale, zero);
        return 0;
}

static int dequantize_run(const void *state, const struct sl_binding *binding)
{
        const struct scaling *s = state;
        float scale = *(const float *)binding->inputs[1], zero = read_zero(s, binding);
        struct sl_part part = sl_flat_part(binding->part, s->elements);
        const void *x = (const uint8_t *)binding->inputs[0] + part.first;
        float *y = (float *)binding->outputs[0] + part.first;

        if (s->byte_dtype == SL_DTYPE_I8)
                dequantize_i8(part.end - part.first, y, x, scale, zero);
        else
                dequantize_u8(part.end - part.first, y, x, scale, zero);
        return 0;
}

static int64_t scaling_units(const void *state, uint32_t axis)
{
        const struct scaling *s = state;

        return sl_flat_units(s->elements, axis);
}

const struct sl_cpu_loop sl_cpu_quantize = {
        .state_bytes = sizeof(struct scaling), .plan = scaling_plan, .run = quantize_run, .units = scaling_units};
const struct sl_cpu_loop sl_cpu_dequantize = {
        .state_bytes = sizeof(struct scaling), .plan = scaling_plan, .run = dequantize_run, .units = scaling_units};
const struct sl_cpu_loop sl_cpu_dynamic_quantize = {
        .state_bytes = sizeof(struct scaling), .plan = dynamic_plan, .run = dynamic_run};
