/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulator of workers whose costs are known (planner/costs.h): each row of devices is a let of its class, with cores of its own
 * and the copy engines of its class; what a CPU's class has of units is how many jobs compute there at once. A batch whose size was
 * not measured takes what lies between in proportion. On a CPU only powers of two run, jobs that find all cores busy wait for
 * slices of them, and where units are known nobody is slowed down by a neighbour that was not measured beside it.
 */
#pragma once

#include "sim.h"

struct sl_costs;
struct sl_error;

/*
 * @world: all but lets, classes, times and pairs, which the costs say, where it has none; models are those of the costs, @let of a
 * worker is a row of devices. Return: 0; -EINVAL with cell, value and limit, or as sl_sim_world_check(); -ENOSPC with the device
 * whose memory does not hold its workers, its largest cell, what all need and the limit; -ENOMEM.
 */
int sl_sim_of_costs(const struct sl_costs *costs, const struct sl_sim_world *world, const struct sl_sim_calls *calls,
        struct sl_sim **ret_sim, struct sl_error *error);
