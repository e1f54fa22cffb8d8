/* SPDX-License-Identifier: Apache-2.0 */
#include "pace.h"

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static void grant(struct sl_pace *pace)
{
        pace->left = least(pace->budget, pace->grain);
        pace->budget -= pace->left;
}

void sl_pace_start(struct sl_pace *pace, const struct sl_stop *stop, uint64_t budget)
{
        *pace = (struct sl_pace){.stop = *stop, .grain = SL_PACE_GRAIN, .budget = budget};
        grant(pace);
}

bool sl_pace_look(struct sl_pace *pace, uint64_t steps)
{
        uint64_t beyond = steps - least(steps, pace->left);

        pace->left = 0;
        if (!pace->status)
                pace->status = beyond > pace->budget ? -E2BIG : sl_stop_look(&pace->stop);
        if (pace->status)
                return false;
        pace->budget -= beyond;
        grant(pace);
        return true;
}
