/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that has several requests at once with models on GPUs, each of which has to be answered once and rightly, and where they
 * are computed: the process of each GPU, and what `starling stats` says of its lets. What fails fails the test.
 */
#pragma once

#include "digits.h"
#include "world.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GPU_TRAFFIC_MAX   12u /* requests in flight */
#define GPU_PROCESSES_MAX 4u

struct gpu_traffic {
        struct world *world;
        struct digits_data *data;
        struct starling_client *client, *admin;
        struct starling_queue *queue;
        struct digits_job jobs[GPU_TRAFFIC_MAX];
        bool flying[GPU_TRAFFIC_MAX];
        uint32_t n_flying, seed;
        char reason[512]; /* of the request that failed last */
};

/* Both outlive it. Leaving stops the runtime. */
void gpu_traffic_enter(struct gpu_traffic *traffic, struct world *world, struct digits_data *data);
void gpu_traffic_leave(struct gpu_traffic *traffic);

struct starling_model *gpu_traffic_open(struct gpu_traffic *traffic, const char *name);

/* As many more as may fly, of the first @n. */
void gpu_traffic_submit_some(struct gpu_traffic *traffic, struct starling_model *model, uint32_t n);
void gpu_traffic_submit(struct gpu_traffic *traffic, struct starling_model *model);

/* Waits for some, or for all that fly; those that are done are right. Return: how many failed, each with -EIO. */
uint32_t gpu_traffic_reap(struct gpu_traffic *traffic);
uint32_t gpu_traffic_reap_all(struct gpu_traffic *traffic);

/* All are answered, and right. */
void gpu_traffic_serve(struct gpu_traffic *traffic, struct starling_model *model, uint32_t rounds);

/* Requests go on until so many workers on the let have computed more samples than @before. */
void gpu_traffic_serve_until(
        struct gpu_traffic *traffic, struct starling_model *model, const char *let, uint32_t workers, uint32_t before);

/* @words are in what the reload says. */
void gpu_traffic_expect_reload(struct gpu_traffic *traffic, const char *name, int result, const char *words);

/* The process of each GPU; 0: it has none. Return: how many there are. */
uint32_t gpu_find_processes(struct world *world, pid_t ret_pids[GPU_PROCESSES_MAX]);

/* Workers that share the let, and samples that they have computed. */
struct gpu_shown_let {
        uint32_t workers, samples;
};

struct gpu_shown_let gpu_look_at_let(struct world *world, const char *let);
