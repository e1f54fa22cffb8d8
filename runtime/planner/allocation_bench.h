/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench(A, calibration): how well an ensemble runs under an allocation. One interface, two forms: simulated from costs
 * (simulated_bench.h), and live (perf/live_bench.h), which builds the workers, measures on calibration data and tears them down.
 *
 * Threads: one at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_bench;
struct sl_error;
struct sl_matrix;

/* What a bench is run with, beside the samples that the live form makes. */
struct sl_calibration {
        double load; /* samples a second at which the latency is asked for; 0: it is not */
};

struct sl_bench_result {
        double throughput; /* samples a second that pass through all models; 0 when the workers do not fit in memory */
        double latency_ns; /* of a sample at calibration.load, mean; infinity at and above the throughput; 0 when not asked for */
};

struct sl_bench_ops {
        const char *name; /* "simulated", "live" */

        /* May take as long as a measurement takes. @matrix has no zero column. Return: 0, also when it does not fit; -errno. */
        int (*run)(struct sl_bench *bench, const struct sl_matrix *matrix, const struct sl_calibration *calibration,
                struct sl_bench_result *ret_result, struct sl_error *error);

        void (*free)(struct sl_bench *bench); /* NULL is fine */
};

/* Embedded first in what implements it. */
struct sl_bench {
        const struct sl_bench_ops *ops;
        uint64_t runs; /* so far */
};

static inline int sl_bench_run(struct sl_bench *bench, const struct sl_matrix *matrix, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error)
{
        bench->runs++;
        return bench->ops->run(bench, matrix, calibration, ret_result, error);
}

static inline struct sl_bench *sl_bench_free(struct sl_bench *bench)
{
        if (bench)
                bench->ops->free(bench);
        return NULL;
}
