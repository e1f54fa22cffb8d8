/* SPDX-License-Identifier: Apache-2.0 */
/* What a change under way leaves of the resources, and how instances are added to it. Pure. */
#pragma once

#include "scale.h"

struct sl_scale_room {
        const struct sl_scale_problem *problem;
        int32_t *change;
        double free[SL_SCALE_RESOURCES]; /* below 0: more is held than there is */
};

/* @change: all 0 from here on. */
void sl_scale_room_begin(struct sl_scale_room *room, const struct sl_scale_problem *problem, int32_t *change);

/* Of the kind so many more (@n above 0) or fewer. */
void sl_scale_room_add(struct sl_scale_room *room, uint32_t kind, int32_t n);

/* So many new instances of @kind fit into @free. */
uint32_t sl_scale_fit(const struct sl_scale_kind *kind, const double free[SL_SCALE_RESOURCES]);

/* And may come as far as its limit says. */
uint32_t sl_scale_room_for(const struct sl_scale_room *room, uint32_t kind);
