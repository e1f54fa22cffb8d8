/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cores reach together: how long it takes to call a team, and what all of them bring from memory at once. Both in wall time, the
 * shortest of several runs: whoever else has a CPU meanwhile makes a call look a hundred times as long, and plans cut nothing for it.
 * The team has a thread on each CPU that the caller may use; it is gone when the call returns, and the caller, which stays on the
 * first of them meanwhile, may go anywhere as before.
 */
#pragma once

#include <stdint.h>

struct sl_core_figures;

/* A packed matrix that no L2 cache holds, a row of its depth, and room for a row of its columns. */
struct sl_team_bench {
        const float *matrix, *row;
        float *result;
        int64_t depth, columns;
};

/* Fills @figures' barrier and shared; where there is one CPU, or no thread to be had, they stay as they are. */
void sl_cpu_measure_team(const struct sl_team_bench *bench, struct sl_core_figures *figures);
