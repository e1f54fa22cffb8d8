/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model at one batch size on its way into a plan file. Owned by struct sl_lowered (lower/lower.h); one owner thread.
 */
#pragma once

#include <stdint.h>

struct sl_graph;
struct sl_placement;
struct sl_schedule;
struct sl_part_times;

/* One batch size, or a body of it. */
struct sl_program {
        uint32_t batch;      /* 0: a body */
        uint32_t first_node; /* the number of its node 0 among the nodes of all graphs of the source, bodies behind what is around
                                them */
        struct sl_graph *graph; /* specialised; owned, like what follows. That of a body is its node's */
        struct sl_placement *placement;
        struct sl_schedule *schedule;
        struct sl_part_times *part_times; /* of each node of the placement's graph; NULL: the tuner has not timed them */
        struct sl_program *bodies; /* of its steps, in their order */
        uint32_t n_bodies;
};
