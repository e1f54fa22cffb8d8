/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a team of each size should take for one batch, out of the time of every step on one thread (node_profile.h):
 *
 *     step that the plan cuts into m parts   max(time * ceil(units / m) / units, weights / bandwidth(m)) + calls * call(m)
 *     step that it does not cut              time
 *     steps that the team computes at once   what the member takes that has most of them, and one call
 *     the batch                              the sum of those
 *
 * units: what the kernel can be cut into along the plan's axis; the longest part counts. weights: the bytes of constants, as
 * often as parts read them, m times where rows are cut. bandwidth(m) and call(m): what m cores bring from memory at once, and what
 * it takes to call them (sl_core_team_bandwidth(), sl_core_team_call()), out of the figures `shared`, `stream` and `barrier`. A
 * step in a body is taken to run once. Not in it: activations that travel between cores, a cache that cores share, clocks that fall
 * when more cores work, what every part of a step repeats, and members whose cores are somebody else's for a while. So it is a
 * bound from below more than a forecast; what was measured stands beside it (team_measure.h).
 *
 * Plain values; any thread.
 */
#pragma once

#include "plan.h"

#include <stdint.h>

struct sl_core_figures;
struct sl_error;
struct sl_node_profile;

struct sl_team_step {
        struct sl_step_split split;
        double part_ns; /* of its longest part; of a step that is not cut, all of it */
        double call_ns; /* of calling the team */
};

struct sl_team_point {
        uint32_t threads;
        double divided_ns, call_ns, whole_ns; /* longest parts of what is cut; calls; what is not cut */
        double ns;                            /* all three */
        struct sl_team_step *steps;
};

struct sl_team_model {
        uint64_t n_steps;
        uint32_t n_points;
        struct sl_team_point *points;
};

/* A point for each of @n sizes, 1 to SL_TEAM_MEMBERS_MAX. Return: 0; -ENOMEM; what an instance and its splits say. */
int sl_team_model_new(const struct sl_plan *plan, const struct sl_node_profile *profile, const struct sl_core_figures *core,
        const uint32_t *sizes, uint32_t n, struct sl_team_model **ret_model, struct sl_error *error);
/* NULL is fine. Returns NULL. */
struct sl_team_model *sl_team_model_free(struct sl_team_model *model);
