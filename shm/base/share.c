/* SPDX-License-Identifier: Apache-2.0 */
#include "share.h"

#include "clock.h"

#define MINUTE_NS (60 * SL_NS_PER_SECOND)

bool sl_share_grants(uint32_t total, uint32_t taken, uint32_t held)
{
        uint32_t free = taken < total ? total - taken : 0, reserve = total / 8;

        if (held == 0)
                return free > 0;
        return free > reserve && held < (uint64_t)SL_SHARE_OF_FREE * (free - reserve);
}

uint64_t sl_share_each(uint64_t total, uint32_t users)
{
        uint64_t each = users ? total / users : total;

        return each ? each : 1;
}

bool sl_share_rate(uint64_t *due_ns, uint32_t per_minute, uint64_t now_ns)
{
        uint64_t interval = MINUTE_NS / per_minute, due = *due_ns > now_ns ? *due_ns : now_ns;

        if (due - now_ns > MINUTE_NS - interval)
                return false;
        *due_ns = due + interval;
        return true;
}

void sl_share_rate_back(uint64_t *due_ns, uint32_t per_minute)
{
        *due_ns -= MINUTE_NS / per_minute;
}
