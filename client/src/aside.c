/* SPDX-License-Identifier: Apache-2.0 */
#include "aside.h"

#include "base/clock.h"
#include "queue.h"

#include <sched.h>

#define ASIDE_STEP_NS (10 * SL_NS_PER_MS)

/* More CPUs than a cpu_set_t has are nobody's business here: the call fails, and the thread stays where it is. */
static void leave_core(int core)
{
        cpu_set_t own, others;

        if (sched_getaffinity(0, sizeof(own), &own) < 0)
                return;
        others = own;
        CPU_CLR((size_t)core, &others);
        if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof(others), &others) == 0)
                (void)sched_setaffinity(0, sizeof(own), &own);
}

void sl_step_aside(struct starling_queue *queue)
{
        int core = sched_getcpu();
        uint64_t now_ns;

        if (!sl_is_dispatcher_core(queue->dispatcher, core) || sl_cores_crowded(queue->dispatcher))
                return;
        now_ns = sl_clock_ns();
        if (now_ns - queue->aside_ns < ASIDE_STEP_NS)
                return;
        queue->aside_ns = now_ns;
        leave_core(core);
}
