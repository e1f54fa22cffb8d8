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

uint64_t sl_forecast_ns(const struct sl_ensemble *ensemble, uint64_t samples)
{
        uint64_t longest_ns = 0;

        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++) {
                uint64_t ns = member_ns(ensemble->members[m], samples);

                if (ns > longest_ns)
                        longest_ns = ns;
        }
        return longest_ns;
}

uint64_t sl_forecast_late(const struct sl_ensemble *ensemble, uint64_t ahead, uint32_t samples, uint64_t left_ns)
{
        uint64_t ahead_ns = sl_forecast_ns(ensemble, ahead);

        return 2 * ahead_ns + sl_forecast_ns(ensemble, samples) > left_ns ? ahead_ns : 0;
}
