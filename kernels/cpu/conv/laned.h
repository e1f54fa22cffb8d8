/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.LanedConv: the convolutions of K networks in one, channels last, the lanes of a channel beside each other: a pixel is
 * [channel][lane]. A vector of the output is sixteen neighbours of [filter][lane], so that every product of two vectors is sixteen
 * useful ones, however few channels a lane has. A vector of the input has one channel of those lanes: with K below the width of a
 * vector they repeat in it.
 *
 * The rows of the input under some rows of the output are copied into a frame with the padding to the left and right,
 * [row][channel][column][vector], once for each vector of lanes; rows outside of the image are left out of the sums. Pointwise ones
 * of whole vectors read their input where it lies.
 *
 * Weights are packed as in grouped.h. An element is summed channel by channel, row by row and tap by tap of the window, whatever
 * the number of lanes.
 */
#pragma once

#include "backend.h"
#include "cpu/base/reach.h"
#include "cpu/conv/conv_shape.h"

#include <stdint.h>

struct sl_laned {
        struct sl_conv_shape shape; /* its groups are the lanes */
        int64_t outputs;            /* floats of a pixel of the output: filters times lanes */
        int64_t frame_columns;      /* 0: the input is read where it lies */
};

/* Rows of the input under @rows rows of the output, at most. */
static inline int64_t sl_laned_frame_rows(const struct sl_laned *l, int64_t rows)
{
        int64_t under = (rows - 1) * l->shape.window.stride[0] + l->shape.window.kernel[0];

        return under < l->shape.height ? under : l->shape.height;
}

/* They fill vectors of eight and of sixteen, or divide them. */
static inline bool sl_laned_takes(int64_t lanes)
{
        return lanes == 2 || lanes == 4 || lanes == 8 || (lanes > 0 && lanes % 16 == 0);
}

/* A unit along columns is sixteen lanes of every filter; fewer lie in one vector. */
#define SL_LANED_UNIT 16

static inline int64_t sl_laned_columns(const struct sl_conv_shape *c)
{
        return c->groups > SL_LANED_UNIT ? c->groups / SL_LANED_UNIT : 0;
}

/* Vectors of @floats lanes that the part computes, of those that there are. */
static inline struct sl_part sl_laned_blocks(const struct sl_conv_shape *c, const struct sl_part *part, int64_t floats)
{
        struct sl_part all = {.axis = SL_AXIS_COLUMNS, .end = c->groups > floats ? c->groups / floats : 1};

        if (part && part->axis == SL_AXIS_COLUMNS) {
                all.first = part->first * (SL_LANED_UNIT / floats);
                all.end = part->end * (SL_LANED_UNIT / floats);
        }
        return all;
}

/* What a part along columns touches of the input, or of what is as large as the output. */
static inline bool sl_laned_reach_columns(
        const struct sl_conv_shape *c, const struct sl_part *part, bool is_result, struct sl_reach *ret_reach)
{
        int64_t word = sizeof(float),
                rows = c->batch * (is_result ? c->out_height * c->out_width * c->filters : c->height * c->width * c->channels);

        return sl_reach_columns(part, SL_LANED_UNIT * word, c->groups * word, rows, ret_reach);
}

/* Of so many in groups of at most @most, of which none is much smaller than others: the next group. */
static inline int64_t sl_laned_next(int64_t left, int64_t most)
{
        int64_t groups = (left + most - 1) / most;

        return (left + groups - 1) / groups;
}

/* Samples and rows of the output; scratch holds the frame. For processors with AVX2. */
SL_TILES(int, sl_laned_run, (const struct sl_laned *l, const struct sl_binding *binding), (l, binding))
