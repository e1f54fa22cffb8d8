/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions and matrix products of bytes through oneDNN, where it is exact (byte_product.c elsewhere). Its factors turn a sum
 * into a real number; everything after that costs an instruction for each element, so the real numbers are counted in a unit that
 * spares most of it:
 *
 *     with a residual of bytes   one step of those, so that it can be added as it lies
 *     else                       one step of the result's bytes, or 1 for floats and for an activation that is no plain limit
 *
 * Relu and Clip become limits in that unit, and those that the range of a byte implies vanish.
 */
#include "cpu/base/isa.h"
#include "cpu/onednn/describe.h"
#include "shape/window.h"

#include <math.h>

struct unit {
        double size, zero; /* real number = size * (counted - zero) */
};

static bool is_limit(uint32_t activation)
{
        return activation == SL_ACT_RELU || activation == SL_ACT_CLIP;
}

static bool add_function(struct sl_cpu_call *call, uint32_t function, double a, double b)
{
        if (call->spec.n_steps == SL_PRIMITIVE_STEPS_MAX)
                return false;
        call->spec.steps[call->spec.n_steps++] = (struct sl_primitive_step){.function = function, .a = (float)a, .b = (float)b};
        return true;
}

/* The real numbers that the result can tell apart. */
static void find_range(const struct sl_node_desc *node, double *ret_least, double *ret_most)
{
        double scale = sl_attrs_float(&node->attrs, SL_ATTR_Y_SCALE, 1.0);
        double zero = (double)sl_attrs_int(&node->attrs, SL_ATTR_Y_ZERO, 0);
        double first = node->outputs[0].dtype == SL_DTYPE_I8 ? INT8_MIN : 0;

        *ret_least = -INFINITY;
        *ret_most = INFINITY;
        if (sl_cpu_is_f32(&node->outputs[0]))
                return;
        *ret_least = scale * (first - zero);
        *ret_most = scale * (first + UINT8_MAX - zero);
}

/* The limits of the activation, as far as the result would show them. */
static bool add_limits(const struct sl_node_desc *node, struct sl_cpu_call *call, const struct unit *unit)
{
        const struct sl_epilogue *e = &node->epilogue;
        double low = e->activation == SL_ACT_RELU ? 0.0 : (double)e->act_a;
        double high = e->activation == SL_ACT_RELU ? INFINITY : (double)e->act_b, least, most;

        find_range(node, &least, &most);
        if (low <= least && high >= most)
                return true;
        high = high >= most || isinf(high) ? 1e30 : high / unit->size + unit->zero;
        return add_function(call, SL_FUNCTION_CLIP, low / unit->size + unit->zero, high);
}

/* From the unit to what is stored. */
static bool add_conversion(const struct sl_node_desc *node, struct sl_cpu_call *call, const struct unit *unit)
{
        bool real = sl_cpu_is_f32(&node->outputs[0]);
        double scale = real ? 1.0 : sl_attrs_float(&node->attrs, SL_ATTR_Y_SCALE, 1.0);
        double zero = real ? 0.0 : (double)sl_attrs_int(&node->attrs, SL_ATTR_Y_ZERO, 0);
        double a = unit->size / scale, b = zero - unit->zero * a;

        return (a == 1.0 && b == 0.0) || add_function(call, SL_FUNCTION_LINEAR, a, b);
}

static bool add_residual(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        const struct sl_tensor *residual = &node->inputs[node->n_inputs - 1];
        struct sl_strided addend = call->spec.result;

        addend.dtype = residual->dtype;
        return (sl_cpu_is_byte(residual) || sl_cpu_is_f32(&node->outputs[0])) && sl_cpu_same_place(residual, &node->outputs[0]) &&
               sl_describe_add(call, &addend, node->n_inputs - 1);
}

static bool adds_bytes(const struct sl_node_desc *node)
{
        return node->epilogue.has_residual && sl_cpu_is_byte(&node->inputs[node->n_inputs - 1]);
}

/* Of sums of bytes alone none is a NaN, which limits of oneDNN lose. The result is real numbers, too. */
static bool adds_reals(const struct sl_node_desc *node)
{
        return node->epilogue.has_residual && sl_cpu_is_f32(&node->inputs[node->n_inputs - 1]);
}

static struct unit choose_unit(const struct sl_node_desc *node)
{
        const struct sl_epilogue *e = &node->epilogue;

        if (adds_bytes(node))
                return (struct unit){sl_attrs_float(&node->attrs, SL_ATTR_ADDEND_SCALE, 1.0),
                        (double)sl_attrs_int(&node->attrs, SL_ATTR_ADDEND_ZERO, 0)};
        if (sl_cpu_is_f32(&node->outputs[0]) || (e->activation != SL_ACT_NONE && !is_limit(e->activation)))
                return (struct unit){1.0, 0.0};
        return (struct unit){sl_attrs_float(&node->attrs, SL_ATTR_Y_SCALE, 1.0), 0.0};
}

/* Everything but the weights and the source: bias, factors, and the steps to the result. */
static bool describe_rest(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        const struct sl_tensor *bias = sl_cpu_input(node, 3);
        const struct sl_epilogue *e = &node->epilogue;
        struct unit unit = choose_unit(node);

        call->spec.source_zero = (int32_t)sl_attrs_int(&node->attrs, SL_ATTR_X_ZERO, 0);
        call->spec.scale = (float)(1.0 / unit.size);
        call->spec.n_scales = (uint32_t)node->inputs[2].shape.dims[0];
        call->scales = 2;
        call->input_of[SL_ARGUMENT_WEIGHTS] = 1;
        if (bias)
                call->input_of[SL_ARGUMENT_BIAS] = 3;
        if (e->has_residual && !add_residual(node, call))
                return false;
        if (e->activation == SL_ACT_NONE)
                return add_conversion(node, call, &unit);
        if (adds_reals(node) && sl_describe_behind(node, call))
                return true;
        if (is_limit(e->activation))
                return add_limits(node, call, &unit) && add_conversion(node, call, &unit);
        /* Two linear steps would both get the numbers of the first. */
        return !adds_bytes(node) && sl_describe_activation(node, call) && add_conversion(node, call, &unit);
}

/* The code of some of oneDNN's kernels for groups of few channels cannot be made with a function, which shows too late (2.6.3). */
static bool lacks_code(const struct sl_node_desc *node, int64_t groups)
{
        const int64_t *w = node->inputs[1].shape.dims, depth = w[1], filters = w[0] / groups;
        uint32_t activation = node->epilogue.activation;

        if (activation == SL_ACT_NONE || is_limit(activation) || groups == 1 || depth == 1)
                return false;
        return depth % 4 == 0 && filters % 4 == 0 && (depth % 16 || filters % 16);
}

bool sl_cpu_describe_quantized_convolution(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        const struct sl_tensor *x = &node->inputs[0], *w = &node->inputs[1], *bias = sl_cpu_input(node, 3);
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        struct sl_window window;

        if (!sl_cpu_multiplies_bytes() || !sl_cpu_is_byte(x) || sl_cpu_is_empty(x) || sl_cpu_is_empty(w) ||
                sl_cpu_is_empty(&node->outputs[0]))
                return false;
        if (x->layout != SL_LAYOUT_CHANNELS_LAST || !sl_cpu_same_layout(x, &node->outputs[0]) ||
                sl_window_read(node, &window, NULL) || lacks_code(node, groups))
                return false;
        call->spec.kind = SL_PRIMITIVE_CONVOLUTION;
        call->spec.source = sl_describe_tensor(x);
        call->spec.weights = sl_describe_filters(w, groups);
        call->spec.result = sl_describe_tensor(&node->outputs[0]);
        if (bias)
                call->spec.bias = sl_describe_tensor(bias);
        sl_describe_window(&window, &call->spec);
        return describe_rest(node, call);
}

/* All rows are those of one matrix. */
bool sl_cpu_describe_quantized_matmul(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        const struct sl_tensor *x = &node->inputs[0], *w = &node->inputs[1], *bias = sl_cpu_input(node, 3);
        bool trans = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) != 0;
        int64_t inner = w->shape.dims[trans], columns = w->shape.dims[!trans];
        int64_t rows = inner ? (int64_t)sl_shape_elements(&x->shape) / inner : 0;

        if (!sl_cpu_multiplies_bytes() || !sl_cpu_is_byte(x) || x->layout != SL_LAYOUT_PLAIN ||
                node->outputs[0].layout != SL_LAYOUT_PLAIN || !rows || !columns)
                return false;
        call->spec.kind = SL_PRIMITIVE_MATMUL;
        call->spec.source = sl_describe_dense(x->dtype, 2, (int64_t[]){rows, inner});
        call->spec.weights = sl_describe_dense(w->dtype, 2, (int64_t[]){inner, columns});
        call->spec.result = sl_describe_dense(node->outputs[0].dtype, 2, (int64_t[]){rows, columns});
        if (trans) {
                call->spec.weights.strides[0] = 1;
                call->spec.weights.strides[1] = inner;
        }
        if (bias)
                call->spec.bias = sl_describe_dense(bias->dtype, 2, (int64_t[]){1, columns});
        return describe_rest(node, call);
}
