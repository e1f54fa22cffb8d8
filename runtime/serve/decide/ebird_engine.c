/* SPDX-License-Identifier: Apache-2.0 */
#include "ebird_engine.h"

#include <stdbool.h>

/* Of 32 there are 202. */
#define CONFIGURATIONS_MAX 256u

static const struct sl_ebird_configuration lowest = {{1, 1}};

uint32_t sl_ebird_total(const struct sl_ebird_configuration *configuration)
{
        uint32_t total = 0;

        for (uint32_t i = 0; i < SL_EBIRD_SIZES; i++)
                total += configuration->workers[i] << i;
        return total;
}

/* The next one that has the same total: a worker is taken off the smallest size that can give one, what it frees goes to the sizes
 * below, the largest first. */
static bool configuration_next(struct sl_ebird_configuration *c)
{
        uint32_t free = c->workers[0], i = 1;

        while (i < SL_EBIRD_SIZES && !c->workers[i])
                i++;
        if (i == SL_EBIRD_SIZES)
                return false;
        free += 1u << i;
        c->workers[i]--;
        c->workers[0] = 0;
        while (i-- > 0) {
                c->workers[i] = free >> i;
                free -= c->workers[i] << i;
        }
        return true;
}

static struct sl_ebird_configuration configuration_first(uint32_t total)
{
        struct sl_ebird_configuration c = {{0}};

        for (uint32_t i = SL_EBIRD_SIZES; i-- > 0;) {
                c.workers[i] = total >> i;
                total -= c.workers[i] << i;
        }
        return c;
}

uint32_t sl_ebird_configurations(uint32_t total, struct sl_ebird_configuration *ret_configurations, uint32_t max)
{
        struct sl_ebird_configuration c = configuration_first(total);
        uint32_t n = 0;

        do {
                if (n < max)
                        ret_configurations[n] = c;
                n++;
        } while (configuration_next(&c));
        return n;
}

void sl_ebird_search(sl_ebird_cost_fn *cost, void *context, struct sl_ebird_engine *ret_engine)
{
        struct sl_ebird_configuration all[CONFIGURATIONS_MAX];

        for (uint32_t row = 0; row < SL_EBIRD_ROWS; row++) {
                uint32_t n = sl_ebird_configurations(sl_ebird_load(row), all, CONFIGURATIONS_MAX);
                double best = 0;

                for (uint32_t i = 0; i < n; i++) {
                        double ns = cost(context, &all[i]);

                        if (i && ns >= best)
                                continue;
                        best = ns;
                        ret_engine->rows[row] = all[i];
                }
        }
}

struct sl_ebird_configuration sl_ebird_workers(const struct sl_ebird_engine *engine)
{
        struct sl_ebird_configuration workers = lowest;

        for (uint32_t row = 0; row < SL_EBIRD_ROWS; row++)
                for (uint32_t i = 0; i < SL_EBIRD_SIZES; i++)
                        if (engine->rows[row].workers[i] > workers.workers[i])
                                workers.workers[i] = engine->rows[row].workers[i];
        return workers;
}

struct sl_ebird_configuration sl_ebird_row(const struct sl_ebird_engine *engine, uint64_t pending)
{
        for (uint32_t row = SL_EBIRD_ROWS; row-- > 0;)
                if (pending >= sl_ebird_load(row))
                        return engine->rows[row];
        return lowest;
}
