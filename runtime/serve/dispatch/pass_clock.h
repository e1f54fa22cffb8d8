/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a pass: read once, by whoever asks first; moved on by what the dispatcher computes itself. Dispatcher only.
 */
#pragma once

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_pass_clock {
        uint64_t now_ns; /* of this pass once somebody has asked, else of an earlier one */
        bool is_read;    /* in this pass */
};

static inline uint64_t sl_pass_now(struct sl_pass_clock *clock)
{
        if (!clock->is_read)
                clock->now_ns = sl_clock_ns();
        clock->is_read = true;
        return clock->now_ns;
}

/* Who asks next is in the next pass. */
static inline void sl_pass_end(struct sl_pass_clock *clock)
{
        clock->is_read = false;
}
