/* SPDX-License-Identifier: Apache-2.0 */
#include "turns.h"

uint32_t sl_turns_left(const struct sl_turns *turns, uint32_t priority)
{
        uint32_t running = 0;
        bool urgent = false;

        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                urgent |= i < priority && (turns->running[i] || turns->waiting[i]);
                running += turns->running[i];
        }
        if (!urgent)
                return UINT32_MAX;
        return running < turns->cores ? turns->cores - running : 0;
}
