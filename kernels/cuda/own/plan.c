/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/own/builder.h"

#include <errno.h>
#include <stdlib.h>

#define ELEMENTS_MAX ((1ull << 31) - 1)

/* Operator and the function that plans it. */
/* clang-format off */
#define OPERATORS(X)                                                                                                               \
        X(RELU, unary) X(LEAKY_RELU, unary) X(ELU, unary) X(SIGMOID, unary) X(HARD_SIGMOID, unary) X(HARD_SWISH, unary)            \
        X(TANH, unary) X(SOFTPLUS, unary) X(GELU, unary) X(ERF, unary) X(EXP, unary) X(LOG, unary) X(SQRT, unary)                  \
        X(RECIPROCAL, unary) X(NEG, unary) X(ABS, unary) X(FLOOR, unary) X(CEIL, unary) X(ROUND, unary) X(SIGN, unary)             \
        X(SIN, unary) X(COS, unary) X(CLIP, unary) X(ACOS, unary) X(ACOSH, unary) X(ASIN, unary) X(ASINH, unary) X(ATAN, unary)    \
        X(ATANH, unary) X(COSH, unary) X(SINH, unary) X(TAN, unary) X(SELU, unary) X(CELU, unary) X(MISH, unary)                   \
        X(THRESHOLDED_RELU, unary) X(SOFTSIGN, unary) X(SHRINK, unary) X(NOT, unary) X(BITWISE_NOT, unary)                         \
        X(ADD, arithmetic) X(SUB, arithmetic) X(MUL, arithmetic) X(DIV, arithmetic) X(POW, arithmetic) X(MIN, arithmetic)          \
        X(MAX, arithmetic) X(SUM, arithmetic) X(MEAN, arithmetic) X(PRELU, arithmetic) X(MOD, arithmetic)                          \
        X(BIT_SHIFT, arithmetic) X(BITWISE_AND, arithmetic) X(BITWISE_OR, arithmetic) X(BITWISE_XOR, arithmetic)           \
        X(IDENTITY, view) X(RESHAPE, view) X(FLATTEN, view) X(SQUEEZE, view) X(UNSQUEEZE, view) X(CONCAT, concat)                  \
        X(SPLIT, split) X(SLICE, slice) X(TRANSPOSE, transpose) X(REORDER, reorder) X(EXPAND, expand) X(TILE, tile)                \
        X(DEPTH_TO_SPACE, blocks) X(SPACE_TO_DEPTH, blocks) X(CONSTANT_OF_SHAPE, constant_of_shape) X(SHAPE, shape) X(PAD, pad)    \
        X(CENTER_CROP_PAD, center_crop_pad) X(CHANNEL_SHUFFLE, channel_shuffle) X(TRILU, trilu) X(EYE_LIKE, eye_like)              \
        X(GATHER, gather) X(GATHER_ELEMENTS, gather_elements) X(GATHER_ND, gather_nd) X(SCATTER_ELEMENTS, scatter_elements)        \
        X(SCATTER_ND, scatter_nd) X(EQUAL, test) X(GREATER, test) X(GREATER_OR_EQUAL, test) X(LESS, test) X(LESS_OR_EQUAL, test)  \
        X(AND, test) X(OR, test) X(XOR, test) X(IS_NAN, test) X(IS_INF, test) X(WHERE, where) X(CAST, cast)                        \
        X(SOFTMAX, softmax) X(LOG_SOFTMAX, softmax) X(LP_NORM, lp_norm) X(LAYER_NORM, layer_norm) X(RMS_NORM, rms_norm)            \
        X(INSTANCE_NORM, instance_norm) X(GROUP_NORM, group_norm) X(REDUCE_SUM, reduce) X(REDUCE_MEAN, reduce)                     \
        X(REDUCE_MAX, reduce) X(REDUCE_MIN, reduce) X(REDUCE_PROD, reduce) X(REDUCE_L1, reduce) X(REDUCE_L2, reduce)               \
        X(REDUCE_SUM_SQUARE, reduce) X(REDUCE_LOG_SUM, reduce) X(REDUCE_LOG_SUM_EXP, reduce) X(GLOBAL_AVERAGE_POOL, global_pool)   \
        X(GLOBAL_MAX_POOL, global_pool) X(GLOBAL_LP_POOL, global_pool) X(ARG_MAX, argreduce) X(ARG_MIN, argreduce)                 \
        X(MAX_POOL, pool) X(AVERAGE_POOL, pool) X(LP_POOL, pool) X(BATCH_NORM, scale) X(NORMALIZED_CONCAT, scale) X(LRN, lrn)      \
        X(RESIZE, resize) X(TOP_K, top_k) X(CUM_SUM, cum_sum) X(NON_MAX_SUPPRESSION, non_max_suppression)                          \
        X(QUANTIZE_LINEAR, quantize) X(DEQUANTIZE_LINEAR, dequantize) X(QUANTIZED_ADD, quantized_add)                              \
        X(LSTM, recurrent) X(GRU, recurrent) X(RNN, recurrent) X(ONE_HOT, one_hot) X(CONV, convolve)                               \
        X(CONV_TRANSPOSE, convolve) X(HARDMAX, hardmax) X(GRID_SAMPLE, grid_sample) X(REVERSE_SEQUENCE, reverse_sequence)          \
        X(MEAN_VARIANCE_NORM, mean_variance) X(DYNAMIC_QUANTIZE_LINEAR, dynamic_quantize) X(LANED_CONV, convolve)            \
        X(ROW_ATTENTION, row_attention)
/* clang-format on */

static int (*const operators[SL_OP_COUNT])(struct sl_own_builder *builder, const struct sl_node_desc *node) = {
#define X(id, function) [SL_OP_##id] = sl_own_plan_##function,
        OPERATORS(X)
#undef X
};

bool sl_own_runs(uint32_t op)
{
        return op < SL_OP_COUNT && operators[op];
}

static bool tensor_fits(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_NONE || sl_shape_elements(&tensor->shape) <= ELEMENTS_MAX;
}

static bool tensors_fit(const struct sl_node_desc *node)
{
        if (node->n_inputs > SL_NODE_INPUTS_MAX || node->n_outputs > SL_NODE_OUTPUTS_MAX || !node->n_outputs ||
                !sl_op_parameters_resolved(node))
                return false;
        if (sl_tensors_are_small(node->inputs, node->n_inputs) || sl_tensors_are_small(node->outputs, node->n_outputs))
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (!tensor_fits(&node->inputs[i]))
                        return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (!tensor_fits(&node->outputs[i]))
                        return false;
        return true;
}

static bool node_fits(const struct sl_node_desc *node)
{
        return node->op < SL_OP_COUNT && operators[node->op] && tensors_fit(node);
}

/* No operator has anything to do where no output has an element. */
static bool is_empty(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i].dtype != SL_DTYPE_NONE && sl_shape_elements(&node->outputs[i].shape))
                        return false;
        return true;
}

static int build(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        bool fused = node->epilogue.has_residual || node->epilogue.activation != SL_ACT_NONE;

        if (!node_fits(node) || (fused && !(sl_op_traits(node->op) & SL_OP_EPILOGUE)))
                return -ENOTSUP;
        return operators[node->op](builder, node);
}

static int keep(struct sl_own_plan *plan, int r, struct sl_own_builder *builder, struct sl_own_plan *ret_plan)
{
        r = r ? r : builder->error;
        if (r)
                sl_cuda_own_plan_deinit(plan);
        else
                *ret_plan = *plan;
        return r;
}

bool sl_cuda_own_supports(const struct sl_node_desc *node)
{
        struct sl_own_builder builder = {.plan = NULL};

        return build(&builder, node) == 0;
}

int sl_cuda_own_plan(const struct sl_node_desc *node, struct sl_own_plan *ret_plan)
{
        struct sl_own_plan plan = {.n_launches = 0};
        struct sl_own_builder builder = {.plan = &plan};
        int r = build(&builder, node);

        if (!r && is_empty(node)) {
                sl_cuda_own_plan_deinit(&plan);
                *ret_plan = (struct sl_own_plan){.n_launches = 0};
                return 0;
        }
        return keep(&plan, r, &builder, ret_plan);
}

int sl_cuda_own_plan_finish(const struct sl_node_desc *node, int bias_axis, struct sl_own_plan *ret_plan)
{
        struct sl_own_plan plan = {.n_launches = 0};
        struct sl_own_builder builder = {.plan = &plan};

        return keep(&plan, sl_own_build_finish(&builder, node, bias_axis), &builder, ret_plan);
}

/* A part of a node, of which another function says how it is built. */
static int plan_part(const struct sl_node_desc *node, int (*part)(struct sl_own_builder *builder, const struct sl_node_desc *node),
        struct sl_own_plan *ret_plan)
{
        struct sl_own_plan plan = {.n_launches = 0};
        struct sl_own_builder builder = {.plan = &plan};

        return keep(&plan, tensors_fit(node) ? part(&builder, node) : -ENOTSUP, &builder, ret_plan);
}

int sl_cuda_own_plan_turns(const struct sl_node_desc *node, struct sl_own_plan *ret_plan)
{
        return plan_part(node, sl_own_build_turns, ret_plan);
}

int sl_cuda_own_plan_shift(const struct sl_node_desc *node, struct sl_own_plan *ret_plan)
{
        return plan_part(node, sl_own_build_shift, ret_plan);
}

int sl_cuda_own_plan_settle(const struct sl_node_desc *node, struct sl_own_plan *ret_plan)
{
        return plan_part(node, sl_own_build_settle, ret_plan);
}

int sl_cuda_own_plan_int8_image(const struct sl_node_desc *node, struct sl_own_plan *ret_plan)
{
        return plan_part(node, sl_own_build_int8_image, ret_plan);
}

int sl_cuda_own_plan_int8_rows(const struct sl_node_desc *node, struct sl_own_plan *ret_plan)
{
        return plan_part(node, sl_own_build_int8_rows, ret_plan);
}

int sl_cuda_own_plan_int8_settle(const struct sl_node_desc *node, struct sl_own_plan *ret_plan)
{
        return plan_part(node, sl_own_build_int8_settle, ret_plan);
}

void sl_cuda_own_plan_deinit(struct sl_own_plan *plan)
{
        free(plan->launches);
        *plan = (struct sl_own_plan){.n_launches = 0};
}
