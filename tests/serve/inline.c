/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher computes itself: the same results to the bit, and its own work in the stats page. A runtime in this process.
 */
#include "builder.h"
#include "service.h"

#include "stats.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WIDTH        16u
#define REQUESTS     400u
#define ENOUGH       100u /* of them, at least */
#define REQUESTS_MAX (100 * REQUESTS)
#define LARGEST      7u
#define BARRED       1100u /* requests during which a model whose job was given up is barred, and some */
#define BURST        6u

struct scene {
        struct service service;
        char model[96];
        struct sl_stats_view *stats;
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *small;
        struct starling_tensor input, output;
};

/* y = Softmax(Tanh(x W) W) W: next to nothing, but of several steps, between which it can be given up. */
static void write_model(const char *path)
{
        struct builder *b = builder_new(13);
        const uint8_t *bytes;
        size_t n_bytes;
        FILE *file;

        float w[WIDTH * WIDTH];

        for (uint32_t i = 0; i < WIDTH * WIDTH; i++)
                w[i] = (float)(i * 7 % 13) / 13 - 0.5f;
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, WIDTH));
        builder_floats(b, "w", DIMS(WIDTH, WIDTH), w);
        builder_node(b, "MatMul", "x,w", "xw");
        builder_node(b, "Tanh", "xw", "t");
        builder_node(b, "MatMul", "t,w", "tw");
        builder_node(b, "Softmax", "tw", "s");
        builder_node(b, "MatMul", "s,w", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, WIDTH));
        bytes = builder_pack(b, &n_bytes);
        file = fopen(path, "wb");
        cr_assert(file && fwrite(bytes, 1, n_bytes, file) == n_bytes);
        fclose(file);
        builder_free(b);
}

/* @cores: 0: as many as there are. @bound_ns: after which a job is given up; 0: as ever. */
static void begin_bound(struct scene *s, uint64_t inline_ns, uint32_t cores, uint64_t bound_ns)
{
        memset(s, 0, sizeof(*s));
        service_init(&s->service);
        s->service.options.inline_bound_ns = bound_ns;
        s->service.options.inline_ns = inline_ns;
        s->service.options.cores = cores;
        snprintf(s->model, sizeof(s->model), "%s/model.onnx", s->service.directory);
        write_model(s->model);
        s->service.specs[0].name = "small";
        s->service.specs[0].path = s->model;
        s->service.n_specs = 1;
        service_start(&s->service);
        s->client = service_connect(&s->service, STARLING_ROLE_CLIENT);
        cr_assert_eq(sl_stats_open(s->service.options.name, NULL, &s->stats, NULL), 0);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
        cr_assert_eq(starling_model_open(s->client, "small", &s->small, NULL), 0, "%s", s->service.log);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){LARGEST, WIDTH}, &s->input), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){LARGEST, WIDTH}, &s->output), 0);
}

static void begin(struct scene *s, uint64_t inline_ns, uint32_t cores)
{
        begin_bound(s, inline_ns, cores, 0);
}

static void end(struct scene *s)
{
        starling_close(s->client);
        sl_stats_close(s->stats);
        unlink(s->model);
        service_stop(&s->service);
}

static void infer(struct scene *s, uint32_t number, float *ret_output)
{
        uint32_t samples = 1 + number % LARGEST;
        struct starling_request request = {
                .model = s->small, .inputs = &s->input, .n_inputs = 1, .outputs = &s->output, .n_outputs = 1};
        struct starling_completion completion;
        float *x = s->input.data;

        s->input.dims[0] = s->output.dims[0] = samples;
        s->input.bytes = s->output.bytes = (uint64_t)samples * WIDTH * sizeof(float);
        for (uint32_t i = 0; i < samples * WIDTH; i++)
                x[i] = (float)((number + i) % 29) / 7 - 2;
        cr_assert_eq(starling_infer(s->queue, &request, &completion), 0, "%s", starling_queue_error(s->queue));
        memcpy(ret_output, s->output.data, s->output.bytes);
}

/* Batches that executors of this kind have computed. */
static uint64_t batches_of(const struct scene *s, const char *executor)
{
        struct sl_worker_stats worker;
        uint64_t batches = 0;

        for (uint32_t i = 0; i < sl_stats_count(s->stats, SL_STATS_WORKERS); i++)
                if (sl_stats_read_worker(s->stats, i, &worker) == 0 && !strcmp(worker.executor, executor))
                        batches += sl_counter_read(&worker.batches);
        return batches;
}

static void infer_all(struct scene *s, float (*ret_outputs)[LARGEST * WIDTH])
{
        memset(ret_outputs, 0, REQUESTS * sizeof(*ret_outputs));
        for (uint32_t i = 0; i < REQUESTS; i++)
                infer(s, i, ret_outputs[i]);
}

/*
 * However slow this build is: the limit is as far away as need be. On a busy machine the first ones may be workers', so it goes on
 * until enough were the dispatcher's own.
 */
Test(inline_requests, have_the_bits_that_a_worker_makes, .timeout = 60)
{
        static float workers[REQUESTS][LARGEST * WIDTH], own[LARGEST * WIDTH];
        struct scene s;

        begin(&s, 0, 0);
        infer_all(&s, workers);
        cr_expect_eq(batches_of(&s, "inline"), 0);
        cr_expect_geq(batches_of(&s, "thread"), REQUESTS);
        end(&s);
        begin(&s, 1000000000, 0);
        for (uint32_t i = 0; i < REQUESTS || (batches_of(&s, "inline") < ENOUGH && i < REQUESTS_MAX); i++) {
                memset(own, 0, sizeof(own));
                infer(&s, i % REQUESTS, own);
                cr_assert_eq(memcmp(own, workers[i % REQUESTS], sizeof(own)), 0, "request %u", i);
        }
        cr_expect_geq(batches_of(&s, "inline"), ENOUGH);
        end(&s);
}

Test(inline_requests, are_none_of_a_model_that_takes_longer, .timeout = 60)
{
        static float outputs[REQUESTS][LARGEST * WIDTH];
        struct scene s;

        begin(&s, 1, 64);
        infer_all(&s, outputs);
        cr_expect_eq(batches_of(&s, "inline"), 0);
        end(&s);
}

/*
 * With two cores, where the client has the other one; the limit of an only request is its own. Not so where a core is free. A load
 * times a trial, and the dispatcher its jobs: where others have had the core meanwhile it begins again.
 */
Test(inline_requests, that_are_alone_are_the_dispatchers_though_they_take_longer, .timeout = 60)
{
        uint64_t end_ns = starling_clock_ns() + SERVICE_LIMIT_NS, n;
        float output[LARGEST * WIDTH];
        struct scene s;

        do {
                begin(&s, 1, 2);
                for (uint32_t i = 0; i < 10 * REQUESTS && batches_of(&s, "inline") < ENOUGH; i++)
                        infer(&s, 0, output);
                n = batches_of(&s, "inline");
                end(&s);
        } while (n < ENOUGH && starling_clock_ns() < end_ns);
        cr_expect_geq(n, ENOUGH);
}

/*
 * As the test above but for the bound, after which nothing is begun: all that the dispatcher takes for itself it gives up. While
 * its model is barred nothing is, so that requests are many.
 */
Test(inline_requests, that_are_given_up_are_workers_and_complete_once_with_the_same_bits, .timeout = 60)
{
        static float workers[REQUESTS][LARGEST * WIDTH], own[LARGEST * WIDTH];
        struct starling_completion completion;
        struct scene s;

        begin(&s, 0, 0);
        infer_all(&s, workers);
        end(&s);
        begin_bound(&s, 1000000000, 0, 1);
        for (uint32_t i = 0; i < BARRED + 2 * REQUESTS; i++) {
                memset(own, 0, sizeof(own));
                infer(&s, i % REQUESTS, own);
                cr_assert_eq(memcmp(own, workers[i % REQUESTS], sizeof(own)), 0, "request %u", i);
                cr_assert_eq(starling_poll(s.queue, &completion, 1), 0, "request %u completed twice", i);
        }
        cr_expect_eq(batches_of(&s, "inline"), 0);
        cr_expect_geq(batches_of(&s, "thread"), BARRED + 2 * REQUESTS);
        end(&s);
}

/* Several at once, so that what is given up was gathered, and others wait behind it. */
Test(inline_requests, that_are_given_up_together_complete_once_each, .timeout = 60)
{
        struct starling_request requests[BURST];
        struct starling_completion done[BURST];
        struct scene s;

        begin_bound(&s, 1000000000, 0, 1);
        s.input.dims[0] = s.output.dims[0] = 1;
        for (uint64_t i = 0; i < BURST; i++)
                requests[i] = (struct starling_request){
                        .model = s.small, .inputs = &s.input, .n_inputs = 1, .outputs = &s.output, .n_outputs = 1, .user_data = i};
        for (uint32_t round = 0; round < BARRED; round++) {
                uint32_t seen = 0;

                cr_assert_eq(starling_submit_many(s.queue, requests, BURST, NULL), (int)BURST);
                for (uint32_t left = BURST; left;) {
                        int n = starling_wait(s.queue, done, BURST, STARLING_FOREVER);

                        cr_assert_gt(n, 0);
                        for (int i = 0; i < n; i++, left--) {
                                cr_assert_eq(done[i].status, 0, "%s", starling_strerror(done[i].status));
                                cr_assert_eq(seen & 1u << done[i].user_data, 0, "it completed twice");
                                seen |= 1u << done[i].user_data;
                        }
                }
        }
        cr_expect_eq(batches_of(&s, "inline"), 0);
        end(&s);
}
