/* SPDX-License-Identifier: Apache-2.0 */
#include "objective.h"
#include "allocation_bench.h"
#include "matrix.h"
#include "problem.h"

const char *const sl_objective_names[SL_OBJECTIVES] = {"throughput", "latency", "memory", "devices"};

static double memory_score(const struct sl_problem *problem, const struct sl_matrix *matrix)
{
        double bytes = 0;

        for (uint32_t d = 0; d < matrix->n_devices; d++)
                if (problem->costs->devices[d].memory_of == d)
                        bytes += (double)sl_matrix_memory(problem, matrix, d);
        return 1 / (1 + bytes);
}

/* Between those of n and n + 1 devices lies room for the throughput. */
static double devices_score(const struct sl_matrix *matrix, double throughput)
{
        double n = sl_matrix_devices(matrix), next = 1 / (n + 1);

        return next + (1 / n - next) * throughput / (throughput + 1);
}

double sl_objective_score(enum sl_objective objective, double load, const struct sl_problem *problem,
        const struct sl_matrix *matrix, const struct sl_bench_result *result)
{
        if (objective == SL_MAX_THROUGHPUT)
                return result->throughput;
        if (result->throughput <= load)
                return load > 0 ? result->throughput / load - 1 : -1;
        if (objective == SL_MIN_LATENCY)
                return 1e9 / result->latency_ns;
        return objective == SL_MIN_MEMORY ? memory_score(problem, matrix) : devices_score(matrix, result->throughput);
}
