/* SPDX-License-Identifier: Apache-2.0 */
#include "partition.h"
#include "times.h"

#include <math.h>

#define NS 1e9

/* The least share of a device's time that a request of the model costs, in seconds; INFINITY: no batch meets the objective. */
static double cheapest(const struct sl_partition_problem *problem, const struct sl_partition_times *times, uint32_t model)
{
        double least = INFINITY, objective_ns = (double)problem->demands[model].objective_ns;

        for (uint32_t d = 0; d < problem->costs->n_devices; d++) {
                uint32_t class_index = problem->costs->devices[d].class_index;
                const struct sl_partition_sizes *sizes = &times->sizes[class_index];

                for (uint32_t slot = 0; slot < sizes->n; slot++)
                        for (uint32_t b = 1; b <= times->batch_max; b++) {
                                double latency = sl_partition_latency(times, class_index, slot, model, b);
                                double share = (double)sizes->units[slot] / sizes->units[sizes->n - 1];

                                if (latency > 0 && 2 * latency <= objective_ns && share * latency / b / NS < least)
                                        least = share * latency / b / NS;
                        }
        }
        return least;
}

int sl_partition_bound(const struct sl_partition_problem *problem, double *ret_scale)
{
        struct sl_partition_times *times = NULL;
        double devices = 0;
        int r = sl_partition_times_new(problem, &times);

        if (r < 0)
                return r;
        for (uint32_t m = 0; m < problem->costs->n_models; m++)
                if (problem->demands[m].rate > problem->options.dropped_rate)
                        devices += problem->demands[m].rate * cheapest(problem, times, m);
        *ret_scale = problem->costs->n_devices / devices;
        sl_partition_times_free(times);
        return 0;
}
