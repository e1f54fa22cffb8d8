/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models whose outputs are as large as the data of a request say: the completion tells. A runtime in this process.
 */
#include "builder.h"
#include "service.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ELEMENTS 6

struct scene {
        struct service service;
        char model[96];
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *open;
        struct starling_tensor input, outputs[2];
};

/* where [2, n] = the places of what is not 0 in x [2, 3]; twice [2, 3] = x + x, which is of a known shape. */
static void write_model(const char *path)
{
        struct builder *b = builder_new(13);
        size_t n_bytes;
        const uint8_t *bytes;
        FILE *file = fopen(path, "wb");

        builder_input(b, "x", SL_DTYPE_F32, DIMS(2, 3));
        builder_node(b, "NonZero", "x", "where");
        builder_node(b, "Add", "x,x", "twice");
        builder_output(b, "where");
        builder_output(b, "twice");
        bytes = builder_pack(b, &n_bytes);
        cr_assert(file && fwrite(bytes, 1, n_bytes, file) == n_bytes);
        fclose(file);
        builder_free(b);
}

static void begin(struct scene *s)
{
        memset(s, 0, sizeof(*s));
        service_init(&s->service);
        snprintf(s->model, sizeof(s->model), "%s/model.onnx", s->service.directory);
        write_model(s->model);
        s->service.specs[1].name = "open";
        s->service.specs[1].path = s->model;
        s->service.n_specs = 2;
        service_start(&s->service);
        s->client = service_connect(&s->service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
        cr_assert_eq(starling_model_open(s->client, "open", &s->open, NULL), 0, "%s", s->service.log);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){2, 3}, &s->input), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_I64, 2, (uint32_t[]){2, ELEMENTS}, &s->outputs[0]), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){2, 3}, &s->outputs[1]), 0);
}

static void end(struct scene *s)
{
        starling_close(s->client);
        unlink(s->model);
        service_stop(&s->service);
}

static int infer(struct scene *s, const float x[ELEMENTS], struct starling_completion *done)
{
        struct starling_request request = {
                .model = s->open, .inputs = &s->input, .n_inputs = 1, .outputs = s->outputs, .n_outputs = 2};

        memcpy(s->input.data, x, ELEMENTS * sizeof(float));
        return starling_infer(s->queue, &request, done);
}

Test(open_outputs, the_completion_says_how_large_they_are, .timeout = 60)
{
        static const int64_t places[2][3] = {{0, 1, 1}, {1, 0, 2}};
        struct starling_completion done;
        struct scene s;

        begin(&s);
        cr_assert_eq(starling_model_describe(s.open)->outputs[0].dims[1], -1);
        cr_assert_eq(infer(&s, (float[]){0, 5, 0, 7, 0, 9}, &done), 0, "%s", s.service.log);
        cr_assert_eq(done.outputs[0].rank, 2);
        cr_assert_eq(done.outputs[0].dims[0], 2);
        cr_assert_eq(done.outputs[0].dims[1], 3);
        cr_assert_eq(done.outputs[0].bytes, sizeof(places));
        cr_assert_arr_eq(s.outputs[0].data, places, sizeof(places));
        cr_assert_eq(done.outputs[1].dims[1], 3);
        cr_assert_eq(((float *)s.outputs[1].data)[5], 18);
        end(&s);
}

Test(open_outputs, none_at_all_is_an_answer_too, .timeout = 60)
{
        struct starling_completion done;
        struct scene s;

        begin(&s);
        cr_assert_eq(infer(&s, (float[]){0, 0, 0, 0, 0, 0}, &done), 0);
        cr_assert_eq(done.outputs[0].dims[1], 0);
        cr_assert_eq(done.outputs[0].bytes, 0);
        end(&s);
}

Test(open_outputs, too_little_room_is_told_what_is_needed, .timeout = 60)
{
        struct starling_completion done;
        struct scene s;

        begin(&s);
        s.outputs[0].bytes = 2 * 2 * sizeof(int64_t);
        cr_assert_eq(infer(&s, (float[]){1, 1, 0, 1, 1, 0}, &done), -EMSGSIZE);
        cr_assert_eq(done.bytes_needed, 2 * 4 * sizeof(int64_t));
        cr_assert_eq(infer(&s, (float[]){1, 1, 0, 0, 0, 0}, &done), 0);
        cr_assert_eq(done.outputs[0].dims[1], 2);
        end(&s);
}
