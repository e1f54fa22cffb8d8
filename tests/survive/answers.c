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

/* One model "m" from x to y, both float32 [2, 3]. */
static void begin(struct scene *s, struct builder *b)
{
        struct starling_error error = {""};
        size_t bytes;
        const uint8_t *file = builder_pack(b, &bytes);

        world_init(&s->world);
        world_add_model(&s->world, "m", file, bytes);
        builder_free(b);
        world_start(&s->world);
        s->client = world_connect(&s->world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
        cr_assert_eq(starling_model_open(s->client, "m", &s->model, &error), 0, "%s\n%s", error.text, world_log(&s->world));
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){2, 3}, &s->x), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){2, 3}, &s->y), 0);
}

static void end(struct scene *s)
{
        starling_close(s->client);
        world_stop(&s->world);
        world_free(&s->world);
}

static void expect(struct scene *s, const float x[ELEMENTS], const float y[ELEMENTS], float tolerance)
{
        struct starling_request request = {.model = s->model, .inputs = &s->x, .n_inputs = 1, .outputs = &s->y, .n_outputs = 1};

        memcpy(s->x.data, x, s->x.bytes);
        cr_assert_eq(starling_infer(s->queue, &request, NULL), 0, "%s\n%s", starling_queue_error(s->queue), world_log(&s->world));
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
