/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of models, tensors and dimensions at their limit, from the file to libstarling and back: whole, told apart by their last
 * byte, and refused when they are a byte longer. The names are in UTF-8, whose characters a limit of bytes cuts.
 */
#include "builder.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 1024

/* @bytes long: an umlaut again and again, then what fills it up and @last. */
static char *long_name(struct builder *b, size_t bytes, char last)
{
        char *name = builder_alloc(b, bytes + 1);

        memset(name, '-', bytes);
        for (size_t i = 0; i + 3 < bytes; i += 2)
                memcpy(name + i, "\xc3\xa4", 2);
        name[bytes - 1] = last;
        return name;
}

static void name_dimension(struct builder *b, uint32_t input, uint32_t axis, char *name)
{
        Onnx__TensorShapeProto *shape = b->graph.input[input]->type->tensor_type->shape;

        shape->dim[axis]->dim_param = name;
}

/* Inputs a [N,p], b [N,q], c [N,p]; outputs a - c and -b. The names differ in their last byte. */
static struct builder *of_names(size_t tensor_bytes, size_t dimension_bytes)
{
        struct builder *b = builder_new(13);
        char nodes[3 * (LIMIT + 2)];

        for (uint32_t i = 0; i < 3; i++) {
                builder_input(b, long_name(b, tensor_bytes, (char)('a' + i)), SL_DTYPE_F32, DIMS(-1, -2));
                name_dimension(b, i, 1, long_name(b, dimension_bytes, i == 1 ? 'q' : 'p'));
        }
        snprintf(nodes, sizeof(nodes), "%s,%s", b->graph.input[0]->name, b->graph.input[2]->name);
        builder_node(b, "Sub", nodes, long_name(b, tensor_bytes, 'y'));
        builder_node(b, "Neg", b->graph.input[1]->name, long_name(b, tensor_bytes, 'z'));
        for (char last = 'y'; last <= 'z'; last++)
                builder_declare_output(b, long_name(b, tensor_bytes, last), SL_DTYPE_F32, DIMS(-1, -2));
        for (uint32_t i = 0; i < 2; i++)
                b->graph.output[i]->type->tensor_type->shape->dim[1]->dim_param = long_name(b, dimension_bytes, i ? 'q' : 'p');
        return b;
}

static void add(const struct world *world, const char *model, struct builder *b)
{
        size_t bytes;
        const uint8_t *file = builder_pack(b, &bytes);

        world_add_model(world, model, file, bytes);
}

static struct starling_tensor row(struct starling_client *client, uint32_t columns, float value)
{
        const uint32_t dims[] = {1, columns};
        struct starling_tensor tensor;

        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 2, dims, &tensor), 0);
        for (uint32_t i = 0; i < columns; i++)
                ((float *)tensor.data)[i] = value;
        return tensor;
}

/* The ports in the order of the file, each by its whole name. */
static void expect_ports(const struct starling_model *model, const struct builder *b)
{
        const struct starling_model_info *info = starling_model_describe(model);

        cr_assert_eq(info->n_inputs, 3);
        cr_assert_eq(info->n_outputs, 2);
        for (uint32_t i = 0; i < 3; i++)
                cr_expect_str_eq(info->inputs[i].name, b->graph.input[i]->name);
        for (uint32_t i = 0; i < 2; i++)
                cr_expect_str_eq(info->outputs[i].name, b->graph.output[i]->name);
        cr_expect_eq(strlen(info->inputs[0].name), LIMIT);
}

/* a and c have one dimension, b has another. */
static int infer(struct starling_client *client, struct starling_queue *queue, struct starling_model *model, uint32_t a, uint32_t b,
        uint32_t c)
{
        const struct starling_tensor inputs[] = {row(client, a, 5), row(client, b, 7), row(client, c, 2)};
        struct starling_tensor outputs[] = {row(client, a, 0), row(client, b, 0)};
        struct starling_request request = {.model = model, .inputs = inputs, .outputs = outputs, .n_inputs = 3, .n_outputs = 2};
        int status = starling_infer(queue, &request, NULL);

        for (uint32_t i = 0; i < a && status == 0; i++)
                cr_expect_eq(((float *)outputs[0].data)[i], 3);
        for (uint32_t i = 0; i < b && status == 0; i++)
                cr_expect_eq(((float *)outputs[1].data)[i], -7);
        for (uint32_t i = 0; i < 5; i++)
                starling_free(client, i < 3 ? inputs[i].data : outputs[i - 3].data);
        return status;
}

static void expect_refused(struct starling_client *client, const char *model, const char *words)
{
        struct starling_model *opened = NULL;
        struct starling_error error = {""};

        cr_expect_eq(starling_model_open(client, model, &opened, &error), -EIO, "%s: %s", model, error.text);
        cr_expect_not_null(strstr(error.text, words), "%s: \"%s\" is not in \"%s\"", model, words, error.text);
}

static void rename_model(const struct world *world, const char *model, const char *name)
{
        char yaml[LIMIT + 64];

        snprintf(yaml, sizeof(yaml), "name: \"%s\"\n", name);
        world_add_model_config(world, model, yaml);
}

Test(long_names, of_1024_bytes_are_whole_and_differ_by_their_last_byte_and_longer_ones_are_refused, .timeout = 120)
{
        struct builder *b = of_names(LIMIT, LIMIT), *long_tensors = of_names(LIMIT + 1, LIMIT),
                       *long_dimensions = of_names(LIMIT, LIMIT + 1);
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_error error = {""};
        struct world world;

        world_init(&world);
        world_keep(&world, "");
        add(&world, "limit", b);
        add(&world, "model", b);
        rename_model(&world, "model", long_name(b, LIMIT, 'm'));
        add(&world, "other", b);
        rename_model(&world, "other", long_name(b, LIMIT, 'n'));
        add(&world, "models", b);
        rename_model(&world, "models", long_name(b, LIMIT + 1, 'm'));
        add(&world, "tensors", long_tensors);
        add(&world, "dimensions", long_dimensions);
        world_start(&world);
        client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, &error), 0, "%s", error.text);
        cr_assert_eq(starling_model_open(client, "limit", &model, &error), 0, "%s", error.text);
        expect_ports(model, b);
        cr_expect_eq(infer(client, queue, model, 3, 5, 3), 0);
        cr_expect_eq(infer(client, queue, model, 4, 4, 4), 0);
        cr_expect_eq(infer(client, queue, model, 3, 5, 5), -EINVAL);
        for (char last = 'm'; last <= 'n'; last++) {
                cr_assert_eq(starling_model_open(client, long_name(b, LIMIT, last), &model, &error), 0, "%s", error.text);
                cr_expect_str_eq(starling_model_describe(model)->name, long_name(b, LIMIT, last));
                cr_expect_eq(infer(client, queue, model, 3, 5, 3), 0);
        }
        expect_refused(client, "models", "it has 1025 bytes, a model's has at most 1024");
        expect_refused(client, "tensors", "its name has 1025 bytes, the limit is 1024");
        expect_refused(client, "dimensions", "has 1025 bytes, the limit is 1024");
        starling_close(client);
        world_stop(&world);
        world_free(&world);
        builder_free(b);
        builder_free(long_tensors);
        builder_free(long_dimensions);
}
