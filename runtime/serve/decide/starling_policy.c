/* SPDX-License-Identifier: Apache-2.0 */
#include "starling_policy.h"

#include "gather.h"

/* How much longer a job takes when @busy compute at once. */
static double slow_down(const struct sl_policy_view *view, uint32_t busy)
{
        return view->at_once && busy > view->at_once ? (double)busy / view->at_once : 1;
}

static double expected_ns(const struct sl_policy_view *view, uint32_t samples)
{
        return (double)sl_service_time_ns(view->service_time, samples);
}

/* Twice the mean time until what waits is done, in batches of @size. */
static double mean_ns(const struct sl_policy_view *view, uint64_t samples, uint32_t size, uint32_t idle, uint32_t busy)
{
        uint64_t batches = (samples + size - 1) / size;
        uint32_t workers = batches < idle ? (uint32_t)batches : idle;
        double rounds = (double)samples / ((double)workers * size);

        return expected_ns(view, size) * slow_down(view, busy + workers) * ((rounds > 1 ? rounds : 1) + 1);
}

uint32_t sl_starling_size(const struct sl_policy_view *view, uint64_t samples, uint32_t most, uint32_t idle, uint32_t busy)
{
        uint32_t best = 1;
        double best_ns = mean_ns(view, samples, 1, idle, busy);

        for (uint32_t size = 2; size <= most && size <= samples; size *= 2) {
                double ns = mean_ns(view, samples, size, idle, busy);

                if (!sl_service_time_knows(view->service_time, size))
                        return size;
                if (ns >= best_ns)
                        continue;
                best_ns = ns;
                best = size;
        }
        return best;
}

/* How many of the oldest tasks, at most @size samples, make a batch in which none misses a deadline that it would keep in a smaller
 * one. */
static uint32_t tasks_in_time(const struct sl_gathering *g, uint64_t now_ns, uint32_t size, uint32_t *ret_samples)
{
        uint32_t n = 0, left = sl_gathering_left(g), most = size < SL_POLICY_TASKS_MAX ? size : SL_POLICY_TASKS_MAX;
        uint64_t earliest_ns = UINT64_MAX;

        for (*ret_samples = 0; n < left && n < most; n++) {
                const struct sl_task *task = sl_task_queue_at(g->view->waiting, g->taken + n);
                uint32_t samples = *ret_samples + task->samples;

                if (n && samples > size)
                        break;
                if (task->deadline_ns || earliest_ns != UINT64_MAX) {
                        uint64_t end_ns = now_ns + sl_service_time_ns(g->view->service_time, samples);

                        if (n && end_ns > earliest_ns)
                                break;
                        if (task->deadline_ns && task->deadline_ns >= end_ns && task->deadline_ns < earliest_ns)
                                earliest_ns = task->deadline_ns;
                }
                *ret_samples = samples;
        }
        return n;
}

static uint32_t most_samples(const struct sl_gathering *g)
{
        uint32_t most = 1;

        for (uint32_t i = 0; i < g->view->n_workers; i++)
                if (sl_gathering_samples_max(g, i) > most)
                        most = sl_gathering_samples_max(g, i);
        return most;
}

static uint32_t count_busy(const struct sl_policy_view *view)
{
        uint32_t busy = 0;

        for (uint32_t i = 0; i < view->n_workers; i++)
                busy += view->workers[i].jobs > 0;
        return busy;
}

static void give(struct sl_gathering *g, uint64_t now_ns, uint32_t worker, uint32_t size)
{
        uint32_t most = sl_gathering_samples_max(g, worker), tasks, samples;

        size = size < most ? size : most;
        if (size == 1 || !g->view->batchable) {
                sl_gathering_give(g, worker, 1, size);
                return;
        }
        tasks = tasks_in_time(g, now_ns, size, &samples);
        sl_gathering_decide(g, worker, tasks, samples);
}

uint32_t sl_policy_starling(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        struct sl_gathering g;
        uint32_t idle, size, busy = count_busy(view);

        sl_gathering_init(&g, view, ret_decisions, max);
        *ret_next_ns = UINT64_MAX;
        idle = sl_gathering_count_idle(&g);
        size = sl_starling_size(view, g.samples, most_samples(&g), idle ? idle : 1, busy);
        for (uint32_t i = 0; i < view->n_workers && sl_gathering_left(&g); i++)
                if (sl_gathering_is_idle(&g, i))
                        give(&g, now_ns, i, size);
        if (sl_gathering_gives_ahead(&g, size))
                give(&g, now_ns, 0, size);
        return g.n;
}
