/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of a network whose plans are merged while they serve, as their users see them: the weights are there once, what one of
 * them is sent or becomes changes no other's answers, and a thousand merges leave nothing. Whether merging pays is measured by the
 * runtime: where it does not, there is nothing to be seen, and the log says why.
 */
#include "builder.h"
#include "digits.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct world world;
static struct starling_client *admin;

#define YAML "fuse: auto\n"

static void set_up(void)
{
        world_init_compiling(&world);
        world_keep(&world, "");
        world_configure(&world, "threads: {inline_us: 0}\nlog_level: debug\n");
}

static void tear_down(void)
{
        starling_close(admin);
        world_stop(&world);
        world_free(&world);
}

TestSuite(merged, .init = set_up, .fini = tear_down, .timeout = 60);

static void start(void)
{
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
}

static void load(const char *name)
{
        struct starling_error error = {""};

        cr_assert_eq(starling_admin_load(admin, name, &error), 0, "%s", error.text);
}

/* Promised to one use of memory. */
static uint64_t bytes_of(const char *use)
{
        struct sl_memory_stats memory = {.bytes = 0};
        struct sl_stats_view *view;
        uint64_t bytes = 0;

        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MEMORY); i++)
                if (sl_stats_read_memory(view, i, &memory) == 0 && strcmp(memory.name, use) == 0)
                        bytes = memory.bytes;
        sl_stats_close(view);
        return bytes;
}

static void expect_bytes(const char *use, uint64_t wanted)
{
        WORLD_AWAIT(bytes_of(use) == wanted);
        cr_expect_eq(bytes_of(use), wanted, "%s: %llu bytes, wanted %llu", use, (unsigned long long)bytes_of(use),
                (unsigned long long)wanted);
}

#define COPIES 8u /* as find_decision() has it */

static const char *name_of(uint32_t copy)
{
        static char name[16];

        snprintf(name, sizeof(name), "copy%u", copy);
        return name;
}

static void unload(const char *name)
{
        struct starling_error error = {""};

        cr_assert_eq(starling_admin_unload(admin, name, &error), 0, "%s", error.text);
}

/* A client that asks all copies at once, each for another image. */
struct crowd {
        struct starling_client *client;
        struct starling_queue *queue;
        struct digits_data data;
        struct starling_model *models[COPIES];
        struct digits_job jobs[COPIES];
        uint32_t rounds;
        uint32_t idle;           /* copies that are not asked, as bits */
        bool is_strange[COPIES]; /* what it is sent is no image, and what it answers is not looked at */
};

static void crowd_init(struct crowd *crowd)
{
        crowd->client = world_connect(&world, STARLING_ROLE_CLIENT);
        crowd->rounds = crowd->idle = 0;
        memset(crowd->is_strange, 0, sizeof(crowd->is_strange));
        cr_assert(digits_read(&crowd->data, "mlp"));
        cr_assert_eq(starling_queue_open(crowd->client, &crowd->queue, NULL), 0);
        for (uint32_t i = 0; i < COPIES; i++) {
                cr_assert_eq(starling_model_open(crowd->client, name_of(i), &crowd->models[i], NULL), 0);
                cr_assert_eq(digits_job_alloc(&crowd->jobs[i], &crowd->data, crowd->client), 0);
        }
}

static void crowd_deinit(struct crowd *crowd)
{
        digits_release(&crowd->data);
        starling_close(crowd->client);
}

/* All answers are right, but for those that are not looked at. */
static void crowd_ask(struct crowd *crowd)
{
        struct starling_request requests[COPIES];
        struct starling_completion completions[COPIES];
        uint32_t n_asked = 0;
        char text[128];

        for (uint32_t i = 0; i < COPIES; i++)
                if (!(crowd->idle >> i & 1))
                        requests[n_asked++] =
                                digits_ask(&crowd->jobs[i], crowd->models[i], (crowd->rounds * COPIES + i) % DIGITS_N, 1);
        cr_assert_eq(starling_submit_many(crowd->queue, requests, n_asked, NULL), (int)n_asked);
        for (uint32_t n = 0; n < n_asked;) {
                int r = starling_wait(crowd->queue, completions, COPIES, STARLING_FOREVER);

                cr_assert_gt(r, 0);
                for (int i = 0; i < r; i++, n++)
                        cr_assert_eq(completions[i].status, 0);
        }
        for (uint32_t i = 0; i < COPIES; i++)
                cr_assert(crowd->idle >> i & 1 || crowd->is_strange[i] ||
                                  digits_right(&crowd->jobs[i], &crowd->data, text, sizeof(text)),
                        "copy%u, round %u: %s", i, crowd->rounds, text);
        crowd->rounds++;
}

/* Batches that merged plans have computed. */
static uint64_t count_merged(void)
{
        struct sl_stats_view *view;
        uint64_t merged = 0;

        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_WORKERS); i++) {
                struct sl_worker_stats worker;

                if (sl_stats_read_worker(view, i, &worker) == 0)
                        merged += sl_counter_read(&worker.merged);
        }
        sl_stats_close(view);
        return merged;
}

/* What was said last of all copies; those that came first may have been merged, or not, before. NULL: nothing yet. */
static const char *find_decision(void)
{
        const char *last = NULL;

        for (const char *at = world_log(&world); (at = strstr(at, "event=bundle-")); at++) {
                const char *all = strstr(at, " models=8 "), *end = strchr(at, '\n');
                bool is_decision = strncmp(at, "event=bundle-merged ", 20) == 0 || strncmp(at, "event=bundle-not-merged ", 24) == 0;

                if (is_decision && all && end && all < end)
                        last = at;
        }
        return last;
}

static bool is_refused(const char *decision)
{
        return strncmp(decision, "event=bundle-not-merged ", 24) == 0;
}

static void tell_not_merged(void)
{
        const char *line = find_decision();

        fprintf(stderr, "[SKIP] not merged here: %.*s\n", (int)strcspn(line, "\n"), line);
}

/* Until the runtime has measured whether it pays. */
static bool ask_until_decided(struct crowd *crowd)
{
        while (!find_decision())
                crowd_ask(crowd);
        return !is_refused(find_decision());
}

/* Until they compute together; false: that does not pay here, or could not be measured this time. */
static bool ask_until_merged(struct crowd *crowd)
{
        uint64_t before = count_merged();

        for (uint32_t i = 0; i < 20000 && count_merged() <= before; i++) {
                if (!ask_until_decided(crowd)) {
                        tell_not_merged();
                        return false;
                }
                crowd_ask(crowd);
        }
        cr_assert_gt(count_merged(), before, "%s", world_log(&world));
        return true;
}

static void start_with_copies(struct crowd *crowd)
{
        for (uint32_t i = 0; i < COPIES; i++)
                world_copy_model(&world, "mlp", name_of(i), YAML);
        start();
        crowd_init(crowd);
}

/* Of the perceptron all but the biases are products, which merged plans read where the members have them. */
Test(merged, copies_have_their_weights_once_and_give_back_what_was_theirs_together)
{
        uint64_t others, singles = 0, merged;
        struct crowd crowd;

        start();
        others = bytes_of("plans");
        for (uint32_t i = 0; i < COPIES; i++) {
                world_copy_model(&world, "mlp", name_of(i), YAML);
                load(name_of(i));
                singles = singles ? singles : COPIES * (bytes_of("plans") - others);
        }
        crowd_init(&crowd);
        if (ask_until_merged(&crowd)) {
                merged = bytes_of("plans") - others;
                cr_expect_gt(merged, singles);
                cr_expect_leq(4 * merged, 5 * singles, "with its tables, single %llu bytes, merged as well %llu",
                        (unsigned long long)singles, (unsigned long long)merged);
                unload(name_of(0));
                singles -= singles / COPIES;
                expect_bytes("plans", others + singles);
        }
        crowd_deinit(&crowd);
}

Test(merged, they_answer_as_before_and_so_do_those_that_are_left)
{
        struct crowd crowd;

        start_with_copies(&crowd);
        (void)ask_until_merged(&crowd);
        for (crowd.idle = 0xff; crowd.idle-- > 0;) /* every set of them */
                crowd_ask(&crowd);
        crowd.idle = 0;
        world_add_model_config(&world, name_of(1), YAML "instances: 2\n");
        cr_assert_eq(starling_admin_reload(admin, name_of(1), NULL), 0);
        for (uint32_t i = 0; i < 50; i++)
                crowd_ask(&crowd);
        crowd_deinit(&crowd);
}

/* As if somebody had written the same again. */
static void touch(const char *name)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s/1/model.onnx", world.repository, name);
        cr_assert_eq(utimensat(AT_FDCWD, path, NULL, 0), 0);
}

/* Nobody has loaded it: what is merged is what is served. */
Test(merged, a_file_that_was_replaced_is_merged_when_it_has_been_loaded)
{
        struct crowd crowd;

        start_with_copies(&crowd);
        (void)ask_until_decided(&crowd);
        touch(name_of(1));
        touch(name_of(0));
        cr_assert_eq(starling_admin_reload(admin, name_of(0), NULL), 0);
        world_expect_log(&world, "event=model-not-merged model=copy1 cause=\"its file has changed since it was loaded");
        for (uint32_t i = 0; i < 50; i++)
                crowd_ask(&crowd);
        crowd_deinit(&crowd);
}

/* SL_MERGE_ROUNDS=1000 for the long run: each takes a block apart and makes it again. */
Test(merged, again_and_again_under_load_nothing_is_lost_or_kept, .timeout = 3600)
{
        uint32_t rounds = world_rounds("SL_MERGE_ROUNDS", 20);
        uint64_t begun_ns = starling_clock_ns(), plans, workers;
        struct footprint before;
        struct crowd crowd;

        start();
        before = world_footprint(&world);
        plans = bytes_of("plans");
        workers = bytes_of("workers");
        for (uint32_t i = 0; i < COPIES; i++) {
                world_copy_model(&world, "mlp", name_of(i), YAML);
                load(name_of(i));
        }
        crowd_init(&crowd);
        for (uint32_t round = 0; round < rounds && world_has_time("SL_MERGE_ROUNDS", round, begun_ns); round++) {
                if (!ask_until_merged(&crowd))
                        break;
                touch(name_of(round % COPIES));
                cr_assert_eq(starling_admin_reload(admin, name_of(round % COPIES), NULL), 0);
                crowd_ask(&crowd);
        }
        crowd_deinit(&crowd);
        for (uint32_t i = 0; i < COPIES; i++)
                unload(name_of(i));
        expect_bytes("plans", plans);
        expect_bytes("workers", workers);
        expect_bytes("compilers", 0);
        world_expect_footprint(&world, &before);
}

/* ---- a member that is hostile ---- */

Test(merged, what_one_is_sent_changes_no_answer_of_another)
{
        static const float numbers[] = {NAN, INFINITY, -INFINITY, 3e38f, 1e-42f};
        struct crowd crowd;

        start_with_copies(&crowd);
        if (ask_until_merged(&crowd)) {
                uint64_t before = count_merged();

                for (uint32_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
                        struct digits_job *job = &crowd.jobs[k % COPIES];

                        crowd.is_strange[k % COPIES] = true;
                        for (uint32_t i = 0; i < DIGITS_N * DIGITS_INPUTS; i++)
                                ((float *)job->input.data)[i] = numbers[k];
                        for (uint32_t i = 0; i < 20; i++)
                                crowd_ask(&crowd);
                }
                cr_expect_gt(count_merged(), before, "they were computed together");
        }
        crowd_deinit(&crowd);
}

/* Nothing, no model, and the first half of one. */
Test(merged, a_broken_file_at_a_reload_changes_no_answer_of_anybody)
{
        static uint8_t half[4096];
        struct starling_error error = {""};
        struct crowd crowd;
        char path[512];
        FILE *from;

        start_with_copies(&crowd);
        (void)ask_until_merged(&crowd);
        snprintf(path, sizeof(path), "%s/%s/1/model.onnx", world.repository, name_of(7));
        from = fopen(path, "r");
        cr_assert_eq(fread(half, 1, sizeof(half), from), sizeof(half));
        fclose(from);
        for (uint32_t k = 0; k < 3; k++) {
                world_add_model(&world, name_of(k), k == 2 ? (const void *)half : "no model", k == 2 ? sizeof(half) : 8 * k);
                cr_expect_lt(starling_admin_reload(admin, name_of(k), &error), 0, "case %u", k);
                for (uint32_t i = 0; i < 20; i++)
                        crowd_ask(&crowd);
        }
        crowd_deinit(&crowd);
}

#define INDICES 4
#define WIDTH   64

/* Rows of a table by indices that come with the request, and two products. */
static void add_table(uint32_t copy)
{
        struct builder *b = builder_new(13);
        char table[16], first[16], second[16], names[64];
        const uint8_t *file;
        size_t bytes;

        snprintf(table, sizeof(table), "t%u", copy);
        snprintf(first, sizeof(first), "w%u", copy);
        snprintf(second, sizeof(second), "v%u", copy);
        builder_input(b, "i", SL_DTYPE_I64, DIMS(-1, INDICES));
        builder_random(b, table, DIMS(16, WIDTH / INDICES));
        builder_random(b, first, DIMS(WIDTH, WIDTH));
        builder_random(b, second, DIMS(WIDTH, WIDTH));
        snprintf(names, sizeof(names), "%s,i", table);
        builder_node(b, "Gather", names, "rows");
        builder_node(b, "Flatten", "rows", "x");
        snprintf(names, sizeof(names), "x,%s", first);
        builder_node(b, "MatMul", names, "y");
        builder_node(b, "Relu", "y", "z");
        snprintf(names, sizeof(names), "z,%s", second);
        builder_node(b, "MatMul", names, "out");
        builder_output(b, "out");
        file = builder_pack(b, &bytes);
        world_add_model(&world, name_of(copy), file, bytes);
        world_add_model_config(&world, name_of(copy), YAML);
        builder_free(b);
}

struct readers {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *models[COPIES];
        struct starling_tensor indices[COPIES], out[COPIES];
        float wanted[COPIES][WIDTH]; /* asked alone */
};

static struct starling_request request_of(struct readers *r, uint32_t copy)
{
        return (struct starling_request){.model = r->models[copy],
                .inputs = &r->indices[copy],
                .n_inputs = 1,
                .outputs = &r->out[copy],
                .n_outputs = 1,
                .user_data = copy};
}

static void readers_init(struct readers *r)
{
        struct starling_completion done;

        r->client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(r->client, &r->queue, NULL), 0);
        for (uint32_t i = 0; i < COPIES; i++) {
                struct starling_request request;

                cr_assert_eq(starling_model_open(r->client, name_of(i), &r->models[i], NULL), 0);
                cr_assert_eq(starling_tensor_alloc(r->client, STARLING_I64, 2, (uint32_t[]){1, INDICES}, &r->indices[i]), 0);
                cr_assert_eq(starling_tensor_alloc(r->client, STARLING_F32, 2, (uint32_t[]){1, WIDTH}, &r->out[i]), 0);
                for (uint32_t k = 0; k < INDICES; k++)
                        ((int64_t *)r->indices[i].data)[k] = (i * 5 + k * 3) % 16;
                request = request_of(r, i);
                cr_assert_eq(starling_infer(r->queue, &request, &done), 0);
                memcpy(r->wanted[i], r->out[i].data, sizeof(r->wanted[i]));
        }
}

/* All at once; copy @hostile wants a row that is not there and is refused, the others get theirs. COPIES: nobody does. */
static void readers_ask(struct readers *r, uint32_t hostile)
{
        struct starling_request requests[COPIES];
        struct starling_completion done[COPIES];

        for (uint32_t i = 0; i < COPIES; i++) {
                ((int64_t *)r->indices[i].data)[1] = i == hostile ? 16 : (i * 5 + 3) % 16;
                memset(r->out[i].data, 0xff, sizeof(r->wanted[i]));
                requests[i] = request_of(r, i);
        }
        cr_assert_eq(starling_submit_many(r->queue, requests, COPIES, NULL), (int)COPIES);
        for (uint32_t n = 0; n < COPIES;) {
                int got = starling_wait(r->queue, done, COPIES, STARLING_FOREVER);

                cr_assert_gt(got, 0);
                for (int i = 0; i < got; i++, n++)
                        cr_expect_eq(done[i].status < 0, done[i].user_data == hostile, "copy%u: %d", (unsigned)done[i].user_data,
                                done[i].status);
        }
        for (uint32_t i = 0; i < COPIES; i++)
                for (uint32_t k = 0; k < WIDTH && i != hostile; k++)
                        cr_assert_float_eq(((const float *)r->out[i].data)[k], r->wanted[i][k], 1e-4, "copy%u", i);
}

Test(merged, an_index_out_of_bounds_ends_its_own_request_alone)
{
        static struct readers readers;

        for (uint32_t i = 0; i < COPIES; i++)
                add_table(i);
        start();
        readers_init(&readers);
        while (!find_decision())
                readers_ask(&readers, COPIES);
        if (!is_refused(find_decision())) {
                for (uint32_t i = 0; i < 20000 && !count_merged(); i++)
                        readers_ask(&readers, COPIES);
                cr_expect_gt(count_merged(), 0, "%s", world_log(&world));
        } else {
                tell_not_merged();
        }
        for (uint32_t i = 0; i < 100; i++)
                readers_ask(&readers, i % COPIES);
        starling_close(readers.client);
}
