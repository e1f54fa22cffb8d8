/* SPDX-License-Identifier: Apache-2.0 */
#include "gather.h"

#include <string.h>

void sl_gathering_init(struct sl_gathering *g, const struct sl_policy_view *view, struct sl_decision *ret_decisions, uint32_t max)
{
        g->view = view;
        g->decisions = ret_decisions;
        g->max = max;
        g->n = g->taken = 0;
        g->samples = view->waiting->samples;
        g->given = 0;
        memcpy(g->starts, view->starts_max, view->n_lets * sizeof(g->starts[0]));
}

uint32_t sl_gathering_count_idle(const struct sl_gathering *g)
{
        uint32_t idle = 0;

        for (uint32_t i = 0; i < g->view->n_workers; i++)
                idle += sl_gathering_is_idle(g, i);
        return idle;
}

uint32_t sl_gathering_give(struct sl_gathering *g, uint32_t worker, uint32_t tasks, uint32_t samples_max)
{
        uint32_t most = g->view->batchable ? tasks : 1, left = sl_gathering_left(g), n = 0, samples = 0;

        for (; n < most && n < SL_POLICY_TASKS_MAX && n < left; n++) {
                uint32_t more = sl_task_queue_at(g->view->waiting, g->taken + n)->samples;

                if (n && samples + more > samples_max)
                        break;
                samples += more;
        }
        sl_gathering_decide(g, worker, n, samples);
        return samples;
}

void sl_gathering_decide(struct sl_gathering *g, uint32_t worker, uint32_t tasks, uint32_t samples)
{
        g->taken += tasks;
        g->starts[g->view->workers[worker].let]--;
        g->given |= 1ull << worker;
        g->samples -= samples;
        g->decisions[g->n++] = (struct sl_decision){.worker = worker, .samples = samples};
}

static bool job_waits(const struct sl_gathering *g, uint32_t samples_max)
{
        uint32_t samples = 0;

        for (uint32_t i = 0; i < sl_gathering_left(g); i++) {
                samples += sl_task_queue_at(g->view->waiting, g->taken + i)->samples;
                if (samples >= samples_max)
                        return true;
        }
        return false;
}

bool sl_gathering_gives_ahead(const struct sl_gathering *g, uint32_t samples_max)
{
        const struct sl_policy_view *view = g->view;

        return view->n_workers == 1 && view->workers[0].jobs + g->n < view->workers[0].jobs_max && !view->more_urgent_waits &&
               sl_gathering_may_start(g, 0) && job_waits(g, samples_max);
}
