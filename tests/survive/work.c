/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that would compute for minutes, hours or for ever: one that is too much is refused when it is loaded; one that is allowed
 * ends with its request, or with the runtime, in the middle of what it does. Nothing here asserts how long anything takes: a test
 * whose runtime went on computing would not come to its end.
 */
#include "builder.h"
#include "honest.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#define SIDE    16
#define REGIONS 128
#define CELLS   8
#define MATRIX  256

static void add(const struct world *world, const char *name, struct builder *b)
{
        size_t bytes;
        const uint8_t *file = builder_pack(b, &bytes);

        world_add_model(world, name, file, bytes);
        builder_free(b);
}

/* 128 regions of 64 cells of @ratio x @ratio samples: with 2,048 of them some ten minutes, with 4,096 an hour. */
static void add_regions(const struct world *world, const char *name, int64_t channels, int64_t ratio)
{
        struct builder *b = builder_new(16);
        Onnx__NodeProto *node;

        builder_input(b, "image", 1, DIMS(1, channels, SIDE, SIDE));
        builder_input(b, "regions", 1, DIMS(REGIONS, 4));
        builder_ints(b, "images", DIMS(REGIONS), (int64_t[REGIONS]){0});
        node = builder_node(b, "RoiAlign", "image,regions,images", "y");
        builder_attr_int(b, node, "output_height", CELLS);
        builder_attr_int(b, node, "output_width", CELLS);
        builder_attr_int(b, node, "sampling_ratio", ratio);
        builder_output(b, "y");
        add(world, name, b);
}

/* A Loop without an end, which multiplies matrices. */
static void add_loop(const struct world *world, const char *name)
{
        struct builder *b = builder_new(16), *body = builder_new(16);
        Onnx__NodeProto *node;

        builder_input(body, "i", 7, DIMS());
        builder_input(body, "go", 9, DIMS());
        builder_input(body, "v", 1, DIMS(MATRIX, MATRIX));
        builder_node(body, "MatMul", "v,x", "w");
        builder_node(body, "Identity", "go", "goes_on");
        builder_output(body, "goes_on");
        builder_output(body, "w");
        builder_input(b, "x", 1, DIMS(MATRIX, MATRIX));
        node = builder_node(b, "Loop", ",,x", "y");
        builder_attr_graph(b, node, "body", body);
        builder_output(b, "y");
        add(world, name, b);
        builder_free(body);
}

struct slow {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_tensor inputs[2], output;
        uint32_t n_inputs;
};

static void slow_open(struct slow *slow, const struct world *world, const char *name)
{
        memset(slow, 0, sizeof(*slow));
        slow->client = world_connect(world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(slow->client, &slow->queue, NULL), 0);
        cr_assert_eq(starling_model_open(slow->client, name, &slow->model, NULL), 0);
}

static void slow_tensor(struct slow *slow, uint32_t rank, const uint32_t *dims, struct starling_tensor *ret_tensor)
{
        cr_assert_eq(starling_tensor_alloc(slow->client, STARLING_F32, rank, dims, ret_tensor), 0);
}

static void slow_open_regions(struct slow *slow, const struct world *world)
{
        slow_open(slow, world, "regions");
        slow->n_inputs = 2;
        slow_tensor(slow, 4, (uint32_t[]){1, 1, SIDE, SIDE}, &slow->inputs[0]);
        slow_tensor(slow, 2, (uint32_t[]){REGIONS, 4}, &slow->inputs[1]);
        slow_tensor(slow, 4, (uint32_t[]){REGIONS, 1, CELLS, CELLS}, &slow->output);
        memset(slow->inputs[0].data, 0, SIDE * SIDE * sizeof(float));
        memset(slow->inputs[1].data, 0, REGIONS * 4 * sizeof(float));
}

static void slow_open_loop(struct slow *slow, const struct world *world)
{
        slow_open(slow, world, "loop");
        slow->n_inputs = 1;
        slow_tensor(slow, 2, (uint32_t[]){MATRIX, MATRIX}, &slow->inputs[0]);
        slow_tensor(slow, 2, (uint32_t[]){MATRIX, MATRIX}, &slow->output);
        memset(slow->inputs[0].data, 0, MATRIX * MATRIX * sizeof(float));
}

static uint64_t slow_submit(struct slow *slow, uint64_t deadline_ns)
{
        uint64_t id;

        cr_assert_eq(starling_submit(slow->queue,
                             &(struct starling_request){.model = slow->model,
                                     .inputs = slow->inputs,
                                     .n_inputs = slow->n_inputs,
                                     .outputs = &slow->output,
                                     .n_outputs = 1,
                                     .deadline_ns = deadline_ns},
                             &id),
                0);
        return id;
}

/* Until the dispatcher has the request, and then into its first step. */
static void slow_await_flight(const struct world *world)
{
        while (world_footprint(world).in_flight == 0)
                world_pause_us(1000);
        world_pause_us(100000);
}

/* The completion comes when the worker has given the request back, not before. */
static void slow_expect(struct slow *slow, int32_t status)
{
        struct starling_completion done;

        cr_assert_eq(starling_wait(slow->queue, &done, 1, STARLING_FOREVER), 1);
        cr_assert_eq(done.status, status, "%s", starling_strerror(done.status));
        cr_assert(done.computing_ns || status != 0);
}

static void start(struct world *world)
{
        world_init(world);
        add_regions(world, "regions", 1, 2048);
        add_regions(world, "weeks", 32, 4096);
        add_loop(world, "loop");
        world_configure(world, "models: [regions, weeks, loop, lenet]\ngrace_seconds: 1\n");
        world_start(world);
}

Test(work, a_model_that_is_too_much_is_refused_with_its_work_and_the_limit, .timeout = 60)
{
        struct world world;

        start(&world);
        world_expect_log(&world, "event=model-failed model=weeks version=1 cause=");
        world_expect_log(&world, "(RoiAlign) is work of 1.76e+13 elementary steps");
        world_expect_log(&world, "work_max is 1e+13");
        cr_expect_eq(world_count_log(&world, " error event="), 1, "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

Test(work, a_deadline_and_a_cancellation_end_a_request_in_the_middle_of_a_step, .timeout = 60)
{
        struct honest *honest;
        struct world world;
        struct slow slow;

        start(&world);
        slow_open_regions(&slow, &world);
        slow_submit(&slow, starling_clock_ns() + 50000000);
        slow_expect(&slow, -ETIME);
        uint64_t id = slow_submit(&slow, 0);
        slow_await_flight(&world);
        starling_cancel(slow.queue, id);
        slow_expect(&slow, -ECANCELED);
        honest = honest_start(&world, "lenet");
        honest_expect_progress(honest, 20);
        honest_stop(honest);
        starling_close(slow.client);
        world_stop(&world);
        world_free(&world);
}

Test(work, a_deadline_ends_a_loop_that_has_no_end, .timeout = 60)
{
        struct world world;
        struct slow slow;

        start(&world);
        slow_open_loop(&slow, &world);
        slow_submit(&slow, starling_clock_ns() + 50000000);
        slow_expect(&slow, -ETIME);
        starling_close(slow.client);
        world_stop(&world);
        world_free(&world);
}

static uint32_t count_regions(struct starling_client *client)
{
        struct starling_client_info info;

        cr_assert_eq(starling_client_describe(client, &info), 0);
        return info.regions;
}

/* Its tensors are freed while it is in flight: the client finds nothing in use in the region, and the runtime knows better. */
Test(work, a_region_stays_while_a_request_in_flight_names_it_and_goes_when_it_has_ended, .timeout = 60)
{
        struct world world;
        struct slow slow;
        uint64_t id;
        void *block;

        start(&world);
        slow_open_loop(&slow, &world);
        id = slow_submit(&slow, 0);
        slow_await_flight(&world);
        starling_free(slow.client, slow.inputs[0].data);
        starling_free(slow.client, slow.output.data);
        block = starling_alloc(slow.client, 20 << 20);
        cr_assert_not_null(block);
        cr_expect_eq(count_regions(slow.client), 2);
        world_expect_log(&world, "arena region 0 is named by a request in flight");
        starling_cancel(slow.queue, id);
        slow_expect(&slow, -ECANCELED);
        starling_free(slow.client, block);
        cr_assert_not_null(starling_alloc(slow.client, 100 << 20));
        cr_expect_eq(count_regions(slow.client), 1);
        starling_close(slow.client);
        world_stop(&world);
        world_free(&world);
}

/* The request completes as cancelled, then the runtime ends with status 0: within one step, or this would take ten minutes. */
Test(work, a_shut_down_ends_what_runs_after_its_grace, .timeout = 60)
{
        struct world world;
        struct slow slow;

        start(&world);
        slow_open_regions(&slow, &world);
        slow_submit(&slow, 0);
        slow_await_flight(&world);
        kill(world.pid, SIGTERM);
        slow_expect(&slow, -ECANCELED);
        world_stop(&world);
        starling_close(slow.client);
        world_free(&world);
}

/* ---- what the dispatcher computes itself ---- */

#define MANY 4096 /* elements, of models that take microseconds of zeros */

/* A graph of each operator whose work is the data's: of zeros, as it is tried, it does next to nothing. */
static void build_roi_align(struct builder *b)
{
        Onnx__NodeProto *node;

        builder_input(b, "image", SL_DTYPE_F32, DIMS(1, 1, 4, 4));
        builder_input(b, "regions", SL_DTYPE_F32, DIMS(1, 4));
        builder_ints(b, "images", DIMS(1), (int64_t[]){0});
        node = builder_node(b, "RoiAlign", "image,regions,images", "y");
        builder_attr_int(b, node, "sampling_ratio", 0);
}

static void build_max_roi_pool(struct builder *b)
{
        Onnx__NodeProto *node;

        builder_input(b, "image", SL_DTYPE_F32, DIMS(1, 4, 64, 64));
        builder_input(b, "regions", SL_DTYPE_F32, DIMS(1, 5));
        node = builder_node(b, "MaxRoiPool", "image,regions", "y");
        builder_attr_ints(b, node, "pooled_shape", 2, (int64_t[]){2, 2});
}

static void build_top_k(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, MANY));
        builder_ints(b, "k", DIMS(1), (int64_t[]){16});
        builder_node(b, "TopK", "x,k", "y,where");
}

static void build_lstm(struct builder *b)
{
        Onnx__NodeProto *node;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(64, 1, 8));
        builder_input(b, "lengths", SL_DTYPE_I32, DIMS(1));
        builder_random(b, "w", DIMS(1, 32, 8));
        builder_random(b, "r", DIMS(1, 32, 8));
        node = builder_node(b, "LSTM", "x,w,r,,lengths", "y");
        builder_attr_int(b, node, "hidden_size", 8);
}

static void build_power(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_I64, DIMS(1, 512));
        builder_input(b, "e", SL_DTYPE_I64, DIMS(1, 512));
        builder_node(b, "Pow", "x,e", "y");
}

static void build_remainder(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, 512));
        builder_input(b, "d", SL_DTYPE_F32, DIMS(1, 512));
        builder_attr_int(b, builder_node(b, "Mod", "x,d", "y"), "fmod", 1);
}

static void build_determinant(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, 24, 24));
        builder_node(b, "Det", "x", "y");
}

static void build_of_one(struct builder *b, const char *operator, int32_t dtype)
{
        builder_input(b, "x", dtype, DIMS(16));
        builder_node(b, operator, "x", "y");
}

static void build_non_zero(struct builder *b)
{
        build_of_one(b, "NonZero", SL_DTYPE_F32);
}

static void build_unique(struct builder *b)
{
        build_of_one(b, "Unique", SL_DTYPE_F32);
}

static void build_constant_of_shape(struct builder *b)
{
        builder_input(b, "shape", SL_DTYPE_I64, DIMS(2));
        builder_node(b, "ConstantOfShape", "shape", "y");
}

static void build_compress(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(16));
        builder_input(b, "which", SL_DTYPE_BOOL, DIMS(16));
        builder_node(b, "Compress", "x,which", "y");
}

static void build_range(struct builder *b)
{
        builder_input(b, "start", SL_DTYPE_F32, DIMS());
        builder_input(b, "limit", SL_DTYPE_F32, DIMS());
        builder_floats(b, "delta", DIMS(), (float[]){1});
        builder_node(b, "Range", "start,limit,delta", "y");
}

static void build_expand(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, 1));
        builder_input(b, "shape", SL_DTYPE_I64, DIMS(2));
        builder_node(b, "Expand", "x,shape", "y");
}

static void build_tile(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(2, 2));
        builder_input(b, "repeats", SL_DTYPE_I64, DIMS(2));
        builder_node(b, "Tile", "x,repeats", "y");
}

static void build_resize(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, 1, 2, 2));
        builder_input(b, "sizes", SL_DTYPE_I64, DIMS(4));
        builder_node(b, "Resize", "x,,,sizes", "y");
}

static void build_non_max_suppression(struct builder *b)
{
        builder_input(b, "boxes", SL_DTYPE_F32, DIMS(1, 16, 4));
        builder_input(b, "scores", SL_DTYPE_F32, DIMS(1, 1, 16));
        builder_ints(b, "most", DIMS(1), (int64_t[]){16});
        builder_node(b, "NonMaxSuppression", "boxes,scores,most", "y");
}

static const struct {
        const char *name;
        void (*build)(struct builder *b);
} data_models[] = {
        {"roi-align", build_roi_align},
        {"max-roi-pool", build_max_roi_pool},
        {"top-k", build_top_k},
        {"lstm", build_lstm},
        {"power", build_power},
        {"remainder", build_remainder},
        {"determinant", build_determinant},
        {"non-zero", build_non_zero},
        {"unique", build_unique},
        {"constant-of-shape", build_constant_of_shape},
        {"compress", build_compress},
        {"range", build_range},
        {"expand", build_expand},
        {"tile", build_tile},
        {"resize", build_resize},
        {"non-max-suppression", build_non_max_suppression},
};

/* Has the dispatcher an executor of its own for the model? It has at least one worker. */
static bool is_inline(const struct world *world, const char *model)
{
        struct sl_worker_stats worker;
        struct sl_stats_view *view;
        uint32_t workers = 0;
        bool found = false;

        cr_assert_eq(sl_stats_open(world->name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_WORKERS); i++) {
                if (sl_stats_read_worker(view, i, &worker) < 0 || strcmp(worker.model, model) != 0)
                        continue;
                found |= strcmp(worker.executor, "inline") == 0;
                workers++;
        }
        sl_stats_close(view);
        cr_assert_geq(workers, 1, "%s does not serve:\n%s", model, world_log((struct world *)(uintptr_t)world));
        return found;
}

/* A load times a sample: where others had the core meanwhile the model is the workers', and is loaded again. */
static bool comes_to_be_inline(const struct world *world, const char *model)
{
        struct starling_client *admin = world_connect(world, STARLING_ROLE_ADMIN);

        for (uint64_t begun_ns = starling_clock_ns(); !is_inline(world, model);) {
                if (starling_clock_ns() - begun_ns > WORLD_PATIENCE_NS)
                        break;
                cr_assert_eq(starling_admin_unload(admin, model, NULL), 0);
                cr_assert_eq(starling_admin_load(admin, model, NULL), 0);
        }
        starling_close(admin);
        return is_inline(world, model);
}

/* What one user's data make of a request must not keep the others waiting. A product of matrices does the same for all data. */
Test(work, that_is_the_datas_is_never_the_dispatchers_own, .timeout = 60)
{
        struct world world;
        struct builder *b;

        world_init(&world);
        world_keep(&world, "");
        for (size_t i = 0; i < sizeof(data_models) / sizeof(data_models[0]); i++) {
                b = builder_new(16);
                data_models[i].build(b);
                builder_output(b, "y");
                add(&world, data_models[i].name, b);
        }
        add_loop(&world, "loop");
        b = builder_new_of_x(16, 2, (int64_t[]){1, 4});
        builder_random(b, "w", DIMS(4, 4));
        builder_node(b, "MatMul", "x,w", "y");
        builder_output(b, "y");
        add(&world, "product", b);
        world_configure(&world, "threads: {inline_us: 50}\n");
        world_start(&world);
        for (size_t i = 0; i < sizeof(data_models) / sizeof(data_models[0]); i++)
                cr_expect_not(is_inline(&world, data_models[i].name), "%s", data_models[i].name);
        cr_expect_not(is_inline(&world, "loop"));
        if (!WORLD_SLOW)
                cr_expect(comes_to_be_inline(&world, "product"), "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}
