/* SPDX-License-Identifier: Apache-2.0 */
#include "gauges.h"

#include "base/clock.h"
#include "conditions.h"
#include "dispatcher_state.h"
#include "executor.h"
#include "let.h"
#include "lines.h"

#define SHOW_STEP_NS (1 * SL_NS_PER_MS)

/* A store takes the line from whoever reads the page. */
static void show(_Atomic uint64_t *gauge, uint64_t value)
{
        if (sl_counter_read(gauge) != value)
                sl_counter_set(gauge, value);
}

static void show_dispatcher(const struct sl_dispatcher *d, uint32_t waiting)
{
        struct sl_dispatcher_stats *stats = d->stats;

        show(&stats->in_flight, d->in_flight);
        show(&stats->waiting_clients, waiting);
        show(&stats->crowded, d->crowded);
        show(&stats->saturated, d->saturated);
        show(&stats->late_ns, d->lateness.late_ns);
}

void sl_gauges_in_flight(struct sl_ensemble *ensemble)
{
        uint64_t change = (uint64_t)ensemble->in_flight - ensemble->in_flight_shown;

        if (!change || !ensemble->counting.counters)
                return;
        sl_model_count(&ensemble->counting, in_flight, change);
        ensemble->in_flight_shown = ensemble->in_flight;
}

static void show_requests(const struct sl_ensemble *ensemble)
{
        struct sl_queue_stats *stats = ensemble->shown;
        const struct sl_arrivals *arrivals = &ensemble->arrivals;

        show(&stats->depth, arrivals->n);
        show(&stats->samples, sl_fair_samples(ensemble->broadcasts.waiting));
        show(&stats->oldest_ns, arrivals->oldest ? arrivals->oldest->taken_ns : 0);
        show(&stats->given_samples, ensemble->broadcasts.samples_out);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
        return !a || (b && b < a) ? b : a;
}

static void show_segments(const struct sl_model *model)
{
        struct sl_queue_stats *stats = model->shown;
        uint64_t depth = 0, samples = 0, oldest_ns = 0;

        for (uint32_t i = 0; i < SL_CLASSES; i++) {
                const struct sl_task_queue *queue = &model->scheduler.queues[i];

                depth += sl_task_queue_length(queue);
                samples += queue->samples;
                oldest_ns = earlier(oldest_ns, sl_task_queue_length(queue) ? sl_task_queue_at(queue, 0)->arrival_ns : 0);
        }
        show(&stats->depth, depth);
        show(&stats->samples, samples);
        show(&stats->oldest_ns, oldest_ns);
        show(&stats->given_samples, model->samples_given);
}

void sl_gauges_let(const struct sl_let *let)
{
        uint64_t running = 0;

        if (!let->stats)
                return;
        for (uint32_t i = 0; i < SL_CLASSES; i++)
                running += let->turns.running[i];
        show(&let->stats->running, running);
}

static void show_workers(const struct sl_model *model)
{
        uint64_t jobs = 0;

        for (uint32_t i = 0; i < sl_workers_all(&model->workers); i++) {
                jobs += sl_executor_jobs(model->workers.list[i]);
                sl_gauges_let(model->workers.list[i]->let);
        }
        show(&model->shown->given_jobs, jobs);
}

static void show_all(struct sl_dispatcher *d, uint32_t waiting, uint64_t now_ns, bool sleeps)
{
        sl_conditions_look(d, sleeps);
        show_dispatcher(d, waiting);
        sl_lines_show(d, now_ns);
        for (struct sl_ensemble *ensemble = d->ensembles; ensemble; ensemble = ensemble->next) {
                sl_gauges_in_flight(ensemble);
                if (ensemble->shown)
                        show_requests(ensemble);
        }
        for (const struct sl_model *model = d->models; model; model = model->next)
                if (model->shown) {
                        show_segments(model);
                        show_workers(model);
                }
}

void sl_gauges_show(struct sl_dispatcher *d, uint64_t now_ns)
{
        if (now_ns - d->gauges_shown_ns < SHOW_STEP_NS)
                return;
        d->gauges_shown_ns = now_ns;
        show_all(d, d->waiting, now_ns, false);
}

void sl_gauges_show_before_sleep(struct sl_dispatcher *d)
{
        show_all(d, d->in_flight ? d->waiting : 0, d->n_watched ? sl_clock_ns() : 0, true);
}
