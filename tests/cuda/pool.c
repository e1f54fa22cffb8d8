/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool on a driver that does things late and in any order: what batches read is what was put, over the end of the buffer too, and
 * nothing is overwritten before it was read.
 */
#include "pool.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/split_mix.h"
#include "fake_driver.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS   3
#define BATCH_MAX 8
#define SLOTS     16
#define INPUTS    2

static struct sl_cuda_driver driver;
static struct sl_cuda_device device;

static void begin(uint64_t seed)
{
        struct fake_cuda_options options = fake_cuda_defaults();
        struct sl_error error = {""};

        options.seed = seed;
        options.granularity = SL_PAGE_BYTES;
        fake_cuda_begin(&options, &driver);
        cr_assert_eq(sl_cuda_device_open(&driver, 0, &device, &error), 0, "%s", error.text);
}

/* Every four bytes of a sample say which sample and which input it is of. */
struct worker {
        CUstream stream;
        CUevent ended;
        bool busy;
        struct sl_pool_batch batch;
        uint32_t *seen[INPUTS];
};

struct traffic {
        struct sl_pool *pool;
        uint64_t slot_bytes[INPUTS];
        struct worker workers[WORKERS];
        uint32_t *source[INPUTS]; /* of what is being copied: it may not change meanwhile */
        uint64_t n_put, copying;
        bool is_copying;
        uint64_t n_read;
        uint32_t widest;
        bool over_the_end;
};

static void put_some(struct traffic *t, uint32_t n)
{
        const void *inputs[INPUTS] = {t->source[0], t->source[1]};
        struct sl_error error = {""};

        if (t->is_copying && sl_pool_has_copied(t->pool, t->copying) != 1)
                return;
        for (uint32_t i = 0; i < INPUTS; i++)
                for (uint64_t w = 0; w < n * t->slot_bytes[i] / 4; w++)
                        t->source[i][w] = (uint32_t)(t->n_put + w / (t->slot_bytes[i] / 4)) * INPUTS + i;
        t->is_copying = sl_pool_put(t->pool, inputs, n, &t->copying, &error) == 0;
        t->n_put += t->is_copying ? n : 0;
}

/* A batch is "computed" by copying it out, in one piece for each input. */
static void start_worker(struct traffic *t, struct worker *worker, uint32_t most)
{
        struct sl_error error = {""};
        int n = sl_pool_take(t->pool, most, worker->stream, &worker->batch, &error);

        cr_assert_geq(n, 0, "%s", error.text);
        if (!n)
                return;
        for (uint32_t i = 0; i < INPUTS; i++)
                cr_assert_eq(driver.memcpy_dtoh_async(
                                     worker->seen[i], worker->batch.inputs[i], (uint32_t)n * t->slot_bytes[i], worker->stream),
                        CUDA_SUCCESS);
        cr_assert_eq(driver.event_record(worker->ended, worker->stream), CUDA_SUCCESS);
        worker->busy = true;
        t->widest = (uint32_t)n > t->widest ? (uint32_t)n : t->widest;
        t->over_the_end |= worker->batch.first % SLOTS + (uint32_t)n > SLOTS;
}

static void end_worker(struct traffic *t, struct worker *worker)
{
        if (driver.event_query(worker->ended) != CUDA_SUCCESS)
                return;
        for (uint32_t i = 0; i < INPUTS; i++)
                for (uint64_t w = 0; w < worker->batch.n * t->slot_bytes[i] / 4; w++)
                        cr_assert_eq(worker->seen[i][w], (uint32_t)(worker->batch.first + w / (t->slot_bytes[i] / 4)) * INPUTS + i,
                                "sample %llu of input %u", (unsigned long long)(worker->batch.first + w / (t->slot_bytes[i] / 4)),
                                i);
        cr_assert_eq(sl_pool_give_back(t->pool, &worker->batch), 0);
        worker->busy = false;
        t->n_read += worker->batch.n;
}

static void traffic_init(struct traffic *t, uint64_t bytes_max, bool mirrored)
{
        *t = (struct traffic){.slot_bytes = {SL_PAGE_BYTES / 16, SL_PAGE_BYTES / 4}};
        struct sl_pool_options options = {
                .device = &device, .slot_bytes = t->slot_bytes, .n_inputs = INPUTS, .n_slots = SLOTS, .bytes_max = bytes_max};
        struct sl_error error = {""};

        if (!mirrored)
                t->slot_bytes[0] -= 4;
        cr_assert_eq(sl_pool_new(&options, &t->pool, &error), 0, "%s", error.text);
        cr_assert_eq(sl_pool_layout_of(t->pool)->mirrored, mirrored);
        cr_assert_eq(sl_pool_layout_of(t->pool)->n_slots, SLOTS);
        for (uint32_t i = 0; i < INPUTS; i++)
                t->source[i] = malloc(SLOTS * t->slot_bytes[i]);
        for (struct worker *w = t->workers; w < t->workers + WORKERS; w++) {
                cr_assert_eq(driver.stream_create_with_priority(&w->stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
                cr_assert_eq(driver.event_create(&w->ended, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
                for (uint32_t i = 0; i < INPUTS; i++)
                        w->seen[i] = malloc(BATCH_MAX * t->slot_bytes[i]);
        }
}

static void traffic_deinit(struct traffic *t)
{
        fake_cuda_finish();
        for (struct worker *w = t->workers; w < t->workers + WORKERS; w++) {
                driver.event_destroy(w->ended);
                driver.stream_destroy(w->stream);
                for (uint32_t i = 0; i < INPUTS; i++)
                        free(w->seen[i]);
        }
        for (uint32_t i = 0; i < INPUTS; i++)
                free(t->source[i]);
        sl_pool_free(t->pool);
}

static void run_traffic(uint64_t seed, uint64_t bytes_max, bool mirrored)
{
        struct traffic t;
        uint64_t random = seed;

        begin(seed);
        traffic_init(&t, bytes_max, mirrored);
        for (uint32_t round = 0; round < 3000; round++) {
                uint64_t chance = sl_split_mix_next(&random);
                struct worker *worker = &t.workers[(chance >> 32) % WORKERS];

                if (chance % 2)
                        put_some(&t, 1 + (uint32_t)(chance >> 8) % 6);
                else if (worker->busy)
                        end_worker(&t, worker);
                else
                        start_worker(&t, worker, 1 + (uint32_t)(chance >> 8) % BATCH_MAX);
        }
        cr_assert_gt(t.n_read, 20 * SLOTS, "it has gone round");
        cr_assert_gt(t.widest, 4);
        cr_assert_eq(t.over_the_end, mirrored);
        traffic_deinit(&t);
        sl_cuda_device_close(&device);
        cr_assert_eq(fake_cuda_held(), 0);
}

Test(pool, gives_batches_what_was_put)
{
        for (uint64_t seed = 1; seed <= 20; seed++)
                run_traffic(seed, 1 << 20, true);
}

Test(pool, without_a_mirror_does_so_too)
{
        for (uint64_t seed = 1; seed <= 20; seed++)
                run_traffic(seed, 32 * SL_PAGE_BYTES, false);
}

static int make_pool(uint64_t bytes_max, struct sl_pool **ret_pool, struct sl_error *error)
{
        const uint64_t slot_bytes[] = {SL_PAGE_BYTES, SL_PAGE_BYTES / 2};
        const struct sl_pool_options options = {
                .device = &device, .slot_bytes = slot_bytes, .n_inputs = 2, .n_slots = 8, .bytes_max = bytes_max};

        return sl_pool_new(&options, ret_pool, error);
}

/* Each call that makes something, each time that it is made. */
Test(pool, that_cannot_be_made_leaves_nothing)
{
        static const enum fake_cuda_call calls[] = {FAKE_CUDA_mem_get_allocation_granularity, FAKE_CUDA_mem_address_reserve,
                FAKE_CUDA_mem_create, FAKE_CUDA_mem_map, FAKE_CUDA_mem_set_access, FAKE_CUDA_stream_create_with_priority,
                FAKE_CUDA_event_create};
        uint32_t n_failed = 0;

        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                for (uint32_t nth = 1, failed = 1; failed; nth++) {
                        struct sl_pool *pool = NULL;
                        struct sl_error error = {""};

                        begin(1);
                        fake_cuda_fail(calls[i], nth, CUDA_ERROR_OUT_OF_MEMORY);
                        failed = make_pool(1 << 20, &pool, &error) < 0;
                        n_failed += failed;
                        if (failed)
                                cr_assert_not_null(strstr(error.text, "CUDA_ERROR_OUT_OF_MEMORY"), "%s", error.text);
                        sl_pool_free(pool);
                        sl_cuda_device_close(&device);
                        cr_assert_eq(fake_cuda_held(), 0, "call %zu, time %u", i, nth);
                        cr_assert_eq(fake_cuda_memory_in_use(), 0);
                }
        cr_assert_eq(n_failed, 1 + 2 + 2 + 4 + 2 + 1 + 8);
}

Test(pool, that_may_not_be_so_large_says_so)
{
        struct sl_pool *pool;
        struct sl_error error = {""};

        begin(1);
        cr_assert_eq(make_pool(4 * SL_PAGE_BYTES, &pool, &error), -E2BIG);
        cr_assert_not_null(strstr(error.text, "a pool of 8 samples takes more than the 16384 bytes"), "%s", error.text);
        sl_cuda_device_close(&device);
}

Test(pool, that_is_full_waits_and_one_that_failed_is_lost)
{
        static const char samples[9 * SL_PAGE_BYTES];
        const void *inputs[] = {samples, samples};
        struct sl_pool_batch batch;
        struct sl_pool *pool;
        struct sl_error error = {""};
        uint64_t position;
        CUstream stream;

        begin(1);
        cr_assert_eq(make_pool(1 << 20, &pool, &error), 0, "%s", error.text);
        cr_assert_eq(driver.stream_create_with_priority(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
        cr_assert_eq(sl_pool_put(pool, inputs, 9, &position, &error), -EAGAIN);
        cr_assert_eq(sl_pool_put(pool, inputs, 5, &position, &error), 0);
        cr_assert_eq(sl_pool_room(pool), 3);
        cr_assert_eq(sl_pool_waiting(pool), 5);
        cr_assert_eq(sl_pool_take(pool, 8, stream, &batch, &error), 5);
        cr_assert_eq(sl_pool_put(pool, inputs, 4, &position, &error), -EAGAIN, "a batch still reads");
        fake_cuda_fail(FAKE_CUDA_memcpy_htod_async, 2, CUDA_ERROR_LAUNCH_FAILED);
        cr_assert_eq(sl_pool_put(pool, inputs, 1, &position, &error), -EIO);
        cr_assert_eq(sl_pool_take(pool, 1, stream, &batch, &error), -EIO, "what the slot holds is not known");
        cr_assert_eq(sl_pool_put(pool, inputs, 1, &position, &error), -EIO);
        fake_cuda_finish();
        driver.stream_destroy(stream);
        sl_pool_free(pool);
        sl_cuda_device_close(&device);
        cr_assert_eq(fake_cuda_held(), 0);
}
