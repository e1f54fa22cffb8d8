/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger of versions: models that answer with the number of their version, reloaded all the time while clients ask them and other
 * processes want the cores. Whatever is submitted behind an administrator's answer, or behind the line of the log, meets that
 * version or a newer one.
 *
 *     SL_LEDGER_ROUNDS=100000 build/release/bin/test-survive-reload --filter 'ledger/...'     for the long run
 */
#include "builder.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Numbers go round, so that plans come from the cache in a long run; half of them are newer than the other half. */
#define NUMBERS    32u
#define MODELS     3u
#define CLIENTS    2u
#define WIDTH      4u
#define HIDDEN     8u
#define BUSY       2u
#define FILE_BYTES 4096u

static const char *const names[MODELS] = {"a", "b", "c"};

static struct world world;
static struct starling_client *admin;
static pid_t busy[BUSY];
static struct file {
        uint8_t bytes[FILE_BYTES];
        size_t size;
} files[NUMBERS];

/* What was answered: the round of the last reload of each model that has returned. */
static _Atomic uint32_t answered[MODELS];
static atomic_bool over;

/* y = relu(x A) B + number: of zeros, the number. */
static void make_file(uint32_t number, bool open)
{
        struct builder *b = builder_new(17);
        float numbers[WIDTH];
        const uint8_t *packed;

        for (uint32_t i = 0; i < WIDTH; i++)
                numbers[i] = (float)number;
        if (open)
                builder_input(b, "x", 1, DIMS(-1, -2, WIDTH));
        else
                builder_input(b, "x", 1, DIMS(-1, WIDTH));
        builder_random(b, "A", DIMS(WIDTH, HIDDEN));
        builder_random(b, "B", DIMS(HIDDEN, WIDTH));
        builder_floats(b, "number", DIMS(WIDTH), numbers);
        builder_node(b, "MatMul", "x,A", "h");
        builder_node(b, "Relu", "h", "r");
        builder_node(b, "MatMul", "r,B", "s");
        builder_node(b, "Add", "s,number", "y");
        builder_output(b, "y");
        packed = builder_pack(b, &files[number].size);
        cr_assert_leq(files[number].size, FILE_BYTES);
        memcpy(files[number].bytes, packed, files[number].size);
        builder_free(b);
}

static void make_files(bool open)
{
        for (uint32_t i = 0; i < NUMBERS; i++)
                make_file(i, open);
}

static void put_file(const char *name, uint32_t round)
{
        const struct file *file = &files[round % NUMBERS];

        world_add_model(&world, name, file->bytes, file->size);
}

static bool is_older(uint32_t number, uint32_t round)
{
        return (number - round) % NUMBERS >= NUMBERS / 2;
}

/* The neighbours: processes that want a core all the time. */
static void start_busy(void)
{
        for (uint32_t i = 0; i < BUSY; i++) {
                busy[i] = fork();
                if (busy[i])
                        continue;
                prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
                for (;;)
                        ;
        }
}

static void stop_busy(void)
{
        for (uint32_t i = 0; i < BUSY && busy[i] > 0; i++)
                kill(busy[i], SIGKILL);
}

static void set_up(void)
{
        world_init(&world);
}

static void tear_down(void)
{
        stop_busy();
        starling_close(admin);
        world_stop(&world);
        world_free(&world);
}

TestSuite(ledger, .init = set_up, .fini = tear_down, .timeout = 24 * 3600);

static void start(const char *models, const char *yaml)
{
        char config[256];

        for (uint32_t i = 0; i < MODELS; i++) {
                put_file(names[i], 0);
                world_add_model_config(&world, names[i], yaml);
        }
        snprintf(config, sizeof(config), "models: %s\n", models);
        world_configure(&world, config);
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        start_busy();
}

static void reload(const char *name)
{
        struct starling_error error = {""};

        cr_assert_eq(starling_admin_reload(admin, name, &error), 0, "%s", error.text);
}

/* ---- who asks ---- */

struct asker {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_tensor input, outputs[MODELS];
        pthread_t thread;
        uint64_t asked;
        char wrong[256]; /* the first thing that was; "": nothing */
};

static void asker_open(struct asker *asker, bool open)
{
        const uint32_t rank = open ? 3 : 2, flat[] = {1, WIDTH}, sized[] = {1, 1, WIDTH};

        memset(asker, 0, sizeof(*asker));
        asker->client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(asker->client, &asker->queue, NULL), 0);
        cr_assert_eq(starling_tensor_alloc(asker->client, STARLING_F32, rank, open ? sized : flat, &asker->input), 0);
        memset(asker->input.data, 0, asker->input.bytes);
        for (uint32_t i = 0; i < MODELS; i++)
                cr_assert_eq(starling_tensor_alloc(asker->client, STARLING_F32, rank, open ? sized : flat, &asker->outputs[i]), 0);
}

/* Return: the status; @ret_numbers: what each output says. */
static int ask(struct asker *asker, struct starling_model *model, uint32_t n_outputs, uint32_t *ret_numbers)
{
        struct starling_completion done;
        int r = starling_infer(asker->queue,
                &(struct starling_request){
                        .model = model, .inputs = &asker->input, .n_inputs = 1, .outputs = asker->outputs, .n_outputs = n_outputs},
                &done);

        asker->asked++;
        for (uint32_t i = 0; i < n_outputs; i++)
                ret_numbers[i] = (uint32_t) * (const float *)asker->outputs[i].data;
        return r;
}

/* Asks once, and is told nothing that is older than what was answered before. */
static bool ask_checked(struct asker *asker, struct starling_model *model, uint32_t which)
{
        uint32_t round = atomic_load_explicit(&answered[which], memory_order_acquire) /* pairs with note_answer() */, number;
        int r = ask(asker, model, 1, &number);

        if (r < 0)
                snprintf(asker->wrong, sizeof(asker->wrong), "%s: %s", names[which], starling_strerror(r));
        else if (is_older(number, round))
                snprintf(asker->wrong, sizeof(asker->wrong), "%s answered as version %u, submitted behind the answer of version %u",
                        names[which], number, round % NUMBERS);
        return !asker->wrong[0];
}

static void *asker_main(void *argument)
{
        struct asker *asker = argument;
        struct starling_model *models[MODELS];

        for (uint32_t i = 0; i < MODELS; i++)
                if (starling_model_open(asker->client, names[i], &models[i], NULL) < 0)
                        snprintf(asker->wrong, sizeof(asker->wrong), "%s cannot be opened", names[i]);
        for (uint32_t i = 0; !asker->wrong[0] && !atomic_load_explicit(&over, memory_order_relaxed); i++)
                ask_checked(asker, models[i % MODELS], i % MODELS);
        return NULL;
}

static void note_answer(uint32_t which, uint32_t round)
{
        atomic_store_explicit(&answered[which], round, memory_order_release); /* pairs with ask_checked() */
}

/* ---- the rules ---- */

/* Reloads one model after the other, and asks each at once; others ask them all the time. */
static void keep_ledger(uint32_t rounds)
{
        struct asker own, others[CLIENTS];
        struct starling_model *models[MODELS];

        asker_open(&own, false);
        for (uint32_t i = 0; i < MODELS; i++)
                cr_assert_eq(starling_model_open(own.client, names[i], &models[i], NULL), 0);
        for (uint32_t i = 0; i < CLIENTS; i++) {
                asker_open(&others[i], false);
                cr_assert_eq(pthread_create(&others[i].thread, NULL, asker_main, &others[i]), 0);
        }
        for (uint32_t i = 0; i < rounds && !own.wrong[0]; i++) {
                uint32_t which = i % MODELS, round = 1 + i / MODELS;

                put_file(names[which], round);
                reload(names[which]);
                note_answer(which, round);
                ask_checked(&own, models[which], which);
        }
        atomic_store_explicit(&over, true, memory_order_relaxed);
        for (uint32_t i = 0; i < CLIENTS; i++) {
                pthread_join(others[i].thread, NULL);
                cr_expect_str_eq(others[i].wrong, "");
                starling_close(others[i].client);
        }
        cr_expect_str_eq(own.wrong, "");
        starling_close(own.client);
        cr_log_info("%u reloads, %llu requests", rounds, (unsigned long long)(others[0].asked + others[1].asked + own.asked));
}

Test(ledger, what_is_submitted_behind_a_reload_meets_the_new_version)
{
        make_files(false);
        start("[a, b, c]", "");
        keep_ledger(world_rounds("SL_LEDGER_ROUNDS", 30));
}

Test(ledger, what_is_submitted_behind_a_reload_of_models_that_share_workers_meets_the_new_version)
{
        make_files(false);
        start("[a, b, c]", "fuse: auto\n");
        keep_ledger(world_rounds("SL_LEDGER_ROUNDS", 30));
}

Test(ledger, what_is_submitted_to_an_ensemble_behind_a_reload_of_its_member_meets_the_new_version)
{
        uint32_t rounds = world_rounds("SL_LEDGER_ROUNDS", 30), numbers[MODELS];
        struct starling_model *model;
        struct asker asker;

        make_files(false);
        world_add_model_config(&world, "all", "ensemble:\n  members: [a, b, c]\n  rule: none\n");
        start("[a, b, c, all]", "");
        asker_open(&asker, false);
        cr_assert_eq(starling_model_open(asker.client, "all", &model, NULL), 0);
        for (uint32_t i = 0; i < rounds; i++) {
                uint32_t which = i % MODELS, round = 1 + i / MODELS;

                put_file(names[which], round);
                reload(names[which]);
                cr_assert_eq(ask(&asker, model, MODELS, numbers), 0);
                cr_assert_eq(numbers[which], round % NUMBERS, "%s in round %u answered as %u", names[which], round, numbers[which]);
        }
        starling_close(asker.client);
}

Test(ledger, a_model_that_was_loaded_can_be_opened_and_asked_at_once)
{
        uint32_t rounds = world_rounds("SL_LEDGER_ROUNDS", 30), number;
        struct starling_error error = {""};
        struct starling_model *model;
        struct asker asker;

        make_files(false);
        start("[a, b, c]", "");
        asker_open(&asker, false);
        for (uint32_t round = 1; round <= rounds; round++) {
                cr_assert_eq(starling_admin_unload(admin, "a", &error), 0, "%s", error.text);
                put_file("a", round);
                cr_assert_eq(starling_admin_load(admin, "a", &error), 0, "%s", error.text);
                cr_assert_eq(starling_model_open(asker.client, "a", &model, &error), 0, "%s", error.text);
                cr_assert_eq(ask(&asker, model, 1, &number), 0);
                cr_assert_eq(number, round % NUMBERS);
                starling_model_close(model);
        }
        starling_close(asker.client);
}

/* Who polls for a model, as a client that waits for its server does, has it when it can open it. */
Test(ledger, a_model_that_can_be_opened_can_be_asked)
{
        uint32_t rounds = world_rounds("SL_LEDGER_ROUNDS", 30), number;
        struct starling_error error = {""};
        struct starling_model *model;
        struct asker asker;

        make_files(false);
        start("[a, b, c]", "");
        asker_open(&asker, false);
        for (uint32_t round = 1; round <= rounds; round++) {
                cr_assert_eq(starling_admin_unload(admin, "a", &error), 0, "%s", error.text);
                put_file("a", round);
                kill(world.pid, SIGHUP);
                while (starling_model_open(asker.client, "a", &model, &error) < 0)
                        ;
                cr_assert_eq(ask(&asker, model, 1, &number), 0);
                cr_assert_eq(number, round % NUMBERS);
                starling_model_close(model);
        }
        starling_close(asker.client);
}

Test(ledger, what_is_submitted_behind_the_line_of_the_log_meets_the_new_version)
{
        uint32_t rounds = world_rounds("SL_LEDGER_ROUNDS", 8), number;
        struct starling_model *model;
        struct asker asker;

        make_files(false);
        start("[a, b, c]", "");
        asker_open(&asker, false);
        cr_assert_eq(starling_model_open(asker.client, "a", &model, NULL), 0);
        for (uint32_t round = 1; round <= rounds; round++) {
                put_file("a", round);
                kill(world.pid, SIGHUP);
                while (world_count_log(&world, "event=model-replaced model=a") < round)
                        ;
                cr_assert_eq(ask(&asker, model, 1, &number), 0);
                cr_assert_eq(number, round % NUMBERS, "%s", world_log(&world));
        }
        starling_close(asker.client);
}

Test(ledger, what_is_submitted_to_any_sizes_behind_a_reload_meets_the_new_version)
{
        uint32_t rounds = world_rounds("SL_LEDGER_ROUNDS", 8), number;
        struct starling_model *model;
        struct asker asker;

        make_files(true);
        start("[a]", "");
        asker_open(&asker, true);
        cr_assert_eq(starling_model_open(asker.client, "a", &model, NULL), 0);
        for (uint32_t round = 1; round <= rounds; round++) {
                put_file("a", round);
                reload("a");
                cr_assert_eq(ask(&asker, model, 1, &number), 0);
                cr_assert_eq(number, round % NUMBERS);
        }
        starling_close(asker.client);
}
