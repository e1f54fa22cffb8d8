/* SPDX-License-Identifier: Apache-2.0 */
#include "room.h"

#include <math.h>

void sl_scale_room_begin(struct sl_scale_room *room, const struct sl_scale_problem *problem, int32_t *change)
{
        *room = (struct sl_scale_room){.problem = problem, .change = change};
        for (uint32_t i = 0; i < SL_SCALE_RESOURCES; i++)
                room->free[i] = problem->resources[i].total;
        for (uint32_t k = 0; k < problem->n_kinds; k++) {
                change[k] = 0;
                for (uint32_t i = 0; i < SL_SCALE_RESOURCES; i++)
                        room->free[i] -= problem->kinds[k].n * problem->kinds[k].resources[i];
        }
}

static int32_t above_0(int32_t n)
{
        return n > 0 ? n : 0;
}

void sl_scale_room_add(struct sl_scale_room *room, uint32_t kind, int32_t n)
{
        int32_t before = room->change[kind], after = before + n;

        for (uint32_t i = 0; i < SL_SCALE_RESOURCES; i++) {
                int32_t more = room->problem->resources[i].both ? above_0(after) - above_0(before) : n;

                room->free[i] -= more * room->problem->kinds[kind].resources[i];
        }
        room->change[kind] = after;
}

uint32_t sl_scale_fit(const struct sl_scale_kind *kind, const double free[SL_SCALE_RESOURCES])
{
        double most = SL_SCALE_INSTANCES_MAX;

        for (uint32_t i = 0; i < SL_SCALE_RESOURCES; i++)
                if (kind->resources[i] > 0)
                        most = fmin(most, floor(free[i] / kind->resources[i]));
        return most > 0 ? (uint32_t)most : 0;
}

uint32_t sl_scale_room_for(const struct sl_scale_room *room, uint32_t kind)
{
        const struct sl_scale_kind *its = &room->problem->kinds[kind];
        int64_t left = (int64_t)its->most - its->n - room->change[kind];
        uint32_t fit = sl_scale_fit(its, room->free);

        return left <= 0 ? 0 : left < fit ? (uint32_t)left : fit;
}
