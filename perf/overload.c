/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench overload`: what clients get of a runtime that is asked for more than it can do.
 *
 * A crowd (crowd.h) of client processes and a runtime of our own with its default threads, its default priority (without the
 * privilege to raise it) share two CPUs and one small model. First the capacity is measured: a closed loop without deadlines. Then,
 * in turns, the same clients offer once and several times the capacity, with deadlines. Goodput is what was answered before its
 * deadline. Figures are medians of the turns.
 */
#include "base/clock.h"
#include "bench.h"
#include "bench_options.h"
#include "conv_model.h"
#include "cores.h"
#include "crowd.h"
#include "process.h"
#include "report.h"
#include "server.h"
#include "starling.h"
#include "stats.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL       "small"
#define IN_FLIGHT   8u /* of each client while the capacity is measured */
#define ARENA_BYTES (512ull << 20)
#define TURNS_MAX   32u

/* One load, measured once. */
struct outcome {
        double per_second[SL_CROWD_ENDS_N], due_per_second;
        double jain, least_share;        /* least_share: the worst client's goodput over the mean */
        double clients_cpu, runtime_cpu; /* in cores */
        double sleeps_per_second, wakes_per_second;
};

struct overload {
        uint32_t clients, depth, turns, spinners;
        double deadline_ms, times, tick_us, seconds; /* tick_us 0: a client wakes for each request that is due */
        int cpus[2];
        bool json;
        struct sl_server server;
        struct sl_crowd crowd;
        double capacity; /* measured, or as it was given */
        struct outcome at_capacity, once[TURNS_MAX], more[TURNS_MAX];
};

/* ---- one load ---- */

/* (sum x)^2 / (n sum x^2): 1 when all get the same, 1/n when one gets everything. Jain, Chiu and Hawe, 1984. */
static void judge_fairness(const struct sl_crowd_counts *counts, uint32_t n, struct outcome *to)
{
        double sum = 0, squares = 0, least = INFINITY;

        for (uint32_t i = 0; i < n; i++) {
                double x = (double)counts[i].ends[SL_CROWD_IN_TIME];

                sum += x;
                squares += x * x;
                least = x < least ? x : least;
        }
        to->jain = squares > 0 ? sum * sum / (n * squares) : NAN;
        to->least_share = sum > 0 ? least * n / sum : NAN;
}

static void add_up(const struct sl_crowd_counts *counts, uint32_t n, double measured_s, double whole_s, struct outcome *to)
{
        for (uint32_t i = 0; i < n; i++) {
                for (int end = 0; end < SL_CROWD_ENDS_N; end++)
                        to->per_second[end] += (double)counts[i].ends[end] / measured_s;
                to->due_per_second += (double)counts[i].due / measured_s;
                to->clients_cpu += (double)counts[i].cpu_ns / 1e9 / whole_s;
                to->sleeps_per_second += (double)counts[i].sleeps / whole_s;
        }
}

static uint64_t wakes_of(const struct overload *overload)
{
        struct sl_dispatcher_stats slot;
        struct sl_stats_view *view;
        uint64_t wakes = 0;

        if (sl_stats_open(overload->server.name, NULL, &view, NULL) < 0)
                return 0;
        if (sl_stats_read_dispatcher(view, 0, &slot) == 0)
                wakes = sl_counter_read(&slot.wakes);
        sl_stats_close(view);
        return wakes;
}

static int measure(struct overload *overload, const struct sl_crowd_load *load, struct outcome *ret_outcome)
{
        struct sl_crowd_counts counts[SL_CROWD_MAX];
        double warm_up_s = overload->seconds / 4, whole_s = overload->seconds + warm_up_s;
        uint64_t cpu_before = 0, cpu_after = 0, wakes = wakes_of(overload);

        *ret_outcome = (struct outcome){0};
        sl_process_cpu_ns(overload->server.pid, &cpu_before);
        int r = sl_crowd_run(&overload->crowd, load, (uint64_t)(warm_up_s * 1e9), (uint64_t)(overload->seconds * 1e9), counts);
        if (r < 0)
                return r;
        sl_process_cpu_ns(overload->server.pid, &cpu_after);
        judge_fairness(counts, overload->clients, ret_outcome);
        add_up(counts, overload->clients, overload->seconds, whole_s, ret_outcome);
        ret_outcome->runtime_cpu = (double)(cpu_after - cpu_before) / 1e9 / whole_s;
        ret_outcome->wakes_per_second = (double)(wakes_of(overload) - wakes) / whole_s;
        return 0;
}

/* ---- all loads ---- */

static struct sl_crowd_load times_capacity(const struct overload *overload, double times)
{
        return (struct sl_crowd_load){
                .rate = times * overload->capacity / overload->clients,
                .deadline_ns = (uint64_t)(overload->deadline_ms * (double)SL_NS_PER_MS),
                .tick_ns = (uint64_t)(overload->tick_us * (double)SL_NS_PER_US),
        };
}

static int measure_capacity(struct overload *overload)
{
        int r = measure(overload, &(struct sl_crowd_load){.in_flight = IN_FLIGHT}, &overload->at_capacity);

        overload->capacity = overload->at_capacity.per_second[SL_CROWD_IN_TIME];
        return r < 0 ? r : overload->capacity > 0 ? 0 : -EIO;
}

static int run_loads(struct overload *overload)
{
        int r = overload->capacity > 0 ? 0 : measure_capacity(overload);

        for (uint32_t i = 0; i < overload->turns && r == 0; i++) {
                struct sl_crowd_load once = times_capacity(overload, 1), more = times_capacity(overload, overload->times);

                more.spinners = overload->spinners;
                r = measure(overload, &once, &overload->once[i]);
                if (r == 0)
                        r = measure(overload, &more, &overload->more[i]);
        }
        return r;
}

static int run_crowd(struct overload *overload, const cpu_set_t *cpus)
{
        const struct sl_crowd_options options = {
                .runtime = overload->server.socket,
                .model = MODEL,
                .members = overload->clients,
                .depth = overload->depth,
                .cpus = *cpus,
        };
        struct starling_error error = {0};
        int r = sl_server_load_conv(&overload->server, &SL_CONV_MODEL_SMALL, MODEL, &error);

        if (r < 0) {
                fprintf(stderr, "starling bench overload: model \"%s\": %s\n", MODEL, error.text);
                return r;
        }
        r = sl_crowd_start(&overload->crowd, &options);
        if (r == 0)
                r = run_loads(overload);
        sl_crowd_stop(&overload->crowd);
        return r;
}

static int run(struct overload *overload)
{
        struct sl_server_options options = {.dispatcher_cpu = -1, .ordinary = true, .arena_bytes = ARENA_BYTES};
        int r = overload->cpus[0] < 0 ? sl_cores_pick(overload->cpus) : 0;

        if (r < 0)
                return r;
        CPU_ZERO(&options.cpus);
        CPU_SET(overload->cpus[0], &options.cpus);
        CPU_SET(overload->cpus[1], &options.cpus);
        r = sl_server_start(&overload->server, &options);
        if (r < 0)
                return r;
        r = run_crowd(overload, &options.cpus);
        if (r < 0 && r != -EINTR)
                sl_server_show_log(&overload->server);
        if (sl_server_stop(&overload->server) < 0 && r == 0) {
                fprintf(stderr, "starling bench overload: the runtime did not end in order\n");
                r = -EIO;
        }
        return r;
}

/* ---- report ---- */

/* The median of one member of the outcomes of all turns; @offset says which. */
static double median(const struct outcome *outcomes, uint32_t n, size_t offset)
{
        double values[TURNS_MAX];

        for (uint32_t i = 0; i < n; i++) {
                double value = *(const double *)((const char *)&outcomes[i] + offset);
                uint32_t k = i;

                for (; k > 0 && values[k - 1] > value; k--)
                        values[k] = values[k - 1];
                values[k] = value;
        }
        return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

#define MEDIAN(outcomes, n, field) median((outcomes), (n), offsetof(struct outcome, field))

static double goodput(const struct outcome *outcomes, uint32_t n)
{
        return MEDIAN(outcomes, n, per_second[SL_CROWD_IN_TIME]);
}

/* The keys of one load: the table's columns cannot be made at run time, as a report keeps keys by reference. */
struct keys {
        const char *due, *ends[SL_CROWD_ENDS_N], *jain, *least, *clients_cpu, *runtime_cpu, *sleeps, *wakes;
};

#define LOAD_KEYS(load)                                                                                                            \
        {                                                                                                                          \
                .due = load "_offered_per_second", .jain = load "_jain", .least = load "_least_client_over_mean",                  \
                .clients_cpu = load "_clients_cpu_cores", .runtime_cpu = load "_runtime_cpu_cores",                                \
                .sleeps = load "_client_sleeps_per_second", .wakes = load "_wakes_per_second",                                     \
        }

static const struct keys once_keys = LOAD_KEYS("once"), more_keys = LOAD_KEYS("overload");
static const char *const once_ends[] = {
#define X(id, name) "once_" name "_per_second",
        SL_CROWD_ENDS(X)
#undef X
};
static const char *const more_ends[] = {
#define X(id, name) "overload_" name "_per_second",
        SL_CROWD_ENDS(X)
#undef X
};

static void report_load(
        const struct keys *keys, const char *const *ends, const struct outcome *outcomes, uint32_t n, struct sl_report *to)
{
        double jain = MEDIAN(outcomes, n, jain);

        sl_report_number(to, keys->due, SL_UNIT_PER_SECOND, MEDIAN(outcomes, n, due_per_second), NULL, 0);
        for (int end = 0; end < SL_CROWD_ENDS_N; end++)
                sl_report_number(to, ends[end], SL_UNIT_PER_SECOND,
                        median(outcomes, n, offsetof(struct outcome, per_second) + (size_t)end * sizeof(double)), NULL, 0);
        sl_report_number(to, keys->jain, SL_UNIT_TIMES, jain, ">= 0.95", jain >= 0.95);
        sl_report_number(to, keys->least, SL_UNIT_TIMES, MEDIAN(outcomes, n, least_share), NULL, 0);
        sl_report_number(to, keys->clients_cpu, SL_UNIT_TIMES, MEDIAN(outcomes, n, clients_cpu), NULL, 0);
        sl_report_number(to, keys->runtime_cpu, SL_UNIT_TIMES, MEDIAN(outcomes, n, runtime_cpu), NULL, 0);
        sl_report_number(to, keys->sleeps, SL_UNIT_PER_SECOND, MEDIAN(outcomes, n, sleeps_per_second), NULL, 0);
        sl_report_number(to, keys->wakes, SL_UNIT_PER_SECOND, MEDIAN(outcomes, n, wakes_per_second), NULL, 0);
}

static void report_all(const struct overload *o, struct sl_report *to)
{
        double once = goodput(o->once, o->turns), more = goodput(o->more, o->turns);

        sl_report_number(to, "clients", SL_UNIT_COUNT, o->clients, NULL, 0);
        sl_report_number(to, "queue_depth", SL_UNIT_COUNT, o->depth, NULL, 0);
        sl_report_number(to, "deadline_ns", SL_UNIT_NS, o->deadline_ms * 1e6, NULL, 0);
        sl_report_number(to, "tick_ns", SL_UNIT_NS, o->tick_us * 1e3, NULL, 0);
        sl_report_number(to, "turns", SL_UNIT_COUNT, o->turns, NULL, 0);
        sl_report_number(to, "capacity_per_second", SL_UNIT_PER_SECOND, o->capacity, NULL, 0);
        sl_report_number(to, "capacity_clients_cpu_cores", SL_UNIT_TIMES, o->at_capacity.clients_cpu, NULL, 0);
        sl_report_number(to, "capacity_runtime_cpu_cores", SL_UNIT_TIMES, o->at_capacity.runtime_cpu, NULL, 0);
        report_load(&once_keys, once_ends, o->once, o->turns, to);
        sl_report_number(to, "overload_spinners", SL_UNIT_COUNT, o->spinners, NULL, 0);
        sl_report_number(to, "overload_times", SL_UNIT_TIMES, o->times, NULL, 0);
        report_load(&more_keys, more_ends, o->more, o->turns, to);
        sl_report_number(
                to, "goodput_over_once", SL_UNIT_TIMES, more / once, ">= 0.9 of what once the capacity brings", more >= 0.9 * once);
}

/* ---- options ---- */

SL_BENCH_OPTIONS(OVERLOAD_OPTIONS);

static int number(const char *name, double least, double most, double *ret_value)
{
        return sl_bench_number("overload", name, optarg, least, most, ret_value);
}

static int count(const char *name, double least, double most, uint32_t *ret_value)
{
        double value;
        int r = number(name, least, most, &value);

        if (r == 0)
                *ret_value = (uint32_t)value;
        return r;
}

static int take_option(int option, struct overload *to)
{
        switch (option) {
        case OPTION_CLIENTS:
                return count("clients", 1, SL_CROWD_MAX, &to->clients);
        case OPTION_DEADLINE:
                return number("deadline-ms", 0.1, 60000, &to->deadline_ms);
        case OPTION_TIMES:
                return number("times", 0.01, 1000, &to->times);
        case OPTION_DEPTH:
                return count("depth", 2, 1024, &to->depth);
        case OPTION_TICK:
                return number("tick-us", 0, 1e6, &to->tick_us);
        case OPTION_SECONDS:
                return number("seconds", 0.05, 3600, &to->seconds);
        case OPTION_TURNS:
                return count("turns", 1, TURNS_MAX, &to->turns);
        case OPTION_SPIN:
                return count("spin", 0, SL_CROWD_MAX, &to->spinners);
        case OPTION_CPUS:
                return sl_bench_cpus(optarg, to->cpus);
        case OPTION_CAPACITY:
                return number("capacity", 1, 1e8, &to->capacity);
        case OPTION_JSON:
                to->json = true;
                return 0;
        default:
                return -EINVAL;
        }
}

static int parse(int argc, char **argv, struct overload *to)
{
        int option;

        while ((option = getopt_long(argc, argv, "", bench_options, NULL)) != -1)
                if (take_option(option, to) < 0)
                        return 2;
        if (to->depth & (to->depth - 1)) {
                fprintf(stderr, "starling bench overload: --depth wants a power of two, got %u\n", to->depth);
                return 2;
        }
        return 0;
}

int sl_bench_overload(int argc, char **argv)
{
        struct overload overload = {
                .clients = 20,
                .depth = 64,
                .turns = 3,
                .deadline_ms = 20,
                .times = 10,
                .seconds = 4,
                .cpus = {-1, -1},
                .server = {.pid = -1},
        };
        struct sl_report report;
        int code = parse(argc, argv, &overload);

        if (code)
                return code;
        int r = run(&overload);
        if (r < 0) {
                fprintf(stderr, "starling bench overload: %s\n",
                        r == -ENOTSUP ? "it needs two CPUs, this process may run on one" : starling_strerror(r));
                return 1;
        }
        sl_report_init(&report, "overload", argc, argv);
        report_all(&overload, &report);
        sl_report_print(&report, overload.json, 0);
        return 0;
}
