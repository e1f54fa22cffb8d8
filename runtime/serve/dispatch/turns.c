/* SPDX-License-Identifier: Apache-2.0 */
#include "turns.h"

bool sl_turns_allow(const struct sl_turns *turns, uint32_t priority)
{
        uint32_t running = 0;
        bool urgent = false;

        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                urgent |= i < priority && (turns->running[i] || turns->waiting[i]);
                running += turns->running[i];
        }
        return !urgent || running < turns->cores;
}
