/* SPDX-License-Identifier: Apache-2.0 */
#include "heavy_load.h"

#include "base/clock.h"
#include "bench.h"
#include "conv_model.h"
#include "server.h"
#include "starling.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODEL     "heavy"
#define IN_FLIGHT 2u
#define SIDE      256 /* of the matrices */
#define FIRST_NS  (60 * SL_NS_PER_SECOND)

/* Shared with the child. The parent writes `stop`, the child the rest. */
struct board {
        _Atomic uint32_t stop;
        _Atomic uint32_t served;
        _Atomic uint64_t done;
};

struct requests {
        struct starling_model *model;
        struct starling_queue *queue;
        struct starling_tensor inputs[IN_FLIGHT], outputs[IN_FLIGHT];
};

static int submit(struct requests *requests, uint64_t i)
{
        return starling_submit(requests->queue,
                &(struct starling_request){.model = requests->model,
                        .inputs = &requests->inputs[i],
                        .n_inputs = 1,
                        .outputs = &requests->outputs[i],
                        .n_outputs = 1,
                        .user_data = i},
                NULL);
}

static int prepare(struct starling_client *client, struct requests *requests)
{
        const struct sl_conv_model shape = SL_CONV_MODEL_HEAVY;
        const uint32_t dims[] = {1, shape.channels, shape.side, shape.side};
        int r = starling_model_open(client, MODEL, &requests->model, NULL);

        if (r == 0)
                r = starling_queue_open(client, &requests->queue, NULL);
        for (uint64_t i = 0; i < IN_FLIGHT && r == 0; i++) {
                r = starling_tensor_alloc(client, STARLING_F32, 4, dims, &requests->inputs[i]);
                if (r == 0)
                        r = starling_tensor_alloc(client, STARLING_F32, 4, dims, &requests->outputs[i]);
                if (r == 0)
                        memset(requests->inputs[i].data, 0, requests->inputs[i].bytes);
        }
        return r;
}

static int keep_busy(struct requests *requests, struct board *board)
{
        struct starling_completion completion;
        int r = 0;

        for (uint64_t i = 0; i < IN_FLIGHT && r == 0; i++)
                r = submit(requests, i);
        while (r == 0 && !atomic_load(&board->stop)) {
                r = starling_wait(requests->queue, &completion, 1, SL_NS_PER_SECOND);
                if (r == -ETIMEDOUT)
                        r = 0;
                else if (r == 1) {
                        r = completion.status;
                        atomic_fetch_add(&board->done, 1);
                        if (r == 0)
                                r = submit(requests, completion.user_data);
                }
        }
        return r;
}

/* Child: a client of its own. */
static int served_load(void *memory, void *argument)
{
        const struct starling_options options = {.runtime = argument, .label = "bench-heavy", .timeout_ns = SL_NS_PER_SECOND};
        struct requests requests = {0};
        struct starling_client *client;
        int r = starling_connect(&options, &client, NULL);

        if (r < 0)
                return 1;
        atomic_store(&((struct board *)memory)->served, 1);
        r = prepare(client, &requests);
        if (r == 0)
                r = keep_busy(&requests, memory);
        starling_close(client);
        return r < 0;
}

/* Child: multiplies matrices, about as heavy for the core's caches and vector units as a convolution. */
static int own_load(void *memory, void *argument)
{
        static float a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];
        struct board *board = memory;

        (void)argument;
        for (int i = 0; i < SIDE * SIDE; i++)
                (&a[0][0])[i] = (&b[0][0])[i] = (float)(i % 7);
        while (!atomic_load(&board->stop)) {
                for (int i = 0; i < SIDE; i++)
                        for (int k = 0; k < SIDE; k++)
                                for (int j = 0; j < SIDE; j++)
                                        c[i][j] += a[i][k] * b[k][j];
                __asm__ volatile("" : : "r"(c) : "memory");
                atomic_fetch_add(&board->done, 1);
        }
        return 0;
}

static int await_first(struct sl_heavy_load *load)
{
        uint64_t until_ns = sl_clock_ns() + FIRST_NS;

        while (!sl_heavy_load_done(load)) {
                if (sl_pair_ended(&load->pair))
                        return -EIO;
                if (sl_clock_ns() > until_ns)
                        return -ETIMEDOUT;
                if (sl_bench_interrupted())
                        return -EINTR;
                usleep(1000);
        }
        return 0;
}

static int start_served(struct sl_heavy_load *load, const struct sl_server *server, const int cpus[2], int worker_cpu)
{
        struct starling_error error = {0};
        int r = sl_server_load_conv(server, &SL_CONV_MODEL_HEAVY, MODEL, &error);

        if (r < 0) {
                fprintf(stderr, "starling bench noop: the heavy model is not served: %s\n", error.text);
                return r;
        }
        r = sl_pair_start(&load->pair, cpus, sizeof(struct board), served_load, (void *)server->socket);
        if (r == 0) {
                r = await_first(load);
                if (r < 0)
                        sl_pair_abort(&load->pair);
        }
        snprintf(load->note, sizeof(load->note), "a model of 3.7 GFLOP a sample computes in the runtime's worker on CPU %d%s",
                worker_cpu, worker_cpu == cpus[0] ? ", which is the client's: there is no third CPU" : "");
        return r;
}

static int start_own(struct sl_heavy_load *load, const int cpus[2], int worker_cpu)
{
        int r = sl_pair_start(&load->pair, (int[]){cpus[0], worker_cpu}, sizeof(struct board), own_load, NULL);

        snprintf(load->note, sizeof(load->note), "a process that multiplies matrices on CPU %d%s; no model was served", worker_cpu,
                worker_cpu == cpus[0] ? ", which is the client's: there is no third CPU" : "");
        return r == 0 ? await_first(load) : r;
}

int sl_heavy_load_start(struct sl_heavy_load *load, const struct sl_server *server, const int cpus[2], int worker_cpu)
{
        *load = (struct sl_heavy_load){.pair = {.child = -1}};
        return start_served(load, server, cpus, worker_cpu) == 0 ? 0 : start_own(load, cpus, worker_cpu);
}

uint64_t sl_heavy_load_done(const struct sl_heavy_load *load)
{
        const struct board *board = load->pair.memory;

        return board ? atomic_load(&board->done) : 0;
}

int sl_heavy_load_is_served(const struct sl_heavy_load *load)
{
        const struct board *board = load->pair.memory;

        return board && atomic_load(&board->served);
}

int sl_heavy_load_stop(struct sl_heavy_load *load)
{
        struct board *board = load->pair.memory;

        if (board)
                atomic_store(&board->stop, 1);
        return sl_pair_end(&load->pair);
}
