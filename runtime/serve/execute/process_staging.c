/* SPDX-License-Identifier: Apache-2.0 */
#include "process_staging.h"

#include "base/bytes.h"
#include "executor.h"

#include <errno.h>
#include <stdlib.h>

/* Samples of the largest job, however small they are. */
#define SAMPLES_MAX 65536u

static uint32_t choose_samples(const struct sl_process_staging *staging, uint32_t batch_max)
{
        uint64_t sample_bytes = 0, fits;

        for (uint32_t i = 0; i < staging->n_outputs; i++)
                sample_bytes += staging->outputs[i].port.sample_bytes;
        fits = sample_bytes ? SL_PROCESS_STAGING_BYTES / sample_bytes : SAMPLES_MAX;
        if (fits > SAMPLES_MAX)
                fits = SAMPLES_MAX;
        return fits > batch_max ? (uint32_t)fits : batch_max;
}

static int place_output(struct sl_process_staging *staging, struct sl_process_output *output, uint64_t open_bytes)
{
        uint64_t bytes, samples = output->port.port.batch_axis == SL_PORT_NO_BATCH ? 1 : staging->samples_max;

        if (sl_port_is_open(&output->port.port))
                output->room_bytes = open_bytes;
        else if (sl_mul_overflows(output->port.sample_bytes, samples, &output->room_bytes))
                return -EOVERFLOW;
        bytes = sl_align_up(output->room_bytes, SL_LINE_BYTES);
        output->offset = staging->job_bytes;
        return bytes < output->room_bytes || sl_add_overflows(staging->job_bytes, bytes, &staging->job_bytes) ? -EOVERFLOW : 0;
}

static int fill(struct sl_process_staging *staging, const struct sl_plan_info *info, uint32_t batch_max, uint64_t open_bytes)
{
        int r = 0;

        for (uint32_t i = 0; i < info->n_outputs && r == 0; i++)
                r = sl_served_port_init(&staging->outputs[i].port, &info->outputs[i]);
        if (r < 0)
                return r;
        staging->samples_max = choose_samples(staging, batch_max);
        for (uint32_t i = 0; i < info->n_outputs && r == 0; i++)
                r = place_output(staging, &staging->outputs[i], open_bytes);
        staging->job_bytes = sl_align_up(staging->job_bytes, SL_LINE_PAIR_BYTES);
        return r;
}

int sl_process_staging_init(
        struct sl_process_staging *ret_staging, const struct sl_plan_info *info, uint32_t batch_max, uint64_t open_bytes)
{
        struct sl_process_staging staging = {
                .n_outputs = info->n_outputs,
                .outputs = calloc((size_t)info->n_outputs + 1, sizeof(*staging.outputs)),
                .first = sl_align_up(
                        SL_EXECUTOR_SLOTS_MAX * SL_JOB_ALIKE_MAX * (uint64_t)info->n_outputs * sizeof(struct sl_made_output),
                        SL_LINE_PAIR_BYTES),
        };
        int r = staging.outputs ? fill(&staging, info, batch_max, open_bytes) : -ENOMEM;

        if (r < 0)
                sl_process_staging_deinit(&staging);
        else
                *ret_staging = staging;
        return r;
}

void sl_process_staging_deinit(struct sl_process_staging *staging)
{
        free(staging->outputs);
        staging->outputs = NULL;
}
