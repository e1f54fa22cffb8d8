/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of measuring workers: figures of one profile agree with each other, two workers of one core take twice as long each, and
 * whoever says stop is heard.
 */
#include "base/error.h"
#include "device_let.h"
#include "network.h"
#include "team.h"
#include "worker_measure.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <unistd.h>

static struct network net;
static struct sl_plan *plan;
static struct sl_timed_worker workers[2];
static struct sl_worker_profile profiles[2];
static struct sl_device_let let;
static struct sl_error error;

static void setup(void)
{
        uint32_t x;
        int fd;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 8, 12, 12));
        x = network_conv(&net, x, 8, 16, 3, 1, 1);
        network_output(&net, x);
        network_finish(&net);
        fd = network_plan_fd(&net, "cpu", 2);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        close(fd);
        cr_assert_eq(sl_device_let_parse("cpu", NULL, &let, &error), 0, "%s", error.text);
        for (int i = 0; i < 2; i++) {
                sl_worker_profile_init(&profiles[i]);
                cr_assert_eq(sl_timed_worker_init(&workers[i], plan, 2, sl_device_let_core(&let, 0), &error), 0, "%s", error.text);
        }
}

static void teardown(void)
{
        for (int i = 0; i < 2; i++)
                sl_timed_worker_deinit(&workers[i]);
        sl_plan_free(plan);
        network_deinit(&net);
}

TestSuite(profile_workers, .init = setup, .fini = teardown);

Test(profile_workers, figures_agree_with_each_other)
{
        const struct sl_measure_limits limits = {.width = 0.5, .seconds = 5};
        const struct sl_worker_profile *profile = &profiles[0];

        cr_assert_eq(sl_measure_alone(&workers[0], &limits, &profiles[0], &error), 0, "%s", error.text);
        cr_expect_leq(profile->latency_low_ns, profile->latency_p50_ns);
        cr_expect_leq(profile->latency_p50_ns, profile->latency_high_ns);
        cr_expect_leq(profile->latency_p50_ns, profile->latency_p95_ns);
        cr_expect_leq(profile->latency_p95_ns, profile->latency_p99_ns);
        cr_expect_geq(profile->runs, profile->rounds);
        cr_expect(!profile->converged || profile->rounds >= 6);
        cr_expect_gt(profile->samples_per_second, 0);
}

Test(profile_workers, too_little_time_is_said_and_has_no_interval)
{
        const struct sl_measure_limits limits = {.width = 0.5, .seconds = 1e-9};

        cr_assert_eq(sl_measure_alone(&workers[0], &limits, &profiles[0], &error), 0, "%s", error.text);
        cr_expect_eq(profiles[0].converged, 0);
        cr_expect_eq(profiles[0].rounds, 1);
        cr_expect(isnan(profiles[0].latency_low_ns));
}

static double rate_together(void)
{
        const struct sl_measure_limits limits = {.width = 0.01, .seconds = 2};
        struct sl_timed_worker *both[] = {&workers[0], &workers[1]};

        cr_assert_eq(sl_measure_together(both, 2, &limits, profiles, &error), 0, "%s", error.text);
        return 1 / profiles[0].slowdown + 1 / profiles[1].slowdown;
}

/*
 * Together they compute what one of them does alone. Others on the core make either slower, by any amount; who had a core each
 * would compute twice as much every time.
 */
Test(profile_workers, two_of_one_core_share_it)
{
        double rate = rate_together();

        for (int i = 0; i < 4 && rate >= 1.5; i++)
                rate = rate_together();
        cr_expect_gt(rate, 0);
        cr_expect_lt(rate, 1.5, "%g: as if each had a core", rate);
}

/* Alone at the best of some times: others on the machine only add to it. */
static uint64_t best_alone_ns(void)
{
        struct sl_timed_worker *worker = &workers[0];
        uint64_t best_ns = UINT64_MAX;

        for (int i = 0; i < 50; i++) {
                cr_assert_eq(sl_worker_burst(&worker, 1, NULL, &error), 0, "%s", error.text);
                cr_expect_eq(worker->n_runs, 1);
                best_ns = worker->span_ns < best_ns ? worker->span_ns : best_ns;
        }
        return best_ns;
}

/* The span of the later one has both batches in it: it is counted from where both began. */
Test(profile_workers, a_burst_is_one_batch_of_each_from_one_start)
{
        struct sl_timed_worker *both[] = {&workers[0], &workers[1]};
        uint64_t alone_ns = best_alone_ns();

        for (int i = 0; i < 10; i++) {
                cr_assert_eq(sl_worker_burst(both, 2, NULL, &error), 0, "%s", error.text);
                cr_expect_eq(workers[0].n_runs, 1);
                cr_expect_eq(workers[1].n_runs, 1);
                uint64_t last_ns = workers[0].span_ns > workers[1].span_ns ? workers[0].span_ns : workers[1].span_ns;
                cr_expect_geq((double)last_ns, 1.2 * (double)alone_ns, "%g us for both, one takes %g", (double)last_ns / 1e3,
                        (double)alone_ns / 1e3);
        }
}

/* On one core if there is but one: a team is never wrong, only slow. */
Test(profile_workers, a_worker_has_a_team)
{
        const struct sl_measure_limits limits = {.width = 0.5, .seconds = 0.2};
        const int cores[] = {sl_device_let_core(&let, 1), sl_device_let_core(&let, 0)};

        cr_assert_eq(sl_timed_worker_use_team(&workers[0], cores, 2, &error), 0, "%s", error.text);
        cr_expect_eq(sl_team_size(workers[0].team), 2);
        cr_expect_eq(workers[0].core, cores[0]);
        cr_assert_eq(sl_measure_alone(&workers[0], &limits, &profiles[0], &error), 0, "%s", error.text);
        cr_expect_gt(profiles[0].latency_p50_ns, 0);
}

Test(profile_workers, stop_is_heard)
{
        const atomic_bool stop = true;
        const struct sl_measure_limits limits = {.width = 0.01, .seconds = 60, .stops = &stop};

        struct sl_timed_worker *worker = &workers[0];

        cr_expect_eq(sl_measure_alone(&workers[0], &limits, &profiles[0], &error), -EINTR);
        cr_expect_eq(sl_worker_burst(&worker, 1, &stop, &error), -EINTR);
}

Test(profile_workers, lets_have_one_name_each)
{
        struct sl_device_let other;
        char text[32];

        snprintf(text, sizeof(text), "cpu:%d+%d", sl_device_let_core(&let, 0), sl_device_let_core(&let, 0));
        cr_assert_eq(sl_device_let_parse(text, NULL, &other, &error), 0, "%s", error.text);
        cr_expect_eq(other.n_cores, 1);
        cr_expect_eq(sl_device_let_parse("cpu:1023", NULL, &other, &error), -EINVAL);
        cr_expect_eq(sl_device_let_parse("gpu:0", NULL, &other, &error), -EINVAL);
        cr_expect_eq(sl_device_let_parse("cpu:", NULL, &other, &error), -EINVAL);
}
