/* SPDX-License-Identifier: Apache-2.0 */
/*
 * im2col GEMM, a convolution as a product of matrices: a row for each pixel of the output, which holds all that its window covers,
 * times the filters. Channels last, any window, groups of 8 channels and more. The rows are
 *
 *     the input itself    a pixel each, where the window is one pixel and the stride 1
 *     in the input        where no window reaches over the edge: rows of neighbours overlap (gemm.h: scanlines and pieces)
 *     in a frame          the same, of a copy of some scanlines (or of whole images) with zeros around them, a group behind the
 * other copied              one by one, a block at a time: where scanlines are short, or windows have holes
 *
 * and what is copied stays in the L2 cache.
 *
 * Sources: K. Chellapilla, S. Puri, P. Simard, "High Performance Convolutional Neural Networks for Document Processing", IWFHR
 * 2006; for rows of neighbours that overlap, M. Cho, D. Brand, "MEC: Memory-efficient Convolution for Deep Neural Network", ICML
 * 2017.
 */
#pragma once

#include "backend.h"
#include "cpu/conv/conv_shape.h"

#include <stdint.h>

enum sl_im2col_rows { SL_IM2COL_INPUT, SL_IM2COL_LINES, SL_IM2COL_FRAME, SL_IM2COL_COPIED };

struct sl_im2col_gemm {
        struct sl_conv_shape shape;
        enum sl_im2col_rows source;
        int64_t rows, depth;                   /* of the whole product of a group */
        int64_t block_rows;                    /* COPIED: so many at a time */
        int64_t block_images, block_scanlines; /* FRAME: whole images, or with one image scanlines of the output */
        int64_t frame_scanlines, frame_pixels; /* FRAME: of one image; SCANLINES: those of the input */
        uint32_t narrow;                       /* what the filters lie in: SL_DTYPE_F16, SL_DTYPE_BF16; NONE: float32 */
        bool clips;                            /* taps that see nothing but the frame's zeros are left out */
        bool streams;                          /* the weights are more than the L2 cache holds beside the rest, or pass few rows */
};

/* For processors with AVX2. */
SL_TILES(int, sl_im2col_gemm_run, (const struct sl_im2col_gemm *p, const struct sl_binding *binding), (p, binding))
