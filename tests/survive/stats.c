/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stats page of a runtime whose worker processes are killed: a place goes on counting with the process that follows, says what
 * the last one ended with, and a model that lacks workers says so. Only the page is looked at.
 */
#include "stats.h"
#include "base/clock.h"
#include "digits.h"
#include "world.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct world world;
static struct digits_data data;
static struct sl_stats_view *page;

static void set_up(void)
{
        world_init(&world);
        cr_assert(digits_read(&data, "lenet"));
}

static void tear_down(void)
{
        sl_stats_close(page);
        digits_release(&data);
        world_free(&world);
}

TestSuite(stats, .init = set_up, .fini = tear_down, .timeout = 60);

/* The network lenet as "own", whose workers are processes. */
static void start_with_processes(void)
{
        char command[512];

        snprintf(command, sizeof(command), "mkdir -p '%s/own/1' && cp '%s/models/lenet/1/model.onnx' '%s/own/1/model.onnx'",
                world.repository, DIGITS, world.repository);
        cr_assert_eq(system(command), 0);
        world_add_model_config(&world, "own", "isolation: process\n");
        world_configure(&world, "models: [own]\n");
        world_start(&world);
        cr_assert_eq(sl_stats_open(world.name, NULL, &page, NULL), 0);
}

static bool read_worker(struct sl_worker_stats *ret_worker)
{
        for (uint32_t i = 0; i < sl_stats_count(page, SL_STATS_WORKERS); i++)
                if (sl_stats_read_worker(page, i, ret_worker) == 0)
                        return true;
        return false;
}

static struct sl_worker_stats own_worker(void)
{
        struct sl_worker_stats worker;

        while (!read_worker(&worker))
                world_pause_us(1000);
        return worker;
}

static struct sl_model_stats own_model(void)
{
        struct sl_model_stats model;

        cr_assert_eq(sl_stats_read_model(page, 1, &model), 0);
        cr_assert_str_eq(model.name, "own");
        return model;
}

static void infer(uint32_t times)
{
        struct starling_client *client = world_connect(&world, STARLING_ROLE_CLIENT);
        struct starling_model *model;
        struct starling_queue *queue;
        struct digits_job job;
        uint32_t seed = 1;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, "own", &model, NULL), 0);
        cr_assert_eq(digits_job_alloc(&job, &data, client), 0);
        while (times--) {
                struct starling_request request = digits_fill(&job, model, &seed);

                cr_assert_eq(starling_infer(queue, &request, NULL), 0);
        }
        starling_close(client);
}

Test(stats, the_process_that_follows_a_killed_one_goes_on_counting_in_its_place)
{
        struct sl_worker_stats before, after;

        start_with_processes();
        infer(5);
        before = own_worker();
        cr_expect_str_eq(before.executor, "process");
        cr_expect(before.restarts == 0 && before.state == SL_STATS_WORKER_SERVING);
        cr_assert_eq(kill((pid_t)before.pid, SIGKILL), 0);
        do
                after = own_worker();
        while (after.restarts == 0 || after.state != SL_STATS_WORKER_SERVING);
        cr_expect(after.restarts == 1 && after.pid && after.pid != before.pid);
        cr_expect_not_null(strstr(after.why, "killed by signal 9"), "%s", after.why);
        cr_expect_gt(after.ended_unix_ns, 0);
        infer(5);
        after = own_worker();
        cr_expect_gt(sl_counter_read(&after.batches), sl_counter_read(&before.batches));
        world_stop(&world);
}

Test(stats, processes_that_die_at_once_are_said_to_be_waited_for_and_their_model_to_be_degraded)
{
        bool backed_off = false, degraded = false;
        struct sl_worker_stats worker;

        start_with_processes();
        for (uint64_t end_ns = sl_clock_ns() + 20 * SL_NS_PER_SECOND; !backed_off || !degraded;) {
                struct sl_model_stats model = own_model();

                cr_assert_lt(sl_clock_ns(), end_ns, "backed off %d, degraded %d", backed_off, degraded);
                worker = own_worker();
                if (worker.pid)
                        kill((pid_t)worker.pid, SIGKILL);
                backed_off |= worker.state == SL_STATS_WORKER_BACKING_OFF && !worker.pid;
                if (model.state == SL_STATS_MODEL_DEGRADED) {
                        degraded = true;
                        cr_expect(model.workers_serving == 0 && model.workers_wanted == 1);
                        cr_expect_not_null(strstr(model.why, "own: 0 of 1 workers serve; its process was killed"), "%s", model.why);
                }
        }
        while (own_model().state != SL_STATS_MODEL_READY)
                world_pause_us(1000);
        worker = own_worker();
        cr_expect(worker.state == SL_STATS_WORKER_SERVING && worker.restarts >= 2);
        infer(1);
        world_stop(&world);
}
