/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows by a matrix of 4 bits an element (shape/nibbles.h), which stays as it lies: elements are widened in registers, or for many
 * rows in a piece of the L1 cache.
 *
 * The packed form is panels of 32 columns, [panel][group][column] of 32 bits: the eight elements of a group in the order 0, 4, 1,
 * 5, 2, 6, 3, 7 from the lowest bits on, so that one mask gives bytes 0 to 3 and a shift 4 to 7. Scales lie as
 * [panel][block][column], zero points as bytes likewise.
 *
 * A row never depends on the others: a block is summed from 0 on in the order of depth, its sum times its scale is added to the
 * result, block by block. By bytes, sums of a block are exact. Pure; any thread.
 */
#pragma once

#include "cpu/base/isa.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_NIBBLE_PANEL     32  /* columns */
#define SL_NIBBLE_CHUNK     128 /* of depth, widened at once; a multiple of a group */
#define SL_NIBBLE_ROWS      84  /* by one widened chunk */
#define SL_NIBBLE_CONSTANTS 8   /* the zero point where none is given */

/* Floats of the room that rows of floats take. */
static inline int64_t sl_nibble_room(int64_t rows, int64_t groups)
{
        int64_t together = rows < SL_NIBBLE_ROWS ? rows : SL_NIBBLE_ROWS;
        int64_t chunks = (groups * 8 + SL_NIBBLE_CHUNK - 1) / SL_NIBBLE_CHUNK;

        return rows > 1 ? (SL_NIBBLE_CHUNK + 2 * SL_NIBBLE_ROWS) * SL_NIBBLE_PANEL + together * chunks * SL_NIBBLE_CHUNK : 0;
}

struct sl_nibble_rows {
        const float *a; /* rows of groups * 8 floats at least, a_stride apart */
        int64_t a_stride;
        const int8_t *bytes; /* the same as bytes, groups * 8 apart, with a scale and a sum of each block */
        const float *row_scales;
        const int32_t *row_sums;
        const uint32_t *b;
        const float *scales;
        const uint8_t *zeros; /* NULL: all are 8 */
        float *c;
        int64_t c_stride, rows, columns;
        int64_t groups, block_groups, blocks; /* the last block may have fewer groups */
        float *room;                          /* sl_nibble_room() */
};

/* Rows of floats. */
SL_TILES(void, sl_nibble_floats, (const struct sl_nibble_rows *rows), (rows))

/* Rows of bytes: without VNNI, and with it (sl_cpu_has_vnni()). */
SL_TILES(void, sl_nibble_bytes, (const struct sl_nibble_rows *rows), (rows))
void sl_nibble_dot(const struct sl_nibble_rows *rows);

/* One row of @depth floats as bytes, zeros behind them: a scale and a sum of each block of @block. */
SL_TILES(void, sl_nibble_quantize,
        (const float *a, int64_t depth, int64_t room, int64_t block, int8_t *ret_bytes, float *ret_scales, int32_t *ret_sums),
        (a, depth, room, block, ret_bytes, ret_scales, ret_sums))
