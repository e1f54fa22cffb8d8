/* SPDX-License-Identifier: Apache-2.0 */
#include "open_scene.h"

#include "builder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void scene_write_file(const char *path, const void *bytes, size_t n, mode_t mode)
{
        FILE *file = fopen(path, "wb");

        cr_assert(file && fwrite(bytes, 1, n, file) == n);
        fclose(file);
        chmod(path, mode);
}

/* y [N, M, 3] = x [N, M, 3] + c [4, 1]: M is 4, or 1, which broadcasts. */
void write_model(struct scene *s)
{
        struct builder *b = builder_new(13);
        size_t n_bytes;
        const uint8_t *bytes;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2, 3));
        builder_floats(b, "c", DIMS(4, 1), (float[]){10, 20, 30, 40});
        builder_node(b, "Add", "x,c", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -1, 3));
        bytes = builder_pack(b, &n_bytes);
        scene_write_file(s->model, bytes, n_bytes, 0600);
        builder_free(b);
}

/* y = -x: any size will do. */
void write_easy_model(struct scene *s)
{
        struct builder *b = builder_new(13);
        size_t n_bytes;
        const uint8_t *bytes;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2, 3));
        builder_node(b, "Neg", "x", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2, 3));
        bytes = builder_pack(b, &n_bytes);
        scene_write_file(s->model, bytes, n_bytes, 0600);
        builder_free(b);
}

/* y [N, M, 3] = x [N, M, 3] times @scale of the identity: one matrix that all sizes share. */
void write_scaling_model(struct scene *s, float scale)
{
        struct builder *b = builder_new(13);
        float weights[DEPTH * DEPTH] = {0};
        const uint8_t *bytes;
        size_t n_bytes;

        for (uint32_t i = 0; i < DEPTH; i++)
                weights[i * DEPTH + i] = scale;
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2, DEPTH));
        builder_floats(b, "w", DIMS(DEPTH, DEPTH), weights);
        builder_node(b, "MatMul", "x,w", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2, DEPTH));
        bytes = builder_pack(b, &n_bytes);
        scene_write_file(s->model, bytes, n_bytes, 0600);
        builder_free(b);
}

void write_doubling_model(struct scene *s)
{
        write_scaling_model(s, 2);
}

void scene_begin(struct scene *s, void (*write_it)(struct scene *))
{
        memset(s, 0, sizeof(*s));
        service_init(&s->service);
        snprintf(s->model, sizeof(s->model), "%s/model.onnx", s->service.directory);
        snprintf(s->program, sizeof(s->program), "%s/compiler", s->service.directory);
        write_it(s);
        s->service.specs[1].name = "open";
        s->service.specs[1].path = s->model;
        s->service.specs[1].shapes_max = 2;
        s->service.specs[1].lowering.any_size = SL_ANY_SIZE_OFF; /* each size has a plan of its own */
        s->service.n_specs = 2;
}

void scene_start(struct scene *s)
{
        service_start(&s->service);
        s->client = service_connect(&s->service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
        cr_assert_eq(starling_model_open(s->client, "open", &s->open, NULL), 0, "%s", s->service.log);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 3, (uint32_t[]){8, 16, 3}, &s->input), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 3, (uint32_t[]){8, 16, 3}, &s->output), 0);
        for (int i = 0; i < 8 * 16 * 3; i++)
                ((float *)s->input.data)[i] = (float)i;
}

void scene_end(struct scene *s)
{
        starling_close(s->client);
        unlink(s->model);
        unlink(s->program);
        service_stop(&s->service);
}

uint32_t scene_count_logged(struct scene *s, const char *text)
{
        return service_count_logged(&s->service, text);
}

bool scene_has_logged(struct scene *s, const char *text)
{
        return scene_count_logged(s, text) > 0;
}

struct starling_request scene_request(struct scene *s, uint32_t samples, uint32_t size)
{
        s->input.dims[0] = samples;
        s->input.dims[1] = size;
        return (struct starling_request){
                .model = s->open, .inputs = &s->input, .n_inputs = 1, .outputs = &s->output, .n_outputs = 1};
}

int scene_infer(struct scene *s, uint32_t samples, uint32_t size, struct starling_completion *done)
{
        struct starling_request wanted = scene_request(s, samples, size);

        return starling_infer(s->queue, &wanted, done);
}

void expect_sum(struct scene *s, uint32_t samples, uint32_t size)
{
        const float *x = s->input.data, *y = s->output.data;
        struct starling_completion done;

        cr_assert_eq(scene_infer(s, samples, size, &done), 0, "%s", s->service.log);
        cr_assert_eq(done.outputs[0].rank, 3);
        cr_assert_eq(done.outputs[0].dims[0], samples);
        cr_assert_eq(done.outputs[0].dims[1], 4);
        for (uint32_t i = 0; i < samples * 12; i++) {
                uint32_t sample = i / 12, row = i % 12 / 3, from = sample * size * 3 + (size == 1 ? 0 : row * 3) + i % 3;

                cr_assert_eq(y[i], x[from] + 10.0f * (float)(row + 1));
        }
}

void expect_scaled(struct scene *s, uint32_t samples, uint32_t size, float scale)
{
        const float *x = s->input.data, *y = s->output.data;
        struct starling_completion done;

        cr_assert_eq(scene_infer(s, samples, size, &done), 0, "%s", s->service.log);
        for (uint32_t i = 0; i < samples * size * DEPTH; i++)
                cr_assert_eq(y[i], scale * x[i]);
}
