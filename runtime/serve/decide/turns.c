/* SPDX-License-Identifier: Apache-2.0 */
#include "turns.h"

static uint32_t less(uint32_t a, uint32_t b)
{
        return a > b ? a - b : 0;
}

uint32_t sl_turns_left(const struct sl_turns *turns, uint32_t priority, uint64_t run)
{
        uint32_t running = 0;
        bool urgent = false;

        if (!sl_turns_are_shared(turns))
                return UINT32_MAX;
        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                urgent |= i < priority && (turns->running[i] || turns->waiting[i] == run);
                running += turns->running[i];
        }
        if (priority == SL_BACKGROUND)
                return less(turns->at_once, urgent + running + turns->running[SL_BACKGROUND]);
        return urgent ? less(turns->at_once, running) : UINT32_MAX;
}

bool sl_turns_are_wanted(const struct sl_turns *turns)
{
        uint32_t urgent = 0;

        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                urgent += turns->running[i];
        return urgent && urgent + turns->running[SL_BACKGROUND] >= turns->at_once;
}

void sl_turns_wait(struct sl_turns *turns, uint32_t priority, uint64_t run)
{
        turns->waiting[priority] = run;
}
