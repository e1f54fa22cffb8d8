/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the planner and the simulator know (planner/costs.h), out of profiles. Pure; any thread.
 *
 * Each device or let that a profile names is a device, and a class of its own: nothing says that another one costs the same. Lets
 * of one kind draw on the memory of the first of them. A model in another precision than fp32 is a model of its own, "NAME bf16",
 * unless its name alone is enough. The slow-down of a pair is that of the largest batch that was measured, of larger combinations
 * none is taken; what nobody has measured has the class's default. A worker is one thread: of those that differ in their threads
 * alone the one with the fewest counts, which is not of one thread where that was not measured.
 */
#pragma once

#include "worker_profile.h"

struct sl_costs;

/*
 * @plain: each model is there in one precision, and called by its name. @memory_bytes: for the workers of all lets of one kind.
 * Return: 0; -EINVAL a name and its precision are too long; what sl_costs_new() and sl_costs_check() say.
 */
int sl_profile_costs(
        const struct sl_profile_list *list, bool plain, uint64_t memory_bytes, struct sl_costs **ret_costs, struct sl_error *error);
