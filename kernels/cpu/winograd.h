/*
 * Convolutions of 3x3 with stride 1 by Winograd's minimal filtering, F(2x2, 3x3) and F(4x4, 3x3): an image is cut into tiles that
 * overlap by two pixels, tiles and filters are transformed, multiplied position by position (16 or 36 products of matrices instead
 * of one with nine times the depth), and transformed back.
 *
 *     input --transform--> tiles [position][tile][channel] --product with weights [panel][position][channel][32]-->
 *     sums [position][tile][filter of the panels] --transform back, bias, residual, activation--> output
 *
 * The points of interpolation are 0, +-5/8, +-3/2 and infinity for 4x4 (0, +-1 and infinity for 2x2): all factors are exact, and
 * the error is a quarter of that of the usual +-1 and +-2. A sample has the same bits in any batch: no sum reaches over tiles.
 */
#pragma once

#include "backend.h"

#include "cpu/finish.h"

#include <stdint.h>

#define SL_WINOGRAD_SIDE_MAX 6 /* of a tile of the input */

struct sl_winograd {
        int64_t output_side;                    /* of a tile: 2 or 4; that of the input is 2 more */
        int64_t batch, height, width, channels; /* of the input */
        int64_t out_height, out_width, filters;
        int64_t pad_top, pad_left;
        int64_t tiles_down, tiles_across, tiles; /* of one sample, of all */
        int64_t block_tiles;                     /* that are transformed at a time */
        int64_t step_filters;                    /* that are multiplied at a time: whole panels */
        int64_t channel_floats;                  /* from tile to tile of a block */
        int64_t position_floats;                 /* from position to position of a block */
        int64_t sum_floats;                      /* the same of the sums */
        int64_t sums_offset;                     /* into scratch, in floats */
        bool streams;                            /* the weights are more than the second-level cache holds beside the tiles */
        bool has_bias;
        uint32_t residual; /* node input; 0: none */
        struct sl_finish finish;
};

/* For processors with AVX-512. */
int sl_winograd_run(const struct sl_winograd *w, const struct sl_binding *binding);
