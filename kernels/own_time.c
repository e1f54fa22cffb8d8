/* SPDX-License-Identifier: Apache-2.0 */
#include "own_time.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

uint64_t sl_own_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * SL_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

int sl_own_time_look(struct sl_own_time *own, uint64_t now_ns)
{
        uint64_t now_own_ns = sl_own_ns(), computed_ns = own->begun_ns ? now_own_ns - own->begun_ns : 0;

        if (own->begun_ns && computed_ns >= own->bound_ns)
                return -EAGAIN;
        if (!own->begun_ns)
                own->begun_ns = now_own_ns;
        own->look_ns = now_ns + own->bound_ns - computed_ns;
        return 0;
}
