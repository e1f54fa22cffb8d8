/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fleets whose devices have parts, out of a seed, and a judge of schedules that shares nothing with schedulers but what batches
 * cost.
 */
#pragma once

#include "partition.h"

#include <stdint.h>

struct sl_error;

#define MODELS_MAX 6u

struct parts_case {
        struct sl_costs *costs;
        struct sl_partition_demand demands[MODELS_MAX];
        struct sl_partition_problem problem;
};

/* 1 to @devices_max devices of 1 or 2 classes, 1 to @models_max models; rates between far too little and far too much. */
void parts_case_init(struct parts_case *given, uint64_t seed, uint32_t devices_max, uint32_t models_max);
void parts_case_deinit(struct parts_case *given);

/* What a batch is planned to take on @units of a device: no less than any smaller one; 0: not known. */
double planned_ns(const struct sl_partition_problem *problem, uint32_t device, uint32_t units, uint32_t model, uint32_t batch);

/* NULL, or the rule that is broken. @lets_max: of a device. */
const char *broken_rule(
        const struct sl_partition_problem *problem, const struct sl_partition_schedule *schedule, uint32_t lets_max);
