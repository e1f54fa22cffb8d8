/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a dispatcher decided in a live run, the simulator's server decides when the same enters it: whose segment goes out, and
 * which worker gets how many samples, one by one, for each policy.
 */
#include "policy.h"
#include "replay.h"
#include "service.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS  3u
#define REQUESTS 80u /* of each */
#define ENTRIES  100000u
#define MODELS   3u

static const char *const names[MODELS] = {"lenet", "mlp", "digits"};

struct world {
        struct service service;
        struct sl_decision_log *log;
};

static uint32_t roll(uint32_t *dice, uint32_t sides)
{
        *dice = *dice * 1664525u + 1013904223u;
        return (uint32_t)(((uint64_t)(*dice >> 8) * sides) >> 24);
}

/* And their mean. */
static void keep_two_networks(struct service *service)
{
        service->specs[1] = service->specs[4];
        service->specs[2] = service->specs[5];
        service->specs[2].members = names;
        service->specs[2].n_members = 2;
        service->n_specs = 3;
}

/* Workers of several batch sizes, all on the same cores. */
static void set_up(struct world *world, uint32_t policy)
{
        static const struct sl_ebird_engine engine = {{{{0, 0, 1}}, {{0, 0, 0, 1}}, {{0, 0, 2, 1}}, {{0, 0, 0, 2, 1}}}};
        bool waits = policy == SL_POLICY_opt_wait || policy == SL_POLICY_static || policy == SL_POLICY_triton;

        service_init(&world->service);
        world->log = calloc(1, sizeof(*world->log));
        cr_assert_not_null(world->log);
        world->log->entries = calloc(ENTRIES, sizeof(*world->log->entries));
        world->log->room = ENTRIES;
        world->log->clients_max = world->service.options.clients_max;
        world->service.options.decisions = world->log;
        world->service.options.inline_ns = 0;
        keep_two_networks(&world->service);
        for (uint32_t i = 0; i < 2; i++) {
                struct sl_model_spec *spec = &world->service.specs[i];

                spec->batching =
                        (struct sl_batching){.policy = policy, .latency_ms = 5, .delay_us = waits ? 500 : 0, .engine = engine};
                spec->workers = (struct sl_worker_set){
                        .n = 4, .wishes = {{.batch_size = 8}, {.batch_size = 4}, {.batch_size = 2}, {.batch_size = 1}}};
                spec->slice_ns = 1000000;
        }
}

struct asker {
        struct service *service;
        uint32_t dice;
};

#define PLACES        16u
#define PLACE_SAMPLES 304u /* whose outputs end on a line */

/* A client with outputs for as many requests as it has in flight. */
struct client {
        struct starling_client *client;
        struct starling_model *models[MODELS];
        struct starling_queue *queue;
        struct digits digits;
        struct starling_tensor outputs;
        uint32_t in_flight; /* places, as bits */
};

static void take(struct client *client)
{
        struct starling_completion done[PLACES];
        int n = starling_wait(client->queue, done, PLACES, 1000000000);

        for (int i = 0; i < n; i++) {
                cr_assert(done[i].status == 0 || done[i].status == -ETIME || done[i].status == -EBUSY, "%s",
                        starling_strerror(done[i].status));
                client->in_flight &= ~(1u << done[i].user_data);
        }
}

/* False: there is no room for it now. */
static bool send(struct client *client, uint32_t *dice)
{
        uint32_t place = (uint32_t)__builtin_ctz(~client->in_flight), n = 1 + roll(dice, roll(dice, 8) ? 6 : 300);
        struct starling_tensor input, output;
        struct starling_request request =
                digits_request(&client->digits, client->models[roll(dice, MODELS)], 0, n, &input, &output);

        output.data = (float *)client->outputs.data + (size_t)place * PLACE_SAMPLES * DIGITS_CLASSES;
        request.user_data = place;
        request.priority = roll(dice, 4);
        request.deadline_ns = roll(dice, 10) ? 0 : starling_clock_ns() + 2000000;
        if (starling_submit(client->queue, &request, NULL) < 0)
                return false;
        client->in_flight |= 1u << place;
        return true;
}

static void client_init(struct client *client, struct service *service)
{
        const uint32_t dims[] = {PLACES * PLACE_SAMPLES, DIGITS_CLASSES};

        *client = (struct client){.client = service_connect(service, STARLING_ROLE_CLIENT)};
        cr_assert_eq(starling_queue_open(client->client, &client->queue, NULL), 0);
        digits_load(&client->digits, client->client, "digits");
        cr_assert_eq(starling_tensor_alloc(client->client, STARLING_F32, 2, dims, &client->outputs), 0);
        for (uint32_t i = 0; i < MODELS; i++)
                cr_assert_eq(starling_model_open(client->client, names[i], &client->models[i], NULL), 0);
}

/* Requests of any size, class and model, some with a deadline, one after the other and in bursts. */
static void *ask(void *argument)
{
        struct asker *asker = argument;
        struct client client;

        client_init(&client, asker->service);
        for (uint32_t i = 0; i < REQUESTS; i++) {
                while (client.in_flight == (1u << PLACES) - 1 || !send(&client, &asker->dice))
                        take(&client);
                if (roll(&asker->dice, 4) == 0)
                        usleep(roll(&asker->dice, 2000));
        }
        while (client.in_flight)
                take(&client);
        digits_free(&client.digits);
        starling_close(client.client);
        return NULL;
}

static void run(struct world *world, uint32_t seed)
{
        struct asker askers[CLIENTS];
        pthread_t threads[CLIENTS];

        service_start(&world->service);
        for (uint32_t i = 0; i < CLIENTS; i++) {
                askers[i] = (struct asker){&world->service, seed * 100 + i};
                pthread_create(&threads[i], NULL, ask, &askers[i]);
        }
        for (uint32_t i = 0; i < CLIENTS; i++)
                pthread_join(threads[i], NULL);
        service_stop(&world->service);
}

static void tear_down(struct world *world)
{
        free(world->log->entries);
        free(world->log);
}

static void expect_the_same(const struct world *world, const char *policy)
{
        struct sl_replay replay;
        int r = sl_replay_run(world->log, &replay);

        cr_assert_eq(r, 0, "%s: %d", policy, r);
        cr_expect_eq(world->log->lost, 0);
        cr_expect_eq(replay.differs_at, SL_LOGGED_NONE,
                "%s: entry %u of %u: kind %d, model %u, worker %u, %u samples, not %d, %u, %u, %u", policy, replay.differs_at,
                world->log->n, world->log->entries[replay.differs_at % ENTRIES].kind,
                world->log->entries[replay.differs_at % ENTRIES].of, world->log->entries[replay.differs_at % ENTRIES].worker,
                world->log->entries[replay.differs_at % ENTRIES].samples, replay.instead.kind, replay.instead.of,
                replay.instead.worker, replay.instead.samples);
        /* A third of what was asked: how many are refused or go together is chance. */
        cr_expect_gt(replay.decisions, REQUESTS, "%s: %lu", policy, replay.decisions);
        cr_expect_gt(replay.broadcasts, REQUESTS, "%s: %lu", policy, replay.broadcasts);
}

static void decide_alike(uint32_t policy)
{
        struct world world;

        set_up(&world, policy);
        run(&world, policy + 1);
        expect_the_same(&world, sl_policies[policy].name);
        tear_down(&world);
}

/* clang-format off */
#define X(policy, waits) \
        Test(decisions, a_live_run_that_is_replayed_is_decided_alike_by_##policy, .timeout = 60) \
        { \
                decide_alike(SL_POLICY_##policy); \
        }
SL_POLICIES(X)
#undef X
/* clang-format on */

static uint32_t count_entries(const struct world *world, enum sl_logged_kind kind)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < world->log->n; i++)
                n += world->log->entries[i].kind == kind;
        return n;
}

/* Changes the log where @kind comes for the @nth time, from 0. Return: the replay stops there or later. */
static bool is_noticed(struct world *world, enum sl_logged_kind kind, uint32_t nth)
{
        struct sl_logged *entry = world->log->entries;
        bool noticed = true;
        struct sl_replay replay;

        while (entry->kind != kind || nth-- > 0)
                entry++;
        struct sl_logged kept = *entry;
        if (kind == SL_LOGGED_ARRIVAL)
                entry->samples += 7;
        else
                entry->worker ^= 1;
        if (sl_replay_run(world->log, &replay) == 0)
                noticed = replay.differs_at != SL_LOGGED_NONE;
        *entry = kept;
        return noticed;
}

/* In the middle of what there is. What is given up before its turn decides nothing: ten of them in a row are not. */
static void expect_difference(struct world *world, enum sl_logged_kind kind)
{
        uint32_t n = count_entries(world, kind), nth = n / 2, last = nth + 10;

        cr_assert_lt(last, n);
        while (nth < last && !is_noticed(world, kind, nth))
                nth++;
        cr_expect_lt(nth, last, "kind %d", kind);
}

Test(decisions, a_log_that_was_changed_is_not_decided_alike, .timeout = 60)
{
        struct world world;

        set_up(&world, SL_POLICY_work_conserving);
        run(&world, 77);
        expect_difference(&world, SL_LOGGED_ARRIVAL);
        expect_difference(&world, SL_LOGGED_DECISION);
        expect_the_same(&world, "work_conserving");
        tear_down(&world);
}

Test(decisions, a_log_that_is_full_counts_what_it_lost, .timeout = 60)
{
        struct world world;

        set_up(&world, SL_POLICY_single);
        world.log->room = 50;
        run(&world, 5);
        cr_expect_eq(world.log->n, 50);
        cr_expect_gt(world.log->lost, REQUESTS);
        tear_down(&world);
}
