/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of the ref backend: one row per operator of SL_OPS. A kernel is a function of the node and the pointers; it
 * keeps nothing between launches and may trust the node, which sl_op_infer() has agreed with at compile time.
 */
#pragma once

#include "backend.h"
#include "op.h"
#include "pace.h"

/* Sets of element types, as bits 1 << dtype. */
#define SL_REF_BIT(dtype) (1u << SL_DTYPE_##dtype)
#define SL_REF_FLOATS     (SL_REF_BIT(F32) | SL_REF_BIT(F64) | SL_REF_BIT(F16) | SL_REF_BIT(BF16))
#define SL_REF_WIDE       (SL_REF_BIT(I32) | SL_REF_BIT(I64) | SL_REF_BIT(U32) | SL_REF_BIT(U64))
#define SL_REF_BYTES      (SL_REF_BIT(I8) | SL_REF_BIT(U8))
#define SL_REF_BOOL       SL_REF_BIT(BOOL)
#define SL_REF_INTEGERS   (SL_REF_WIDE | SL_REF_BYTES | SL_REF_BIT(I16) | SL_REF_BIT(U16))
#define SL_REF_NUMBERS    (SL_REF_FLOATS | SL_REF_INTEGERS)
#define SL_REF_FLOATS_8                                                                                                            \
        (SL_REF_BIT(F8E4M3FN) | SL_REF_BIT(F8E4M3FNUZ) | SL_REF_BIT(F8E5M2) | SL_REF_BIT(F8E5M2FNUZ) | SL_REF_BIT(F8E8M0))
#define SL_REF_NIBBLES (SL_REF_BIT(U4) | SL_REF_BIT(I4) | SL_REF_BIT(F4E2M1) | SL_REF_BIT(U2) | SL_REF_BIT(I2))
#define SL_REF_SMALL   (SL_REF_FLOATS_8 | SL_REF_NIBBLES)
#define SL_REF_ALL     (SL_REF_NUMBERS | SL_REF_BOOL | SL_REF_SMALL)

/* id, function, types of the first tensor (input 0, or output 0 of an operator without inputs) */
#define SL_REF_KERNELS(X)                                                                                                          \
        X(CONV, conv, SL_REF_FLOATS)                                                                                               \
        X(GEMM, gemm, SL_REF_FLOATS | SL_REF_WIDE)                                                                                 \
        X(MATMUL, matmul, SL_REF_FLOATS | SL_REF_WIDE)                                                                             \
        X(MAX_POOL, pool, SL_REF_FLOATS | SL_REF_BYTES)                                                                            \
        X(AVERAGE_POOL, pool, SL_REF_FLOATS)                                                                                       \
        X(GLOBAL_AVERAGE_POOL, global_pool, SL_REF_FLOATS)                                                                         \
        X(GLOBAL_MAX_POOL, global_pool, SL_REF_FLOATS)                                                                             \
        X(MBCONV, mbconv, SL_REF_FLOATS)                                                                                           \
        X(NORMALIZED_CONCAT, normalized_concat, SL_REF_FLOATS)                                                                     \
        X(BATCH_NORM, batch_norm, SL_REF_FLOATS)                                                                                   \
        X(LAYER_NORM, layer_norm, SL_REF_FLOATS)                                                                                   \
        X(INSTANCE_NORM, instance_norm, SL_REF_FLOATS)                                                                             \
        X(LRN, lrn, SL_REF_FLOATS)                                                                                                 \
        X(SOFTMAX, softmax, SL_REF_FLOATS)                                                                                         \
        X(LOG_SOFTMAX, softmax, SL_REF_FLOATS)                                                                                     \
        X(RELU, unary, SL_REF_NUMBERS)                                                                                             \
        X(LEAKY_RELU, unary, SL_REF_FLOATS)                                                                                        \
        X(PRELU, prelu, SL_REF_FLOATS | SL_REF_WIDE)                                                                               \
        X(ELU, unary, SL_REF_FLOATS)                                                                                               \
        X(SIGMOID, unary, SL_REF_FLOATS)                                                                                           \
        X(HARD_SIGMOID, unary, SL_REF_FLOATS)                                                                                      \
        X(HARD_SWISH, unary, SL_REF_FLOATS)                                                                                        \
        X(TANH, unary, SL_REF_FLOATS)                                                                                              \
        X(SOFTPLUS, unary, SL_REF_FLOATS)                                                                                          \
        X(GELU, unary, SL_REF_FLOATS)                                                                                              \
        X(ERF, unary, SL_REF_FLOATS)                                                                                               \
        X(EXP, unary, SL_REF_FLOATS)                                                                                               \
        X(LOG, unary, SL_REF_FLOATS)                                                                                               \
        X(SQRT, unary, SL_REF_FLOATS)                                                                                              \
        X(RECIPROCAL, unary, SL_REF_FLOATS)                                                                                        \
        X(NEG, unary, SL_REF_NUMBERS)                                                                                              \
        X(ABS, unary, SL_REF_NUMBERS)                                                                                              \
        X(FLOOR, unary, SL_REF_FLOATS)                                                                                             \
        X(CEIL, unary, SL_REF_FLOATS)                                                                                              \
        X(ROUND, unary, SL_REF_FLOATS)                                                                                             \
        X(SIGN, unary, SL_REF_NUMBERS)                                                                                             \
        X(SIN, unary, SL_REF_FLOATS)                                                                                               \
        X(COS, unary, SL_REF_FLOATS)                                                                                               \
        X(NOT, unary, SL_REF_BOOL)                                                                                                 \
        X(CLIP, unary, SL_REF_NUMBERS)                                                                                             \
        X(IDENTITY, view, SL_REF_ALL)                                                                                              \
        X(CAST, cast, SL_REF_ALL)                                                                                                  \
        X(ADD, arithmetic, SL_REF_NUMBERS)                                                                                         \
        X(SUB, arithmetic, SL_REF_NUMBERS)                                                                                         \
        X(MUL, arithmetic, SL_REF_NUMBERS)                                                                                         \
        X(DIV, arithmetic, SL_REF_NUMBERS)                                                                                         \
        X(POW, power, SL_REF_NUMBERS)                                                                                              \
        X(MIN, arithmetic, SL_REF_NUMBERS)                                                                                         \
        X(MAX, arithmetic, SL_REF_NUMBERS)                                                                                         \
        X(SUM, arithmetic, SL_REF_NUMBERS)                                                                                         \
        X(MEAN, arithmetic, SL_REF_FLOATS)                                                                                         \
        X(EQUAL, compare, SL_REF_ALL)                                                                                              \
        X(GREATER, compare, SL_REF_NUMBERS)                                                                                        \
        X(GREATER_OR_EQUAL, compare, SL_REF_NUMBERS)                                                                               \
        X(LESS, compare, SL_REF_NUMBERS)                                                                                           \
        X(LESS_OR_EQUAL, compare, SL_REF_NUMBERS)                                                                                  \
        X(AND, compare, SL_REF_BOOL)                                                                                               \
        X(OR, compare, SL_REF_BOOL)                                                                                                \
        X(WHERE, where, SL_REF_BOOL)                                                                                               \
        X(CONCAT, concat, SL_REF_ALL)                                                                                              \
        X(SLICE, slice, SL_REF_ALL)                                                                                                \
        X(SPLIT, split, SL_REF_ALL)                                                                                                \
        X(RESHAPE, view, SL_REF_ALL)                                                                                               \
        X(FLATTEN, view, SL_REF_ALL)                                                                                               \
        X(SQUEEZE, view, SL_REF_ALL)                                                                                               \
        X(UNSQUEEZE, view, SL_REF_ALL)                                                                                             \
        X(TRANSPOSE, transpose, SL_REF_ALL)                                                                                        \
        X(PAD, pad, SL_REF_ALL)                                                                                                    \
        X(REDUCE_MEAN, reduce, SL_REF_NUMBERS)                                                                                     \
        X(REDUCE_SUM, reduce, SL_REF_NUMBERS)                                                                                      \
        X(REDUCE_MAX, reduce, SL_REF_ALL)                                                                                          \
        X(REDUCE_MIN, reduce, SL_REF_ALL)                                                                                          \
        X(REDUCE_PROD, reduce, SL_REF_NUMBERS)                                                                                     \
        X(REDUCE_L1, reduce, SL_REF_NUMBERS)                                                                                       \
        X(REDUCE_L2, reduce, SL_REF_NUMBERS)                                                                                       \
        X(REDUCE_SUM_SQUARE, reduce, SL_REF_NUMBERS)                                                                               \
        X(REDUCE_LOG_SUM_EXP, reduce, SL_REF_NUMBERS)                                                                              \
        X(ARG_MAX, argreduce, SL_REF_NUMBERS)                                                                                      \
        X(ARG_MIN, argreduce, SL_REF_NUMBERS)                                                                                      \
        X(GATHER, gather, SL_REF_ALL)                                                                                              \
        X(EXPAND, expand, SL_REF_ALL)                                                                                              \
        X(TILE, tile, SL_REF_ALL)                                                                                                  \
        X(SHAPE, shape, SL_REF_ALL)                                                                                                \
        X(CONSTANT_OF_SHAPE, constant_of_shape, SL_REF_ALL)                                                                        \
        X(RANGE, range, SL_REF_NUMBERS)                                                                                            \
        X(REORDER, reorder, SL_REF_ALL)                                                                                            \
        X(LSTM, recurrent, SL_REF_FLOATS)                                                                                          \
        X(GRU, recurrent, SL_REF_FLOATS)                                                                                           \
        X(RNN, recurrent, SL_REF_FLOATS)                                                                                           \
        X(QUANTIZE_LINEAR, quantize, SL_REF_FLOATS | SL_REF_BIT(I32))                                                              \
        X(DEQUANTIZE_LINEAR, dequantize, SL_REF_NUMBERS | SL_REF_SMALL)                                                            \
        X(DYNAMIC_QUANTIZE_LINEAR, dynamic_quantize, SL_REF_BIT(F32))                                                              \
        X(QLINEAR_CONV, conv_integer, SL_REF_BYTES)                                                                                \
        X(QLINEAR_MATMUL, matmul_integer, SL_REF_BYTES)                                                                            \
        X(MATMUL_INTEGER, matmul_integer, SL_REF_BYTES)                                                                            \
        X(CONV_INTEGER, conv_integer, SL_REF_BYTES)                                                                                \
        X(CONV_TRANSPOSE, conv_transpose, SL_REF_FLOATS)                                                                           \
        X(DEFORM_CONV, deform_conv, SL_REF_FLOATS)                                                                                 \
        X(ACOS, unary, SL_REF_FLOATS)                                                                                              \
        X(ACOSH, unary, SL_REF_FLOATS)                                                                                             \
        X(ASIN, unary, SL_REF_FLOATS)                                                                                              \
        X(ASINH, unary, SL_REF_FLOATS)                                                                                             \
        X(ATAN, unary, SL_REF_FLOATS)                                                                                              \
        X(ATANH, unary, SL_REF_FLOATS)                                                                                             \
        X(COSH, unary, SL_REF_FLOATS)                                                                                              \
        X(SINH, unary, SL_REF_FLOATS)                                                                                              \
        X(TAN, unary, SL_REF_FLOATS)                                                                                               \
        X(SELU, unary, SL_REF_FLOATS)                                                                                              \
        X(CELU, unary, SL_REF_FLOATS)                                                                                              \
        X(MISH, unary, SL_REF_FLOATS)                                                                                              \
        X(THRESHOLDED_RELU, unary, SL_REF_FLOATS)                                                                                  \
        X(SOFTSIGN, unary, SL_REF_FLOATS)                                                                                          \
        X(SHRINK, unary, SL_REF_NUMBERS)                                                                                           \
        X(BITWISE_NOT, unary, SL_REF_INTEGERS)                                                                                     \
        X(IS_NAN, predicate, SL_REF_FLOATS)                                                                                        \
        X(IS_INF, predicate, SL_REF_FLOATS)                                                                                        \
        X(MOD, modulo, SL_REF_NUMBERS)                                                                                             \
        X(BIT_SHIFT, shift, SL_REF_INTEGERS)                                                                                       \
        X(BITWISE_AND, arithmetic, SL_REF_INTEGERS)                                                                                \
        X(BITWISE_OR, arithmetic, SL_REF_INTEGERS)                                                                                 \
        X(BITWISE_XOR, arithmetic, SL_REF_INTEGERS)                                                                                \
        X(XOR, compare, SL_REF_BOOL)                                                                                               \
        X(REDUCE_LOG_SUM, reduce, SL_REF_NUMBERS)                                                                                  \
        X(CENTER_CROP_PAD, center_crop_pad, SL_REF_ALL)                                                                            \
        X(QUANTIZED_CONV, quantized_conv, SL_REF_BYTES)                                                                            \
        X(NIBBLE_MATMUL, nibble_matmul, SL_REF_FLOATS)                                                                             \
        X(QUANTIZED_MATMUL, quantized_matmul, SL_REF_BYTES)                                                                        \
        X(QUANTIZED_ADD, quantized_add, SL_REF_BYTES)                                                                              \
        X(RESIZE, resize, SL_REF_ALL)                                                                                              \
        X(TOP_K, top_k, SL_REF_NUMBERS)                                                                                            \
        X(NON_MAX_SUPPRESSION, non_max_suppression, SL_REF_BIT(F32))                                                               \
        X(ROI_ALIGN, roi_align, SL_REF_FLOATS)                                                                                     \
        X(MAX_ROI_POOL, max_roi_pool, SL_REF_FLOATS)                                                                               \
        X(GATHER_ELEMENTS, gather_elements, SL_REF_ALL)                                                                            \
        X(GATHER_ND, gather_nd, SL_REF_ALL)                                                                                        \
        X(SCATTER_ELEMENTS, scatter_elements, SL_REF_ALL)                                                                          \
        X(SCATTER_ND, scatter_nd, SL_REF_ALL)                                                                                      \
        X(MAX_UNPOOL, max_unpool, SL_REF_FLOATS)                                                                                   \
        X(LP_POOL, pool, SL_REF_FLOATS)                                                                                            \
        X(GLOBAL_LP_POOL, global_pool, SL_REF_FLOATS)                                                                              \
        X(ROW_ATTENTION, row_attention, SL_REF_FLOATS)                                                                             \
        X(NGRAM, ngram, SL_REF_BIT(I32) | SL_REF_BIT(I64))                                                                         \
        X(CHANNEL_SHUFFLE, channel_shuffle, SL_REF_ALL)                                                                            \
        X(DEPTH_TO_SPACE, blocks, SL_REF_ALL)                                                                                      \
        X(SPACE_TO_DEPTH, blocks, SL_REF_ALL)                                                                                      \
        X(REVERSE_SEQUENCE, reverse_sequence, SL_REF_ALL)                                                                          \
        X(TRILU, trilu, SL_REF_ALL)                                                                                                \
        X(EYE_LIKE, eye_like, SL_REF_ALL)                                                                                          \
        X(ONE_HOT, one_hot, SL_REF_NUMBERS)                                                                                        \
        X(CUM_SUM, cum_sum, SL_REF_NUMBERS)                                                                                        \
        X(HARDMAX, hardmax, SL_REF_FLOATS)                                                                                         \
        X(LP_NORM, lp_norm, SL_REF_FLOATS)                                                                                         \
        X(MEAN_VARIANCE_NORM, mean_variance_norm, SL_REF_FLOATS)                                                                   \
        X(RMS_NORM, rms_norm, SL_REF_FLOATS)                                                                                       \
        X(GROUP_NORM, group_norm, SL_REF_FLOATS)                                                                                   \
        X(COL2IM, col2im, SL_REF_NUMBERS)                                                                                          \
        X(DET, det, SL_REF_FLOATS)                                                                                                 \
        X(HANN_WINDOW, taper, SL_REF_NUMBERS)                                                                                      \
        X(HAMMING_WINDOW, taper, SL_REF_NUMBERS)                                                                                   \
        X(BLACKMAN_WINDOW, taper, SL_REF_NUMBERS)                                                                                  \
        X(MEL_WEIGHTS, mel_weights, SL_REF_WIDE)                                                                                   \
        X(DFT, dft, SL_REF_FLOATS)                                                                                                 \
        X(STFT, stft, SL_REF_FLOATS)                                                                                               \
        X(NLL_LOSS, loss, SL_REF_FLOATS)                                                                                           \
        X(CROSS_ENTROPY_LOSS, loss, SL_REF_FLOATS)                                                                                 \
        X(EINSUM, einsum, SL_REF_NUMBERS)                                                                                          \
        X(GRID_SAMPLE, grid_sample, SL_REF_FLOATS)                                                                                 \
        X(AFFINE_GRID, affine_grid, SL_REF_FLOATS)                                                                                 \
        X(ATTENTION, attention, SL_REF_FLOATS)                                                                                     \
        X(ROTARY_EMBEDDING, rotary_embedding, SL_REF_FLOATS)                                                                       \
        X(NON_ZERO, non_zero, SL_REF_ALL)                                                                                          \
        X(COMPRESS, compress, SL_REF_ALL)                                                                                          \
        X(UNIQUE, unique, SL_REF_ALL)                                                                                              \
        X(IF, control, 0)                                                                                                          \
        X(LOOP, control, 0)                                                                                                        \
        X(SCAN, control, 0)                                                                                                        \
        X(TREES, trees, SL_REF_BIT(F32) | SL_REF_BIT(F64))                                                                         \
        X(CLASS_SCORES, class_scores, SL_REF_BIT(F32) | SL_REF_BIT(F64))                                                           \
        X(PAIR_CLASSES, pair_classes, SL_REF_BIT(F32))                                                                             \
        X(LOOKUP, lookup, SL_REF_NUMBERS)                                                                                          \
        X(SQUARED_DISTANCE, squared_distance, SL_REF_BIT(F32))                                                                     \
        X(LANED_CONV, laned_conv, SL_REF_FLOATS)                                                                                   \
        X(SAMPLE_KEYS, sample_keys, SL_REF_ALL)                                                                                    \
        X(RANDOM_NORMAL, random, SL_REF_ALL)                                                                                       \
        X(RANDOM_UNIFORM, random, SL_REF_ALL)                                                                                      \
        X(RANDOM_NORMAL_LIKE, random, SL_REF_ALL)                                                                                  \
        X(RANDOM_UNIFORM_LIKE, random, SL_REF_ALL)                                                                                 \
        X(BERNOULLI, bernoulli, SL_REF_FLOATS)                                                                                     \
        X(MULTINOMIAL, multinomial, SL_REF_FLOATS)                                                                                 \
        X(BIT_CAST, bit_cast, SL_REF_ALL)                                                                                          \
        X(CUM_PROD, cum_prod, SL_REF_NUMBERS)                                                                                      \
        X(TENSOR_SCATTER, tensor_scatter, SL_REF_ALL)                                                                              \
        X(LINEAR_ATTENTION, linear_attention, SL_REF_FLOATS)

#define X(id, function, types) int sl_ref_##function(const struct sl_node_desc *node, const struct sl_binding *binding);
SL_REF_KERNELS(X)
#undef X

/*
 * Runs a node whose outputs sl_op_infer() has just given: no kernel is made and nothing is checked twice. The scratch that it
 * wants comes first. Return: as supports() and launch() of the backend.
 */
size_t sl_ref_scratch_bytes(const struct sl_node_desc *node);
int sl_ref_run(const struct sl_node_desc *node, const struct sl_binding *binding);

/* id, function: kernels that need scratch say how many bytes; a shape rule has bounded them. */
#define SL_REF_SCRATCHES(X)                                                                                                        \
        X(LSTM, recurrent)                                                                                                         \
        X(GRU, recurrent)                                                                                                          \
        X(RNN, recurrent)                                                                                                          \
        X(RESIZE, resize)                                                                                                          \
        X(TOP_K, top_k)                                                                                                            \
        X(NON_MAX_SUPPRESSION, non_max_suppression)                                                                                \
        X(DET, det)                                                                                                                \
        X(COL2IM, col2im)                                                                                                          \
        X(DFT, dft)                                                                                                                \
        X(STFT, dft)                                                                                                               \
        X(ATTENTION, attention)                                                                                                    \
        X(UNIQUE, unique) X(MBCONV, mbconv) X(ROW_ATTENTION, row_attention) X(TREES, trees) X(PAIR_CLASSES, pair_classes)          \
                X(CLASS_SCORES, class_scores) X(MULTINOMIAL, multinomial) X(LINEAR_ATTENTION, linear_attention)

#define X(id, function) size_t sl_ref_scratch_##function(const struct sl_node_desc *node);
SL_REF_SCRATCHES(X)
#undef X
