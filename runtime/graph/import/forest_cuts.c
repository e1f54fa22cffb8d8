/* SPDX-License-Identifier: Apache-2.0 */
#include "import/forest_cuts.h"

#include "shape/trees.h"

#include <math.h>
#include <stdlib.h>

size_t sl_forest_cuts_max(const struct sl_forest *forest)
{
        uint32_t most = 1;

        for (uint32_t i = 0; i < forest->n_items; i++)
                if (forest->items[i].mode == SL_BRANCH_MEMBER && forest->items[i].count > most)
                        most = forest->items[i].count;
        return 2 * (size_t)most + 2;
}

/* The largest key of a number that is at most @split, which may lie between two numbers of the rows' type; whether it is @split. */
static int64_t key_below(bool wide, double split, bool *ret_exact)
{
        float single = (float)split;

        *ret_exact = true;
        if (wide)
                return sl_tree_key_64(split, false);
        *ret_exact = (double)single == split;
        if ((double)single > split)
                single = nextafterf(single, -INFINITY);
        return sl_tree_key_32(single, false);
}

/* Numbers equal to @value, if there are any: what lies behind the cuts so far is below it. */
static void cut_out(bool wide, struct sl_forest_cuts *set, double value)
{
        bool exact;
        int64_t key;

        if (isnan(value))
                return;
        key = key_below(wide, value, &exact);
        if (!exact || (set->n && set->cuts[set->n - 1] >= key))
                return;
        if (set->n && set->cuts[set->n - 1] == key - 1)
                set->n--;
        else
                set->cuts[set->n++] = key - 1;
        set->cuts[set->n++] = key;
}

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

static void cut_members(const struct sl_forest *forest, bool wide, const struct sl_forest_item *item, struct sl_forest_cuts *set)
{
        double *members = forest->members + item->first;

        qsort(members, item->count, sizeof(*members), compare_doubles);
        for (uint32_t i = 0; i < item->count; i++)
                cut_out(wide, set, members[i]);
}

static void cut_once(bool wide, const struct sl_forest_item *item, struct sl_forest_cuts *set)
{
        bool exact, above = item->mode == SL_BRANCH_GTE || item->mode == SL_BRANCH_GT;
        int64_t key;

        if (isnan(item->split))
                return;
        key = key_below(wide, item->split, &exact);
        if (exact && (item->mode == SL_BRANCH_LT || item->mode == SL_BRANCH_GTE))
                key--;
        set->first = !above;
        set->cuts[set->n++] = key;
}

struct sl_forest_cuts sl_forest_cuts_of(const struct sl_forest *forest, const struct sl_forest_item *item, bool wide, int64_t *room)
{
        struct sl_forest_cuts set = {.cuts = room, .nan = item->missing_true || item->mode == SL_BRANCH_NEQ};
        int64_t infinity = wide ? sl_tree_key_64(INFINITY, false) : sl_tree_key_32(INFINITY, false);

        switch (item->mode) {
        case SL_BRANCH_NEQ:
                set.first = true;
                cut_out(wide, &set, item->split);
                break;
        case SL_BRANCH_EQ:
                cut_out(wide, &set, item->split);
                break;
        case SL_BRANCH_MEMBER:
                cut_members(forest, wide, item, &set);
                break;
        default:
                cut_once(wide, item, &set);
        }
        /* A NaN needs an interval that leads where it goes: at worst one of its own, behind all numbers. */
        if (!set.n && set.first != set.nan)
                set.cuts[set.n++] = infinity;
        return set;
}

bool sl_forest_cuts_lead_to_yes(const struct sl_forest_cuts *set, uint32_t interval)
{
        return set->first != (interval & 1);
}

uint32_t sl_forest_cuts_of_nan(const struct sl_forest_cuts *set)
{
        return set->first == set->nan ? 0 : 1;
}
