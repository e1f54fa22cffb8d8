/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QuantizeLinear and DequantizeLinear of float32 with one scale for the whole tensor, in any layout. The scale and the zero point
 * are read at launch. A quotient is a true division, so that ties fall as they do elsewhere.
 */
#include "cpu/isa.h"
#include "cpu/operator.h"
#include "cpu/quantize_avx512.h"

#include <math.h>

struct scaling {
        int64_t elements;
        uint32_t has_zero, byte_dtype;
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

/* A NaN becomes 0. */
#define DEFINE_QUANTIZE(name, type, low, high)                                                                                     \
        SL_CPU_CLONES static void name(int64_t n, type *restrict y, const float *restrict x, float scale, float zero)              \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++) {                                                                                  \
                        float value = rintf(x[i] / scale) + zero;                                                                  \
                        value = value == value ? value : 0.0f;                                                                     \
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

        if (sl_cpu_has_avx512())
                sl_quantize_avx512(s->elements, binding->outputs[0], binding->inputs[0], scale, (int32_t)zero,
                        s->byte_dtype == SL_DTYPE_I8 ? INT8_MIN : 0);
        else if (s->byte_dtype == SL_DTYPE_I8)
                quantize_i8(s->elements, binding->outputs[0], binding->inputs[0], scale, zero);
        else
                quantize_u8(s->elements, binding->outputs[0], binding->inputs[0], scale, zero);
        return 0;
}

static int dequantize_run(const void *state, const struct sl_binding *binding)
{
        const struct scaling *s = state;
        float scale = *(const float *)binding->inputs[1], zero = read_zero(s, binding);

        if (s->byte_dtype == SL_DTYPE_I8)
                dequantize_i8(s->elements, binding->outputs[0], binding->inputs[0], scale, zero);
        else
                dequantize_u8(s->elements, binding->outputs[0], binding->inputs[0], scale, zero);
        return 0;
}

const struct sl_cpu_loop sl_cpu_quantize = {.state_bytes = sizeof(struct scaling), .plan = scaling_plan, .run = quantize_run};
const struct sl_cpu_loop sl_cpu_dequantize = {.state_bytes = sizeof(struct scaling), .plan = scaling_plan, .run = dequantize_run};
