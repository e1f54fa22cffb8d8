/* SPDX-License-Identifier: Apache-2.0 */
#include "live_bench.h"

#include "allocation_bench.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "costs.h"
#include "load_session.h"
#include "matrix.h"
#include "problem.h"
#include "server.h"
#include "starling.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES    (2ull << 30)
#define IN_FLIGHT      4u   /* requests of a full load */
#define ROUND_REQUESTS 8.0  /* at least, in a round */
#define REQUEST_S      0.01 /* that one takes, about */
#define SAMPLES_MAX    1024u
#define OPEN_IN_FLIGHT 512u

struct live_bench {
        struct sl_bench bench;
        const struct sl_problem *problem;
        struct sl_live_bench_options options;
        struct sl_server server;
        struct starling_client *admin;
        struct sl_load_session *full, *open; /* requests of many samples, and of one */
        uint32_t samples;                    /* of one of the former */
        uint64_t round_ns;
};

static uint32_t largest_batch(const struct sl_costs *costs)
{
        return costs->batches[costs->n_batches - 1];
}

/* What takes the time of a request, and fills the largest batch; cap_size() knows the model. */
static void choose_size(struct live_bench *live)
{
        double expected = fmax(live->options.expected, 1e-3), samples = expected * REQUEST_S;
        double least = largest_batch(live->problem->costs);

        live->samples = (uint32_t)fmin(fmax(samples, least), SAMPLES_MAX);
        live->round_ns = (uint64_t)(1e9 * fmax(live->options.seconds, ROUND_REQUESTS * live->samples / expected));
}

static int session_new(struct live_bench *live, const uint32_t *samples, uint32_t in_flight, struct sl_load_session **ret_session,
        struct sl_error *error)
{
        struct starling_error said = {""};
        const struct sl_load_options options = {
                .client = {.runtime = live->server.socket,
                        .models = &live->options.served,
                        .samples = samples,
                        .n_models = 1,
                        .in_flight = in_flight},
                .weights = {1},
                .speed = 1,
                .threads = 1,
                .seed = 1,
                .warm_up_ns = live->round_ns / 4,
                .duration_ns = live->round_ns,
        };
        int r = sl_load_session_new(&options, ret_session, &said);

        return r < 0 ? sl_error_set(error, -r, "\"%s\": %s", live->options.served, said.text) : 0;
}

/* The folder of NAME, or of NAME:VERSION. */
static int link_one(const struct live_bench *live, const char *name, struct sl_error *error)
{
        int bytes = (int)strcspn(name, ":");
        char from[4096], to[4096];

        if (snprintf(from, sizeof(from), "%s/%.*s", live->options.repository, bytes, name) >= (int)sizeof(from) ||
                snprintf(to, sizeof(to), "%s/%.*s", live->server.repository, bytes, name) >= (int)sizeof(to))
                return sl_error_set(error, ENAMETOOLONG, "\"%s\": its path is too long", name);
        if (symlink(from, to) < 0 && errno != EEXIST)
                return sl_error_set(error, errno, "\"%s\": %s", to, strerror(errno));
        return 0;
}

static int load_all(const struct live_bench *live, struct sl_error *error)
{
        struct starling_error said = {""};
        int r = 0;

        for (uint32_t i = 0; i < live->options.n_members && r == 0; i++)
                r = link_one(live, live->options.members[i], error);
        r = r < 0 ? r : link_one(live, live->options.served, error);
        if (r < 0)
                return r;
        r = sl_server_load(&live->server, live->options.served, &said);
        return r < 0 ? sl_error_set(error, -r, "\"%s\": %s", live->options.served, said.text) : 0;
}

static int connect_admin(struct live_bench *live, struct sl_error *error)
{
        const struct starling_options options = {
                .runtime = live->server.socket, .role = STARLING_ROLE_ADMIN, .label = "live-bench", .timeout_ns = SL_NS_PER_SECOND};
        struct starling_error said = {""};
        int r = starling_connect(&options, &live->admin, &said);

        return r < 0 ? sl_error_set(error, -r, "%s", said.text) : 0;
}

/* No request has more samples than the model takes; what has an input without a batch takes one. */
static int cap_size(struct live_bench *live, struct sl_error *error)
{
        struct starling_error said = {""};
        struct starling_model *model;
        int r = starling_model_open(live->admin, live->options.served, &model, &said);

        if (r < 0)
                return sl_error_set(error, -r, "\"%s\": %s", live->options.served, said.text);
        const struct starling_model_info *info = starling_model_describe(model);
        uint32_t most = info->samples_max;
        for (uint32_t i = 0; i < info->n_inputs; i++)
                most = info->inputs[i].batch_axis < 0 ? 1 : most;
        live->samples = live->samples < most ? live->samples : most;
        starling_model_close(model);
        return 0;
}

static int start(struct live_bench *live, struct sl_error *error)
{
        struct sl_server_options options = {.dispatcher_cpu = -1,
                .worker_cpu = -1,
                .ordinary = true,
                .cached = true,
                .arena_bytes = ARENA_BYTES,
                .data_folders = live->options.data_folders,
                .n_data_folders = live->options.n_data_folders};
        int r;

        sched_getaffinity(0, sizeof(options.cpus), &options.cpus);
        r = sl_server_start(&live->server, &options);
        if (r < 0)
                return sl_error_set(error, -r, "the runtime to measure with does not start");
        r = load_all(live, error);
        r = r < 0 ? r : connect_admin(live, error);
        r = r < 0 ? r : cap_size(live, error);
        return r < 0 ? r : session_new(live, &live->samples, IN_FLIGHT, &live->full, error);
}

/* A worker for each entry of the matrix. */
static int apply(struct live_bench *live, const struct sl_matrix *matrix, struct sl_error *error)
{
        const struct sl_costs *costs = live->problem->costs;
        SL_CLEANUP(sl_cleanup_free)
        struct starling_allotment *allotments = calloc((size_t)matrix->n_devices * matrix->n_models, sizeof(*allotments));
        struct starling_error said = {""};
        uint32_t n = 0;
        int r;

        if (!allotments)
                return sl_error_set(error, ENOMEM, "no memory for an allocation");
        for (uint32_t d = 0; d < matrix->n_devices; d++)
                for (uint32_t m = 0; m < matrix->n_models; m++)
                        if (sl_matrix_batch(matrix, d, m))
                                allotments[n++] = (struct starling_allotment){
                                        costs->models[m].name, costs->devices[d].name, sl_matrix_batch(matrix, d, m)};
        r = starling_admin_apply(live->admin, allotments, n, &said);
        return r < 0 ? sl_error_set(error, -r, "%s", said.text) : 0;
}

static int repeat(struct sl_load_session *session, const struct sl_load_level *level, uint32_t number,
        struct sl_load_repeat *ret_repeat, struct sl_error *error)
{
        struct starling_error said = {""};
        int r = sl_load_session_run(session, level, number, ret_repeat, &said);

        if (r < 0)
                return sl_error_set(error, -r, "%s", *said.text ? said.text : strerror(-r));
        if (ret_repeat->tally.failed) {
                sl_tally_deinit(&ret_repeat->tally);
                return sl_error_set(error, EIO, "%s", said.text);
        }
        return 0;
}

/* None in time, as on a machine that was taken away for the round, is less than one, and not nothing: that is what does not fit. */
static int measure_throughput(struct live_bench *live, double *ret_throughput, struct sl_error *error)
{
        const struct sl_load_level level = {.closed = true, .in_flight = IN_FLIGHT};
        struct sl_load_repeat one;
        int r = repeat(live->full, &level, 0, &one, error);

        if (r < 0)
                return r;
        *ret_throughput = fmax((double)one.tally.samples_in_time, 1) / ((double)one.measured_ns / 1e9);
        sl_tally_deinit(&one.tally);
        return 0;
}

/* Above what it carries the latency has no end. */
static int measure_latency(struct live_bench *live, double load, double throughput, double *ret_latency_ns, struct sl_error *error)
{
        static const uint32_t one_sample = 1;
        const struct sl_load_level level = {.in_flight = OPEN_IN_FLIGHT, .arrivals = {.kind = SL_ARRIVALS_POISSON, .rate = load}};
        struct sl_load_repeat one;
        int r = 0;

        *ret_latency_ns = INFINITY;
        if (load >= throughput)
                return 0;
        if (!live->open)
                r = session_new(live, &one_sample, OPEN_IN_FLIGHT, &live->open, error);
        r = r < 0 ? r : repeat(live->open, &level, 0, &one, error);
        if (r < 0)
                return r;
        *ret_latency_ns = sl_latencies_mean(&one.tally.total);
        sl_tally_deinit(&one.tally);
        return 0;
}

/* @applied: what came of the change before. */
static int measure(struct live_bench *live, int applied, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error)
{
        int r;

        *ret_result = (struct sl_bench_result){.latency_ns = INFINITY};
        if (applied == -ENOMEM)
                return 0;
        r = applied < 0 ? applied : measure_throughput(live, &ret_result->throughput, error);
        if (r < 0 || calibration->load <= 0)
                return r;
        return measure_latency(live, calibration->load, ret_result->throughput, &ret_result->latency_ns, error);
}

static int live_run(struct sl_bench *bench, const struct sl_matrix *matrix, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error)
{
        struct live_bench *live = (struct live_bench *)bench;

        return measure(live, apply(live, matrix, error), calibration, ret_result, error);
}

int sl_live_bench_run_configured(struct sl_bench *bench, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error)
{
        struct live_bench *live = (struct live_bench *)bench;
        struct starling_error said = {""};
        int r = starling_admin_apply(live->admin, NULL, 0, &said);

        r = r < 0 ? sl_error_set(error, -r, "%s", said.text) : 0;
        return measure(live, r, calibration, ret_result, error);
}

static void live_free(struct sl_bench *bench)
{
        struct live_bench *live = (struct live_bench *)bench;

        if (!live)
                return;
        sl_load_session_free(live->full);
        sl_load_session_free(live->open);
        starling_close(live->admin);
        sl_server_stop(&live->server);
        free(live);
}

static const struct sl_bench_ops ops = {.name = "live", .run = live_run, .free = live_free};

int sl_live_bench_new(const struct sl_problem *problem, const struct sl_live_bench_options *options, struct sl_bench **ret_bench,
        struct sl_error *error)
{
        struct live_bench *live = calloc(1, sizeof(*live));
        int r;

        if (!live)
                return sl_error_set(error, ENOMEM, "no memory to measure with");
        live->bench.ops = &ops;
        live->problem = problem;
        live->options = *options;
        live->server.pid = -1;
        choose_size(live);
        r = start(live, error);
        if (r < 0) {
                live_free(&live->bench);
                return r;
        }
        *ret_bench = &live->bench;
        return 0;
}
