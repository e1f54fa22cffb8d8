/* SPDX-License-Identifier: Apache-2.0 */
#include "conditions.h"

#include "base/clock.h"
#include "dispatcher_state.h"
#include "event.h"
#include "executor.h"
#include "stats.h"

#define DRIFT_NS   (10 * SL_NS_PER_MS)
#define LEVELS_MAX 256u
#define BUSY_LEAST 0.01 /* of the time lately: the level of one that rests is an old one */

/* A state and its changes, where others see them. */
static void note(struct sl_dispatcher *d, struct sl_executor *worker, uint32_t changes)
{
        struct sl_worker_stats *stats = worker->stats;

        d->is_overloaded |= (changes & 1u << SL_CONDITION_CHANGE_PEAK) != 0;
        d->is_slowed |= worker->condition.condition == SL_CONDITION_INTERFERED && changes;
        if (!stats)
                return;
        if (sl_counter_read(&stats->condition) != worker->condition.condition)
                sl_counter_set(&stats->condition, worker->condition.condition);
        if (changes & 1u << SL_CONDITION_CHANGE_PEAK)
                sl_counter_add(&stats->peaks, 1);
        if (changes & 1u << SL_CONDITION_CHANGE_BELOW_PEAK)
                sl_counter_add(&stats->peak_ends, 1);
        if (changes & 1u << SL_CONDITION_CHANGE_SLOWED)
                sl_counter_add(&stats->slowdowns, 1);
        if (changes & 1u << SL_CONDITION_CHANGE_RECOVERED)
                sl_counter_add(&stats->recoveries, 1);
}

static bool waits(const struct sl_model *model, const struct sl_executor *worker)
{
        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                if (sl_task_queue_length(&model->scheduler.queues[i]))
                        return true;
        return sl_executor_jobs(worker) - worker->n_background > 1;
}

static void begin(struct sl_executor *worker)
{
        if (worker->condition.condition == SL_CONDITION_INACTIVE)
                sl_condition_begin(&worker->condition);
}

void sl_conditions_learn(
        struct sl_dispatcher *d, struct sl_model *model, struct sl_executor *worker, const struct sl_prediction *prediction)
{
        struct sl_worker_condition *condition = &worker->condition;
        struct sl_job_end end;
        double ratio = 0;

        if (!model->is_watched || worker->class->is_immediate || !prediction->started_ns || !prediction->busy_ns)
                return;
        begin(worker);
        end = (struct sl_job_end){.end_ns = prediction->started_ns + prediction->busy_ns,
                .busy_ns = prediction->busy_ns,
                .waits = waits(model, worker),
                .has_ratio = sl_pace_ratio(&model->pace, prediction->job_samples, prediction->busy_ns, d->drift,
                        !condition->interference.slowed, &ratio)};
        if (end.has_ratio) {
                condition->level = sl_pace_level(condition->level, ratio);
                end.log_ratio = ratio - d->drift;
        }
        note(d, worker, sl_condition_job_ended(condition, &end));
}

/* Those of carriers compute for several models at a time. */
static void watch(struct sl_ensemble *ensemble)
{
        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++)
                ensemble->members[m]->is_watched = !ensemble->members[m]->bundle;
}

static void rest(struct sl_dispatcher *d, const struct sl_model *model, uint64_t now_ns)
{
        for (uint32_t i = 0; i < model->workers.n; i++) {
                struct sl_executor *worker = model->workers.list[i];

                begin(worker);
                if (!sl_executor_jobs(worker))
                        note(d, worker, sl_condition_rests(&worker->condition, now_ns));
        }
}

static uint32_t add_levels(const struct sl_model *model, double *levels, uint32_t n)
{
        for (uint32_t i = 0; i < model->workers.n && n < LEVELS_MAX; i++)
                if (model->workers.list[i]->condition.busy >= BUSY_LEAST)
                        levels[n++] = model->workers.list[i]->condition.level;
        return n;
}

/* Models once, however many names have them. */
static void look_at_drift(struct sl_dispatcher *d, uint64_t now_ns)
{
        double levels[LEVELS_MAX];
        uint32_t n = 0;

        d->drift_ns = now_ns;
        for (const struct sl_model *model = d->models; model; model = model->next)
                if (model->is_watched)
                        n = add_levels(model, levels, n);
        d->drift = sl_pace_drift(levels, n);
}

void sl_conditions_look(struct sl_dispatcher *d, bool sleeps)
{
        uint64_t now_ns;

        if (!d->n_watched)
                return;
        now_ns = sl_clock_ns();
        for (uint32_t i = 0; i < d->n_watched; i++)
                if (d->served[d->watched[i].index])
                        watch(d->served[d->watched[i].index]);
        for (const struct sl_model *model = d->models; model; model = model->next)
                if (model->is_watched)
                        rest(d, model, now_ns + (sleeps ? SL_CONDITION_LATELY_NS : 0));
        if (now_ns - d->drift_ns >= DRIFT_NS)
                look_at_drift(d, now_ns);
        if (d->is_overloaded && sl_event_worker_fits(d)) {
                d->is_overloaded = false;
                sl_event_send(d, SL_EVENT_OVERLOADED, NULL, 0, NULL);
        }
        if (d->is_slowed && sl_event_worker_fits(d)) { /* it leaves others their room, as those do */
                d->is_slowed = false;
                sl_event_send(d, SL_EVENT_SLOWED, NULL, 0, NULL);
        }
}

static enum sl_condition condition_of(const struct sl_model *model)
{
        uint32_t workers[SL_CONDITION_COUNT] = {0};

        for (uint32_t i = 0; i < model->workers.n; i++)
                workers[model->workers.list[i]->condition.condition]++;
        return model->is_watched ? sl_condition_of(workers) : SL_CONDITION_INACTIVE;
}

enum sl_condition sl_conditions_of(const struct sl_ensemble *ensemble)
{
        static const uint32_t ranks[SL_CONDITION_COUNT] = {
                [SL_CONDITION_ACTIVE] = 1, [SL_CONDITION_INTERFERED] = 2, [SL_CONDITION_OVERLOADED] = 3};
        enum sl_condition busiest = SL_CONDITION_INACTIVE;

        for (uint32_t m = 0; m < ensemble->assembly.n_members && !ensemble->rests; m++) {
                enum sl_condition its = condition_of(ensemble->members[m]);

                busiest = ranks[its] > ranks[busiest] ? its : busiest;
        }
        return busiest;
}
