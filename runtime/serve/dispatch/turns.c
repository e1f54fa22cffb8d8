/* SPDX-License-Identifier: Apache-2.0 */
#include "turns.h"

#include "let.h"

uint32_t sl_turns_left(const struct sl_let *let, uint32_t priority, uint64_t run)
{
        uint32_t running = 0;
        bool urgent = false;

        if (!sl_let_is_shared(let))
                return UINT32_MAX;
        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                urgent |= i < priority && (let->running[i] || let->waiting[i] == run);
                running += let->running[i];
        }
        if (!urgent)
                return UINT32_MAX;
        return running < let->at_once ? let->at_once - running : 0;
}

void sl_turns_wait(struct sl_let *let, uint32_t priority, uint64_t run)
{
        let->waiting[priority] = run;
}
