/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape rules: one function per rule name of SL_OPS, called by sl_op_infer() alone. A rule may rely on this: the number of
 * inputs and outputs fits the row (a residual is already taken off node->n_inputs), the first `least` inputs are present,
 * every present input has a known type, a rank of at most SL_RANK_MAX and dimensions of at least SL_DIM_UNKNOWN.
 * It fills dtype and shape of every output. Pure; any thread. -EINVAL is a proof: no sizes in the place of unknown ones would do.
 * A rule that cannot do without a size says -ENOTSUP.
 *
 * Below the rules: arithmetic on dimensions that may be SL_DIM_BATCH or SL_DIM_UNKNOWN.
 */
#pragma once

#include "base/error.h"
#include "op.h"

#define X(id, name, least, most, outputs, rule, work, traits)                                                                      \
        int sl_shape_##rule(struct sl_node_desc *node, struct sl_error *error);
SL_OPS(X)
#undef X

static inline bool sl_dim_known(int64_t dim)
{
        return dim >= 0;
}

static inline bool sl_input_present(const struct sl_node_desc *node, uint32_t index)
{
        return index < node->n_inputs && node->inputs[index].dtype != SL_DTYPE_NONE;
}

/* @axis, counted from the end when negative, of a tensor of @rank. -EINVAL outside [-rank, rank - 1]. */
int sl_axis_resolve(int64_t axis, uint32_t rank, uint32_t *ret_axis, struct sl_error *error);

/* The axes in the integer list @attr as a bit mask. -EINVAL: outside the rank, or given twice. */
int sl_axes_resolve(const struct sl_attr *attr, uint32_t rank, uint32_t *ret_mask, struct sl_error *error);

/* The integer list of that id, or NULL when it still stands as input @input. -EINVAL: neither. */
int sl_list_or_input(
        const struct sl_node_desc *node, uint32_t id, uint32_t input, const struct sl_attr **ret_list, struct sl_error *error);

/* -ENOTSUP: dimension @dim of input @input, if it has one, is not known, without which the rule can say nothing. */
int sl_size_wanted(const struct sl_node_desc *node, uint32_t input, uint32_t dim, struct sl_error *error);

/* The elements of the parameter that stands as input @input: the length of a vector. -ENOTSUP when that is unknown. */
int sl_parameter_length(const struct sl_node_desc *node, uint32_t input, uint32_t *ret_length, struct sl_error *error);

/* The dimension that both must be; what is known better wins. -EINVAL when they contradict each other. */
int sl_dim_merge(int64_t a, int64_t b, int64_t *ret_dim);

/* Numpy's broadcast of two shapes. -EINVAL names both. */
int sl_shape_join(const struct sl_shape *a, const struct sl_shape *b, struct sl_shape *ret_shape, struct sl_error *error);

/* -EINVAL unless @shape broadcasts to @target without changing it; @what names the tensor in the text. */
int sl_shape_fits(const struct sl_shape *shape, const struct sl_shape *target, const char *what, struct sl_error *error);

/* -EINVAL unless input @index has the type of input 0. */
int sl_same_dtype(const struct sl_node_desc *node, uint32_t index, struct sl_error *error);

/* -EINVAL unless input @index is a vector of @length elements (of any length, when that is not known). */
int sl_vector_of(const struct sl_node_desc *node, uint32_t index, int64_t length, struct sl_error *error);

/* A product of dimensions: factor * batch^batches, or unknown. */
struct sl_extent {
        uint64_t factor;
        uint32_t batches;
        bool unknown;
};

/* -EOVERFLOW when the factor does not fit. */
int sl_extent_of(const int64_t *dims, uint32_t count, struct sl_extent *ret_extent);

/* The extent as one dimension: SL_DIM_BATCH only when it is the batch exactly. */
int64_t sl_extent_dim(const struct sl_extent *extent);
