/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of single channels over bytes, by VPDPBUSD: of 64 channels four neighbouring pixels are interleaved, so that a lane holds
 * four taps of one channel; each of a few neighbouring outputs, a group, has weights of its own for them, with zeros where its
 * window has no tap. Channels come out in the order in which lanes are interleaved, sl_depthwise_channel(), and are stored in
 * theirs. Of 32 channels and less two groups of a scanline lie side by side, in the halves of each vector.
 *
 * Weights of 64 channels: their sums [place], then [scanline][block of pixels][output][place][4]. Pure; any thread; the processor
 * has VNNI.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_DEPTHWISE_CHANNELS  64
#define SL_DEPTHWISE_SCANLINES 5 /* that a window covers, at most */

#define SL_DEPTHWISE_HALF 32 /* channels */

/* The channel at a place, of a block of so many: vector place / 16, and in it lane 4 * l + i. */
static inline int64_t sl_depthwise_channel(int64_t channels, int64_t place)
{
        int64_t channel = place % 16 / 4 * 16 + place / 16 * 4 + place % 4;

        return channels <= SL_DEPTHWISE_HALF ? channel % SL_DEPTHWISE_HALF : channel;
}

/* How outputs are grouped for windows of so many pixels at such steps; 0 outputs: there is no code. */
struct sl_depthwise_group {
        int32_t outputs, blocks; /* of four pixels */
};
struct sl_depthwise_group sl_depthwise_group(int64_t kernel, int64_t stride);

/* One scanline of the output. */
struct sl_depthwise_line {
        int64_t kernel[2], stride, pad;
        const uint8_t *scanlines[SL_DEPTHWISE_SCANLINES]; /* their first pixels; NULL: beside the image */
        int64_t width, pixel_stride; /* of those; where there are fewer channels, no byte behind them is read */
        uint8_t x_zero;              /* what is beside the image */
        int64_t channels;            /* 1 to 64 */
        const int8_t *weights;
        const int32_t *starts; /* of the sums [place] */
        const float *factors;  /* [place]; to steps of the result, or to real numbers */
        const float *rests;    /* [place]; what a start could not hold, in the same unit */
        bool fits;             /* rests are 0, and no factor is above 1: every step is an int32 */
        int64_t outputs;

        float *reals; /* where floats go, channels in their order, within the limits; NULL: bytes are stored */
        uint8_t *y;
        int64_t y_stride; /* from output to output, of floats or bytes */
        float least, most;
        uint8_t low, high, sign; /* as in gemm/dot_tile.h */
        int16_t zero;
        bool hard_swish; /* of the real numbers; bytes are of that, times @unit, and nothing fits then */
        float unit;
};

void sl_depthwise_line(const struct sl_depthwise_line *line);

/* The line's real numbers, SL_DEPTHWISE_CHANNELS from output to output, times @factor to the bytes of @y, @y_stride from one to the
 * next. */
void sl_depthwise_round(const struct sl_depthwise_line *line, float factor, uint8_t *y, int64_t y_stride);
