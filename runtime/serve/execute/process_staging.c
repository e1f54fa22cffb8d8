/* SPDX-License-Identifier: Apache-2.0 */
#include "process_staging.h"

#include "base/bytes.h"

#include <errno.h>

/* Samples of the largest job, however small they are. */
#define SAMPLES_MAX 65536u

static uint32_t choose_samples(const struct sl_process_staging *staging, uint32_t batch_max)
{
        uint64_t sample_bytes = 0, fits;

        for (uint32_t i = 0; i < staging->n_outputs; i++)
                sample_bytes += staging->outputs[i].sample_bytes;
        fits = sample_bytes ? SL_PROCESS_STAGING_BYTES / sample_bytes : SAMPLES_MAX;
        if (fits > SAMPLES_MAX)
                fits = SAMPLES_MAX;
        return fits > batch_max ? (uint32_t)fits : batch_max;
}

int sl_process_staging_init(
        struct sl_process_staging *ret_staging, const struct sl_plan_info *info, uint32_t batch_max, uint64_t open_bytes)
{
        struct sl_process_staging staging = {.n_outputs = info->n_outputs};

        for (uint32_t i = 0; i < info->n_outputs; i++)
                if (sl_served_port_init(&staging.outputs[i], &info->outputs[i]) < 0)
                        return -EOVERFLOW;
        staging.samples_max = choose_samples(&staging, batch_max);
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                uint64_t bytes;

                if (sl_port_is_open(&info->outputs[i]))
                        staging.room_bytes[i] = open_bytes;
                else if (sl_mul_overflows(staging.outputs[i].sample_bytes,
                                 staging.outputs[i].port.batch_axis == SL_PORT_NO_BATCH ? 1 : staging.samples_max,
                                 &staging.room_bytes[i]))
                        return -EOVERFLOW;
                bytes = sl_align_up(staging.room_bytes[i], SL_LINE_BYTES);
                staging.offsets[i] = staging.job_bytes;
                if (bytes < staging.room_bytes[i] || sl_add_overflows(staging.job_bytes, bytes, &staging.job_bytes))
                        return -EOVERFLOW;
        }
        staging.job_bytes = sl_align_up(staging.job_bytes, SL_LINE_PAIR_BYTES);
        *ret_staging = staging;
        return 0;
}
