/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule of lets (planner/lets) while requests come: what would be late. Its own small simulator, as the dispatcher that sim.h
 * drives has no turns of a cycle yet.
 *
 *     arrival --> the place of its model where least waits and is computed for its rate --> waits there
 *     let     --> after a batch: the next place in turn where something waits, as many as its batch, oldest first
 *
 * A request whose objective has passed when its turn comes is not computed, as workers do not. A batch of fewer samples takes what
 * its own size takes (costs.h), copies before computing, longer while neighbours compute: by what they compute just then, of
 * several the sum of what each adds.
 *
 * Not simulated: what dispatcher and clients take, and that a schedule changes. Deterministic; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_partition_problem;
struct sl_partition_schedule;

struct sl_sim_cycles_options {
        uint64_t seed;
        uint64_t duration_ns; /* in which requests come */
        bool regular; /* those of each place come evenly, at a phase of their own; else those of a model as a Poisson process */
        bool interference; /* computing lets are in each other's way */
};

/* Of a model. */
struct sl_sim_cycles_count {
        uint64_t requests, late, dropped; /* dropped: not computed, as it was too late for that. Neither is in time */
        double longest_ns;                /* from arrival to answer, of those computed */
};

/* @ret_counts: for each model of the costs; what the schedule lacks does not come. Return: 0; -ENOMEM. */
int sl_sim_cycles_run(const struct sl_partition_problem *problem, const struct sl_partition_schedule *schedule,
        const struct sl_sim_cycles_options *options, struct sl_sim_cycles_count *ret_counts);
