/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes rewrite a graph in place; one file each. sl_passes_run() runs them in order and checks the graph after each.
 * All passes keep the results within rounding; none depends on the batch size.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_graph;

/* id, name, what it does: also the order in which they run */
#define SL_PASSES(X)                                                                                                               \
        X(REMOVE_EXPAND, "remove-expand", remove_expand)       /* repetitions that broadcasting makes anyway */                    \
        X(FLOAT_INTEGERS, "float-integers", float_integers)    /* products of integers, cast to float: of bytes, or of floats */   \
        X(FOLD_CONSTANTS, "fold-constants", fold_constants)    /* nodes whose inputs are all constant */                           \
        X(JOIN_TRANSPOSE, "join-transpose", join_transpose)    /* Reshapes around one -> a Transpose; idle Reshapes */             \
        X(REMOVE_IDENTITY, "remove-identity", remove_identity) /* Identity, Dropout, Cast to the same type, idle Transposes */     \
        X(FUSE_PAD, "fuse-pad", fuse_pad)                      /* Pad of zeros -> pads of the Conv behind it */                    \
        X(FUSE_GELU, "fuse-gelu", fuse_gelu)                   /* x / 2 * (1 + Erf(x / sqrt(2))) -> Gelu, and its approximation */ \
        X(FUSE_LAYER_NORM, "fuse-layer-norm", fuse_layer_norm) /* mean, variance, quotient, scale, shift -> LayerNormalization */  \
        X(FUSE_ATTENTION, "fuse-attention", fuse_attention)    /* products, scale, mask, Softmax over heads -> one node */         \
        X(FOLD_BATCH_NORM, "fold-batch-norm", fold_batch_norm) /* into the Conv or Gemm before it */                               \
        X(FUSE_BIAS, "fuse-bias", fuse_bias)                   /* Add of a constant vector -> bias of Conv, Gemm, MatMul */        \
        X(FOLD_SCALE, "fold-scale", fold_scale)                /* Mul by a constant vector -> weights of Conv, Gemm, MatMul */     \
        X(MERGE_PROJECTIONS, "merge-projections", merge_projections) /* of one input, for one attention -> one MatMul */           \
        X(FUSE_RESIDUAL, "fuse-residual", fuse_residual)             /* Add of a computed tensor -> epilogue residual */           \
        X(FUSE_ACTIVATION, "fuse-activation", fuse_activation)       /* Relu, Clip, Sigmoid, ... -> epilogue */                    \
        X(UNSIGN_BYTES, "unsign-bytes", unsign_bytes)                /* int8 activations -> uint8 */                               \
        X(QUANTIZE_PRODUCTS, "quantize-products", quantize_products) /* Conv, Gemm, MatMul of dequantized bytes -> of bytes */     \
        X(QUANTIZE_ELEMENTS, "quantize-elements", quantize_elements) /* Add, Relu, Concat, MaxPool, ... the same */                \
        X(FUSE_QUANTIZED_RESIDUAL, "fuse-quantized-residual", fuse_quantized_residual) /* a sum of bytes -> residual */            \
        X(FUSE_CHANNEL_SHUFFLE, "fuse-channel-shuffle", fuse_channel_shuffle)       /* Reshape, Transpose, Reshape -> one node */  \
        X(FUSE_NORMALIZED_CONCAT, "fuse-normalized-concat", fuse_normalized_concat) /* BatchNormalization of a Concat */           \
        X(FOLD_WEIGHTS, "fold-weights", fold_weights)                               /* dequantized constants that stayed floats */ \
        X(JOIN_MBCONV, "join-mbconv", join_mbconv)                                  /* pointwise, depthwise, pointwise Conv */     \
        X(REMOVE_DEAD, "remove-dead", remove_dead)                                  /* what no output needs */

enum sl_pass {
#define X(id, name, function) SL_PASS_##id,
        SL_PASSES(X)
#undef X
                SL_PASS_COUNT,
};

#define X(id, name, function) int sl_pass_##function(struct sl_graph *graph, struct sl_error *error);
SL_PASSES(X)
#undef X

const char *sl_pass_name(enum sl_pass pass);

/* Runs all passes but those whose bit (1 << pass) is in @without. Return: 0, -ENOMEM, or what the checker finds. */
int sl_passes_run(struct sl_graph *graph, uint32_t without, struct sl_error *error);
