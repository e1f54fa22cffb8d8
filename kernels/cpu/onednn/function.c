/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of one element that oneDNN computes by polynomials: those that a compiler does not vectorise. And LRN, which is a
 * function of an element and its neighbours among the channels.
 */
#include "cpu/onednn/describe.h"

static bool choose_function(const struct sl_node_desc *node, struct sl_primitive_spec *spec)
{
        switch (node->op) {
        case SL_OP_ELU:
                spec->function = SL_FUNCTION_ELU;
                spec->a = (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1.0);
                return true;
        case SL_OP_SIGMOID:
                spec->function = SL_FUNCTION_SIGMOID;
                return true;
        case SL_OP_TANH:
                spec->function = SL_FUNCTION_TANH;
                return true;
        case SL_OP_SOFTPLUS:
                spec->function = SL_FUNCTION_SOFTPLUS;
                return true;
        case SL_OP_GELU:
                spec->function = sl_attrs_int(&node->attrs, SL_ATTR_APPROXIMATE, 0) ? SL_FUNCTION_GELU_TANH : SL_FUNCTION_GELU_ERF;
                return true;
        case SL_OP_EXP:
                spec->function = SL_FUNCTION_EXP;
                return true;
        case SL_OP_LOG:
                spec->function = SL_FUNCTION_LOG;
                return true;
        default:
                return false;
        }
}

/* Where the elements lie does not matter as long as both sides agree, so the tensor is seen flat. */
bool sl_cpu_describe_function(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        int64_t elements = (int64_t)sl_shape_elements(&x->shape);

        if (!sl_cpu_is_real(x) || y->dtype != x->dtype || !sl_cpu_same_place(x, y) || !elements)
                return false;
        /* Of a subnormal it takes the logarithm of the least normal number, and an Elu of 0, as of -0. */
        if ((node->op == SL_OP_LOG || node->op == SL_OP_ELU) && sl_cpu_is_f32(x))
                return false;
        call->spec.kind = SL_PRIMITIVE_FUNCTION;
        call->spec.source = sl_describe_dense(x->dtype, 1, &elements);
        call->spec.result = call->spec.source;
        return choose_function(node, &call->spec) && !node->epilogue.activation && !node->epilogue.has_residual;
}

/* LRN. oneDNN's window has its middle on the channel, as ONNX's has when its size is odd. */
bool sl_cpu_describe_response(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        int64_t size = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0);

        if (!sl_cpu_is_f32(x) || !sl_cpu_is_f32(y) || !sl_cpu_same_place(x, y) || sl_cpu_is_empty(x) || x->shape.rank != 4)
                return false;
        /* Its sum over the channels of PLAIN takes away what leaves the window: a NaN stays in it. */
        if (x->layout == SL_LAYOUT_PLAIN)
                return false;
        if (size < 1 || size > INT32_MAX || size % 2 == 0)
                return false;
        call->spec.kind = SL_PRIMITIVE_RESPONSE;
        call->spec.source = sl_describe_tensor(x);
        call->spec.result = call->spec.source;
        call->spec.axis = (uint32_t)size;
        call->spec.a = (float)sl_attrs_float(&node->attrs, SL_ATTR_ALPHA, 1e-4);
        call->spec.b = (float)sl_attrs_float(&node->attrs, SL_ATTR_VALUE, 1.0);
        call->spec.scale = (float)sl_attrs_float(&node->attrs, SL_ATTR_BETA, 0.75);
        return !node->epilogue.activation && !node->epilogue.has_residual;
}
