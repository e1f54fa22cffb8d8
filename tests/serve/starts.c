/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker has done when its model is ready, and what it does until the first request comes.
 */
#include "service.h"

#include "stats.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LADDER  6u /* 1, 2, 4, 8, 16, 32 */
#define LONG_MS 3600000u

struct start {
        struct service service;
        struct starling_client *client;
        struct sl_stats_view *stats;
};

/* lenet alone, ready. */
static void start_init(struct start *start, uint32_t warmup_ms)
{
        service_init(&start->service);
        start->service.n_specs = 1;
        start->service.specs[0].worker.warmup_ms = warmup_ms;
        service_start(&start->service);
        start->client = service_connect(&start->service, STARLING_ROLE_CLIENT);
        cr_assert_eq(sl_stats_open(start->service.options.name, NULL, &start->stats, NULL), 0);
}

static void start_deinit(struct start *start)
{
        sl_stats_close(start->stats);
        starling_close(start->client);
        service_stop(&start->service);
}

static struct sl_worker_stats read_worker(const struct start *start)
{
        struct sl_worker_stats worker;

        cr_assert_eq(sl_stats_read_worker(start->stats, 0, &worker), 0);
        return worker;
}

static uint64_t count_runs(const struct start *start)
{
        struct sl_worker_stats worker = read_worker(start);

        return sl_counter_read(&worker.warmup_runs);
}

static void wait_for_runs(struct start *start, uint64_t runs)
{
        SERVICE_AWAIT(&start->service, count_runs(start) >= runs);
        cr_assert_eq(count_runs(start), runs);
}

/* All test images in one request, so that every size of the ladder is run: 599 = 18 * 32 + 16 + 4 + 2 + 1. */
static void predict(struct start *start, float ret_probabilities[DIGITS_SAMPLES * DIGITS_CLASSES])
{
        struct starling_queue *queue;
        struct starling_model *model;
        struct digits digits;

        cr_assert_eq(starling_queue_open(start->client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(start->client, "lenet", &model, NULL), 0);
        digits_load(&digits, start->client, "lenet");
        digits_check(&digits, queue, model, 0, DIGITS_SAMPLES);
        memcpy(ret_probabilities, digits.probabilities.data, DIGITS_SAMPLES * DIGITS_CLASSES * sizeof(float));
        digits_free(&digits);
}

Test(starts, without_time_one_sample_is_run_once, .timeout = 60)
{
        struct start start;

        start_init(&start, 0);
        cr_assert_eq(count_runs(&start), 1);
        usleep(100000);
        cr_assert_eq(count_runs(&start), 1);
        start_deinit(&start);
}

Test(starts, with_time_each_larger_size_is_run_once, .timeout = 60)
{
        struct start start;

        start_init(&start, LONG_MS);
        wait_for_runs(&start, LADDER);
        usleep(100000);
        cr_assert_eq(count_runs(&start), LADDER);
        start_deinit(&start);
}

Test(starts, sizes_that_were_never_warmed_give_the_same_bits, .timeout = 60)
{
        static float cold[DIGITS_SAMPLES * DIGITS_CLASSES], warm[DIGITS_SAMPLES * DIGITS_CLASSES];
        struct start start;

        start_init(&start, 0);
        predict(&start, cold);
        cr_assert_eq(count_runs(&start), 1);
        start_deinit(&start);

        start_init(&start, LONG_MS);
        wait_for_runs(&start, LADDER);
        predict(&start, warm);
        start_deinit(&start);
        cr_assert_eq(memcmp(cold, warm, sizeof(cold)), 0);
}
