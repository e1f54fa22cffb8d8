/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling trace` of a runtime that serves: the file is what a trace viewer takes, with all that was sampled and nothing else, and
 * the share that is sampled changes by a reload.
 */
#include "digits.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUESTS (WORLD_SLOW ? 40u : 300u)
#define JOBS     4u

enum { WORKERS = 1, QUEUES, CLIENTS };

static struct world world;
static struct digits_data data;

static void set_up(void)
{
        world_init(&world);
        cr_assert(digits_read(&data, "digits"));
        world_configure(&world, "models: [lenet, mlp, resnet, mobilenet, densenet, digits]\nmodel_defaults: {warmup_ms: 0}\n");
}

static void tear_down(void)
{
        digits_release(&data);
        world_free(&world);
}

TestSuite(trace, .init = set_up, .fini = tear_down, .timeout = 60);

struct requester {
        struct starling_client *client;
        struct starling_model *model;
        struct starling_queue *queue;
        struct digits_job jobs[JOBS];
        uint32_t seed;
};

static void attach(struct requester *r, uint32_t seed)
{
        r->seed = seed;
        r->client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(r->client, &r->queue, NULL), 0);
        cr_assert_eq(starling_model_open(r->client, "digits", &r->model, NULL), 0);
        for (uint32_t i = 0; i < JOBS; i++)
                cr_assert_eq(digits_job_alloc(&r->jobs[i], &data, r->client), 0);
}

static void detach(struct requester *r)
{
        starling_close(r->client);
}

/* Several at once. */
static void ask(struct requester *r)
{
        struct starling_completion done[JOBS];
        uint32_t n = 0;

        for (uint32_t i = 0; i < JOBS; i++) {
                struct starling_request request = digits_fill(&r->jobs[i], r->model, &r->seed);

                cr_assert_eq(starling_submit(r->queue, &request, NULL), 0);
        }
        while (n < JOBS) {
                int got = starling_wait(r->queue, done, JOBS, 60000000000ull);

                cr_assert_gt(got, 0);
                for (int i = 0; i < got; i++)
                        cr_assert_eq(done[i].status, 0, "%s", starling_strerror(done[i].status));
                n += (uint32_t)got;
        }
}

/* The command's process, which writes to the folder of the world. */
static pid_t start_trace(char path[128], const char *requests)
{
        snprintf(path, 128, "%s/trace.json", world.folder);
        return world_spawn(
                (const char *const[]){STARLING, "trace", "-o", path, "--seconds", "250", "--requests", requests, world.name, NULL});
}

/* How often a process has slept; 0: it has ended. */
static uint64_t count_sleeps(pid_t pid)
{
        char path[64], line[128];
        unsigned long n = 0;

        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file))
                if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1)
                        break;
        if (file)
                fclose(file);
        return n;
}

/* Asks until @pid has ended, and each time only when it has slept and looked again: it is to lose nothing because it gets no core.
 * Return: its exit status. */
static int ask_until_ended(pid_t pid, struct requester *a, struct requester *b)
{
        uint64_t sleeps = 0;
        int status;

        while (waitpid(pid, &status, WNOHANG) == 0) {
                if (count_sleeps(pid) == sleeps) {
                        world_pause_us(200);
                        continue;
                }
                sleeps = count_sleeps(pid);
                ask(a);
                ask(b);
        }
        cr_assert(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static json_t *trace_while_asking(uint32_t requests)
{
        struct requester a = {0}, b = {0};
        char path[128], number[16];

        attach(&a, 1);
        attach(&b, 2);
        snprintf(number, sizeof(number), "%u", requests);
        cr_assert_eq(ask_until_ended(start_trace(path, number), &a, &b), 0);
        detach(&a);
        detach(&b);

        json_error_t error;
        json_t *root = json_load_file(path, 0, &error);

        cr_assert(root, "%s:%d: %s", path, error.line, error.text);
        unlink(path);
        return root;
}

static int64_t number_of(const json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static int64_t ns_of(const json_t *event, const char *key)
{
        return llround(json_number_value(json_object_get(event, key)) * 1000);
}

static bool is_span(const json_t *event)
{
        return strcmp(text_of(event, "ph"), "X") == 0;
}

static uint32_t count(const json_t *root, int pid, const char *name)
{
        const json_t *events = json_object_get(root, "traceEvents"), *event;
        uint32_t n = 0;
        size_t i;

        json_array_foreach(events, i, event) n +=
                is_span(event) && number_of(event, "pid") == pid && !strcmp(text_of(event, "name"), name);
        return n;
}

/* Of one lane, as they stand in the file: each begins no earlier than the one before, and lies within those that are open. */
static void expect_lane(const json_t *events, int64_t pid, int64_t tid)
{
        int64_t open[16], last = -1;
        uint32_t depth = 0;
        const json_t *event;
        size_t i;

        json_array_foreach(events, i, event)
        {
                if (!is_span(event) || number_of(event, "pid") != pid || number_of(event, "tid") != tid)
                        continue;
                int64_t begin = ns_of(event, "ts"), end = begin + ns_of(event, "dur");

                cr_assert(begin >= last && end >= begin, "lane %lld.%lld goes back", (long long)pid, (long long)tid);
                last = begin;
                while (depth && open[depth - 1] <= begin)
                        depth--;
                cr_assert(!depth || end <= open[depth - 1], "lane %lld.%lld: %s ends after what it is in", (long long)pid,
                        (long long)tid, text_of(event, "name"));
                cr_assert_lt(depth, 16);
                open[depth++] = end;
        }
}

/* Every lane has a name; those of a process are numbered from 0. Return: how many. */
static uint32_t expect_lanes(const json_t *root, int pid)
{
        const json_t *events = json_object_get(root, "traceEvents"), *event;
        uint32_t lanes = 0;
        size_t i;

        json_array_foreach(events, i, event)
        {
                if (number_of(event, "pid") != pid)
                        continue;
                if (strcmp(text_of(event, "name"), "thread_name") == 0)
                        cr_assert_eq(number_of(event, "tid"), lanes++);
                else if (is_span(event))
                        cr_assert_lt(number_of(event, "tid"), lanes, "a lane without a name");
        }
        for (uint32_t lane = 0; lane < lanes; lane++)
                expect_lane(events, pid, lane);
        return lanes;
}

/* Each request of the ensemble is in the lanes of five models' workers, once for each batch that has a part of it. */
static void expect_members(const json_t *root)
{
        const json_t *events = json_object_get(root, "traceEvents"), *event, *request;
        uint32_t *batches = calloc(1u << 20, sizeof(*batches)), requests = 0;
        size_t i, k;

        json_array_foreach(events, i, event)
        {
                if (number_of(event, "pid") != WORKERS || strcmp(text_of(event, "name"), "computing") != 0)
                        continue;
                json_array_foreach(json_object_get(json_object_get(event, "args"), "requests"), k, request)
                        batches[json_integer_value(request) % (1u << 20)]++;
        }
        json_array_foreach(events, i, event)
        {
                if (strcmp(text_of(event, "name"), "digits") != 0)
                        continue;
                int64_t number = number_of(json_object_get(event, "args"), "request");

                cr_expect_geq(batches[number % (1u << 20)], 5, "request %lld", (long long)number);
                cr_expect_eq(number_of(json_object_get(event, "args"), "status"), 0);
                requests++;
        }
        cr_expect_eq(requests, REQUESTS);
        free(batches);
}

Test(trace, a_running_ensemble_is_traced_in_lanes_of_workers_queues_and_clients)
{
        static const char *const stages[] = {"queued", "batched", "computing", "combining"};

        world_configure(&world, "trace: {sampling: 1}\n");
        world_start(&world);
        json_t *root = trace_while_asking(REQUESTS);

        cr_expect_geq(expect_lanes(root, WORKERS), 5);
        cr_expect_geq(expect_lanes(root, QUEUES), 1);
        cr_expect_geq(expect_lanes(root, CLIENTS), 2);
        cr_expect_eq(count(root, CLIENTS, "digits"), REQUESTS);
        cr_expect_eq(count(root, QUEUES, "queued"), REQUESTS);
        for (uint32_t i = 0; i < 4; i++)
                cr_expect_eq(count(root, CLIENTS, stages[i]), REQUESTS, "%s", stages[i]);
        cr_expect_geq(count(root, CLIENTS, "waking"), 1, "nobody slept");
        cr_expect_eq(number_of(json_object_get(root, "otherData"), "requests"), REQUESTS);
        cr_expect_eq(number_of(json_object_get(root, "otherData"), "lost_requests"), 0);
        if (number_of(json_object_get(root, "otherData"), "lost_spans") == 0)
                expect_members(root);
        json_decref(root);
        world_stop(&world);
}

static uint32_t sampling_now(void)
{
        struct sl_dispatcher_stats dispatcher;
        struct sl_stats_view *view;

        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        cr_assert_eq(sl_stats_read_dispatcher(view, 0, &dispatcher), 0);
        sl_stats_close(view);
        return dispatcher.sampling;
}

static void reload_with(const char *from, const char *to)
{
        char command[512];
        uint32_t before = sampling_now();

        snprintf(command, sizeof(command), "sed -i 's/sampling: %s/sampling: %s/' '%s'", from, to, world.config_path);
        cr_assert_eq(system(command), 0);
        cr_assert_eq(kill(world.pid, SIGHUP), 0);
        while (sampling_now() == before)
                world_pause_us(1000);
}

/* Numbers of requests that were traced, of all that were asked between the first and the last of them. */
static double share_of(const json_t *root)
{
        const json_t *event;
        int64_t first = INT64_MAX, last = 0, n = 0;
        size_t i;

        json_array_foreach(json_object_get(root, "traceEvents"), i, event)
        {
                int64_t number = number_of(json_object_get(event, "args"), "request");

                if (strcmp(text_of(event, "name"), "digits") != 0)
                        continue;
                first = number < first ? number : first;
                last = number > last ? number : last;
                n++;
        }
        return (double)(n - 1) / (double)(last - first);
}

static bool is_traced(const struct sl_stats_view *view, uint64_t request)
{
        struct sl_flight_record record;

        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_TRACED); i++)
                if (sl_stats_read_record(view, SL_STATS_TRACED, i, &record) == 0 && record.number == request)
                        return true;
        return false;
}

/* Of few requests, so that the rings hold all of them. */
Test(trace, who_is_not_sampled_leaves_no_spans)
{
        struct requester r = {0};
        struct sl_stats_view *view;
        uint32_t n_spans = 0;

        world_configure(&world, "trace: {sampling: 0.25}\n");
        world_start(&world);
        attach(&r, 1);
        for (uint32_t i = 0; i < 10; i++)
                ask(&r);
        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_SPANS); i++) {
                struct sl_trace_span span;

                if (sl_stats_try_slot(view, SL_STATS_SPANS, i, &span.slot) < 0)
                        continue;
                cr_assert(is_traced(view, span.request), "request %lu", span.request);
                n_spans++;
        }
        cr_expect_gt(n_spans, 0);
        sl_stats_close(view);
        detach(&r);
        world_stop(&world);
}

Test(trace, the_share_that_is_sampled_changes_by_a_reload)
{
        char path[128];
        int status;

        world_configure(&world, "trace: {sampling: 0}\n");
        world_start(&world);
        cr_assert_eq(waitpid(start_trace(path, "1"), &status, 0) > 0 && WEXITSTATUS(status), 1, "nothing is sampled");
        cr_expect_neq(access(path, F_OK), 0, "no file is made of nothing");
        reload_with("0", "0.25");
        json_t *root = trace_while_asking(REQUESTS);
        double share = share_of(root);

        /* of draws of a quarter: at least four standard deviations */
        cr_expect(share > (WORLD_SLOW ? 0.1 : 0.16) && share < (WORLD_SLOW ? 0.5 : 0.39), "%.3f", share);
        json_decref(root);
        reload_with("0.25", "1");
        root = trace_while_asking(20);
        cr_expect_float_eq(share_of(root), 1, 0.4);
        json_decref(root);
        reload_with("1", "0");
        cr_expect_eq(sampling_now(), 0);
        world_stop(&world);
}
