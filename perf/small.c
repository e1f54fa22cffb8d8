/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench small`: what a request costs whose network takes microseconds. A runtime of our own, as it is by default, on two
 * CPUs; the client is this thread, bound to the CPU where the dispatcher is not. No-ops, a perceptron and the digits ensemble take
 * turns, so that the figures can be compared as they stand; the time inside the networks is the runtime's own count of the same
 * requests, from its stats page.
 */
#include "base/clock.h"
#include "bench.h"
#include "bench_options.h"
#include "cores.h"
#include "floor.h"
#include "heavy_load.h"
#include "latencies.h"
#include "load_session.h"
#include "mlp_model.h"
#include "report.h"
#include "round_trip.h"
#include "server.h"
#include "starling.h"
#include "stats.h"
#include "ticks.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS        "digits"
#define ARENA_BYTES   (1ull << 30) /* the default */
#define TURNS         5u
#define NOOP_WARM_UP  5000u
#define MODEL_WARM_UP 500u
#define IN_FLIGHT     32u
#define SMALL_US      3.0

/* How much of everything is measured in one turn, and for how long in the throughputs. */
struct effort {
        uint32_t noops, requests, digits, beside;
        uint64_t throughput_ns;
};

static const struct effort full = {50000, 10000, 2000, 20000, 2 * SL_NS_PER_SECOND};
static const struct effort quick = {2000, 200, 50, 200, SL_NS_PER_SECOND / 10};

/* A model and all that is known of its requests. */
struct subject {
        const char *name;
        struct starling_model *model;
        struct starling_tensor input, output;
        struct starling_request request;
        struct sl_latencies polled, inferred; /* in ticks */
        double compute_ns;                    /* inside the networks, mean of a request */
        double per_second;
};

struct small {
        struct effort effort;
        int cpus[2]; /* the client's, the dispatcher's */
        bool json;
        const char *digits_folder; /* NULL: no digits */
        char folder[4096];         /* as an absolute path */
        double scale;              /* ns per tick */
        struct sl_server server;
        struct starling_client *client;
        struct starling_queue *queue;
        struct subject mlp, digits;
        struct sl_latencies noops, beside;
        double floor_ns, floor_after_ns;
        char heavy_note[240];
};

static int fail(const char *what, int r, const struct starling_error *error)
{
        fprintf(stderr, "starling bench small: %s: %s\n", what, error && error->text[0] ? error->text : starling_strerror(r));
        return r;
}

/* ---- what is asked ---- */

static int port_tensor(struct starling_client *client, const struct starling_port *port, struct starling_tensor *ret_tensor)
{
        uint32_t dims[STARLING_RANK_MAX];
        int r;

        for (uint32_t i = 0; i < port->rank; i++)
                dims[i] = port->dims[i] < 0 ? 1 : (uint32_t)port->dims[i];
        r = starling_tensor_alloc(client, port->dtype, port->rank, dims, ret_tensor);
        if (r == 0)
                memset(ret_tensor->data, 0, ret_tensor->bytes);
        return r;
}

static int open_subject(struct small *small, struct subject *subject)
{
        struct starling_error error = {0};
        int r = starling_model_open(small->client, subject->name, &subject->model, &error);

        if (r < 0)
                return fail(subject->name, r, &error);
        const struct starling_model_info *info = starling_model_describe(subject->model);

        r = port_tensor(small->client, &info->inputs[0], &subject->input);
        if (r == 0)
                r = port_tensor(small->client, &info->outputs[0], &subject->output);
        if (r < 0)
                return fail("no arena", r, NULL);
        subject->request = (struct starling_request){
                .model = subject->model, .inputs = &subject->input, .n_inputs = 1, .outputs = &subject->output, .n_outputs = 1};
        return 0;
}

static int attach(struct small *small)
{
        const struct starling_options options = {.runtime = small->server.socket, .label = "bench-small", .queue_pairs = 1};
        struct starling_error error = {0};
        int r = starling_connect(&options, &small->client, &error);

        if (r == 0)
                r = starling_queue_open(small->client, &small->queue, &error);
        if (r < 0)
                return fail("cannot attach", r, &error);
        r = open_subject(small, &small->mlp);
        if (r == 0 && small->digits_folder)
                r = open_subject(small, &small->digits);
        return r;
}

/* ---- what it takes ---- */

/* Time inside the networks and requests that ended, of all slots of this name. Return: 0, -errno. */
static int read_compute(const struct small *small, const char *name, uint64_t *ret_ns, uint64_t *ret_requests)
{
        struct sl_stats_view *view;
        struct sl_model_stats slot;
        int r = sl_stats_open(small->server.name, NULL, &view, NULL);

        *ret_ns = *ret_requests = 0;
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MODELS); i++) {
                if (sl_stats_read_model(view, i, &slot) < 0 || strcmp(slot.name, name))
                        continue;
                *ret_ns += sl_counter_read(&slot.compute_ns);
                *ret_requests += sl_counter_read(&slot.completed);
        }
        sl_stats_close(view);
        return 0;
}

static int play_subject(struct small *small, struct subject *subject, uint32_t rounds)
{
        int r = sl_round_trip_request(small->queue, &subject->request, MODEL_WARM_UP, rounds, &subject->polled);

        if (r == 0)
                r = sl_round_trip_infer(small->queue, &subject->request, rounds, &subject->inferred);
        return r < 0 ? fail(subject->name, r, NULL) : sl_bench_interrupted() ? -EINTR : 0;
}

static int play_turns(struct small *small)
{
        int r = 0;

        for (uint32_t turn = 0; turn < TURNS && r == 0; turn++) {
                r = sl_round_trip_spin(small->queue, NOOP_WARM_UP, small->effort.noops, 0, &small->noops);
                if (r == 0)
                        r = play_subject(small, &small->mlp, small->effort.requests);
                if (r == 0 && small->digits.model)
                        r = play_subject(small, &small->digits, small->effort.digits);
        }
        return r;
}

struct count {
        uint64_t compute_ns, requests;
};

static void end_subject(const struct small *small, struct subject *subject, const struct count *before)
{
        struct count now;

        subject->compute_ns = NAN;
        if (read_compute(small, subject->name, &now.compute_ns, &now.requests) == 0 && now.requests > before->requests)
                subject->compute_ns = (double)(now.compute_ns - before->compute_ns) / (double)(now.requests - before->requests);
}

static int measure_latencies(struct small *small)
{
        struct count mlp = {0}, digits = {0};

        (void)read_compute(small, SL_MLP_MODEL_NAME, &mlp.compute_ns, &mlp.requests);
        (void)read_compute(small, DIGITS, &digits.compute_ns, &digits.requests);
        int r = play_turns(small);
        end_subject(small, &small->mlp, &mlp);
        end_subject(small, &small->digits, &digits);
        return r;
}

/* IN_FLIGHT requests at a time, each sent again when it has come back. */
static int measure_throughput(struct small *small, struct subject *subject)
{
        const uint32_t samples[] = {1};
        const struct sl_load_options options = {
                .client = {.runtime = small->server.socket,
                        .models = &subject->name,
                        .samples = samples,
                        .n_models = 1,
                        .in_flight = IN_FLIGHT},
                .weights = {1},
                .threads = 1,
                .warm_up_ns = small->effort.throughput_ns / 4,
                .duration_ns = small->effort.throughput_ns,
        };
        const struct sl_load_level level = {.closed = true, .in_flight = IN_FLIGHT};
        struct starling_error error = {0};
        struct sl_load_session *session;
        struct sl_load_repeat repeat;

        subject->per_second = NAN;
        if (!subject->model)
                return 0;
        int r = sl_load_session_new(&options, &session, &error);
        if (r < 0)
                return fail(subject->name, r, &error);
        r = sl_load_session_run(session, &level, 0, &repeat, &error);
        sl_load_session_free(session);
        if (r < 0)
                return fail(subject->name, r, &error);
        if (repeat.tally.failed)
                r = fail("a request failed", repeat.tally.first_failure, &error);
        else
                subject->per_second = (double)repeat.tally.answered_in_time * (double)SL_NS_PER_SECOND / (double)repeat.measured_ns;
        sl_tally_deinit(&repeat.tally);
        return r;
}

static int measure_beside_heavy(struct small *small)
{
        int third = sl_cores_third(small->cpus);
        struct sl_heavy_load load;
        int r = sl_heavy_load_start(&load, &small->server, small->cpus, third < 0 ? small->cpus[0] : third);

        if (r == 0) {
                snprintf(small->heavy_note, sizeof(small->heavy_note), "%s",
                        sl_heavy_load_is_served(&load)
                                ? "a model of 3.7 GFLOP a sample, two requests in flight from another process"
                                : load.note);
                r = sl_round_trip_request(small->queue, &small->mlp.request, 0, small->effort.beside, &small->beside);
        }
        int stopped = sl_heavy_load_stop(&load);

        return r < 0 ? r : stopped;
}

static int run_phases(struct small *small)
{
        int r = measure_latencies(small);

        if (r == 0)
                r = measure_throughput(small, &small->mlp);
        if (r == 0)
                r = measure_throughput(small, &small->digits);
        if (r == 0 && !sl_bench_interrupted())
                r = measure_beside_heavy(small);
        return sl_bench_interrupted() ? -EINTR : r;
}

/* ---- the run ---- */

static int serve_mlp(const struct small *small)
{
        struct starling_error error = {0};
        int r = sl_mlp_model_write(small->server.repository);

        if (r < 0)
                return fail("cannot write the perceptron", r, NULL);
        r = sl_server_load(&small->server, SL_MLP_MODEL_NAME, &error);
        return r < 0 ? fail(SL_MLP_MODEL_NAME, r, &error) : 0;
}

static int start(struct small *small)
{
        struct sl_server_options options = {.dispatcher_cpu = -1, .worker_cpu = -1, .arena_bytes = ARENA_BYTES};

        if (small->digits_folder && !realpath(small->digits_folder, small->folder))
                return fail(small->digits_folder, -errno, NULL);
        options.models = small->digits_folder ? small->folder : NULL;
        CPU_ZERO(&options.cpus);
        CPU_SET(small->cpus[0], &options.cpus);
        CPU_SET(small->cpus[1], &options.cpus);
        return sl_server_start(&small->server, &options);
}

static int run(struct small *small)
{
        small->scale = sl_ticks_scale();
        int r = sl_floor_measure(small->cpus, &small->floor_ns);
        if (r == 0)
                r = start(small);
        if (r < 0)
                return r;
        r = serve_mlp(small);
        if (r == 0)
                r = attach(small);
        if (r == 0)
                r = run_phases(small);
        small->client = starling_close(small->client);
        if (r < 0 && r != -EINTR)
                sl_server_show_log(&small->server);
        if (sl_server_stop(&small->server) < 0 && r == 0)
                r = fail("the runtime did not end in order", -EIO, NULL);
        return r < 0 ? r : sl_floor_measure(small->cpus, &small->floor_after_ns);
}

/* ---- the report ---- */

static double at(const struct small *small, const struct sl_latencies *samples, double share)
{
        return sl_latencies_at(samples, share) * small->scale;
}

static void report_mlp(const struct small *small, double noop_ns, struct sl_report *to)
{
        const struct subject *mlp = &small->mlp;
        double p50 = at(small, &mlp->polled, 0.5), p999 = at(small, &mlp->polled, 0.999), own = p50 - mlp->compute_ns;
        double p99 = at(small, &mlp->polled, 0.99), beside = at(small, &small->beside, 0.99);

        sl_report_number(to, "mlp_rtt_p50_ns", SL_UNIT_NS, p50, "<= 3 us", p50 <= SMALL_US * 1e3);
        sl_report_number(to, "mlp_rtt_p99_ns", SL_UNIT_NS, p99, NULL, 0);
        sl_report_number(to, "mlp_rtt_p999_ns", SL_UNIT_NS, p999, "<= 10 x p50", p999 <= 10 * p50);
        sl_report_number(to, "mlp_rtt_mean_ns", SL_UNIT_NS, sl_latencies_mean(&mlp->polled) * small->scale, NULL, 0);
        sl_report_number(to, "mlp_compute_ns", SL_UNIT_NS, mlp->compute_ns, NULL, 0);
        sl_report_number(to, "mlp_own_ns", SL_UNIT_NS, own, "<= 3 no-op round trips", own <= 3 * noop_ns);
        sl_report_number(to, "mlp_infer_p50_ns", SL_UNIT_NS, at(small, &mlp->inferred, 0.5), NULL, 0);
        sl_report_number(to, "mlp_infer_p999_ns", SL_UNIT_NS, at(small, &mlp->inferred, 0.999), NULL, 0);
        sl_report_number(
                to, "mlp_per_second_32_in_flight", SL_UNIT_PER_SECOND, mlp->per_second, ">= 400 k/s", mlp->per_second >= 4e5);
        sl_report_number(to, "mlp_rtt_p99_beside_heavy_ns", SL_UNIT_NS, beside, NULL, 0);
        sl_report_number(to, "mlp_p99_beside_heavy_over_alone", SL_UNIT_TIMES, beside / p99, NULL, 0);
        sl_report_text(to, "heavy_note", "%s", small->heavy_note);
}

static void report_digits(const struct small *small, struct sl_report *to)
{
        const struct subject *digits = &small->digits;
        double p50 = at(small, &digits->polled, 0.5), own = p50 - digits->compute_ns;

        sl_report_number(to, "digits_rtt_p50_ns", SL_UNIT_NS, p50, NULL, 0);
        sl_report_number(to, "digits_rtt_p999_ns", SL_UNIT_NS, at(small, &digits->polled, 0.999), NULL, 0);
        sl_report_number(to, "digits_compute_ns", SL_UNIT_NS, digits->compute_ns, NULL, 0);
        sl_report_number(to, "digits_own_ns", SL_UNIT_NS, own, "<= 5 us", own <= 5e3);
        sl_report_number(to, "digits_infer_p50_ns", SL_UNIT_NS, at(small, &digits->inferred, 0.5), NULL, 0);
        sl_report_number(to, "digits_per_second_32_in_flight", SL_UNIT_PER_SECOND, digits->per_second, NULL, 0);
}

static void report_all(const struct small *small, struct sl_report *to)
{
        double noop_ns = at(small, &small->noops, 0.5);

        sl_report_number(to, "floor_ns", SL_UNIT_NS, small->floor_ns, NULL, 0);
        sl_report_number(to, "floor_after_ns", SL_UNIT_NS, small->floor_after_ns, NULL, 0);
        sl_report_number(to, "noop_rtt_p50_ns", SL_UNIT_NS, noop_ns, NULL, 0);
        sl_report_number(to, "noop_rtt_p999_ns", SL_UNIT_NS, at(small, &small->noops, 0.999), NULL, 0);
        report_mlp(small, noop_ns, to);
        report_digits(small, to);
        sl_report_text(to, "cpus", "client %d, runtime %d and %d", small->cpus[0], small->cpus[1], small->cpus[0]);
}

SL_BENCH_OPTIONS(SMALL_OPTIONS);

static int parse(int argc, char **argv, struct small *small, const char **ret_write)
{
        int option;

        while ((option = getopt_long(argc, argv, "", bench_options, NULL)) != -1) {
                if (option == OPTION_JSON)
                        small->json = true;
                else if (option == OPTION_QUICK)
                        small->effort = quick;
                else if (option == OPTION_DIGITS)
                        small->digits_folder = optarg;
                else if (option == OPTION_WRITE_MODEL)
                        *ret_write = optarg;
                else if (option != OPTION_CPUS || sl_bench_cpus(optarg, small->cpus) < 0)
                        return 2;
        }
        return 0;
}

/* The runtime's dispatcher takes the first CPU, so the client takes the second. */
static int pick_cpus(struct small *small)
{
        int picked[2], r;

        if (small->cpus[0] >= 0)
                return 0;
        r = sl_cores_pick(picked);
        small->cpus[0] = picked[1];
        small->cpus[1] = picked[0];
        return r;
}

static int make_samples(struct small *small)
{
        int r = sl_latencies_init(&small->noops);

        if (r == 0)
                r = sl_latencies_init(&small->beside);
        if (r == 0)
                r = sl_latencies_init(&small->mlp.polled);
        if (r == 0)
                r = sl_latencies_init(&small->mlp.inferred);
        if (r == 0)
                r = sl_latencies_init(&small->digits.polled);
        if (r == 0)
                r = sl_latencies_init(&small->digits.inferred);
        return r;
}

static void free_samples(struct small *small)
{
        sl_latencies_deinit(&small->noops);
        sl_latencies_deinit(&small->beside);
        sl_latencies_deinit(&small->mlp.polled);
        sl_latencies_deinit(&small->mlp.inferred);
        sl_latencies_deinit(&small->digits.polled);
        sl_latencies_deinit(&small->digits.inferred);
}

static int write_model(const char *repository)
{
        int r = sl_mlp_model_write(repository);

        return r < 0 ? fail(repository, r, NULL), 1 : 0;
}

int sl_bench_small(int argc, char **argv)
{
        struct small small = {.effort = full,
                .cpus = {-1, -1},
                .server = {.pid = -1},
                .mlp = {.name = SL_MLP_MODEL_NAME},
                .digits = {.name = DIGITS}};
        struct sl_report report;
        const char *repository = NULL;
        int code = parse(argc, argv, &small, &repository);

        if (code)
                return code;
        if (repository)
                return write_model(repository);
        int r = pick_cpus(&small);
        if (r == 0)
                r = make_samples(&small);
        if (r == 0)
                r = run(&small);
        if (r == 0) {
                sl_report_init(&report, "small", argc, argv);
                report_all(&small, &report);
                sl_report_print(&report, small.json, small.floor_ns);
        } else if (r == -ENOTSUP) {
                fprintf(stderr, "starling bench small: it needs two CPUs, this process may run on one\n");
        }
        free_samples(&small);
        return r < 0;
}
