/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes with four steps per doubling, over any unit: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ... units. At most a
 * quarter of a block is lost to rounding. Pure; any thread.
 */
#pragma once

#include <stdint.h>

#define SL_ARENA_CLASSES 128u /* enough for 2^32 units */

/* Units of a block of class @index. */
static inline uint64_t sl_class_units(uint32_t index)
{
        if (index < 3)
                return index + 1;
        return (uint64_t)(4 + (index - 3) % 4) << ((index - 3) / 4);
}

/* The largest class that is not above @units, which is not 0. */
static inline uint32_t sl_class_floor(uint64_t units)
{
        if (units < 4)
                return (uint32_t)units - 1;

        uint32_t doublings = 61u - (uint32_t)__builtin_clzll(units);

        return 3 + 4 * doublings + (uint32_t)(units >> doublings) - 4;
}

/* The smallest class that is not below @units. */
static inline uint32_t sl_class_ceil(uint64_t units)
{
        uint32_t index = sl_class_floor(units);

        return sl_class_units(index) < units ? index + 1 : index;
}
