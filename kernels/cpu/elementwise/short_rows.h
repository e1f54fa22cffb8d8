/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a walk that are too short for a call each. Where they lie one behind the other in the result, several are taken at once:
 * operands that do not lie so are laid out beside, in pieces of whole rows.
 */
#pragma once

#include "cpu/base/walk.h"

#define SL_SHORT_ROW   128 /* elements, at most */
#define SL_PIECE_BYTES 8192

struct sl_short_rows {
        const struct sl_walk *walk;
        uint32_t tensor;
        int64_t bytes; /* of an element, at most 8 */

        /* Of the last piece; set by sl_short_rows_lay(). */
        const void *data;
        int64_t step; /* in elements: 1, or 0 where all of them are one */
        _Alignas(64) char room[SL_PIECE_BYTES];
};

bool sl_rows_are_short(const struct sl_walk *walk);

/* How many rows a piece has at most. */
int64_t sl_short_rows_of_piece(const struct sl_walk *walk);

/*
 * The rows from @first to @first + @n of the tensor whose row 0 is at @rows. Pieces are asked for in order, each but the last of
 * them as long as can be.
 */
void sl_short_rows_lay(struct sl_short_rows *short_rows, const char *rows, int64_t first, int64_t n);
