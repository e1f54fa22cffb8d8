/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times every node whole and in parts for a team, in its place in the model (timed_runs.h), so that the planner chooses how it is
 * cut by what its parts take and not by what they should. The compiler's process has no threads: parts run one after the other, the
 * longest counts, and what a team costs beside (its call, bandwidth that its members share, data that travel) stays an estimate.
 * Compiler's process only; one owner thread.
 */
#pragma once

#include "tune.h"

/*
 * When algorithms are chosen: fills part_times of those @programs that @tuning has time for, `quick` both ends of the ladder and
 * `full` all of it. Nothing with `tune: off`, `teams: false`, or a team of one. Return: 0; -ENOMEM.
 */
int sl_tune_splits(struct sl_program *programs, uint32_t n_programs, const struct sl_tuning *tuning);
