/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two processes on two CPUs pay to ask and answer over what the kernel gives them, and over Aeron's IPC: a message there and
 * one back, one at a time.
 *
 *     bench-planes [--rounds N] [--cpus A,B] [--aeron DIR]     one JSON object; DIR is a build of Aeron
 *
 * Messages are a line of 64 bytes; an eventfd carries a count of 8, and its line would lie in shared memory. Reads block, as they
 * do for whoever uses these. One thread in each process.
 */
#include "aeron_plane.h"
#include "cores.h"
#include "latencies.h"
#include "pair.h"
#include "ring_pair.h"
#include "ticks.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE    64u
#define WARM_UP 2000u

/* Descriptors of both sides; a message is @bytes long. */
struct ends {
        int ask_out, ask_in, answer_out, answer_in;
        size_t bytes;
};

static int open_socket(struct ends *ret_ends)
{
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        *ret_ends = (struct ends){.ask_out = fds[0], .ask_in = fds[0], .answer_in = fds[1], .answer_out = fds[1], .bytes = LINE};
        return 0;
}

static int open_pipe(struct ends *ret_ends)
{
        int there[2], back[2];

        if (pipe(there) < 0 || pipe(back) < 0)
                return -errno;
        *ret_ends =
                (struct ends){.ask_out = there[1], .ask_in = back[0], .answer_in = there[0], .answer_out = back[1], .bytes = LINE};
        return 0;
}

static int open_eventfd(struct ends *ret_ends)
{
        int there = eventfd(0, EFD_CLOEXEC), back = eventfd(0, EFD_CLOEXEC);

        if (there < 0 || back < 0)
                return -errno;
        *ret_ends =
                (struct ends){.ask_out = there, .ask_in = back, .answer_in = there, .answer_out = back, .bytes = sizeof(uint64_t)};
        return 0;
}

static const struct plane {
        const char *name;
        int (*open)(struct ends *ret_ends);
} planes[] = {{"unix_socket", open_socket}, {"pipe", open_pipe}, {"eventfd", open_eventfd}};

static bool send_all(int fd, const char *message, size_t bytes)
{
        return write(fd, message, bytes) == (ssize_t)bytes;
}

static bool receive_all(int fd, char *message, size_t bytes)
{
        size_t have = 0;
        ssize_t n = 0;

        while (have < bytes && (n = read(fd, message + have, bytes - have)) > 0)
                have += (size_t)n;
        return have == bytes;
}

/* Answers until the asker's end is closed, or, where descriptors are shared by both, until the pair is ended. */
static int echo(void *memory, void *argument)
{
        const struct ends *ends = argument;
        char message[LINE];

        (void)memory;
        while (receive_all(ends->answer_in, message, ends->bytes) && send_all(ends->answer_out, message, ends->bytes))
                ;
        return 0;
}

static int ask(const struct ends *ends, uint32_t rounds, struct sl_latencies *samples)
{
        char message[LINE] = {1};

        for (uint32_t i = 0; i < WARM_UP + rounds; i++) {
                uint64_t start = sl_ticks();

                if (!send_all(ends->ask_out, message, ends->bytes) || !receive_all(ends->ask_in, message, ends->bytes))
                        return -EIO;
                if (i >= WARM_UP)
                        sl_latencies_add(samples, sl_ticks() - start);
        }
        return 0;
}

static void close_ends(const struct ends *ends)
{
        close(ends->ask_out);
        close(ends->answer_in);
        if (ends->ask_in != ends->ask_out && ends->ask_in != ends->answer_in)
                close(ends->ask_in);
        if (ends->answer_out != ends->answer_in && ends->answer_out != ends->ask_out)
                close(ends->answer_out);
}

static int measure_plane(const struct plane *plane, const int cpus[2], uint32_t rounds, struct sl_latencies *samples)
{
        struct sl_pair pair;
        struct ends ends;
        int r = plane->open(&ends);

        if (r < 0)
                return r;
        r = sl_pair_start(&pair, cpus, LINE, echo, &ends);
        if (r == 0) {
                r = ask(&ends, rounds, samples);
                sl_pair_abort(&pair);
        }
        close_ends(&ends);
        return r;
}

/* Times in nanoseconds under @name; what could not be measured has a reason instead. */
static void add_figures(json_t *report, const char *name, const struct sl_latencies *samples, double scale)
{
        json_object_set_new(report, name,
                json_pack("{s:f, s:f, s:f, s:I}", "p50_ns", scale * sl_latencies_at(samples, 0.5), "p99_ns",
                        scale * sl_latencies_at(samples, 0.99), "mean_ns", scale * samples->sum / (double)samples->n, "rounds",
                        (json_int_t)samples->n));
}

static void add_reason(json_t *report, const char *name, const char *reason)
{
        json_object_set_new(report, name, json_pack("{s:s}", "why", reason));
}

/* The bare ring is measured before and after: two CPUs move apart and together within seconds, so each message is given beside it.
 */
static int measure_aeron(const char *build, const int cpus[2], uint32_t rounds, double scale, json_t *report)
{
        struct sl_latencies samples, ring = {0};
        char reason[256] = "set AERON_BUILD to a build of Aeron";
        int r = sl_latencies_init(&samples), r_aeron = -ENOENT;

        if (r == 0)
                r = sl_latencies_init(&ring);
        if (r == 0 && build)
                r = sl_ring_pair_measure(cpus, WARM_UP, rounds, &ring);
        if (r == 0 && build)
                r_aeron = sl_aeron_plane_measure(build, cpus, WARM_UP, rounds, &samples, reason, sizeof(reason));
        if (r_aeron == 0)
                r = sl_ring_pair_measure(cpus, WARM_UP, rounds, &ring);
        if (r_aeron == 0 && r == 0) {
                add_figures(report, "aeron_ipc", &samples, scale);
                add_figures(report, "bare_ring", &ring, scale);
        } else {
                add_reason(report, "aeron_ipc", reason);
        }
        sl_latencies_deinit(&samples);
        sl_latencies_deinit(&ring);
        return r;
}

static int measure_all(const int cpus[2], uint32_t rounds, const char *aeron, json_t *report)
{
        double scale = sl_ticks_scale();
        struct sl_latencies samples;
        int r = sl_latencies_init(&samples);

        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof(planes) / sizeof(planes[0]); i++) {
                sl_latencies_clear(&samples);
                r = measure_plane(&planes[i], cpus, rounds, &samples);
                if (r < 0)
                        add_reason(report, planes[i].name, strerror(-r));
                else
                        add_figures(report, planes[i].name, &samples, scale);
        }
        sl_latencies_deinit(&samples);
        return measure_aeron(aeron, cpus, rounds, scale, report);
}

int main(int argc, char **argv)
{
        static const struct option options[] = {{"rounds", required_argument, NULL, 'r'}, {"cpus", required_argument, NULL, 'c'},
                {"aeron", required_argument, NULL, 'a'}, {0}};
        uint32_t rounds = 100000;
        const char *aeron = NULL;
        int cpus[2], option, r = sl_cores_pick(cpus);

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
                switch (option) {
                case 'r':
                        rounds = (uint32_t)strtoul(optarg, NULL, 10);
                        break;
                case 'c':
                        r = sscanf(optarg, "%d,%d", &cpus[0], &cpus[1]) == 2 ? 0 : -EINVAL;
                        break;
                case 'a':
                        aeron = optarg;
                        break;
                default:
                        return 2;
                }
        json_t *report = json_object();

        if (r == 0 && rounds > 0)
                r = measure_all(cpus, rounds, aeron, report);
        if (r == 0)
                json_dumpf(report, stdout, JSON_INDENT(1));
        else
                fprintf(stderr, "bench-planes: %s\n", strerror(-r));
        json_decref(report);
        return r < 0;
}
