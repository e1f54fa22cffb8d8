/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share one client: each with its queue pair, all with the arena, which must grow while they work. ThreadSanitizer is
 * the judge.
 */
#include "fake_runtime.h"
#include "starling.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS  4
#define REQUESTS 400
#define CHURNS   1000

struct worker {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        pthread_t thread;
        const char *failure;
};

static const char *infer_once(struct worker *w, uint32_t samples, struct starling_tensor *in, struct starling_tensor *out)
{
        struct starling_request request = {.model = w->model, .inputs = in, .n_inputs = 1, .outputs = out, .n_outputs = 1};

        memset(in->data, (int)samples, in->bytes);
        if (starling_infer(w->queue, &request, NULL) < 0)
                return starling_queue_error(w->queue);
        return memcmp(in->data, out->data, in->bytes) == 0 ? NULL : "the answer is another's";
}

static const char *work(struct worker *w)
{
        for (uint32_t samples = 1; samples <= REQUESTS; samples++) {
                struct starling_tensor in, out;
                uint32_t dims[] = {samples, 4};

                if (starling_tensor_alloc(w->client, STARLING_F32, 2, dims, &in) < 0 ||
                        starling_tensor_alloc(w->client, STARLING_F32, 2, dims, &out) < 0)
                        return "no memory";

                const char *failure = infer_once(w, samples, &in, &out);

                /* Some stays, so that the arena has to grow. */
                if (failure || starling_free(w->client, in.data) < 0 || (samples % 2 && starling_free(w->client, out.data) < 0))
                        return failure ? failure : "memory that cannot be freed";
        }
        return NULL;
}

static void *run(void *context)
{
        struct worker *w = context;
        struct starling_error error;

        if (starling_queue_open(w->client, &w->queue, &error) < 0 ||
                starling_model_open(w->client, "echo", &w->model, &error) < 0) {
                w->failure = "no queue pair or no model";
                return NULL;
        }
        w->failure = work(w);
        starling_model_close(w->model);
        starling_queue_close(w->queue);
        return NULL;
}

#define ARENA_BYTES (512u << 10)

static uint32_t next(uint32_t *seed, uint32_t limit)
{
        *seed = *seed * 1664525 + 1013904223;
        return (*seed >> 8) % limit;
}

static bool is_filled(const unsigned char *block, uint32_t bytes, unsigned char with)
{
        for (uint32_t i = 0; i < bytes; i++)
                if (block[i] != with)
                        return false;
        return true;
}

/* Blocks of any size come and go, so that regions do: each block is its thread's alone, and requests find where theirs lie. */
static const char *churn_once(struct worker *w, uint32_t *seed)
{
        uint32_t samples = 1 + next(seed, 1000), dims[] = {samples, 4}, bytes = 1 + next(seed, ARENA_BYTES / 3);
        unsigned char *block = starling_alloc(w->client, bytes), with = (unsigned char)next(seed, 256);
        struct starling_tensor in = {.data = NULL}, out = {.data = NULL};
        const char *failure = NULL;

        /* The others may have it all. */
        if (block)
                memset(block, with, bytes);
        if (starling_tensor_alloc(w->client, STARLING_F32, 2, dims, &in) == 0 &&
                starling_tensor_alloc(w->client, STARLING_F32, 2, dims, &out) == 0)
                failure = infer_once(w, samples, &in, &out);
        if (block && !is_filled(block, bytes, with))
                failure = "a block that is another's too";
        if (starling_free(w->client, in.data) < 0 || starling_free(w->client, out.data) < 0 || starling_free(w->client, block) < 0)
                failure = "memory that cannot be freed";
        return failure;
}

static void *churn(void *context)
{
        struct worker *w = context;
        struct starling_error error;
        uint32_t seed = (uint32_t)(uintptr_t)w >> 4;

        if (starling_queue_open(w->client, &w->queue, &error) < 0 ||
                starling_model_open(w->client, "echo", &w->model, &error) < 0) {
                w->failure = "no queue pair or no model";
                return NULL;
        }
        for (int i = 0; i < CHURNS && !w->failure; i++)
                w->failure = churn_once(w, &seed);
        starling_model_close(w->model);
        starling_queue_close(w->queue);
        return NULL;
}

static int work_together(struct starling_client *client, void *(*what)(void *))
{
        struct worker workers[THREADS];
        int failures = 0;

        for (int i = 0; i < THREADS; i++) {
                workers[i] = (struct worker){.client = client};
                pthread_create(&workers[i].thread, NULL, what, &workers[i]);
        }
        for (int i = 0; i < THREADS; i++) {
                pthread_join(workers[i].thread, NULL);
                if (workers[i].failure)
                        fprintf(stderr, "thread %d: %s\n", i, workers[i].failure);
                failures += workers[i].failure != NULL;
        }
        return failures;
}

/* @limit_bytes: of the arena; 0: as many as it wants. */
static int try(const char *socket, uint64_t limit_bytes, void *(*what)(void *))
{
        struct starling_options options = {.runtime = socket, .arena_bytes = 64 << 10};
        struct starling_client *client = NULL;
        struct starling_error error = {""};
        struct fake_runtime *runtime;
        int failures = 1;

        if (fake_runtime_start(&(struct fake_options){.socket = socket, .arena_limit_bytes = limit_bytes}, &runtime) < 0)
                return 1;
        if (starling_connect(&options, &client, &error) == 0)
                failures = work_together(client, what);
        else
                fprintf(stderr, "%s\n", error.text);
        starling_close(client);
        fake_runtime_kill(runtime, 0);
        return failures;
}

int main(void)
{
        char folder[] = "/tmp/starling-threads-XXXXXX", socket[64];
        int failures;

        if (!mkdtemp(folder))
                return 1;
        snprintf(socket, sizeof(socket), "%s/s.sock", folder);
        failures = try(socket, 0, run) + try(socket, ARENA_BYTES, churn);
        rmdir(folder);
        return failures != 0;
}
