/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A convolution as a product of matrices: a row for each pixel of the output, which holds all that its window covers, times the
 * filters. Where the window is one pixel and the stride 1, the rows are the input itself; else they are copied into scratch, a
 * block at a time, and the copy stays in the second-level cache. Channels last, any window, no groups.
 *
 * Worth it where the library waits for weights (the product fetches them ahead), or spends its time on calls.
 */
#pragma once

#include "backend.h"
#include "cpu/finish.h"
#include "shape/window.h"

#include <stdint.h>

struct sl_window_product {
        struct sl_window window;
        int64_t height, width, channels; /* of the input */
        int64_t out_height, out_width, filters;
        int64_t rows, depth; /* of the whole product */
        int64_t block_rows;  /* that are copied at a time; 0: none are */
        bool streams;        /* the weights are more than the second-level cache holds beside the rest, or pass few rows */
        bool has_bias;
        uint32_t residual; /* node input; 0: none */
        struct sl_finish finish;
};

/* For processors with AVX-512. */
int sl_window_product_run(const struct sl_window_product *p, const struct sl_binding *binding);
