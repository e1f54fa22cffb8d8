/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of single channels over bytes, by VPDPBUSD: of 64 channels four neighbouring pixels are interleaved, so that a lane holds
 * four taps of one channel; each of a few neighbouring outputs has weights of its own for them, with zeros where its window has no
 * tap. Channels come out in the order in which lanes are interleaved, SL_DEPTHWISE_CHANNEL(), and are stored in theirs.
 *
 * Weights of 64 channels: their sums [place], then [scanline][block of pixels][output][place][4]. Pure; any thread; the processor
 * has VNNI.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_DEPTHWISE_CHANNELS 64
#define SL_DEPTHWISE_SPAN     8 /* pixels that the windows of a group cover, at most */
#define SL_DEPTHWISE_GROUP    4 /* outputs, at most */

/* The channel at a place: vector place / 16, and in it lane 4 * l + i. */
#define SL_DEPTHWISE_CHANNEL(place) ((place) % 16 / 4 * 16 + (place) / 16 * 4 + (place) % 4)

/* How outputs are grouped for windows of so many pixels at such steps; 0 outputs: there is no code. */
struct sl_depthwise_group {
        int32_t outputs, blocks; /* of four pixels */
};
struct sl_depthwise_group sl_depthwise_group(int64_t kernel, int64_t stride);

struct sl_depthwise_tile {
        int64_t kernel[2], stride;
        const uint8_t *pixels; /* the first that the group sees; where there are fewer channels, no byte behind them is read */
        int64_t scanline_stride, pixel_stride;
        int64_t channels; /* 1 to 64 */
        const int8_t *weights;
        const int32_t *starts; /* of the sums [place] */
        const float *factors;  /* [place]; to steps of the result, or to real numbers */
        const float *rests;    /* [place]; what a start could not hold, in the same unit */
        int64_t outputs;       /* that are wanted */

        float *reals; /* where floats go, channels in their order, within the limits; NULL: bytes are stored */
        uint8_t *y;
        int64_t y_stride; /* from output to output, of floats or bytes */
        float least, most;
        uint8_t low, high, sign; /* as in gemm/dot_tile.h */
        int16_t zero;
};

void sl_depthwise_tile(const struct sl_depthwise_tile *tile);

/* Real numbers of one output to bytes: low, high, sign, zero and channels are those of the tile. */
void sl_depthwise_round(const struct sl_depthwise_tile *tile, float factor, const float *reals, uint8_t *y);
