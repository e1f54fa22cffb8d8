/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tile of Winograd's by its windows themselves, for one that holds NaN or an infinity: the transforms would spread it over all of
 * the tile, and infinity less infinity is NaN. The filters are won back from the transformed ones, which takes ten times as long as
 * the tile does. A weight of less than a millionth of the largest of its filter counts as 0. Pure; any thread.
 */
#pragma once

#include "cpu/base/isa.h"
#include "cpu/conv/winograd.h"

/* A channel's filters of a vector lie behind each other; so many floats from channel to channel, and as many by channels to a
 * matrix. */
struct sl_winograd_weights {
        const float *first;
        int64_t width, filters; /* filters of the vector, at most */
};

#define SL_WINOGRAD_NOTHING 8e-7f /* of the largest weight of a filter: what rounding leaves of a 0 */

#define SL_WINOGRAD_PIXELS_MAX (SL_WINOGRAD_OUTPUTS_MAX * SL_WINOGRAD_OUTPUTS_MAX)

/*
 * The pixel of the output at @row, @column of sample @sample is the first of the tile. ret_sums[pixel of the tile][filter]; those
 * beside the image are not written.
 */
SL_TILES(void, sl_winograd_direct,
        (const struct sl_winograd *w, const void *x, int64_t sample, int64_t row, int64_t column,
                const struct sl_winograd_weights *weights, float ret_sums[SL_WINOGRAD_PIXELS_MAX][16]),
        (w, x, sample, row, column, weights, ret_sums))
