/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

#include <string.h>

/* How far the decisions have got: tasks that are given, and jobs that may still start on each let. */
struct progress {
        const struct sl_policy_view *view;
        uint32_t taken;
        uint32_t starts[SL_POLICY_WORKERS_MAX];
};

static void progress_init(struct progress *p, const struct sl_policy_view *view)
{
        p->view = view;
        p->taken = 0;
        memcpy(p->starts, view->starts_max, view->n_lets * sizeof(p->starts[0]));
}

static bool may_start(const struct progress *p, uint32_t worker)
{
        return p->starts[p->view->workers[worker].let] > 0;
}

static uint32_t left(const struct progress *p)
{
        return sl_task_queue_length(p->view->waiting) - p->taken;
}

/* Samples up to which tasks are gathered: one batch of this worker, and no longer than a slice. */
static uint32_t gathered_max(const struct sl_policy_view *view, uint32_t worker)
{
        uint32_t batch_max = view->workers[worker].batch_max;

        return batch_max < view->slice_samples ? batch_max : view->slice_samples;
}

/* The first task whatever its size, more as long as all fit together; at most @tasks of them. */
static uint32_t gather(struct progress *p, uint32_t worker, uint32_t tasks)
{
        uint32_t most = p->view->batchable ? tasks : 1, samples = 0;

        for (uint32_t n = 0; n < most && n < SL_POLICY_TASKS_MAX && left(p); n++) {
                uint32_t more = sl_task_queue_at(p->view->waiting, p->taken)->samples;

                if (n && samples + more > gathered_max(p->view, worker))
                        break;
                samples += more;
                p->taken++;
        }
        p->starts[p->view->workers[worker].let]--;
        return samples;
}

/* Enough waits to fill a job of the only worker: what comes later could not have been gathered with it. */
static bool job_waits(const struct progress *p)
{
        uint32_t samples = 0;

        for (uint32_t i = 0; i < left(p); i++) {
                samples += sl_task_queue_at(p->view->waiting, p->taken + i)->samples;
                if (samples >= gathered_max(p->view, 0))
                        return true;
        }
        return false;
}

static bool is_idle(const struct progress *p, uint32_t worker)
{
        return p->view->workers[worker].jobs == 0 && may_start(p, worker);
}

static uint32_t count_idle(const struct progress *p)
{
        uint32_t idle = 0;

        for (uint32_t i = 0; i < p->view->n_workers; i++)
                idle += is_idle(p, i);
        return idle;
}

/*
 * Of several workers each gets work when it is idle: which of them will be idle first is not known before. Nothing is given ahead
 * of what is more urgent and waits for the worker to be idle because it does not fill a job.
 */
static bool gives_ahead(const struct progress *p, uint32_t jobs)
{
        const struct sl_policy_view *view = p->view;

        return view->n_workers == 1 && view->workers[0].jobs + jobs < view->workers[0].jobs_max && !view->more_urgent_waits &&
               may_start(p, 0) && job_waits(p);
}

uint32_t sl_policy_work_conserving(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        struct progress p;
        uint32_t idle, n = 0;

        (void)now_ns;
        progress_init(&p, view);
        idle = count_idle(&p);
        *ret_next_ns = UINT64_MAX;
        for (uint32_t i = 0; i < view->n_workers && n < max && idle && left(&p); i++) {
                if (!is_idle(&p, i))
                        continue;
                ret_decisions[n++] = (struct sl_decision){.worker = i, .samples = gather(&p, i, (left(&p) + idle - 1) / idle)};
                idle--;
        }
        if (n < max && gives_ahead(&p, n))
                ret_decisions[n++] = (struct sl_decision){.worker = 0, .samples = gather(&p, 0, UINT32_MAX)};
        return n;
}
