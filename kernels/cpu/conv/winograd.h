/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions by Winograd's minimal filtering: an image is cut into tiles that overlap by a pixel less than the
 * window has, tiles and filters are transformed, multiplied position by position (for F(4x4, 3x3) 36 products of matrices instead
 * of one with nine times the depth), and transformed back. Along each axis the window has
 *
 *     1 tap:  nothing is transformed, a position is a pixel
 *     3 taps: 2 pixels of the output from 4 positions, or 4 from 6
 *     5 taps: 2 from 6
 *     7 taps: 2 from 8
 *     3 taps with stride 2: 2 from 5, three for the outer taps on pixels 0, 2 and 4, two for the middle one on pixels 1 and 3
 *
 * so that a window is 3x3 with stride 1 or 2, 5x5, or a line of 3 or 7.
 *
 *     input --transform--> tiles [position][tile][channel] --product with weights [panel][position][channel][32]-->
 *     sums [position][tile][filter of the panels] --transform back, bias, residual, activation--> output
 *
 * The points of interpolation are 0, infinity and +-1 for 4 positions, +-5/8 and +-3/2 for 6, +-1/2, +-1 and +-2 for 8: all factors
 * are exact, and the error of 6 is a quarter of that with the usual +-1 and +-2. A sample has the same bits in any batch: no sum
 * reaches over tiles.
 *
 * Tensors are of float32 or all of bfloat16. Of the latter the result is that of the same numbers in float32, rounded once: tiles,
 * transformed filters and sums are float32 either way.
 *
 * Sources: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4; on the choice of points
 * B. Barabasz, A. Anderson, K. M. Soodhalter, D. Gregg, "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep
 * Neural Networks", ACM Transactions on Mathematical Software 46 (4), 2020.
 */
#pragma once

#include "backend.h"
#include "cpu/conv/conv_shape.h"

#include <stdint.h>

#define SL_WINOGRAD_SIDE_MAX 8 /* positions */
#define SL_WINOGRAD_TAPS_MAX 7
#define SL_WINOGRAD_OUTPUTS_MAX 4
#define SL_WINOGRAD_STEP_MAX    128 /* filters of a step */

/* One axis of a tile: what the window has, what comes out and what is multiplied. Two positions of stride 2 share their weights. */
struct sl_winograd_side {
        int64_t taps, stride, outputs, positions, weights;
};

struct sl_winograd {
        struct sl_conv_shape shape;
        struct sl_winograd_side down, across;
        int64_t positions;                       /* of a tile */
        int64_t weights;                         /* matrices of them */
        int64_t tiles_down, tiles_across, tiles; /* of one sample, of all */
        int64_t block_tiles;                     /* that are transformed at a time */
        int64_t step_filters;                    /* that are multiplied at a time: whole panels */
        int64_t channel_floats;                  /* from tile to tile of a block */
        int64_t position_floats;                 /* from position to position of a block */
        int64_t sum_floats;                      /* the same of the sums */
        int64_t sums_offset;                     /* into scratch, in floats */
        bool streams;                            /* the weights are more than the L2 cache holds beside the tiles */
};

/* For processors with AVX2. */
SL_TILES(int, sl_winograd_run, (const struct sl_winograd *w, const struct sl_binding *binding), (w, binding))
