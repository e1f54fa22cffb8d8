/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lanes of a merged plan need which parts of its steps. Found once, when an instance is made, from the last step to the
 * first: an output is needed by its lane, a part of a step by whoever needs a byte that it writes, and what it reads by the same
 * lanes. What touches what is said by the kernels (part.h), where things lie by the plan; of what nobody knows all is needed.
 * Nothing in the plan says it, so nothing in a plan can let one lane go without what it needs.
 *
 *     step  Conv, groups of 4 lanes          units  |0 1 2 3|4 5 6 7|     output of lane 1 is needed by lane 1, so unit 1 and
 *     step  Concat of all lanes              units  |   0   |             what it reads; unit 0 of the Concat by lanes 0 to 7
 *
 * Numbers that others may be looked up by (integers) are made for all lanes: what is left out is whatever was there before.
 * Private to sl_plan; one thread, that of the instance.
 */
#pragma once

#include "part.h"

#include <stdint.h>

struct sl_executable;
struct sl_executable_step;

/* Neighbouring units that the same lanes need. */
struct sl_lane_run {
        int64_t first, end;
        uint64_t lanes; /* bits */
};

/* Of one step; without runs all of it is computed for any lane. */
struct sl_lane_parts {
        uint32_t axis, n_runs; /* NONE: the one run is the whole step */
        struct sl_lane_run *runs;
};

/* A step with more takes longer to launch in parts than is gained. */
#define SL_LANE_RUNS_PER_LANE 2u

/*
 * Fills the parts of all steps. Who cannot tell leaves them as they are, without runs: a plan of one model, one with dynamic steps
 * or of another backend's memory, ports that are not named by their lanes, a workspace too large to look at. Return: whether some
 * step can be left out, in part or whole.
 */
bool sl_lane_parts_find(struct sl_executable *executable);

/* What is computed of the step when lanes in @idle are not: part *@at and on. Return: whether there is one; @ret_part its units. */
bool sl_lane_parts_next(const struct sl_lane_parts *parts, uint64_t idle, uint32_t *at, struct sl_part *ret_part);

/* Bytes that the parts of @n_steps steps take at most. */
uint64_t sl_lane_parts_bytes(uint32_t n_lanes, uint64_t n_steps);
