/* SPDX-License-Identifier: Apache-2.0 */
#include "forecast.h"

#include "ensemble.h"
#include "executor.h"
#include "model.h"

/* As they are gathered when many wait: a batch, and no more than fits a slice. */
static uint32_t job_samples(const struct sl_model *model, const struct sl_executor *worker, uint64_t samples)
{
        uint64_t most = worker->batch_max;

        if (model->slice_samples && model->slice_samples < most)
                most = model->slice_samples;
        return (uint32_t)(samples < most ? samples : most);
}

/* Samples in a nanosecond, of all workers; infinite when nothing is known. */
static double member_speed(const struct sl_model *model, uint64_t samples)
{
        double speed = 0;

        for (uint32_t i = 0; i < model->workers.n; i++) {
                uint32_t job = job_samples(model, model->workers.list[i], samples);

                speed += (double)job / (double)sl_service_time_ns(&model->service_time, job);
        }
        return speed;
}

static uint64_t member_ns(const struct sl_model *model, uint64_t samples)
{
        if (!model->workers.n || !samples || model->jobs < SL_JOBS_KNOWN)
                return 0;
        return (uint64_t)((double)samples / member_speed(model, samples) + 0.5);
}

/* Of times that ascend, the one by which so many have ended. */
static uint64_t nth_ns(uint64_t *times_ns, uint32_t n, uint32_t nth)
{
        for (uint32_t i = 1; i < n; i++)
                for (uint32_t k = i; k > 0 && times_ns[k] < times_ns[k - 1]; k--) {
                        const uint64_t moved = times_ns[k];

                        times_ns[k] = times_ns[k - 1];
                        times_ns[k - 1] = moved;
                }
        return times_ns[nth - 1];
}

static uint64_t longest_ns(const struct sl_ensemble *ensemble, uint64_t samples, uint32_t n_members)
{
        uint64_t longest_ns = 0;

        for (uint32_t m = 0; m < n_members; m++) {
                uint64_t ns = member_ns(ensemble->members[m], samples);

                if (ns > longest_ns)
                        longest_ns = ns;
        }
        return longest_ns;
}

uint64_t sl_forecast_ns(const struct sl_ensemble *ensemble, uint64_t samples)
{
        const struct sl_assembly *assembly = &ensemble->assembly;
        uint64_t times_ns[SL_MEMBERS_MAX];

        if (!assembly->is_partial)
                return longest_ns(ensemble, samples, assembly->n_members);
        if (assembly->quorum == assembly->n_members)
                return longest_ns(ensemble, samples, assembly->n_first);
        for (uint32_t m = 0; m < assembly->n_members; m++)
                times_ns[m] = member_ns(ensemble->members[m], samples);
        return nth_ns(times_ns, assembly->n_members, assembly->quorum);
}

static uint64_t less(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/*
 * So many requests to a plan of any size, which have @units together: its model is the only member, and each is one worker's. As
 * sl_forecast_ns() where no line is known.
 */
static uint64_t sized_ns(const struct sl_ensemble *ensemble, uint64_t requests, uint64_t units)
{
        const struct sl_model *model = ensemble->members[0];
        uint64_t ns = model->workers.n && model->jobs >= SL_JOBS_KNOWN ? sl_size_line_sum_ns(&model->line, requests, units) : 0;

        return ns ? ns / less(model->workers.n, requests) : sl_forecast_ns(ensemble, requests);
}

static uint64_t ahead_ns_of(const struct sl_ensemble *ensemble, uint64_t ahead, uint64_t units)
{
        uint64_t mean = ensemble->in_flight ? ensemble->units / ensemble->in_flight : 0;

        return units ? sized_ns(ensemble, ahead, ahead * mean) : sl_forecast_ns(ensemble, ahead);
}

uint64_t sl_forecast_late(const struct sl_ensemble *ensemble, uint64_t ahead, uint32_t samples, uint64_t units, uint64_t left_ns)
{
        uint64_t ahead_ns = ahead_ns_of(ensemble, ahead, units);
        uint64_t own_ns = units ? sized_ns(ensemble, 1, units) : sl_forecast_ns(ensemble, samples);

        return 2 * ahead_ns + own_ns > left_ns ? ahead_ns : 0;
}
