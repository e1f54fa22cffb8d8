/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test that finds a neighbour, on job times made here: log-normal, with outliers and drift where that is said. Whether a worker
 * is disturbed is known here, as it is made so.
 */
#include "interference.h"
#include "base/split_mix.h"
#include "pace.h"
#include "rounds.h"

#include <criterion/criterion.h>
#include <math.h>

#define FACTOR     1.3
#define JOB_NS     200000.0
#define WORKERS    4u
#define WARM_JOBS  200u
#define JOBS_MOST  20u
#define QUIET_JOBS 100000.0

struct host {
        uint64_t seed;
        double noise;    /* standard deviation of the logarithm */
        double outliers; /* share of jobs that take ten times as long */
        double slow;     /* all workers, now */
        struct sl_pace pace[WORKERS];
        struct sl_interference tests[WORKERS];
        double levels[WORKERS];
        uint32_t n;
};

static double share(uint64_t *seed)
{
        return (double)(sl_split_mix_next(seed) >> 11) * 0x1p-53;
}

/* Box and Muller. */
static double normal(uint64_t *seed)
{
        double radius = sqrt(-2 * log(1 - share(seed)));

        return radius * cos(6.283185307179586 * share(seed));
}

/* A job of each worker; @factor is what the first one's neighbour costs. Return: how many states have changed, as bits of workers.
 */
static uint32_t turn(struct host *host, double factor)
{
        double levels[WORKERS], drift;
        uint32_t changed = 0;

        for (uint32_t w = 0; w < host->n; w++)
                levels[w] = host->levels[w];
        drift = sl_pace_drift(levels, host->n);
        for (uint32_t w = 0; w < host->n; w++) {
                double ns = JOB_NS * host->slow * (w ? 1 : factor) * exp(host->noise * normal(&host->seed)), x;

                if (share(&host->seed) < host->outliers)
                        ns *= 10;
                if (!sl_pace_ratio(&host->pace[w], 1, (uint64_t)ns, drift, !host->tests[w].slowed, &x))
                        continue;
                host->levels[w] = sl_pace_level(host->levels[w], x);
                if (sl_interference_learn(&host->tests[w], x - drift))
                        changed |= 1u << w;
        }
        return changed;
}

static struct host warm_host(uint64_t seed, double noise, uint32_t n)
{
        struct host host = {.seed = seed, .noise = noise, .slow = 1, .n = n};

        for (uint32_t i = 0; i < WARM_JOBS; i++)
                turn(&host, 1);
        return host;
}

static const double noises[] = {0.02, 0.05, 0.08, 0.12};
#define N_NOISES (sizeof(noises) / sizeof(*noises))

/* Return: how many of @runs find the neighbour of the first worker within JOBS_MOST of its jobs. */
static uint32_t found_in(uint32_t runs, double noise, uint32_t n)
{
        uint32_t found = 0;

        for (uint32_t run = 0; run < runs; run++) {
                struct host host = warm_host(run * 7919 + n, noise, n);

                for (uint32_t i = 0; i < JOBS_MOST && !host.tests[0].slowed; i++)
                        turn(&host, FACTOR);
                found += host.tests[0].slowed;
        }
        return found;
}

Test(interference, a_neighbour_that_costs_a_third_is_found_within_20_jobs_in_95_of_100_runs)
{
        const uint32_t runs = SL_ROUNDS(400);

        for (uint32_t i = 0; i < N_NOISES; i++)
                for (uint32_t n = 1; n <= WORKERS; n++) {
                        uint32_t found = found_in(runs, noises[i], n);

                        cr_expect_geq(found, (uint32_t)(0.95 * runs), "noise %g, %u workers: %u of %u", noises[i], n, found, runs);
                }
}

/* False alarms among so many jobs of each worker. */
static uint32_t alarms_of(struct host *host, uint32_t jobs)
{
        uint32_t alarms = 0;

        for (uint32_t i = 0; i < jobs; i++)
                for (uint32_t w = 0, changed = turn(host, 1); w < host->n; w++)
                        alarms += changed >> w & host->tests[w].slowed;
        return alarms;
}

Test(interference, a_quiet_worker_raises_an_alarm_in_100000_jobs_or_more_seldom)
{
        const uint32_t jobs = SL_ROUNDS(200000);

        for (uint32_t i = 0; i < N_NOISES; i++)
                for (uint32_t n = 1; n <= WORKERS; n += WORKERS - 1) {
                        struct host host = warm_host(i + 11, noises[i], n);
                        uint32_t alarms = alarms_of(&host, jobs);

                        cr_expect_leq(alarms, 1 + jobs * n / QUIET_JOBS, "noise %g, %u workers: %u alarms in %u jobs", noises[i], n,
                                alarms, jobs * n);
                }
}

Test(interference, jobs_that_were_preempted_raise_none)
{
        const uint32_t jobs = SL_ROUNDS(200000);

        for (uint32_t i = 0; i < N_NOISES; i++) {
                struct host host = warm_host(i + 5, noises[i], 1);
                uint32_t alarms;

                host.outliers = 0.01;
                alarms = alarms_of(&host, jobs);
                cr_expect_leq(alarms, 1 + jobs / QUIET_JOBS, "noise %g: %u alarms in %u jobs", noises[i], alarms, jobs);
        }
}

/* By 30 % within 30 or 60 jobs, and back. */
Test(interference, what_slows_all_workers_is_no_neighbour)
{
        const uint32_t turns = SL_ROUNDS(200);

        for (uint32_t i = 0; i < N_NOISES; i++)
                for (uint32_t n = 2; n <= WORKERS; n++) {
                        struct host host = warm_host(i + 3, noises[i], n);
                        uint32_t alarms = 0;

                        for (uint32_t t = 0; t < turns; t++) {
                                uint32_t steps = t % 2 ? 60 : 30;

                                for (uint32_t s = 0; s < steps; s++, alarms += alarms_of(&host, 1))
                                        host.slow *= exp(log(t % 4 < 2 ? 1.3 : 1 / 1.3) / steps);
                                alarms += alarms_of(&host, 50);
                        }
                        cr_expect_leq(alarms, turns * n / 100 + 1, "noise %g, %u workers: %u alarms in %u turns", noises[i], n,
                                alarms, turns);
                }
}

Test(interference, is_over_within_20_jobs_of_the_neighbours_end)
{
        const uint32_t runs = SL_ROUNDS(500);
        uint32_t over = 0;

        for (uint32_t run = 0; run < runs; run++) {
                struct host host = warm_host(run + 1, 0.1, WORKERS);

                for (uint32_t i = 0; i < 200; i++)
                        turn(&host, FACTOR);
                for (uint32_t i = 0; i < JOBS_MOST; i++)
                        turn(&host, 1);
                over += !host.tests[0].slowed;
        }
        cr_expect_geq(over, (uint32_t)(0.95 * runs), "%u of %u", over, runs);
}

Test(interference, fewer_than_four_jobs_never_raise_an_alarm)
{
        struct sl_interference test = {0};
        uint32_t jobs = 0;

        while (!sl_interference_learn(&test, 5))
                jobs++;
        cr_expect_geq(jobs + 1, 4u);
        cr_expect(test.slowed);
}

/* Sizes that share an entry differ by a fifth at most. */
Test(pace, jobs_of_unlike_sizes_are_kept_apart)
{
        uint32_t first = 1;

        for (uint32_t samples = 2; samples <= 16384; samples++) {
                cr_assert_geq(sl_pace_size(samples), sl_pace_size(samples - 1));
                cr_assert_lt(sl_pace_size(samples), SL_PACE_SIZES);
                if (sl_pace_size(samples) != sl_pace_size(samples - 1))
                        first = samples;
                cr_assert_leq(samples, first * 1.25, "%u and %u samples", first, samples);
        }
        cr_expect_lt(sl_pace_size(UINT32_MAX), SL_PACE_SIZES);
}
