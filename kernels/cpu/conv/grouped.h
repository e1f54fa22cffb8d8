/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolutions (3x3, 5x5 and 7x7; one, two, four or eight filters for each channel) and groups of 2, 4 or 8 channels and
 * as many filters (3x3), with stride 1 or 2, channels last. A tile of a few pixels of the output is summed in registers, a vector
 * of channels at a time: each pixel of the input is loaded once for all outputs of the tile that it touches, and with groups once
 * for each channel of a group, which is then spread over the lanes of its group. Pixels outside the image are read from a row of
 * zeros in scratch. The last tile of a row or column lies over its neighbour where the image does not divide; what both compute is
 * the same.
 *
 * Weights are packed as [sixteen filters][channel of the group][tap][filter].
 */
#pragma once

#include "backend.h"
#include "cpu/conv/conv_shape.h"

#include <stdint.h>

struct sl_grouped {
        struct sl_conv_shape shape;
        int64_t side, stride;              /* of the window, down and across */
        int64_t multiplier;                /* filters that read one channel: more than 1 in depthwise ones alone, a power of two */
        int64_t in_channels, out_channels; /* of all groups */
        int64_t chunk_channels;            /* that are computed at a time, a multiple of 16 */
};

/* Weights lie in panels of so many channels, [panel][channel of the group][tap][lane]. */
#define SL_GROUPED_LANES 16

/* Weights [filters, channels of a group, height, width] as they are packed, and how many floats that takes. */
void sl_grouped_pack(const int64_t dims[4], const float *plain, float *ret_packed);

static inline int64_t sl_grouped_packed_floats(const int64_t dims[4])
{
        return (dims[0] + SL_GROUPED_LANES - 1) / SL_GROUPED_LANES * SL_GROUPED_LANES * dims[1] * dims[2] * dims[3];
}

/* Of a tile of the output. */
#define SL_GROUPED_ROWS_MAX 4
#define SL_GROUPED_COLUMNS  4

/* Rows of a tile: more with groups, whose lanes take their time to spread. */
static inline int64_t sl_grouped_rows(const struct sl_grouped *d)
{
        return d->shape.channels > 1 && d->stride == 1 ? 4 : 2;
}

/* As sl_runner.units: scanlines that a tile has, the last with what is left of its sample; vectors of channels. */
static inline int64_t sl_grouped_units(const struct sl_grouped *d, uint32_t axis)
{
        return axis == SL_AXIS_ROWS ? d->shape.batch * (d->shape.out_height / sl_grouped_rows(d))
                                    : (d->out_channels + SL_GROUPED_LANES - 1) / SL_GROUPED_LANES;
}

/* Rows of the output of one sample: those of its units from @unit on, as far as @end. */
struct sl_grouped_rows {
        int64_t sample, first, end, units;
};

static inline struct sl_grouped_rows sl_grouped_rows_of(const struct sl_grouped *d, int64_t unit, int64_t end)
{
        int64_t rows = sl_grouped_rows(d), units = d->shape.out_height / rows, last = (unit / units + 1) * units;

        last = last < end ? last : end;
        return (struct sl_grouped_rows){.sample = unit / units,
                .first = unit % units * rows,
                .end = last % units ? last % units * rows : d->shape.out_height,
                .units = last - unit};
}

/* Rows of the output, samples one behind the other, that some of its units are. */
static inline struct sl_part sl_grouped_lines(const struct sl_grouped *d, const struct sl_part *part)
{
        int64_t units = d->shape.out_height / sl_grouped_rows(d), rows = sl_grouped_rows(d);

        return (struct sl_part){.axis = SL_AXIS_ROWS,
                .first = part->first / units * d->shape.out_height + part->first % units * rows,
                .end = part->end / units * d->shape.out_height + part->end % units * rows};
}

/*
 * Some rows of the output of one sample, and of some of its channels, by a depthwise convolution whose input lies in a window of
 * its own: row r of the input, panels of SL_GROUPED_PANEL channels apart, is row r % slots of @ring, and begins with pad_left
 * pixels of zeros; it ends with as many as the windows reach to the right. Rows outside of the image are @zeros.
 */
#define SL_GROUPED_PANEL          32
#define SL_GROUPED_STRIP_SIDE_MAX 5 /* of its window; one filter reads each channel */

struct sl_grouped_strip {
        const float *ring, *zeros;
        int64_t slots, row_floats; /* of a row of the ring */
        int64_t first, rows;       /* of the output; not fewer than a tile has */
        int64_t channels;          /* at most a panel */
        const float *weights, *bias;
        const float *residual; /* as y, or NULL */
        float *y;              /* row @first of the output, at the panel's first channel */
};

/* For processors with AVX2. */
SL_TILES(void, sl_grouped_run_strip, (const struct sl_grouped *d, const struct sl_grouped_strip *strip), (d, strip))
SL_TILES(int, sl_grouped_run, (const struct sl_grouped *d, const struct sl_binding *binding), (d, binding))
