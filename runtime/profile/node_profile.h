/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of every step of a plan at one batch size. One thread, the calling one, which is where everything runs.
 */
#pragma once

#include "plan.h"

#include <stdint.h>

struct sl_device_let;
struct sl_error;

struct sl_node_profile {
        uint32_t batch;
        uint64_t n_steps, n_runs;
        struct sl_step_info *steps; /* texts are the plan's, which must outlive the profile */
        double *step_ns;            /* median over the runs with clocks */
        double run_ns;              /* median of the same number of runs without */
        double peak_flops;          /* of this core, in this run */
};

/*
 * Runs for about @seconds. Inputs are seeded: floats around 0, integers 1. @batch: a size of the plan's ladder.
 * Return: 0; -EINVAL no such batch; -ENOMEM; what an instance or its run says.
 */
int sl_node_profile_new(
        const struct sl_plan *plan, uint32_t batch, double seconds, struct sl_node_profile **ret_profile, struct sl_error *error);

/* The same by a team on the first @threads cores of @let, 1 or more, of which the caller has the first meanwhile. */
int sl_node_profile_by_team(const struct sl_plan *plan, uint32_t batch, const struct sl_device_let *let, uint32_t threads,
        double seconds, struct sl_node_profile **ret_profile, struct sl_error *error);
struct sl_node_profile *sl_node_profile_free(struct sl_node_profile *profile);
