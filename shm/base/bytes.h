/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and alignments that cannot overflow unnoticed. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines of one cache; index words of rings lie two of them apart, for the prefetcher that fetches pairs. */
#define SL_LINE_BYTES      64
#define SL_LINE_PAIR_BYTES 128
#define SL_PAGE_BYTES      4096

static inline bool sl_mul_overflows(uint64_t a, uint64_t b, uint64_t *ret_product)
{
        return __builtin_mul_overflow(a, b, ret_product);
}

static inline bool sl_add_overflows(uint64_t a, uint64_t b, uint64_t *ret_sum)
{
        return __builtin_add_overflow(a, b, ret_sum);
}

/* @alignment is a power of two, @value small enough that the sum fits. */
static inline uint64_t sl_align_up(uint64_t value, uint64_t alignment)
{
        return (value + alignment - 1) & ~(alignment - 1);
}

static inline bool sl_is_power_of_two(uint64_t value)
{
        return value && !(value & (value - 1));
}

/* True when [offset, offset + bytes) lies inside [0, limit), without overflow. */
static inline bool sl_range_inside(uint64_t offset, uint64_t bytes, uint64_t limit)
{
        return bytes <= limit && offset <= limit - bytes;
}
