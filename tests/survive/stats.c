/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stats page of a runtime whose worker processes are killed: a place goes on counting with the process that follows, says what
 * the last one ended with, and a model that lacks workers says so. Only the page is looked at, and what `starling stats` makes of
 * it, also while the runtime dies.
 */
#include "stats.h"
#include "base/clock.h"
#include "digits.h"
#include "world.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* The network lenet as "own". */
static void start_with(const char *config)
{
        world_copy_model(&world, "lenet", "own", config);
        world_configure(&world, "models: [own]\n");
        world_start(&world);
        cr_assert_eq(sl_stats_open(world.name, NULL, &page, NULL), 0);
}

static void start_with_processes(void)
{
        start_with("isolation: process\n");
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

static bool serves_in(const struct sl_worker_stats *worker, uint32_t batch_max)
{
        return worker->state == SL_STATS_WORKER_SERVING && worker->batch_max == batch_max;
}

/* A process that takes batches up to @batch_max and serves; 0: none does. */
static uint32_t pid_of(uint32_t batch_max)
{
        struct sl_worker_stats worker;

        for (uint32_t i = 0; i < sl_stats_count(page, SL_STATS_WORKERS); i++)
                if (sl_stats_read_worker(page, i, &worker) == 0 && serves_in(&worker, batch_max))
                        return worker.pid;
        return 0;
}

static uint32_t count_of(uint32_t batch_max)
{
        struct sl_worker_stats worker;
        uint32_t n = 0;

        for (uint32_t i = 0; i < sl_stats_count(page, SL_STATS_WORKERS); i++)
                n += sl_stats_read_worker(page, i, &worker) == 0 && serves_in(&worker, batch_max);
        return n;
}

/* Multi-granularity workers: one for each size, and one of the same size follows one that died. */
Test(stats, workers_have_the_batch_sizes_that_were_asked_for_and_keep_them)
{
        static const uint32_t sizes[] = {4, 2, 1};

        start_with("isolation: process\nbatch_sizes: [1, 4, 1, 2]\n");
        infer(5);
        for (uint32_t i = 0; i < 3; i++) {
                uint32_t before = pid_of(sizes[i]), wanted = sizes[i] == 1 ? 2 : 1;

                cr_assert_eq(count_of(sizes[i]), wanted, "%u workers of %u", count_of(sizes[i]), sizes[i]);
                cr_assert_eq(kill((pid_t)before, SIGKILL), 0);
                while (pid_of(sizes[i]) == before || count_of(sizes[i]) < wanted)
                        world_pause_us(1000);
                cr_expect_eq(count_of(sizes[i]), wanted, "%u workers of %u", count_of(sizes[i]), sizes[i]);
        }
        infer(5);
        world_stop(&world);
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
        for (uint64_t end_ns = sl_clock_ns() + WORLD_PATIENCE_NS; !backed_off || !degraded;) {
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

/* ---- the command ---------------------------------------------------------------------------------------------------- */

/* What `starling stats ARGUMENTS` prints, with what it complains about; the caller frees. */
static char *run_stats(const char *arguments, int *ret_status)
{
        char command[512], *text = NULL;
        size_t bytes = 0;
        FILE *out, *copy = open_memstream(&text, &bytes);

        snprintf(command, sizeof(command), "'%s' stats %s 2>&1", STARLING, arguments);
        out = popen(command, "r");
        cr_assert(out && copy);
        for (int c; (c = fgetc(out)) != EOF;)
                fputc(c, copy);
        fclose(copy);
        *ret_status = WEXITSTATUS(pclose(out));
        return text;
}

static char *run_well(const char *format)
{
        char arguments[256], *text;
        int status;

        snprintf(arguments, sizeof(arguments), format, world.name);
        text = run_stats(arguments, &status);
        cr_assert_eq(status, 0, "%s", text);
        return text;
}

static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

/* Of an array of objects, that of which @key says @value. */
static json_t *find(const json_t *root, const char *array, const char *key, const char *value)
{
        size_t i;
        json_t *object;

        json_array_foreach(json_object_get(root, array), i, object) if (strcmp(text_of(object, key), value) == 0) return object;
        cr_assert_fail("no %s with %s \"%s\"", array, key, value);
        return NULL;
}

Test(stats, the_command_shows_all_of_the_page_as_text_and_as_json)
{
        char *text;
        json_t *root;

        start_with_processes();
        infer(5);
        text = run_well("%s");
        cr_expect_not_null(strstr(text, "model own  ready  requests 5 "), "%s", text);
        cr_expect_not_null(strstr(text, "worker of own  process  serving  pid "), "%s", text);
        cr_expect(strstr(text, "\nlet ") && strstr(text, "\n    plans "), "%s", text);
        free(text);
        text = run_well("--json %s");
        root = json_loads(text, 0, NULL);
        cr_assert(root, "%s", text);
        const json_t *model = find(root, "models", "name", "own"), *worker = find(root, "workers", "model", "own");
        cr_expect_eq(number_of(model, "completed"), 5);
        cr_expect_str_eq(text_of(model, "state"), "ready");
        cr_expect_eq(number_of(json_object_get(json_object_get(model, "latency"), "total"), "count"), 5);
        cr_expect_str_eq(text_of(worker, "executor"), "process");
        cr_expect(json_is_integer(json_object_get(worker, "pid")) && number_of(worker, "restarts") == 0);
        const json_t *let = json_array_get(json_object_get(root, "lets"), (size_t)number_of(worker, "let"));
        cr_expect_eq(number_of(let, "workers"), 1);
        cr_expect_geq(number_of(let, "turns"), 1);
        cr_expect_str_eq(text_of(find(root, "queues", "kind", "segments"), "model"), "own");
        cr_expect_gt(number_of(find(root, "memory", "name", "plans"), "bytes"), 0);
        cr_expect_eq(number_of(root, "stats_version"), SL_STATS_VERSION);
        json_decref(root);
        free(text);
        world_stop(&world);
}

Test(stats, a_watched_runtime_is_a_line_an_interval_with_its_rates)
{
        uint32_t lines = 0;
        char *text, *rest;

        start_with_processes();
        text = run_well("--watch 0.1 --count 3 %s");
        for (const char *at = text; *at; at++)
                lines += *at == '\n';
        cr_expect_eq(lines, 4, "with the heading: %s", text);
        cr_expect_eq(strncmp(text, "time ", 5), 0, "%s", text);
        free(text);
        text = run_well("--watch=0.1 --count 3 --json %s");
        lines = 0;
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), lines++) {
                json_t *root = json_loads(line, 0, NULL);

                cr_assert(root, "%s", line);
                cr_expect(
                        json_is_true(json_object_get(root, "live")) && json_is_real(json_object_get(root, "requests_per_second")));
                cr_expect_str_eq(text_of(find(root, "models", "name", "own"), "state"), "ready");
                json_decref(root);
        }
        cr_expect_eq(lines, 3);
        free(text);
        world_stop(&world);
}

/* @path has @text, sooner or later. */
static void await_text(const char *path, const char *text)
{
        static char content[65536];

        do {
                FILE *file = fopen(path, "r");
                size_t bytes = file ? fread(content, 1, sizeof(content) - 1, file) : 0;

                content[bytes] = 0;
                if (file)
                        fclose(file);
                world_pause_us(10000);
        } while (!strstr(content, text));
}

Test(stats, a_runtime_that_dies_while_it_is_watched_is_said_to_and_the_next_one_is_watched_on)
{
        char path[128], seconds[] = "0.05";
        pid_t watcher;
        int status;

        start_with_processes();
        snprintf(path, sizeof(path), "%s/watched", world.folder);
        watcher = fork();
        if (watcher == 0) {
                if (!freopen(path, "w", stdout))
                        _exit(1);
                execl(STARLING, "starling", "stats", "--watch", seconds, world.name, NULL);
                _exit(1);
        }
        await_text(path, ":"); /* a line with a time */
        world_kill(&world);
        await_text(path, "has ended");
        world_start(&world);
        await_text(path, "is there again, pid ");
        kill(watcher, SIGTERM);
        waitpid(watcher, &status, 0);
        cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        unlink(path);
        world_stop(&world);
}

Test(stats, what_cannot_be_watched_is_one_line_and_a_status)
{
        static const struct {
                const char *arguments, *says;
                int status;
        } cases[] = {
                {"--watch 0 no-such", "--watch: \"0\" is not a number from", 2},
                {"--watch --count x no-such", "--count: \"x\" is not a number from", 2},
                {"--count 3 no-such", "--count and --model are for --watch", 2},
                {"a b", "usage: starling stats", 2},
                {"no-such", "no-such", 3},
                {"--watch no-such", "no-such", 3},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                int status;
                char *text = run_stats(cases[i].arguments, &status);

                cr_expect_eq(status, cases[i].status, "%s: %s", cases[i].arguments, text);
                cr_expect_not_null(strstr(text, cases[i].says), "%s: %s", cases[i].arguments, text);
                free(text);
        }
}
