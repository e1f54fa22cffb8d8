/* SPDX-License-Identifier: Apache-2.0 */
#include "rungs.h"

#include <stddef.h>

const char *sl_rungs_move_name(enum sl_rungs_move move)
{
        static const char *const names[] = {
#define X(id, name) [SL_RUNGS_##id] = name,
                SL_RUNGS_MOVES(X)
#undef X
        };

        return names[move];
}

static bool is_faster(const struct sl_rung *a, const struct sl_rung *b)
{
        return a->rate > 0 && b->rate > 0 ? a->rate > b->rate : a->accuracy < b->accuracy;
}

/* NULL: none does. */
static const struct sl_rung *fastest_that_lacks(const struct sl_rung *rungs, uint32_t n)
{
        const struct sl_rung *fastest = NULL;

        for (uint32_t i = 0; i < n; i++)
                if (rungs[i].serves && rungs[i].lacks && (!fastest || is_faster(&rungs[i], fastest)))
                        fastest = &rungs[i];
        return fastest;
}

static bool has_spare(const struct sl_rung *rungs, uint32_t n, const struct sl_rung *lacking)
{
        for (uint32_t i = 0; i < n; i++)
                if (rungs[i].serves && !rungs[i].lacks && is_faster(&rungs[i], lacking))
                        return true;
        return false;
}

static double greatest_accuracy(const struct sl_rung *rungs, uint32_t n)
{
        double greatest = -1;

        for (uint32_t i = 0; i < n; i++)
                if (rungs[i].serves && rungs[i].accuracy > greatest)
                        greatest = rungs[i].accuracy;
        return greatest;
}

static double required_of_all(const struct sl_rung *rungs, uint32_t n)
{
        double sum = 0;

        for (uint32_t i = 0; i < n; i++)
                sum += rungs[i].serves ? rungs[i].required : 0;
        return sum;
}

/* May it come for @lacking; NULL: as none lacks? */
static bool will_do(const struct sl_rung *rung, const struct sl_rung *lacking, double accuracy, double required)
{
        if (rung->serves || rung->waits)
                return false;
        return lacking ? is_faster(rung, lacking) : rung->accuracy > accuracy && rung->rate > 0 && rung->rate >= required;
}

enum sl_rungs_move sl_rungs_next(const struct sl_rung *rungs, uint32_t n, uint32_t *ret_rung)
{
        const struct sl_rung *lacking = fastest_that_lacks(rungs, n);
        double accuracy = greatest_accuracy(rungs, n), required = required_of_all(rungs, n);
        uint32_t best = n;

        for (uint32_t i = 0; i < n; i++)
                if (rungs[i].comes)
                        return SL_RUNGS_STAY;
        if (accuracy < 0 || (lacking && has_spare(rungs, n, lacking)))
                return SL_RUNGS_STAY;
        for (uint32_t i = 0; i < n; i++)
                if (will_do(&rungs[i], lacking, accuracy, required) && (best == n || rungs[i].accuracy > rungs[best].accuracy))
                        best = i;
        if (best == n)
                return SL_RUNGS_STAY;
        *ret_rung = best;
        return lacking ? SL_RUNGS_FASTER : SL_RUNGS_ACCURATE;
}
