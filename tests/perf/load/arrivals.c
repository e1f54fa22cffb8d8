/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrivals come at the times that their kind promises, whatever the seed, and at the same times for the same seed.
 */
#include "arrivals.h"

#include "fit.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define N 100000u

static double exponential_cdf(double value)
{
        return 1 - exp(-value);
}

static double uniform_cdf(double value)
{
        return value < 0 ? 0 : value > 1 ? 1 : value;
}

Test(arrivals, gaps_of_poisson_are_exponential)
{
        struct sl_arrivals arrivals;
        double *gaps = malloc(N * sizeof(*gaps));
        uint64_t last = 0;

        sl_arrivals_init(&arrivals, &(struct sl_arrivals_options){.kind = SL_ARRIVALS_POISSON, .rate = 1000, .seed = 7});
        for (uint32_t i = 0; i < N; i++) {
                uint64_t due_ns = sl_arrivals_next(&arrivals);

                gaps[i] = (double)(due_ns - last) * 1000 / 1e9;
                last = due_ns;
        }
        cr_expect_lt(fit_ks(gaps, N, exponential_cdf), FIT_KS_LIMIT);
        free(gaps);
}

Test(arrivals, neighbouring_gaps_of_poisson_do_not_depend_on_each_other)
{
        struct sl_arrivals arrivals;
        double last_gap = 1, sum = 0;
        uint64_t last = 0;

        sl_arrivals_init(&arrivals, &(struct sl_arrivals_options){.kind = SL_ARRIVALS_POISSON, .rate = 1e6, .seed = 8});
        for (uint32_t i = 0; i < N; i++) {
                uint64_t due_ns = sl_arrivals_next(&arrivals);
                double gap = (double)(due_ns - last) / 1e3;

                sum += (gap - 1) * (last_gap - 1);
                last_gap = gap;
                last = due_ns;
        }
        cr_expect_lt(fabs(sum / N), 3 / sqrt(N), "correlation %g", sum / N);
}

Test(arrivals, counts_of_poisson_in_equal_times_have_their_mean_as_variance)
{
        struct sl_arrivals arrivals;
        double sum = 0, squares = 0;
        const uint32_t windows = 10000;
        uint64_t due_ns;

        sl_arrivals_init(&arrivals, &(struct sl_arrivals_options){.kind = SL_ARRIVALS_POISSON, .rate = 2000, .seed = 9});
        due_ns = sl_arrivals_next(&arrivals);
        for (uint64_t window = 0; window < windows; window++) {
                double n = 0;

                for (; due_ns < (window + 1) * 10000000; due_ns = sl_arrivals_next(&arrivals))
                        n++;
                sum += n;
                squares += n * n;
        }
        double mean = sum / windows, variance = squares / windows - mean * mean;

        cr_expect_float_eq(mean, 20, 0.15);
        cr_expect_float_eq(variance / mean, 1, 3 * sqrt(2.0 / windows), "variance over mean %g", variance / mean);
}

Test(arrivals, constant_ones_do_not_drift)
{
        struct sl_arrivals arrivals;

        sl_arrivals_init(&arrivals, &(struct sl_arrivals_options){.kind = SL_ARRIVALS_CONSTANT, .rate = 3000});
        for (uint32_t i = 1; i <= 3000000; i++) {
                uint64_t due_ns = sl_arrivals_next(&arrivals);

                if (i % 3000 == 0)
                        cr_assert_float_eq((double)due_ns, i / 3000 * 1e9, 2e3);
        }
}

Test(arrivals, a_burst_comes_at_once_and_the_rate_is_kept)
{
        struct sl_arrivals arrivals;
        uint64_t due_ns = 0;

        sl_arrivals_init(
                &arrivals, &(struct sl_arrivals_options){.kind = SL_ARRIVALS_BURSTS, .rate = 1000, .burst = 16, .seed = 3});
        for (uint32_t i = 0; i < N; i++) {
                uint64_t first_ns = sl_arrivals_next(&arrivals);

                for (uint32_t k = 1; k < 16; k++)
                        cr_assert_eq(due_ns = sl_arrivals_next(&arrivals), first_ns);
        }
        cr_expect_float_eq(16.0 * N / ((double)due_ns / 1e9), 1000, 1000 * 3 / sqrt(N));
}

/* A process whose rate changes is one of rate 1 on the scale of the expected number of requests. */
Test(arrivals, diurnal_ones_follow_the_sine)
{
        const struct sl_arrivals_options options = {
                .kind = SL_ARRIVALS_DIURNAL, .rate = 1000, .period_s = 10, .swing = 0.8, .seed = 5};
        double *shares = malloc(N * sizeof(*shares));
        struct sl_arrivals arrivals;

        sl_arrivals_init(&arrivals, &options);
        for (uint32_t i = 0; i < N; i++) {
                double at = fmod((double)sl_arrivals_next(&arrivals) / 1e9, 10) / 10;

                shares[i] = at + 0.8 * (1 - cos(2 * M_PI * at)) / (2 * M_PI);
        }
        cr_expect_lt(fit_ks(shares, N, uniform_cdf), FIT_KS_LIMIT);
        free(shares);
}

Test(arrivals, spikes_have_their_height_and_length_and_the_mean_is_kept)
{
        const struct sl_arrivals_options options = {
                .kind = SL_ARRIVALS_SPIKES, .rate = 2000, .period_s = 5, .spike_times = 10, .spike_s = 0.25, .seed = 11};
        struct sl_arrivals arrivals;
        uint64_t counts[2] = {0};
        double due_s, inside_s = 0;
        const double usual = 2000 / (1 + 9 * 0.05), until_s = 200;

        sl_arrivals_init(&arrivals, &options);
        while ((due_s = (double)sl_arrivals_next(&arrivals) / 1e9) < until_s)
                counts[sl_arrivals_rate_at(&options, due_s) > 1.5 * usual]++;
        for (double at_s = 0.0005; at_s < until_s; at_s += 0.001)
                inside_s += sl_arrivals_rate_at(&options, at_s) > 1.5 * usual ? 0.001 : 0;
        cr_expect_float_eq(inside_s, until_s * 0.05, 0.1);

        const double expected[] = {usual * (until_s - inside_s), 10 * usual * inside_s};

        cr_expect_lt(fit_chi_square(counts, expected, 2), fit_chi_square_limit(2));
        cr_expect_float_eq((double)(counts[0] + counts[1]) / until_s, 2000, 2000 * 3 / sqrt(2000 * until_s));
}

Test(arrivals, a_seed_repeats_every_kind_and_another_seed_does_not)
{
        for (int kind = 0; kind < SL_ARRIVALS_N; kind++) {
                struct sl_arrivals_options options = {.kind = (enum sl_arrivals_kind)kind,
                        .rate = 500,
                        .burst = 4,
                        .period_s = 3,
                        .swing = 0.5,
                        .spike_times = 4,
                        .spike_s = 0.5,
                        .seed = 1};
                struct sl_arrivals one, same, other;
                uint32_t equal = 0;
                uint64_t last = 0;

                sl_arrivals_init(&one, &options);
                sl_arrivals_init(&same, &options);
                options.seed = 2;
                sl_arrivals_init(&other, &options);
                for (uint32_t i = 0; i < 1000; i++) {
                        uint64_t due_ns = sl_arrivals_next(&one);

                        cr_assert_geq(due_ns, last);
                        cr_assert_eq(due_ns, sl_arrivals_next(&same), "%s", sl_arrivals_name(options.kind));
                        equal += due_ns == sl_arrivals_next(&other);
                        last = due_ns;
                }
                cr_expect_eq(equal, kind == SL_ARRIVALS_CONSTANT ? 1000 : 0, "%s", sl_arrivals_name(options.kind));
        }
}

Test(arrivals, kinds_are_known_by_their_names)
{
        enum sl_arrivals_kind kind;

        for (int i = 0; i < SL_ARRIVALS_N; i++) {
                cr_assert_eq(sl_arrivals_named(sl_arrivals_name((enum sl_arrivals_kind)i), &kind), 0);
                cr_expect_eq(kind, i);
        }
        cr_expect_eq(sl_arrivals_named("poison", &kind), -EINVAL);
}
