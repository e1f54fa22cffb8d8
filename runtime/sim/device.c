/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <errno.h>
#include <string.h>

static bool options_hold(const struct sl_sim_options *options)
{
        return options->n_workers && options->n_workers <= SL_POLICY_WORKERS_MAX && options->slice_samples &&
               options->queue_requests;
}

int sl_sim_new(const struct sl_sim_options *options, const struct sl_sim_calls *calls, struct sl_sim **ret_sim)
{
        const struct sl_sim_device *device = &options->device;
        const uint32_t members[] = {0};
        struct sl_sim_worker workers[SL_POLICY_WORKERS_MAX];
        struct sl_sim_time time = {.transfer_ns = device->transfer_ns, .launch_ns = device->launch_ns};

        if (!options_hold(options))
                return -EINVAL;
        memcpy(time.latency_ns, device->latency_ns, sizeof(time.latency_ns));
        for (uint32_t i = 0; i < options->n_workers; i++)
                workers[i] = (struct sl_sim_worker){.batch_max = options->batch_max[i]};
        return sl_sim_of_world(
                &(struct sl_sim_world){.n_lets = 1,
                        .n_classes = 1,
                        .n_models = 1,
                        .n_workers = options->n_workers,
                        .n_ensembles = 1,
                        .lets = &(struct sl_sim_let){.copy_engines = device->copy_engines, .at_once = device->at_once},
                        .models = &(struct sl_sim_model){.batching = options->batching,
                                .slice_samples = options->slice_samples,
                                .ignores_batch_max = true},
                        .workers = workers,
                        .ensembles = &(struct sl_sim_ensemble){.members = members,
                                .n_members = 1,
                                .segment_samples = UINT32_MAX,
                                .queue_requests = options->queue_requests,
                                .direct = true},
                        .times = &time,
                        .pairs = &device->corun,
                        .n_clients = 1,
                        .n_requests = options->queue_requests,
                        .n_segments = options->queue_requests,
                        .jobs_max = 1},
                calls, ret_sim);
}
