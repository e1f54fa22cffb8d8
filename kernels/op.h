/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off: the lists below are tables */
/*
 * The operator table: one row per operator makes its enum, its names, its shape rule and the formula of its work. Adding an
 * operator is a row here, a shape rule in shape/, a formula in shape/work.c, a `ref` kernel in ref/ and, where it pays, a `cpu`
 * kernel in cpu/.
 *
 * Operators are in the canonical form that import produces, whatever opset the file had: the semantics are those of ai.onnx 17,
 * except that small integer parameters (axes, pads, starts, shape, ...) which later opsets take as inputs are attributes
 * here when they are constant. So Reshape has SHAPE, Squeeze/Unsqueeze/Reduce* have AXES, Slice has STARTS, ENDS, AXES, STEPS, Pad
 * has PADS, Clip has MIN and MAX, Split has SPLIT, Expand and Tile have SHAPE (Tile: the repeats), all as attributes; their data
 * input is input 0. Only while such a parameter is not constant yet (it depends on Shape of a batch, say) it stands as an input in
 * ONNX's place; sl_graph_specialise() folds it, and kernels never see it.
 *
 * Where an attribute has another name or type than ONNX's:
 *   LRN                  AXIS is `size`, VALUE is `bias`
 *   ArgMax, ArgMin       MODE is `select_last_index`
 *   Pad                  MODE is 0 constant, 1 reflect, 2 edge, 3 wrap; VALUE (float) is the constant; AXES may be absent
 *   MatMul               input 2 is a bias: a vector, or [lanes, 1, columns] where input 1 is [lanes, depth, columns]
 *   Gelu                 APPROXIMATE is 0 for erf, 1 for tanh
 *   Shape                STARTS and ENDS (lists of one) are `start` and `end`
 *   ConstantOfShape      VALUE (float) and TO (the element type) are the `value` tensor
 *   Reorder              LAYOUT is the layout of the output
 *   starling.RowAttention   GROUP is the number of heads, SHAPE the length of a query and of a value, STARTS the first columns of
 *                        queries, keys and values, ALPHA the scale (shape/attention.h); fusion makes it, no file has it
 *   starling.ChannelShuffle   the inputs side by side along AXIS 1, their C channels regrouped, channel j * GROUP + g being
 *                        g * C / GROUP + j of before, and cut by SPLIT into the outputs; fusion makes it, no file has it
 *   starling.NormalizedConcat   a BatchNormalization of what a Concat along AXIS 1 makes: scale, shift, mean and variance are the
 *                        last four inputs; fusion makes it, no file has it
 *   starling.MBConv      an inverted bottleneck: a pointwise Conv, a depthwise one and a pointwise one in a row, with the window of
 *                        the second (shape/mbconv.h); fusion makes it, no file has it
 *   starling.NibbleMatMul   rows by a matrix of 4 bits an element in blocks of BLOCK_SIZE along its depth, each with a scale and
 *                        maybe a zero point; MODE is 1 where the rows go by bytes, too (shape/nibbles.h); import and fusion make it
 *   starling.LanedConv   a Conv of GROUP groups that interleave: channel c of group g is channel c * GROUP + g of the image, its
 *                        filter f is filter f * GROUP + g; a merge of networks makes it, no file has it
 *   starling.Trees       MODE is 0 SUM, 1 AVERAGE, 2 MIN, 3 MAX, LENGTH the number of targets, TO the type of the output; the trees
 *                        are inputs 1 to 8 (shape/trees.h); import makes it of the tree ensembles of ai.onnx.ml
 *   starling.ClassScores rows of scores by the post_transform of ai.onnx.ml, which is MODE, and the label of each row, from input 1
 *                        (shape/classes.h); GROUP says whether one score stands for two classes
 *   starling.PairClasses decisions between each two classes, which vote or, with inputs 2 and 3, have probabilities
 *                        (shape/classes.h)
 *   starling.Lookup      the element of input 2 that stands where input 0 is found in input 1, which is sorted; the last one of
 *                        input 2 where it is not found, or -ERANGE without such
 *   starling.SquaredDistance   between each row of input 0 and each of input 1
 *   LSTM, GRU, RNN       DIRECTION is 0 forward, 1 reverse, 2 bidirectional; ACTIVATIONS are numbers (shape/recurrent.h), with
 *                        ACTIVATION_ALPHA and ACTIVATION_BETA for each of them, whether it has such a parameter or not
 *   ConvTranspose        output_shape is resolved into PADS and OUTPUT_PADDING
 *   BitShift             MODE is 0 for left, 1 for right
 *   CenterCropPad        SHAPE is the input of that name
 *   Resize               words are numbers (shape/resize.h), ROI, SCALES and SIZES are inputs 1 to 3; Upsample becomes it
 *   RoiAlign             MODE is 0 avg, 1 max; TRANSFORM is 0 half_pixel, 1 output_half_pixel
 *   Scatter*             REDUCTION is 0 none, 1 add, 2 mul, 3 max, 4 min; Scatter is ScatterElements
 *   NonMaxSuppression    MAX_BOXES is input 2
 *   TfIdfVectorizer      inputs 1 to 4 are pool_int64s, ngram_counts, ngram_indexes, weights; LENGTH is that of a row of the
 *                        output; MODE is 0 TF, 1 IDF, 2 TFIDF
 *   OneHot               DEPTH is input 2, the values are input 1
 *   MelWeightMatrix      BINS and LENGTH are inputs 3 and 4, behind the rate and the edges
 *   Einsum               EQUATION is made of numbers (shape/einsum.h); a product of two is MatMul with Transposes
 *   *Loss                REDUCTION is 0 mean, 1 sum, 2 none
 *   GridSample           MODE is 0 linear, 1 nearest, 2 cubic; PADDING_MODE is 0 zeros, 1 border, 2 reflection
 *   Attention            as the standard corrected opset 23 later: QK_MODE 1 is behind softcap, 2 behind the mask
 *   TensorScatter        MODE is 0 linear, 1 circular
 *   LinearAttention      MODE is 0 linear, 1 gated, 2 delta, 3 gated_delta (shape/linear_attention.h)
 *   BitCast              to bool, what is not 0 is true
 *   Random*, Bernoulli, Multinomial   the keys of the samples are the last input, [samples, 2] of uint64, which starling.SampleKeys
 *                        makes, of as many samples as its input leads with, or of one (draw.h); import makes it. TO is `dtype`;
 * STREAM tells nodes apart, RANDOM_SEED is the model's seed, which counts where the node has none If, Loop, Scan       what bodies
 * read of the outer graph are further inputs, at the end; CARRIED is how many values a Loop or a Scan carries from one run of its
 * body to the next auto_pad is resolved into PADS, the axis of a Softmax before opset 13 into reshapes, by import.
 *
 * Quantized operators, which passes make of what lies between DequantizeLinear and QuantizeLinear: bytes go in, sums are exact, and
 * each result is rounded once. A byte q stands for scale * (q - zero). TO is the type of the output: uint8, int8 (both with Y_SCALE
 * and Y_ZERO) or float32.
 *   starling.QuantizedConv    X (bytes, X_ZERO), W (int8), scale [M] or [1] (constant: what one unit of the sum is worth), bias
 *                             (int32 [M], in units of the sum, may be absent), then the residual (of bytes, with ADDEND_SCALE and
 *                             ADDEND_ZERO; or float32 where the output is); the window and groups of Conv
 *   starling.QuantizedMatMul  the same with X [..., K] and W [K,N], or [N,K] with TRANS_B
 *   starling.QuantizedAdd     X_SCALE * (x - X_ZERO), plus ADDEND_SCALE * (addend - ADDEND_ZERO) if there is a second input
 * Their epilogue works on the real numbers, before the result is rounded.
 */
/* clang-format on */
#pragma once

#include "node.h"

struct sl_error;

enum {
        SL_OP_INPLACE = 1 << 0,     /* output 0 may lie on input 0 when shape, type and layout agree */
        SL_OP_EPILOGUE = 1 << 1,    /* may carry an epilogue */
        SL_OP_VIEW = 1 << 2,        /* output 0 has the bytes of input 0: nothing is computed */
        SL_OP_ELEMENTWISE = 1 << 3, /* any layout, as long as all tensors have the same one */
        SL_OP_SPATIAL = 1 << 4,     /* inputs and outputs of rank 3 to 5 may be CHANNELS_LAST */
        SL_OP_INDEXES = 1 << 5,     /* reads integers as indices: those inputs are copied out of client memory first */
        SL_OP_DEAR = 1 << 6,        /* its cost is not bounded by the size of its tensors: never folded */
        SL_OP_LEADING = 1 << 7,     /* computes along every axis but the first */
        SL_OP_MIXES = 1 << 8,       /* may compute along any axis: its samples are never independent */
        SL_OP_READS_LAST = 1 << 9,  /* input 0 of rank 3 to 5 may be CHANNELS_LAST; outputs are PLAIN */
        SL_OP_COUNTS = 1 << 10,     /* how much it makes is data-dependent: see sl_op_bound() */
        SL_OP_CONTROL = 1 << 11,    /* has bodies, graphs of its own: see control.h */
        SL_OP_DRAWS = 1 << 12,      /* draws random numbers: the keys of the samples are its last input (draw.h) */
};

/* id, ONNX name, least and most inputs, outputs (at most), shape rule, formula of its work, traits */
#define SL_OPS(X)                                                                                                                  \
        X(CONV, "Conv", 2, 4, 1, conv, conv, SL_OP_EPILOGUE | SL_OP_SPATIAL | SL_OP_DEAR)                                          \
        X(GEMM, "Gemm", 2, 4, 1, gemm, matmul, SL_OP_EPILOGUE)                                                                     \
        X(MATMUL, "MatMul", 2, 4, 1, matmul, matmul, SL_OP_EPILOGUE)                                                               \
        X(MAX_POOL, "MaxPool", 1, 1, 2, pool, pool, SL_OP_SPATIAL | SL_OP_DEAR)                                                    \
        X(AVERAGE_POOL, "AveragePool", 1, 1, 1, pool, pool, SL_OP_SPATIAL | SL_OP_DEAR)                                            \
        X(GLOBAL_AVERAGE_POOL, "GlobalAveragePool", 1, 1, 1, global_pool, passes, SL_OP_SPATIAL)                                   \
        X(GLOBAL_MAX_POOL, "GlobalMaxPool", 1, 1, 1, global_pool, passes, SL_OP_SPATIAL)                                           \
        X(BATCH_NORM, "BatchNormalization", 5, 5, 1, batch_norm, passes, SL_OP_SPATIAL | SL_OP_INPLACE | SL_OP_EPILOGUE)           \
        X(LAYER_NORM, "LayerNormalization", 2, 3, 3, layer_norm, passes, SL_OP_INPLACE)                                            \
        X(INSTANCE_NORM, "InstanceNormalization", 3, 3, 1, instance_norm, passes, SL_OP_SPATIAL)                                   \
        X(LRN, "LRN", 1, 1, 1, lrn, lrn, SL_OP_SPATIAL | SL_OP_DEAR)                                                               \
        X(SOFTMAX, "Softmax", 1, 1, 1, softmax, passes, SL_OP_INPLACE)                                                             \
        X(LOG_SOFTMAX, "LogSoftmax", 1, 1, 1, softmax, passes, SL_OP_INPLACE)                                                      \
        X(RELU, "Relu", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(LEAKY_RELU, "LeakyRelu", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                         \
        X(PRELU, "PRelu", 2, 2, 1, prelu, operands, SL_OP_INPLACE)                                                                 \
        X(ELU, "Elu", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                      \
        X(SIGMOID, "Sigmoid", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                              \
        X(HARD_SIGMOID, "HardSigmoid", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                     \
        X(HARD_SWISH, "HardSwish", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                         \
        X(TANH, "Tanh", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(SOFTPLUS, "Softplus", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                            \
        X(GELU, "Gelu", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(ERF, "Erf", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                      \
        X(EXP, "Exp", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                      \
        X(LOG, "Log", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                      \
        X(SQRT, "Sqrt", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(RECIPROCAL, "Reciprocal", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                        \
        X(NEG, "Neg", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                      \
        X(ABS, "Abs", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                      \
        X(FLOOR, "Floor", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                  \
        X(CEIL, "Ceil", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(ROUND, "Round", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                  \
        X(SIGN, "Sign", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(SIN, "Sin", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                      \
        X(COS, "Cos", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                      \
        X(NOT, "Not", 1, 1, 1, logic, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                     \
        X(CLIP, "Clip", 1, 3, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(IDENTITY, "Identity", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE | SL_OP_VIEW)                               \
        X(CAST, "Cast", 1, 1, 1, cast, each, SL_OP_ELEMENTWISE)                                                                    \
        X(ADD, "Add", 2, 2, 1, broadcast, operands, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                             \
        X(SUB, "Sub", 2, 2, 1, broadcast, operands, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                             \
        X(MUL, "Mul", 2, 2, 1, broadcast, operands, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                             \
        X(DIV, "Div", 2, 2, 1, broadcast, operands, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                             \
        X(POW, "Pow", 2, 2, 1, pow, powers, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                     \
        X(MIN, "Min", 1, 64, 1, broadcast, operands, SL_OP_ELEMENTWISE)                                                            \
        X(MAX, "Max", 1, 64, 1, broadcast, operands, SL_OP_ELEMENTWISE)                                                            \
        X(SUM, "Sum", 1, 64, 1, broadcast, operands, SL_OP_ELEMENTWISE)                                                            \
        X(MEAN, "Mean", 1, 64, 1, broadcast, operands, SL_OP_ELEMENTWISE)                                                          \
        X(EQUAL, "Equal", 2, 2, 1, compare, operands, SL_OP_ELEMENTWISE)                                                           \
        X(GREATER, "Greater", 2, 2, 1, compare, operands, SL_OP_ELEMENTWISE)                                                       \
        X(GREATER_OR_EQUAL, "GreaterOrEqual", 2, 2, 1, compare, operands, SL_OP_ELEMENTWISE)                                       \
        X(LESS, "Less", 2, 2, 1, compare, operands, SL_OP_ELEMENTWISE)                                                             \
        X(LESS_OR_EQUAL, "LessOrEqual", 2, 2, 1, compare, operands, SL_OP_ELEMENTWISE)                                             \
        X(AND, "And", 2, 2, 1, logic, operands, SL_OP_ELEMENTWISE)                                                                 \
        X(OR, "Or", 2, 2, 1, logic, operands, SL_OP_ELEMENTWISE)                                                                   \
        X(WHERE, "Where", 3, 3, 1, where, operands, SL_OP_ELEMENTWISE)                                                             \
        X(CONCAT, "Concat", 1, 64, 1, concat, each, SL_OP_SPATIAL)                                                                 \
        X(SLICE, "Slice", 1, 5, 1, slice, each, SL_OP_SPATIAL)                                                                     \
        X(SPLIT, "Split", 1, 2, 16, split, each, SL_OP_SPATIAL)                                                                    \
        X(RESHAPE, "Reshape", 1, 2, 1, reshape, each, SL_OP_VIEW | SL_OP_INPLACE)                                                  \
        X(FLATTEN, "Flatten", 1, 1, 1, flatten, each, SL_OP_VIEW | SL_OP_INPLACE)                                                  \
        X(SQUEEZE, "Squeeze", 1, 2, 1, squeeze, each, SL_OP_VIEW | SL_OP_INPLACE)                                                  \
        X(UNSQUEEZE, "Unsqueeze", 1, 2, 1, unsqueeze, each, SL_OP_VIEW | SL_OP_INPLACE)                                            \
        X(TRANSPOSE, "Transpose", 1, 1, 1, transpose, each, 0)                                                                     \
        X(PAD, "Pad", 1, 4, 1, pad, each, SL_OP_SPATIAL)                                                                           \
        X(REDUCE_MEAN, "ReduceMean", 1, 2, 1, reduce, passes, SL_OP_READS_LAST)                                                    \
        X(REDUCE_SUM, "ReduceSum", 1, 2, 1, reduce, passes, SL_OP_READS_LAST)                                                      \
        X(REDUCE_MAX, "ReduceMax", 1, 2, 1, reduce, passes, SL_OP_READS_LAST)                                                      \
        X(REDUCE_MIN, "ReduceMin", 1, 2, 1, reduce, passes, SL_OP_READS_LAST)                                                      \
        X(REDUCE_PROD, "ReduceProd", 1, 2, 1, reduce, passes, 0)                                                                   \
        X(REDUCE_L1, "ReduceL1", 1, 2, 1, reduce, passes, SL_OP_READS_LAST)                                                        \
        X(REDUCE_L2, "ReduceL2", 1, 2, 1, reduce, passes, SL_OP_READS_LAST)                                                        \
        X(REDUCE_SUM_SQUARE, "ReduceSumSquare", 1, 2, 1, reduce, passes, SL_OP_READS_LAST)                                         \
        X(REDUCE_LOG_SUM_EXP, "ReduceLogSumExp", 1, 2, 1, reduce, passes, 0)                                                       \
        X(ARG_MAX, "ArgMax", 1, 1, 1, argreduce, passes, 0)                                                                        \
        X(ARG_MIN, "ArgMin", 1, 1, 1, argreduce, passes, 0)                                                                        \
        X(GATHER, "Gather", 2, 2, 1, gather, each, SL_OP_INDEXES)                                                                  \
        X(EXPAND, "Expand", 1, 2, 1, expand, each, 0)                                                                              \
        X(TILE, "Tile", 1, 2, 1, tile, each, 0)                                                                                    \
        X(SHAPE, "Shape", 1, 1, 1, shape_of, each, 0)                                                                              \
        X(CONSTANT_OF_SHAPE, "ConstantOfShape", 0, 1, 1, constant_of_shape, each, 0)                                               \
        X(RANGE, "Range", 3, 3, 1, range, each, SL_OP_COUNTS)                                                                      \
        X(REORDER, "starling.Reorder", 1, 1, 1, reorder, each, 0)                                                                  \
        X(LSTM, "LSTM", 3, 8, 3, recurrent, recurrent, SL_OP_INDEXES | SL_OP_DEAR)                                                 \
        X(GRU, "GRU", 3, 6, 2, recurrent, recurrent, SL_OP_INDEXES | SL_OP_DEAR)                                                   \
        X(RNN, "RNN", 3, 6, 2, recurrent, recurrent, SL_OP_INDEXES | SL_OP_DEAR)                                                   \
        X(QUANTIZE_LINEAR, "QuantizeLinear", 2, 3, 1, quantize, operands, SL_OP_SPATIAL)                                           \
        X(DEQUANTIZE_LINEAR, "DequantizeLinear", 2, 3, 1, dequantize, operands, SL_OP_SPATIAL)                                     \
        X(DYNAMIC_QUANTIZE_LINEAR, "DynamicQuantizeLinear", 1, 1, 3, dynamic_quantize, passes, SL_OP_MIXES)                        \
        X(QLINEAR_CONV, "QLinearConv", 8, 9, 1, qlinear_conv, conv, SL_OP_SPATIAL | SL_OP_DEAR)                                    \
        X(QLINEAR_MATMUL, "QLinearMatMul", 8, 8, 1, qlinear_matmul, matmul, SL_OP_DEAR)                                            \
        X(MATMUL_INTEGER, "MatMulInteger", 2, 4, 1, matmul_integer, matmul, SL_OP_DEAR)                                            \
        X(CONV_INTEGER, "ConvInteger", 2, 4, 1, conv_integer, conv, SL_OP_SPATIAL | SL_OP_DEAR)                                    \
        X(CONV_TRANSPOSE, "ConvTranspose", 2, 3, 1, conv_transpose, conv_transpose, SL_OP_SPATIAL | SL_OP_DEAR)                    \
        X(DEFORM_CONV, "DeformConv", 3, 5, 1, deform_conv, deform_conv, SL_OP_LEADING | SL_OP_DEAR)                                \
        X(ACOS, "Acos", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(ACOSH, "Acosh", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                  \
        X(ASIN, "Asin", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(ASINH, "Asinh", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                  \
        X(ATAN, "Atan", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(ATANH, "Atanh", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                  \
        X(COSH, "Cosh", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(SINH, "Sinh", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(TAN, "Tan", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                      \
        X(SELU, "Selu", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(CELU, "Celu", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(MISH, "Mish", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                    \
        X(THRESHOLDED_RELU, "ThresholdedRelu", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                             \
        X(SOFTSIGN, "Softsign", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                            \
        X(SHRINK, "Shrink", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                                \
        X(BITWISE_NOT, "BitwiseNot", 1, 1, 1, same, each, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                       \
        X(IS_NAN, "IsNaN", 1, 1, 1, predicate, each, SL_OP_ELEMENTWISE)                                                            \
        X(IS_INF, "IsInf", 1, 1, 1, predicate, each, SL_OP_ELEMENTWISE)                                                            \
        X(MOD, "Mod", 2, 2, 1, broadcast, powers, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                               \
        X(BIT_SHIFT, "BitShift", 2, 2, 1, broadcast, operands, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                  \
        X(BITWISE_AND, "BitwiseAnd", 2, 2, 1, broadcast, operands, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                              \
        X(BITWISE_OR, "BitwiseOr", 2, 2, 1, broadcast, operands, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                                \
        X(BITWISE_XOR, "BitwiseXor", 2, 2, 1, broadcast, operands, SL_OP_INPLACE | SL_OP_ELEMENTWISE)                              \
        X(XOR, "Xor", 2, 2, 1, logic, operands, SL_OP_ELEMENTWISE)                                                                 \
        X(REDUCE_LOG_SUM, "ReduceLogSum", 1, 2, 1, reduce, passes, 0)                                                              \
        X(CENTER_CROP_PAD, "CenterCropPad", 1, 2, 1, center_crop_pad, each, 0)                                                     \
        X(QUANTIZED_CONV, "starling.QuantizedConv", 3, 5, 1, quantized_conv, conv, SL_OP_EPILOGUE | SL_OP_SPATIAL | SL_OP_DEAR)    \
        X(QUANTIZED_MATMUL, "starling.QuantizedMatMul", 3, 5, 1, quantized_matmul, matmul, SL_OP_EPILOGUE | SL_OP_DEAR)            \
        X(QUANTIZED_ADD, "starling.QuantizedAdd", 1, 2, 1, quantized_add, operands,                                                \
                SL_OP_EPILOGUE | SL_OP_ELEMENTWISE | SL_OP_INPLACE)                                                                \
        X(RESIZE, "Resize", 1, 4, 1, resize, resize, SL_OP_SPATIAL | SL_OP_DEAR)                                                   \
        X(TOP_K, "TopK", 1, 2, 2, top_k, top_k, 0)                                                                                 \
        X(NON_MAX_SUPPRESSION, "NonMaxSuppression", 2, 5, 1, non_max_suppression, non_max_suppression,                             \
                SL_OP_MIXES | SL_OP_DEAR | SL_OP_COUNTS)                                                                           \
        X(ROI_ALIGN, "RoiAlign", 3, 3, 1, roi_align, roi_align, SL_OP_INDEXES | SL_OP_MIXES | SL_OP_DEAR)                          \
        X(MAX_ROI_POOL, "MaxRoiPool", 2, 2, 1, max_roi_pool, max_roi_pool, SL_OP_INDEXES | SL_OP_MIXES | SL_OP_DEAR)               \
        X(GATHER_ELEMENTS, "GatherElements", 2, 2, 1, gather_elements, indexed, SL_OP_INDEXES)                                     \
        X(GATHER_ND, "GatherND", 2, 2, 1, gather_nd, indexed, SL_OP_INDEXES)                                                       \
        X(SCATTER_ELEMENTS, "ScatterElements", 3, 3, 1, scatter_elements, indexed, SL_OP_INDEXES | SL_OP_INPLACE)                  \
        X(SCATTER_ND, "ScatterND", 3, 3, 1, scatter_nd, indexed, SL_OP_INDEXES | SL_OP_INPLACE | SL_OP_MIXES)                      \
        X(MAX_UNPOOL, "MaxUnpool", 2, 3, 1, max_unpool, indexed, SL_OP_INDEXES | SL_OP_MIXES)                                      \
        X(LP_POOL, "LpPool", 1, 1, 1, pool, pool, SL_OP_SPATIAL | SL_OP_DEAR)                                                      \
        X(GLOBAL_LP_POOL, "GlobalLpPool", 1, 1, 1, global_pool, passes, SL_OP_SPATIAL)                                             \
        X(ROW_ATTENTION, "starling.RowAttention", 3, 4, 1, row_attention, row_attention, SL_OP_LEADING)                            \
        X(NGRAM, "TfIdfVectorizer", 4, 5, 1, ngram, ngram, SL_OP_INDEXES | SL_OP_DEAR | SL_OP_LEADING)                             \
        X(DEPTH_TO_SPACE, "DepthToSpace", 1, 1, 1, blocks, each, SL_OP_SPATIAL)                                                    \
        X(SPACE_TO_DEPTH, "SpaceToDepth", 1, 1, 1, blocks, each, SL_OP_SPATIAL)                                                    \
        X(REVERSE_SEQUENCE, "ReverseSequence", 2, 2, 1, reverse_sequence, each, SL_OP_INDEXES)                                     \
        X(TRILU, "Trilu", 1, 2, 1, trilu, each, SL_OP_INPLACE)                                                                     \
        X(EYE_LIKE, "EyeLike", 1, 1, 1, eye_like, each, SL_OP_MIXES)                                                               \
        X(ONE_HOT, "OneHot", 2, 3, 1, one_hot, each, SL_OP_MIXES)                                                                  \
        X(CUM_SUM, "CumSum", 1, 2, 1, along_axis, passes, SL_OP_INPLACE)                                                           \
        X(HARDMAX, "Hardmax", 1, 1, 1, along_axis, passes, 0)                                                                      \
        X(LP_NORM, "LpNormalization", 1, 1, 1, lp_norm, passes, 0)                                                                 \
        X(MEAN_VARIANCE_NORM, "MeanVarianceNormalization", 1, 1, 1, mean_variance_norm, passes, SL_OP_MIXES)                       \
        X(RMS_NORM, "RMSNormalization", 2, 2, 1, rms_norm, passes, 0)                                                              \
        X(GROUP_NORM, "GroupNormalization", 3, 3, 1, group_norm, passes, SL_OP_LEADING)                                            \
        X(COL2IM, "Col2Im", 1, 3, 1, col2im, passes, SL_OP_LEADING | SL_OP_DEAR)                                                   \
        X(DET, "Det", 1, 1, 1, det, det, SL_OP_DEAR)                                                                               \
        X(HANN_WINDOW, "HannWindow", 0, 1, 1, taper, each, 0)                                                                      \
        X(HAMMING_WINDOW, "HammingWindow", 0, 1, 1, taper, each, 0)                                                                \
        X(BLACKMAN_WINDOW, "BlackmanWindow", 0, 1, 1, taper, each, 0)                                                              \
        X(MEL_WEIGHTS, "MelWeightMatrix", 3, 5, 1, mel_weights, each, SL_OP_MIXES)                                                 \
        X(DFT, "DFT", 1, 3, 1, dft, fourier, SL_OP_DEAR)                                                                           \
        X(STFT, "STFT", 1, 4, 1, stft, fourier, SL_OP_LEADING | SL_OP_DEAR)                                                        \
        X(NLL_LOSS, "NegativeLogLikelihoodLoss", 2, 3, 1, loss, passes, SL_OP_INDEXES | SL_OP_MIXES)                               \
        X(CROSS_ENTROPY_LOSS, "SoftmaxCrossEntropyLoss", 2, 3, 2, loss, passes, SL_OP_INDEXES | SL_OP_MIXES)                       \
        X(EINSUM, "Einsum", 1, 15, 1, einsum, einsum, SL_OP_MIXES | SL_OP_DEAR)                                                    \
        X(GRID_SAMPLE, "GridSample", 2, 2, 1, grid_sample, grid_sample, SL_OP_LEADING | SL_OP_DEAR)                                \
        X(AFFINE_GRID, "AffineGrid", 1, 2, 1, affine_grid, affine_grid, SL_OP_LEADING)                                             \
        X(ATTENTION, "Attention", 3, 7, 4, attention, attention, SL_OP_INDEXES | SL_OP_LEADING | SL_OP_DEAR)                       \
        X(ROTARY_EMBEDDING, "RotaryEmbedding", 3, 4, 1, rotary_embedding, each, SL_OP_INDEXES | SL_OP_LEADING)                     \
        X(NON_ZERO, "NonZero", 1, 1, 1, non_zero, passes, SL_OP_COUNTS | SL_OP_MIXES)                                              \
        X(COMPRESS, "Compress", 2, 2, 1, compress, passes, SL_OP_COUNTS | SL_OP_MIXES | SL_OP_INDEXES)                             \
        X(UNIQUE, "Unique", 1, 1, 4, unique, unique, SL_OP_COUNTS | SL_OP_MIXES)                                                   \
        X(IF, "If", 1, 64, 16, control, control, SL_OP_CONTROL | SL_OP_MIXES | SL_OP_DEAR)                                         \
        X(LOOP, "Loop", 2, 64, 16, control, control, SL_OP_CONTROL | SL_OP_MIXES | SL_OP_DEAR)                                     \
        X(SCAN, "Scan", 1, 64, 16, control, control, SL_OP_CONTROL | SL_OP_MIXES | SL_OP_DEAR)                                     \
        X(CHANNEL_SHUFFLE, "starling.ChannelShuffle", 1, 64, 16, channel_shuffle, channel_shuffle, SL_OP_SPATIAL)                  \
        X(NORMALIZED_CONCAT, "starling.NormalizedConcat", 5, 64, 1, normalized_concat, passes, SL_OP_SPATIAL | SL_OP_EPILOGUE)     \
        X(MBCONV, "starling.MBConv", 2, 8, 1, mbconv, mbconv, SL_OP_EPILOGUE | SL_OP_SPATIAL | SL_OP_DEAR)                         \
        X(TREES, "starling.Trees", 6, 9, 1, trees, trees, SL_OP_INDEXES | SL_OP_LEADING | SL_OP_DEAR)                              \
        X(CLASS_SCORES, "starling.ClassScores", 1, 2, 2, class_scores, passes, SL_OP_LEADING)                                      \
        X(PAIR_CLASSES, "starling.PairClasses", 2, 4, 2, pair_classes, pair_classes, SL_OP_LEADING | SL_OP_DEAR)                   \
        X(LOOKUP, "starling.Lookup", 3, 3, 1, lookup, lookup, SL_OP_INDEXES)                                                       \
        X(SQUARED_DISTANCE, "starling.SquaredDistance", 2, 2, 1, squared_distance, squared_distance, SL_OP_LEADING | SL_OP_DEAR)   \
        X(LANED_CONV, "starling.LanedConv", 2, 4, 1, conv, conv, SL_OP_EPILOGUE | SL_OP_SPATIAL | SL_OP_DEAR)                      \
        X(SAMPLE_KEYS, "starling.SampleKeys", 0, 1, 1, sample_keys, each, SL_OP_LEADING | SL_OP_DEAR)                              \
        X(RANDOM_NORMAL, "RandomNormal", 1, 1, 1, random, each, SL_OP_LEADING | SL_OP_DRAWS)                                       \
        X(RANDOM_UNIFORM, "RandomUniform", 1, 1, 1, random, each, SL_OP_LEADING | SL_OP_DRAWS)                                     \
        X(RANDOM_NORMAL_LIKE, "RandomNormalLike", 2, 2, 1, random_like, each, SL_OP_LEADING | SL_OP_DRAWS)                         \
        X(RANDOM_UNIFORM_LIKE, "RandomUniformLike", 2, 2, 1, random_like, each, SL_OP_LEADING | SL_OP_DRAWS)                       \
        X(BERNOULLI, "Bernoulli", 2, 2, 1, bernoulli, each, SL_OP_LEADING | SL_OP_DRAWS)                                           \
        X(MULTINOMIAL, "Multinomial", 2, 2, 1, multinomial, multinomial, SL_OP_LEADING | SL_OP_DRAWS)                              \
        X(BIT_CAST, "BitCast", 1, 1, 1, bit_cast, each, SL_OP_ELEMENTWISE)                                                         \
        X(CUM_PROD, "CumProd", 1, 2, 1, along_axis, passes, SL_OP_INPLACE)                                                         \
        X(TENSOR_SCATTER, "TensorScatter", 2, 3, 1, tensor_scatter, indexed, SL_OP_INDEXES | SL_OP_INPLACE | SL_OP_LEADING)        \
        X(LINEAR_ATTENTION, "LinearAttention", 3, 6, 2, linear_attention, linear_attention, SL_OP_LEADING | SL_OP_DEAR)            \
        X(NIBBLE_MATMUL, "starling.NibbleMatMul", 3, 4, 1, nibble_matmul, matmul, 0)

enum sl_op {
#define X(id, name, least, most, outputs, rule, work, traits) SL_OP_##id,
        SL_OPS(X)
#undef X
                SL_OP_COUNT,
};

/* "Conv"; "unknown" for a number that is no operator. */
const char *sl_op_name(uint32_t op);

/* The operator of that ONNX name in domain ai.onnx, or -ENOENT. starling.* names are internal and never found. */
int sl_op_find(const char *name);

uint32_t sl_op_traits(uint32_t op);

/* How many outputs it has at most. */
uint32_t sl_op_outputs(uint32_t op);

/* The attribute that input @input of @op becomes once it is constant; -ENOENT for an input that is data. */
int sl_op_parameter(uint32_t op, uint32_t input);

/* The type of that attribute. */
enum sl_attr_type sl_op_parameter_type(uint32_t op, uint32_t input);

/* False while a parameter still stands as an input without its attribute: no kernel can run such a node. */
bool sl_op_parameters_resolved(const struct sl_node_desc *node);

/*
 * Fills dtype, shape and layout of the node's outputs from its inputs and attributes. Layout: PLAIN.
 * Static shapes give static shapes; SL_DIM_BATCH is carried through where the rule can prove it, else SL_DIM_UNKNOWN.
 * Return: 0; -EINVAL (wrong number of inputs, rank, dimension, type or attribute: the text says which), which no sizes in the place
 * of unknown ones would change; -EOVERFLOW; -ENOTSUP when even the rank depends on data, or an unknown size decides all.
 */
int sl_op_infer(struct sl_node_desc *node, struct sl_error *error);

/*
 * Elementary steps of the node, whose outputs are inferred: a multiply-add, an element that is read and written, a sample that is
 * taken, a comparison. Every kernel takes a time that is at most a constant times this number, whatever shapes and attributes say:
 * `ref` some nanoseconds a step, `cpu` down to the hundredth of one. It counts what any data can make the node do, but for the
 * regions of a RoiAlign (shape/work.c). UINT64_MAX: more than 64 bits count, or a shape is not static. 0 for If, Loop and Scan,
 * whose bodies have nodes of their own.
 */
uint64_t sl_op_work(const struct sl_node_desc *node);

/*
 * Of that work, what the data decide on: how much more some data make the node do than others, to a constant factor. 0: all data
 * make it do the same. UINT64_MAX: nothing of what the node says bounds it (the regions of a RoiAlign without a sampling_ratio),
 * how much it makes is data-dependent, or it has bodies.
 */
uint64_t sl_op_data_work(const struct sl_node_desc *node);

/* Multiply-adds of the node at its shapes: the part of its work that a processor's peak is about; 0 for operators without any and
 * for shapes that are not static. */
uint64_t sl_op_multiply_adds(const struct sl_node_desc *node);

/*
 * The most that the dimension which an operator of SL_OP_COUNTS leaves unknown can be, for these inputs. Its kernel says what it
 * was (struct sl_binding: made). -EINVAL, -EOVERFLOW.
 */
int64_t sl_op_bound(const struct sl_node_desc *node, const void *const *inputs);

/* The most boxes that a NonMaxSuppression can choose: rows of its output. SL_DIM_UNKNOWN, -EOVERFLOW. */
int64_t sl_op_most_boxes(const struct sl_node_desc *node);

/*
 * Elements of a Range over scalars of @dtype at these three addresses: how the output of Range gets its shape once the
 * inputs are constant. -EINVAL: a step of 0 or NaN, another type than ONNX allows; -EOVERFLOW.
 */
int64_t sl_op_range_elements(uint32_t dtype, const void *start, const void *limit, const void *delta);
