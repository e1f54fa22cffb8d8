/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that move elements to other places: one reading of the attributes for shape rules and kernels. Pure; any thread.
 */
#pragma once

#include "node.h"

/*
 * DepthToSpace and SpaceToDepth as one walk over six dimensions (sample, channel, row, row of the block, column, column of the
 * block), with the strides of output and input in elements, whatever their layouts.
 */
#define SL_BLOCK_WALK_RANK 6

struct sl_block_walk {
        int64_t sizes[SL_BLOCK_WALK_RANK], out_strides[SL_BLOCK_WALK_RANK], in_strides[SL_BLOCK_WALK_RANK];
};

void sl_block_walk_read(const struct sl_node_desc *node, struct sl_block_walk *ret_walk);

/* The image that a Col2Im puts together as the input of a pool with its window: what sl_window_read() understands. */
void sl_col2im_image(const struct sl_node_desc *node, struct sl_node_desc *ret_image);
