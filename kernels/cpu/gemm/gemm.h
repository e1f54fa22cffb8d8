/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product of matrices on one core: c = epilogue(a * b + bias), where b lies packed.
 *
 * The packed form is panels of 32 columns, [panel][depth][32]; the last panel is 16 wide when that suffices, and padded with zeros.
 * One row of c never depends on the others: each element is summed from its bias on, in the order of depth, whatever the number of
 * rows. Nothing outside of the matrices is read or written.
 *
 * The packed matrix may lie in float16 or bfloat16, half as many bytes: each element is widened where it is used, so that the bits
 * are those of a matrix of the same numbers in float32.
 *
 * To run it is for processors with AVX2. Pure; any thread.
 *
 * Sources: K. Goto, R. A. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM Transactions on Mathematical
 * Software 34 (3), 2008, sections 4 and 5; F. G. Van Zee, R. A. van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS
 * Functionality", ACM Transactions on Mathematical Software 41 (3), 2015.
 */
#pragma once

#include "cpu/base/isa.h"
#include "part.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_cpu_epilogue;
struct sl_core_figures;

#define SL_GEMM_PANEL 32 /* columns */

/* So many rows hide nothing of what b takes to come. */
#define SL_GEMM_PASSING_ROWS 6

/* Bytes of one operand that may stay in the L2 cache: half of it. */
static inline int64_t sl_gemm_resident_bytes(void)
{
        return sl_cpu_l2_bytes() / 2;
}

/* How a b that passes is read best, which is the processor's. */
struct sl_gemm_reading {
        bool abreast; /* one or two rows: several panels side by side, not one after the other */
        bool fetched; /* several rows, and halves: fetched ahead by software */
};

struct sl_gemm {
        const float *a; /* rows x depth */
        const float *b; /* packed; unused where there is a narrow one */
        float *c;       /* rows x columns */
        int64_t rows, depth, columns;
        int64_t a_stride, c_stride; /* from row to row, in floats */
        /*
         * Where a is no matrix but rows that are found in an image, in floats: so many rows lie a_stride apart, then the next
         * scanline of them begins scanline_stride behind the last; after so many scanlines the next image. 0 rows: all of them are
         * one scanline. A row is pieces of @piece floats, piece_stride apart; 0: it is one. @depth is a multiple of @piece.
         */
        int64_t scanline_rows, scanline_stride, image_scanlines, image_stride;
        int64_t piece, piece_stride;
        /*
         * Row r of a scanline is zeros in front of its float clip_left - r * clip_step and from clip_right - r * clip_step on,
         * which are left out of the sums. 0: nothing is known; else a row is one piece.
         */
        int64_t clip_left, clip_right, clip_step;
        int64_t panel_stride;  /* from panel to panel, in floats; 0: they follow each other */
        const float *bias;     /* columns, or NULL */
        const float *residual; /* as c, with a stride of its own, or NULL; need not lie apart from c */
        int64_t residual_stride;
        const uint16_t *narrow; /* b in float16, or bfloat16; NULL: it is float32 */
        uint32_t narrow_dtype;  /* SL_DTYPE_F16, SL_DTYPE_BF16 */
        const float *next; /* packed too: what the next product reads, to be fetched ahead; NULL: b again */
        bool streams;      /* b comes from beyond the L2 cache: what follows is fetched ahead; a large b always is */
        struct sl_gemm_reading reading;
        const struct sl_cpu_epilogue *epilogue; /* NULL: none */
};

/* By what was measured (kernels/target.h); NULL: nothing was. */
struct sl_gemm_reading sl_gemm_reading(const struct sl_core_figures *core);

/* Floats of a packed depth x columns matrix. */
int64_t sl_gemm_packed_floats(int64_t depth, int64_t columns);

/* Packs a matrix (in depth and columns, as said above) whose element (k, n) lies at b[k * depth_stride + n * column_stride], in
 * floats; at any address. */
void sl_gemm_pack(const void *b, int64_t depth, int64_t columns, int64_t depth_stride, int64_t column_stride, float *ret_packed);

/* The same into halves: to the nearest, ties to even. Return: 0; -ERANGE a finite number becomes infinite. */
int sl_gemm_pack_narrow(const void *b, int64_t depth, int64_t columns, int64_t depth_stride, int64_t column_stride, uint32_t dtype,
        uint16_t *ret_packed);

/* Do so few rows pass by a packed b of so many bytes, more than the caches hold, so that these alone count? */
bool sl_gemm_passes(int64_t rows, int64_t bytes);

/* Panels of so many columns. */
static inline int64_t sl_gemm_panels(int64_t columns)
{
        return (columns + SL_GEMM_PANEL - 1) / SL_GEMM_PANEL;
}

/* Leaves of a product what @part has: rows of a matrix, or panels that follow each other. NULL: all of it. */
void sl_gemm_take(struct sl_gemm *gemm, const struct sl_part *part);

SL_TILES(void, sl_gemm_run, (const struct sl_gemm *gemm), (gemm))
