/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many models at once, each with one request of one sample in flight: what a runtime answers in a second. For models that may share
 * workers (`fuse`).
 *
 *     bench-lanes SOCKET SECONDS OCCUPIED NAME...     of the models, the first OCCUPIED get requests
 *
 * Prints one JSON object. A request that has completed is followed by the next one for its model, published together with those of
 * the others that completed in the same look. One thread, which waits as libstarling does: it sleeps at once where cores are short.
 */
#include "base/clock.h"
#include "starling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES_MAX      64u
#define ANSWER_WAIT_NS (5 * SL_NS_PER_SECOND)

struct lane {
        struct starling_model *model;
        struct starling_tensor tensors[8];
        struct starling_request request;
        uint64_t begun_ns;
};

struct bench {
        struct starling_client *client;
        struct starling_queue *queue;
        uint32_t n;
        struct lane lanes[LANES_MAX];
        double *latencies_us;
        uint64_t n_latencies, room;
};

static void fail(const char *what, const char *why)
{
        fprintf(stderr, "bench-lanes: %s: %s\n", what, why);
        exit(1);
}

static void make_tensor(struct bench *b, const struct starling_port *port, struct starling_tensor *tensor)
{
        uint32_t dims[STARLING_RANK_MAX];

        for (uint32_t i = 0; i < port->rank; i++)
                dims[i] = (int32_t)i == port->batch_axis ? 1 : (uint32_t)port->dims[i];
        if (starling_tensor_alloc(b->client, port->dtype, port->rank, dims, tensor) < 0)
                fail(port->name, "no memory for it");
        if (port->dtype != STARLING_F32) {
                memset(tensor->data, 0, tensor->bytes);
                return;
        }
        for (uint64_t i = 0; i < tensor->bytes / sizeof(float); i++)
                ((float *)tensor->data)[i] = (float)(i % 17) / 17.0f;
}

static void open_lane(struct bench *b, const char *name)
{
        struct lane *lane = &b->lanes[b->n];
        struct starling_error error = {""};
        const struct starling_model_info *info;

        if (starling_model_open(b->client, name, &lane->model, &error) < 0)
                fail(name, error.text);
        info = starling_model_describe(lane->model);
        if (info->n_inputs + info->n_outputs > 8)
                fail(name, "more than 8 tensors");
        for (uint32_t i = 0; i < info->n_inputs; i++)
                make_tensor(b, &info->inputs[i], &lane->tensors[i]);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                make_tensor(b, &info->outputs[i], &lane->tensors[info->n_inputs + i]);
        lane->request = (struct starling_request){.model = lane->model,
                .inputs = lane->tensors,
                .outputs = lane->tensors + info->n_inputs,
                .n_inputs = info->n_inputs,
                .n_outputs = info->n_outputs,
                .user_data = b->n++};
}

static void submit(struct bench *b, const uint32_t *lanes, uint32_t n)
{
        struct starling_request requests[LANES_MAX];
        uint64_t now_ns = sl_clock_ns();

        for (uint32_t i = 0; i < n; i++) {
                requests[i] = b->lanes[lanes[i]].request;
                b->lanes[lanes[i]].begun_ns = now_ns;
        }
        if (starling_submit_many(b->queue, requests, n, NULL) != (int)n)
                fail("submit", strerror(errno));
}

static void note(struct bench *b, const struct lane *lane, uint64_t now_ns)
{
        if (b->n_latencies < b->room)
                b->latencies_us[b->n_latencies++] = (double)(now_ns - lane->begun_ns) / 1e3;
}

static uint32_t take(struct bench *b, uint32_t *ret_lanes)
{
        struct starling_completion completions[LANES_MAX];
        int n = starling_wait(b->queue, completions, LANES_MAX, ANSWER_WAIT_NS);
        uint64_t now_ns = sl_clock_ns();

        if (n < 0)
                fail("wait", strerror(-n));
        for (int i = 0; i < n; i++) {
                if (completions[i].status < 0)
                        fail("request", strerror(-completions[i].status));
                ret_lanes[i] = (uint32_t)completions[i].user_data;
                note(b, &b->lanes[ret_lanes[i]], now_ns);
        }
        return (uint32_t)n;
}

/* Return: requests a second. */
static double run(struct bench *b, uint32_t occupied, double seconds)
{
        uint64_t begun_ns = sl_clock_ns(), until_ns = begun_ns + (uint64_t)(1e9 * seconds), completed = 0;
        uint32_t lanes[LANES_MAX] = {0}, in_flight = occupied;

        for (uint32_t i = 0; i < occupied; i++)
                lanes[i] = i;
        b->n_latencies = 0;
        submit(b, lanes, occupied);
        while (in_flight) {
                uint32_t n = take(b, lanes);

                completed += n;
                if (sl_clock_ns() < until_ns)
                        submit(b, lanes, n);
                else
                        in_flight -= n;
        }
        return (double)completed / ((double)(sl_clock_ns() - begun_ns) / 1e9);
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
        struct starling_options options = {
                .label = "bench-lanes", .queue_pairs = 1, .queue_depth = 2 * LANES_MAX, .arena_bytes = 64u << 20};
        struct starling_error error = {""};
        static struct bench b;
        double seconds, rate;
        uint32_t occupied;

        if (argc < 5 || argc - 4 > (int)LANES_MAX || (seconds = atof(argv[2])) <= 0 || (occupied = (uint32_t)atoi(argv[3])) < 1 ||
                occupied > (uint32_t)argc - 4) {
                fprintf(stderr, "usage: bench-lanes SOCKET SECONDS OCCUPIED NAME... (at most %u)\n", LANES_MAX);
                return 2;
        }
        options.runtime = argv[1];
        options.timeout_ns = 10 * SL_NS_PER_SECOND;
        if (starling_connect(&options, &b.client, &error) < 0 || starling_queue_open(b.client, &b.queue, &error) < 0)
                fail("connect", error.text);
        b.room = 1u << 22;
        b.latencies_us = calloc(b.room, sizeof(*b.latencies_us));
        if (!b.latencies_us)
                fail("latencies", "no memory");
        for (int i = 4; i < argc; i++)
                open_lane(&b, argv[i]);
        run(&b, occupied, seconds / 4);
        rate = run(&b, occupied, seconds);
        qsort(b.latencies_us, b.n_latencies, sizeof(*b.latencies_us), compare);
        printf("{\"per_second\": %.1f, \"p50_us\": %.2f, \"p99_us\": %.2f}\n", rate, b.latencies_us[b.n_latencies / 2],
                b.latencies_us[b.n_latencies * 99 / 100]);
        free(b.latencies_us);
        starling_close(b.client);
        return 0;
}
