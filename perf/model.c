/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench model`: load on a model or an ensemble of a runtime that is already running, seen from a client; and from the
 * runtime's stats page, what the runtime itself took beside the networks meanwhile.
 */
#include "base/clock.h"
#include "bench.h"
#include "bench_options.h"
#include "load_figures.h"
#include "load_session.h"
#include "load_shape.h"
#include "report.h"
#include "starling.h"

#include <errno.h>
#include <stdio.h>

static void report_load(const struct sl_load_options *options, const struct sl_load_level *level,
        const struct sl_load_repeat *repeat, struct sl_report *to)
{
        const struct sl_tally *tally = &repeat->tally;
        double figures[SL_LOAD_FIGURES_N];

        sl_load_figures_of(repeat, figures);
        sl_report_text(to, "model", "%s", options->client.models[0]);
        sl_report_number(to, "samples_per_request", SL_UNIT_COUNT, options->client.samples[0], NULL, 0);
        sl_report_number(to, "concurrency", SL_UNIT_COUNT, options->client.in_flight, NULL, 0);
        if (!level->closed) {
                sl_report_number(to, "rate", SL_UNIT_PER_SECOND, level->arrivals.rate, NULL, 0);
                sl_report_number(to, "latest_send_ns", SL_UNIT_NS, sl_latencies_at(&tally->stages[SL_LOAD_SENDING], 1), NULL, 0);
        }
        sl_report_number(to, "requests", SL_UNIT_COUNT, (double)tally->answered, NULL, 0);
        sl_report_number(to, "requests_failed", SL_UNIT_COUNT, (double)(tally->due - tally->answered), NULL, 0);
        sl_report_number(to, "requests_per_second", SL_UNIT_PER_SECOND, figures[SL_LOAD_FIGURE_ANSWERED], NULL, 0);
        sl_report_number(to, "samples_per_second", SL_UNIT_PER_SECOND, figures[SL_LOAD_FIGURE_SAMPLES], NULL, 0);
        sl_report_number(to, "latency_p50_ns", SL_UNIT_NS, sl_latencies_at(&tally->total, 0.5), NULL, 0);
        sl_report_number(to, "latency_p90_ns", SL_UNIT_NS, sl_latencies_at(&tally->total, 0.9), NULL, 0);
        sl_report_number(to, "latency_p99_ns", SL_UNIT_NS, sl_latencies_at(&tally->total, 0.99), NULL, 0);
        sl_report_number(to, "latency_p999_ns", SL_UNIT_NS, sl_latencies_at(&tally->total, 0.999), NULL, 0);
        sl_report_number(to, "latency_worst_ns", SL_UNIT_NS, sl_latencies_at(&tally->total, 1), NULL, 0);
        sl_report_number(to, "latency_mean_ns", SL_UNIT_NS, figures[SL_LOAD_FIGURE_LATENCY_MEAN], NULL, 0);
        sl_report_number(to, "mean_queued_ns", SL_UNIT_NS, figures[SL_LOAD_FIGURE_QUEUED_MEAN], NULL, 0);
        sl_report_number(to, "mean_batched_ns", SL_UNIT_NS, figures[SL_LOAD_FIGURE_BATCHED_MEAN], NULL, 0);
        sl_report_number(to, "mean_computing_ns", SL_UNIT_NS, figures[SL_LOAD_FIGURE_COMPUTING_MEAN], NULL, 0);
        sl_report_number(to, "mean_combining_ns", SL_UNIT_NS, figures[SL_LOAD_FIGURE_COMBINING_MEAN], NULL, 0);
        sl_report_number(to, "mean_waking_ns", SL_UNIT_NS, figures[SL_LOAD_FIGURE_WAKING_MEAN], NULL, 0);

        double own = figures[SL_LOAD_FIGURE_OWN];

        sl_report_number(to, "own_over_compute", SL_UNIT_SHARE, own, "<= 2 % of the networks' compute", own <= 0.02);
        sl_report_number(to, "own_cpu_over_compute", SL_UNIT_SHARE, figures[SL_LOAD_FIGURE_OWN_CPU], NULL, 0);
}

SL_BENCH_OPTIONS(MODEL_OPTIONS);

/* What is asked for. */
struct request {
        struct sl_load_options options;
        struct sl_load_level level;
        const char *models[1];
        uint32_t samples[1];
        bool json;
};

static int number(const char *name, double least, double most, double *ret_value)
{
        return sl_bench_number("model", name, optarg, least, most, ret_value);
}

static int take_option(int option, struct request *to)
{
        struct sl_load_options *options = &to->options;
        double value = 0;
        int r = 0;

        switch (option) {
        case OPTION_NAME:
        case OPTION_RUNTIME:
                options->client.runtime = optarg;
                break;
        case OPTION_BATCH:
                r = number("batch", 1, 1 << 20, &value);
                to->samples[0] = (uint32_t)value;
                break;
        case OPTION_CONCURRENCY:
                r = number("concurrency", 1, 1024, &value);
                options->client.in_flight = (uint32_t)value;
                break;
        case OPTION_RATE:
                r = number("rate", 0.01, 1e7, &to->level.arrivals.rate);
                break;
        case OPTION_SECONDS:
                r = number("seconds", 0.01, 86400, &value);
                options->duration_ns = (uint64_t)(value * (double)SL_NS_PER_SECOND);
                break;
        case OPTION_WARM_UP:
                r = number("warmup", 0, 3600, &value);
                options->warm_up_ns = (uint64_t)(value * (double)SL_NS_PER_SECOND);
                break;
        case OPTION_SHAPE:
                r = sl_load_add_shape("model", optarg, &options->client);
                break;
        case OPTION_JSON:
                to->json = true;
                break;
        default:
                r = -EINVAL;
        }
        return r;
}

/* Return: 0, or the exit code of wrong usage. An open loop needs places for bursts; a closed one for what was asked. */
static int parse(int argc, char **argv, struct request *to)
{
        int option;

        while ((option = getopt_long(argc, argv, "", bench_options, NULL)) != -1)
                if (take_option(option, to) < 0)
                        return 2;
        if (optind + 1 != argc) {
                fprintf(stderr, "starling bench model: it wants the name of one model\n");
                return 2;
        }
        to->models[0] = argv[optind];
        to->level.closed = !(to->level.arrivals.rate > 0);
        if (to->options.client.in_flight == 0)
                to->options.client.in_flight = to->level.closed ? 1 : 256;
        to->level.in_flight = to->options.client.in_flight;
        return 0;
}

static int run_request(const struct request *request, struct sl_load_repeat *ret_repeat)
{
        struct starling_error error = {0};
        struct sl_load_session *session;
        int r = sl_load_session_new(&request->options, &session, &error);

        if (r == 0) {
                r = sl_load_session_run(session, &request->level, 0, ret_repeat, &error);
                sl_load_session_free(session);
        }
        if (r < 0)
                fprintf(stderr, "starling bench model: %s\n", error.text[0] ? error.text : starling_strerror(r));
        else if (ret_repeat->tally.failed)
                fprintf(stderr, "starling bench model: %llu requests failed, the first with: %s\n",
                        (unsigned long long)ret_repeat->tally.failed,
                        error.text[0] ? error.text : starling_strerror(ret_repeat->tally.first_failure));
        else if (!ret_repeat->tally.answered)
                fprintf(stderr, "starling bench model: no request was answered in %g s%s%s\n",
                        (double)request->options.duration_ns / (double)SL_NS_PER_SECOND, error.text[0] ? ": " : "", error.text);
        return r;
}

int sl_bench_model(int argc, char **argv)
{
        struct request request = {
                .options = {.weights = {1},
                        .threads = 1,
                        .seed = 1,
                        .warm_up_ns = SL_NS_PER_SECOND,
                        .duration_ns = 5 * SL_NS_PER_SECOND},
                .samples = {1},
        };
        struct sl_load_repeat repeat = {0};
        struct sl_report report;
        int code = parse(argc, argv, &request);

        if (code == 0)
                code = sl_bench_reach("model", request.options.client.runtime);
        if (code)
                return code;
        request.options.client.models = request.models;
        request.options.client.samples = request.samples;
        request.options.client.n_models = 1;
        int r = run_request(&request, &repeat);
        if (r < 0)
                return 1;
        sl_report_init(&report, "model", argc, argv);
        report_load(&request.options, &request.level, &repeat, &report);
        sl_report_print(&report, request.json, 0);

        bool answered = repeat.tally.answered > 0;

        sl_tally_deinit(&repeat.tally);
        return !answered;
}
