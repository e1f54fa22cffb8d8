/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans are built operator by operator: each of them has a function that adds its launches, or refuses. supports() runs the same
 * functions and keeps nothing.
 */
#pragma once

#include "cuda/own/arguments.h"
#include "cuda/own/own.h"
#include "op.h"

#include <stddef.h>

#define SL_OWN_BLOCK 256 /* threads of a block */

struct sl_own_builder {
        struct sl_own_plan *plan;   /* NULL: nothing is kept */
        struct sl_own_launch spare; /* what is added then */
        int error;                  /* -ENOMEM */
};

/* Adds a launch of @threads threads, in blocks of SL_OWN_BLOCK; kernels with other grids change them. Never NULL. */
struct sl_own_launch *sl_own_add(
        struct sl_own_builder *builder, uint32_t kernel, const void *argument, size_t bytes, uint64_t threads);

void sl_own_slot(struct sl_own_launch *launch, size_t offset, enum sl_own_source source, uint32_t index, uint64_t bytes);

/* How many threads share a line of @size elements, which lie in a row or far apart: 1, a warp, or a block. */
uint32_t sl_own_group(uint64_t size, bool in_a_row);

/* The activation of an epilogue as a step; false where there is none. */
bool sl_own_activation(const struct sl_epilogue *epilogue, struct sl_own_step *ret_step);

/* The next @bytes of scratch: where they begin. */
uint64_t sl_own_scratch(struct sl_own_builder *builder, uint64_t bytes);

/* The data may make the kernel set the error word. */
void sl_own_checks(struct sl_own_builder *builder);

/* The bits of @value as an element of that type; integers towards zero, within their limits. */
uint64_t sl_own_bits(double value, uint32_t dtype);

struct sl_own_divisor sl_own_divide_by(uint64_t divisor);

/*
 * A box of elements, the outermost dimension first, and where they lie in some tensors. Collapsing merges dimensions that lie one
 * in the other in all of them and drops those of one element; it leaves one dimension at least.
 */
#define SL_OWN_BOX_TENSORS (SL_OWN_OPERANDS + 1)
struct sl_own_box {
        uint32_t rank, n_tensors;
        int64_t sizes[SL_RANK_MAX], strides[SL_OWN_BOX_TENSORS][SL_RANK_MAX];
};
void sl_own_collapse(struct sl_own_box *box);

/* Strides of @tensor along the dimensions of @shape, to which it is broadcast. */
void sl_own_broadcast(const struct sl_tensor *tensor, const struct sl_shape *shape, int64_t ret_strides[SL_RANK_MAX]);

/* The box of all of @tensor, in the order in which it lies in memory; it is tensor 0. Strides that are added by
 * sl_own_box_add() are along its logical dimensions. */
void sl_own_box_of(const struct sl_tensor *tensor, struct sl_own_box *ret_box);

/* A box of those sizes without a tensor, its dimensions in the order in which those of @order lie in memory. */
void sl_own_box_over(const struct sl_tensor *order, const struct sl_shape *sizes, struct sl_own_box *ret_box);

/* Which logical dimension of @tensor is the @d-th in memory, the outermost first. */
uint32_t sl_own_dimension_at(const struct sl_tensor *tensor, uint32_t d);
void sl_own_box_add(struct sl_own_box *box, const struct sl_tensor *tensor, const int64_t *strides);

static inline bool sl_own_is_there(const struct sl_node_desc *node, uint32_t input)
{
        return input < node->n_inputs && node->inputs[input].dtype != SL_DTYPE_NONE;
}

/* The axis attribute, counted from the front. */
static inline uint32_t sl_own_axis(const struct sl_node_desc *node, int64_t fallback)
{
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, fallback);

        return (uint32_t)(axis < 0 ? axis + node->inputs[0].shape.rank : axis);
}

/* float32, float16 or bfloat16. */
static inline bool sl_own_is_float(uint32_t dtype)
{
        return dtype == SL_DTYPE_F32 || dtype == SL_DTYPE_F16 || dtype == SL_DTYPE_BF16;
}

/* Of three kernels in a row: for float32, float16 and bfloat16. */
static inline uint32_t sl_own_kernel_of(uint32_t first, uint32_t dtype)
{
        return first + (dtype == SL_DTYPE_F16) + 2 * (dtype == SL_DTYPE_BF16);
}

/* How each operator is planned: 0 or -ENOTSUP. Sizes, types that are unknown, and tensors without elements were dealt with. */
/* Whether there is any node of @op that own kernels run. */
bool sl_own_runs(uint32_t op);

/* See sl_cuda_own_plan_finish(). */
int sl_own_build_finish(struct sl_own_builder *builder, const struct sl_node_desc *node, int bias_axis);

/* See sl_cuda_own_plan_shift() and those beside it. */
int sl_own_build_shift(struct sl_own_builder *builder, const struct sl_node_desc *node);
int sl_own_build_settle(struct sl_own_builder *builder, const struct sl_node_desc *node);
int sl_own_build_int8_image(struct sl_own_builder *builder, const struct sl_node_desc *node);
int sl_own_build_int8_rows(struct sl_own_builder *builder, const struct sl_node_desc *node);
int sl_own_build_int8_settle(struct sl_own_builder *builder, const struct sl_node_desc *node);

/* The window of a convolution or a pool over input 0; -ENOTSUP: it reaches too far. */
struct sl_own_window;
int sl_own_window_read(const struct sl_node_desc *node, struct sl_own_window *ret_window);

/* See sl_cuda_own_plan_turns(). */
int sl_own_build_turns(struct sl_own_builder *builder, const struct sl_node_desc *node);

#define SL_OWN_OPERATORS(X)                                                                                                        \
        X(unary)                                                                                                                   \
        X(arithmetic)                                                                                                              \
        X(view)                                                                                                                    \
        X(concat)                                                                                                                  \
        X(split)                                                                                                                   \
        X(slice)                                                                                                                   \
        X(transpose)                                                                                                               \
        X(reorder)                                                                                                                 \
        X(expand)                                                                                                                  \
        X(tile)                                                                                                                    \
        X(blocks)                                                                                                                  \
        X(constant_of_shape)                                                                                                       \
        X(shape)                                                                                                                   \
        X(pad)                                                                                                                     \
        X(center_crop_pad)                                                                                                         \
        X(channel_shuffle)                                                                                                         \
        X(trilu)                                                                                                                   \
        X(eye_like)                                                                                                                \
        X(gather)                                                                                                                  \
        X(gather_elements)                                                                                                         \
        X(gather_nd)                                                                                                               \
        X(scatter_elements)                                                                                                        \
        X(scatter_nd)                                                                                                              \
        X(test)                                                                                                                    \
        X(where)                                                                                                                   \
        X(cast)                                                                                                                    \
        X(softmax)                                                                                                                 \
        X(lp_norm)                                                                                                                 \
        X(layer_norm)                                                                                                              \
        X(rms_norm)                                                                                                                \
        X(instance_norm)                                                                                                           \
        X(group_norm)                                                                                                              \
        X(reduce)                                                                                                                  \
        X(global_pool)                                                                                                             \
        X(argreduce)                                                                                                               \
        X(pool)                                                                                                                    \
        X(scale)                                                                                                                   \
        X(lrn)                                                                                                                     \
        X(resize)                                                                                                                  \
        X(top_k)                                                                                                                   \
        X(cum_sum)                                                                                                                 \
        X(non_max_suppression)                                                                                                     \
        X(quantize)                                                                                                                \
        X(dequantize)                                                                                                              \
        X(quantized_add)                                                                                                           \
        X(recurrent)                                                                                                               \
        X(one_hot)                                                                                                                 \
        X(convolve)                                                                                                                \
        X(hardmax)                                                                                                                 \
        X(grid_sample)                                                                                                             \
        X(reverse_sequence)                                                                                                        \
        X(mean_variance)                                                                                                           \
        X(row_attention)                                                                                                           \
        X(dynamic_quantize)
#define X(name) int sl_own_plan_##name(struct sl_own_builder *builder, const struct sl_node_desc *node);
SL_OWN_OPERATORS(X)
#undef X
