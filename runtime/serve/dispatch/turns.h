/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns of models whose workers share cores: as long as something more urgent computes or waits, no more jobs run than there are
 * cores, so that it shares a core with nobody for longer than the jobs last that run already. Among equals the operating system
 * divides the cores by time. Models whose workers have cores of their own take no part. Dispatcher only.
 */
#pragma once

#include "layout.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_turns {
        uint32_t cores;                  /* that the workers share */
        uint32_t running[SL_PRIORITIES]; /* jobs given and not answered */
        bool waiting[SL_PRIORITIES];     /* segments that found no idle worker */
};

/* How many more jobs of class @priority may start. Pure. */
uint32_t sl_turns_left(const struct sl_turns *turns, uint32_t priority);
