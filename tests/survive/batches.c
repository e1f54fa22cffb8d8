/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model whose leading dimension is no batch, though its file leaves it open: each request is what the file says for its size.
 */
#include "builder.h"
#include "world.h"

#include <criterion/criterion.h>
#include <string.h>

#define COLUMNS 4u
#define ROWS    3u

/* Without axes, Squeeze makes a vector of one row: then the sums run along it, else down the columns. */
static void add_sums(const struct world *world)
{
        struct builder *b = builder_new(13);
        const uint8_t *file;
        size_t bytes;

        builder_input(b, "x", STARLING_F32, DIMS(-1, COLUMNS, 1));
        builder_ints(b, "first", DIMS(), (int64_t[]){0});
        builder_ints(b, "flat", DIMS(1), (int64_t[]){-1});
        builder_node(b, "Squeeze", "x", "rows");
        builder_node(b, "CumSum", "rows,first", "sums");
        builder_node(b, "Reshape", "sums,flat", "y");
        builder_declare_output(b, "y", STARLING_F32, DIMS(-2));
        file = builder_pack(b, &bytes);
        world_add_model(world, "sums", file, bytes);
        builder_free(b);
}

static void expect_sums(struct starling_client *client, struct starling_queue *queue, struct starling_model *model, uint32_t rows)
{
        struct starling_tensor x, y;
        struct starling_completion done;
        uint32_t step = rows == 1 ? 1 : COLUMNS;

        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 3, (uint32_t[]){rows, COLUMNS, 1}, &x), 0);
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 1, (uint32_t[]){rows * COLUMNS}, &y), 0);
        float *in = x.data, *out = y.data;

        for (uint32_t i = 0; i < rows * COLUMNS; i++)
                in[i] = (float)(i + 1);
        struct starling_request request = {.model = model, .inputs = &x, .n_inputs = 1, .outputs = &y, .n_outputs = 1};

        cr_assert_eq(starling_infer(queue, &request, &done), 0, "%u rows: %s", rows, starling_queue_error(queue));
        for (uint32_t i = 0; i < rows * COLUMNS; i++) {
                float before = i < step ? 0 : out[i - step];

                cr_assert_eq(out[i], before + in[i], "%u rows, element %u: %g", rows, i, (double)out[i]);
        }
        starling_free(client, x.data);
        starling_free(client, y.data);
}

Test(batches, a_model_that_reads_its_batch_gets_each_request_whole, .timeout = 60)
{
        struct world world;
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_error error = {""};

        world_init(&world);
        world_keep(&world, "");
        add_sums(&world);
        world_start(&world);
        client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, "sums", &model, &error), 0, "%s", error.text);
        for (uint32_t rows = ROWS; rows >= 1; rows--)
                expect_sums(client, queue, model, rows);
        starling_close(client);
        world_stop(&world);
        world_free(&world);
}
