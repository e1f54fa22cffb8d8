/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench model`: load on a model or an ensemble of a runtime that is already running, seen from a client; and from the
 * runtime's stats page, what the runtime itself took beside the networks meanwhile.
 */
#include "base/clock.h"
#include "base/error.h"
#include "bench.h"
#include "process.h"
#include "report.h"
#include "starling.h"
#include "stats.h"
#include "traffic.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums over all models of a runtime, from its stats page. */
struct account {
        bool known;
        uint64_t compute_ns, busy_ns, combining_ns, cpu_ns;
};

/* The name of the runtime whose socket is ".../NAME.sock". */
static void runtime_name(const char *runtime, char *ret_name, size_t bytes)
{
        const char *slash = runtime ? strrchr(runtime, '/') : NULL;

        snprintf(ret_name, bytes, "%s", !runtime ? "starling" : slash ? slash + 1 : runtime);
        char *dot = slash ? strrchr(ret_name, '.') : NULL;
        if (dot)
                *dot = 0;
}

static void add_models(const struct sl_stats_view *view, struct account *account)
{
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MODELS); i++) {
                struct sl_model_stats model;

                if (sl_stats_read_model(view, i, &model) < 0)
                        continue;
                const struct sl_histogram_set *histograms = sl_stats_histograms(view, &model);

                account->compute_ns += sl_counter_read(&model.compute_ns);
                account->busy_ns += sl_counter_read(&model.worker_busy_ns);
                if (histograms && (model.histograms || i == 0))
                        account->combining_ns += sl_counter_read(&histograms->stages[SL_STAGE_COMBINING].sum_ns);
        }
}

static struct account take_account(const char *runtime)
{
        struct account account = {0};
        struct sl_stats_header header;
        struct sl_stats_view *view;
        char name[128];

        runtime_name(runtime, name, sizeof(name));
        if (sl_stats_open(name, NULL, &view, NULL) < 0)
                return account;
        sl_stats_read_header(view, &header);
        add_models(view, &account);
        account.known = sl_process_cpu_ns((pid_t)header.pid, &account.cpu_ns) == 0;
        sl_stats_close(view);
        return account;
}

static void report_load(const struct sl_traffic_options *options, const struct sl_traffic_result *result, struct sl_report *to)
{
        double seconds = (double)result->elapsed_ns / (double)SL_NS_PER_SECOND, n = (double)result->completed;

        sl_report_text(to, "model", "%s", options->model);
        sl_report_number(to, "samples_per_request", SL_UNIT_COUNT, options->samples, NULL, 0);
        sl_report_number(to, "concurrency", SL_UNIT_COUNT, options->concurrency, NULL, 0);
        if (options->rate > 0) {
                sl_report_number(to, "rate", SL_UNIT_PER_SECOND, options->rate, NULL, 0);
                sl_report_number(to, "latest_send_ns", SL_UNIT_NS, (double)result->latest_ns, NULL, 0);
        }
        sl_report_number(to, "requests", SL_UNIT_COUNT, n, NULL, 0);
        sl_report_number(to, "requests_failed", SL_UNIT_COUNT, (double)result->failed, NULL, 0);
        sl_report_number(to, "requests_per_second", SL_UNIT_PER_SECOND, n / seconds, NULL, 0);
        sl_report_number(to, "samples_per_second", SL_UNIT_PER_SECOND, n * options->samples / seconds, NULL, 0);
        sl_report_number(to, "latency_p50_ns", SL_UNIT_NS, sl_latencies_at(&result->latencies, 0.5), NULL, 0);
        sl_report_number(to, "latency_p90_ns", SL_UNIT_NS, sl_latencies_at(&result->latencies, 0.9), NULL, 0);
        sl_report_number(to, "latency_p99_ns", SL_UNIT_NS, sl_latencies_at(&result->latencies, 0.99), NULL, 0);
        sl_report_number(to, "latency_p999_ns", SL_UNIT_NS, sl_latencies_at(&result->latencies, 0.999), NULL, 0);
        sl_report_number(to, "latency_worst_ns", SL_UNIT_NS, sl_latencies_at(&result->latencies, 1), NULL, 0);
        sl_report_number(to, "latency_mean_ns", SL_UNIT_NS, sl_latencies_mean(&result->latencies), NULL, 0);
        sl_report_number(to, "mean_queued_ns", SL_UNIT_NS, (double)result->queued_ns / n, NULL, 0);
        sl_report_number(to, "mean_batched_ns", SL_UNIT_NS, (double)result->batched_ns / n, NULL, 0);
        sl_report_number(to, "mean_computing_ns", SL_UNIT_NS, (double)result->computing_ns / n, NULL, 0);
        sl_report_number(to, "mean_combining_ns", SL_UNIT_NS, (double)result->combining_ns / n, NULL, 0);
}

/*
 * own: (workers' busy time - time inside the networks + combining) / time inside the networks.
 * cpu: (processor time of the whole runtime - time inside the networks) / time inside the networks; spinning counts here.
 */
static void report_own_time(const struct account *before, const struct account *after, struct sl_report *to)
{
        double compute = (double)(after->compute_ns - before->compute_ns), busy = (double)(after->busy_ns - before->busy_ns);
        double combining = (double)(after->combining_ns - before->combining_ns), cpu = (double)(after->cpu_ns - before->cpu_ns);
        double own = NAN, whole = NAN;

        if (before->known && after->known && compute > 0) {
                own = (busy - compute + combining) / compute;
                whole = (cpu - compute) / compute;
        }
        sl_report_number(to, "own_over_compute", SL_UNIT_SHARE, own, "<= 2 % of the networks' compute", own <= 0.02);
        sl_report_number(to, "own_cpu_over_compute", SL_UNIT_SHARE, whole, NULL, 0);
}

enum {
        OPTION_RUNTIME = 1,
        OPTION_BATCH,
        OPTION_CONCURRENCY,
        OPTION_RATE,
        OPTION_SECONDS,
        OPTION_WARM_UP,
        OPTION_SHAPE,
        OPTION_JSON
};

static int number(const char *name, const char *text, double least, double most, double *ret_value)
{
        char *end;

        *ret_value = strtod(text, &end);
        if (end != text && !*end && *ret_value >= least && *ret_value <= most)
                return 0;
        fprintf(stderr, "starling bench model: --%s wants %.10g to %.10g, got \"%s\"\n", name, least, most, text);
        return -EINVAL;
}

/* "INPUT=2x3x4"; a name may have "=" in it, sizes have none. */
static int add_shape(const char *text, struct sl_traffic_options *to)
{
        const char *sizes = strrchr(text, '='), *next = sizes ? sizes + 1 : text;
        struct sl_traffic_shape shape = {.input = text, .name_bytes = sizes ? (size_t)(sizes - text) : 0};

        while (sizes && shape.rank < sizeof(shape.dims) / sizeof(shape.dims[0]) && to->n_shapes < SL_TRAFFIC_SHAPES_MAX) {
                char *end;
                unsigned long size = strtoul(next, &end, 10);

                if (end == next || size < 1 || size > INT32_MAX)
                        break;
                shape.dims[shape.rank++] = (uint32_t)size;
                if (!*end) {
                        to->shapes[to->n_shapes++] = shape;
                        return 0;
                }
                if (*end != 'x')
                        break;
                next = end + 1;
        }
        fprintf(stderr, "starling bench model: --shape wants INPUT=2x3x4, for at most %d inputs, got \"%s\"\n",
                SL_TRAFFIC_SHAPES_MAX, text);
        return -EINVAL;
}

static int take_option(int option, struct sl_traffic_options *to, bool *ret_json)
{
        double value;
        int r = 0;

        switch (option) {
        case OPTION_RUNTIME:
                to->runtime = optarg;
                break;
        case OPTION_BATCH:
                r = number("batch", optarg, 1, 1 << 20, &value);
                to->samples = r ? 0 : (uint32_t)value;
                break;
        case OPTION_CONCURRENCY:
                r = number("concurrency", optarg, 1, 1024, &value);
                to->concurrency = r ? 0 : (uint32_t)value;
                break;
        case OPTION_RATE:
                r = number("rate", optarg, 0.01, 1e7, &to->rate);
                break;
        case OPTION_SECONDS:
                r = number("seconds", optarg, 0.01, 86400, &value);
                to->duration_ns = r ? 0 : (uint64_t)(value * (double)SL_NS_PER_SECOND);
                break;
        case OPTION_WARM_UP:
                r = number("warmup", optarg, 0, 3600, &value);
                to->warm_up_ns = r ? 0 : (uint64_t)(value * (double)SL_NS_PER_SECOND);
                break;
        case OPTION_SHAPE:
                r = add_shape(optarg, to);
                break;
        case OPTION_JSON:
                *ret_json = true;
                break;
        default:
                r = -EINVAL;
        }
        return r;
}

/* Return: 0, or the exit code of wrong usage. An open loop needs slots for bursts; a closed one for what was asked. */
static int parse(int argc, char **argv, struct sl_traffic_options *to, bool *ret_json)
{
        static const struct option options[] = {
                {"runtime", required_argument, NULL, OPTION_RUNTIME},
                {"batch", required_argument, NULL, OPTION_BATCH},
                {"concurrency", required_argument, NULL, OPTION_CONCURRENCY},
                {"rate", required_argument, NULL, OPTION_RATE},
                {"seconds", required_argument, NULL, OPTION_SECONDS},
                {"warmup", required_argument, NULL, OPTION_WARM_UP},
                {"shape", required_argument, NULL, OPTION_SHAPE},
                {"json", no_argument, NULL, OPTION_JSON},
                {0},
        };
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
                if (take_option(option, to, ret_json) < 0)
                        return 2;
        if (optind + 1 != argc) {
                fprintf(stderr, "starling bench model: it wants the name of one model\n");
                return 2;
        }
        to->model = argv[optind];
        if (to->concurrency == 0)
                to->concurrency = to->rate > 0 ? 256 : 1;
        return 0;
}

static int run(
        const struct sl_traffic_options *options, struct sl_traffic_result *result, struct account *before, struct account *after)
{
        struct starling_error error = {0};
        struct sl_traffic *traffic;
        int r = sl_traffic_new(options, &traffic, &error);

        if (r < 0) {
                fprintf(stderr, "starling bench model: %s\n", error.text[0] ? error.text : starling_strerror(r));
                return r;
        }
        *before = take_account(options->runtime);
        r = sl_traffic_run(traffic, result);
        *after = take_account(options->runtime);
        if (r < 0)
                fprintf(stderr, "starling bench model: %s\n",
                        *sl_traffic_error(traffic) ? sl_traffic_error(traffic) : starling_strerror(r));
        else if (result->failed)
                fprintf(stderr, "starling bench model: %llu requests failed, the first with: %s\n",
                        (unsigned long long)result->failed, starling_strerror(result->first_failure));
        sl_traffic_free(traffic);
        return r;
}

int sl_bench_model(int argc, char **argv)
{
        struct sl_traffic_options options = {.samples = 1, .warm_up_ns = SL_NS_PER_SECOND, .duration_ns = 5 * SL_NS_PER_SECOND};
        struct sl_traffic_result result = {0};
        struct account before, after;
        struct sl_report report;
        bool json = false;
        int code = parse(argc, argv, &options, &json);

        if (code)
                return code;
        int r = run(&options, &result, &before, &after);
        if (r == 0) {
                sl_report_init(&report, "model", argc, argv);
                report_load(&options, &result, &report);
                report_own_time(&before, &after, &report);
                sl_report_print(&report, json, 0);
        }
        sl_latencies_deinit(&result.latencies);
        return r < 0 || result.completed == 0;
}
