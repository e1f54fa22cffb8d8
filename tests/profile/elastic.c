/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the candidates for E-Ebird: estimates are what a clock that ticks finds for workers that share cores, the first
 * candidate is one worker, and none that is left out is better than one that is taken.
 */
#include "elastic_choice.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define CONFIGURATIONS_MAX 300u

/* Two batches cost less than twice one, as on a machine. */
static const double alone_ns[SL_EBIRD_SIZES] = {100, 150, 260, 500, 990, 1980};

/* Ticks of @tick ns; in each, a core's time is shared by those on it that have not ended. */
static double tick_through(uint32_t n_cores, const struct sl_ebird_configuration *c, double tick)
{
        double left[64], ended[64], sum = 0;
        uint32_t core[64], n = 0;
        bool some = true;

        for (int size = SL_EBIRD_SIZES - 1; size >= 0; size--)
                for (uint32_t i = 0; i < c->workers[size]; i++, n++) {
                        left[n] = alone_ns[size];
                        core[n] = n % n_cores;
                }
        for (double now = tick; some; now += tick) {
                uint32_t sharing[64] = {0};

                for (uint32_t i = 0; i < n; i++)
                        sharing[core[i]] += left[i] > 0;
                some = false;
                for (uint32_t i = 0; i < n; i++) {
                        if (left[i] <= 0)
                                continue;
                        left[i] -= tick / sharing[core[i]];
                        ended[i] = now;
                        some |= left[i] > 0;
                }
        }
        for (uint32_t i = 0; i < n; i++)
                sum += ended[i];
        return sum / n;
}

Test(profile_elastic, the_estimate_is_that_of_cores_whose_time_is_shared)
{
        static struct sl_ebird_configuration all[CONFIGURATIONS_MAX];

        for (uint32_t load = 4; load <= 32; load *= 2) {
                uint32_t n = sl_ebird_configurations(load, all, CONFIGURATIONS_MAX);

                for (uint32_t i = 0; i < n; i += load == 32 ? 7 : 1)
                        for (uint32_t cores = 1; cores <= 5; cores += 2) {
                                double wanted = tick_through(cores, &all[i], 1),
                                       found = elastic_estimate_ns(alone_ns, cores, &all[i]);

                                cr_expect_lt(fabs(found - wanted), 0.02 * wanted + 40,
                                        "load %u, configuration %u, %u cores: %g, not %g", load, i, cores, found, wanted);
                        }
        }
}

Test(profile_elastic, sizes_are_listed_largest_first)
{
        uint32_t sizes[ELASTIC_WORKERS_MAX];

        cr_assert_eq(elastic_workers(&(struct sl_ebird_configuration){{2, 0, 1, 0, 1}}, sizes), 4);
        cr_expect_eq(memcmp(sizes, (uint32_t[]){4, 2, 0, 0}, 4 * sizeof(*sizes)), 0);
        cr_expect_eq(elastic_workers(&(struct sl_ebird_configuration){{32}}, sizes), 32);
}

static bool is_in(const struct sl_ebird_configuration *list, uint32_t n, const struct sl_ebird_configuration *wanted)
{
        for (uint32_t i = 0; i < n; i++)
                if (memcmp(&list[i], wanted, sizeof(*wanted)) == 0)
                        return true;
        return false;
}

/* Of a load that has fewer than @max all are candidates. */
Test(profile_elastic, none_that_is_left_out_is_better)
{
        static struct sl_ebird_configuration all[CONFIGURATIONS_MAX], found[CONFIGURATIONS_MAX];
        const uint32_t max = 40;

        for (uint32_t load = 4; load <= 32; load *= 2) {
                uint32_t n_all, n = elastic_candidates(alone_ns, 3, load, found, max, &n_all);
                double worst = 0;

                cr_expect_eq(n_all, sl_ebird_configurations(load, all, CONFIGURATIONS_MAX));
                cr_assert_eq(n, n_all < max ? n_all : max);
                for (uint32_t i = 0; i < n; i++)
                        cr_expect_eq(sl_ebird_total(&found[i]), load);
                uint32_t sizes[ELASTIC_WORKERS_MAX];
                cr_expect_eq(elastic_workers(&found[0], sizes), 1, "the first is no single worker");
                for (uint32_t i = 1; i < n; i++)
                        worst = fmax(worst, elastic_estimate_ns(alone_ns, 3, &found[i]));
                for (uint32_t i = 0; i < n_all; i++)
                        cr_expect(is_in(found, n, &all[i]) || elastic_estimate_ns(alone_ns, 3, &all[i]) >= worst,
                                "load %u: configuration %u is left out", load, i);
        }
}
