/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test of the client stands in: a fake runtime on a socket in a folder of its own, and a client that is connected to it.
 */
#pragma once

#include "fake_runtime.h"
#include "starling.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define LIMIT_NS  (120 * SECOND_NS) /* of what must come */

struct world {
        char folder[64], socket[96];
        struct fake_options fake;
        struct starling_options options;
        struct fake_runtime *runtime;
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_error error;
};

static inline void world_place(struct world *w)
{
        memset(w, 0, sizeof(*w));
        snprintf(w->folder, sizeof(w->folder), "/tmp/starling-client-XXXXXX");
        cr_assert_not_null(mkdtemp(w->folder));
        snprintf(w->socket, sizeof(w->socket), "%s/s.sock", w->folder);
        w->fake.socket = w->options.runtime = w->socket;
        w->options.arena_bytes = 1 << 20;
}

static inline void world_start(struct world *w)
{
        cr_assert_eq(fake_runtime_start(&w->fake, &w->runtime), 0);
}

static inline void world_join(struct world *w)
{
        int r = starling_connect(&w->options, &w->client, &w->error);

        cr_assert_eq(r, 0, "%s", w->error.text);
        r = starling_queue_open(w->client, &w->queue, &w->error);
        cr_assert_eq(r, 0, "%s", w->error.text);
}

static inline void world_enter(struct world *w)
{
        world_place(w);
        world_start(w);
        world_join(w);
}

static inline void world_leave(struct world *w)
{
        starling_close(w->client);
        fake_runtime_kill(w->runtime, 0);
        unlink(w->socket);
        rmdir(w->folder);
}

/* Waits for what another thread does soon; the limit is there to fail a test that would never end. */
#define eventually(condition)                                                                                                      \
        do {                                                                                                                       \
                int tries_ = 120000;                                                                                               \
                while (!(condition) && --tries_)                                                                                   \
                        usleep(1000);                                                                                              \
                cr_assert(tries_ > 0, "never came true: %s", #condition);                                                          \
        } while (0)

static inline struct starling_request noop(uint64_t user_data)
{
        return (struct starling_request){.flags = STARLING_NOOP, .user_data = user_data};
}

static inline void submit_noops(struct world *w, uint32_t n, uint64_t first)
{
        for (uint32_t i = 0; i < n; i++) {
                struct starling_request request = noop(first + i);

                cr_assert_eq(starling_submit(w->queue, &request, NULL), 0, "%s", starling_queue_error(w->queue));
        }
}

/* A request for "echo" whose input counts up. */
struct echo {
        struct starling_model *model;
        struct starling_tensor input, output;
        struct starling_request request;
};

static inline void echo_prepare(struct world *w, uint32_t samples, struct echo *e)
{
        int r = starling_model_open(w->client, "echo", &e->model, &w->error);

        cr_assert_eq(r, 0, "%s", w->error.text);
        cr_assert_eq(starling_tensor_alloc(w->client, STARLING_F32, 2, (uint32_t[]){samples, 4}, &e->input), 0);
        cr_assert_eq(starling_tensor_alloc(w->client, STARLING_F32, 2, (uint32_t[]){samples, 4}, &e->output), 0);
        for (uint32_t i = 0; i < samples * 4; i++) {
                ((float *)e->input.data)[i] = (float)i;
                ((float *)e->output.data)[i] = -1;
        }
        e->request = (struct starling_request){
                .model = e->model, .inputs = &e->input, .n_inputs = 1, .outputs = &e->output, .n_outputs = 1};
}
