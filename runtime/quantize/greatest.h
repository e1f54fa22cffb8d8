/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The class that a network says: where the greatest of its outputs is, the first of equal ones. Pure; any thread.
 */
#pragma once

#include <stdint.h>

/* @n at least 1. */
static inline uint64_t sl_greatest(const float *data, uint64_t n)
{
        uint64_t at = 0;

        for (uint64_t i = 1; i < n; i++)
                at = data[i] > data[at] ? i : at;
        return at;
}
