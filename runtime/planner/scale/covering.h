/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest instances that serve a load, of one need: a covering knapsack, by branch and bound. What runs costs its price, what
 * would have to be loaded that and lambda x T_load. Pure.
 *
 * Bound: what is lacking at the least price for a request a second of what has not been tried. The first descent takes the best
 * price first, which is at most one instance too dear; after NODES steps the best so far is taken, so that the time is bounded.
 */
#pragma once

#include "room.h"

#include <stdbool.h>

/*
 * Of the needs's kinds that suit, how many are to run (@ret_count: [need->n]) so that @required a second are served, within what
 * @room leaves beside this need's own. Return: the price with lambda's part, as the objective has it; INFINITY: it cannot be.
 */
double sl_scale_cover(const struct sl_scale_room *room, const struct sl_scale_need *need, double required,
        uint32_t ret_count[SL_SCALE_KINDS_MAX]);
