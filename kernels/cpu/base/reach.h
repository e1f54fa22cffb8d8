/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where parts touch operands that lie as most do. Each fills @ret_reach and says true, for the ends of functions that say it of a
 * loop. Pure.
 */
#pragma once

#include "part.h"

/* Units of so many bytes lie one behind the other. */
static inline bool sl_reach_rows(const struct sl_part *part, int64_t unit_bytes, struct sl_reach *ret_reach)
{
        *ret_reach = (struct sl_reach){.first = part->first * unit_bytes,
                .bytes = (part->end - part->first) * unit_bytes,
                .runs = part->end > part->first};
        return true;
}

/* Units of so many bytes lie side by side in each of @rows rows, the last of them as far as a row goes. */
static inline bool sl_reach_columns(
        const struct sl_part *part, int64_t unit_bytes, int64_t row_bytes, int64_t rows, struct sl_reach *ret_reach)
{
        int64_t first = part->first * unit_bytes, end = part->end * unit_bytes;

        *ret_reach = (struct sl_reach){
                .first = first, .bytes = (end < row_bytes ? end : row_bytes) - first, .pitch = row_bytes, .runs = rows};
        return true;
}

/* All @bytes of an operand that every part reads. */
static inline bool sl_reach_all(int64_t bytes, struct sl_reach *ret_reach)
{
        *ret_reach = (struct sl_reach){.bytes = bytes, .runs = 1};
        return true;
}
