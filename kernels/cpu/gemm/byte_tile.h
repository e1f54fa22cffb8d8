/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of products of bytes, exact on any processor: both sides are widened to 16 bits, of which PMADDWD multiplies two and two and
 * adds them up in 32 (PMADDUBSW, which multiplies bytes, saturates at 16). A tile is a few rows by a panel of columns. Weights stay
 * bytes in memory; rows are 16 bits wide already, with their zero point taken off, in a frame as im2col_gemm.h has it: a row is
 * scanlines of taps, each of which is a piece of elements that follow each other.
 *
 * A panel of a product is [scanline][tap][pair of elements][column][2], where an odd piece ends with a zero; one of channels, of
 * which each is multiplied by its own weights, is [scanline][tap][column]. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_BYTE_PANEL 16 /* columns */
#define SL_BYTE_ROWS  6  /* of a tile, at most */

/* Elements behind the last row that a tile may read and that change nothing. */
#define SL_BYTE_SLACK SL_BYTE_PANEL

struct sl_byte_depth {
        int64_t scanlines, scanline_stride, taps, tap_stride; /* in elements */
        int64_t piece;                                        /* elements; of channels: 1 */
        bool channels;                                        /* column c sees element c of each tap */
};

/* Bytes of a packed panel. */
int64_t sl_byte_panel_bytes(const struct sl_byte_depth *depth);

/* to[i] = from[i] - zero, of int8 or uint8 (enum sl_dtype). */
void sl_byte_widen(int64_t n, int16_t *to, const void *from, uint32_t dtype, int32_t zero);

/*
 * The sums of rows[i] + offset, for @n_rows of them, by a panel: SL_BYTE_PANEL at sums[i * sums_stride] each. Nobody looks at an
 * overflow: whoever calls knows how large the sums can be.
 */
void sl_byte_tile(const struct sl_byte_depth *depth, const int16_t *const *rows, int64_t n_rows, int64_t offset,
        const int8_t *panel, int32_t *sums, int64_t sums_stride);
