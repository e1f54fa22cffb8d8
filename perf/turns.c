/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench turns`: how long others wait for a request that is long. A runtime of our own, as it is by default, serves one
 * model that takes tens of milliseconds a sample, longer than a slice, so that no batch is larger than one sample; two clients of
 * this process sleep while they wait. Each figure stands beside the time of one sample, which is the least that it can be bound by.
 */
#include "base/clock.h"
#include "bench.h"
#include "conv_model.h"
#include "latencies.h"
#include "report.h"
#include "server.h"
#include "starling.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MODEL       "heavy"
#define LONG        512u /* samples */
#define SHORT       128u
#define DEADLINE_NS (200 * SL_NS_PER_MS)
#define ARENA_BYTES (2048ull << 20)
#define GRACE_S     5.0 /* the default */
#define SLICE_NS    1e7 /* the default */

struct guest {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_tensor input, output;
};

struct turns {
        uint32_t rounds;
        bool json;
        struct sl_server server;
        struct guest first, second;
        struct sl_latencies sample, deadline, cancel, urgent, turn;
        double stop_s;
};

static void guest_leave(struct guest *guest)
{
        starling_close(guest->client);
        guest->client = NULL;
}

static int guest_enter(struct guest *guest, const struct sl_server *server, struct starling_error *error)
{
        const struct sl_conv_model shape = SL_CONV_MODEL_HEAVY;
        const struct starling_options options = {
                .runtime = server->socket, .label = "bench-turns", .arena_bytes = ARENA_BYTES / 2, .timeout_ns = SL_NS_PER_SECOND};
        uint32_t dims[] = {LONG, shape.channels, shape.side, shape.side};
        int r = starling_connect(&options, &guest->client, error);

        if (r == 0)
                r = starling_queue_open(guest->client, &guest->queue, error);
        if (r == 0)
                r = starling_model_open(guest->client, MODEL, &guest->model, error);
        if (r == 0)
                r = starling_tensor_alloc(guest->client, STARLING_F32, 4, dims, &guest->input);
        if (r == 0)
                r = starling_tensor_alloc(guest->client, STARLING_F32, 4, dims, &guest->output);
        if (r == 0)
                memset(guest->input.data, 0, guest->input.bytes);
        return r;
}

static int guest_submit(struct guest *guest, uint32_t samples, uint32_t priority, uint64_t deadline_ns, uint64_t *ret_id)
{
        struct starling_tensor input = guest->input, output = guest->output;

        input.dims[0] = output.dims[0] = samples;
        input.bytes = output.bytes = guest->input.bytes / LONG * samples;
        return starling_submit(guest->queue,
                &(struct starling_request){.model = guest->model,
                        .inputs = &input,
                        .n_inputs = 1,
                        .outputs = &output,
                        .n_outputs = 1,
                        .priority = priority,
                        .deadline_ns = deadline_ns},
                ret_id);
}

/* Return: 0 when it ended with @status, -EIO otherwise. */
static int guest_wait(struct guest *guest, int status)
{
        struct starling_completion done;
        int n = starling_wait(guest->queue, &done, 1, 600 * SL_NS_PER_SECOND);

        return n == 1 && done.status == status ? 0 : -EIO;
}

static void pause_ns(uint64_t ns)
{
        nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / SL_NS_PER_SECOND), .tv_nsec = (long)(ns % SL_NS_PER_SECOND)}, NULL);
}

static int time_sample(struct turns *turns)
{
        uint64_t begun = sl_clock_ns();
        int r = guest_submit(&turns->second, 1, 0, 0, NULL);

        if (r == 0)
                r = guest_wait(&turns->second, 0);
        sl_latencies_add(&turns->sample, sl_clock_ns() - begun);
        return r;
}

static int time_deadline(struct turns *turns)
{
        uint64_t deadline = starling_clock_ns() + DEADLINE_NS, now;
        int r = guest_submit(&turns->first, SHORT, 0, deadline, NULL);

        if (r == 0)
                r = guest_wait(&turns->first, -ETIME);
        now = starling_clock_ns();
        sl_latencies_add(&turns->deadline, now > deadline ? now - deadline : 0);
        return r;
}

static int cancel_long(struct turns *turns, uint64_t id)
{
        uint64_t begun = sl_clock_ns();
        int r = starling_cancel(turns->first.queue, id);

        if (r == 0)
                r = guest_wait(&turns->first, -ECANCELED);
        sl_latencies_add(&turns->cancel, sl_clock_ns() - begun);
        return r;
}

/* A sample beside a long request of @priority, which is then cancelled. */
static int time_beside(struct turns *turns, uint32_t priority, struct sl_latencies *to)
{
        uint64_t id, begun;
        int r = guest_submit(&turns->first, LONG, priority, 0, &id);

        if (r < 0)
                return r;
        pause_ns(DEADLINE_NS);
        begun = sl_clock_ns();
        r = guest_submit(&turns->second, 1, 0, 0, NULL);
        if (r == 0)
                r = guest_wait(&turns->second, 0);
        sl_latencies_add(to, sl_clock_ns() - begun);
        return r < 0 ? r : cancel_long(turns, id);
}

static int run_rounds(struct turns *turns)
{
        int r = 0;

        for (uint32_t i = 0; i < turns->rounds && r == 0; i++) {
                r = sl_bench_interrupted() ? -EINTR : time_sample(turns);
                if (r == 0)
                        r = time_deadline(turns);
                if (r == 0)
                        r = time_beside(turns, 3, &turns->urgent);
                if (r == 0)
                        r = time_beside(turns, 0, &turns->turn);
        }
        return r;
}

static int load_and_enter(struct turns *turns, struct starling_error *error)
{
        int r = sl_server_load_conv(&turns->server, &SL_CONV_MODEL_HEAVY, MODEL, error);

        if (r == 0)
                r = guest_enter(&turns->first, &turns->server, error);
        return r < 0 ? r : guest_enter(&turns->second, &turns->server, error);
}

/* The runtime is told to end while a request that would take longer than the grace time is computed. */
static int time_stop(struct turns *turns)
{
        uint64_t begun;
        int r = guest_submit(&turns->first, LONG, 0, 0, NULL);

        if (r < 0)
                return r;
        pause_ns(DEADLINE_NS);
        begun = sl_clock_ns();
        r = sl_server_stop(&turns->server);
        turns->stop_s = (double)(sl_clock_ns() - begun) / 1e9;
        return r;
}

static int run(struct turns *turns)
{
        struct sl_server_options options = {.dispatcher_cpu = -1, .arena_bytes = ARENA_BYTES};
        struct starling_error error = {0};
        int r = sched_getaffinity(0, sizeof(options.cpus), &options.cpus) < 0 ? -errno : sl_server_start(&turns->server, &options);

        if (r < 0)
                return r;
        r = load_and_enter(turns, &error);
        if (r == 0)
                r = run_rounds(turns);
        if (r == 0)
                r = time_stop(turns);
        if (r < 0 && r != -EINTR) {
                fprintf(stderr, "starling bench turns: %s\n", error.text);
                sl_server_show_log(&turns->server);
        }
        guest_leave(&turns->first);
        guest_leave(&turns->second);
        return sl_server_stop(&turns->server) < 0 && r == 0 ? -EIO : r;
}

static double median(const struct sl_latencies *samples)
{
        return sl_latencies_at(samples, 0.5);
}

static void report_wait(struct sl_report *to, const char *key, const char *times_key, const struct sl_latencies *samples,
        double grain_ns, const char *target, double most)
{
        double ns = median(samples);

        sl_report_number(to, key, SL_UNIT_NS, ns, NULL, 0);
        sl_report_number(to, times_key, SL_UNIT_TIMES, ns / grain_ns, target, ns <= most * grain_ns);
}

static void report_all(struct turns *turns, struct sl_report *to)
{
        double sample_ns = median(&turns->sample), grain_ns = sample_ns > SLICE_NS ? sample_ns : SLICE_NS;

        sl_report_number(to, "rounds", SL_UNIT_COUNT, turns->rounds, NULL, 0);
        sl_report_number(to, "sample_ns", SL_UNIT_NS, sample_ns, NULL, 0);
        sl_report_number(to, "grain_ns", SL_UNIT_NS, grain_ns, NULL, 0);
        report_wait(to, "late_ns", "late_over_grain", &turns->deadline, grain_ns, "<= 2: a batch and a slice", 2);
        report_wait(to, "cancel_ns", "cancel_over_grain", &turns->cancel, grain_ns, "<= 2: a batch and a slice", 2);
        report_wait(to, "urgent_ns", "urgent_over_grain", &turns->urgent, grain_ns, "<= 3: a batch, a slice and its own", 3);
        report_wait(to, "turn_ns", "turn_over_grain", &turns->turn, grain_ns, "<= 4: one turn more", 4);
        sl_report_number(to, "stop_beyond_grace_ns", SL_UNIT_NS, (turns->stop_s - GRACE_S) * 1e9, NULL, 0);
}

static int init_samples(struct turns *turns)
{
        int r = sl_latencies_init(&turns->sample);

        if (r == 0)
                r = sl_latencies_init(&turns->deadline);
        if (r == 0)
                r = sl_latencies_init(&turns->cancel);
        if (r == 0)
                r = sl_latencies_init(&turns->urgent);
        return r < 0 ? r : sl_latencies_init(&turns->turn);
}

int sl_bench_turns(int argc, char **argv)
{
        struct turns turns = {.rounds = 9, .server = {.pid = -1}};
        struct sl_report report;
        int code = sl_bench_options(argc, argv, NULL, &turns.json);

        if (code)
                return code;
        int r = init_samples(&turns);
        if (r == 0)
                r = run(&turns);
        if (r == 0) {
                sl_report_init(&report, "turns", argc, argv);
                report_all(&turns, &report);
                sl_report_print(&report, turns.json, 0);
        } else {
                fprintf(stderr, "starling bench turns: %s\n", starling_strerror(r));
        }
        sl_latencies_deinit(&turns.sample);
        sl_latencies_deinit(&turns.deadline);
        sl_latencies_deinit(&turns.cancel);
        sl_latencies_deinit(&turns.urgent);
        sl_latencies_deinit(&turns.turn);
        return r < 0;
}
