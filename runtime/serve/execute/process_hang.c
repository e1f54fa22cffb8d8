/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's process hangs when it has a job and answers nothing for much longer than it ever took, or does not become ready. The
 * dispatcher says in relaxed words whether it has a job, how many answers have come and what the slowest took; the control thread
 * looks at them now and then and kills. Time counts in looks, so that a machine or a runtime that stood still has not seen its
 * workers hang.
 */
#include "process_state.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "fault.h"
#include "gpu_host.h"
#include "stats.h"

#include <stdio.h>

/* In the time that is allowed at least. */
#define LOOKS       8u
#define STEP_MIN_NS (10 * SL_NS_PER_MS)

/* The slowest answer may take so many times as long once more: another size, other data, crowded cores. */
#define TIMES_SLOWEST SL_PROCESS_START_HANGS

void sl_process_note_busy(struct sl_process *p)
{
        bool busy = p->common.n_given > 0;

        if (atomic_load_explicit(&p->busy, memory_order_relaxed) != busy)
                atomic_store_explicit(&p->busy, busy, memory_order_relaxed);
}

void sl_process_note_answer(struct sl_process *p, uint32_t slot, uint64_t now_ns)
{
        uint64_t given_ns = p->given_ns[slot];
        uint64_t took_ns = now_ns - (p->answered_ns > given_ns ? p->answered_ns : given_ns);

        p->answered_ns = now_ns;
        if (took_ns > atomic_load_explicit(&p->slowest_ns, memory_order_relaxed))
                atomic_store_explicit(&p->slowest_ns, took_ns, memory_order_relaxed);
}

static bool is_starting(const struct sl_process *p)
{
        return sl_executor_started(&p->common) == SL_EXECUTOR_STARTING;
}

static uint64_t bound_ns(const struct sl_process *p, uint64_t hang_ns)
{
        uint64_t slowest_ns = is_starting(p) ? hang_ns : atomic_load_explicit(&p->slowest_ns, memory_order_relaxed);

        return slowest_ns > hang_ns / TIMES_SLOWEST ? slowest_ns * TIMES_SLOWEST : hang_ns;
}

/* The other workers of its process end with it. */
static void explain_to_others(const struct sl_process *p, const char *what, double seconds)
{
        char why[SL_FAULT_BYTES], model[SL_FAULT_NAME_BYTES];

        snprintf(why, sizeof(why), "its process was killed, as a worker of \"%s\" in it %s for %.1f s (hang_ms)",
                sl_utf8_fit(p->common.stats->model, model, sizeof(model)), what, seconds);
        sl_gpu_host_explain(p->host, why);
}

static void kill_hanging(struct sl_process *p, uint64_t since_ns)
{
        const char *what = is_starting(p) ? "was not ready" : "answered nothing";
        double seconds = (double)since_ns / SL_NS_PER_SECOND;

        /* Killed, it is about to be reaped; where it waits in a driver it is not, and nobody waits for it who has no job there. */
        if (p->ended[0] && p->host && is_starting(p))
                sl_process_leave_behind(p);
        if (p->ended[0])
                return;
        snprintf(p->ended, sizeof(p->ended), "its process was killed, as it %s for %.1f s (hang_ms)", what, seconds);
        if (p->host)
                explain_to_others(p, what, seconds);
        sl_process_kill(p);
}

uint64_t sl_process_executor_look(struct sl_executor *executor, uint64_t hang_ns, uint64_t now_ns)
{
        struct sl_process *p = sl_process_of(executor);
        uint64_t step_ns = hang_ns / LOOKS > STEP_MIN_NS ? hang_ns / LOOKS : STEP_MIN_NS;
        uint32_t taken = atomic_load_explicit(&p->taken, memory_order_relaxed);
        bool busy = is_starting(p) || atomic_load_explicit(&p->busy, memory_order_relaxed);

        if (now_ns < p->looked_ns + step_ns)
                return p->looked_ns + step_ns;
        p->looks = busy && taken == p->seen ? p->looks + 1 : 0;
        p->seen = taken;
        p->looked_ns = now_ns;
        if (p->looks && (p->looks - 1) * step_ns >= bound_ns(p, hang_ns))
                kill_hanging(p, (p->looks - 1) * step_ns);
        return now_ns + step_ns;
}
