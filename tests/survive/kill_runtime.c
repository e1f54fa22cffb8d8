/* SPDX-License-Identifier: Apache-2.0 */
#include "digits.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define QUEUES  2u
#define CLIENTS 2u
#define JOBS    8u
#define NOOPS   8u
#define IDS     (JOBS + NOOPS)

/* What one queue pair has in flight, by user data: each must come back exactly once. */
struct lane {
        struct starling_queue *queue;
        struct digits_job jobs[JOBS];
        bool flying[IDS];
        uint64_t ids[IDS];
        uint32_t n_flying;
};

struct client {
        struct starling_client *handle;
        struct starling_model *model;
        struct lane lanes[QUEUES];
};

static void join(struct client *client, const struct world *world, const struct digits_data *data)
{
        client->handle = world_connect(world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_model_open(client->handle, "lenet", &client->model, NULL), 0);
        for (uint32_t q = 0; q < QUEUES; q++) {
                cr_assert_eq(starling_queue_open(client->handle, &client->lanes[q].queue, NULL), 0);
                for (uint32_t job = 0; job < JOBS; job++)
                        cr_assert_eq(digits_job_alloc(&client->lanes[q].jobs[job], data, client->handle), 0);
        }
}

/* Return: false when the runtime is known to be gone: nothing was accepted then. */
static bool submit(struct client *client, struct lane *lane, uint32_t id, uint32_t *seed)
{
        struct starling_request request = {.flags = STARLING_NOOP};
        int r;

        if (id < JOBS)
                request = digits_fill(&lane->jobs[id], client->model, seed);
        request.user_data = id;
        r = starling_submit(lane->queue, &request, &lane->ids[id]);
        cr_assert(r == 0 || r == -EPIPE, "%s: %s", starling_strerror(r), starling_queue_error(lane->queue));
        if (r < 0)
                return false;
        lane->flying[id] = true;
        lane->n_flying++;
        return true;
}

static void take(struct lane *lane, const struct digits_data *data, const struct starling_completion *completion)
{
        uint64_t id = completion->user_data;
        char text[256];

        cr_assert_lt(id, IDS);
        cr_assert(lane->flying[id], "request %llu completed twice", (unsigned long long)id);
        cr_assert_eq(completion->id, lane->ids[id]);
        lane->flying[id] = false;
        lane->n_flying--;
        cr_assert(completion->status == 0 || completion->status == -EPIPE, "status: %s", starling_strerror(completion->status));
        if (completion->status == 0 && id < JOBS)
                cr_assert(digits_right(&lane->jobs[id], data, text, sizeof(text)), "%s", text);
}

static void fill(struct client *client, uint32_t *seed)
{
        for (uint32_t q = 0; q < QUEUES; q++)
                for (uint32_t id = 0; id < IDS; id++)
                        if (!client->lanes[q].flying[id] && !submit(client, &client->lanes[q], id, seed))
                                return;
}

static void reap(struct client *client, const struct digits_data *data)
{
        struct starling_completion completions[IDS];

        for (uint32_t q = 0; q < QUEUES; q++) {
                int n = starling_poll(client->lanes[q].queue, completions, IDS);

                for (int i = 0; i < n; i++)
                        take(&client->lanes[q], data, &completions[i]);
        }
}

/* Every other client reconnects first: what was in flight comes out of the queue pairs before and after alike. */
static void drain(struct client *client, const struct digits_data *data)
{
        struct starling_completion completions[IDS];

        for (uint32_t q = 0; q < QUEUES; q++) {
                struct lane *lane = &client->lanes[q];

                while (lane->n_flying) {
                        int n = starling_wait(lane->queue, completions, IDS, 60000000000ull);

                        cr_assert_gt(n, 0, "%u requests have no completion: %s", lane->n_flying, starling_strerror(n));
                        for (int i = 0; i < n; i++)
                                take(lane, data, &completions[i]);
                }
                cr_assert_leq(starling_poll(lane->queue, completions, IDS), 0, "more completions than requests");
        }
}

static void reconnect(struct client *client, struct world *world)
{
        struct starling_error error;
        int r = starling_reconnect(client->handle, 60000000000ull, &error);

        cr_assert_eq(r, 0, "%s\n%s", error.text, world_log(world));
}

static void expect_images_in_place(struct client *client, const struct digits_data *data)
{
        for (uint32_t q = 0; q < QUEUES; q++)
                for (uint32_t job = 0; job < JOBS; job++)
                        cr_assert_arr_eq(
                                client->lanes[q].jobs[job].input.data, data->images, DIGITS_N * DIGITS_INPUTS * sizeof(float));
}

/* What was computed once stays right: every request of a fresh round must be done, and done right. */
static void expect_right(struct client *client, const struct digits_data *data, uint32_t *seed)
{
        for (uint32_t q = 0; q < QUEUES; q++) {
                struct starling_request request = digits_fill(&client->lanes[q].jobs[0], client->model, seed);
                char text[256];
                int r = starling_infer(client->lanes[q].queue, &request, NULL);

                cr_assert_eq(r, 0, "%s: %s", starling_strerror(r), starling_queue_error(client->lanes[q].queue));
                cr_assert(digits_right(&client->lanes[q].jobs[0], data, text, sizeof(text)), "%s", text);
        }
}

Test(kill_runtime, completes_every_request_once_and_clients_go_on)
{
        uint32_t rounds = world_rounds("STARLING_KILL_RUNTIME_ROUNDS", 100), seed = 3;
        uint64_t begun_ns = starling_clock_ns();
        static struct client clients[CLIENTS];
        struct digits_data data;
        struct world world;

        world_init(&world);
        world_configure(&world, "models: [lenet]\nmodel_defaults: {warmup_ms: 0}\n");
        world_start(&world);
        cr_assert(digits_read(&data, "lenet"));
        for (uint32_t i = 0; i < CLIENTS; i++)
                join(&clients[i], &world, &data);
        for (uint32_t round = 0; round < rounds && world_has_time("STARLING_KILL_RUNTIME_ROUNDS", round, begun_ns); round++) {
                uint64_t until = starling_clock_ns() + digits_random(&seed, 8000000);

                do
                        for (uint32_t i = 0; i < CLIENTS; i++) {
                                fill(&clients[i], &seed);
                                reap(&clients[i], &data);
                        }
                while (starling_clock_ns() < until);
                for (uint32_t i = 0; i < CLIENTS; i++)
                        fill(&clients[i], &seed);
                world_kill(&world);
                world_expect_nothing_left(&world, true);
                drain(&clients[0], &data);
                world_launch(&world);
                for (uint32_t i = 0; i < CLIENTS; i++)
                        reconnect(&clients[i], &world);
                for (uint32_t i = 1; i < CLIENTS; i++)
                        drain(&clients[i], &data);
                for (uint32_t i = 0; i < CLIENTS; i++) {
                        expect_images_in_place(&clients[i], &data);
                        expect_right(&clients[i], &data, &seed);
                }
        }
        for (uint32_t i = 0; i < CLIENTS; i++)
                starling_close(clients[i].handle);
        world_stop(&world);
        digits_release(&data);
        world_free(&world);
}
