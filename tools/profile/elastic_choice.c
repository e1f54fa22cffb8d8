/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic_choice.h"

#include <stdlib.h>

#define CONFIGURATIONS_MAX 202u /* of a load of 32 */

struct estimated {
        struct sl_ebird_configuration configuration;
        double ns;
};

uint32_t elastic_workers(const struct sl_ebird_configuration *configuration, uint32_t ret_sizes[ELASTIC_WORKERS_MAX])
{
        uint32_t n = 0;

        for (uint32_t size = SL_EBIRD_SIZES; size-- > 0;)
                for (uint32_t i = 0; i < configuration->workers[size] && n < ELASTIC_WORKERS_MAX; i++)
                        ret_sizes[n++] = size;
        return n;
}

double elastic_estimate_ns(
        const double alone_ns[SL_EBIRD_SIZES], uint32_t n_cores, const struct sl_ebird_configuration *configuration)
{
        uint32_t sizes[ELASTIC_WORKERS_MAX], n = elastic_workers(configuration, sizes);
        double sum_ns = 0;

        for (uint32_t core = 0; core < n_cores && core < n; core++) {
                uint32_t sharing = (n - core + n_cores - 1) / n_cores, last = core + (sharing - 1) * n_cores;
                double at_ns = 0, done_ns = 0;

                /* The shortest of the core ends first. */
                for (uint32_t k = 0; k < sharing; k++) {
                        double ns = alone_ns[sizes[last - k * n_cores]];

                        at_ns += (ns - done_ns) * (sharing - k);
                        done_ns = ns;
                        sum_ns += at_ns;
                }
        }
        return n ? sum_ns / n : 0;
}

static int by_estimate(const void *a, const void *b)
{
        const struct estimated *one = a, *other = b;

        return (one->ns > other->ns) - (one->ns < other->ns);
}

uint32_t elastic_candidates(const double alone_ns[SL_EBIRD_SIZES], uint32_t n_cores, uint32_t load,
        struct sl_ebird_configuration *ret_candidates, uint32_t max, uint32_t *ret_all)
{
        struct sl_ebird_configuration all[CONFIGURATIONS_MAX];
        struct estimated ranked[CONFIGURATIONS_MAX];
        uint32_t n = sl_ebird_configurations(load, all, CONFIGURATIONS_MAX);

        *ret_all = n;
        n = n < CONFIGURATIONS_MAX ? n : CONFIGURATIONS_MAX;
        for (uint32_t i = 0; i < n; i++)
                ranked[i] = (struct estimated){.configuration = all[i], .ns = elastic_estimate_ns(alone_ns, n_cores, &all[i])};
        qsort(&ranked[1], n - 1, sizeof(*ranked), by_estimate); /* the first of all is that of one worker */
        n = n < max ? n : max;
        for (uint32_t i = 0; i < n; i++)
                ret_candidates[i] = ranked[i].configuration;
        return n;
}
