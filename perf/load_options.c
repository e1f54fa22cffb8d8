/* SPDX-License-Identifier: Apache-2.0 */
#include "load_options.h"

#include "base/clock.h"
#include "base/error.h"
#include "bench.h"
#include "bench_options.h"
#include "cores.h"
#include "load_shape.h"
#include "mix.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_IN_FLIGHT  256u /* of a thread, at most */
#define OFFLINE_SAMPLES 32u
#define REPEATS         5u
#define IN_FLIGHT_MAX   65536

SL_BENCH_OPTIONS(LOAD_OPTIONS);

/* While it is read. */
struct parser {
        struct sl_load_command *to;
        double rates[SL_LOAD_POINTS_MAX], in_flight[SL_LOAD_POINTS_MAX];
        uint32_t n_rates, n_in_flight;
        double batch, zipf, repeats; /* 0: not given; zipf NaN */
        const char *trace;
        struct sl_arrivals_options arrivals;
};

__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
        va_list arguments;

        fputs("starling bench load: ", stderr);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
        return -EINVAL;
}

static int number(const char *name, double least, double most, double *ret_value)
{
        return sl_bench_number("load", name, optarg, least, most, ret_value);
}

static int count(const char *name, double least, double most, uint32_t *ret_value)
{
        double value;
        int r = number(name, least, most, &value);

        if (r == 0)
                *ret_value = (uint32_t)value;
        return r;
}

static int seconds(const char *name, double least, uint64_t *ret_ns)
{
        double value;
        int r = number(name, least, 86400, &value);

        if (r == 0)
                *ret_ns = (uint64_t)(value * (double)SL_NS_PER_SECOND);
        return r;
}

static int milliseconds(const char *name, uint64_t *ret_ns)
{
        double value;
        int r = number(name, 0.001, 3600000, &value);

        if (r == 0)
                *ret_ns = (uint64_t)(value * (double)SL_NS_PER_MS);
        return r;
}

/* "1,8,64" */
static int list(const char *name, double least, double most, double *ret_values, uint32_t max, uint32_t *ret_n)
{
        const char *at = optarg;

        for (*ret_n = 0; *ret_n < max;) {
                char *end;

                ret_values[*ret_n] = strtod(at, &end);
                if (end == at || (*end && *end != ',') || !(ret_values[*ret_n] >= least && ret_values[*ret_n] <= most))
                        break;
                ++*ret_n;
                if (!*end)
                        return 0;
                at = end + 1;
        }
        return refuse("--%s wants %.10g to %.10g, or up to %u of them with commas, got \"%s\"", name, least, most, max, optarg);
}

static int cpus(struct sl_load_options *to)
{
        double values[SL_LOAD_THREADS_MAX];
        int r = list("cpus", 0, 4095, values, SL_LOAD_THREADS_MAX, &to->n_cpus);

        for (uint32_t i = 0; i < to->n_cpus && r == 0; i++) {
                to->cpus[i] = (int)values[i];
                if (!sl_cores_allowed(to->cpus[i]))
                        r = refuse("--cpus %s: this process may not run on CPU %d", optarg, to->cpus[i]);
        }
        return r;
}

static int take_arrivals(int option, struct sl_arrivals_options *to)
{
        switch (option) {
        case OPTION_ARRIVALS:
                return sl_arrivals_named(optarg, &to->kind) < 0
                               ? refuse("--arrivals wants poisson, constant, bursts, diurnal or spikes, got \"%s\"", optarg)
                               : 0;
        case OPTION_BURST:
                return count("burst", 1, 1e6, &to->burst);
        case OPTION_PERIOD:
                return number("period", 0.001, 1e6, &to->period_s);
        case OPTION_SWING:
                return number("swing", 0, 1, &to->swing);
        case OPTION_SPIKE_TIMES:
                return number("spike-times", 1, 1e6, &to->spike_times);
        case OPTION_SPIKE:
                return number("spike", 0.001, 1e6, &to->spike_s);
        default:
                return -ENOENT;
        }
}

static int take_limits(int option, struct parser *parser)
{
        struct sl_load_options *options = &parser->to->options;
        double value;
        int r;

        switch (option) {
        case OPTION_SECONDS:
                return seconds("seconds", 0.01, &options->duration_ns);
        case OPTION_WARM_UP:
                return seconds("warmup", 0, &options->warm_up_ns);
        case OPTION_REPEATS:
                return number("repeats", 1, SL_LOAD_REPEATS_MAX, &parser->repeats);
        case OPTION_SEED:
                r = number("seed", 0, 1e15, &value);
                options->seed = r < 0 ? 0 : (uint64_t)value;
                return r;
        case OPTION_OBJECTIVE:
                return milliseconds("objective-ms", &options->objective_ns);
        case OPTION_DEADLINE:
                return milliseconds("deadline-ms", &options->client.deadline_ns);
        case OPTION_PERCENTILE:
                r = number("percentile", 1, 99.99, &value);
                options->percentile = value / 100;
                return r;
        default:
                return -ENOENT;
        }
}

static int take_load(int option, struct parser *parser)
{
        struct sl_load_options *options = &parser->to->options;

        switch (option) {
        case OPTION_RATE:
                return list("rate", 0.001, 1e8, parser->rates, SL_LOAD_POINTS_MAX, &parser->n_rates);
        case OPTION_IN_FLIGHT:
                return list("in-flight", 1, IN_FLIGHT_MAX, parser->in_flight, SL_LOAD_POINTS_MAX, &parser->n_in_flight);
        case OPTION_ZIPF:
                return number("zipf", 0, 10, &parser->zipf);
        case OPTION_TRACE:
                parser->trace = optarg;
                return 0;
        case OPTION_SPEED:
                return number("speed", 1e-6, 1e6, &options->speed);
        case OPTION_BATCH:
                return number("batch", 1, 1 << 20, &parser->batch);
        case OPTION_SHAPE:
                return sl_load_add_shape("load", optarg, &options->client);
        case OPTION_THREADS:
                return count("threads", 1, SL_LOAD_THREADS_MAX, &options->threads);
        case OPTION_CPUS:
                return cpus(options);
        case OPTION_SPIN:
                options->client.spin = true;
                return 0;
        default:
                return -ENOENT;
        }
}

static int take_rest(int option, struct sl_load_command *to)
{
        switch (option) {
        case OPTION_NAME:
        case OPTION_RUNTIME:
                to->options.client.runtime = optarg;
                return 0;
        case OPTION_SERVE:
                to->serve = optarg;
                return 0;
        case OPTION_SAVE_TRACE:
                to->save_trace = optarg;
                return 0;
        case OPTION_OUTPUT:
                to->output = optarg;
                return 0;
        case OPTION_SEARCH:
                to->search = true;
                return 0;
        case OPTION_JSON:
                to->json = true;
                return 0;
        case OPTION_SCENARIO:
                to->has_scenario = true;
                return sl_scenario_named(optarg, &to->scenario) < 0
                               ? refuse("--scenario wants single-stream, multi-stream, server or offline, got \"%s\"", optarg)
                               : 0;
        default:
                return -EINVAL;
        }
}

static int take_option(int option, struct parser *parser)
{
        int r = take_arrivals(option, &parser->arrivals);

        if (r == -ENOENT)
                r = take_limits(option, parser);
        if (r == -ENOENT)
                r = take_load(option, parser);
        return r == -ENOENT ? take_rest(option, parser->to) : r;
}

/* ---- models ---- */

/* "NAME" or "NAME:WEIGHT". */
static int add_model(struct sl_load_command *to, const char *text)
{
        const char *colon = strchr(text, ':');
        uint32_t i = to->options.client.n_models;
        size_t bytes = colon ? (size_t)(colon - text) : strlen(text);
        char *end = NULL;

        if (i == SL_LOAD_MODELS_MAX)
                return refuse("more than %u models", SL_LOAD_MODELS_MAX);
        to->options.weights[i] = colon ? strtod(colon + 1, &end) : 1;
        if (bytes == 0 || bytes >= sizeof(to->names[i]) || (colon && (end == colon + 1 || *end)) || !(to->options.weights[i] >= 0))
                return refuse("a model is NAME or NAME:WEIGHT, got \"%s\"", text);
        memcpy(to->names[i], text, bytes);
        to->names[i][bytes] = 0;
        to->options.client.n_models++;
        return 0;
}

static int add_trace(struct parser *parser)
{
        struct sl_load_command *to = parser->to;
        struct sl_error error = {""};
        int r = sl_trace_read(parser->trace, &to->trace, &error);

        if (r < 0)
                return refuse("%s", error.text);
        for (uint32_t i = 0; i < to->trace.n_models && r == 0; i++)
                r = add_model(to, to->trace.models[i]);
        for (size_t i = 0; i < to->trace.n_requests && r == 0; i++) {
                uint32_t *most = &to->samples[to->trace.requests[i].model];

                *most = to->trace.requests[i].samples > *most ? to->trace.requests[i].samples : *most;
        }
        to->options.trace = &to->trace;
        return r;
}

static uint32_t samples_of(const struct parser *parser)
{
        uint32_t asked = parser->to->has_scenario ? sl_scenario_samples(parser->to->scenario) : 1;

        return parser->batch > 0 ? (uint32_t)parser->batch : asked ? asked : OFFLINE_SAMPLES;
}

static int set_models(struct parser *parser, int argc, char **argv)
{
        struct sl_load_command *to = parser->to;
        int r = parser->trace ? add_trace(parser) : 0;

        if (parser->trace && optind < argc)
                return refuse("a trace names its models itself, got \"%s\"", argv[optind]);
        for (int i = optind; i < argc && r == 0; i++)
                r = add_model(to, argv[i]);
        if (r == 0 && to->options.client.n_models == 0)
                return refuse("it wants the name of a model, or --trace");
        if (r == 0 && !isnan(parser->zipf))
                sl_mix_zipf(parser->zipf, to->options.client.n_models, to->options.weights);
        for (uint32_t i = 0; i < to->options.client.n_models; i++) {
                to->models[i] = strcmp(to->names[i], SL_LOAD_NOOP) == 0 ? "" : to->names[i];
                to->samples[i] = parser->trace ? to->samples[i] : samples_of(parser);
        }
        to->options.client.models = to->models;
        to->options.client.samples = to->samples;
        return r;
}

/* ---- levels ---- */

static int check_arrivals(const struct sl_arrivals_options *arrivals)
{
        if (arrivals->kind == SL_ARRIVALS_SPIKES && arrivals->spike_s >= arrivals->period_s)
                return refuse("--spike %g wants to be shorter than --period %g", arrivals->spike_s, arrivals->period_s);
        return 0;
}

static void add_level(struct sl_load_command *to, struct sl_load_level level)
{
        if (to->n_levels < SL_LOAD_POINTS_MAX)
                to->levels[to->n_levels++] = level;
}

static void set_closed(struct parser *parser)
{
        if (parser->n_in_flight == 0)
                parser->in_flight[parser->n_in_flight++] = 1;
        for (uint32_t i = 0; i < parser->n_in_flight; i++)
                add_level(parser->to, (struct sl_load_level){.closed = true, .in_flight = (uint32_t)parser->in_flight[i]});
}

static int set_open(struct parser *parser)
{
        if (parser->n_in_flight > 1)
                return refuse("--in-flight: %u numbers, an open loop takes one, the most requests in flight", parser->n_in_flight);
        if (parser->n_rates == 0)
                parser->rates[parser->n_rates++] = 1; /* of a trace, or of a search: not read */
        for (uint32_t i = 0; i < parser->n_rates; i++) {
                struct sl_load_level level = {.arrivals = parser->arrivals};

                level.arrivals.rate = parser->rates[i];
                add_level(parser->to, level);
        }
        return check_arrivals(&parser->arrivals);
}

static uint32_t in_flight_max(const struct parser *parser)
{
        uint32_t most = 0;

        for (uint32_t i = 0; i < parser->n_in_flight; i++)
                most = parser->in_flight[i] > most ? (uint32_t)parser->in_flight[i] : most;
        return most ? most : OPEN_IN_FLIGHT * parser->to->options.threads;
}

static int set_levels(struct parser *parser)
{
        struct sl_load_command *to = parser->to;
        bool is_open = parser->n_rates || parser->trace || to->search;

        if (parser->trace && (parser->n_rates || to->search))
                return refuse("a trace has its own times: --rate and --search are not for it, --speed is");
        if (to->search && (parser->n_rates || !to->options.objective_ns))
                return refuse("--search wants --objective-ms, and finds the rate itself");
        int r = is_open ? set_open(parser) : 0;
        if (!is_open)
                set_closed(parser);
        to->options.client.in_flight = in_flight_max(parser);
        if (r == 0 && to->options.client.in_flight > 1024 * to->options.threads)
                return refuse("--in-flight %u: at most 1024 a thread, of which there are %u", to->options.client.in_flight,
                        to->options.threads);
        return r;
}

static int check_scenario(const struct parser *parser)
{
        const struct sl_load_command *to = parser->to;
        bool one_stream = to->scenario == SL_SCENARIO_SINGLE_STREAM || to->scenario == SL_SCENARIO_MULTI_STREAM;

        if (parser->trace || parser->arrivals.kind != SL_ARRIVALS_POISSON)
                return refuse("--scenario says itself when requests are due");
        if (to->scenario == SL_SCENARIO_SERVER && (!to->options.objective_ns || !(parser->n_rates == 1 || to->search)))
                return refuse("--scenario server wants --objective-ms, and one --rate or --search");
        if (to->scenario != SL_SCENARIO_SERVER && (parser->n_rates || to->search))
                return refuse("--scenario %s has no --rate", sl_scenario_name(to->scenario));
        if (one_stream && (to->options.threads > 1 || parser->n_in_flight))
                return refuse("--scenario %s has one request in flight", sl_scenario_name(to->scenario));
        if (to->options.client.n_models > 1)
                return refuse("--scenario wants one model, got %u", to->options.client.n_models);
        return 0;
}

static int finish(struct parser *parser, int argc, char **argv)
{
        struct sl_load_command *to = parser->to;
        int r = set_models(parser, argc, argv);

        if (r == 0 && to->has_scenario) {
                r = check_scenario(parser);
                if (to->scenario != SL_SCENARIO_OFFLINE)
                        to->options.percentile = sl_scenario_percentile(to->scenario);
                else if (parser->n_in_flight == 0)
                        parser->in_flight[parser->n_in_flight++] = OPEN_IN_FLIGHT;
        }
        if (r == 0)
                r = set_levels(parser);
        to->repeats = parser->repeats > 0 ? (uint32_t)parser->repeats : to->has_scenario ? 1 : REPEATS;
        if (to->save_trace && to->levels[0].closed)
                return refuse("--save-trace wants an open loop: the times of a closed one are the runtime's");
        return r;
}

int sl_load_command_parse(int argc, char **argv, struct sl_load_command *ret_command)
{
        struct parser parser = {
                .to = ret_command,
                .zipf = NAN,
                .arrivals = {.burst = 16, .period_s = 10, .swing = 0.8, .spike_times = 10, .spike_s = 0.5},
        };
        int option, r = 0;

        *ret_command = (struct sl_load_command){
                .options = {.threads = 1,
                        .seed = 1,
                        .percentile = 0.99,
                        .speed = 1,
                        .warm_up_ns = SL_NS_PER_SECOND,
                        .duration_ns = 5 * SL_NS_PER_SECOND},
        };
        while (r == 0 && (option = getopt_long(argc, argv, "", bench_options, NULL)) != -1)
                r = take_option(option, &parser);
        if (r == 0)
                r = finish(&parser, argc, argv);
        if (r < 0)
                sl_load_command_deinit(ret_command);
        return r < 0 ? 2 : 0;
}

void sl_load_command_deinit(struct sl_load_command *command)
{
        sl_trace_deinit(&command->trace);
}
