/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of products of bytes by TDPBUSD of AMX: sixteen rows of uint8 by sixteen columns of int8, up to 64 bytes deep, in one
 * instruction, into a tile of sums. Two tiles of rows meet the two halves of a panel (dot_tile.h); what two tiles have come to is
 * stored while the next two are multiplied. Rows of a tile lie at one distance from each other. Pieces are read in chunks of one
 * length: what a chunk has too many, weights of zero meet.
 *
 * Tiles are state of the thread: who begins with them ends with them before it returns, so that a thread that does not compute is
 * switched, and clocked, as any other. The processor has AMX (sl_cpu_has_amx()).
 */
#pragma once

#include "cpu/gemm/dot_tile.h"

#define SL_AMX_ROWS 16 /* of a tile, at most */

/* Rows of the tiles that cover so many rows at one distance: of one height, the last begins where it must. */
static inline int64_t sl_amx_tiles(int64_t rows)
{
        return (rows + SL_AMX_ROWS - 1) / SL_AMX_ROWS;
}

static inline int64_t sl_amx_height(int64_t rows)
{
        return (rows + sl_amx_tiles(rows) - 1) / sl_amx_tiles(rows);
}

/* The rows of a tile: where the first begins, and which it is of the result. */
struct sl_amx_rows {
        const uint8_t *first;
        int64_t row;
};

struct sl_amx_panel {
        const struct sl_amx_rows *tiles;
        int64_t n_tiles, height; /* rows of each */
        int64_t row_stride;      /* bytes from one to the next */
        int64_t offset;          /* of the group's channels in a row */
        const int8_t *panel;
        const struct sl_dot_columns *columns;
        int64_t n_columns;
        void *y; /* row 0, at the first of the panel's columns */
        const void *addend;
        int64_t y_stride; /* from row to row, of the addend as well, in elements */
        bool fetches;     /* the next panel is brought to the L2 cache meanwhile */
};

/* From here on this thread's tiles have so many rows, and are as deep as the chunks of a piece. */
void sl_amx_begin(const struct sl_dot_depth *depth, int64_t height);

void sl_amx_panel(const struct sl_dot_depth *depth, const struct sl_dot_result *result, const struct sl_amx_panel *panel);

void sl_amx_end(void);
