/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the algorithm of every node that has several, the same for all batch sizes, so that one form of its weights serves them.
 *
 *     tune: off     the backend's guess for the smallest and the largest batch; an approximate one after a look at a part of the
 *                   node (exactness.h). No clocks.
 *     tune: quick   the model is run once for reference, on seeded inputs: an approximate algorithm must be within the bound on the
 *                   activations that reach the node. Then it is run a few times at the smallest and the largest batch, each time
 *                   with other algorithms, and every node is timed in its place (timed_runs.h)
 *     tune: full    the same at every batch size, more often
 *
 * All batch sizes that are asked count the same. Nodes of equal shape are decided together, and the guess stays where nothing is
 * clearly faster. A node that the base plan has is not timed: the base's algorithm is taken where it can be, so that the weights
 * are shared. Where the time is over, the rest is chosen as with `off`. Compiler's process only; one owner thread.
 */
#pragma once

#include "step_choice.h"
#include "timed_runs.h"

#include <stdint.h>

struct sl_base_plan;
struct sl_error;
struct sl_lower_options;
struct sl_program;

struct sl_tuning {
        const struct sl_lower_options *options;
        const struct sl_base_plan *base; /* NULL for a plan that stands alone */
        sl_timed_runs_clock *clock;
        uint64_t until_ns; /* by that clock; what is not timed by then is not timed */
};

/*
 * Sets the ALGORITHM of nodes of the programs' placements (smallest batch first) and fills @choices, one for each node of the
 * source graph. Return: 0; -ENOMEM.
 */
int sl_tune(struct sl_program *programs, uint32_t n_programs, const struct sl_tuning *tuning, struct sl_step_choice *choices,
        uint32_t n_choices, struct sl_error *error);
