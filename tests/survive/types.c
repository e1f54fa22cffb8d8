/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model takes and gives, as a client of `starling serve` sees it: any element type, straight into the client's outputs,
 * however large they are; side by side in an ensemble without a rule; and what a rule refuses, with its reason.
 */
#include "base/dtype.h"
#include "builder.h"
#include "world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define ROWS     2u
#define COLUMNS  3u
#define SAMPLE   (ROWS * COLUMNS)
#define SAMPLES  300u
#define PICTURE  (3u * 512u * 512u)
#define PICTURES 2u

static const enum sl_dtype types[] = {SL_DTYPE_F32, SL_DTYPE_U8, SL_DTYPE_I8, SL_DTYPE_U16, SL_DTYPE_I16, SL_DTYPE_I32,
        SL_DTYPE_I64, SL_DTYPE_BOOL, SL_DTYPE_F16, SL_DTYPE_F64, SL_DTYPE_U32, SL_DTYPE_U64, SL_DTYPE_BF16};
#define TYPES (sizeof(types) / sizeof(types[0]))

struct scene {
        struct world world;
        struct starling_client *client;
        struct starling_queue *queue;
};

static void begin(struct scene *s)
{
        world_start(&s->world);
        s->client = world_connect(&s->world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
}

static void end(struct scene *s)
{
        starling_close(s->client);
        world_stop(&s->world);
        world_free(&s->world);
}

static void add(const struct world *world, const char *name, struct builder *b)
{
        size_t bytes;
        const uint8_t *file = builder_pack(b, &bytes);

        world_add_model(world, name, file, bytes);
        builder_free(b);
}

/* y [N, 3, 2] = x [N, 2, 3] turned over, and again as z. */
static void add_turning(const struct world *world, enum sl_dtype type)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", (int32_t)type, DIMS(-1, ROWS, COLUMNS));
        builder_attr_ints(b, builder_node(b, "Transpose", "x", "y"), "perm", 3, (int64_t[]){0, 2, 1});
        builder_attr_ints(b, builder_node(b, "Transpose", "y", "z"), "perm", 3, (int64_t[]){0, 2, 1});
        builder_output(b, "y");
        builder_output(b, "z");
        add(world, sl_dtype_name(type), b);
}

/* Any bits are a number of most types; a bool is 0 or 1. */
static void fill(struct starling_tensor *tensor, uint32_t seed)
{
        uint8_t *bytes = tensor->data;

        for (uint64_t i = 0; i < tensor->bytes; i++) {
                seed = seed * 1664525 + 1013904223;
                bytes[i] = (uint8_t)(seed >> (tensor->dtype == STARLING_BOOL ? 31 : 24));
        }
}

static void expect_turned(const struct starling_tensor *x, const struct starling_tensor *y, uint32_t samples, const char *type)
{
        size_t bytes = starling_dtype_bytes(x->dtype);

        for (uint32_t i = 0; i < samples * SAMPLE; i++) {
                uint32_t row = i % SAMPLE / COLUMNS, column = i % COLUMNS, to = i / SAMPLE * SAMPLE + column * ROWS + row;

                cr_assert_eq(memcmp((char *)x->data + i * bytes, (char *)y->data + to * bytes, bytes), 0,
                        "%s: element %u of %u samples", type, i, samples);
        }
}

/* Requests of 1, 3 and 300 samples, the last in several segments. @copies: times that both outputs come. */
static void expect_served(struct scene *s, const char *name, enum sl_dtype type, uint32_t copies)
{
        struct starling_tensor x, outputs[4];
        struct starling_completion done;
        struct starling_model *model;
        struct starling_error error = {""};

        cr_assert_eq(starling_model_open(s->client, name, &model, &error), 0, "%s: %s", name, error.text);
        cr_assert_eq(starling_model_describe(model)->n_outputs, 2 * copies);
        for (uint32_t samples = 1; samples <= SAMPLES; samples = samples == 1 ? 3 : samples * 100) {
                cr_assert_eq(
                        starling_tensor_alloc(s->client, (enum starling_dtype)type, 3, (uint32_t[]){samples, ROWS, COLUMNS}, &x),
                        0);
                fill(&x, samples);
                for (uint32_t i = 0; i < 2 * copies; i++) {
                        cr_assert_eq(starling_tensor_alloc(s->client, x.dtype, 3, x.dims, &outputs[i]), 0);
                        memset(outputs[i].data, 0xee, outputs[i].bytes);
                }
                struct starling_request request = {
                        .model = model, .inputs = &x, .n_inputs = 1, .outputs = outputs, .n_outputs = 2 * copies};
                cr_assert_eq(starling_infer(s->queue, &request, &done), 0, "%s: %s", name, starling_queue_error(s->queue));
                for (uint32_t i = 0; i < 2 * copies; i += 2) {
                        expect_turned(&x, &outputs[i], samples, name);
                        cr_assert_eq(memcmp(x.data, outputs[i + 1].data, x.bytes), 0, "%s", name);
                }
                for (uint32_t i = 0; i < 2 * copies; i++)
                        starling_free(s->client, outputs[i].data);
                starling_free(s->client, x.data);
        }
}

Test(types, each_goes_in_and_out_of_a_plain_model)
{
        struct scene s = {0};

        world_init(&s.world);
        world_keep(&s.world, "");
        for (size_t i = 0; i < TYPES; i++)
                add_turning(&s.world, types[i]);
        begin(&s);
        for (size_t i = 0; i < TYPES; i++)
                expect_served(&s, sl_dtype_name(types[i]), types[i], 1);
        end(&s);
}

Test(types, each_goes_side_by_side_through_an_ensemble_without_a_rule)
{
        char name[64], yaml[160];
        struct scene s = {0};

        world_init(&s.world);
        world_keep(&s.world, "");
        for (size_t i = 0; i < TYPES; i++) {
                add_turning(&s.world, types[i]);
                snprintf(name, sizeof(name), "both-%s", sl_dtype_name(types[i]));
                snprintf(yaml, sizeof(yaml), "ensemble:\n  members: [%s, again-%s]\n  rule: none\n", sl_dtype_name(types[i]),
                        sl_dtype_name(types[i]));
                world_add_model_config(&s.world, name, yaml);
                struct builder *b = builder_new(13);
                builder_input(b, "x", (int32_t)types[i], DIMS(-1, ROWS, COLUMNS));
                builder_attr_ints(b, builder_node(b, "Transpose", "x", "y"), "perm", 3, (int64_t[]){0, 2, 1});
                builder_node(b, "Identity", "x", "z");
                builder_output(b, "y");
                builder_output(b, "z");
                snprintf(name, sizeof(name), "again-%s", sl_dtype_name(types[i]));
                add(&s.world, name, b);
        }
        begin(&s);
        for (size_t i = 0; i < TYPES; i++) {
                snprintf(name, sizeof(name), "both-%s", sl_dtype_name(types[i]));
                expect_served(&s, name, types[i], 2);
        }
        end(&s);
}

/* Requests that are gathered into one batch: each gets its own rows of each output, whatever their types. */
Test(types, requests_that_are_gathered_get_their_own_rows_of_outputs_of_several_types)
{
        enum { REQUESTS = 32, WIDTH = 4 };
        struct starling_tensor x[REQUESTS], outputs[REQUESTS][2];
        struct starling_completion done[REQUESTS];
        struct starling_model *model;
        struct scene s = {0};
        struct builder *b = builder_new(13);

        world_init(&s.world);
        world_keep(&s.world, "");
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, WIDTH));
        builder_attr_int(b, builder_node(b, "ArgMax", "x", "place"), "axis", 1);
        builder_attr_int(b, builder_node(b, "Cast", "x", "small"), "to", SL_DTYPE_U8);
        builder_output(b, "place");
        builder_output(b, "small");
        add(&s.world, "argmax", b);
        begin(&s);
        cr_assert_eq(starling_model_open(s.client, "argmax", &model, NULL), 0, "%s", world_log(&s.world));
        for (uint32_t i = 0; i < REQUESTS; i++) {
                cr_assert_eq(starling_tensor_alloc(s.client, STARLING_F32, 2, (uint32_t[]){1, WIDTH}, &x[i]), 0);
                cr_assert_eq(starling_tensor_alloc(s.client, STARLING_I64, 2, (uint32_t[]){1, 1}, &outputs[i][0]), 0);
                cr_assert_eq(starling_tensor_alloc(s.client, STARLING_U8, 2, (uint32_t[]){1, WIDTH}, &outputs[i][1]), 0);
                for (uint32_t k = 0; k < WIDTH; k++)
                        ((float *)x[i].data)[k] = k == i % WIDTH ? 200 : (float)i;
        }
        for (uint32_t i = 0; i < REQUESTS; i++)
                cr_assert_eq(starling_submit(s.queue,
                                     &(struct starling_request){
                                             .model = model, .inputs = &x[i], .n_inputs = 1, .outputs = outputs[i], .n_outputs = 2},
                                     NULL),
                        0, "%s", starling_queue_error(s.queue));
        for (uint32_t n = 0; n < REQUESTS;) {
                int got = starling_wait(s.queue, done, REQUESTS, STARLING_FOREVER);

                cr_assert_gt(got, 0);
                for (int k = 0; k < got; k++)
                        cr_assert_eq(done[k].status, 0);
                n += (uint32_t)got;
        }
        for (uint32_t i = 0; i < REQUESTS; i++) {
                cr_assert_eq(*(int64_t *)outputs[i][0].data, i % WIDTH);
                for (uint32_t k = 0; k < WIDTH; k++)
                        cr_assert_eq(((uint8_t *)outputs[i][1].data)[k], k == i % WIDTH ? 200 : i);
        }
        end(&s);
}

/* y, z [N, 3, 512, 512]: a segment of 128 samples would take 805,306,368 bytes of staging. */
static void add_painter(const struct world *world, const char *name)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 3, 512, 512));
        builder_node(b, "Relu", "x", "y");
        builder_node(b, "Neg", "x", "z");
        builder_output(b, "y");
        builder_output(b, "z");
        add(world, name, b);
}

Test(types, outputs_that_no_staging_would_hold_are_served)
{
        struct starling_tensor x, outputs[2];
        struct starling_completion done;
        struct starling_model *model;
        struct scene s = {0};

        world_init(&s.world);
        world_keep(&s.world, "");
        add_painter(&s.world, "painter");
        begin(&s);
        cr_assert_eq(starling_model_open(s.client, "painter", &model, NULL), 0, "%s", world_log(&s.world));
        cr_assert_eq(starling_tensor_alloc(s.client, STARLING_F32, 4, (uint32_t[]){PICTURES, 3, 512, 512}, &x), 0);
        for (int i = 0; i < 2; i++)
                cr_assert_eq(starling_tensor_alloc(s.client, STARLING_F32, 4, x.dims, &outputs[i]), 0);
        fill_random(x.data, PICTURES * PICTURE, 1);
        cr_assert_eq(
                starling_infer(s.queue,
                        &(struct starling_request){.model = model, .inputs = &x, .n_inputs = 1, .outputs = outputs, .n_outputs = 2},
                        &done),
                0, "%s", starling_queue_error(s.queue));
        for (uint32_t i = 0; i < PICTURES * PICTURE; i++) {
                float in = ((float *)x.data)[i];

                cr_assert_eq(((float *)outputs[0].data)[i], in > 0 ? in : 0);
                cr_assert_eq(((float *)outputs[1].data)[i], -in);
        }
        end(&s);
}

Test(types, a_rule_that_lacks_staging_or_meets_another_type_says_what_it_wants_and_what_helps)
{
        struct scene s = {0};

        world_init(&s.world);
        world_keep(&s.world, "");
        add_painter(&s.world, "painter");
        add_painter(&s.world, "other-painter");
        add_turning(&s.world, SL_DTYPE_I8);
        world_add_model_config(&s.world, "gallery", "ensemble:\n  members: [painter, other-painter]\n  rule: mean\n");
        world_add_model_config(
                &s.world, "few", "segment_samples: 2\nensemble:\n  members: [painter, other-painter]\n  rule: mean\n");
        world_add_model_config(&s.world, "wholes", "ensemble:\n  members: [int8]\n  rule: maximum\n");
        begin(&s);
        world_expect_log(&s.world, "under rule mean a segment of 128 samples needs 1610612736 bytes of staging");
        world_expect_log(&s.world, "raise it, or lower segment_samples");
        world_expect_log(
                &s.world, "rule maximum combines float32, output \\\"y\\\" is int8: rule none serves any type side by side");
        struct starling_model *model;
        cr_expect_eq(starling_model_open(s.client, "few", &model, NULL), 0, "%s", world_log(&s.world));
        end(&s);
}

/* y = the running sum of x [N, 4] along N, and the state [2, N, 4] of each as it came: nothing leads with a batch. */
static void add_state(const struct world *world)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 4));
        builder_input(b, "state", SL_DTYPE_F32, DIMS(2, -1, 4));
        builder_ints(b, "axis", 0, NULL, (int64_t[]){0});
        builder_node(b, "CumSum", "x,axis", "y");
        builder_node(b, "Neg", "state", "next");
        builder_output(b, "y");
        builder_output(b, "next");
        add(world, "state", b);
}

static void expect_state(struct scene *s, struct starling_model *model, uint32_t rows)
{
        struct starling_tensor inputs[2], outputs[2];
        struct starling_completion done;
        float sum[4] = {0};

        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){rows, 4}, &inputs[0]), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 3, (uint32_t[]){2, rows, 4}, &inputs[1]), 0);
        for (int i = 0; i < 2; i++) {
                cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, inputs[i].rank, inputs[i].dims, &outputs[i]), 0);
                fill_random(inputs[i].data, inputs[i].bytes / sizeof(float), rows + (uint32_t)i);
        }
        cr_assert_eq(starling_infer(s->queue,
                             &(struct starling_request){
                                     .model = model, .inputs = inputs, .n_inputs = 2, .outputs = outputs, .n_outputs = 2},
                             &done),
                0, "%u rows: %s", rows, starling_queue_error(s->queue));
        cr_assert_eq(done.outputs[0].rank, 2);
        cr_assert_eq(done.outputs[0].dims[0], rows);
        cr_assert_eq(done.outputs[1].dims[1], rows);
        for (uint32_t i = 0; i < rows * 4; i++) {
                sum[i % 4] += ((float *)inputs[0].data)[i];
                cr_assert_float_eq(((float *)outputs[0].data)[i], sum[i % 4], 1e-5f);
        }
        for (uint32_t i = 0; i < 2 * rows * 4; i++)
                cr_assert_eq(((float *)outputs[1].data)[i], -((float *)inputs[1].data)[i]);
}

Test(types, what_has_no_batch_that_leads_is_one_segment_of_any_size)
{
        const struct starling_model_info *info;
        struct starling_model *model;
        struct scene s = {0};

        world_init(&s.world);
        world_keep(&s.world, "");
        add_state(&s.world);
        begin(&s);
        cr_assert_eq(starling_model_open(s.client, "state", &model, NULL), 0, "%s", world_log(&s.world));
        info = starling_model_describe(model);
        cr_assert_eq(info->inputs[0].batch_axis, -1);
        cr_assert_eq(info->inputs[0].dims[0], -1);
        cr_assert_eq(info->inputs[1].dims[1], -1);
        expect_state(&s, model, 3);
        expect_state(&s, model, 1);
        expect_state(&s, model, 300);
        end(&s);
}

/* y = the running sum of x [N, 4] along N. */
static void add_meeting(const struct world *world, const char *name)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 4));
        builder_ints(b, "axis", 0, NULL, (int64_t[]){0});
        builder_node(b, "CumSum", "x,axis", "y");
        builder_output(b, "y");
        add(world, name, b);
}

/* A leading dimension that is no batch is 1 for an ensemble, whose members have to agree; by itself the model takes others. */
Test(types, an_ensemble_has_members_without_a_batch_at_the_size_1)
{
        struct starling_tensor x, y;
        struct starling_completion done;
        struct starling_model *model;
        struct scene s = {0};

        world_init(&s.world);
        world_keep(&s.world, "");
        add_meeting(&s.world, "first");
        add_meeting(&s.world, "second");
        world_add_model_config(&s.world, "mean", "ensemble:\n  members: [first, second]\n  rule: mean\n");
        begin(&s);
        for (int i = 0; i < 3; i++) {
                const char *name = (const char *[]){"first", "mean", "second"}[i];
                uint32_t rows = i == 1 ? 1 : 2;

                cr_assert_eq(starling_model_open(s.client, name, &model, NULL), 0, "%s: %s", name, world_log(&s.world));
                cr_assert_eq(starling_tensor_alloc(s.client, STARLING_F32, 2, (uint32_t[]){rows, 4}, &x), 0);
                cr_assert_eq(starling_tensor_alloc(s.client, STARLING_F32, 2, (uint32_t[]){rows, 4}, &y), 0);
                fill_random(x.data, rows * 4, 5);
                cr_assert_eq(starling_infer(s.queue,
                                     &(struct starling_request){
                                             .model = model, .inputs = &x, .n_inputs = 1, .outputs = &y, .n_outputs = 1},
                                     &done),
                        0, "%s: %s", name, starling_queue_error(s.queue));
                for (uint32_t k = 0; k < 4; k++)
                        cr_assert_eq(((float *)y.data)[k], ((float *)x.data)[k]);
        }
        end(&s);
}
