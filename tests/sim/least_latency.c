/* SPDX-License-Identifier: Apache-2.0 */
#include "least_latency.h"
#include "sim.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define MS       1000000ull
#define REQUESTS 300u
#define CASES    400u

static const struct sl_sim_options options_flat = {.device = {.latency_ns = {10 * MS, 10 * MS, 10 * MS}},
        .n_workers = 1,
        .batch_max = {4},
        .slice_samples = 64,
        .queue_requests = 1024};

Test(least_latency, a_lone_request_takes_what_it_takes_alone)
{
        const uint64_t arrivals[] = {5 * MS};

        cr_expect_float_eq((double)sl_sim_least_latency_ns(&options_flat, arrivals, 1, 1), 10.0 * MS, 2);
        cr_expect_eq(sl_sim_least_latency_ns(&options_flat, arrivals, 0, 1), 0);
}

/* Batches of 4 take 10 ms: 8 at once are done after 20, and the earlier half of them after 10. */
Test(least_latency, what_comes_at_once_is_done_at_the_rate_of_the_largest_batch)
{
        const uint64_t arrivals[8] = {0};

        cr_expect_float_eq((double)sl_sim_least_latency_ns(&options_flat, arrivals, 8, 1), 20.0 * MS, 2);
        cr_expect_float_eq((double)sl_sim_least_latency_ns(&options_flat, arrivals, 8, 0.5), 10.0 * MS, 2);
}

/* T(b) = 8 + b ms. One comes each 3 ms: batches of 4, whose rate is 1 in 3 ms, take 12. */
Test(least_latency, a_load_that_needs_batches_takes_as_long_as_they_do)
{
        struct sl_sim_options options = {.device = {.latency_ns = {9 * MS, 10 * MS, 12 * MS, 16 * MS, 24 * MS}, .corun = 2},
                .n_workers = 4,
                .batch_max = {16}};
        uint64_t arrivals[2000];

        for (uint32_t i = 0; i < 2000; i++)
                arrivals[i] = i * 3 * MS;
        uint64_t least_ns = sl_sim_least_latency_ns(&options, arrivals, 2000, 1);
        cr_expect(least_ns > 11 * MS && least_ns <= 12 * MS + 1, "%lu", least_ns);
}

/*
 * k requests at once, more workers than that, batches of one: none is done before all are, beside each other. With pairs that cost
 * e each takes S(k) = 1 + (k - 1) e times as long; where a share of its time is the device's, k times that share. The bound is
 * reached, so that it may not be lower either.
 */
Test(least_latency, what_comes_at_once_to_more_workers_than_it_needs_is_computed_beside_each_other)
{
        for (uint32_t k = 2; k <= 7; k++)
                for (uint32_t i = 1; i <= 9; i++) {
                        struct sl_sim_options options = {
                                .device = {.latency_ns = {10 * MS}, .corun = 1 + i / 10.0}, .n_workers = 8};
                        const uint64_t arrivals[8] = {0};
                        double share = i / 10.0;

                        for (uint32_t w = 0; w < 8; w++)
                                options.batch_max[w] = 1;
                        cr_expect_float_eq((double)sl_sim_least_latency_ns(&options, arrivals, k, 1),
                                10.0 * MS * (1 + (k - 1) * i / 10.0), 10, "%u at once, e of 0.%u", k, i);
                        options.device.corun = 1;
                        options.device.launch_ns = (10 - i) * MS;
                        cr_expect_float_eq((double)sl_sim_least_latency_ns(&options, arrivals, k, 1),
                                10.0 * MS * (k * share > 1 ? k * share : 1), 10, "%u at once, a share of 0.%u", k, i);
                }
}

struct load {
        const uint64_t *arrivals;
        uint32_t n, at;
        uint64_t took_ns[REQUESTS];
};

static bool next(void *context, struct sl_sim_request *ret_request)
{
        struct load *load = context;

        if (load->at == load->n)
                return false;
        *ret_request = (struct sl_sim_request){.arrival_ns = load->arrivals[load->at++], .samples = 1};
        return true;
}

static void ended(void *context, const struct sl_sim_end *end)
{
        ((struct load *)context)->took_ns[end->number] = end->end_ns - end->request.arrival_ns;
}

static int ascending(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

static uint32_t draw(uint64_t *seed, uint32_t n)
{
        *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)((*seed >> 32) % n);
}

static struct sl_sim_options options_draw(uint64_t *seed)
{
        uint64_t launch = draw(seed, 10) * MS, sample = MS / 10 + draw(seed, 3 * MS);
        struct sl_sim_options options = {
                .device = {.launch_ns = draw(seed, 2) ? launch : 0, .corun = 1 + 0.01 * draw(seed, 130), .at_once = draw(seed, 3)},
                .batching = {.policy = draw(seed, SL_POLICY_COUNT), .delay_us = draw(seed, 5000), .latency_ms = 20},
                .n_workers = 1 + draw(seed, 6),
                .slice_samples = 64,
                .queue_requests = 1024};

        options.batching.engine = (struct sl_ebird_engine){{{{0, 0, 1}}, {{0, 0, 0, 1}}, {{0, 0, 2, 1}}, {{0, 0, 0, 2, 1}}}};
        for (uint32_t i = 0; i < 6; i++)
                options.device.latency_ns[i] = launch + (sample << i);
        for (uint32_t i = 0; i < options.n_workers; i++)
                options.batch_max[i] = 1u << draw(seed, 6);
        return options;
}

/* Whatever the policy, the table and the load. 1 us: times of events are rounded up. */
Test(least_latency, no_policy_is_faster)
{
        const double shares[] = {0.5, 0.9, 0.99, 1};

        for (uint64_t i = 0; i < CASES; i++) {
                uint64_t seed = i;
                struct sl_sim_options options = options_draw(&seed);
                uint64_t arrivals[REQUESTS] = {0};
                uint32_t gap = 1 + draw(&seed, 8 * MS);
                struct load load = {arrivals, REQUESTS, 0, {0}};
                struct sl_sim *sim;

                for (uint32_t k = 1; k < REQUESTS; k++)
                        arrivals[k] = arrivals[k - 1] + draw(&seed, gap);
                cr_assert_eq(sl_sim_new(&options, &(struct sl_sim_calls){&load, next, ended, NULL}, &sim), 0);
                sl_sim_run(sim);
                sl_sim_free(sim);
                qsort(load.took_ns, REQUESTS, sizeof(load.took_ns[0]), ascending);
                for (uint32_t k = 0; k < 4; k++) {
                        uint64_t took_ns = load.took_ns[(uint32_t)(shares[k] * REQUESTS) - 1];
                        uint64_t least_ns = sl_sim_least_latency_ns(&options, arrivals, REQUESTS, shares[k]);

                        cr_expect_geq(took_ns + 1000, least_ns, "case %lu, %s: %g of all in %lu, bound %lu", i,
                                sl_policies[options.batching.policy].name, shares[k], took_ns, least_ns);
                }
        }
}
