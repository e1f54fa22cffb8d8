/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timed runs: a placement run again and again, node by node in order, on seeded inputs: what each node takes in its place, behind
 * its real neighbours, with their results in the caches and with its weights wherever a run ago left them. Where a node has several
 * algorithms, each run takes another, in an order that differs from node to node. Compiler's process only; one owner thread.
 */
#pragma once

#include "node.h"
#include "node_run.h"
#include "part.h"

#include <assert.h>
#include <stdint.h>

struct sl_timed_runs;
struct sl_placement;

/* sl_clock_ns(), or what a test wants. */
typedef sl_node_run_clock sl_timed_runs_clock;

/* What is asked of one node of the placement's graph, and the answer. */
struct sl_timed_node {
        uint32_t n_algorithms; /* 0: it runs as it is, and the first of microseconds is its own */
        uint32_t algorithms[SL_ALGORITHM_COUNT];
        double microseconds[SL_ALGORITHM_COUNT]; /* the shortest run so far; infinite: none */

        /*
         * Instead of algorithms, of a node that has none to choose from: a team of so many (part.h), for which each run computes it
         * whole or in parts along one axis; microseconds are then those of sl_part_times, by axis. 0: no team.
         */
        uint32_t members;
};

static_assert((int)SL_AXIS_COUNT <= (int)SL_ALGORITHM_COUNT, "there is a place for each axis");

/*
 * Makes every node ready in each of its algorithms. What cannot run alone is left out. @timed_nodes, one for each node, must
 * outlive it. Return: 0; -ETIME when it is later than @until_ns before all is ready; -ENOMEM.
 */
int sl_timed_runs_new(const struct sl_placement *placement, struct sl_timed_node *timed_nodes, sl_timed_runs_clock *clock,
        uint64_t until_ns, struct sl_timed_runs **ret_timed);
struct sl_timed_runs *sl_timed_runs_free(struct sl_timed_runs *timed);

/* One run, over all nodes. Return: 0; -ENOMEM. */
int sl_timed_runs_next(struct sl_timed_runs *timed);
