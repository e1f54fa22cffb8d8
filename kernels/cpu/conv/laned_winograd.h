/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.LanedConv of 3x3 by Winograd's algorithm, F(2x2, 3x3): a tile of 2x2 pixels takes 16 products instead of 36. What lies
 * where is as in laned.h: transforms and products work on vectors of sixteen lanes, or of [filter][lane], so that small images and
 * few channels cost no more than others.
 *
 * Some tiles at a time, so that what lies between the transforms stays in the L2 cache:
 *   inputs    [position][channel][tile][vector] of one vector of lanes
 *   products  [position][filter][tile][vector]
 * Weights are packed as [position][sixteen of filter and lane][channel][sixteen].
 *
 * Sources: Andrew Lavin, Scott Gray, Fast Algorithms for Convolutional Neural Networks, 2016, section 4.1.
 */
#pragma once

#include "backend.h"
#include "cpu/conv/conv_shape.h"

#include <stdint.h>

#define SL_LANED_POSITIONS 16 /* 4x4 */

/* Between the parts of two positions: without it all sixteen of a tile fall into one set of the L1 cache. */
#define SL_LANED_GAP 16

struct sl_laned_winograd {
        struct sl_conv_shape shape;
        int64_t outputs;                       /* floats of a pixel of the output: filters times lanes */
        int64_t tiles_down, tiles_across;      /* of a sample */
        int64_t tiles;                         /* that are computed at a time, at most */
        int64_t input_floats, product_floats;  /* of a position, at most */
        int64_t products_offset, zeros_offset; /* in floats of scratch, behind the inputs */
};

/* For processors with AVX2. */
SL_TILES(int, sl_laned_winograd_run, (const struct sl_laned_winograd *w, const struct sl_binding *binding), (w, binding))
