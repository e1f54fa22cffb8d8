/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums down the columns of many rows, as of the pixels of a CHANNELS_LAST page. A few rows are added in pairs, what they make in
 * pairs again, so that the rounding error grows with the logarithm of the rows. A fixed order: the same bits on any processor and
 * in every run. Pure; any thread.
 *
 * Sources: as rows.h.
 */
#pragma once

#include <stdint.h>

/* What is added up. */
enum sl_column_kind { SL_COLUMN_VALUES, SL_COLUMN_MAGNITUDES, SL_COLUMN_SQUARES };

/* Rows in @lines of @length each, of which the next is @row floats further; the next line begins @line floats further. */
struct sl_columns {
        int64_t lines, length, line, row;
        int64_t width; /* columns */
};

/* @y: width sums; zeros when there are no rows. */
void sl_column_sums(const struct sl_columns *columns, enum sl_column_kind kind, const float *x, float *y);
