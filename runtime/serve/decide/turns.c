/* SPDX-License-Identifier: Apache-2.0 */
#include "turns.h"

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
        if (!urgent)
                return UINT32_MAX;
        return running < turns->at_once ? turns->at_once - running : 0;
}

void sl_turns_wait(struct sl_turns *turns, uint32_t priority, uint64_t run)
{
        turns->waiting[priority] = run;
}
