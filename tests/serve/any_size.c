/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of any size: requests of sizes that nobody has asked for before are computed at once, those of one size together. A
 * runtime in this process.
 */
#include "base/clock.h"
#include "builder.h"
#include "gate.h"
#include "open_scene.h"
#include "stats.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void begin_any(struct scene *s, void (*write_it)(struct scene *))
{
        scene_begin(s, write_it);
        s->service.specs[1].lowering.any_size = SL_ANY_SIZE_AUTO;
        s->service.specs[1].shapes_max = 1;
}

static void start_any(struct scene *s)
{
        scene_start(s);
        service_expect_log(&s->service, "model-ready model=\"open[any]\"");
}

Test(any_size, of_any_number_are_computed_by_one_plan, .timeout = 60)
{
        struct scene s;

        begin_any(&s, write_doubling_model);
        start_any(&s);
        for (uint32_t size = 0; size <= 16; size++)
                for (uint32_t samples = 0; samples <= 8; samples += 4)
                        expect_scaled(&s, samples, size, 2);
        cr_expect_eq(scene_count_logged(&s, "step step=load model=\"open["), 1u, "%s", s.service.log);
        scene_end(&s);
}

Test(any_size, of_any_number_are_in_flight_at_once, .timeout = 60)
{
        struct starling_tensor inputs[16], outputs[16];
        struct starling_completion done[16];
        struct scene s;

        begin_any(&s, write_doubling_model);
        start_any(&s);
        for (uint32_t i = 0; i < 16; i++) {
                cr_assert_eq(starling_tensor_alloc(s.client, STARLING_F32, 3, (uint32_t[]){1, i + 1, DEPTH}, &inputs[i]), 0);
                cr_assert_eq(starling_tensor_alloc(s.client, STARLING_F32, 3, (uint32_t[]){1, i + 1, DEPTH}, &outputs[i]), 0);
                for (uint32_t k = 0; k < (i + 1) * DEPTH; k++)
                        ((float *)inputs[i].data)[k] = (float)(i * 100 + k);
                const struct starling_request wanted = {.model = s.open,
                        .inputs = &inputs[i],
                        .n_inputs = 1,
                        .outputs = &outputs[i],
                        .n_outputs = 1,
                        .user_data = i};

                cr_assert_eq(starling_submit(s.queue, &wanted, NULL), 0);
        }
        for (int n = 0; n < 16;) {
                int more = starling_wait(s.queue, done, 16, SERVICE_LIMIT_NS);

                cr_assert_gt(more, 0, "%s", s.service.log);
                for (int i = 0; i < more; i++) {
                        uint32_t at = (uint32_t)done[i].user_data;

                        cr_assert_eq(done[i].status, 0, "%s", s.service.log);
                        cr_assert_eq(done[i].outputs[0].dims[1], at + 1);
                        for (uint32_t k = 0; k < (at + 1) * DEPTH; k++)
                                cr_assert_eq(((float *)outputs[at].data)[k], 2 * (float)(at * 100 + k));
                }
                n += more;
        }
        scene_end(&s);
}

/* Its own plan says why not, and what it has done before. */
Test(any_size, that_the_plan_of_any_size_cannot_have_are_refused_as_ever, .timeout = 60)
{
        struct starling_completion done;
        struct scene s;

        begin_any(&s, write_model);
        start_any(&s);
        expect_sum(&s, 3, 4);
        cr_assert_eq(scene_infer(&s, 1, 7, &done), -EINVAL);
        service_expect_log(&s.service, "open[7]");
        cr_assert_eq(scene_infer(&s, 1, 7, &done), -EINVAL);
        expect_sum(&s, 2, 1);
        s.output.bytes = 64;
        cr_assert_eq(scene_infer(&s, 2, 4, &done), -EMSGSIZE);
        cr_assert_eq(done.bytes_needed, 2 * 4 * 3 * sizeof(float));
        scene_end(&s);
}

Test(any_size, that_are_too_much_for_the_plan_of_any_size_get_one_of_their_own, .timeout = 60)
{
        struct scene s;

        begin_any(&s, write_doubling_model);
        s.service.specs[1].lowering.dynamic_bytes_max = 512;
        start_any(&s);
        expect_scaled(&s, 1, 3, 2);
        cr_expect_eq(scene_count_logged(&s, "step step=load model=\"open["), 1u, "%s", s.service.log);
        expect_scaled(&s, 8, 16, 2);
        service_expect_log(&s.service, "model-ready model=\"open[16]\"");
        expect_scaled(&s, 8, 16, 2);
        expect_scaled(&s, 1, 3, 2);
        cr_expect_eq(scene_count_logged(&s, "step step=load model=\"open["), 2u, "%s", s.service.log);
        scene_end(&s);
}

Test(any_size, that_come_again_and_again_get_a_plan_of_their_own, .timeout = 60)
{
        struct scene s;

        begin_any(&s, write_doubling_model);
        start_any(&s);
        for (uint32_t i = 0; i < 40; i++)
                expect_scaled(&s, 1 + i % 8, 5, 2);
        service_expect_log(&s.service, "model-ready model=\"open[5]\"");
        for (uint32_t size = 1; size <= 16; size++)
                expect_scaled(&s, 2, size, 2);
        cr_expect_eq(scene_count_logged(&s, "step step=load model=\"open["), 2u, "%s", s.service.log);
        scene_end(&s);
}

static uint32_t workers_wanted(const struct sl_stats_view *view, const char *name)
{
        struct sl_model_stats shown;

        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MODELS); i++)
                if (sl_stats_read_model(view, i, &shown) == 0 && strcmp(shown.name, name) == 0)
                        return shown.workers_wanted;
        return 0;
}

/* Sooner or later, as the log goes before the page. */
static void expect_workers(struct scene *s, uint32_t n)
{
        struct sl_stats_view *view;

        cr_assert_eq(sl_stats_open(s->service.options.name, NULL, &view, NULL), 0);
        SERVICE_AWAIT(&s->service, workers_wanted(view, "open[any]") == n);
        sl_stats_close(view);
}

static void configure_workers(struct scene *s, uint32_t n, bool are_free)
{
        pthread_mutex_lock(&s->service.specs_lock);
        s->service.specs[1].workers.n = n;
        s->service.specs[1].workers_free = are_free;
        pthread_mutex_unlock(&s->service.specs_lock);
        service_reload(&s->service);
}

/* All sizes of a model share these workers; where the configuration says how many there are, that counts. */
Test(any_size, have_a_worker_for_each_core_unless_somebody_says_how_many, .timeout = 60)
{
        uint32_t cores;
        cpu_set_t mine;
        struct scene s;

        cr_assert_eq(sched_getaffinity(0, sizeof(mine), &mine), 0);
        cores = (uint32_t)CPU_COUNT(&mine) < SL_WORKERS_MAX ? (uint32_t)CPU_COUNT(&mine) : SL_WORKERS_MAX;
        begin_any(&s, write_doubling_model);
        s.service.specs[1].workers_free = true;
        start_any(&s);
        expect_workers(&s, cores);
        expect_scaled(&s, 2, 7, 2);
        configure_workers(&s, 1, false);
        expect_workers(&s, 1);
        expect_scaled(&s, 2, 7, 2);
        configure_workers(&s, 3, false);
        expect_workers(&s, 3);
        expect_scaled(&s, 2, 7, 2);
        scene_end(&s);
}

/* The model that takes its place has a plan of any size of its own. */
Test(any_size, of_any_number_follow_a_model_that_is_replaced, .timeout = 60)
{
        struct scene s;

        begin_any(&s, write_doubling_model);
        start_any(&s);
        expect_scaled(&s, 2, 7, 2);
        write_scaling_model(&s, 3);
        service_touch(&s.service);
        service_reload(&s.service);
        service_expect_log(&s.service, "model-replaced model=open");
        for (uint32_t size = 1; size <= 16; size++)
                expect_scaled(&s, 2, size, 3);
        scene_end(&s);
}

/* A sample has the same bits whoever asks beside it: a plan that computes all of a request at once is none for that. */
Test(any_size, have_no_plan_of_any_size_where_each_sample_is_computed_alone, .timeout = 60)
{
        struct scene s;

        begin_any(&s, write_doubling_model);
        s.service.specs[1].lowering.batch_invariant = true;
        scene_start(&s);
        expect_scaled(&s, 3, 5, 2);
        service_expect_log(&s.service, "model-ready model=\"open[5]\"");
        cr_expect(!scene_has_logged(&s, "open[any]"), "%s", s.service.log);
        scene_end(&s);
}

/* ---- in batches ---- */

#define CLIENTS  2u
#define EACH     12u /* requests of a client that wait at once */
#define ROWS_MAX 3u

/* One of those that wait. */
struct asked {
        struct starling_tensor input, output;
        uint32_t rows, size;
        uint64_t id;
};

/* y = the rows of a table that x [N, M] names. */
static void write_lookup_model(struct scene *s)
{
        struct builder *b = builder_new(13);
        const uint8_t *bytes;
        size_t n_bytes;

        builder_input(b, "x", SL_DTYPE_I64, DIMS(-1, -2));
        builder_floats(b, "table", DIMS(4, 1), (float[]){10, 20, 30, 40});
        builder_node(b, "Gather", "table,x", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2, 1));
        bytes = builder_pack(b, &n_bytes);
        scene_write_file(s->model, bytes, n_bytes, 0600);
        builder_free(b);
}

/* Workers compute all of it, in slices that nothing exceeds. */
static void begin_batches(struct scene *s, void (*write_it)(struct scene *))
{
        begin_any(s, write_it);
        s->service.options.inline_ns = 0;
        s->service.specs[1].slice_ns = 100 * SL_NS_PER_SECOND;
}

static uint64_t batches_of(struct scene *s, const char *executor)
{
        struct sl_worker_stats worker;
        struct sl_stats_view *stats;
        uint64_t batches = 0;

        cr_assert_eq(sl_stats_open(s->service.options.name, NULL, &stats, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(stats, SL_STATS_WORKERS); i++)
                if (sl_stats_read_worker(stats, i, &worker) == 0 && !strcmp(worker.executor, executor) &&
                        !strcmp(worker.model, "open[any]"))
                        batches += sl_counter_read(&worker.batches);
        sl_stats_close(stats);
        return batches;
}

/* What is gathered follows from what jobs have taken: until some are known each is one request. */
static void learn(struct scene *s)
{
        for (uint32_t size = 1; size <= 10; size++)
                expect_scaled(s, 2, size, 2);
}

static void submit(struct starling_queue *queue, struct starling_model *model, struct asked *asked)
{
        const struct starling_request request = {.model = model,
                .inputs = &asked->input,
                .n_inputs = 1,
                .outputs = &asked->output,
                .n_outputs = 1,
                .user_data = (uint64_t)(uintptr_t)asked};

        cr_assert_eq(starling_submit(queue, &request, &asked->id), 0);
}

static void make_asked(struct starling_client *client, uint32_t rows, uint32_t size, uint32_t seed, struct asked *ret_asked)
{
        const uint32_t dims[] = {rows, size, DEPTH};

        *ret_asked = (struct asked){.rows = rows, .size = size};
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 3, dims, &ret_asked->input), 0);
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 3, dims, &ret_asked->output), 0);
        for (uint32_t i = 0; i < rows * size * DEPTH; i++)
                ((float *)ret_asked->input.data)[i] = (float)(seed * 1000 + i);
}

static void expect_doubled(const struct asked *asked, const struct starling_completion *done)
{
        cr_assert_eq(done->status, 0, "status %d", done->status);
        cr_assert_eq(done->outputs[0].dims[0], asked->rows);
        cr_assert_eq(done->outputs[0].dims[1], asked->size);
        for (uint32_t i = 0; i < asked->rows * asked->size * DEPTH; i++)
                cr_assert_eq(((float *)asked->output.data)[i], 2 * ((float *)asked->input.data)[i]);
}

/* What was submitted there before waits in the runtime now. */
static void expect_taken(struct starling_queue *queue)
{
        cr_assert_eq(starling_infer(queue, &(struct starling_request){.flags = STARLING_NOOP}, NULL), 0);
}

static struct starling_completion next_done(struct starling_queue *queue)
{
        struct starling_completion done;

        cr_assert_eq(starling_wait(queue, &done, 1, SERVICE_LIMIT_NS), 1);
        return done;
}

static void connect_clients(
        struct scene *s, struct starling_client **clients, struct starling_queue **queues, struct starling_model **models)
{
        for (uint32_t c = 0; c < CLIENTS; c++) {
                clients[c] = service_connect(&s->service, STARLING_ROLE_CLIENT);
                cr_assert_eq(starling_queue_open(clients[c], &queues[c], NULL), 0);
                cr_assert_eq(starling_model_open(clients[c], "open", &models[c], NULL), 0);
        }
}

Test(any_size, of_one_kind_are_computed_together_whoever_asks, .timeout = 60)
{
        struct starling_client *clients[CLIENTS];
        struct starling_queue *queues[CLIENTS];
        struct starling_model *models[CLIENTS];
        struct asked asked[CLIENTS][EACH], first;
        uint64_t before;
        struct scene s;

        begin_batches(&s, write_doubling_model);
        start_any(&s);
        learn(&s);
        before = batches_of(&s, "thread");
        gate_shut();
        make_asked(s.client, 1, 16, 0, &first);
        submit(s.queue, s.open, &first);
        expect_taken(s.queue);
        connect_clients(&s, clients, queues, models);
        for (uint32_t c = 0; c < CLIENTS; c++) {
                for (uint32_t i = 0; i < EACH; i++) {
                        make_asked(clients[c], 1 + i % ROWS_MAX, i % 2 ? 5 : 9, 1 + c * EACH + i, &asked[c][i]);
                        submit(queues[c], models[c], &asked[c][i]);
                }
                expect_taken(queues[c]);
        }
        gate_open();
        for (uint32_t c = 0; c < CLIENTS; c++)
                for (uint32_t i = 0; i < EACH; i++) {
                        struct starling_completion done = next_done(queues[c]);

                        expect_doubled((struct asked *)(uintptr_t)done.user_data, &done);
                }
        (void)next_done(s.queue);
        /* The first one, one that was given ahead with what was there, and what is left of the two sizes. */
        cr_expect_leq(batches_of(&s, "thread") - before, 6u, "%llu batches of %u requests",
                (unsigned long long)(batches_of(&s, "thread") - before), 1 + CLIENTS * EACH);
        for (uint32_t c = 0; c < CLIENTS; c++)
                starling_close(clients[c]);
        scene_end(&s);
}

/* The dispatcher and workers, one by one and in batches, at sizes that are new and that come again: whoever has what. */
Test(any_size, mixed_sizes_of_several_clients_are_what_each_has_asked_for, .timeout = 60)
{
        struct starling_client *clients[CLIENTS];
        struct starling_queue *queues[CLIENTS];
        struct starling_model *models[CLIENTS];
        struct asked asked[CLIENTS][EACH];
        struct scene s;

        begin_any(&s, write_doubling_model);
        start_any(&s);
        connect_clients(&s, clients, queues, models);
        for (uint32_t c = 0; c < CLIENTS; c++)
                for (uint32_t i = 0; i < EACH; i++)
                        make_asked(clients[c], 1 + i % ROWS_MAX, 1 + (5 * i + c) % 9, 0, &asked[c][i]);
        for (uint32_t round = 0; round < 40; round++) {
                for (uint32_t i = 0; i < EACH; i++)
                        for (uint32_t c = 0; c < CLIENTS; c++) {
                                struct asked *one = &asked[c][i];

                                for (uint32_t k = 0; k < one->rows * one->size * DEPTH; k++)
                                        ((float *)one->input.data)[k] = (float)((round * CLIENTS + c) * 10000 + i * 100 + k);
                                submit(queues[c], models[c], one);
                        }
                for (uint32_t n = 0; n < CLIENTS * EACH; n++) {
                        struct starling_completion done = next_done(queues[n % CLIENTS]);

                        expect_doubled((struct asked *)(uintptr_t)done.user_data, &done);
                }
        }
        for (uint32_t c = 0; c < CLIENTS; c++)
                starling_close(clients[c]);
        scene_end(&s);
}

/* Three requests of one size behind another one. */
static void hold_three(struct scene *s, struct asked asked[4])
{
        gate_shut();
        make_asked(s->client, 1, 16, 0, &asked[3]);
        submit(s->queue, s->open, &asked[3]);
        expect_taken(s->queue);
        for (uint32_t i = 0; i < 3; i++)
                make_asked(s->client, i + 1, 7, i + 1, &asked[i]);
}

Test(any_size, one_without_room_for_its_output_is_told_so_and_the_others_have_theirs, .timeout = 60)
{
        struct asked asked[4];
        struct scene s;

        begin_batches(&s, write_doubling_model);
        start_any(&s);
        learn(&s);
        hold_three(&s, asked);
        asked[1].output.bytes = 64;
        for (uint32_t i = 0; i < 3; i++)
                submit(s.queue, s.open, &asked[i]);
        expect_taken(s.queue);
        gate_open();
        for (uint32_t i = 0; i < 4; i++) {
                struct starling_completion done = next_done(s.queue);

                if (done.id != asked[1].id) {
                        expect_doubled((struct asked *)(uintptr_t)done.user_data, &done);
                        continue;
                }
                cr_expect_eq(done.status, -EMSGSIZE);
                cr_expect_eq(done.bytes_needed, 2 * 7 * DEPTH * sizeof(float));
        }
        scene_end(&s);
}

Test(any_size, one_that_is_cancelled_ends_none_of_the_others, .timeout = 60)
{
        struct asked asked[4];
        struct scene s;

        begin_batches(&s, write_doubling_model);
        start_any(&s);
        learn(&s);
        hold_three(&s, asked);
        for (uint32_t i = 0; i < 3; i++)
                submit(s.queue, s.open, &asked[i]);
        expect_taken(s.queue);
        cr_assert_eq(starling_cancel(s.queue, asked[0].id), 0);
        expect_taken(s.queue);
        gate_open();
        for (uint32_t i = 0; i < 4; i++) {
                struct starling_completion done = next_done(s.queue);

                if (done.id == asked[0].id)
                        cr_expect_eq(done.status, -ECANCELED);
                else
                        expect_doubled((struct asked *)(uintptr_t)done.user_data, &done);
        }
        scene_end(&s);
}

static void make_lookup(struct starling_client *client, int64_t row, struct asked *ret_asked)
{
        *ret_asked = (struct asked){.rows = 1, .size = 4};
        cr_assert_eq(starling_tensor_alloc(client, STARLING_I64, 2, (uint32_t[]){1, 4}, &ret_asked->input), 0);
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 3, (uint32_t[]){1, 4, 1}, &ret_asked->output), 0);
        for (int i = 0; i < 4; i++)
                ((int64_t *)ret_asked->input.data)[i] = row;
}

Test(any_size, one_whose_index_is_out_of_range_fails_alone, .timeout = 60)
{
        struct asked warm, asked[5];
        struct scene s;

        begin_batches(&s, write_lookup_model);
        start_any(&s);
        make_lookup(s.client, 0, &warm);
        for (uint32_t i = 0; i < 10; i++) {
                submit(s.queue, s.open, &warm);
                cr_assert_eq(next_done(s.queue).status, 0, "%s", s.service.log);
        }
        gate_shut();
        submit(s.queue, s.open, &warm);
        expect_taken(s.queue);
        for (uint32_t i = 0; i < 5; i++) {
                make_lookup(s.client, i == 3 ? 4 : (int64_t)i % 3, &asked[i]);
                submit(s.queue, s.open, &asked[i]);
        }
        expect_taken(s.queue);
        gate_open();
        for (uint32_t i = 0; i < 6; i++) {
                struct starling_completion done = next_done(s.queue);
                const struct asked *of = (const struct asked *)(uintptr_t)done.user_data;

                cr_expect_eq(done.status, of == &asked[3] ? -ERANGE : 0, "status %d", done.status);
                for (int k = 0; k < 4 && of != &asked[3]; k++)
                        cr_expect_eq(((float *)of->output.data)[k], 10.0f * (float)(((int64_t *)of->input.data)[k] + 1));
        }
        scene_end(&s);
}

Test(any_size, not_of_the_policy_that_makes_no_batches, .timeout = 60)
{
        struct asked asked[4];
        uint64_t before;
        struct scene s;

        begin_batches(&s, write_doubling_model);
        s.service.specs[1].batching.policy = SL_POLICY_single;
        start_any(&s);
        learn(&s);
        before = batches_of(&s, "thread");
        hold_three(&s, asked);
        for (uint32_t i = 0; i < 3; i++)
                submit(s.queue, s.open, &asked[i]);
        expect_taken(s.queue);
        gate_open();
        for (uint32_t i = 0; i < 4; i++)
                cr_expect_eq(next_done(s.queue).status, 0);
        cr_expect_eq(batches_of(&s, "thread") - before, 4u);
        scene_end(&s);
}

/* A load times a trial, and the dispatcher its jobs: where others have had the core meanwhile it begins again. */
Test(any_size, short_ones_are_computed_by_the_dispatcher_itself, .timeout = 120)
{
        uint64_t end_ns = starling_clock_ns() + SERVICE_LIMIT_NS, n;
        struct scene s;

        do {
                begin_any(&s, write_doubling_model);
                s.service.options.inline_ns = SL_NS_PER_SECOND;
                start_any(&s);
                learn(&s);
                for (uint32_t i = 0; i < 4000 && batches_of(&s, "inline") < 10; i++)
                        expect_scaled(&s, 1 + i % 2, i % 2, 2);
                n = batches_of(&s, "inline");
                for (uint32_t size = 1; size <= 16; size++)
                        expect_scaled(&s, 2, size, 2);
                scene_end(&s);
        } while (n < 10 && starling_clock_ns() < end_ns);
        cr_expect_geq(n, 10u);
}

/* ---- weights ---- */

#define TABLE_ROWS  40000
#define TABLE_WIDTH 8

/* y [N, M, 8]: rows of a table of 1.28 MB. */
static void write_table_model(struct scene *s)
{
        struct builder *b = builder_new(13);
        float *table = malloc(TABLE_ROWS * TABLE_WIDTH * sizeof(float));
        const uint8_t *bytes;
        size_t n_bytes;

        for (uint32_t i = 0; i < TABLE_ROWS * TABLE_WIDTH; i++)
                table[i] = (float)(i % 1000);
        builder_input(b, "x", SL_DTYPE_I64, DIMS(-1, -2));
        builder_floats(b, "table", DIMS(TABLE_ROWS, TABLE_WIDTH), table);
        builder_node(b, "Gather", "table,x", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2, TABLE_WIDTH));
        bytes = builder_pack(b, &n_bytes);
        scene_write_file(s->model, bytes, n_bytes, 0600);
        builder_free(b);
        free(table);
}

static void look_up(struct scene *s, uint32_t size)
{
        struct asked asked = {.rows = 1, .size = size};

        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_I64, 2, (uint32_t[]){1, size}, &asked.input), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 3, (uint32_t[]){1, size, TABLE_WIDTH}, &asked.output), 0);
        for (uint32_t i = 0; i < size; i++)
                ((int64_t *)asked.input.data)[i] = i * 77 + size;
        submit(s->queue, s->open, &asked);
        cr_assert_eq(next_done(s->queue).status, 0, "%s", s->service.log);
        for (uint32_t i = 0; i < size * TABLE_WIDTH; i++)
                cr_assert_eq(((float *)asked.output.data)[i],
                        (float)((((i / TABLE_WIDTH) * 77 + size) * TABLE_WIDTH + i % TABLE_WIDTH) % 1000));
        cr_assert_eq(starling_free(s->client, asked.input.data), 0);
        cr_assert_eq(starling_free(s->client, asked.output.data), 0);
}

static uint64_t plan_bytes(struct scene *s)
{
        struct sl_stats_view *stats;
        struct sl_memory_stats memory;
        uint64_t bytes = 0;

        cr_assert_eq(sl_stats_open(s->service.options.name, NULL, &stats, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(stats, SL_STATS_MEMORY); i++)
                if (sl_stats_read_memory(stats, i, &memory) == 0 && !strcmp(memory.name, "plans"))
                        bytes = sl_counter_read(&memory.bytes);
        sl_stats_close(stats);
        return bytes;
}

Test(any_size, and_plans_of_single_sizes_have_weights_of_one_form_once, .timeout = 60)
{
        const uint64_t table_bytes = TABLE_ROWS * TABLE_WIDTH * sizeof(float);
        struct scene s;

        begin_any(&s, write_table_model);
        start_any(&s);
        look_up(&s, 3);
        for (uint32_t i = 0; i < 40; i++)
                look_up(&s, 5);
        service_expect_log(&s.service, "model-ready model=\"open[5]\"");
        service_expect_log(&s.service, "plan-derived model=\"open[any]\"");
        service_expect_log(&s.service, "model-replaced model=\"open[any]\"");
        SERVICE_AWAIT(&s.service, (look_up(&s, 3), plan_bytes(&s) < 2 * table_bytes)); /* the plan that was replaced goes */
        for (uint32_t size = 1; size < 20; size++)
                look_up(&s, size);
        scene_end(&s);
}
