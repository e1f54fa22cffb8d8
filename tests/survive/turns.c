/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who computes next, seen by clients of `starling serve`: a model that takes milliseconds a sample, and requests that are longer or
 * shorter than what is given out at a time. The rules count samples that were computed in between, so that they hold on any
 * machine.
 */
#include "builder.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LAYERS   32
#define CHANNELS 64
#define SIDE     16
#define LONG     512u
#define PATIENCE WORLD_PATIENCE_NS

/*
 * What may be computed before somebody else's sample comes: a batch that runs, a slice that was given ahead, a turn that had begun,
 * and that sample. With slice_ms 1 each of them is one sample; without, a batch of 32. Counters are read while workers go on, and
 * some time before and after, when this process has a processor.
 */
#define BETWEEN 40u

/* Workers go on while this process has no processor: what a rule forbids happens each time, and what a busy machine makes of it
 * does not. */
#define TRIES 10

/* float32 [N, 1, SIDE, SIDE] -> [N, CHANNELS]: convolutions, whose cost does not fall with the batch. */
static void add_slow(const struct world *world, const char *name, const char *config)
{
        struct builder *b = builder_new(13);
        char from[24] = "wide", to[24];
        Onnx__NodeProto *node;
        size_t bytes;

        builder_input(b, "x", 1, DIMS(-1, 1, SIDE, SIDE));
        builder_random(b, "widen", DIMS(CHANNELS, 1, 1, 1));
        builder_node(b, "Conv", "x,widen", "wide");
        builder_random(b, "w", DIMS(CHANNELS, CHANNELS, 3, 3));
        for (int i = 0; i < LAYERS; i++) {
                char inputs[32];

                snprintf(inputs, sizeof(inputs), "%s,w", from);
                snprintf(to, sizeof(to), "layer%d", i);
                node = builder_node(b, "Conv", inputs, to);
                builder_attr_ints(b, node, "pads", 4, (int64_t[]){1, 1, 1, 1});
                snprintf(inputs, sizeof(inputs), "flat%d", i);
                builder_node(b, "Sigmoid", to, inputs);
                strcpy(from, inputs);
        }
        node = builder_node(b, "ReduceMean", from, "y");
        builder_attr_ints(b, node, "axes", 2, (int64_t[]){2, 3});
        builder_attr_int(b, node, "keepdims", 0);
        builder_output(b, "y");
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, name, file, bytes);
        world_add_model_config(world, name, config);
        builder_free(b);
}

/* Samples that the model's workers have computed; of worker @only, counted among them, unless it is negative. */
static uint64_t computed(const struct world *world, const char *model, int only)
{
        struct sl_stats_view *view;
        struct sl_worker_stats worker;
        uint64_t samples = 0;
        int seen = 0;

        cr_assert_eq(sl_stats_open(world->name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_WORKERS); i++)
                if (sl_stats_read_worker(view, i, &worker) == 0 && strcmp(worker.model, model) == 0) {
                        if (only < 0 || seen == only)
                                samples += worker.samples;
                        seen++;
                }
        sl_stats_close(view);
        return samples;
}

struct guest {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_tensor input, output;
};

static void guest_enter(struct guest *guest, const struct world *world, const char *model)
{
        guest->client = world_connect(world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(guest->client, &guest->queue, NULL), 0);
        cr_assert_eq(starling_model_open(guest->client, model, &guest->model, NULL), 0);
        cr_assert_eq(starling_tensor_alloc(guest->client, STARLING_F32, 4, (uint32_t[]){LONG, 1, SIDE, SIDE}, &guest->input), 0);
        cr_assert_eq(starling_tensor_alloc(guest->client, STARLING_F32, 2, (uint32_t[]){LONG, CHANNELS}, &guest->output), 0);
        for (uint32_t i = 0; i < LONG * SIDE * SIDE; i++)
                ((float *)guest->input.data)[i] = (float)(i % 251) / 251.0f;
}

static void guest_submit(struct guest *guest, uint32_t samples, uint32_t priority, uint64_t deadline_ns, uint64_t *ret_id)
{
        struct starling_tensor input = guest->input, output = guest->output;

        input.dims[0] = output.dims[0] = samples;
        input.bytes = (uint64_t)samples * SIDE * SIDE * sizeof(float);
        output.bytes = (uint64_t)samples * CHANNELS * sizeof(float);
        struct starling_request request = {.model = guest->model,
                .inputs = &input,
                .n_inputs = 1,
                .outputs = &output,
                .n_outputs = 1,
                .priority = priority,
                .deadline_ns = deadline_ns};
        cr_assert_eq(starling_submit(guest->queue, &request, ret_id), 0, "%s", starling_queue_error(guest->queue));
}

static int guest_wait(struct guest *guest)
{
        struct starling_completion done;
        int n = starling_wait(guest->queue, &done, 1, PATIENCE);

        cr_assert_eq(n, 1, "%s", starling_strerror(n));
        return done.status;
}

static uint32_t guest_poll(struct guest *guest)
{
        struct starling_completion done[128];
        int n = starling_poll(guest->queue, done, 128);

        cr_assert_geq(n, 0);
        return (uint32_t)n;
}

static void expect_started(const struct world *world, uint64_t before)
{
        WORLD_AWAIT(computed(world, "slow", -1) > before);
        cr_assert_gt(computed(world, "slow", -1), before, "nothing is computed");
}

static void begin(struct world *world, struct guest *first, struct guest *second, const char *config)
{
        world_init(world);
        world_keep(world, "");
        add_slow(world, "slow", config);
        world_start(world);
        guest_enter(first, world, "slow");
        if (second)
                guest_enter(second, world, "slow");
}

static void end(struct world *world, struct guest *first, struct guest *second)
{
        starling_close(first->client);
        if (second)
                starling_close(second->client);
        world_stop(world);
        world_free(world);
}

/* The deadline is moved until it lies in the middle: how long a sample takes is the machine's mood. */
Test(turns, a_deadline_ends_a_long_request_in_the_middle)
{
        struct guest guest;
        struct world world;
        uint64_t fastest = UINT64_MAX, before, samples = 0;

        begin(&world, &guest, NULL, "slice_ms: 1\n");
        for (int i = 0; i < 5; i++) {
                uint64_t begun = starling_clock_ns(), took;

                guest_submit(&guest, 1, 0, 0, NULL);
                cr_assert_eq(guest_wait(&guest), 0);
                took = starling_clock_ns() - begun;
                fastest = took < fastest ? took : fastest;
        }
        for (uint64_t left_ns = 20 * fastest, i = 0; i < TRIES && (samples == 0 || samples >= LONG / 2); i++) {
                before = computed(&world, "slow", -1);
                guest_submit(&guest, LONG, 0, starling_clock_ns() + left_ns, NULL);
                int status = guest_wait(&guest);

                samples = computed(&world, "slow", -1) - before;
                cr_expect(status == -ETIME || (status == 0 && samples >= LONG), "%s", starling_strerror(status));
                left_ns = samples ? left_ns / 2 : left_ns * 2;
        }
        cr_expect(samples > 0 && samples < LONG / 2, "it went on after its deadline: %u samples", (unsigned)samples);
        end(&world, &guest, NULL);
}

Test(turns, a_cancellation_ends_a_long_request_within_what_was_given_out)
{
        struct guest guest;
        struct world world;
        uint64_t before, after = UINT64_MAX, id;

        begin(&world, &guest, NULL, "slice_ms: 1\n");
        for (int i = 0; i < TRIES && after > BETWEEN; i++) {
                before = computed(&world, "slow", -1);
                guest_submit(&guest, LONG, 0, 0, &id);
                expect_started(&world, before);
                before = computed(&world, "slow", -1);
                cr_assert_eq(starling_cancel(guest.queue, id), 0);
                int status = guest_wait(&guest);

                after = status == -ECANCELED ? computed(&world, "slow", -1) - before : UINT64_MAX;
        }
        cr_expect_leq(after, BETWEEN);
        end(&world, &guest, NULL);
}

static void drain(struct guest *guest, uint32_t n)
{
        while (n--)
                cr_expect_eq(guest_wait(guest), 0);
}

/*
 * @samples a request: the first client has @n of them waiting when the second comes. At most @limit samples are
 * computed before the second's, and some of the first's are not.
 */
static void expect_soon_of(const char *config, uint32_t samples, uint32_t n, uint32_t priority, uint32_t limit)
{
        struct guest first, second;
        struct world world;
        uint64_t before, between = UINT64_MAX;
        uint32_t waiting = 0;

        begin(&world, &first, &second, config);
        for (int i = 0; i < TRIES && between > limit; i++) {
                drain(&first, waiting);
                before = computed(&world, "slow", -1);
                for (uint32_t k = 0; k < n; k++)
                        guest_submit(&first, samples, priority, 0, NULL);
                expect_started(&world, before);
                before = computed(&world, "slow", -1);
                guest_submit(&second, 1, 0, 0, NULL);
                cr_expect_eq(guest_wait(&second), 0);
                between = computed(&world, "slow", -1) - before;
                waiting = n - guest_poll(&first);
                if (waiting == 0)
                        between = UINT64_MAX;
        }
        cr_expect_leq(between, limit, "%u samples were computed first", (unsigned)between);
        end(&world, &first, &second);
}

static void expect_soon(uint32_t samples, uint32_t n, uint32_t priority)
{
        expect_soon_of("slice_ms: 1\n", samples, n, priority, BETWEEN);
}

Test(turns, an_urgent_sample_comes_before_what_waits_of_a_long_request)
{
        expect_soon(LONG, 1, 3);
}

Test(turns, another_clients_sample_comes_in_turn_beside_a_long_request)
{
        expect_soon(LONG, 1, 0);
}

Test(turns, an_urgent_sample_comes_before_many_small_requests)
{
        expect_soon(4, 60, 3);
}

Test(turns, another_clients_sample_comes_in_turn_beside_many_small_requests)
{
        expect_soon(4, 60, 0);
}

/* By default a slice is 10 ms: longer than this model's sample, and far shorter than the request. */
Test(turns, the_default_slice_lets_an_urgent_sample_in_before_a_long_request_ends)
{
        expect_soon_of("batch_max: 4\n", LONG, 1, 3, LONG / 2 - 1);
}

Test(turns, the_end_of_the_grace_time_ends_what_runs)
{
        struct guest guest;
        struct world world;
        uint64_t before;

        world_init(&world);
        world_keep(&world, "");
        add_slow(&world, "slow", "slice_ms: 1\n");
        world_configure(&world, "grace_seconds: 0\n");
        world_start(&world);
        guest_enter(&guest, &world, "slow");
        before = computed(&world, "slow", -1);
        for (int i = 0; i < 60; i++)
                guest_submit(&guest, LONG, 0, 0, NULL);
        expect_started(&world, before);
        kill(world.pid, SIGTERM);
        for (int i = 0; i < 60; i++) {
                int status = guest_wait(&guest);

                cr_expect(status == -ECANCELED || status == -EPIPE, "%d", status);
        }
        end(&world, &guest, NULL);
}

Test(turns, instances_share_the_samples_of_a_request_and_change_nothing_about_the_answer)
{
        struct guest one, two;
        struct world world;
        uint64_t before[2];

        world_init(&world);
        world_keep(&world, "");
        add_slow(&world, "slow", "slice_ms: 1\n");
        add_slow(&world, "double", "slice_ms: 1\ninstances: 2\n");
        world_start(&world);
        guest_enter(&one, &world, "slow");
        guest_enter(&two, &world, "double");
        for (int i = 0; i < 2; i++)
                before[i] = computed(&world, "double", i);
        guest_submit(&one, 64, 0, 0, NULL);
        guest_submit(&two, 64, 0, 0, NULL);
        cr_assert_eq(guest_wait(&one), 0);
        cr_assert_eq(guest_wait(&two), 0);
        for (int i = 0; i < 2; i++)
                cr_expect_gt(computed(&world, "double", i), before[i], "instance %d did nothing", i);
        cr_expect_eq(computed(&world, "double", -1) - before[0] - before[1], 64);
        for (uint32_t i = 0; i < 64 * CHANNELS; i++) {
                float a = ((float *)one.output.data)[i], b = ((float *)two.output.data)[i];

                cr_assert(fabsf(a - b) <= 1e-5f, "element %u: %g and %g", i, (double)a, (double)b);
        }
        end(&world, &one, &two);
}
