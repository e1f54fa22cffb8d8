/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a comparison of a tree's item lets through, as a set of intervals of keys (kernels/shape/trees.h): they end at cuts, the
 * last one without end; every other one leads to `yes`.
 */
#pragma once

#include "import/forest.h"

struct sl_forest_cuts {
        int64_t *cuts;
        uint32_t n;
        bool first, nan; /* the first interval, a NaN lead to `yes` */
};

/* No item has more cuts. */
size_t sl_forest_cuts_max(const struct sl_forest *forest);

/* Of an item that is no leaf. @wide: keys of float64; @room: for sl_forest_cuts_max(). Orders the members of the item. */
struct sl_forest_cuts sl_forest_cuts_of(
        const struct sl_forest *forest, const struct sl_forest_item *item, bool wide, int64_t *room);

bool sl_forest_cuts_lead_to_yes(const struct sl_forest_cuts *set, uint32_t interval);

/* An interval that leads where a NaN goes. */
uint32_t sl_forest_cuts_of_nan(const struct sl_forest_cuts *set);
