/* SPDX-License-Identifier: Apache-2.0 */
#include "inline_run.h"

#include "bundle.h"
#include "handout.h"
#include "model.h"

/* What the first segment that waits for the dispatcher itself is expected to take; UINT64_MAX: there is none, or it has a job. */
static uint64_t inline_ns(const struct sl_handout *handout)
{
        if (!sl_handout_is_inline(handout) || sl_executor_jobs(handout->model->inliner))
                return UINT64_MAX;
        return sl_service_time_ns(&handout->model->service_time, sl_task_queue_at(handout->queue, 0)->samples);
}

static struct sl_model *shortest_inline(const struct sl_schedule *schedule, uint32_t priority, uint64_t *ret_ns)
{
        struct sl_model *shortest = NULL;

        *ret_ns = UINT64_MAX;
        for (struct sl_model *model = schedule->models; model; model = model->next_busy) {
                struct sl_handout handout = sl_handout_of(schedule, model, priority);
                uint64_t ns = inline_ns(&handout);

                if (ns < *ret_ns) {
                        *ret_ns = ns;
                        shortest = model;
                }
        }
        return shortest;
}

/* Whole tasks that are gathered for the dispatcher itself: as many samples as fit its limit. */
static uint32_t inline_samples(const struct sl_handout *handout)
{
        const struct sl_model *model = handout->model;
        uint32_t most = sl_service_time_samples(
                         &model->service_time, handout->schedule->budget->limit_ns, model->inliner->batch_max),
                 samples = sl_task_queue_at(handout->queue, 0)->samples;

        for (uint32_t i = 1; model->info->batchable && i < sl_handout_waiting(handout); i++) {
                const struct sl_task *task = sl_task_queue_at(handout->queue, i);

                if (!task->is_inline || samples + task->samples > most)
                        break;
                samples += task->samples;
        }
        return samples;
}

static void give_inline(struct sl_handout *handout)
{
        sl_handout_give(handout, handout->model->inliner, inline_samples(handout));
}

/* Of all models of the bundle, as far as the time goes; there is one that it suffices for. */
static void compute_bundle(
        const struct sl_schedule *schedule, struct sl_bundle *bundle, struct sl_carrier *carrier, uint32_t priority)
{
        uint64_t left_ns = schedule->budget->left_ns;
        uint32_t without = UINT32_MAX;

        for (uint32_t i = 0; i < bundle->n_models; i++) {
                struct sl_handout handout = sl_handout_of(schedule, sl_bundle_model(bundle, i), priority);
                uint64_t ns = inline_ns(&handout);

                if (ns == UINT64_MAX)
                        continue;
                if (ns > left_ns || carrier->is_full) {
                        without = i < without ? i : without;
                        continue;
                }
                give_inline(&handout);
                left_ns -= ns;
        }
        sl_carrier_send(carrier, priority, true, schedule->from);
        if (without < UINT32_MAX)
                bundle->turn = (bundle->turn + without) % bundle->n_models;
}

static void compute(const struct sl_schedule *schedule, struct sl_model *model, uint32_t priority)
{
        struct sl_handout handout = sl_handout_of(schedule, model, priority);
        struct sl_inline_budget *budget = schedule->budget;
        uint64_t begun_ns = budget->now_ns, away_ns;

        if (model->inliner->carrier)
                compute_bundle(schedule, model->bundle, model->inliner->carrier, priority);
        else
                give_inline(&handout);
        budget->now_ns = sl_clock_ns();
        away_ns = budget->now_ns - begun_ns;
        budget->left_ns -= away_ns < budget->left_ns ? away_ns : budget->left_ns;
        budget->jobs++;
}

/* There is no time for the next one. What a whole pass would not suffice for is the workers' after all. */
static void end_budget(struct sl_inline_budget *budget)
{
        budget->kept = budget->keeps && budget->left_ns < SL_INLINE_PASS_NS;
        budget->left_ns = 0;
}

/* One job of each model at most: its answers have to be harvested before the next. */
uint32_t sl_inline_run(const struct sl_schedule *schedule, uint32_t priority)
{
        uint32_t jobs = 0;

        while (schedule->budget->left_ns) {
                uint64_t expected_ns;
                struct sl_model *model = shortest_inline(schedule, priority, &expected_ns);

                if (!model)
                        return jobs;
                if (expected_ns > schedule->budget->left_ns) {
                        end_budget(schedule->budget);
                        return jobs;
                }
                compute(schedule, model, priority);
                jobs++;
        }
        return jobs;
}
