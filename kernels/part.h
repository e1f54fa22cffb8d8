/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a node, for who computes it together with others. A kernel says into how many units its output can be cut along an
 * axis; a part is some neighbouring units, and parts that do not overlap may be computed at once, each with scratch of its own. All of
 * them together make the bits that the whole launch makes. Pure.
 */
#pragma once

#include <stdint.h>

enum sl_axis {
        SL_AXIS_NONE,
        SL_AXIS_ROWS,    /* what lies one behind the other: samples, scanlines, rows of a product, tiles, heads, elements */
        SL_AXIS_COLUMNS, /* what lies side by side in each row: channels, columns of a product */
        SL_AXIS_COUNT,
};

struct sl_part {
        uint32_t axis; /* enum sl_axis, but NONE */
        int64_t first, end;
};

/* Part @index of @count of so many units; parts differ by one unit at most. */
static inline struct sl_part sl_part_of(uint32_t axis, int64_t units, uint32_t index, uint32_t count)
{
        return (struct sl_part){.axis = axis, .first = units * index / count, .end = units * (index + 1) / count};
}

/* The units along @axis that @part has, of @units; NULL, and a part along another axis, has all of them. */
static inline struct sl_part sl_part_along(const struct sl_part *part, uint32_t axis, int64_t units)
{
        return part && part->axis == axis ? *part : (struct sl_part){.axis = axis, .end = units};
}
