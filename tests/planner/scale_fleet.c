/* SPDX-License-Identifier: Apache-2.0 */
#include "scale_fleet.h"

#include "base/split_mix.h"

#include <math.h>

struct sl_scale_problem scale_problem(const struct sl_scale_need *needs, uint32_t n_needs, const struct sl_scale_kind *kinds)
{
        struct sl_scale_problem problem = {.needs = needs, .n_needs = n_needs, .kinds = kinds, .slack = 1};

        for (uint32_t i = 0; i < n_needs; i++)
                problem.n_kinds += needs[i].n;
        for (uint32_t i = 0; i < SL_SCALE_RESOURCES; i++)
                problem.resources[i].total = INFINITY;
        return problem;
}

uint32_t scale_draw(uint64_t *seed, uint32_t n)
{
        return (uint32_t)((sl_split_mix_next(seed) >> 32) * n >> 32);
}

double scale_between(uint64_t *seed, double least, double most)
{
        return least * pow(most / least, scale_draw(seed, 1001) / 1000.0);
}

static void make_kind(uint64_t *seed, struct sl_scale_kind *kind, uint32_t n_most)
{
        *kind = (struct sl_scale_kind){
                .architecture = scale_draw(seed, 2),
                .cost = scale_between(seed, 0.1, 20),
                .load_s = scale_between(seed, 0.02, 10),
                .rate = scale_between(seed, 5, 800),
                .latency_s = scale_between(seed, 0.002, 0.2),
                .accuracy = 0.5 + scale_draw(seed, 50) / 100.0,
                .resources = {1 + scale_draw(seed, 4), scale_between(seed, 1, 1000), scale_draw(seed, 2)},
                .n = scale_draw(seed, 3) ? 0 : scale_draw(seed, n_most + 1),
                .most = n_most,
        };
}

void scale_fleet(uint64_t seed, uint32_t n_needs, uint32_t n_kinds, uint32_t n_most, struct scale_fleet *ret_fleet)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < n_needs; i++) {
                ret_fleet->needs[i] = (struct sl_scale_need){.load = scale_draw(&seed, 5) ? scale_between(&seed, 1, 1000) : 0,
                        .latency_s = scale_draw(&seed, 3) ? scale_between(&seed, 0.01, 0.3) : 0,
                        .accuracy = scale_draw(&seed, 3) ? 0.5 + scale_draw(&seed, 40) / 100.0 : 0,
                        .first = n,
                        .n = n_kinds};
                for (uint32_t k = 0; k < n_kinds; k++)
                        make_kind(&seed, &ret_fleet->kinds[n++], n_most);
        }
        ret_fleet->problem = scale_problem(ret_fleet->needs, n_needs, ret_fleet->kinds);
        ret_fleet->problem.slack = 1 + scale_draw(&seed, 2) * 0.05;
        ret_fleet->problem.lambda = scale_draw(&seed, 2) ? scale_between(&seed, 0.01, 2) : 0;
        for (uint32_t i = 0; i < 3; i++) {
                double held = 0;

                for (uint32_t k = 0; k < n; k++)
                        held += ret_fleet->kinds[k].n * ret_fleet->kinds[k].resources[i];
                if (scale_draw(&seed, 2))
                        ret_fleet->problem.resources[i].total = held + scale_draw(&seed, 20) * (i == 1 ? 100 : 1);
        }
        ret_fleet->problem.resources[1].both = true;
}
