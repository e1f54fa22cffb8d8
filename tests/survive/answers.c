/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client of `starling serve` is answered where the way to it depends on the data, or on what a file leaves unsaid.
 */
#include "builder.h"
#include "world.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#define ELEMENTS 6u

struct scene {
        struct world world;
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_tensor x, y;
};

/* What a request of it brings and gets. */
struct port {
        enum starling_dtype dtype;
        uint32_t rank, dims[4];
};

/* One model "m" from x to y. The output comes first in the arena: nothing lies before it. */
static void begin_ports(struct scene *s, struct builder *b, const char *config, const struct port *x, const struct port *y)
{
        struct starling_error error = {""};
        size_t bytes;
        const uint8_t *file = builder_pack(b, &bytes);

        world_init(&s->world);
        world_keep(&s->world, "");
        world_add_model(&s->world, "m", file, bytes);
        world_add_model_config(&s->world, "m", config);
        builder_free(b);
        world_start(&s->world);
        s->client = world_connect(&s->world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
        cr_assert_eq(starling_model_open(s->client, "m", &s->model, &error), 0, "%s\n%s", error.text, world_log(&s->world));
        cr_assert_eq(starling_tensor_alloc(s->client, y->dtype, y->rank, y->dims, &s->y), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, x->dtype, x->rank, x->dims, &s->x), 0);
}

/* From and to float32 [2, 3]. */
static void begin(struct scene *s, struct builder *b)
{
        const struct port port = {STARLING_F32, 2, {2, 3}};

        begin_ports(s, b, "", &port, &port);
}

static void end(struct scene *s)
{
        starling_close(s->client);
        world_stop(&s->world);
        world_free(&s->world);
}

static void ask(struct scene *s, const void *x)
{
        struct starling_request request = {.model = s->model, .inputs = &s->x, .n_inputs = 1, .outputs = &s->y, .n_outputs = 1};

        memcpy(s->x.data, x, s->x.bytes);
        cr_assert_eq(starling_infer(s->queue, &request, NULL), 0, "%s\n%s", starling_queue_error(s->queue), world_log(&s->world));
}

static void expect(struct scene *s, const float x[ELEMENTS], const float y[ELEMENTS], float tolerance)
{
        ask(s, x);
        for (uint32_t i = 0; i < ELEMENTS; i++) {
                float got = ((const float *)s->y.data)[i];

                cr_expect(fabsf(got - y[i]) <= tolerance, "element %u is %g, wants %g", i, (double)got, (double)y[i]);
        }
}

/* If x's sum is positive, x plus the sum of the places where it is no zero, else -x. */
static struct builder *build_branches(struct builder *then, struct builder *other)
{
        struct builder *b = builder_new(13);
        Onnx__NodeProto *node;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(2, 3));
        builder_node(then, "NonZero", "x", "places");
        builder_attr_int(then, builder_node(then, "Cast", "places", "indices"), "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
        builder_attr_int(then, builder_node(then, "ReduceSum", "indices", "sum"), "keepdims", 0);
        builder_node(then, "Add", "x,sum", "moved");
        builder_output(then, "moved");
        builder_node(other, "Neg", "x", "turned");
        builder_output(other, "turned");
        builder_attr_int(b, builder_node(b, "ReduceSum", "x", "all"), "keepdims", 0);
        builder_floats(b, "zero", 0, NULL, (float[]){0});
        builder_node(b, "Greater", "all,zero", "positive");
        node = builder_node(b, "If", "positive", "y");
        builder_attr_graph(b, node, "then_branch", then);
        builder_attr_graph(b, node, "else_branch", other);
        builder_output(b, "y");
        return b;
}

Test(answers, a_branch_holds_what_depends_on_the_data)
{
        struct builder *then = builder_new(13), *other = builder_new(13);
        struct scene s = {0};

        begin(&s, build_branches(then, other));
        for (int i = 0; i < 3; i++) {
                expect(&s, (float[]){1, 0, 2, 0, 3, 0}, (float[]){5, 4, 6, 4, 7, 4}, 0);
                expect(&s, (float[]){-1, 0, -2, 0, 1, 0}, (float[]){1, 0, 2, 0, -1, 0}, 0);
        }
        builder_free(then);
        builder_free(other);
        end(&s);
}

/* NAME becomes bytes that stand for @scale times what they are more than @zero, and floats again, as NAME_d. */
static void add_pair(struct builder *b, const char *name, float scale, uint8_t zero)
{
        char s[32], z[32], q[32], d[32], inputs[128];

        snprintf(s, sizeof(s), "%s_s", name);
        snprintf(z, sizeof(z), "%s_z", name);
        snprintf(q, sizeof(q), "%s_q", name);
        snprintf(d, sizeof(d), "%s_d", name);
        builder_floats(b, s, 0, NULL, &scale);
        builder_raw(b, z, SL_DTYPE_U8, 0, NULL, &zero);
        snprintf(inputs, sizeof(inputs), "%s,%s,%s", name, s, z);
        builder_node(b, "QuantizeLinear", inputs, q);
        snprintf(inputs, sizeof(inputs), "%s,%s,%s", q, s, z);
        builder_node(b, "DequantizeLinear", inputs, d);
}

/* y = x + relu(-x), in bytes: the Relu is said by a zero point alone, as quantizers leave it. */
Test(answers, bytes_that_stand_for_nothing_below_zero_are_a_relu)
{
        static const int8_t turned[9] = {-100, 0, 0, 0, -100, 0, 0, 0, -100};
        struct builder *b = builder_new(13);
        struct scene s = {0};

        builder_input(b, "x", SL_DTYPE_F32, DIMS(2, 3));
        add_pair(b, "x", 0.02f, 128);
        builder_raw(b, "w", SL_DTYPE_I8, DIMS(3, 3), turned);
        builder_floats(b, "w_s", 0, NULL, (float[]){0.01f});
        builder_raw(b, "w_z", SL_DTYPE_I8, 0, NULL, (int8_t[]){0});
        builder_node(b, "DequantizeLinear", "w,w_s,w_z", "w_d");
        builder_node(b, "MatMul", "x_d,w_d", "p");
        add_pair(b, "p", 0.01f, 0);
        builder_node(b, "Add", "p_d,x_d", "t");
        add_pair(b, "t", 0.02f, 120);
        builder_output(b, "t_d");
        begin(&s, b);
        expect(&s, (float[]){1, -1, 0.5f, -0.5f, 2, -2}, (float[]){1, 0, 0.5f, 0, 2, 0}, 0.03f);
        end(&s);
}

#define FEW   33u
#define POOLS 15u

/* What kernels read and write by vectors has fewer bytes than two of them, and nothing before it. */
Test(answers, bytes_that_fill_no_vectors_are_pooled)
{
        struct builder *b = builder_new(12);
        uint8_t x[3 * FEW];
        struct scene s = {0};
        Onnx__NodeProto *node;

        builder_input(b, "x", SL_DTYPE_U8, DIMS(3, 1, FEW));
        node = builder_node(b, "MaxPool", "x", "y");
        builder_attr_ints(b, node, "kernel_shape", 1, (int64_t[]){4});
        builder_attr_ints(b, node, "strides", 1, (int64_t[]){2});
        builder_output(b, "y");
        begin_ports(&s, b, "", &(struct port){STARLING_U8, 3, {3, 1, FEW}}, &(struct port){STARLING_U8, 3, {3, 1, POOLS}});
        for (uint32_t i = 0; i < 3 * FEW; i++)
                x[i] = (uint8_t)(i * 37);
        ask(&s, x);
        for (uint32_t i = 0; i < 3 * POOLS; i++) {
                const uint8_t *window = x + i / POOLS * FEW + i % POOLS * 2;
                uint8_t most = 0;

                for (uint32_t k = 0; k < 4; k++)
                        most = window[k] > most ? window[k] : most;
                cr_expect_eq(((const uint8_t *)s.y.data)[i], most, "element %u", i);
        }
        end(&s);
}

#define IMAGES 16u

/* Windows of 2^20 x 2^20 places, of which 9 are there. */
Test(answers, windows_far_wider_than_the_image_keep_nobody_waiting)
{
        const struct port image = {STARLING_F32, 4, {1, IMAGES, 3, 3}}, made = {STARLING_F32, 4, {1, IMAGES, 2, 2}};
        struct builder *b = builder_new(12);
        float x[IMAGES * 9];
        struct scene s = {0};
        Onnx__NodeProto *node;
        int64_t size = 1 << 20;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, IMAGES, 3, 3));
        node = builder_node(b, "MaxPool", "x", "y");
        builder_attr_ints(b, node, "kernel_shape", 2, (int64_t[]){size, size});
        builder_attr_ints(b, node, "strides", 2, (int64_t[]){size, size});
        builder_attr_ints(b, node, "pads", 4, (int64_t[]){size - 1, size - 1, size - 1, size - 1});
        builder_output(b, "y");
        begin_ports(&s, b, "", &image, &made);
        for (uint32_t i = 0; i < IMAGES * 9; i++)
                x[i] = (float)i;
        ask(&s, x);
        for (uint32_t i = 0; i < IMAGES; i++) {
                const float *y = (const float *)s.y.data + 4 * (size_t)i;

                cr_expect_eq(y[0], x[9 * i], "image %u: its first pixel alone", i);
                cr_expect_eq(y[3], x[9 * i + 8], "image %u: all but its first row and column", i);
        }
        end(&s);
}

/* y = p + relu(p) of p = x, reshaped by sizes that are computed, as exporters write them. */
Test(answers, float16_whose_shapes_are_computed)
{
        const uint16_t one = 0x3c00, two = 0x4000, minus = 0xbc00, half = 0x3800, four = 0x4400;
        const uint16_t identity[9] = {one, 0, 0, 0, one, 0, 0, 0, one};
        const uint16_t x[ELEMENTS] = {one, minus, 0, two, half, minus}, y[ELEMENTS] = {two, minus, 0, four, one, minus};
        const struct port port = {STARLING_F16, 2, {2, 3}};
        struct builder *b = builder_new(13);
        struct scene s = {0};

        builder_input(b, "x", SL_DTYPE_F16, DIMS(-1, 3));
        builder_raw(b, "w", SL_DTYPE_F16, DIMS(3, 3), identity);
        builder_raw(b, "zero", SL_DTYPE_I64, DIMS(1), (int64_t[]){0});
        builder_raw(b, "three", SL_DTYPE_I64, DIMS(1), (int64_t[]){3});
        builder_node(b, "MatMul", "x,w", "p");
        builder_node(b, "Relu", "p", "r");
        builder_node(b, "Add", "p,r", "sum");
        builder_node(b, "Shape", "sum", "shape");
        builder_node(b, "Gather", "shape,zero", "n");
        builder_attr_int(b, builder_node(b, "Concat", "n,three", "sizes"), "axis", 0);
        builder_node(b, "Reshape", "sum,sizes", "y");
        builder_output(b, "y");
        begin_ports(&s, b, "", &port, &port);
        ask(&s, x);
        for (uint32_t i = 0; i < ELEMENTS; i++)
                cr_expect_eq(((const uint16_t *)s.y.data)[i], y[i], "element %u", i);
        end(&s);
}

#define CHANNELS 8u
#define FILTERS  16u

/* Over one pixel with a stride: filter f weighs channel c by f + c, all of them exact in float16. */
Test(answers, filters_in_halves_over_one_pixel_with_a_stride)
{
        float w[FILTERS * CHANNELS], x[CHANNELS];
        struct builder *b = builder_new(13);
        struct scene s = {0};

        for (uint32_t i = 0; i < FILTERS * CHANNELS; i++)
                w[i] = (float)(i / CHANNELS + i % CHANNELS);
        for (uint32_t c = 0; c < CHANNELS; c++)
                x[c] = (float)c;
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, CHANNELS, 1, 1));
        builder_floats(b, "w", DIMS(FILTERS, CHANNELS, 1, 1), w);
        builder_attr_ints(b, builder_node(b, "Conv", "x,w", "y"), "strides", 2, (int64_t[]){2, 2});
        builder_output(b, "y");
        begin_ports(&s, b, "weights: f16\n", &(struct port){STARLING_F32, 4, {1, CHANNELS, 1, 1}},
                &(struct port){STARLING_F32, 4, {1, FILTERS, 1, 1}});
        ask(&s, x);
        for (uint32_t f = 0; f < FILTERS; f++)
                cr_expect_eq(((const float *)s.y.data)[f], (float)(28 * f + 140), "filter %u", f); /* sums of c and of c * c */
        end(&s);
}

/* Every second of 13 columns, which the rounded scale of 7 to 13 is not to move. */
Test(answers, corners_that_are_aligned_meet_whole_columns)
{
        float x[13];
        struct builder *b = builder_new(13);
        struct scene s = {0};
        Onnx__NodeProto *resize;

        for (uint32_t i = 0; i < 13; i++)
                x[i] = (float)i;
        builder_input(b, "x", SL_DTYPE_F32, DIMS(1, 1, 1, 13));
        builder_ints(b, "sizes", DIMS(4), (int64_t[]){1, 1, 1, 7});
        resize = builder_node(b, "Resize", "x,,,sizes", "y");
        builder_attr_string(b, resize, "coordinate_transformation_mode", "align_corners");
        builder_attr_string(b, resize, "nearest_mode", "floor");
        builder_output(b, "y");
        begin_ports(&s, b, "", &(struct port){STARLING_F32, 4, {1, 1, 1, 13}}, &(struct port){STARLING_F32, 4, {1, 1, 1, 7}});
        ask(&s, x);
        for (uint32_t i = 0; i < 7; i++)
                cr_expect_eq(((const float *)s.y.data)[i], (float)(2 * i), "column %u", i);
        end(&s);
}
