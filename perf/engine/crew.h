/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several workers of one model take in memory: one plan that all share, or one plan each. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

struct sl_crew_memory {
        uint32_t workers;
        uint64_t before_bytes,
                after_bytes;    /* resident memory of this process, with nothing loaded and with every worker having run */
        uint64_t weights_bytes; /* of one plan */
};

/*
 * Makes a worker for each of @sizes ("1,1,2,4"), runs each once on zeros and frees them again. With @copies each worker has a copy
 * of the plan file in memory of its own. Return: 0; -EINVAL @sizes; -errno of plans, instances and runs.
 */
int sl_crew_measure(int plan_fd, const char *sizes, bool copies, struct sl_crew_memory *ret_memory, struct sl_error *error);
