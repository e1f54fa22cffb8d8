/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches side by side: steps of which none needs what another one makes become neighbours, and a team that is large enough
 * computes them at once, each on some of its members, where that is sooner than one after the other on all of them. A step that is
 * cut into more parts than pay has members to spare, and a step that is not cut has all but one.
 *
 *     1x1            members 0-3 |
 *     3x3 reduce     members 4-5 |-- a call --> 3x3   members 0-4 |
 *     5x5 reduce     member  6   |              5x5   members 5-6 |-- a call -->
 *     pool           member  7   |              1x1   member  7   |
 *
 * A *group* is such neighbours: the step at hand, and those of the next ones that touch nothing that it, or any step that they
 * pass, writes, and write nothing that those touch. How many members each gets is found by bisection over the time of the whole: a
 * step takes as few as let it end by then, and those that one member ends share members. It is decided for each size of team by the
 * seconds that the backend reckons; a size for which it does not pay computes the group one step after the other. Values of a group
 * are alive in all of it. Load time; one thread.
 */
#pragma once

#include <stdint.h>

struct sl_core_figures;
struct sl_graph;
struct sl_schedule;

/* What a schedule of more bytes than before is given up for. */
#define SL_BRANCHES_BYTES_SHARE 0.125

/*
 * @schedule: of @graph, with splits and seconds of each step and without offsets. For teams of up to @widest members; the order of
 * steps, lifetimes and splits change, or nothing does. Return: 0; -ENOMEM.
 */
int sl_branches_arrange(
        struct sl_schedule *schedule, const struct sl_graph *graph, const struct sl_core_figures *core, uint32_t widest);
