/*
 * Functions of one element that the library computes by polynomials: those that a compiler does not vectorise.
 */
#include "cpu/describe.h"

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

        if (!sl_cpu_is_f32(x) || !sl_cpu_is_f32(y) || !sl_cpu_same_place(x, y) || !elements)
                return false;
        call->spec.kind = SL_PRIMITIVE_FUNCTION;
        call->spec.source = sl_describe_dense(1, &elements);
        call->spec.result = call->spec.source;
        return choose_function(node, &call->spec) && !node->epilogue.activation && !node->epilogue.has_residual;
}
