/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench load` accounts for every request, says what its schema promises, refuses what it cannot do in one line, and
 * leaves nothing behind. How long anything takes is not asserted, nor whether a run on a busy machine is valid.
 */
#include "schema.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 40

struct bench {
        char folder[64]; /* its TMPDIR */
        char json[96], errors[96];
        int code;
        char said[2048]; /* on stderr */
};

static void read_errors(struct bench *bench)
{
        FILE *file = fopen(bench->errors, "r");
        size_t n = file ? fread(bench->said, 1, sizeof(bench->said) - 1, file) : 0;

        bench->said[n] = 0;
        if (file)
                fclose(file);
}

/* Runs `starling bench load ARGUMENTS...`; the last argument is NULL. */
static void run_bench(struct bench *bench, const char *const *arguments)
{
        const char *argv[ARGUMENTS_MAX] = {"starling", "bench", "load"};
        int n = 3, status;

        strcpy(bench->folder, "/tmp/sl-load-XXXXXX");
        cr_assert(mkdtemp(bench->folder));
        snprintf(bench->json, sizeof(bench->json), "%s.json", bench->folder);
        snprintf(bench->errors, sizeof(bench->errors), "%s.errors", bench->folder);
        while (*arguments)
                argv[n++] = *arguments++;
        pid_t pid = fork();

        cr_assert(pid >= 0);
        if (pid == 0) {
                if (!freopen(bench->errors, "w", stderr) || !freopen(bench->json, "w", stdout))
                        _exit(126);
                setenv("TMPDIR", bench->folder, 1);
                execv(STARLING_TOOL, (char **)(uintptr_t)argv);
                _exit(127);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status));
        bench->code = WEXITSTATUS(status);
        read_errors(bench);
}

static void clean_up(struct bench *bench)
{
        cr_expect_eq(rmdir(bench->folder), 0, "something is left in %s", bench->folder);
        unlink(bench->json);
        unlink(bench->errors);
}

static json_t *read_json(const char *path)
{
        json_error_t error;
        json_t *root = json_load_file(path, 0, &error);

        cr_assert(root, "%s: %s", path, error.text);
        return root;
}

static double number_at(const json_t *object, const char *key)
{
        const json_t *value = json_object_get(object, key);

        cr_assert(json_is_number(value), "%s is missing", key);
        return json_number_value(value);
}

/* Return: the result, which keeps its schema. */
static json_t *measure(const char *const *arguments)
{
        struct bench bench;
        char text[512];

        run_bench(&bench, arguments);
        json_t *root = read_json(bench.json), *schema = read_json(SCHEMA);

        cr_expect_str_eq(schema_check(schema, root, text, sizeof(text)), "", "%s", text);
        cr_expect_str_eq(json_string_value(json_array_get(json_object_get(root, "command"), 0)), "load");
        cr_expect_eq(bench.code, json_is_true(json_object_get(root, "valid")) ? 0 : 1, "%s", bench.said);
        if (bench.code)
                cr_expect(strstr(bench.said, "the run is not valid: "), "%s", bench.said);
        json_decref(schema);
        clean_up(&bench);
        return root;
}

static bool has_answers(const json_t *root)
{
        const json_t *points = json_object_get(root, "points"), *point;
        size_t i;

        json_array_foreach(points, i, point) if (number_at(json_object_get(point, "requests"), "answered") == 0) return false;
        return true;
}

/* Again where a busy machine has answered nothing in so short a time. */
static json_t *measure_answered(const char *const *arguments)
{
        json_t *root = measure(arguments);

        for (int again = 0; again < 20 && !has_answers(root); again++) {
                json_decref(root);
                root = measure(arguments);
        }
        return root;
}

static void expect_sums(const json_t *point)
{
        const json_t *requests = json_object_get(point, "requests"), *distribution = json_object_get(point, "distribution");
        double answered = number_at(requests, "answered"), sum = 0, mean;
        json_t *stage;
        const char *name;

        cr_assert_gt(answered, 0);
        cr_expect_eq(number_at(requests, "due"), answered + number_at(requests, "refused") + number_at(requests, "expired") +
                                                         number_at(requests, "failed") + number_at(requests, "unsent"));
        cr_expect_eq(
                json_number_value(json_array_get(json_array_get(distribution, json_array_size(distribution) - 1), 1)), answered);
        json_object_foreach(json_object_get(point, "stages"), name, stage) sum += number_at(stage, "mean_ns");
        mean = json_number_value(json_array_get(
                json_array_get(distribution, json_array_size(distribution) - 1), 0)); /* the largest: nothing is longer */
        cr_expect_leq(sum, mean);
}

Test(bench_load_closed, a_closed_loop_of_several_levels_and_threads_accounts_for_all)
{
        const char *arguments[] = {"--serve", DIGITS, "lenet", "--in-flight", "2,6", "--threads", "2", "--repeats", "2",
                "--seconds", "0.2", "--warmup", "0.05", "--json", NULL};
        json_t *root = measure_answered(arguments), *points = json_object_get(root, "points");

        cr_assert_eq(json_array_size(points), 2);
        for (size_t i = 0; i < 2; i++) {
                json_t *point = json_array_get(points, i);

                expect_sums(point);
                cr_expect_eq(number_at(json_object_get(point, "requests"), "blocked"), 0);
                cr_expect_eq(json_array_size(json_object_get(point, "timeline")), 128);
        }
        cr_expect_str_eq(json_string_value(json_object_get(json_array_get(points, 1), "label")), "closed, 6 in flight");
        json_decref(root);
}

Test(bench_load_open, an_open_loop_asks_for_the_same_whenever_its_seed_is_the_same)
{
        const char *arguments[] = {"--serve", DIGITS, "lenet:3", "mlp:1", "@noop:1", "--rate", "400", "--repeats", "2", "--seconds",
                "0.3", "--warmup", "0.05", "--objective-ms", "50", "--seed", "5", "--json", NULL};
        json_t *one = measure_answered(arguments), *other = measure_answered(arguments);
        json_t *a = json_array_get(json_object_get(one, "points"), 0), *b = json_array_get(json_object_get(other, "points"), 0);

        expect_sums(a);
        expect_sums(b);
        cr_expect_float_eq(number_at(json_object_get(a, "requests"), "due"), 240, 60);
        for (size_t i = 0; i < 3; i++) {
                json_t *model = json_array_get(json_object_get(a, "models"), i);

                cr_expect_eq(number_at(model, "due"), number_at(json_array_get(json_object_get(b, "models"), i), "due"));
                cr_expect_gt(number_at(model, "due"), i == 0 ? 100 : 20);
        }
        json_decref(one);
        json_decref(other);
}

/* On a busy machine so short a run may have too few answers for a value. */
static void expect_shortened(const char *name)
{
        const char *arguments[] = {
                "--serve", DIGITS, "mlp", "--scenario", name, "--seconds", "0.3", "--warmup", "0.05", "--json", NULL};
        json_t *root = measure(arguments), *scenario = json_object_get(root, "scenario");

        cr_expect_str_eq(json_string_value(json_object_get(scenario, "name")), name);
        cr_expect(json_is_false(json_object_get(scenario, "long_enough")));
        cr_expect(json_is_false(json_object_get(scenario, "follows_rules")));
        cr_expect(json_is_false(json_object_get(scenario, "mlperf_compliant")));
        json_decref(root);
}

Test(bench_load_streams, scenarios_that_are_shortened_are_not_called_as_the_rules_want)
{
        expect_shortened("single-stream");
        expect_shortened("multi-stream");
}

Test(bench_load_offline, a_scenario_that_is_shortened_is_not_called_as_the_rules_want)
{
        expect_shortened("offline");
}

Test(bench_load_search, a_search_ends_with_a_rate_that_it_has_tried)
{
        const char *arguments[] = {"--serve", DIGITS, "lenet", "--search", "--objective-ms", "1000", "--percentile", "50",
                "--repeats", "2", "--seconds", "0.2", "--warmup", "0.05", "--json", NULL};
        json_t *root = measure(arguments), *search = json_object_get(root, "search"), *steps = json_object_get(search, "steps");
        const json_t *found = json_object_get(search, "found_per_second");
        const json_t *last = json_array_get(steps, json_array_size(steps) - 1);

        cr_assert_gt(json_array_size(steps), 2);
        if (json_is_number(found))
                cr_expect_eq(json_number_value(found), number_at(last, "rate"));
        else
                cr_expect(json_is_false(json_object_get(last, "kept")));
        json_decref(root);
}

Test(bench_load_trace, a_trace_that_is_saved_is_replayed_as_it_is)
{
        char trace[] = "/tmp/sl-load-trace-XXXXXX";
        struct bench bench;

        close(mkstemp(trace));

        const char *save[] = {"lenet:3", "mlp", "--rate", "300", "--arrivals", "bursts", "--burst", "4", "--seconds", "0.3",
                "--warmup", "0", "--save-trace", trace, NULL};
        const char *replay[] = {
                "--serve", DIGITS, "--trace", trace, "--seconds", "0.3", "--warmup", "0", "--repeats", "1", "--json", NULL};

        run_bench(&bench, save);
        cr_assert_eq(bench.code, 0, "%s", bench.said);
        clean_up(&bench);

        FILE *file = fopen(trace, "r");
        char line[128];
        int lines = -2;

        cr_assert(file);
        while (fgets(line, sizeof(line), file))
                lines++;
        fclose(file);

        json_t *root = measure(replay), *point = json_array_get(json_object_get(root, "points"), 0);

        cr_expect_eq(number_at(json_object_get(point, "requests"), "due"), lines);
        json_decref(root);
        unlink(trace);
}

static void expect_refused(const char *why, ...)
{
        const char *arguments[ARGUMENTS_MAX];
        struct bench bench;
        va_list list;
        int n = 0;

        va_start(list, why);
        while ((arguments[n] = va_arg(list, const char *)))
                n++;
        va_end(list);
        run_bench(&bench, arguments);
        cr_expect_eq(bench.code, 2, "%s: %d", why, bench.code);
        cr_expect(strstr(bench.said, why), "\"%s\" instead of \"%s\"", bench.said, why);
        const char *end = strchr(bench.said, '\n');
        cr_expect(
                end && (!end[1] || !strcmp(end + 1, "`starling bench load --help` says more.\n")), "not one line: %s", bench.said);
        clean_up(&bench);
}

/* And, of a wrong usage, where to read more. */
Test(bench_load_refusals, what_cannot_be_done_is_said_in_one_line)
{
        expect_refused("wants the name of a model", NULL);
        expect_refused("--rate wants", "lenet", "--rate", "fast", NULL);
        expect_refused("--rate wants", "lenet", "--rate", "1,,2", NULL);
        expect_refused("--rate wants", "lenet", "--rate", "nan", NULL);
        expect_refused("--in-flight wants 1 to 65536", "lenet", "--in-flight", "0", NULL);
        expect_refused("--in-flight 5000: at most 1024 a thread, of which there are 2", "lenet", "--in-flight", "5000", "--threads",
                "2", NULL);
        expect_refused("a model is NAME or NAME:WEIGHT, got \"lenet:many\"", "lenet:many", NULL);
        expect_refused("--arrivals wants poisson, constant", "lenet", "--arrivals", "fast", NULL);
        expect_refused("--spike 5 wants to be shorter than --period 2", "lenet", "--rate", "5", "--arrivals", "spikes", "--spike",
                "5", "--period", "2", NULL);
        expect_refused("--search wants --objective-ms", "lenet", "--search", NULL);
        expect_refused("--scenario server wants --objective-ms, and one --rate", "lenet", "--scenario", "server", NULL);
        expect_refused("--scenario offline has no --rate", "lenet", "--scenario", "offline", "--rate", "5", NULL);
        expect_refused("--scenario single-stream has one request in flight", "lenet", "--scenario", "single-stream", "--threads",
                "2", NULL);
        expect_refused("trace \"/nowhere\": No such file", "--trace", "/nowhere", NULL);
        expect_refused("--percentile wants 1 to 99.99", "lenet", "--percentile", "100", NULL);
}

Test(bench_load_refusals, what_the_runtime_refuses_is_named)
{
        static const struct {
                const char *model, *option, *value, *why;
        } cases[] = {
                {"nobody", "--batch", "1", "nobody"},
                {"lenet", "--shape", "nothing=1x2", "no model has the input \"nothing\""},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const char *arguments[] = {"--serve", DIGITS, cases[i].model, cases[i].option, cases[i].value, NULL};
                struct bench bench;

                run_bench(&bench, arguments);
                cr_expect_eq(bench.code, 1);
                cr_expect(strstr(bench.said, cases[i].why), "%s", bench.said);
                clean_up(&bench);
        }
}
