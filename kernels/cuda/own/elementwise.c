/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators as chains of steps (arguments.h), and what is left of an epilogue. */
#include "cuda/own/builder.h"

#include <errno.h>
#include <math.h>

/* What the steps are called where an operator is one. */
static const struct {
        uint8_t function, operands;
} functions[SL_OP_COUNT] = {
#define X(id) [SL_OP_##id] = {SL_OWN_##id, 1},
        SL_OWN_UNARY(X)
#undef X
#define X(id) [SL_OP_##id] = {SL_OWN_##id, 2},
                SL_OWN_BINARY(X)
#undef X
#define X(id) [SL_OP_##id] = {SL_OWN_##id, 2},
                        SL_OWN_TESTS(X)
#undef X
};

/* A chain whose operands are added one by one, and the places that they are filled in from. */
struct chain {
        struct sl_own_chain argument;
        struct sl_own_box box;
        const struct sl_tensor *out;
        struct {
                enum sl_own_source source;
                uint32_t index;
        } from[SL_OWN_OPERANDS];
};

static void start_chain(struct chain *chain, const struct sl_tensor *out)
{
        *chain = (struct chain){.out = out};
        chain->argument.dtype = out->dtype;
        sl_own_box_of(out, &chain->box);
}

static void add_strided(struct chain *chain, const int64_t strides[SL_RANK_MAX], enum sl_own_source source, uint32_t index)
{
        uint32_t k = chain->argument.n_operands++;

        sl_own_box_add(&chain->box, chain->out, strides);
        chain->from[k].source = source;
        chain->from[k].index = index;
}

static void add_operand(struct chain *chain, const struct sl_tensor *tensor, enum sl_own_source source, uint32_t index)
{
        int64_t strides[SL_RANK_MAX];

        sl_own_broadcast(tensor, &chain->out->shape, strides);
        add_strided(chain, strides, source, index);
}

static void add_step(struct chain *chain, uint32_t function, uint32_t operand, double a, double b)
{
        chain->argument.steps[chain->argument.n_steps++] = (struct sl_own_step){function, operand, (float)a, (float)b};
}

/* Elements that fill 16 bytes, if each operand has so many in a row, or one for all of them. */
static uint32_t vector_of(const struct sl_own_box *box, uint32_t dtype)
{
        uint32_t inner = box->rank - 1;
        int64_t wide = 16 / (int64_t)sl_dtype_bytes(dtype);

        if (box->rank > 1 && box->sizes[inner] % wide)
                return 1;
        for (uint32_t k = 0; k < box->n_tensors; k++) {
                if (box->strides[k][inner] == 0)
                        continue;
                if (box->strides[k][inner] != 1)
                        return 1;
                for (uint32_t d = 0; d < inner; d++)
                        if (box->strides[k][d] % wide)
                                return 1;
        }
        return (uint32_t)wide;
}

static void finish_chain(struct sl_own_builder *builder, struct chain *chain, uint32_t kernel)
{
        struct sl_own_chain *a = &chain->argument;
        struct sl_own_launch *launch;

        sl_own_collapse(&chain->box);
        a->elements = (uint32_t)sl_shape_elements(&chain->out->shape);
        a->n_dims = chain->box.rank;
        a->vector = vector_of(&chain->box, chain->out->dtype);
        for (uint32_t d = 0; d < a->n_dims; d++) {
                uint32_t outer = a->n_dims - 1 - d;

                a->dims[d] = sl_own_divide_by((uint64_t)chain->box.sizes[outer]);
                for (uint32_t k = 0; k < a->n_operands; k++)
                        a->operands[k].strides[d] = (uint32_t)chain->box.strides[k + 1][outer];
        }
        launch = sl_own_add(builder, kernel, a, sizeof(*a), (a->elements + a->vector - 1) / a->vector);
        sl_own_slot(launch, offsetof(struct sl_own_chain, out), SL_OWN_OUTPUT, 0, 0);
        for (uint32_t k = 0; k < a->n_operands; k++)
                sl_own_slot(launch, offsetof(struct sl_own_chain, operands) + k * sizeof(struct sl_own_operand),
                        chain->from[k].source, chain->from[k].index, 0);
}

static bool is_integer(uint32_t dtype)
{
        return dtype != SL_DTYPE_NONE && !sl_dtype_is_float(dtype);
}

/* The kernel for elements of that type, or -ENOTSUP. */
static int chain_kernel(uint32_t dtype)
{
        if (sl_own_is_float(dtype))
                return (int)sl_own_kernel_of(SL_OWN_KERNEL_chain_f32, dtype);
        return is_integer(dtype) ? (int)SL_OWN_KERNEL_integers : -ENOTSUP;
}

/* The parameters of a function of one element, as its operator's attributes say. Selu's constants are those of its paper. */
static void read_parameters(const struct sl_node_desc *node, double *ret_a, double *ret_b)
{
        const struct sl_attrs *attrs = &node->attrs;

        switch (node->op) {
        case SL_OP_LEAKY_RELU:
                *ret_a = sl_attrs_float(attrs, SL_ATTR_ALPHA, 0.01);
                break;
        case SL_OP_HARD_SIGMOID:
                *ret_a = sl_attrs_float(attrs, SL_ATTR_ALPHA, 0.2);
                *ret_b = sl_attrs_float(attrs, SL_ATTR_BETA, 0.5);
                break;
        case SL_OP_SELU:
                *ret_a = sl_attrs_float(attrs, SL_ATTR_ALPHA, 1.67326319217681884765625);
                *ret_b = sl_attrs_float(attrs, SL_ATTR_GAMMA, 1.05070102214813232421875);
                break;
        case SL_OP_SHRINK:
                *ret_a = sl_attrs_float(attrs, SL_ATTR_LAMBD, 0.5);
                *ret_b = sl_attrs_float(attrs, SL_ATTR_BIAS, 0);
                break;
        case SL_OP_CLIP:
                *ret_a = sl_attrs_float(attrs, SL_ATTR_MIN, -(double)INFINITY);
                *ret_b = sl_attrs_float(attrs, SL_ATTR_MAX, (double)INFINITY);
                break;
        default:
                *ret_a = sl_attrs_float(attrs, SL_ATTR_ALPHA, 1);
        }
}

/* The nearest integer of 64 bits towards zero. */
static int64_t limit_of(double x, bool is_unsigned)
{
        if (is_unsigned)
                return x >= 0x1p64 ? -1 : x > 0 ? (int64_t)(uint64_t)x : 0;
        return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : isnan(x) ? 0 : (int64_t)x;
}

static bool integers_have(uint32_t op, uint32_t dtype)
{
        bool logical = op == SL_OP_NOT;

        if (dtype == SL_DTYPE_BOOL)
                return logical;
        return op == SL_OP_RELU || op == SL_OP_NEG || op == SL_OP_ABS || op == SL_OP_SIGN || op == SL_OP_CLIP ||
               op == SL_OP_BITWISE_NOT || functions[op].operands == 2;
}

static bool floats_have(uint32_t op)
{
        return op != SL_OP_NOT && op != SL_OP_BITWISE_NOT && op != SL_OP_BIT_SHIFT && op != SL_OP_BITWISE_AND &&
               op != SL_OP_BITWISE_OR && op != SL_OP_BITWISE_XOR;
}

static bool is_unsigned(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_U16 || dtype == SL_DTYPE_U32 || dtype == SL_DTYPE_U64 ||
               dtype == SL_DTYPE_BOOL;
}

int sl_own_plan_unary(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        uint32_t dtype = node->inputs[0].dtype, function = functions[node->op].function;
        int kernel = chain_kernel(dtype);
        double a = 0, b = 0;
        struct chain chain;

        if (kernel < 0 || (sl_own_is_float(dtype) ? !floats_have(node->op) : !integers_have(node->op, dtype)))
                return -ENOTSUP;
        if (node->op == SL_OP_GELU && sl_attrs_int(&node->attrs, SL_ATTR_APPROXIMATE, 0))
                function = SL_OWN_GELU_TANH;
        read_parameters(node, &a, &b);
        start_chain(&chain, &node->outputs[0]);
        add_operand(&chain, &node->inputs[0], SL_OWN_INPUT, 0);
        add_step(&chain, function, 0, a, b);
        chain.argument.least = limit_of(a, is_unsigned(dtype));
        chain.argument.most = limit_of(b, is_unsigned(dtype));
        finish_chain(builder, &chain, (uint32_t)kernel);
        return 0;
}

/* Of several operands: all of one type. An operator of any number of them has more steps, floats alone. */
int sl_own_plan_arithmetic(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        bool sums = node->op == SL_OP_SUM || node->op == SL_OP_MEAN;
        uint32_t dtype = node->inputs[0].dtype, function = sums ? SL_OWN_ADD : functions[node->op].function;
        double parameter = (double)sl_attrs_int(&node->attrs, node->op == SL_OP_MOD ? SL_ATTR_FMOD : SL_ATTR_MODE, 0);
        int kernel = chain_kernel(dtype);
        struct chain chain;

        if (kernel < 0 || node->n_inputs > SL_OWN_OPERANDS || dtype == SL_DTYPE_BOOL)
                return -ENOTSUP;
        if (node->op == SL_OP_PRELU && !sl_own_is_float(dtype) && sl_dtype_bytes(dtype) < 4)
                return -ENOTSUP;
        if (node->op == SL_OP_BIT_SHIFT && !is_unsigned(dtype))
                return -ENOTSUP;
        if (node->op == SL_OP_MOD && sl_own_is_float(dtype) && !sl_attrs_int(&node->attrs, SL_ATTR_FMOD, 0))
                return -ENOTSUP;
        if (sl_own_is_float(dtype) ? !floats_have(node->op) : node->n_inputs > 2 || node->op == SL_OP_MEAN)
                return -ENOTSUP;
        start_chain(&chain, &node->outputs[0]);
        for (uint32_t k = 0; k < node->n_inputs; k++) {
                if (node->inputs[k].dtype != dtype)
                        return -ENOTSUP;
                add_operand(&chain, &node->inputs[k], SL_OWN_INPUT, k);
                if (k)
                        add_step(&chain, function, k, parameter, 0);
        }
        if (node->op == SL_OP_MEAN)
                add_step(&chain, SL_OWN_SCALE, 0, 1 / (double)node->n_inputs, 0);
        /* Of one operand it is a copy. */
        if (!sl_own_is_float(dtype) && node->n_inputs < 2)
                return -ENOTSUP;
        finish_chain(builder, &chain, (uint32_t)kernel);
        return 0;
}

int sl_own_plan_test(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        bool ordered = node->op != SL_OP_EQUAL && node->op != SL_OP_AND && node->op != SL_OP_OR && node->op != SL_OP_XOR;
        uint32_t dtype = node->inputs[0].dtype;
        struct chain chain;

        if ((dtype == SL_DTYPE_BOOL && ordered) || (node->n_inputs == 1 && !sl_dtype_is_float(dtype)))
                return -ENOTSUP;
        start_chain(&chain, &node->outputs[0]);
        for (uint32_t k = 0; k < node->n_inputs; k++)
                add_operand(&chain, &node->inputs[k], SL_OWN_INPUT, k);
        chain.argument.dtype = dtype;
        add_step(&chain, functions[node->op].function, 0, (double)sl_attrs_int(&node->attrs, SL_ATTR_DETECT_NEGATIVE, 1),
                (double)sl_attrs_int(&node->attrs, SL_ATTR_DETECT_POSITIVE, 1));
        finish_chain(builder, &chain, SL_OWN_KERNEL_test);
        return 0;
}

int sl_own_plan_where(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        size_t bytes = sl_dtype_bytes(node->outputs[0].dtype);
        struct chain chain;

        start_chain(&chain, &node->outputs[0]);
        for (uint32_t k = 0; k < 3; k++)
                add_operand(&chain, &node->inputs[k], SL_OWN_INPUT, k);
        finish_chain(builder, &chain, SL_OWN_KERNEL_where_1 + (bytes > 1) + (bytes > 2) + (bytes > 4));
        return 0;
}

/* Between these four the elements of a vector are cast at once. */
static uint32_t cast_kernel(uint32_t from, uint32_t to)
{
        if (from == SL_DTYPE_F32 && to == SL_DTYPE_F16)
                return SL_OWN_KERNEL_cast_f32_f16;
        if (from == SL_DTYPE_F32 && to == SL_DTYPE_BF16)
                return SL_OWN_KERNEL_cast_f32_bf16;
        if (from == SL_DTYPE_F16 && to == SL_DTYPE_F32)
                return SL_OWN_KERNEL_cast_f16_f32;
        return from == SL_DTYPE_BF16 && to == SL_DTYPE_F32 ? SL_OWN_KERNEL_cast_bf16_f32 : SL_OWN_KERNEL_cast;
}

int sl_own_plan_cast(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        struct sl_own_cast a = {.elements = (uint32_t)sl_shape_elements(&node->outputs[0].shape),
                .from = node->inputs[0].dtype,
                .to = node->outputs[0].dtype};
        uint32_t kernel = cast_kernel(a.from, a.to);
        struct sl_own_launch *launch;

        if (node->inputs[0].layout != node->outputs[0].layout)
                return -ENOTSUP;
        launch = sl_own_add(builder, kernel, &a, sizeof(a), kernel == SL_OWN_KERNEL_cast ? a.elements : (a.elements + 3) / 4);
        sl_own_slot(launch, offsetof(struct sl_own_cast, out), SL_OWN_OUTPUT, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_cast, in), SL_OWN_INPUT, 0, 0);
        return 0;
}

static const uint8_t activations[] = {
        [SL_ACT_RELU] = SL_OWN_RELU,
        [SL_ACT_CLIP] = SL_OWN_CLIP,
        [SL_ACT_SIGMOID] = SL_OWN_SIGMOID,
        [SL_ACT_TANH] = SL_OWN_TANH,
        [SL_ACT_LEAKY_RELU] = SL_OWN_LEAKY_RELU,
        [SL_ACT_GELU_ERF] = SL_OWN_GELU,
        [SL_ACT_HARD_SWISH] = SL_OWN_HARD_SWISH,
        [SL_ACT_SWISH] = SL_OWN_SWISH,
        [SL_ACT_ELU] = SL_OWN_ELU,
};

bool sl_own_activation(const struct sl_epilogue *epilogue, struct sl_own_step *ret_step)
{
        if (epilogue->activation == SL_ACT_NONE)
                return false;
        *ret_step = (struct sl_own_step){.function = activations[epilogue->activation], .a = epilogue->act_a, .b = epilogue->act_b};
        return true;
}

static int add_bias(struct chain *chain, const struct sl_node_desc *node, int axis)
{
        int64_t strides[SL_RANK_MAX] = {0};

        if (axis < 0)
                return 0;
        if (!sl_own_is_there(node, 2) || node->inputs[2].dtype != chain->out->dtype || (uint32_t)axis >= chain->out->shape.rank)
                return -ENOTSUP;
        strides[axis] = sl_shape_elements(&node->inputs[2].shape) > 1;
        add_strided(chain, strides, SL_OWN_INPUT, 2);
        add_step(chain, SL_OWN_ADD, chain->argument.n_operands - 1, 0, 0);
        return 0;
}

int sl_own_build_finish(struct sl_own_builder *builder, const struct sl_node_desc *node, int bias_axis)
{
        const struct sl_tensor *residual = &node->inputs[node->n_inputs - 1];
        struct chain chain;

        if (!sl_own_is_float(node->outputs[0].dtype) || node->epilogue.activation > SL_ACT_ELU)
                return -ENOTSUP;
        start_chain(&chain, &node->outputs[0]);
        if (bias_axis == SL_OWN_BIAS_BROADCAST) {
                add_operand(&chain, &node->inputs[2], SL_OWN_INPUT, 2);
                add_step(&chain, SL_OWN_SCALE, 0, sl_attrs_float(&node->attrs, SL_ATTR_BETA, 1), 0);
        }
        add_operand(&chain, &node->outputs[0], SL_OWN_OUTPUT, 0);
        if (bias_axis == SL_OWN_BIAS_BROADCAST)
                add_step(&chain, SL_OWN_ADD, 1, 0, 0);
        if (add_bias(&chain, node, bias_axis))
                return -ENOTSUP;
        if (node->epilogue.has_residual) {
                if (residual->dtype != node->outputs[0].dtype)
                        return -ENOTSUP;
                add_operand(&chain, residual, SL_OWN_INPUT, node->n_inputs - 1);
                add_step(&chain, SL_OWN_ADD, chain.argument.n_operands - 1, 0, 0);
        }
        if (sl_own_activation(&node->epilogue, &chain.argument.steps[chain.argument.n_steps]))
                chain.argument.n_steps++;
        if (chain.argument.n_steps)
                finish_chain(builder, &chain, (uint32_t)chain_kernel(node->outputs[0].dtype));
        return 0;
}
