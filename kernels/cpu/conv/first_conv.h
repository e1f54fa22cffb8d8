/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first convolution of a network, from NCHW (PLAIN) to channels last: it reads the planes of an image as they come. Few
 * channels in, any window, stride of 1, 2 or 4 along a row, no groups, no residual.
 *
 *     planes --scanlines under one row of the output, padded with zeros--> scratch [channel][tap down][padded width]
 *     --an element of a scanline times a vector of filters, 14 pixels and 32 filters in registers--> row of the output
 *
 * An element is summed from its bias on, in the order of channel and tap, so that a sample has the same bits in any batch.
 */
#pragma once

#include "backend.h"
#include "cpu/conv/conv_shape.h"

#include <stdint.h>

struct sl_first_conv {
        struct sl_conv_shape shape;
        int64_t block_rows;       /* of the output, whose scanlines are copied at a time */
        int64_t scanlines;        /* under them, of each channel */
        int64_t left;             /* floats in front of a scanline's own: the padding, and what aligns the rest */
        int64_t scanline_floats;  /* from scanline to scanline */
        int64_t scanlines_offset; /* of the scanlines in scratch, in bytes; the places of the taps lie in front of them */
};

/* For processors with AVX2. */
SL_TILES(int, sl_first_conv_run, (const struct sl_first_conv *p, const struct sl_binding *binding), (p, binding))
