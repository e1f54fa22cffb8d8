/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define MS 1000000ull

/* Requests from a dice, and what became of them. */
struct load {
        const struct sl_sim_options *options;
        struct sl_sim_bound bound;
        uint32_t dice, n, n_max, gap_ns, deadline_ms, samples_max;
        uint64_t at_ns, n_ended, late, sum_ns, max_ns, bound_sum_ns, bound_max_ns, last_number, log, log_at_once;
        bool in_order;
};

static uint32_t roll(struct load *load, uint32_t sides)
{
        load->dice = load->dice * 1664525u + 1013904223u;
        return (uint32_t)(((uint64_t)(load->dice >> 8) * sides) >> 24);
}

static bool next(void *context, struct sl_sim_request *ret_request)
{
        struct load *load = context;

        if (load->n == load->n_max)
                return false;
        load->n++;
        load->at_ns += load->gap_ns ? roll(load, 2 * load->gap_ns) : 0;
        *ret_request = (struct sl_sim_request){.arrival_ns = load->at_ns,
                .samples = 1 + (load->samples_max > 1 ? roll(load, load->samples_max) : 0),
                .deadline_ns = load->deadline_ms ? load->at_ns + load->deadline_ms * MS : 0};
        uint64_t least_ns = sl_sim_bound_ns(&load->bound, load->options, ret_request);
        load->bound_sum_ns += least_ns;
        load->bound_max_ns = least_ns > load->bound_max_ns ? least_ns : load->bound_max_ns;
        return true;
}

static void ended(void *context, const struct sl_sim_end *end)
{
        struct load *load = context;
        uint64_t ns = end->end_ns - end->request.arrival_ns;

        load->in_order &= load->n_ended == 0 || end->number > load->last_number;
        load->last_number = end->number;
        load->n_ended++;
        load->late += end->status == -ETIME;
        load->sum_ns += ns;
        load->max_ns = ns > load->max_ns ? ns : load->max_ns;
}

static void decided(void *context, const struct sl_sim_decided *decided)
{
        struct load *load = context;
        uint64_t words[] = {decided->now_ns, decided->priority, decided->worker, decided->decision.samples};

        for (int i = 0; i < 4; i++)
                load->log = (load->log ^ words[i]) * 0x100000001b3u;
        if (decided->now_ns == 0)
                load->log_at_once = load->log;
}

/* ResNet152 of the E2bird paper, table 1, and below a batch of 4 in proportion. */
static struct sl_sim_options options_of(enum sl_policy_id policy)
{
        struct sl_sim_options options = {
                .device = {.latency_ns = {8 * MS, 11 * MS, 17300000, 29200000, 49500000, 93700000}, .corun = 1.8},
                .batching = {.policy = policy, .latency_ms = 100},
                .n_workers = 7,
                .batch_max = {1, 2, 4, 4, 8, 8, 16},
                .slice_samples = 65536,
                .queue_requests = 4096};

        options.batching.engine = (struct sl_ebird_engine){{{{0, 0, 1}}, {{0, 0, 0, 1}}, {{0, 0, 2, 1}}, {{0, 0, 0, 2, 1}}}};
        if (policy == SL_POLICY_opt_wait || policy == SL_POLICY_static || policy == SL_POLICY_triton)
                options.batching.delay_us = 30000;
        return options;
}

static struct load run(const struct sl_sim_options *options, struct load load)
{
        struct sl_sim *sim;

        load.options = options;
        load.in_order = true;
        sl_sim_bound_init(&load.bound, options);
        cr_assert_eq(sl_sim_new(options, &(struct sl_sim_calls){&load, next, ended, decided}, &sim), 0);
        sl_sim_run(sim);
        sl_sim_free(sim);
        return load;
}

Test(sim, a_worker_alone_takes_what_the_table_says)
{
        struct sl_sim_options options = options_of(SL_POLICY_single);
        struct load load;

        options.n_workers = 1;
        load = run(&options, (struct load){.n_max = 3});
        cr_expect_eq(load.max_ns, 24 * MS);
        cr_expect_eq(load.sum_ns, (8 + 16 + 24) * MS);
        options.n_workers = 2;
        load = run(&options, (struct load){.n_max = 2});
        cr_expect_eq(
                load.max_ns, (uint64_t)(1.8 * 8) * MS + 400000, "two beside each other take 1.8 times as long: %lu", load.max_ns);
}

/* Batches of one take 8 ms, 6 of them launches: four fit beside each other, of six all are slower by a half. */
Test(sim, small_batches_fill_each_others_launches)
{
        struct sl_sim_options options = options_of(SL_POLICY_single);
        struct load load;

        options.device.corun = 1;
        options.device.launch_ns = 6 * MS;
        for (uint32_t n = 1; n <= 6; n++) {
                options.n_workers = n;
                for (uint32_t i = 0; i < n; i++)
                        options.batch_max[i] = 1;
                load = run(&options, (struct load){.n_max = n});
                cr_expect_float_eq((double)load.max_ns, (n > 4 ? 2.0 * n : 8.0) * MS, 10, "%u: %lu", n, load.max_ns);
        }
        options.device.corun = 1.1;
        load = run(&options, (struct load){.n_max = 6});
        cr_expect_float_eq((double)load.max_ns, 12.0 * 1.5 * MS, 10, "%lu", load.max_ns);
}

/* Four requests at once, before anything has ended: how jobs slow each other down here is not known to a runtime either. */
Test(sim, no_policy_is_told_of_a_device_what_a_runtime_is_not)
{
        static const struct {
                double corun;
                uint64_t launch_ns;
        } devices[] = {{1, 0}, {1.8, 0}, {3, 0}, {1, 6 * MS}, {1.2, 4 * MS}};

        for (uint32_t policy = 0; policy < SL_POLICY_COUNT; policy++) {
                uint64_t log = 0;

                for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
                        struct sl_sim_options options = options_of((enum sl_policy_id)policy);
                        struct load load;

                        options.n_workers = 4;
                        for (uint32_t w = 0; w < 4; w++)
                                options.batch_max[w] = 8;
                        options.device.corun = devices[i].corun;
                        options.device.launch_ns = devices[i].launch_ns;
                        load = run(&options, (struct load){.n_max = 4});
                        log = i ? log : load.log_at_once;
                        cr_expect_eq(load.log_at_once, log, "%s, slower by %g, %lu ns of launches", sl_policies[policy].name,
                                devices[i].corun, devices[i].launch_ns);
                }
        }
}

Test(sim, a_copy_engine_copies_while_others_compute)
{
        struct sl_sim_options options = options_of(SL_POLICY_single);
        struct load with, without;

        options.n_workers = 2;
        options.device.at_once = 1;
        options.device.corun = 1;
        options.device.transfer_ns = 4 * MS;
        without = run(&options, (struct load){.n_max = 100});
        options.device.copy_engines = 1;
        with = run(&options, (struct load){.n_max = 100});
        cr_expect_lt(with.max_ns, without.max_ns * 3 / 4, "%lu and %lu", with.max_ns, without.max_ns);
        cr_expect_geq(with.max_ns, 800 * MS);
}

Test(sim, each_request_ends_once_whatever_the_policy_and_the_same_seed_is_the_same_run)
{
        for (uint32_t policy = 0; policy < SL_POLICY_COUNT; policy++)
                for (uint32_t seed = 1; seed <= 5; seed++) {
                        struct sl_sim_options options = options_of(policy);
                        struct load load = {.dice = seed,
                                .n_max = 2000,
                                .gap_ns = seed * 3 * (uint32_t)MS,
                                .samples_max = seed % 3 * 4,
                                .deadline_ms = seed % 2 * 300};
                        struct load first = run(&options, load), second = run(&options, load);

                        cr_expect_eq(first.n_ended, 2000, "%s: %lu", sl_policies[policy].name, first.n_ended);
                        cr_expect_eq(first.log, second.log);
                        cr_expect_eq(first.sum_ns, second.sum_ns);
                }
}

Test(sim, no_policy_beats_the_clairvoyant_bound)
{
        for (uint32_t policy = 0; policy < SL_POLICY_COUNT; policy++)
                for (uint32_t gap_ms = 1; gap_ms < 12; gap_ms += 3) {
                        struct sl_sim_options options = options_of(policy);
                        struct load load =
                                run(&options, (struct load){.dice = gap_ms, .n_max = 1000, .gap_ns = gap_ms * (uint32_t)MS});

                        cr_expect_geq(load.sum_ns, load.bound_sum_ns, "%s", sl_policies[policy].name);
                        cr_expect_geq(load.max_ns + 1000, load.bound_max_ns, "%s", sl_policies[policy].name);
                }
}

Test(sim, triton_in_order_answers_in_the_order_of_requests)
{
        struct sl_sim_options options = options_of(SL_POLICY_triton);
        struct load load = {.dice = 3, .n_max = 3000, .gap_ns = 5 * (uint32_t)MS};

        cr_expect_not(run(&options, load).in_order);
        options.batching.in_order = 1;
        cr_expect(run(&options, load).in_order);
}

Test(sim, what_cannot_be_simulated_is_refused)
{
        struct sl_sim_options options = options_of(SL_POLICY_single);
        struct sl_sim_calls calls = {0};
        struct sl_sim *sim;

        options.n_workers = SL_POLICY_WORKERS_MAX + 1;
        cr_expect_eq(sl_sim_new(&options, &calls, &sim), -EINVAL);
        options = options_of(SL_POLICY_COUNT);
        cr_expect_eq(sl_sim_new(&options, &calls, &sim), -EINVAL);
}
