/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of products of bytes by VPDPBUSD, four and four into 32 bits: a few rows of uint8 by a panel of columns of int8, summed and
 * brought to what is stored in the registers of AVX-512. A row is scanlines of taps, each of which is a piece of bytes that follow
 * each other, read four at a time: up to three behind a piece, which weights of zero meet.
 *
 * A panel is the sums of its columns' weights [column], then [scanline][tap][four bytes][column][4], with zeros behind a piece that
 * is no whole chunks. Pure; any thread; the
 * processor has VNNI (sl_cpu_has_vnni()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_DOT_PANEL 32 /* columns */
#define SL_DOT_ROWS  14 /* of a tile, at most */
#define SL_DOT_CHUNK 16 /* steps that AMX reads at once, at most: 64 bytes */
#define SL_DOT_SLACK 64 /* bytes behind the last row that a tile may read */

struct sl_dot_depth {
        int64_t scanlines, scanline_stride, taps, tap_stride; /* in bytes */
        int64_t steps;                                        /* of four bytes, in a piece */
        int64_t chunk, room; /* steps that are read at once (amx_panel.h), and that a piece has in a panel: whole chunks */
};

static inline int64_t sl_dot_panel_bytes(const struct sl_dot_depth *d)
{
        return SL_DOT_PANEL * (4 + d->scanlines * d->taps * d->room * 4);
}

/* What becomes of the sums: themselves, bytes or float32; the latter may have an addend of the same kind. */
enum sl_dot_kind { SL_DOT_SUMS, SL_DOT_BYTES, SL_DOT_REALS };

struct sl_dot_result {
        enum sl_dot_kind kind;
        bool has_addend;
        uint8_t low, high, sign; /* bytes as uint8, in the end all of them with a bit turned: 0x80 for int8 */
        uint8_t addend_sign;
        int16_t zero;                        /* of the uint8 */
        bool saturates;                      /* all of that is what saturation to uint8 does */
        float addend_scale, addend_constant; /* in steps of the result */
        float least, most;                   /* of reals */
        bool hard_swish;                     /* of the sums times their factors; without an addend */
        float unit;                          /* bytes of that: times this */
};

/* A panel's columns: what their sums begin with, and the factor of each. */
struct sl_dot_columns {
        int32_t starts[SL_DOT_PANEL];
        float factors[SL_DOT_PANEL];
};

struct sl_dot_tile {
        const uint8_t *const *rows; /* where each begins */
        int64_t n_rows;
        int64_t offset;             /* of the group's channels in a row */
        const int8_t *panel;
        const struct sl_dot_columns *columns;
        int64_t n_columns;
        void *y; /* at the first of the panel's columns */
        const void *addend;
        int64_t y_stride; /* from row to row, of the addend as well, in elements */
};

void sl_dot_tile(const struct sl_dot_depth *depth, const struct sl_dot_result *result, const struct sl_dot_tile *tile);

/* Real numbers, SL_DOT_PANEL from row to row, times @factor to the bytes of the result: so many rows and columns of them. */
void sl_dot_round(const struct sl_dot_result *result, float factor, const float *reals, int64_t rows, int64_t columns, uint8_t *y,
        int64_t y_stride);
