/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides with a clock in which layouts the nodes run (tune: full). The greedy walk of placement.h moves the fewest bytes; here the
 * model is run in turns as that walk has placed it and with as much PLAIN as its backends can do, at the smallest and the largest
 * batch. Every node is so timed in both ways, in the fastest of its algorithms, and so are the reorders; the cheapest chain of
 * the two (layout.h) is what the placements should be. Compiler's process only; one owner thread.
 */
#pragma once

#include <stdint.h>

struct sl_placement_wish;
struct sl_program;
struct sl_tuning;

/*
 * Takes a third of the time that is left. @ret_wishes: one for each node of the programs' graphs, of malloc(); NULL when the
 * placements are the best, when another chain is not clearly faster, or when time or memory do not suffice. Return: 0; -ENOMEM.
 */
int sl_tune_layouts(const struct sl_program *programs, uint32_t n_programs, const struct sl_tuning *tuning,
        struct sl_placement_wish **ret_wishes);
