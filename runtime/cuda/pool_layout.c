/* SPDX-License-Identifier: Apache-2.0 */
#include "pool_layout.h"

#include "base/bytes.h"

#include <errno.h>

/* So many slots, and multiples of it, are whole pages: pages are a power of two, of which a slot has some already. */
static uint64_t slots_of_whole_pages(uint64_t slot_bytes, uint64_t page_bytes)
{
        uint64_t lowest = slot_bytes & -slot_bytes;

        return lowest >= page_bytes ? 1 : page_bytes / lowest;
}

/* What that many slots take in whole pages. False: more than can be said, or more than @bytes_max. */
static bool lay_out(const uint64_t *slot_bytes, uint32_t n_inputs, uint64_t n_slots, uint64_t page_bytes, uint64_t bytes_max,
        struct sl_pool_layout *layout)
{
        layout->total_bytes = 0;
        layout->n_slots = (uint32_t)n_slots;
        for (uint32_t i = 0; i < n_inputs; i++) {
                if (sl_mul_overflows(slot_bytes[i], n_slots, &layout->bytes[i]) || layout->bytes[i] > bytes_max)
                        return false;
                layout->bytes[i] = sl_align_up(layout->bytes[i], page_bytes);
                if (!sl_range_inside(layout->total_bytes, layout->bytes[i], bytes_max))
                        return false;
                layout->total_bytes += layout->bytes[i];
        }
        return n_slots <= UINT32_MAX;
}

#define MIRROR_TIMES_MAX 16

int sl_pool_layout(const uint64_t *slot_bytes, uint32_t n_inputs, uint32_t wanted, uint64_t page_bytes, uint64_t bytes_max,
        struct sl_pool_layout *ret_layout)
{
        struct sl_pool_layout layout = {.mirrored = true};
        uint64_t step = 1;

        if (!wanted || !n_inputs || n_inputs > SL_POOL_INPUTS_MAX || !sl_is_power_of_two(page_bytes) || bytes_max > UINT64_MAX / 2)
                return -EINVAL;
        for (uint32_t i = 0; i < n_inputs; i++) {
                uint64_t slots = slot_bytes[i] ? slots_of_whole_pages(slot_bytes[i], page_bytes) : 0;

                if (!slots)
                        return -EINVAL;
                step = slots > step ? slots : step; /* powers of two, all of them */
        }
        if (sl_align_up(wanted, step) / wanted > MIRROR_TIMES_MAX ||
                !lay_out(slot_bytes, n_inputs, sl_align_up(wanted, step), page_bytes, bytes_max, &layout)) {
                layout.mirrored = false;
                if (!lay_out(slot_bytes, n_inputs, wanted, page_bytes, bytes_max, &layout))
                        return -E2BIG;
        }
        *ret_layout = layout;
        return 0;
}
