/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a worker process puts predictions: a part of its reply for each job that it can have, and in that for each output a row of
 * samples. The runtime copies them out with the answer. Pure.
 */
#pragma once

#include "port.h"

/* A job's part has at least a batch; more samples as long as it is not larger than this. */
#define SL_PROCESS_STAGING_BYTES (1ull << 20)

/* So much of each output that says only afterwards how large it is may be written at once; for more the worker asks first. */
#define SL_PROCESS_OPEN_BYTES (64ull << 10)

struct sl_process_output {
        struct sl_served_port port;
        uint64_t offset; /* in the job's part */
        uint64_t room_bytes;
};

struct sl_process_staging {
        uint32_t samples_max; /* of a job */
        uint32_t n_outputs;
        struct sl_process_output *outputs; /* [n_outputs] */
        uint64_t first;                    /* where the part of slot 0 begins, in the reply's parts; the next ones follow */
        uint64_t job_bytes;
};

/*
 * @open_bytes: the room for each output that says only afterwards how large it is; one that is larger is refused to who wants it.
 * Return: 0, and who inits deinits; -EOVERFLOW; -ENOMEM.
 */
int sl_process_staging_init(
        struct sl_process_staging *ret_staging, const struct sl_plan_info *info, uint32_t batch_max, uint64_t open_bytes);
void sl_process_staging_deinit(struct sl_process_staging *staging);
