/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks that differ in their weights alone, their plans, and the plan of all of them merged by Algorithm 1; compiled in this
 * process. One thread.
 */
#pragma once

#include "network.h"

#define MERGED_LANES     8
#define MERGED_BATCH_MAX 8

struct sl_plan;

struct merged_lanes {
        struct network nets[MERGED_LANES];
        struct sl_plan *plan, *singles[MERGED_LANES];
};

/* @build: from input to output, of a network that has been begun with other random numbers for each lane. */
void merged_lanes_init(struct merged_lanes *merged, void (*build)(struct network *net));
void merged_lanes_deinit(struct merged_lanes *merged);
