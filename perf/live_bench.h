/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live form of bench() (planner/allocation_bench.h): a runtime of our own serves the ensemble, each matrix becomes its
 * allocation while it serves, and as many requests as keep it busy are counted; at a load, Poisson arrivals of single samples are
 * timed. Inputs are random. What does not fit in the runtime's memory has a throughput of 0. Devices are named as in device_let.h.
 *
 * The caller has blocked SIGINT; one that comes ends a run with -EINTR. One thread.
 */
#pragma once

#include <stdint.h>

struct sl_bench;
struct sl_bench_result;
struct sl_calibration;
struct sl_error;
struct sl_problem;

struct sl_live_bench_options {
        const char *repository;     /* absolute; its folders are served under their names */
        const char *served;         /* what requests are for: the ensemble, or the one model */
        const char *const *members; /* the columns of the problem; of one model itself */
        uint32_t n_members;
        double expected;                 /* samples a second, about: requests are as large as that asks for */
        double seconds;                  /* of one run, at least */
        const char *const *data_folders; /* of the runtime */
        uint32_t n_data_folders;
};

/* Starts the runtime and loads everything: seconds, where plans are not in the cache. @problem outlives it. Return: 0; -errno with
 * text. */
int sl_live_bench_new(const struct sl_problem *problem, const struct sl_live_bench_options *options, struct sl_bench **ret_bench,
        struct sl_error *error);

/* The same under what the configurations of the models say, without any allocation. */
int sl_live_bench_run_configured(struct sl_bench *bench, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error);
