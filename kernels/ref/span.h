/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of convolutions and pools along their spatial dimensions, always written with SL_SPATIAL_MAX of them: missing ones
 * lead with size 1. Pure; any thread.
 */
#pragma once

#include "shape/window.h"

/* The image, the positions of the window over it, and the window itself. */
struct sl_ref_span {
        struct sl_window window;
        int64_t in[SL_SPATIAL_MAX], out[SL_SPATIAL_MAX];
        int64_t in_size, out_size; /* products */
};

/* At one position: taps [first, last) of each dimension fall into the image, tap t at start + t * dilation. */
struct sl_ref_taps {
        int64_t start[SL_SPATIAL_MAX], first[SL_SPATIAL_MAX], last[SL_SPATIAL_MAX];
};

/* From a Conv or pool whose shapes are inferred. */
void sl_ref_span_read(const struct sl_node_desc *node, struct sl_ref_span *ret_span);

/* @position: row-major index into the output image. */
void sl_ref_span_at(const struct sl_ref_span *span, int64_t position, struct sl_ref_taps *ret_taps);
