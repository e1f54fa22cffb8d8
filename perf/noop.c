/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench noop`: what a request costs that asks for nothing, from one process to another and back.
 *
 * The client is this thread, bound to one CPU; the runtime is a child of this process (server.h) whose dispatcher is bound to
 * another. One run measures everything, the floor before and after, a bare ring (ring_pair.h) in turns with the path, so that
 * figures can be compared as ratios of one machine at one time. No round is left out; a sample goes from before the submit to after
 * the poll that reaps.
 */
#include "base/clock.h"
#include "bench.h"
#include "bench_options.h"
#include "cores.h"
#include "floor.h"
#include "futex_pair.h"
#include "heavy_load.h"
#include "latencies.h"
#include "process.h"
#include "report.h"
#include "ring_pair.h"
#include "round_trip.h"
#include "server.h"
#include "starling.h"
#include "ticks.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS       32u
#define LARGE_ARENA   (1ull << 30)
#define SMALL_ARENA   (1ull << 20)
#define DEPTH         256u
#define PAUSE_US      2000u
#define WARM_UP       20000u
#define RING_WARM_UP  5000u
#define TURNS         10u
#define BUSY_ROUNDS   (8u << 20) /* at most; else the time ends it */
#define ATTACH_US     (1 * 1000u)
#define ATTACH_BIG_US (20 * 1000u)

/* How much of everything is measured. */
struct effort {
        uint32_t rounds, sleeps, attaches, large_attaches;
        uint64_t throughput_ns, idle_ns, busy_ns;
};

static const struct effort full = {1000000, 1500, 300, 20, 2 * SL_NS_PER_SECOND, 5 * SL_NS_PER_SECOND, 5 * SL_NS_PER_SECOND};
static const struct effort quick = {50000, 50, 20, 2, SL_NS_PER_SECOND / 5, SL_NS_PER_SECOND, SL_NS_PER_SECOND / 2};

/* Of round trips, in nanoseconds. */
struct summary {
        double mean, p50, p99, p999, worst;
};

struct noop {
        struct effort effort;
        int cpus[2]; /* the client's, the dispatcher's */
        int worker_cpu;
        bool json;
        double scale; /* ns per tick */
        struct sl_server server;
        struct starling_client *client;
        struct starling_queue *queue;
        struct sl_latencies samples, ring_samples, crowd_samples;

        double floor_ns, two_lines_ns, floor_after_ns;
        struct summary ring, rtt, rtt_32;
        double per_second;
        double sleeping_p50, sleeping_p99, futex_p50, futex_tight_p50;
        double idle_share;
        double attach, attach_large, connect, connect_large;
        double rss;
        double busy_p50, busy_p99, busy_p999, busy_done;
        char busy_note[240];
};

static int connect_queue(const struct noop *noop, uint64_t arena_bytes, const char *label, struct starling_client **ret_client,
        struct starling_queue **ret_queue)
{
        const struct starling_options options = {
                .runtime = noop->server.socket,
                .label = label,
                .queue_pairs = 1,
                .queue_depth = DEPTH,
                .tensors_per_request = 1,
                .arena_bytes = arena_bytes,
                .timeout_ns = SL_NS_PER_SECOND,
        };
        struct starling_error error = {0};
        struct starling_client *client;
        int r = starling_connect(&options, &client, &error);

        if (r == 0 && ret_queue) {
                r = starling_queue_open(client, ret_queue, &error);
                if (r < 0)
                        starling_close(client);
        }
        if (r < 0)
                fprintf(stderr, "starling bench noop: %s: %s\n", label, error.text);
        else
                *ret_client = client;
        return r;
}

static double in_ns(const struct noop *noop, double share)
{
        return sl_latencies_at(&noop->samples, share) * noop->scale;
}

static struct summary summary_of(const struct noop *noop, const struct sl_latencies *samples)
{
        return (struct summary){
                .mean = sl_latencies_mean(samples) * noop->scale,
                .p50 = sl_latencies_at(samples, 0.5) * noop->scale,
                .p99 = sl_latencies_at(samples, 0.99) * noop->scale,
                .p999 = sl_latencies_at(samples, 0.999) * noop->scale,
                .worst = sl_latencies_at(samples, 1) * noop->scale,
        };
}

/* Fills noop->samples, sorted. */
static int spin(struct noop *noop, uint32_t rounds, uint64_t limit_ns)
{
        sl_latencies_clear(&noop->samples);
        int r = sl_round_trip_spin(noop->queue, WARM_UP, rounds, limit_ns, &noop->samples);

        return r;
}

/* With 31 further connections, each of which has sent one request and then nothing. */
static int spin_among_many(struct noop *noop, uint32_t rounds)
{
        struct starling_client *clients[CLIENTS - 1] = {0};
        int r = 0;

        for (uint32_t i = 0; i < CLIENTS - 1 && r == 0; i++) {
                struct starling_queue *queue;

                r = connect_queue(noop, SMALL_ARENA, "bench-idle", &clients[i], &queue);
                if (r == 0)
                        r = starling_infer(queue, &(struct starling_request){.flags = STARLING_NOOP}, NULL);
        }
        if (r == 0)
                r = sl_round_trip_spin(noop->queue, WARM_UP, rounds, 0, &noop->crowd_samples);
        for (uint32_t i = 0; i < CLIENTS - 1; i++)
                starling_close(clients[i]);
        return r;
}

/* What is compared takes turns: how near the two CPUs lie may change within a second. The dispatcher sleeps when the ring plays. */
static int play_turns(struct noop *noop)
{
        uint32_t rounds = noop->effort.rounds / TURNS;
        int r = 0;

        sl_latencies_clear(&noop->samples);
        for (uint32_t turn = 0; turn < TURNS && r == 0; turn++) {
                r = sl_ring_pair_measure(noop->cpus, RING_WARM_UP, rounds, &noop->ring_samples);
                if (r == 0)
                        r = sl_round_trip_spin(noop->queue, WARM_UP, rounds, 0, &noop->samples);
                if (r == 0)
                        r = spin_among_many(noop, rounds);
        }
        return r;
}

static int measure_round_trips(struct noop *noop)
{
        int r = play_turns(noop);

        noop->ring = summary_of(noop, &noop->ring_samples);
        noop->rtt = summary_of(noop, &noop->samples);
        noop->rtt_32 = summary_of(noop, &noop->crowd_samples);
        return r;
}

static int measure_throughput(struct noop *noop)
{
        return sl_round_trip_throughput(noop->queue, DEPTH, noop->effort.throughput_ns, &noop->per_second);
}

static int measure_sleepers(struct noop *noop)
{
        sl_latencies_clear(&noop->samples);
        int r = sl_round_trip_sleep(noop->queue, noop->effort.sleeps, PAUSE_US, &noop->samples);

        noop->sleeping_p50 = sl_latencies_at(&noop->samples, 0.5);
        noop->sleeping_p99 = sl_latencies_at(&noop->samples, 0.99);
        if (r == 0)
                r = sl_futex_pair_measure(noop->cpus, noop->effort.sleeps, PAUSE_US, &noop->futex_p50);
        if (r == 0)
                r = sl_futex_pair_measure(noop->cpus, noop->effort.sleeps, 0, &noop->futex_tight_p50);
        return r;
}

/* A client stays attached, as in practice. */
static int measure_idle(struct noop *noop)
{
        uint64_t before, after, start_ns, rss;

        usleep(200000);
        int r = sl_process_cpu_ns(noop->server.pid, &before);
        start_ns = sl_clock_ns();
        usleep((useconds_t)(noop->effort.idle_ns / SL_NS_PER_US));
        if (r == 0)
                r = sl_process_cpu_ns(noop->server.pid, &after);
        if (r == 0)
                noop->idle_share = (double)(after - before) / (double)(sl_clock_ns() - start_ns);
        if (r == 0)
                r = sl_process_rss(noop->server.pid, &rss);
        if (r == 0)
                noop->rss = (double)rss;
        return r;
}

static int attach_many(
        struct noop *noop, uint64_t arena_bytes, uint32_t rounds, uint32_t pause_us, double *ret_both, double *ret_connect)
{
        struct sl_latencies connects;
        int r = sl_latencies_init(&connects);

        sl_latencies_clear(&noop->samples);
        for (uint32_t i = 0; i < rounds && r == 0; i++) {
                struct starling_client *client;
                uint64_t start_ns, connected_ns;

                usleep(pause_us);
                start_ns = sl_clock_ns();
                r = connect_queue(noop, arena_bytes, "bench-attach", &client, NULL);
                if (r < 0)
                        break;
                connected_ns = sl_clock_ns();
                starling_close(client);
                sl_latencies_add(&connects, connected_ns - start_ns);
                sl_latencies_add(&noop->samples, sl_clock_ns() - start_ns);
        }
        *ret_connect = sl_latencies_at(&connects, 0.5);
        *ret_both = sl_latencies_at(&noop->samples, 0.5);
        sl_latencies_deinit(&connects);
        return r;
}

static int measure_attach(struct noop *noop)
{
        const struct effort *effort = &noop->effort;
        int r = attach_many(noop, SMALL_ARENA, effort->attaches, ATTACH_US, &noop->attach, &noop->connect);

        if (r == 0)
                r = attach_many(
                        noop, LARGE_ARENA, effort->large_attaches, ATTACH_BIG_US, &noop->attach_large, &noop->connect_large);
        return r;
}

static int measure_busy(struct noop *noop)
{
        struct sl_heavy_load load;
        uint64_t before, start_ns;
        int r = sl_heavy_load_start(&load, &noop->server, noop->cpus, noop->worker_cpu);

        snprintf(noop->busy_note, sizeof(noop->busy_note), "%s", load.note);
        if (r == 0) {
                before = sl_heavy_load_done(&load);
                start_ns = sl_clock_ns();
                r = spin(noop, BUSY_ROUNDS, noop->effort.busy_ns);
                noop->busy_done = (double)(sl_heavy_load_done(&load) - before) * (double)SL_NS_PER_SECOND /
                                  (double)(sl_clock_ns() - start_ns);
                noop->busy_p50 = in_ns(noop, 0.5);
                noop->busy_p99 = in_ns(noop, 0.99);
                noop->busy_p999 = in_ns(noop, 0.999);
        }
        int stopped = sl_heavy_load_stop(&load);

        return r < 0 ? r : stopped;
}

static const struct {
        const char *name;
        int (*run)(struct noop *noop);
} phases[] = {
        {"round trips", measure_round_trips},
        {"throughput", measure_throughput},
        {"sleeping", measure_sleepers},
        {"idle", measure_idle},
        {"attach", measure_attach},
        {"busy", measure_busy},
};

static int run_phases(struct noop *noop)
{
        int r = connect_queue(noop, SMALL_ARENA, "bench-noop", &noop->client, &noop->queue);

        for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]) && r == 0; i++) {
                r = phases[i].run(noop);
                if (r < 0)
                        fprintf(stderr, "starling bench noop: phase \"%s\": %s\n", phases[i].name, starling_strerror(r));
                else if (sl_bench_interrupted())
                        r = -EINTR;
        }
        noop->client = starling_close(noop->client);
        return r;
}

static int run(struct noop *noop)
{
        struct sl_server_options options = {
                .dispatcher_cpu = noop->cpus[1], .worker_cpu = noop->worker_cpu, .arena_bytes = 2 * LARGE_ARENA};
        int r;

        if (sched_getaffinity(0, sizeof(options.cpus), &options.cpus) < 0)
                return -errno;
        noop->scale = sl_ticks_scale();
        r = sl_floor_measure(noop->cpus, &noop->floor_ns);
        if (r == 0)
                r = sl_floor_measure_two_lines(noop->cpus, &noop->two_lines_ns);
        if (r == 0)
                r = sl_server_start(&noop->server, &options);
        if (r < 0)
                return r;
        r = run_phases(noop);
        if (r < 0 && r != -EINTR)
                sl_server_show_log(&noop->server);
        if (sl_server_stop(&noop->server) < 0 && r == 0) {
                fprintf(stderr, "starling bench noop: the runtime did not end in order\n");
                r = -EIO;
        }
        return r < 0 ? r : sl_floor_measure(noop->cpus, &noop->floor_after_ns);
}

static void report_summary(const struct summary *rtt, const char *const keys[5], struct sl_report *to)
{
        const double values[5] = {rtt->p50, rtt->p99, rtt->p999, rtt->worst, rtt->mean};

        for (int i = 0; i < 5; i++)
                sl_report_number(to, keys[i], SL_UNIT_NS, values[i], NULL, 0);
}

static void report_ratio(struct sl_report *to, const char *key, double value, double most, const char *target)
{
        sl_report_number(to, key, SL_UNIT_TIMES, value, target, value <= most);
}

static void report_round_trips(const struct noop *n, struct sl_report *to)
{
        static const char *const of_ring[] = {
                "ring_rtt_p50_ns", "ring_rtt_p99_ns", "ring_rtt_p999_ns", "ring_rtt_worst_ns", "ring_rtt_mean_ns"};
        static const char *const of_one[] = {"rtt_p50_ns", "rtt_p99_ns", "rtt_p999_ns", "rtt_worst_ns", "rtt_mean_ns"};
        static const char *const of_many[] = {"rtt_p50_32_clients_ns", "rtt_p99_32_clients_ns", "rtt_p999_32_clients_ns",
                "rtt_worst_32_clients_ns", "rtt_mean_32_clients_ns"};

        sl_report_number(to, "floor_ns", SL_UNIT_NS, n->floor_ns, NULL, 0);
        sl_report_number(to, "floor_after_ns", SL_UNIT_NS, n->floor_after_ns, NULL, 0);
        sl_report_number(to, "floor_two_lines_ns", SL_UNIT_NS, n->two_lines_ns, NULL, 0);
        report_summary(&n->ring, of_ring, to);
        report_summary(&n->rtt, of_one, to);
        report_summary(&n->rtt_32, of_many, to);
        report_ratio(to, "rtt_over_ring", n->rtt.p50 / n->ring.p50, 1.25, "<= 1.25 x bare ring");
        report_ratio(to, "rtt_mean_over_ring", n->rtt.mean / n->ring.mean, INFINITY, NULL);
        report_ratio(to, "rtt_p999_over_p50", n->rtt.p999 / n->rtt.p50, 5, "<= 5 x p50");
        report_ratio(to, "rtt_32_clients_over_one", n->rtt_32.p50 / n->rtt.p50, 1.15, "<= 1.15 x one client");
        report_ratio(to, "rtt_over_floor", n->rtt.p50 / n->floor_ns, INFINITY, NULL);
        report_ratio(to, "rtt_over_floor_two_lines", n->rtt.p50 / n->two_lines_ns, INFINITY, NULL);
        report_ratio(to, "rtt_over_floor_32_clients", n->rtt_32.p50 / n->floor_ns, INFINITY, NULL);
        sl_report_number(
                to, "requests_per_second", SL_UNIT_PER_SECOND, n->per_second, ">= 5 M/s in batches of 32", n->per_second >= 5e6);
        sl_report_number(to, "rtt_p50_busy_ns", SL_UNIT_NS, n->busy_p50, NULL, 0);
        sl_report_number(to, "rtt_p99_busy_ns", SL_UNIT_NS, n->busy_p99, NULL, 0);
        sl_report_number(to, "rtt_p999_busy_ns", SL_UNIT_NS, n->busy_p999, NULL, 0);
        sl_report_number(to, "busy_done_per_second", SL_UNIT_PER_SECOND, n->busy_done, NULL, 0);
        sl_report_text(to, "busy_note", "%s", n->busy_note);
}

static void report_rest(const struct noop *n, struct sl_report *to)
{
        double times = n->sleeping_p50 / n->futex_p50;

        sl_report_number(to, "sleeping_rtt_p50_ns", SL_UNIT_NS, n->sleeping_p50, NULL, 0);
        sl_report_number(to, "sleeping_rtt_p99_ns", SL_UNIT_NS, n->sleeping_p99, NULL, 0);
        sl_report_number(to, "futex_rtt_p50_ns", SL_UNIT_NS, n->futex_p50, NULL, 0);
        sl_report_number(to, "futex_tight_rtt_p50_ns", SL_UNIT_NS, n->futex_tight_p50, NULL, 0);
        sl_report_number(to, "sleeping_rtt_over_futex", SL_UNIT_TIMES, times, "<= 1.3 x futex", times <= 1.3);
        sl_report_number(to, "idle_cpu_share", SL_UNIT_SHARE, n->idle_share, "< 0.5 % of a core", n->idle_share < 0.005);
        sl_report_number(to, "attach_ns", SL_UNIT_NS, n->attach, "< 1 ms", n->attach < 1e6);
        sl_report_number(to, "attach_connect_ns", SL_UNIT_NS, n->connect, NULL, 0);
        sl_report_number(
                to, "attach_large_arena_ns", SL_UNIT_NS, n->attach_large, "< 1 ms with an arena of 1 GiB", n->attach_large < 1e6);
        sl_report_number(to, "attach_connect_large_arena_ns", SL_UNIT_NS, n->connect_large, NULL, 0);
        sl_report_number(to, "idle_rss_bytes", SL_UNIT_BYTES, n->rss, "< 30 MB", n->rss < 30e6);
        sl_report_text(to, "cpus", "client %d, dispatcher %d, worker %d", n->cpus[0], n->cpus[1], n->worker_cpu);
        sl_report_number(to, "rounds", SL_UNIT_COUNT, n->effort.rounds, NULL, 0);
}

SL_BENCH_OPTIONS(NOOP_OPTIONS);

static int parse(int argc, char **argv, struct noop *noop)
{
        long rounds = 0;
        int option;

        while ((option = getopt_long(argc, argv, "", bench_options, NULL)) != -1) {
                if (option == OPTION_JSON)
                        noop->json = true;
                else if (option == OPTION_QUICK)
                        noop->effort = quick;
                else if (option == OPTION_ROUNDS)
                        rounds = strtol(optarg, NULL, 10);
                else if (option != OPTION_CPUS || sl_bench_cpus(optarg, noop->cpus) < 0)
                        return 2;
                if (option == OPTION_ROUNDS && (rounds < 1000 || rounds > 100000000)) {
                        fprintf(stderr, "starling bench noop: --rounds wants 1000 to 100000000, got \"%s\"\n", optarg);
                        return 2;
                }
        }
        if (rounds)
                noop->effort.rounds = (uint32_t)rounds;
        return 0;
}

static int prepare(struct noop *noop)
{
        int r = noop->cpus[0] < 0 ? sl_cores_pick(noop->cpus) : 0;

        if (r < 0)
                return r;
        noop->worker_cpu = sl_cores_third(noop->cpus);
        if (noop->worker_cpu < 0)
                noop->worker_cpu = noop->cpus[0];
        r = sl_latencies_init(&noop->ring_samples);
        if (r == 0)
                r = sl_latencies_init(&noop->crowd_samples);
        if (r == 0)
                r = sl_latencies_init(&noop->samples);
        return r;
}

int sl_bench_noop(int argc, char **argv)
{
        struct noop noop = {.effort = full, .cpus = {-1, -1}, .server = {.pid = -1}};
        struct sl_report report;
        int code = parse(argc, argv, &noop);

        if (code)
                return code;
        int r = prepare(&noop);
        if (r == 0)
                r = run(&noop);
        sl_latencies_deinit(&noop.samples);
        sl_latencies_deinit(&noop.ring_samples);
        sl_latencies_deinit(&noop.crowd_samples);
        if (r < 0) {
                fprintf(stderr, "starling bench noop: %s\n",
                        r == -ENOTSUP ? "it needs two CPUs, this process may run on one" : starling_strerror(r));
                return 1;
        }
        sl_report_init(&report, "noop", argc, argv);
        report_round_trips(&noop, &report);
        report_rest(&noop, &report);
        sl_report_print(&report, noop.json, noop.floor_ns);
        return 0;
}
