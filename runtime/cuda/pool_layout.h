/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many slots a pool has, and what memory they take. A mirror starts where a page of the device ends, so that all slots together
 * have to be whole pages: where samples are of odd sizes that takes many slots, and where it takes too much memory, or more than
 * 16 times as many slots as are wanted, there is no mirror: each has an event of the device. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_POOL_INPUTS_MAX 64

struct sl_pool_layout {
        uint32_t n_slots;
        bool mirrored;
        uint64_t bytes[SL_POOL_INPUTS_MAX]; /* of each input, whole pages; mapped once more with a mirror */
        uint64_t total_bytes;
};

/*
 * @wanted slots or more, of @slot_bytes for each of @n_inputs; @page_bytes is a power of two. Return: 0; -E2BIG that many slots
 * take more than @bytes_max; -EINVAL something is 0, or too many inputs.
 */
int sl_pool_layout(const uint64_t *slot_bytes, uint32_t n_inputs, uint32_t wanted, uint64_t page_bytes, uint64_t bytes_max,
        struct sl_pool_layout *ret_layout);
