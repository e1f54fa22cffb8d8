/* SPDX-License-Identifier: Apache-2.0 */
#include "tune_splits.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "graph.h"
#include "lower_options.h"
#include "placement.h"
#include "program.h"

#include <errno.h>
#include <stdlib.h>

/* Rounds of timing: in each, every node runs whole and along each axis once. */
#define QUICK_ROUNDS 6
#define FULL_ROUNDS  24

SL_DEFINE_CLEANUP(struct sl_timed_runs *, sl_timed_runs_free)

static void take_times(const struct sl_timed_node *timed_nodes, uint32_t n, uint32_t members, struct sl_part_times *times)
{
        for (uint32_t i = 0; i < n; i++) {
                times[i].members = members;
                for (uint32_t axis = 0; axis < SL_AXIS_COUNT; axis++)
                        times[i].seconds[axis] = timed_nodes[i].microseconds[axis] / 1e6;
        }
}

/* A model that is not ready in time, or has no room beside itself, is not timed. */
static int time_program(struct sl_program *program, const struct sl_tuning *tuning, uint32_t members, uint64_t until_ns)
{
        uint32_t n = program->placement->graph->n_nodes,
                 rounds = tuning->options->tune == SL_TUNE_FULL ? FULL_ROUNDS : QUICK_ROUNDS;
        SL_CLEANUP(sl_cleanup_free) struct sl_timed_node *timed_nodes = calloc(n + 1u, sizeof(*timed_nodes));
        SL_CLEANUP(sl_cleanup_sl_timed_runs_free) struct sl_timed_runs *timed = NULL;
        uint32_t runs = 0;
        int r;

        if (!timed_nodes)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                timed_nodes[i].members = members;
        r = sl_timed_runs_new(program->placement, timed_nodes, tuning->clock, until_ns, &timed);
        for (; r == 0 && runs < rounds * SL_AXIS_COUNT && tuning->clock() < until_ns; runs++)
                r = sl_timed_runs_next(timed);
        if (r < 0 || runs < SL_AXIS_COUNT)
                return r == -ENOMEM || r == -ETIME ? 0 : r;
        free(program->part_times);
        program->part_times = calloc(n + 1u, sizeof(*program->part_times));
        if (!program->part_times)
                return -ENOMEM;
        take_times(timed_nodes, n, members, program->part_times);
        return 0;
}

int sl_tune_splits(struct sl_program *programs, uint32_t n_programs, const struct sl_tuning *tuning)
{
        uint32_t members = tuning->options->tune == SL_TUNE_OFF ? 1 : sl_lower_options_team(tuning->options);
        uint32_t step = tuning->options->tune == SL_TUNE_FULL || n_programs < 3 ? 1 : n_programs - 1;
        uint32_t left = (n_programs - 1) / step + 1;
        int r = 0;

        for (uint32_t p = 0; p < n_programs && members > 1 && r == 0; p += step, left--) {
                uint64_t now = tuning->clock();

                if (now >= tuning->until_ns)
                        break;
                r = time_program(&programs[p], tuning, members, now + (tuning->until_ns - now) / left);
        }
        return r;
}
