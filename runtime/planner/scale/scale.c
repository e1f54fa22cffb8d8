/* SPDX-License-Identifier: Apache-2.0 */
#include "scale.h"

#include <stddef.h>

double sl_scale_capacity(const struct sl_scale_problem *problem, const struct sl_scale_need *need, const int32_t *change)
{
        double rate = 0;

        for (uint32_t k = need->first; k < need->first + need->n; k++)
                if (sl_scale_suits(need, &problem->kinds[k]))
                        rate += problem->kinds[k].rate * ((double)problem->kinds[k].n + (change ? change[k] : 0));
        return rate;
}

double sl_scale_cost(const struct sl_scale_problem *problem, const int32_t *change)
{
        double cost = 0;

        for (uint32_t k = 0; k < problem->n_kinds; k++) {
                const struct sl_scale_kind *kind = &problem->kinds[k];

                cost += change[k] * (kind->cost + (change[k] > 0 ? problem->lambda * kind->load_s : 0));
        }
        return cost;
}

double sl_scale_price(const struct sl_scale_problem *problem, const int32_t *change)
{
        double price = 0;

        for (uint32_t k = 0; k < problem->n_kinds; k++)
                price += problem->kinds[k].cost * ((double)problem->kinds[k].n + (change ? change[k] : 0));
        return price;
}
