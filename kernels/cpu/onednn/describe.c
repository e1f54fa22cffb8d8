/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/onednn/describe.h"

static const uint8_t functions[] = {
        [SL_ACT_RELU] = SL_FUNCTION_RELU,
        [SL_ACT_CLIP] = SL_FUNCTION_CLIP,
        [SL_ACT_SIGMOID] = SL_FUNCTION_SIGMOID,
        [SL_ACT_TANH] = SL_FUNCTION_TANH,
        [SL_ACT_LEAKY_RELU] = SL_FUNCTION_RELU,
        [SL_ACT_GELU_ERF] = SL_FUNCTION_GELU_ERF,
        [SL_ACT_HARD_SWISH] = SL_FUNCTION_HARD_SWISH,
        [SL_ACT_SWISH] = SL_FUNCTION_SWISH,
        [SL_ACT_ELU] = SL_FUNCTION_ELU,
};

struct sl_strided sl_describe_tensor(const struct sl_tensor *tensor)
{
        struct sl_strided strided = {.rank = tensor->shape.rank, .dtype = tensor->dtype};

        for (uint32_t i = 0; i < strided.rank; i++)
                strided.dims[i] = tensor->shape.dims[i];
        sl_tensor_strides(tensor, strided.strides);
        return strided;
}

struct sl_strided sl_describe_dense(uint32_t dtype, uint32_t rank, const int64_t *dims)
{
        struct sl_strided strided = {.rank = rank, .dtype = dtype};
        int64_t stride = 1;

        for (uint32_t i = rank; i-- > 0;) {
                strided.dims[i] = dims[i];
                strided.strides[i] = stride;
                stride *= dims[i];
        }
        return strided;
}

static uint32_t count_addends(const struct sl_primitive_spec *spec)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < spec->n_steps; i++)
                count += spec->steps[i].kind == SL_STEP_ADD;
        return count;
}

bool sl_describe_add(struct sl_cpu_call *call, const struct sl_strided *addend, uint32_t input)
{
        struct sl_primitive_spec *spec = &call->spec;
        uint32_t side = count_addends(spec);

        if (spec->n_steps == SL_PRIMITIVE_STEPS_MAX || side == SL_PRIMITIVE_SIDES_MAX)
                return false;
        call->input_of[SL_ARGUMENT_SIDE + side] = (int8_t)input;
        spec->steps[spec->n_steps++] = (struct sl_primitive_step){.kind = SL_STEP_ADD, .addend = *addend};
        return true;
}

static bool add_function(struct sl_cpu_call *call, uint32_t function, float a, float b)
{
        struct sl_primitive_spec *spec = &call->spec;

        /* Two steps of one function with different parameters both get those of the first one (oneDNN 2.6.3, brgemm kernels). */
        for (uint32_t i = 0; i < spec->n_steps; i++)
                if (spec->steps[i].kind == SL_STEP_FUNCTION && spec->steps[i].function == function)
                        return false;
        if (spec->n_steps == SL_PRIMITIVE_STEPS_MAX)
                return false;
        spec->steps[spec->n_steps++] = (struct sl_primitive_step){.function = function, .a = a, .b = b};
        return true;
}

bool sl_describe_linear(struct sl_cpu_call *call, float a, float b)
{
        return add_function(call, SL_FUNCTION_LINEAR, a, b);
}

bool sl_describe_activation(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        const struct sl_epilogue *e = &node->epilogue;

        if (e->activation == SL_ACT_NONE)
                return true;
        if (e->activation >= sizeof(functions))
                return false;
        return add_function(call, functions[e->activation], e->activation == SL_ACT_RELU ? 0.0f : e->act_a, e->act_b);
}

/*
 * Those in which oneDNN loses a NaN, or takes -infinity for a number: below AVX2 a sigmoid, too. Of bfloat16 also those that are
 * polynomials, which take longer than the own ones in a pass of their own (README.md, Parts).
 */
static bool is_own_function(uint32_t dtype, uint32_t activation)
{
        bool is_clip = activation == SL_ACT_RELU || activation == SL_ACT_CLIP;

        if (!sl_cpu_epilogue_passes(activation) || (dtype != SL_DTYPE_F32 && dtype != SL_DTYPE_BF16))
                return false;
        if (dtype == SL_DTYPE_BF16)
                return is_clip || (activation != SL_ACT_LEAKY_RELU && sl_cpu_has_avx2());
        return is_clip || activation == SL_ACT_SWISH || (activation == SL_ACT_SIGMOID && !sl_cpu_has_avx2());
}

bool sl_describe_behind(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        struct sl_node_desc alone = {.epilogue = node->epilogue};

        alone.epilogue.has_residual = 0;
        if (node->epilogue.activation == SL_ACT_NONE || !is_own_function(node->outputs[0].dtype, node->epilogue.activation) ||
                !sl_cpu_epilogue_plan(&alone, &call->spec.behind))
                return false;
        call->spec.has_behind = true;
        return true;
}

bool sl_describe_epilogue(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        const struct sl_epilogue *e = &node->epilogue;

        if (e->has_residual) {
                const struct sl_tensor *residual = &node->inputs[node->n_inputs - 1];

                if (residual->dtype != node->outputs[0].dtype || !sl_cpu_same_place(residual, &node->outputs[0]) ||
                        !sl_describe_add(call, &call->spec.result, node->n_inputs - 1))
                        return false;
        }
        return sl_describe_behind(node, call) || sl_describe_activation(node, call);
}

bool sl_describe_sum(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        struct sl_primitive_spec *spec = &call->spec;
        int residual = (int)node->n_inputs - 1;
        uint32_t side = 0;

        for (uint32_t i = 0; i < spec->n_steps; i++) {
                if (spec->steps[i].kind != SL_STEP_ADD)
                        continue;
                if (node->epilogue.has_residual && call->input_of[SL_ARGUMENT_SIDE + side] == residual) {
                        call->input_of[SL_ARGUMENT_SIDE + side] = -1;
                        call->summand = residual;
                        spec->steps[i].kind = SL_STEP_SUM;
                        return true;
                }
                side++;
        }
        return false;
}
