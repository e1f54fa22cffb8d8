/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product of matrices on one core with AVX-512: c = finish(a * b + bias), where b lies packed.
 *
 * The packed form is panels of 32 columns, [panel][depth][32]; the last panel is 16 wide when that suffices, and padded with zeros.
 * One row of c never depends on the others: each element is summed from its bias on, in the order of depth, whatever the number of
 * rows. Nothing outside of the matrices is read or written.
 *
 * Only for processors with AVX-512: whoever calls has asked sl_cpu_has_avx512(). Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_finish;

#define SL_GEMM_PANEL 32 /* columns */

struct sl_gemm {
        const float *a; /* rows x depth */
        const float *b; /* packed */
        float *c;       /* rows x columns */
        int64_t rows, depth, columns;
        int64_t a_stride, c_stride; /* from row to row, in floats */
        int64_t panel_stride;       /* from panel to panel, in floats; 0: they follow each other */
        const float *bias;          /* columns, or NULL */
        const float *residual;      /* as c, with a stride of its own, or NULL; need not lie apart from c */
        int64_t residual_stride;
        const float *next; /* packed too: what the next product reads, to be fetched ahead; NULL: b again */
        bool streams;      /* b comes from beyond the second-level cache: what follows is fetched ahead; a large b always is */
        const struct sl_finish *finish; /* NULL: none */
};

/* Floats of a packed depth x columns matrix. */
int64_t sl_gemm_packed_floats(int64_t depth, int64_t columns);

/* Packs a matrix (in depth and columns, as said above) whose element (k, n) lies at b[k * depth_stride + n * column_stride]. */
void sl_gemm_pack(const float *b, int64_t depth, int64_t columns, int64_t depth_stride, int64_t column_stride, float *ret_packed);

void sl_gemm_run(const struct sl_gemm *gemm);
