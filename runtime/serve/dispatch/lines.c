/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include "conditions.h"
#include "dispatcher_state.h"
#include "fair.h"
#include "forecast.h"
#include "inline_rule.h"
#include "task_page.h"

/* A store takes the line from whoever reads it. */
static void show(_Atomic uint32_t *word, uint32_t value)
{
        if (atomic_load_explicit(word, memory_order_relaxed) != value)
                atomic_store_explicit(word, value, memory_order_relaxed);
}

static void clear(struct sl_variant_line *line, uint32_t word)
{
        show(&line->word, word);
        show(&line->workers, 0);
        show(&line->work, 0);
        for (uint32_t i = 0; i < SL_VARIANT_SIZES; i++)
                show(&line->jobs[i], 0);
}

void sl_lines_watch(struct sl_dispatcher *d, uint32_t index, struct sl_variant_line *line)
{
        uint32_t i = 0;

        while (i < d->n_watched && d->watched[i].index != index)
                i++;
        if (line) {
                d->n_watched += i == d->n_watched;
                d->watched[i] = (struct sl_watched){.index = index, .line = line};
        } else if (i < d->n_watched) {
                clear(d->watched[i].line, 0);
                d->watched[i] = d->watched[--d->n_watched];
        }
}

/* By a worker or by the dispatcher, whichever is known to be faster; 0: neither is known. */
static uint64_t model_job_ns(const struct sl_model *model, uint32_t samples)
{
        uint64_t ns = sl_service_time_ns(&model->service_time, samples);
        uint64_t inline_ns = model->inliner ? sl_inline_ns(model, samples) : 0;

        return !inline_ns || (ns && ns < inline_ns) ? ns : inline_ns;
}

/* Members compute side by side; 0: one is not known. */
static uint64_t job_ns(const struct sl_ensemble *ensemble, uint32_t samples)
{
        uint64_t longest_ns = 0;

        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++) {
                uint64_t ns = model_job_ns(ensemble->members[m], samples);

                if (!ns)
                        return 0;
                longest_ns = ns > longest_ns ? ns : longest_ns;
        }
        return longest_ns;
}

/* What all members compute for a sample, by what the longest does. */
static uint32_t work(const struct sl_ensemble *ensemble)
{
        uint64_t longest_ns = job_ns(ensemble, 1), sum_ns = 0;

        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++)
                sum_ns += model_job_ns(ensemble->members[m], 1);
        return longest_ns ? (uint32_t)(sum_ns * SL_VARIANT_WORK_ONE / longest_ns) : SL_VARIANT_WORK_ONE;
}

static uint32_t count_workers(const struct sl_ensemble *ensemble)
{
        uint32_t least = ensemble->assembly.n_members ? ensemble->members[0]->workers.n : 0;

        for (uint32_t m = 1; m < ensemble->assembly.n_members; m++)
                if (ensemble->members[m]->workers.n < least)
                        least = ensemble->members[m]->workers.n;
        return least;
}

/* Of what is accepted and not answered. Where few jobs have shown what they take: one sample after the other, by all workers. */
static uint64_t wait_ns(const struct sl_ensemble *ensemble)
{
        const struct sl_broadcast_queue *broadcasts = &ensemble->broadcasts;
        uint64_t out = broadcasts->samples_out - broadcasts->background_out;
        uint64_t ahead = ensemble->rests ? 0 : sl_fair_urgent_samples(broadcasts->waiting) + out;
        uint64_t forecast_ns;
        uint32_t workers;

        if (!ahead)
                return 0;
        forecast_ns = sl_forecast_ns(ensemble, ahead);
        if (forecast_ns)
                return forecast_ns;
        workers = count_workers(ensemble);
        return ahead * job_ns(ensemble, 1) / (workers ? workers : 1);
}

/* Where it grows, the next job of the members says anew what they take. */
static void doubt(struct sl_ensemble *ensemble, uint32_t before, uint32_t now)
{
        for (uint32_t m = 0; m < ensemble->assembly.n_members && now > before; m++)
                sl_service_time_doubt(&ensemble->members[m]->service_time);
}

static void show_workers(const struct sl_watched *watched, struct sl_ensemble *ensemble, uint64_t now_ns)
{
        uint64_t idle_ns = atomic_load_explicit(&ensemble->idle_ns, memory_order_relaxed);
        uint32_t before = sl_variant_workers_doubt(atomic_load_explicit(&watched->line->workers, memory_order_relaxed));
        uint32_t now = sl_variant_doubt(idle_ns && now_ns > idle_ns && !ensemble->rests ? now_ns - idle_ns : 0);

        doubt(ensemble, before, now);
        show(&watched->line->workers, sl_variant_workers(count_workers(ensemble), sl_conditions_of(ensemble), now));
}

static void show_wait(const struct sl_dispatcher *d, const struct sl_watched *watched)
{
        const struct sl_ensemble *ensemble = d->served[watched->index];

        show(&watched->line->word, ensemble ? sl_variant_word(ensemble->in_flight >= ensemble->queue_requests, wait_ns(ensemble))
                                            : SL_VARIANT_WITHDRAWN);
}

static void show_jobs(const struct sl_dispatcher *d, const struct sl_watched *watched, uint64_t now_ns)
{
        struct sl_ensemble *ensemble = d->served[watched->index];

        if (!ensemble) {
                clear(watched->line, SL_VARIANT_WITHDRAWN);
                return;
        }
        show_workers(watched, ensemble, now_ns);
        if (ensemble->rests) /* it will take what it has taken */
                return;
        show(&watched->line->work, work(ensemble));
        for (uint32_t i = 0; i < SL_VARIANT_SIZES; i++) {
                uint64_t units = (job_ns(ensemble, 1u << i) + SL_VARIANT_UNIT_NS - 1) / SL_VARIANT_UNIT_NS;

                show(&watched->line->jobs[i], units < UINT32_MAX ? (uint32_t)units : UINT32_MAX);
        }
}

void sl_lines_show_waits(struct sl_dispatcher *d)
{
        for (uint32_t i = 0; i < d->n_watched; i++)
                show_wait(d, &d->watched[i]);
}

void sl_lines_show(struct sl_dispatcher *d, uint64_t now_ns)
{
        for (uint32_t i = 0; i < d->n_watched; i++) {
                show_wait(d, &d->watched[i]);
                show_jobs(d, &d->watched[i], now_ns);
        }
}
