/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of a node: a small map from name to integer, float, integer list or float list. Owned by the node that holds
 * it; no pointers, so that a node can be copied by value and written into a plan file as it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* One row per attribute; ids are part of the plan file. ONNX's name is the lower-case text. */
#define SL_ATTRS(X)                                                                                                                \
        X(AXIS, "axis")                                                                                                            \
        X(AXES, "axes")                                                                                                            \
        X(ALPHA, "alpha")                                                                                                          \
        X(BETA, "beta")                                                                                                            \
        X(TRANS_A, "transA")                                                                                                       \
        X(TRANS_B, "transB")                                                                                                       \
        X(KERNEL_SHAPE, "kernel_shape")                                                                                            \
        X(STRIDES, "strides")                                                                                                      \
        X(PADS, "pads")                                                                                                            \
        X(DILATIONS, "dilations")                                                                                                  \
        X(GROUP, "group")                                                                                                          \
        X(CEIL_MODE, "ceil_mode")                                                                                                  \
        X(COUNT_INCLUDE_PAD, "count_include_pad")                                                                                  \
        X(EPSILON, "epsilon")                                                                                                      \
        X(KEEPDIMS, "keepdims")                                                                                                    \
        X(NOOP_EMPTY_AXES, "noop_with_empty_axes")                                                                                 \
        X(PERM, "perm")                                                                                                            \
        X(TO, "to")                                                                                                                \
        X(MIN, "min")                                                                                                              \
        X(MAX, "max")                                                                                                              \
        X(MODE, "mode")                                                                                                            \
        X(STARTS, "starts")                                                                                                        \
        X(ENDS, "ends")                                                                                                            \
        X(STEPS, "steps")                                                                                                          \
        X(SPLIT, "split")                                                                                                          \
        X(SHAPE, "shape")                                                                                                          \
        X(VALUE, "value")                                                                                                          \
        X(ALLOW_ZERO, "allowzero")                                                                                                 \
        X(LAYOUT, "layout")                                                                                                        \
        X(APPROXIMATE, "approximate")                                                                                              \
        X(ALGORITHM, "algorithm")                                                                                                  \
        X(DIRECTION, "direction")                                                                                                  \
        X(CLIP, "clip")                                                                                                            \
        X(ACTIVATIONS, "activations")                                                                                              \
        X(ACTIVATION_ALPHA, "activation_alpha")                                                                                    \
        X(ACTIVATION_BETA, "activation_beta")                                                                                      \
        X(HIDDEN_SIZE, "hidden_size")                                                                                              \
        X(INPUT_FORGET, "input_forget")                                                                                            \
        X(LINEAR_BEFORE_RESET, "linear_before_reset")                                                                              \
        X(BLOCK_SIZE, "block_size")                                                                                                \
        X(OUTPUT_DTYPE, "output_dtype")                                                                                            \
        X(SATURATE, "saturate")                                                                                                    \
        X(TRANSFORM, "coordinate_transformation_mode")                                                                             \
        X(NEAREST, "nearest_mode")                                                                                                 \
        X(CUBIC_COEFF, "cubic_coeff_a")                                                                                            \
        X(EXCLUDE_OUTSIDE, "exclude_outside")                                                                                      \
        X(EXTRAPOLATION, "extrapolation_value")                                                                                    \
        X(ANTIALIAS, "antialias")                                                                                                  \
        X(ASPECT_POLICY, "keep_aspect_ratio_policy")                                                                               \
        X(SCALES, "scales")                                                                                                        \
        X(SIZES, "sizes")                                                                                                          \
        X(ROI, "roi")                                                                                                              \
        X(CENTER_POINT_BOX, "center_point_box")                                                                                    \
        X(MAX_BOXES, "max_output_boxes_per_class")                                                                                 \
        X(K, "k")                                                                                                                  \
        X(LARGEST, "largest")                                                                                                      \
        X(SORTED, "sorted")                                                                                                        \
        X(BATCH_DIMS, "batch_dims")                                                                                                \
        X(REDUCTION, "reduction")                                                                                                  \
        X(OUTPUT_HEIGHT, "output_height")                                                                                          \
        X(OUTPUT_WIDTH, "output_width")                                                                                            \
        X(SAMPLING_RATIO, "sampling_ratio")                                                                                        \
        X(SPATIAL_SCALE, "spatial_scale")                                                                                          \
        X(POOLED_SHAPE, "pooled_shape")                                                                                            \
        X(OUTPUT_SHAPE, "output_shape")                                                                                            \
        X(OUTPUT_PADDING, "output_padding")                                                                                        \
        X(STORAGE_ORDER, "storage_order")                                                                                          \
        X(P, "p")                                                                                                                  \
        X(EXCLUSIVE, "exclusive")                                                                                                  \
        X(REVERSE, "reverse")                                                                                                      \
        X(UPPER, "upper")                                                                                                          \
        X(DEPTH, "depth")                                                                                                          \
        X(BATCH_AXIS, "batch_axis")                                                                                                \
        X(TIME_AXIS, "time_axis")                                                                                                  \
        X(EQUATION, "equation")                                                                                                    \
        X(PADDING_MODE, "padding_mode")                                                                                            \
        X(ALIGN_CORNERS, "align_corners")                                                                                          \
        X(OFFSET_GROUP, "offset_group")                                                                                            \
        X(INVERSE, "inverse")                                                                                                      \
        X(ONESIDED, "onesided")                                                                                                    \
        X(LENGTH, "length")                                                                                                        \
        X(STEP, "step")                                                                                                            \
        X(PERIODIC, "periodic")                                                                                                    \
        X(IGNORE_INDEX, "ignore_index")                                                                                            \
        X(IS_CAUSAL, "is_causal")                                                                                                  \
        X(Q_NUM_HEADS, "q_num_heads")                                                                                              \
        X(KV_NUM_HEADS, "kv_num_heads")                                                                                            \
        X(QK_MODE, "qk_matmul_output_mode")                                                                                        \
        X(SCALE, "scale")                                                                                                          \
        X(SOFTCAP, "softcap")                                                                                                      \
        X(INTERLEAVED, "interleaved")                                                                                              \
        X(NUM_HEADS, "num_heads")                                                                                                  \
        X(ROTARY_DIM, "rotary_embedding_dim")                                                                                      \
        X(NUM_GROUPS, "num_groups")                                                                                                \
        X(BINS, "num_mel_bins")                                                                                                    \
        X(GAMMA, "gamma")                                                                                                          \
        X(LAMBD, "lambd")                                                                                                          \
        X(BIAS, "bias")                                                                                                            \
        X(FMOD, "fmod")                                                                                                            \
        X(DETECT_NEGATIVE, "detect_negative")                                                                                      \
        X(DETECT_POSITIVE, "detect_positive")                                                                                      \
        X(X_SCALE, "x_scale")                                                                                                      \
        X(X_ZERO, "x_zero")                                                                                                        \
        X(ADDEND_SCALE, "addend_scale")                                                                                            \
        X(ADDEND_ZERO, "addend_zero")                                                                                              \
        X(Y_SCALE, "y_scale")                                                                                                      \
        X(Y_ZERO, "y_zero")                                                                                                        \
        X(MIN_GRAM, "min_gram_length")                                                                                             \
        X(MAX_GRAM, "max_gram_length")                                                                                             \
        X(MAX_SKIP, "max_skip_count")                                                                                              \
        X(CARRIED, "starling.carried")                                                                                             \
        X(NUM_SCAN_INPUTS, "num_scan_inputs")                                                                                      \
        X(SCAN_INPUT_AXES, "scan_input_axes")                                                                                      \
        X(SCAN_INPUT_DIRECTIONS, "scan_input_directions")                                                                          \
        X(SCAN_OUTPUT_AXES, "scan_output_axes")                                                                                    \
        X(SCAN_OUTPUT_DIRECTIONS, "scan_output_directions")                                                                        \
        X(COLUMN_BITS, "starling.column_bits")                                                                                     \
        X(VISITS, "starling.visits")                                                                                               \
        X(GUARD, "starling.guard")                                                                                                 \
        X(WEIGHTS, "starling.weights")                                                                                             \
        X(MEAN, "mean")                                                                                                            \
        X(LOW, "low")                                                                                                              \
        X(HIGH, "high")                                                                                                            \
        X(SEED, "seed")                                                                                                            \
        X(SAMPLE_SIZE, "sample_size")                                                                                              \
        X(STREAM, "starling.stream")                                                                                               \
        X(RANDOM_SEED, "starling.random_seed")                                                                                     \
        X(LEFT_WINDOW, "left_window_size")                                                                                         \
        X(RIGHT_WINDOW, "right_window_size")                                                                                       \
        X(SAME, "starling.same")

enum sl_attr_id {
#define X(id, name) SL_ATTR_##id,
        SL_ATTRS(X)
#undef X
                SL_ATTR_COUNT,
};

enum sl_attr_type {
        SL_ATTR_TYPE_NONE,
        SL_ATTR_TYPE_INT,
        SL_ATTR_TYPE_FLOAT,
        SL_ATTR_TYPE_INTS,
        SL_ATTR_TYPE_FLOATS,
        SL_ATTR_TYPE_LIMIT,
};

#define SL_ATTR_INTS_MAX  16
#define SL_NODE_ATTRS_MAX 12

struct sl_attr {
        uint16_t id;    /* enum sl_attr_id */
        uint16_t type;  /* enum sl_attr_type */
        uint32_t count; /* of ints or floats */
        union {
                int64_t i;
                double f;
                int64_t ints[SL_ATTR_INTS_MAX];
                double floats[SL_ATTR_INTS_MAX];
        };
};

struct sl_attrs {
        uint32_t count;
        struct sl_attr items[SL_NODE_ATTRS_MAX];
};

const char *sl_attr_name(uint32_t id);

/* NULL when the attribute is absent. */
const struct sl_attr *sl_attrs_find(const struct sl_attrs *attrs, uint32_t id);

/* The value, or @fallback when absent or of another type. */
int64_t sl_attrs_int(const struct sl_attrs *attrs, uint32_t id, int64_t fallback);
double sl_attrs_float(const struct sl_attrs *attrs, uint32_t id, double fallback);

/* Element @index of a list, @fallback when the list is absent, shorter or of another type. */
int64_t sl_attrs_ints(const struct sl_attrs *attrs, uint32_t id, uint32_t index, int64_t fallback);
double sl_attrs_floats(const struct sl_attrs *attrs, uint32_t id, uint32_t index, double fallback);

/* Set or replace. Return: 0, -E2BIG when the node has no room or the list is longer than SL_ATTR_INTS_MAX. */
int sl_attrs_set_int(struct sl_attrs *attrs, uint32_t id, int64_t value);
int sl_attrs_set_float(struct sl_attrs *attrs, uint32_t id, double value);
int sl_attrs_set_ints(struct sl_attrs *attrs, uint32_t id, const int64_t *values, uint32_t count);
int sl_attrs_set_floats(struct sl_attrs *attrs, uint32_t id, const double *values, uint32_t count);
void sl_attrs_remove(struct sl_attrs *attrs, uint32_t id);
