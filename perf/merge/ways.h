/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to compute copies of a network, each in processes that are made for it and end with it. What fails ends the program with one
 * line.
 */
#pragma once

#include "copies.h"
#include "plan_info.h"

#include <stdbool.h>
#include <stdint.h>

/* Plan files: of each copy, and of each so many merged, the last of what is left. */
struct ways_plans {
        int singles[COPIES_MAX], merged[COPIES_MAX];
        uint32_t block_lanes;
};

/* One way: so many processes, which have the copies among them, or one that has the merged plans. */
struct way {
        uint32_t processes, lanes, batch;
        bool fused;
};

/* A plan with what it is given and gives. */
struct loaded {
        struct sl_plan *plan;
        struct sl_instance *instance;
        void *inputs[SL_PLAN_PORTS_MAX], *outputs[SL_PLAN_PORTS_MAX];
};

struct sl_plan *ways_open(int fd);

/* Makes the instance of loaded->plan, and ports of @batch samples. */
void ways_load(struct loaded *loaded, uint32_t batch, uint64_t seed);
void ways_run(struct loaded *loaded, uint32_t batch);

/*
 * Seconds of one run of every copy, of as many runs as @seconds_wanted asks for, which no process waits for another's in.
 * @ret_bytes: the proportional share of what its processes map, behind that.
 */
double ways_measure(const struct ways_plans *plans, const struct way *way, double seconds_wanted, uint64_t *ret_bytes);
