/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stats page shows of a runtime that serves: how names stand, what waits, who computes where, and how long clients sleep
 * on. A runtime in this process, with a gate before its workers.
 */
#include "gate.h"
#include "service.h"

#include "base/clock.h"
#include "stats.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS 6

struct scene {
        struct service service;
        struct sl_stats_view *stats;
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct digits digits;
};

static void begin(struct scene *s)
{
        memset(s, 0, sizeof(*s));
        service_init(&s->service);
        s->service.options.inline_ns = 0;
}

static void start(struct scene *s)
{
        service_start(&s->service);
        s->client = service_connect(&s->service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
        cr_assert_eq(starling_model_open(s->client, "lenet", &s->model, NULL), 0);
        digits_load(&s->digits, s->client, "lenet");
        cr_assert_eq(sl_stats_open(s->service.options.name, NULL, &s->stats, NULL), 0);
}

static void end(struct scene *s)
{
        digits_free(&s->digits);
        starling_close(s->client);
        sl_stats_close(s->stats);
        service_stop(&s->service);
}

/* ---- what is found in the page ---- */

static bool find_model(const struct scene *s, const char *name, struct sl_model_stats *ret_model)
{
        for (uint32_t i = 0; i < sl_stats_count(s->stats, SL_STATS_MODELS); i++)
                if (sl_stats_read_model(s->stats, i, ret_model) == 0 && !strcmp(ret_model->name, name))
                        return true;
        return false;
}

static struct sl_model_stats model_of(const struct scene *s, const char *name)
{
        struct sl_model_stats model;

        cr_assert(find_model(s, name, &model), "no slot of %s", name);
        return model;
}

static uint64_t in_flight_of(const struct scene *s, const char *name)
{
        struct sl_model_stats model = model_of(s, name);

        return sl_counter_read(&model.in_flight);
}

static struct sl_worker_stats worker_of(const struct scene *s, const char *model)
{
        struct sl_worker_stats worker;

        for (uint32_t i = 0; i < sl_stats_count(s->stats, SL_STATS_WORKERS); i++)
                if (sl_stats_read_worker(s->stats, i, &worker) == 0 && !strcmp(worker.model, model))
                        return worker;
        cr_assert_fail("no worker of %s", model);
        return worker;
}

/* Of all queues of that name and kind. */
struct waits {
        uint64_t depth, samples, oldest_ns, given_jobs, given_samples;
};

static struct waits waits_of(const struct scene *s, const char *model, enum sl_stats_queue_kind kind)
{
        struct waits sum = {0};
        struct sl_queue_stats queue;

        for (uint32_t i = 0; i < sl_stats_count(s->stats, SL_STATS_QUEUES); i++) {
                if (sl_stats_read_queue(s->stats, i, &queue) < 0 || queue.kind != kind || strcmp(queue.model, model))
                        continue;
                sum.depth += sl_counter_read(&queue.depth);
                sum.samples += sl_counter_read(&queue.samples);
                sum.oldest_ns = sl_counter_read(&queue.oldest_ns);
                sum.given_jobs += sl_counter_read(&queue.given_jobs);
                sum.given_samples += sl_counter_read(&queue.given_samples);
        }
        return sum;
}

/* Waits until @condition holds; the tests' time limit ends it. */
#define AWAIT(condition)                                                                                                           \
        while (!(condition))                                                                                                       \
        usleep(1000)

static bool stands(const struct scene *s, const char *name, enum sl_stats_model_state state)
{
        struct sl_model_stats model;

        return find_model(s, name, &model) && model.state == state;
}

/* ---- names ---- */

Test(stats, each_name_stands_as_it_is_served, .timeout = 60)
{
        struct scene s;

        begin(&s);
        start(&s);
        AWAIT(stands(&s, "digits", SL_STATS_MODEL_READY));
        struct sl_model_stats lenet = model_of(&s, "lenet"), digits = model_of(&s, "digits");
        cr_expect(lenet.kind == SL_STATS_MODEL_PLAIN && lenet.loads == 1 && lenet.load_ns > 0 && lenet.n_members == 0);
        cr_expect(lenet.workers_wanted == 1 && lenet.workers_serving == 1);
        cr_expect(digits.kind == SL_STATS_MODEL_ENSEMBLE && digits.n_members == 5 && digits.workers_serving == 5);
        cr_expect(lenet.segment_samples > 0 && lenet.samples_max > 0 && lenet.queue_requests > 0);
        cr_expect(lenet.since_ns > 0 && lenet.since_ns <= sl_clock_ns());
        end(&s);
}

Test(stats, a_name_that_cannot_be_served_says_why, .timeout = 60)
{
        struct scene s;

        begin(&s);
        s.service.n_specs = 1;
        start(&s);
        pthread_mutex_lock(&s.service.specs_lock);
        s.service.specs[1].path = "/no/such/model.onnx";
        s.service.n_specs = 2;
        pthread_mutex_unlock(&s.service.specs_lock);
        service_reload(&s.service);
        AWAIT(stands(&s, s.service.specs[1].name, SL_STATS_MODEL_FAILED));
        struct sl_model_stats failed = model_of(&s, s.service.specs[1].name);
        cr_expect_not_null(strstr(failed.why, "/no/such"), "%s", failed.why);
        cr_expect(failed.load_failures == 1 && failed.loads == 0);
        end(&s);
}

Test(stats, counters_go_on_over_a_reload_and_end_with_the_name, .timeout = 60)
{
        struct starling_error error = {""};
        struct starling_client *admin;
        struct sl_model_stats model;
        struct scene s;

        begin(&s);
        s.service.n_specs = 1;
        start(&s);
        digits_check(&s.digits, s.queue, s.model, 0, 3);
        service_touch(&s.service);
        service_reload(&s.service);
        service_expect_log(&s.service, "model-replaced");
        digits_check(&s.digits, s.queue, s.model, 0, 4);
        AWAIT(model_of(&s, "lenet").loads == 2);
        model = model_of(&s, "lenet");
        cr_expect_eq(sl_counter_read(&model.samples), 7);
        cr_expect_eq(sl_counter_read(&model.completed), 2);
        admin = service_connect(&s.service, STARLING_ROLE_ADMIN);
        cr_assert_eq(starling_admin_unload(admin, "lenet", &error), 0, "%s", error.text);
        cr_expect_not(find_model(&s, "lenet", &model));
        starling_close(admin);
        end(&s);
}

/* ---- what waits ---- */

static void submit_all(struct scene *s, struct starling_tensor inputs[], struct starling_tensor outputs[], uint32_t samples)
{
        for (uint32_t i = 0; i < REQUESTS; i++) {
                struct starling_request request = digits_request(&s->digits, s->model, i, samples, &inputs[i], &outputs[i]);

                cr_assert_eq(starling_submit(s->queue, &request, NULL), 0);
        }
}

static void reap_all(struct scene *s)
{
        struct starling_completion done;

        for (uint32_t n = 0; n < REQUESTS;) {
                int r = starling_wait(s->queue, &done, 1, 1000000000);

                cr_assert(r != 1 || done.status == 0);
                n += r == 1;
        }
}

/* The one that drains and the one in its place have one slot. */
Test(stats, what_is_in_flight_of_a_model_that_is_replaced_ends_with_it, .timeout = 60)
{
        struct starling_tensor inputs[REQUESTS], outputs[REQUESTS];
        struct scene s;

        begin(&s);
        s.service.n_specs = 1;
        start(&s);
        gate_shut();
        submit_all(&s, inputs, outputs, 1);
        AWAIT(in_flight_of(&s, "lenet") == REQUESTS);
        service_touch(&s.service);
        service_reload(&s.service);
        service_expect_log(&s.service, "model-replaced");
        gate_open();
        reap_all(&s);
        AWAIT(in_flight_of(&s, "lenet") == 0);
        end(&s);
}

/* Every sample is somewhere: waits for its turn, waits for a worker, or is given to one. */
static bool all_are_seen(const struct scene *s, uint32_t samples)
{
        struct waits requests = waits_of(s, "lenet", SL_STATS_QUEUE_REQUESTS),
                     segments = waits_of(s, "lenet", SL_STATS_QUEUE_SEGMENTS);

        return requests.samples + requests.given_samples == samples &&
               segments.samples + segments.given_samples == requests.given_samples && segments.given_jobs > 0;
}

/* One gauge is written after the other. */
static bool nothing_waits(const struct scene *s, enum sl_stats_queue_kind kind)
{
        struct waits waits = waits_of(s, "lenet", kind);

        return !waits.depth && !waits.samples && !waits.oldest_ns && !waits.given_jobs && !waits.given_samples;
}

Test(stats, what_waits_and_what_is_given_is_shown_and_nothing_when_all_is_done, .timeout = 60)
{
        struct starling_tensor inputs[REQUESTS], outputs[REQUESTS];
        const uint32_t samples = 200;
        struct waits requests, segments;
        uint64_t begun_ns = sl_clock_ns();
        struct scene s;

        begin(&s);
        s.service.n_specs = 1;
        start(&s);
        gate_shut();
        submit_all(&s, inputs, outputs, samples);
        AWAIT(all_are_seen(&s, REQUESTS * samples) && in_flight_of(&s, "lenet") == REQUESTS);
        requests = waits_of(&s, "lenet", SL_STATS_QUEUE_REQUESTS);
        segments = waits_of(&s, "lenet", SL_STATS_QUEUE_SEGMENTS);
        cr_expect(requests.depth > 0 && requests.depth <= REQUESTS, "%" PRIu64 " wait", requests.depth);
        cr_expect(requests.oldest_ns >= begun_ns && requests.oldest_ns <= sl_clock_ns());
        cr_expect(segments.given_jobs >= 1 && segments.given_samples > 0);
        gate_open();
        reap_all(&s);
        AWAIT(in_flight_of(&s, "lenet") == 0 && nothing_waits(&s, SL_STATS_QUEUE_REQUESTS) &&
                nothing_waits(&s, SL_STATS_QUEUE_SEGMENTS));
        end(&s);
}

/* ---- workers and lets ---- */

Test(stats, a_let_shows_its_cores_its_workers_and_what_ran_there, .timeout = 60)
{
        struct sl_worker_stats worker;
        struct sl_let_stats let;
        struct scene s;

        begin(&s);
        s.service.n_specs = 1;
        start(&s);
        digits_check(&s.digits, s.queue, s.model, 0, 10);
        worker = worker_of(&s, "lenet");
        cr_expect_eq(sl_counter_read(&worker.samples), 10);
        cr_expect_eq(worker.state, SL_STATS_WORKER_SERVING);
        cr_expect(worker.restarts == 0 && worker.pid == 0 && !worker.why[0]);
        cr_assert_eq(sl_stats_read_let(s.stats, worker.let, &let), 0);
        cr_expect(let.workers == 1 && let.at_once >= 1);
        cr_expect(sl_counter_read(&let.turns) >= 1 && sl_counter_read(&let.samples) == 10);
        cr_expect_gt(sl_counter_read(&let.busy_ns), 0);
        end(&s);
}

Test(stats, a_worker_has_histograms_of_its_own_when_the_configuration_says_so, .timeout = 60)
{
        static struct sl_histogram_set set;
        struct sl_worker_stats worker;
        struct scene s;

        for (int with = 0; with < 2; with++) {
                begin(&s);
                s.service.n_specs = 1;
                s.service.options.worker_histograms = with;
                start(&s);
                digits_check(&s.digits, s.queue, s.model, 0, 10);
                worker = worker_of(&s, "lenet");
                cr_assert_eq(sl_stats_read_histograms(s.stats, worker.histograms, &set), with ? 0 : -ENOENT);
                if (with) {
                        cr_expect_geq(sl_counter_read(&set.stages[SL_STAGE_COMPUTING].count), 1);
                        cr_expect_gt(sl_histogram_quantile(&set.stages[SL_STAGE_TOTAL], 1), 0);
                }
                end(&s);
        }
}

/* ---- memory ---- */

Test(stats, memory_is_shown_by_purpose_and_adds_up, .timeout = 60)
{
        struct sl_memory_stats memory;
        struct sl_client_stats client;
        struct sl_stats_header header;
        uint64_t sum = 0, plans = 0, arenas = 0;
        struct scene s;

        begin(&s);
        s.service.n_specs = 1;
        start(&s);
        for (uint32_t i = 0; i < sl_stats_count(s.stats, SL_STATS_MEMORY); i++) {
                if (sl_stats_read_memory(s.stats, i, &memory) < 0)
                        continue;
                cr_expect_geq(sl_counter_read(&memory.most_bytes), sl_counter_read(&memory.bytes));
                sum += strcmp(memory.name, "departed") ? sl_counter_read(&memory.bytes) : 0;
                plans += strcmp(memory.name, "plans") ? 0 : sl_counter_read(&memory.bytes);
                arenas += strcmp(memory.name, "arenas") ? 0 : sl_counter_read(&memory.bytes);
        }
        sl_stats_read_header(s.stats, &header);
        cr_expect_eq(sum, sl_counter_read(&header.memory_bytes));
        cr_expect(plans > 0 && arenas > 0);
        cr_assert_eq(sl_stats_read_client(s.stats, 0, &client), 0);
        cr_expect_eq(sl_counter_read(&client.arena_bytes), arenas, "of the only client");
        end(&s);
}

/* ---- waking ---- */

static uint64_t wakes_of(const struct scene *s, uint64_t *ret_waking_ns)
{
        struct sl_client_stats client;

        for (uint32_t i = 0; i < sl_stats_count(s->stats, SL_STATS_CLIENTS); i++)
                if (sl_stats_read_client(s->stats, i, &client) == 0) {
                        *ret_waking_ns = sl_counter_read(&client.waking_ns);
                        return sl_counter_read(&client.wakes);
                }
        return 0;
}

/* After so long the client sleeps, however it waits. */
static void *open_later(void *unused)
{
        usleep(100000);
        gate_open();
        return unused;
}

Test(stats, a_client_that_slept_is_timed_from_the_publication_until_it_runs, .timeout = 60)
{
        uint64_t waking_ns = 0, begun_ns = sl_clock_ns();
        pthread_t thread;
        struct scene s;

        begin(&s);
        s.service.n_specs = 1;
        start(&s);
        while (wakes_of(&s, &waking_ns) == 0) {
                gate_shut();
                cr_assert_eq(pthread_create(&thread, NULL, open_later, NULL), 0);
                digits_check(&s.digits, s.queue, s.model, 0, 1); /* sleeps on the shut gate, as it did not find it open by then */
                pthread_join(thread, NULL);
                digits_check(&s.digits, s.queue, s.model, 0, 1); /* it is looked at when the client shows itself again */
        }
        struct sl_model_stats model = model_of(&s, "lenet");
        struct sl_histogram waking;
        cr_assert_eq(sl_stats_read_histogram(s.stats, model.histograms, SL_STAGE_WAKING, &waking), 0);
        cr_expect_geq(sl_counter_read(&waking.count), 1);
        cr_expect(waking_ns > 0 && waking_ns < sl_clock_ns() - begun_ns);
        end(&s);
}
