/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generator against a server of known service time, in virtual time: what it measures is what the theory of queues says, and no
 * stall of the server hides.
 */
#include "generator.h"

#include "mix.h"
#include "simulated.h"
#include "verdict.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SECOND     1000000000ull
#define SERVICE_NS 1000000ull

static const uint32_t one_sample[] = {1};

struct bed {
        struct simulated *server;
        struct sl_load_target target;
        struct sl_mix *mix;
        struct sl_generator_options options;
        struct sl_tally tally;
};

static struct bed set_up(enum sl_arrivals_kind kind, double rate, uint64_t seconds)
{
        struct bed bed = {.server = calloc(1, sizeof(*bed.server))};

        cr_assert_not_null(bed.server);
        bed.server->service_ns = SERVICE_NS;
        bed.server->now_ns = 5 * SECOND; /* a clock that does not begin at 0 */
        bed.target = simulated_target(bed.server);
        cr_assert_eq(sl_mix_new((const double[]){1}, 1, &bed.mix), 0);
        bed.options = (struct sl_generator_options){
                .schedule = {.arrivals = {.kind = kind, .rate = rate, .burst = 10, .seed = 1},
                        .mix = bed.mix,
                        .samples = one_sample},
                .in_flight = 10000,
                .start_ns = 6 * SECOND,
                .until_ns = (6 + seconds) * SECOND,
                .give_up_ns = (6 + 2 * seconds) * SECOND,
        };
        return bed;
}

static void run(struct bed *bed, uint64_t objective_ns)
{
        const struct sl_tally_options options = {
                .from_ns = bed->options.start_ns, .until_ns = bed->options.until_ns, .objective_ns = objective_ns, .n_models = 1};

        cr_assert_eq(sl_tally_init(&bed->tally, &options), 0);
        cr_assert_eq(sl_generator_run(&bed->options, &bed->target, &bed->tally), 0);
}

static void tear_down(struct bed *bed)
{
        sl_tally_deinit(&bed->tally);
        sl_mix_free(bed->mix);
        free(bed->server);
}

/* Pollaczek and Khinchine: a service time D at the load rho waits D rho / (2 (1 - rho)) on average. */
Test(generator, poisson_arrivals_wait_as_the_theory_of_m_d_1_says)
{
        static const double loads[] = {0.3, 0.5, 0.7, 0.8, 0.9};

        for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
                struct bed bed = set_up(SL_ARRIVALS_POISSON, loads[i] * 1000, 2000);
                double expected = SERVICE_NS * (1 + loads[i] / (2 * (1 - loads[i]))), got;

                run(&bed, 0);
                got = sl_latencies_mean(&bed.tally.total);
                cr_expect_float_eq(got, expected, 0.05 * expected, "load %g: %g instead of %g", loads[i], got, expected);
                tear_down(&bed);
        }
}

/* Erlang: P(W <= t) = (1 - rho) sum over k of (l (k D - t))^k / k! exp(-l (k D - t)), k from 0 to t/D. */
static double wait_cdf(double load, double t)
{
        double sum = 0;

        for (int k = 0; k <= (int)t; k++) {
                double x = load * (k - t), term = 1;

                for (int j = 1; j <= k; j++)
                        term *= x / j;
                sum += term * exp(-x);
        }
        return (1 - load) * sum;
}

Test(generator, the_distribution_of_waits_is_erlangs)
{
        const double load = 0.7;
        struct bed bed = set_up(SL_ARRIVALS_POISSON, load * 1000, 2000);

        run(&bed, 0);
        for (double t = 0; t < 8; t += 0.5) {
                uint64_t limit_ns = (uint64_t)((1 + t) * SERVICE_NS);
                double got = 1 - (double)sl_latencies_above(&bed.tally.total, limit_ns) / (double)bed.tally.answered;

                cr_expect_float_eq(got, wait_cdf(load, t), 0.005, "P(W <= %g D): %g instead of %g", t, got, wait_cdf(load, t));
        }
        tear_down(&bed);
}

Test(generator, constant_arrivals_below_the_capacity_never_wait)
{
        struct bed bed = set_up(SL_ARRIVALS_CONSTANT, 900, 10);

        run(&bed, 0);
        cr_expect_eq(bed.tally.total.least, SERVICE_NS);
        cr_expect_eq(bed.tally.total.most, SERVICE_NS);
        cr_expect_float_eq((double)bed.tally.answered, 9000, 1);
        tear_down(&bed);
}

Test(generator, a_burst_waits_for_itself)
{
        struct bed bed = set_up(SL_ARRIVALS_BURSTS, 10, 2000); /* of 10, each second */

        run(&bed, 0);
        cr_expect_float_eq(sl_latencies_at(&bed.tally.total, 0.45), 5.0 * SERVICE_NS, 0.1 * SERVICE_NS);
        cr_expect_float_eq(sl_latencies_mean(&bed.tally.total), 5.5 * SERVICE_NS, 0.3 * SERVICE_NS);
        tear_down(&bed);
}

/* Little: n in flight at a capacity of 1/D are answered after n D. */
Test(generator, a_closed_loop_keeps_n_in_flight)
{
        static const uint32_t depths[] = {1, 2, 8, 100};

        for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
                struct bed bed = set_up(SL_ARRIVALS_POISSON, 1, 10);

                bed.options.closed = true;
                bed.options.in_flight = depths[i];
                run(&bed, 0);
                cr_expect_eq(bed.server->most_in_flight, depths[i]);
                cr_expect_float_eq((double)bed.tally.answered_in_time, 10 * 1000, 1);
                cr_expect_float_eq(
                        sl_latencies_at(&bed.tally.total, 0.5), (double)(depths[i] * SERVICE_NS), 0.002 * depths[i] * SERVICE_NS);
                tear_down(&bed);
        }
}

/* A server that stalls for a second: who counts from when a request was due sees all that came meanwhile, a closed loop sees one.
 */
Test(generator, no_stall_is_omitted)
{
        struct bed open = set_up(SL_ARRIVALS_CONSTANT, 100, 10), closed = set_up(SL_ARRIVALS_CONSTANT, 100, 10);

        open.server->stall_from_ns = closed.server->stall_from_ns = 8 * SECOND;
        open.server->stall_until_ns = closed.server->stall_until_ns = 9 * SECOND;
        run(&open, 0);
        closed.options.closed = true;
        closed.options.in_flight = 1;
        run(&closed, 0);
        cr_expect_geq(sl_latencies_above(&open.tally.total, 10 * SERVICE_NS), 99);
        cr_expect_float_eq(sl_latencies_at(&open.tally.total, 0.99), 0.9e9, 0.05e9);
        cr_expect_eq(sl_latencies_above(&closed.tally.total, 10 * SERVICE_NS), 1);
        cr_expect_float_eq(sl_latencies_at(&closed.tally.total, 0.99), SERVICE_NS, SERVICE_NS / 512.0);
        tear_down(&open);
        tear_down(&closed);
}

/* The same with few places in flight, where most of the requests cannot even be sent during the stall. */
Test(generator, what_waits_for_a_place_counts_from_when_it_was_due)
{
        struct bed few = set_up(SL_ARRIVALS_CONSTANT, 100, 10), many = set_up(SL_ARRIVALS_CONSTANT, 100, 10);
        struct sl_verdict verdict;

        few.server->stall_from_ns = many.server->stall_from_ns = 8 * SECOND;
        few.server->stall_until_ns = many.server->stall_until_ns = 9 * SECOND;
        few.options.in_flight = 4;
        run(&few, 0);
        run(&many, 0);
        for (double share = 0.5; share < 1; share += 0.01)
                cr_expect_float_eq(
                        sl_latencies_at(&few.tally.total, share), sl_latencies_at(&many.tally.total, share), 2.0 * SERVICE_NS);
        cr_expect_gt(few.tally.blocked, 90);
        sl_verdict_of(&few.tally, false, &verdict);
        cr_expect(!verdict.valid, "a load that had to wait for places was called open");
        sl_verdict_of(&many.tally, false, &verdict);
        cr_expect(verdict.valid, "%s", verdict.reasons[0]);
        tear_down(&few);
        tear_down(&many);
}

Test(generator, who_cannot_send_in_time_is_refused_as_invalid)
{
        struct bed bed = set_up(SL_ARRIVALS_POISSON, 500, 10);
        struct sl_verdict verdict;

        bed.server->service_ns = 1000;
        bed.server->submit_ns = 1500000; /* 667 a second at most */
        run(&bed, 0);
        sl_verdict_of(&bed.tally, false, &verdict);
        cr_assert(!verdict.valid);
        cr_expect(strstr(verdict.reasons[0], "the generator was late"), "%s", verdict.reasons[0]);
        tear_down(&bed);
}

Test(generator, a_saturated_server_is_no_valid_open_run)
{
        struct bed bed = set_up(SL_ARRIVALS_POISSON, 1500, 10);
        struct sl_verdict verdict;

        run(&bed, 20 * SERVICE_NS);
        sl_verdict_of(&bed.tally, false, &verdict);
        cr_assert(!verdict.valid);
        cr_expect(strstr(verdict.reasons[0], "did not keep up"), "%s", verdict.reasons[0]);
        cr_expect_float_eq((double)bed.tally.answered_in_time, 10000, 10, "throughput counts what was answered in the time");
        cr_expect_gt(bed.tally.violations, bed.tally.due / 2);
        tear_down(&bed);
}

Test(generator, what_is_given_up_is_a_violation_and_makes_the_run_invalid)
{
        struct bed bed = set_up(SL_ARRIVALS_CONSTANT, 1000, 10);
        struct sl_verdict verdict;

        bed.server->stall_from_ns = 10 * SECOND;
        bed.server->stall_until_ns = 60 * SECOND;
        bed.options.in_flight = 10;
        run(&bed, 100 * SERVICE_NS);
        cr_expect_eq(bed.tally.due, bed.tally.answered + bed.tally.unsent);
        cr_expect_float_eq((double)bed.tally.unsent, 5990, 20);
        cr_expect_geq(bed.tally.violations, bed.tally.unsent);
        sl_verdict_of(&bed.tally, false, &verdict);
        cr_expect(!verdict.valid);
        tear_down(&bed);
}

Test(generator, stages_sum_up_to_the_latency)
{
        struct bed bed = set_up(SL_ARRIVALS_POISSON, 800, 100);
        double sum = 0;

        run(&bed, 0);
        for (int i = 0; i < SL_LOAD_STAGES_N; i++) {
                cr_expect_eq(bed.tally.stages[i].n, bed.tally.total.n);
                sum += sl_latencies_mean(&bed.tally.stages[i]);
        }
        cr_expect_float_eq(sum, sl_latencies_mean(&bed.tally.total), 1);
        cr_expect_eq(sl_latencies_mean(&bed.tally.stages[SL_LOAD_COMPUTING]), SERVICE_NS);
        tear_down(&bed);
}

Test(generator, what_was_due_while_warming_up_does_not_count)
{
        struct bed bed = set_up(SL_ARRIVALS_CONSTANT, 100, 10);
        const struct sl_tally_options options = {.from_ns = 8 * SECOND, .until_ns = 16 * SECOND, .n_models = 1};

        cr_assert_eq(sl_tally_init(&bed.tally, &options), 0);
        cr_assert_eq(sl_generator_run(&bed.options, &bed.target, &bed.tally), 0);
        cr_expect_eq(bed.tally.due, 800);
        cr_expect_eq(bed.tally.answered, 800);
        tear_down(&bed);
}

Test(generator, so_many_requests_and_no_more_are_sent)
{
        struct bed bed = set_up(SL_ARRIVALS_POISSON, 1e9, 10);

        bed.options.requests = 1234;
        run(&bed, 0);
        cr_expect_eq(bed.server->n_submitted, 1234);
        cr_expect_eq(bed.tally.answered, 1234);
        tear_down(&bed);
}

Test(generator, failures_are_told_apart)
{
        static const struct {
                int status;
                bool valid;
        } cases[] = {{-EBUSY, true}, {-ETIME, true}, {-EDQUOT, true}, {-EIO, false}};

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct bed bed = set_up(SL_ARRIVALS_CONSTANT, 500, 10);
                struct sl_verdict verdict;

                bed.server->fail_every = 10;
                bed.server->status = cases[i].status;
                run(&bed, 50 * SERVICE_NS);
                cr_expect_eq(bed.tally.violations, 499);
                cr_expect_eq(bed.tally.answered, 4500);
                sl_verdict_of(&bed.tally, false, &verdict);
                cr_expect_eq(verdict.valid, cases[i].valid, "%d", cases[i].status);
                tear_down(&bed);
        }
}
