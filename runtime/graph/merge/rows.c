/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/rows.h"

#include "op.h"

#include <stddef.h>

/* clang-format off: a table */
/* operator, dimension, with K in front, with K folded into channels, what it becomes */
#define ROWS(X)                                                                                                                    \
        X(CONV, CHANNEL, NULL, sl_weave_grouped, "Conv of K times as many groups, or starling.LanedConv")                          \
        X(CONV_TRANSPOSE, CHANNEL, NULL, sl_weave_grouped, "ConvTranspose of K times as many groups")                              \
        X(MATMUL, BATCH, sl_weave_product, NULL, "MatMul of K matrices")                                                           \
        X(GEMM, BATCH, sl_weave_gemm, NULL, "MatMul of K matrices")                                                                \
        X(LAYER_NORM, CHANNEL, sl_weave_layer_norm, sl_weave_group_norm,                                                           \
                "GroupNormalization of K groups, or a laned LayerNormalization")                                                   \
        X(RMS_NORM, BATCH, sl_weave_layer_norm, NULL, "a laned RMSNormalization")                                                  \
        X(GROUP_NORM, CHANNEL, NULL, sl_weave_channelled, "GroupNormalization of K times as many groups")                          \
        X(BATCH_NORM, CHANNEL, NULL, sl_weave_channelled, "BatchNormalization of K times as many channels")                        \
        X(INSTANCE_NORM, CHANNEL, NULL, sl_weave_channelled, "InstanceNormalization of K times as many channels")                  \
        X(MAX_POOL, DONT_CARE, sl_weave_folded, sl_weave_pooled, "itself")                                                         \
        X(AVERAGE_POOL, DONT_CARE, sl_weave_folded, sl_weave_pooled, "itself")                                                     \
        X(LP_POOL, DONT_CARE, sl_weave_folded, sl_weave_pooled, "itself")                                                          \
        X(GLOBAL_AVERAGE_POOL, DONT_CARE, sl_weave_folded, sl_weave_pooled, "itself")                                              \
        X(GLOBAL_MAX_POOL, DONT_CARE, sl_weave_folded, sl_weave_pooled, "itself")                                                  \
        X(GLOBAL_LP_POOL, DONT_CARE, sl_weave_folded, sl_weave_pooled, "itself")                                                   \
        X(LRN, BATCH, sl_weave_folded, NULL, "itself, of K times as many samples: it sums over channels")                          \
        X(RESIZE, BATCH, sl_weave_folded, NULL, "itself, of K times as many samples")                                              \
        X(DEPTH_TO_SPACE, BATCH, sl_weave_folded, NULL, "itself, of K times as many samples: it moves channels")                   \
        X(SPACE_TO_DEPTH, BATCH, sl_weave_folded, NULL, "itself, of K times as many samples: it moves channels")                   \
        X(ROW_ATTENTION, BATCH, sl_weave_folded, NULL, "itself, of K times as many samples")                                       \
        X(ATTENTION, BATCH, sl_weave_folded, NULL, "itself, of K times as many samples")                                           \
        X(PRELU, DONT_CARE, sl_weave_elements, sl_weave_elements, "itself")                                                        \
        X(SOFTMAX, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                              \
        X(LOG_SOFTMAX, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                          \
        X(HARDMAX, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                              \
        X(LP_NORM, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                              \
        X(CUM_SUM, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                              \
        X(TOP_K, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                                \
        X(ARG_MAX, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                              \
        X(ARG_MIN, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                              \
        X(CONCAT, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself, with the lanes opened where it joins channels")                \
        X(SPLIT, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself, with the lanes opened where it parts channels")                 \
        X(SLICE, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself, with the lanes opened where it takes channels")                 \
        X(TRANSPOSE, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself, around the lanes")                                          \
        X(PAD, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                                  \
        X(SQUEEZE, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                              \
        X(UNSQUEEZE, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                            \
        X(REDUCE_MEAN, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                          \
        X(REDUCE_SUM, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                           \
        X(REDUCE_MAX, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                           \
        X(REDUCE_MIN, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                           \
        X(REDUCE_PROD, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                          \
        X(REDUCE_L1, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                            \
        X(REDUCE_L2, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                            \
        X(REDUCE_SUM_SQUARE, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                    \
        X(REDUCE_LOG_SUM, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                       \
        X(REDUCE_LOG_SUM_EXP, DONT_CARE, sl_weave_axes, sl_weave_axes, "itself")                                                   \
        X(RESHAPE, DONT_CARE, sl_weave_view, sl_weave_view, "itself, of each lane")                                                \
        X(FLATTEN, DONT_CARE, sl_weave_view, sl_weave_view, "a Reshape of each lane")                                              \
        X(EXPAND, BATCH, sl_weave_expand, NULL, "itself")                                                                          \
        X(TILE, BATCH, sl_weave_expand, NULL, "itself")                                                                            \
        X(GATHER, DONT_CARE, sl_weave_indexed, sl_weave_indexed,                                                                   \
                "itself, by indices that all lanes share; a table of each lane stays apart: no index may reach another's")         \
        X(SHAPE, APART, NULL, NULL, "it would count the lanes")                                                                    \
        X(LSTM, APART, NULL, NULL, "its steps follow each other, by weights of their own")                                         \
        X(GRU, APART, NULL, NULL, "its steps follow each other, by weights of their own")                                          \
        X(RNN, APART, NULL, NULL, "its steps follow each other, by weights of their own")                                          \
        X(NON_MAX_SUPPRESSION, APART, NULL, NULL, "how much it makes depends on the data of each lane")                            \
        X(NON_ZERO, APART, NULL, NULL, "how much it makes depends on the data of each lane")                                       \
        X(GATHER_ND, APART, NULL, NULL, "no index of one lane may reach another's data")                                           \
        X(GATHER_ELEMENTS, APART, NULL, NULL, "no index of one lane may reach another's data")                                     \
        X(QUANTIZE_LINEAR, APART, NULL, NULL, "scales and zero points are of each lane")                                           \
        X(DEQUANTIZE_LINEAR, APART, NULL, NULL, "scales and zero points are of each lane")                                         \
        X(DYNAMIC_QUANTIZE_LINEAR, APART, NULL, NULL, "scales and zero points are of each lane")
/* clang-format on */

static const struct sl_merge_row rows[SL_OP_COUNT] = {
#define X(id, where, in_front, in_channels, text)                                                                                  \
        [SL_OP_##id] = {.dimension = SL_MERGE_##where, .lane = in_front, .channel = in_channels, .becomes = text},
        ROWS(X)
#undef X
};

static const struct sl_merge_row elementwise = {
        .dimension = SL_MERGE_DONT_CARE, .lane = sl_weave_elements, .channel = sl_weave_elements, .becomes = "itself"};

static const struct sl_merge_row unknown = {.dimension = SL_MERGE_APART, .becomes = "there is no rule for it"};

const struct sl_merge_row *sl_merge_row(uint32_t op)
{
        if (op >= SL_OP_COUNT)
                return &unknown;
        if (rows[op].becomes)
                return &rows[op];
        return (sl_op_traits(op) & SL_OP_ELEMENTWISE) && op != SL_OP_QUANTIZED_ADD ? &elementwise : &unknown;
}
