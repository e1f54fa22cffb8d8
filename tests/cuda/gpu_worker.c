/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs and workers on a driver that does things late and in any order: what jobs get is what `ref` computes of their samples,
 * graphs are captured once, memory is counted and shared, and what fails says so and leaves nothing.
 */
#include "gpu_worker.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/split_mix.h"
#include "fake_backend.h"
#include "fake_driver.h"
#include "flight.h"
#include "host_region.h"
#include "network.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WIDTH   24
#define CLASSES 5
#define BATCH   8
#define SAMPLES 64 /* that there are answers of */
#define WORKERS 3
#define JOBS    4 /* of a worker at once */
#define WHOLE   UINT64_MAX

static struct network net;
static struct sl_plan *plan;
static float x[SAMPLES][WIDTH], wanted[SAMPLES][CLASSES];
static struct sl_cuda_driver driver;
static struct sl_cuda_device device;
static struct sl_gpu gpu;
static struct sl_greens greens;

static struct sl_plan *open_plan(const char *backend)
{
        struct sl_error error = {""};
        struct sl_plan *opened;
        int fd = network_plan_fd(&net, backend, BATCH);

        cr_assert_eq(sl_plan_open(fd, &opened, &error), 0, "%s", error.text);
        close(fd);
        return opened;
}

static void compute_wanted(void)
{
        struct sl_plan *exact = open_plan("ref");
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(exact, 1, &instance, NULL), 0);
        for (int i = 0; i < SAMPLES; i++) {
                const void *inputs[] = {x[i]};
                void *outputs[] = {wanted[i]};

                cr_assert_eq(sl_instance_run(instance, 1, inputs, outputs), 0);
        }
        sl_instance_free(instance);
        sl_plan_free(exact);
}

static void begin_with_pages(uint64_t seed, uint64_t limit, uint64_t page_bytes)
{
        struct fake_cuda_options options = fake_cuda_defaults();
        struct sl_error error = {""};

        options.seed = seed;
        options.granularity = page_bytes;
        fake_cuda_begin(&options, &driver);
        cr_assert_eq(sl_cuda_device_open(&driver, 0, &device, &error), 0, "%s", error.text);
        cr_assert_eq(sl_gpu_init(&gpu, &device, limit, &error), 0, "%s", error.text);
        cr_assert_eq(sl_greens_init(&greens, &device, &error), 0, "%s", error.text);
        fake_backend_use(&device);
}

static void begin(uint64_t seed, uint64_t limit)
{
        begin_with_pages(seed, limit, SL_PAGE_BYTES);
}

static void finish(void)
{
        cr_expect_eq(sl_gpu_memory_used(&gpu.memory), 0, "the book is not empty");
        sl_cuda_device_close(&device);
        cr_expect_eq(fake_cuda_held(), 0, "%u things of the device are left", fake_cuda_held());
        cr_expect_eq(fake_backend_held(), 0);
}

static void setup(void)
{
        uint32_t value;

        network_init(&net);
        value = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, WIDTH));
        value = network_node(&net, SL_OP_MATMUL, VALUES(value, network_weights(&net, DIMS(WIDTH, WIDTH))), 0, NULL);
        value = network_apply(&net, SL_OP_SIGMOID, value);
        value = network_node(&net, SL_OP_MATMUL, VALUES(value, network_weights(&net, DIMS(WIDTH, CLASSES))), 0, NULL);
        network_output(&net, value);
        network_finish(&net);
        for (int i = 0; i < SAMPLES; i++)
                for (int k = 0; k < WIDTH; k++)
                        x[i][k] = network_random(&net);
        compute_wanted();
        begin(1, 0);
        plan = open_plan("cpu");
        sl_cuda_device_close(&device);
}

static void teardown(void)
{
        sl_plan_free(plan);
        network_deinit(&net);
}

TestSuite(worker, .init = setup, .fini = teardown);

static struct sl_gpu_program *new_program(uint32_t n_slots)
{
        const struct sl_gpu_program_options options = {.gpu = &gpu, .plan = plan};
        struct sl_gpu_program *program;
        struct sl_error error = {""};

        cr_assert_eq(sl_gpu_program_new(&options, &program, &error), 0, "%s", error.text);
        cr_assert_eq(sl_gpu_program_need_pool(program, n_slots, 1 << 20, &error), 0, "%s", error.text);
        return program;
}

static struct sl_gpu_worker_options options_of(struct sl_gpu_program *program, uint32_t batch_max)
{
        return (struct sl_gpu_worker_options){
                .program = program, .greens = &greens, .batch_max = batch_max, .n_slots = JOBS, .writes_done = true};
}

static struct sl_gpu_worker *new_worker(const struct sl_gpu_worker_options *options)
{
        struct sl_gpu_worker *worker;
        struct sl_error error = {""};

        cr_assert_eq(sl_gpu_worker_new(options, &worker, &error), 0, "%s", error.text);
        return worker;
}

/* A job of a few pieces of samples that there are answers of. */
struct request {
        struct sl_gpu_job job;
        bool busy;
        uint32_t n, first[4], samples[4];
        const void *inputs[4][1];
        void *outputs[4][1];
        struct sl_gpu_piece pieces[4];
        int32_t statuses[4];
        float y[4][SAMPLES][CLASSES];
        float (*there)[SAMPLES][CLASSES]; /* the same on the device, for pieces that stay; NULL: none do */
};

static void fill_request(struct request *request, uint64_t chance)
{
        bool stays = request->there && chance >> 40 & 1;

        request->n = 1 + (uint32_t)chance % 4;
        memset(request->y, 0, sizeof(request->y));
        for (uint32_t i = 0; i < request->n; i++) {
                chance = sl_split_mix_next(&chance);
                request->samples[i] = 1 + (uint32_t)chance % 7;
                request->first[i] = (uint32_t)(chance >> 16) % (SAMPLES - 7);
                request->inputs[i][0] = x[request->first[i]];
                request->outputs[i][0] = stays ? request->there[i] : request->y[i];
                request->pieces[i] = (struct sl_gpu_piece){.inputs = request->inputs[i],
                        .outputs = request->outputs[i],
                        .reached = chance >> 62 ? true : false,
                        .stays = stays};
                stays = request->there && !stays;
        }
        request->job = (struct sl_gpu_job){
                .pieces = request->pieces, .samples = request->samples, .statuses = request->statuses, .n_pieces = request->n};
}

static void check_request(const struct request *request)
{
        cr_assert_eq(request->job.status, 0);
        for (uint32_t i = 0; i < request->n; i++)
                cr_assert_eq(request->statuses[i], 0);
        for (uint32_t i = 0; i < request->n; i++)
                for (uint32_t s = 0; s < request->samples[i]; s++)
                        cr_assert_arr_eq(request->pieces[i].stays ? request->there[i][s] : request->y[i][s],
                                wanted[request->first[i] + s], sizeof(wanted[0]), "piece %u, sample %u", i, s);
}

struct served {
        struct sl_gpu_worker *worker;
        struct request requests[JOBS];
        uint32_t n_ended;
};

/* As much as is computed at once. */
static void fill_whole_request(struct request *request)
{
        fill_request(request, 0);
        request->samples[0] = BATCH;
        request->first[0] = 0;
        request->inputs[0][0] = x[0];
        cr_assert_eq(request->job.n_pieces, 1);
}

static void give_some(struct served *served, uint64_t chance)
{
        for (uint32_t i = 0; i < JOBS; i++)
                if (!served->requests[i].busy) {
                        if (chance == WHOLE)
                                fill_whole_request(&served->requests[i]);
                        else
                                fill_request(&served->requests[i], chance);
                        cr_assert_eq(sl_gpu_worker_give(served->worker, &served->requests[i].job), 0);
                        served->requests[i].busy = true;
                        return;
                }
        cr_assert_eq(sl_gpu_worker_give(served->worker, &served->requests[0].job), -EAGAIN);
}

static void end_some(struct served *served)
{
        struct sl_gpu_job *job = sl_gpu_worker_poll(served->worker);

        for (uint32_t i = 0; job && i < JOBS; i++)
                if (&served->requests[i].job == job) {
                        check_request(&served->requests[i]);
                        served->requests[i].busy = false;
                        served->n_ended++;
                }
}

static uint32_t jobs_of(const struct served *served)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < WORKERS; i++)
                n += sl_gpu_worker_jobs(served[i].worker);
        return n;
}

/* A call that the driver refuses once, the @nth time. */
struct refusal {
        enum fake_cuda_call call;
        uint32_t nth;
};

/* Workers of several sizes over one pool; the last may be on a let. @refusal: while they are made; NULL: nothing is refused. */
static void run_traffic(uint64_t seed, bool writes_done, uint32_t n_slots, uint32_t rounds, const struct refusal *refusal)
{
        static const uint32_t batches[WORKERS] = {1, 4, 8};
        struct served served[WORKERS] = {{.n_ended = 0}};
        struct sl_gpu_program *program = new_program(n_slots);
        struct sl_green *green;
        uint64_t random = seed;
        CUdeviceptr there;
        uint32_t captures;

        cr_assert_eq(driver.mem_alloc(&there, WORKERS * JOBS * sizeof(served[0].requests[0].y)), CUDA_SUCCESS);
        for (uint32_t i = 0; i < WORKERS * JOBS; i++)
                served[i / JOBS].requests[i % JOBS].there = (float(*)[SAMPLES][CLASSES])there + 4 * i;
        cr_assert_eq(sl_green_new(&greens, 25, &green, NULL), 0);
        if (refusal)
                fake_cuda_fail(refusal->call, refusal->nth, CUDA_ERROR_INVALID_VALUE);
        for (uint32_t i = 0; i < WORKERS; i++) {
                struct sl_gpu_worker_options options = options_of(program, batches[i]);

                options.writes_done = writes_done;
                options.green = i == WORKERS - 1 ? green : NULL;
                served[i].worker = new_worker(&options);
        }
        captures = fake_cuda_calls(FAKE_CUDA_stream_begin_capture);
        cr_expect_eq(captures, 1 + 3 + 4 + (refusal != NULL), "a graph for each size, another for what is refused");
        for (uint32_t round = 0; round < rounds; round++) {
                uint64_t chance = sl_split_mix_next(&random);

                for (uint32_t i = 0; i < chance >> 60; i++)
                        fake_cuda_step();
                if (chance % 4 == 0)
                        give_some(&served[(chance >> 8) % WORKERS], chance >> 16);
                else
                        end_some(&served[(chance >> 8) % WORKERS]);
        }
        cr_expect_eq(fake_cuda_calls(FAKE_CUDA_stream_begin_capture), captures, "nothing is captured again");
        sl_green_drop(green);
        for (uint32_t i = 0; jobs_of(served); i++)
                end_some(&served[i % WORKERS]);
        for (uint32_t i = 0; i < WORKERS; i++) {
                cr_expect_gt(served[i].n_ended, rounds / 100);
                sl_gpu_worker_free(served[i].worker);
        }
        sl_gpu_program_free(program);
        driver.mem_free(there);
}

Test(worker, gives_each_job_what_ref_computes)
{
        for (uint64_t seed = 1; seed <= 6; seed++) {
                begin(seed, 0);
                run_traffic(seed, seed % 2, 16, 3000, NULL);
                finish();
        }
}

/* Then copies are no nodes of a graph: found out when it is made, not by a request. */
Test(worker, gives_each_job_what_ref_computes_where_addresses_of_a_graph_cannot_change)
{
        static const struct refusal refusals[] = {{FAKE_CUDA_graph_exec_memcpy_node_set_params, 1},
                {FAKE_CUDA_graph_exec_memcpy_node_set_params, 7}, {FAKE_CUDA_graph_exec_memcpy_node_set_params, 13},
                {FAKE_CUDA_graph_exec_memcpy_node_set_params, 25}, {FAKE_CUDA_graph_memcpy_node_get_params, 1}};

        for (uint32_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
                begin(i + 1, 0);
                run_traffic(i + 1, i % 2, 16, 1000, &refusals[i]);
                finish();
        }
}

Test(worker, is_timed_only_without_jobs_and_serves_as_before)
{
        struct served served = {.n_ended = 0};
        struct sl_gpu_worker_options options;
        struct sl_gpu_program *program;
        struct sl_error error = {""};
        uint64_t ns;

        begin(11, 0);
        program = new_program(16);
        options = options_of(program, BATCH);
        served.worker = new_worker(&options);
        cr_expect_eq(sl_gpu_worker_time(served.worker, BATCH, 3, &ns, &error), 0, "%s", error.text);
        cr_expect_eq(sl_gpu_worker_time(served.worker, BATCH + 1, 3, &ns, &error), -EINVAL);
        give_some(&served, WHOLE);
        cr_expect_eq(sl_gpu_worker_time(served.worker, BATCH, 3, &ns, &error), -EBUSY);
        while (sl_gpu_worker_jobs(served.worker))
                end_some(&served);
        cr_expect_eq(served.n_ended, 1);
        cr_expect_eq(sl_gpu_worker_time(served.worker, BATCH, 3, &ns, &error), 0, "%s", error.text);
        sl_gpu_worker_free(served.worker);
        sl_gpu_program_free(program);
        finish();
}

/* A pool with less room than the jobs need: they wait, and go on. */
Test(worker, goes_on_when_the_pool_was_full)
{
        begin(3, 0);
        run_traffic(3, false, 8, 3000, NULL);
        finish();
}

/* One that has much to do does not keep from the pool one that has little. */
Test(worker, that_found_the_pool_full_comes_next)
{
        struct served busy = {.n_ended = 0}, other = {.n_ended = 0};
        struct sl_gpu_program *program;
        struct sl_gpu_worker_options options;

        begin_with_pages(7, 0, 65536); /* without a mirror: so many slots and no more */
        program = new_program(BATCH);
        options = options_of(program, BATCH);
        busy.worker = new_worker(&options);
        other.worker = new_worker(&options);
        for (uint32_t i = 0; i < JOBS; i++)
                give_some(&busy, WHOLE);
        give_some(&other, WHOLE);
        for (uint32_t i = 0; i < 1000 && !other.n_ended; i++) {
                fake_cuda_step();
                end_some(&busy);
                if (sl_gpu_worker_jobs(busy.worker) < JOBS)
                        give_some(&busy, WHOLE);
                end_some(&other);
        }
        cr_expect_eq(other.n_ended, 1, "%u jobs of the other one have gone before", busy.n_ended);
        for (uint32_t i = 0; sl_gpu_worker_jobs(busy.worker) + sl_gpu_worker_jobs(other.worker); i++)
                end_some(i % 2 ? &busy : &other);
        sl_gpu_worker_free(busy.worker);
        sl_gpu_worker_free(other.worker);
        sl_gpu_program_free(program);
        finish();
}

static atomic_bool device_ends;

static void *be_a_device(void *context)
{
        (void)context;
        while (!atomic_load(&device_ends))
                if (!fake_cuda_step())
                        usleep(10);
        return NULL;
}

/* The device is a thread of its own: what its words say is there when the host reads it. */
Test(worker, hears_of_its_end_from_the_device)
{
        pthread_t thread;

        begin(5, 0);
        atomic_store(&device_ends, false);
        cr_assert_eq(pthread_create(&thread, NULL, be_a_device, NULL), 0);
        run_traffic(5, true, 16, 8000, NULL);
        atomic_store(&device_ends, true);
        pthread_join(thread, NULL);
        finish();
}

Test(worker, tells_a_job_that_is_lost_from_one_that_has_ended)
{
        struct sl_gpu_program *program;
        struct sl_gpu_worker_options options;
        struct sl_gpu_worker *worker;
        struct request *requests = calloc(2, sizeof(*requests));
        struct sl_error error = {""};

        begin(1, 0);
        program = new_program(16);
        options = options_of(program, BATCH);
        worker = new_worker(&options);
        fill_request(&requests[0], 1);
        fill_request(&requests[1], 2);
        cr_assert_eq(sl_gpu_worker_give(worker, &requests[0].job), 0);
        cr_assert_eq(sl_gpu_worker_lost(worker, &error), 0);
        fake_cuda_finish();
        cr_assert_eq(sl_gpu_worker_poll(worker), &requests[0].job);
        check_request(&requests[0]);
        cr_assert_eq(sl_gpu_worker_give(worker, &requests[1].job), 0);
        fake_cuda_lose(CUDA_ERROR_ILLEGAL_ADDRESS);
        while (sl_gpu_worker_jobs(worker) && !sl_gpu_worker_poll(worker))
                ;
        cr_assert_eq(requests[1].job.status, -EIO);
        cr_assert_eq(sl_gpu_worker_give(worker, &requests[0].job), -EIO);
        cr_assert_eq(sl_gpu_worker_lost(worker, &error), -EIO);
        cr_assert_not_null(strstr(error.text, "gpu:0 (Fake 0) is lost: CUDA_ERROR_OTHER"), "%s", error.text);
        fake_cuda_lose(CUDA_SUCCESS);
        sl_gpu_worker_free(worker);
        sl_gpu_program_free(program);
        finish();
        free(requests);
}

/* Each call that makes something, each time that it is made. */
Test(worker, that_cannot_be_made_leaves_nothing)
{
        static const enum fake_cuda_call calls[] = {FAKE_CUDA_mem_alloc, FAKE_CUDA_mem_get_info, FAKE_CUDA_mem_host_alloc,
                FAKE_CUDA_event_create, FAKE_CUDA_stream_create_with_priority, FAKE_CUDA_stream_begin_capture,
                FAKE_CUDA_stream_end_capture, FAKE_CUDA_graph_get_nodes, FAKE_CUDA_graph_instantiate, FAKE_CUDA_launch_kernel,
                FAKE_CUDA_memcpy_dtod_async, FAKE_CUDA_mem_host_get_device_pointer, FAKE_CUDA_memset_d8_async,
                FAKE_CUDA_stream_synchronize};
        uint32_t n_failed = 0, n_first_runs = 0;

        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                for (uint32_t nth = 1, failed = 1; failed; nth++) {
                        struct sl_gpu_program *program;
                        struct sl_gpu_worker_options options;
                        struct sl_gpu_worker *worker = NULL;
                        struct sl_error error = {""};

                        begin(1, 0);
                        program = new_program(16);
                        options = options_of(program, BATCH);
                        fake_cuda_fail(calls[i], nth, CUDA_ERROR_OUT_OF_MEMORY);
                        failed = sl_gpu_worker_new(&options, &worker, &error) < 0;
                        n_failed += failed;
                        n_first_runs += strstr(error.text, "a first run of batch") != NULL;
                        if (failed)
                                cr_assert(error.text[0] && !strchr(error.text, '\n'), "call %zu, time %u: %s", i, nth, error.text);
                        sl_gpu_worker_free(worker);
                        sl_gpu_program_free(program);
                        finish();
                }
        cr_assert_geq(n_failed, 12 + 8);
        cr_assert_eq(n_first_runs, 4, "each size runs once before it is captured");
}

/* The rule of the ensemble paper: this allocation is refused, what is there goes on, and what is smaller still fits. */
Test(worker, beyond_the_bound_is_refused_and_the_others_go_on)
{
        struct sl_gpu_program *program;
        struct sl_gpu_worker_options options;
        struct sl_gpu_worker *first, *second;
        struct request *request = calloc(1, sizeof(*request));
        struct sl_error error = {""};

        begin(1, 0);
        program = new_program(16);
        options = options_of(program, BATCH);
        first = new_worker(&options);
        gpu.memory.limit = sl_gpu_memory_used(&gpu.memory) + sl_gpu_ports_bytes(sl_plan_info(plan), BATCH, JOBS);
        cr_assert_eq(sl_gpu_worker_new(&options, &second, &error), -ENOMEM);
        cr_assert_not_null(
                strstr(error.text, "bytes for its workspaces are wanted on gpu:0 (Fake 0), 0 are free: "), "%s", error.text);
        fill_request(request, 3);
        cr_assert_eq(sl_gpu_worker_give(first, &request->job), 0);
        while (!sl_gpu_worker_poll(first))
                ;
        check_request(request);
        sl_gpu_worker_free(first);
        sl_gpu_program_free(program);
        finish();
        free(request);
}

/* Weights once for all workers. */
Test(worker, shares_the_weights_with_all_others)
{
        struct sl_gpu_worker *workers[6];
        struct sl_gpu_program *program;
        uint64_t weights;

        begin(1, 0);
        program = new_program(16);
        weights = gpu.memory.used[SL_GPU_WEIGHTS];
        cr_expect_eq(weights, sl_plan_info(plan)->weights_bytes);
        for (uint32_t i = 0; i < 6; i++) {
                struct sl_gpu_worker_options options = options_of(program, 1u << i % 4);

                workers[i] = new_worker(&options);
        }
        sl_gpu_program_free(program);
        cr_expect_eq(gpu.memory.used[SL_GPU_WEIGHTS], weights);
        for (uint32_t i = 0; i < 6; i++)
                sl_gpu_worker_free(workers[i]);
        finish();
}

/* ---- indices ---- */

#define ROWS 10

/* Rows of a table by their numbers, which a client may have wrong. */
static void build_table(void)
{
        uint32_t table, value;

        network_init(&net);
        table = network_weights(&net, DIMS(ROWS, CLASSES));
        value = network_input(&net, SL_DTYPE_I64, DIMS(SL_DIM_BATCH));
        value = network_node(&net, SL_OP_GATHER, VALUES(table, value), 0, NULL);
        network_output(&net, value);
        network_finish(&net);
        begin(1, 0);
        plan = open_plan("cpu");
        sl_cuda_device_close(&device);
}

TestSuite(findings, .init = build_table, .fini = teardown);

/* Pieces of several requests in one launch: the one with a wrong index fails, and those beside it get their rows. */
static void run_pieces(const int64_t *rows, const int32_t *expected, uint32_t batch_max)
{
        struct sl_gpu_program *program = new_program(16);
        struct sl_gpu_worker_options options = options_of(program, batch_max);
        struct sl_gpu_worker *worker = new_worker(&options);
        static const uint32_t samples[] = {2, 1, 3};
        static const uint32_t first[] = {0, 2, 3};
        float y[6][CLASSES], again[6][CLASSES];
        const void *inputs[3][1];
        void *outputs[3][1];
        struct sl_gpu_piece pieces[3];
        int32_t statuses[3];
        struct sl_gpu_job job = {.pieces = pieces, .samples = samples, .statuses = statuses, .n_pieces = 3};

        for (uint32_t round = 0; round < 2; round++) {
                for (uint32_t i = 0; i < 3; i++) {
                        inputs[i][0] = &rows[first[i]];
                        outputs[i][0] = (round ? again : y)[first[i]];
                        pieces[i] = (struct sl_gpu_piece){.inputs = inputs[i], .outputs = outputs[i], .reached = i % 2};
                }
                cr_assert_eq(sl_gpu_worker_give(worker, &job), 0);
                while (!sl_gpu_worker_poll(worker))
                        ;
                cr_assert_eq(job.status, 0);
                cr_assert_arr_eq(statuses, expected, sizeof(statuses));
        }
        for (uint32_t i = 0; i < 3; i++)
                if (expected[i] == 0)
                        cr_assert_arr_eq(y[first[i]], again[first[i]], samples[i] * sizeof(y[0]));
        sl_gpu_worker_free(worker);
        sl_gpu_program_free(program);
}

Test(findings, are_of_the_piece_that_has_them)
{
        for (uint32_t batch_max = 1; batch_max <= BATCH; batch_max *= 2) {
                begin(batch_max, 0);
                run_pieces((const int64_t[]){0, 1, 2, 3, 4, 5}, (const int32_t[]){0, 0, 0}, batch_max);
                run_pieces((const int64_t[]){0, 1, ROWS, 3, 4, 5}, (const int32_t[]){0, -ERANGE, 0}, batch_max);
                run_pieces((const int64_t[]){0, 1, 2, 3, 4, -ROWS - 1}, (const int32_t[]){0, 0, -ERANGE}, batch_max);
                run_pieces((const int64_t[]){99, 1, 2, 3, 99, 5}, (const int32_t[]){-ERANGE, 0, -ERANGE}, batch_max);
                finish();
        }
}

/* ---- memory of six workers ---- */

static uint32_t add_bottleneck(uint32_t value, int64_t from, int64_t middle, int64_t stride)
{
        uint32_t left = network_apply(&net, SL_OP_RELU, network_conv(&net, value, from, middle, 1, 1, 1));

        left = network_apply(&net, SL_OP_RELU, network_conv(&net, left, middle, middle, 3, stride, 1));
        left = network_conv(&net, left, middle, 4 * middle, 1, 1, 1);
        if (from != 4 * middle || stride != 1)
                value = network_conv(&net, value, from, 4 * middle, 1, stride, 1);
        return network_apply(&net, SL_OP_RELU, network_node(&net, SL_OP_ADD, VALUES(left, value), 0, NULL));
}

/* The blocks of a ResNet50 at 224 x 224, with random weights; its pooling is a stride, its head is left out. */
static void build_residual_network(void)
{
        static const int64_t blocks[] = {3, 4, 6, 3};
        uint32_t value;
        int64_t from = 64;

        network_init(&net);
        value = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 3, 224, 224));
        value = network_apply(&net, SL_OP_RELU, network_conv(&net, value, 3, 64, 7, 4, 1));
        for (int64_t stage = 0; stage < 4; stage++)
                for (int64_t i = 0; i < blocks[stage]; i++, from = 256 << stage)
                        value = add_bottleneck(value, from, 64 << stage, stage && !i ? 2 : 1);
        network_output(&net, value);
        network_finish(&net);
}

/* E2bird, section 7.6: 64.8% less than workers that duplicate weights and intermediates. */
Test(footprint, of_six_workers_is_below_that_of_e2bird)
{
        static const uint32_t batches[] = {1, 2, 4, 8, 16, 32};
        struct sl_gpu_footprint footprint;
        struct sl_plan *network_plan;
        double ratio;
        int fd;

        begin(1, 0);
        build_residual_network();
        fd = network_plan_fd(&net, "cpu", 32);
        cr_assert_eq(sl_plan_open(fd, &network_plan, NULL), 0);
        close(fd);
        cr_assert_eq(sl_gpu_footprint(network_plan, (const uint32_t[]){3}, 1, 4, &footprint), -EINVAL);
        cr_assert_eq(sl_gpu_footprint(network_plan, batches, 6, 4, &footprint), 0);
        ratio = (double)footprint.shared_bytes / (double)footprint.duplicated_bytes;
        printf("ResNet50, workers of 1 2 4 8 16 32: %.0f MiB shared, %.0f MiB duplicated, %.3f x\n",
                (double)footprint.shared_bytes / 0x1p20, (double)footprint.duplicated_bytes / 0x1p20, ratio);
        cr_expect_leq(ratio, 0.352);
        sl_plan_free(network_plan);
        network_deinit(&net);
        sl_cuda_device_close(&device);
}

Test(green, of_a_device_that_cannot_be_cut_is_refused_and_the_whole_serves)
{
        struct sl_error error = {""};
        struct sl_green *green;
        CUstream stream;

        begin(1, 0);
        fake_cuda_fail(FAKE_CUDA_dev_sm_resource_split_by_count, 1, CUDA_ERROR_NOT_SUPPORTED);
        cr_assert_eq(sl_greens_init(&greens, &device, &error), 0, "%s", error.text);
        cr_assert_eq(sl_green_new(&greens, 50, &green, &error), -ENOTSUP);
        cr_expect_str_eq(error.text, "the device, of 132 multiprocessors, cannot be cut into lets");
        cr_assert_eq(sl_green_stream(&greens, NULL, 0, &stream, &error), 0);
        sl_green_end_stream(&greens, NULL, stream);
        sl_cuda_device_close(&device);
}

Test(green, makes_room_while_its_streams_go_on)
{
        struct sl_green *first, *second, *third = NULL;
        CUstream old, now;
        struct sl_error error = {""};

        begin(1, 0);
        cr_assert_eq(sl_green_new(&greens, 50, &first, &error), 0, "%s", error.text);
        cr_assert_eq(sl_green_processors(first), 64);
        cr_assert_eq(sl_green_stream(&greens, first, 0, &old, &error), 0);
        cr_assert_eq(fake_cuda_stream_groups(old), 0xff);
        cr_assert_eq(sl_green_new(&greens, 75, &third, &error), -EBUSY);
        sl_green_retire(first);
        cr_assert_eq(sl_green_new(&greens, 75, &second, &error), 0, "%s", error.text);
        cr_assert_eq(sl_green_stream(&greens, second, 9, &now, &error), 0);
        cr_assert_eq(fake_cuda_stream_groups(now), 0xfff);
        cr_assert_eq(fake_cuda_stream_groups(old), 0xff, "the old let goes on with what it has");
        sl_green_restore(first);
        cr_assert_eq(greens.map.taken, 0xfff, "what is another's by now stays shared");
        sl_green_drop(first);
        sl_green_end_stream(&greens, first, old);
        cr_assert_eq(greens.map.taken, 0xfff);
        fake_cuda_fail(FAKE_CUDA_green_ctx_create, 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(sl_green_new(&greens, 25, &third, &error), -ENOMEM);
        cr_assert_eq(greens.map.taken, 0xfff);
        cr_assert_eq(sl_green_processors(second), 96);
        sl_green_drop(second);
        cr_assert_eq(greens.map.taken, 0xfff, "a stream is on it");
        sl_green_end_stream(&greens, second, now);
        cr_assert_eq(greens.map.taken, 0);
        sl_cuda_device_close(&device);
}

Test(host_region, that_cannot_be_registered_is_not_reached)
{
        void *memory = aligned_alloc(SL_PAGE_BYTES, SL_PAGE_BYTES);
        struct sl_host_region region;

        begin(1, 0);
        sl_host_region_init(&region, &driver, memory, SL_PAGE_BYTES, true);
        cr_assert(region.reached);
        sl_host_region_deinit(&region, &driver);
        fake_cuda_fail(FAKE_CUDA_mem_host_register, 1, CUDA_ERROR_NOT_SUPPORTED);
        sl_host_region_init(&region, &driver, memory, SL_PAGE_BYTES, true);
        cr_assert_not(region.reached);
        sl_host_region_deinit(&region, &driver);
        sl_cuda_device_close(&device);
        cr_assert_eq(fake_cuda_held(), 0);
        free(memory);
}
