/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes rewrite a graph in place; one file each. sl_passes_run() runs them in order and checks the graph after each.
 * All passes keep the results within rounding; none depends on the batch size.
 *
 * They come in three phases:
 *
 *     PORTABLE  what a model computes, said with fewer nodes: knows one graph and no backend
 *     MERGE     several graphs, each with the portable passes behind it, become one: knows no backend
 *     BACKEND   forms for which some backends have kernels: asks the planner of the backend that the graph is for, by its traits
 * and functions, never by its name
 */
#pragma once

#include <stdint.h>

struct sl_backend;
struct sl_error;
struct sl_graph;
struct sl_target;

/* phase, id, name, function, what it does: also the order in which they run */
#define SL_PASSES(X)                                                                                                               \
        X(PORTABLE, REMOVE_EXPAND, "remove-expand", remove_expand) /* repetitions that broadcasting makes anyway */                \
        X(PORTABLE, FLOAT_INTEGERS, "float-integers",                                                                              \
                float_integers) /* products of integers, cast to float: of bytes, or of floats */                                  \
        X(PORTABLE, FOLD_CONSTANTS, "fold-constants", fold_constants) /* nodes whose inputs are all constant */                    \
        X(PORTABLE, FUSE_NIBBLES, "fuse-nibbles", fuse_nibbles) /* MatMul by dequantized constants of 4 bits and fewer */          \
        X(PORTABLE, SETTLE_SHAPES, "settle-shapes", settle_shapes) /* Reshapes by their own input's Shape -> by a list */          \
        X(PORTABLE, JOIN_TRANSPOSE, "join-transpose", join_transpose) /* Reshapes around one -> a Transpose; idle Reshapes */      \
        X(PORTABLE, REMOVE_IDENTITY, "remove-identity",                                                                            \
                remove_identity)                       /* Identity, Dropout, Cast to the same type, idle Transposes */             \
        X(PORTABLE, FUSE_PAD, "fuse-pad", fuse_pad)    /* Pad of zeros -> pads of the Conv behind it */                            \
        X(PORTABLE, FUSE_GELU, "fuse-gelu", fuse_gelu) /* x / 2 * (1 + Erf(x / sqrt(2))) -> Gelu, and its approximation */         \
        X(PORTABLE, FUSE_LAYER_NORM, "fuse-layer-norm",                                                                            \
                fuse_layer_norm) /* mean, variance, quotient, scale, shift -> LayerNormalization */                                \
        X(PORTABLE, FUSE_ATTENTION, "fuse-attention", fuse_attention) /* products, scale, mask, Softmax over heads -> one node */  \
        X(PORTABLE, FOLD_BATCH_NORM, "fold-batch-norm", fold_batch_norm) /* into the Conv or Gemm before it */                     \
        X(PORTABLE, FUSE_BIAS, "fuse-bias", fuse_bias)    /* Add of a constant vector -> bias of Conv, Gemm, MatMul */             \
        X(PORTABLE, FOLD_SCALE, "fold-scale", fold_scale) /* Mul by a constant vector -> weights of Conv, Gemm, MatMul */          \
        X(PORTABLE, MERGE_PROJECTIONS, "merge-projections", merge_projections) /* of one input, for one attention -> one MatMul */ \
        X(PORTABLE, FUSE_RESIDUAL, "fuse-residual", fuse_residual)             /* Add of a computed tensor -> epilogue residual */ \
        X(PORTABLE, FUSE_ACTIVATION, "fuse-activation", fuse_activation)       /* Relu, Clip, Sigmoid, ... -> epilogue */          \
        X(PORTABLE, REMOVE_DEAD, "remove-dead", remove_dead)   /* what no output needs; once more behind those of a backend */     \
        X(MERGE, MERGE_LANES, "merge-lanes", merge_lanes)      /* models of one architecture, by Algorithm 1: merge/merge.h */     \
        X(BACKEND, EXPAND_NIBBLES, "expand-nibbles", expand_nibbles) /* the same by floats, where the backend has no kernel */     \
        X(BACKEND, UNSIGN_BYTES, "unsign-bytes", unsign_bytes) /* int8 activations -> uint8 */                                     \
        X(BACKEND, QUANTIZE_PRODUCTS, "quantize-products",                                                                         \
                quantize_products) /* Conv, Gemm, MatMul of dequantized bytes -> of bytes */                                       \
        X(BACKEND, QUANTIZE_ELEMENTS, "quantize-elements", quantize_elements) /* Add, Relu, Concat, MaxPool, ... the same */       \
        X(BACKEND, FUSE_QUANTIZED_RESIDUAL, "fuse-quantized-residual", fuse_quantized_residual) /* a sum of bytes -> residual */   \
        X(BACKEND, FUSE_CHANNEL_SHUFFLE, "fuse-channel-shuffle",                                                                   \
                fuse_channel_shuffle) /* Reshape, Transpose, Reshape -> one node */                                                \
        X(BACKEND, FUSE_NORMALIZED_CONCAT, "fuse-normalized-concat", fuse_normalized_concat) /* BatchNormalization of a Concat */  \
        X(BACKEND, FOLD_WEIGHTS, "fold-weights", fold_weights) /* dequantized constants that stayed floats */                      \
        X(BACKEND, JOIN_MBCONV, "join-mbconv", join_mbconv)    /* pointwise, depthwise, pointwise Conv */

enum sl_pass {
#define X(phase, id, name, function) SL_PASS_##id,
        SL_PASSES(X)
#undef X
                SL_PASS_COUNT,
};

enum sl_pass_phase { SL_PASS_PORTABLE, SL_PASS_MERGE, SL_PASS_BACKEND };

/* For whom and how. @target: what the planner plans for, or NULL. */
struct sl_pass_options {
        const struct sl_backend *backend; /* NULL: nobody yet; nothing but the portable passes runs */
        const struct sl_target *target;
        uint32_t without; /* bits 1 << enum sl_pass: left out */
};

/*
 * What a pass of each phase is. Return: 0, or -errno with a text; of a merge below.
 *
 * A merge sees @n_graphs graphs, two and more, of models that may be served together: checked, each with the portable passes behind
 * it. It leaves them as they are and fills @merged, an empty graph, whose ports are those of the first, then those of the second,
 * and so on, so that the graph computes what they compute, lane by lane, to the bit where the same kernel runs and within rounding
 * elsewhere. Its constants may be theirs: they outlive it. No two weights are made one by their values, since any of them may
 * be taken out again. Return: 1 @merged is checked next and goes on to the passes of a backend in their place; 0 it has found nothing
 * to merge and has left it empty: each goes on by itself.
 */
#define SL_PASS_PROTOTYPE_PORTABLE(name) int name(struct sl_graph *graph, struct sl_error *error)
#define SL_PASS_PROTOTYPE_MERGE(name)                                                                                              \
        int name(const struct sl_graph *const *graphs, uint32_t n_graphs, struct sl_graph *merged, struct sl_error *error)
#define SL_PASS_PROTOTYPE_BACKEND(name)                                                                                            \
        int name(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)

#define X(phase, id, name, function) SL_PASS_PROTOTYPE_##phase(sl_pass_##function);
SL_PASSES(X)
#undef X

const char *sl_pass_name(enum sl_pass pass);
enum sl_pass_phase sl_pass_phase(enum sl_pass pass);

/* All phases but MERGE on a graph that stays alone. Return: 0, -ENOMEM, or what the checker finds. */
int sl_passes_run(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error);

/* The passes of one phase, which is not MERGE. Return: as above. */
int sl_passes_run_phase(
        struct sl_graph *graph, enum sl_pass_phase phase, const struct sl_pass_options *options, struct sl_error *error);

/* The phase MERGE: its passes in order, until one of them has merged. Return: 1, 0; as above. */
int sl_passes_merge(
        const struct sl_graph *const *graphs, uint32_t n_graphs, uint32_t without, struct sl_graph *merged, struct sl_error *error);
