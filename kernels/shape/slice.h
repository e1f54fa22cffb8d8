/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of a Slice and the pads of a Pad, per dimension of input 0: one reading of the attributes for shape rules and
 * kernels. Pure; any thread.
 */
#pragma once

#include "node.h"

struct sl_error;

/* Of a dimension: elements first, first + step, ... @count of them. */
struct sl_slice {
        int64_t first, step, count;
};

/*
 * @ret_slices: one per dimension of input 0. A count is SL_DIM_BATCH or SL_DIM_UNKNOWN as far as the dimension or the
 * attributes are not known. -EINVAL: lists of different lengths, an axis outside the rank or twice, a step of 0.
 */
int sl_slice_read(const struct sl_node_desc *node, struct sl_slice ret_slices[SL_RANK_MAX], struct sl_error *error);

/* Elements before and after each dimension, negative where they are cut off. PADS must be there. -EINVAL as above. */
int sl_pads_read(
        const struct sl_node_desc *node, int64_t ret_begin[SL_RANK_MAX], int64_t ret_end[SL_RANK_MAX], struct sl_error *error);
