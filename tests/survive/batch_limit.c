/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling models --verbose` says of a worker, for models as they are and for one whose configuration names a batch.
 */
#include "builder.h"
#include "world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* 16 MiB in: with what it makes of them, two samples fit into the default of 64 MiB and four do not. */
static void add_large_model(const struct world *world)
{
        struct builder *b = builder_new(13);
        const uint8_t *bytes;
        size_t n_bytes;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 4, 1024, 1024));
        builder_attr_ints(b, builder_node(b, "ReduceMax", "x", "y"), "axes", 2, (int64_t[]){2, 3});
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, 4, 1, 1));
        bytes = builder_pack(b, &n_bytes);
        world_add_model(world, "large", bytes, n_bytes);
        builder_free(b);
}

/* The lines of a model and of its worker. */
static void list(const struct world *world, const char *model, char *ret_text, size_t bytes)
{
        char command[512];
        FILE *output;
        size_t n;

        snprintf(command, sizeof(command), "STARLING_SOCKET_DIR=%s %s models --verbose --name %s | grep -A 1 '^%s '", world->folder,
                world->program, world->name, model);
        output = popen(command, "r");
        cr_assert_not_null(output);
        n = fread(ret_text, 1, bytes - 1, output);
        ret_text[n] = 0;
        cr_assert_eq(pclose(output), 0, "%s: %s", command, ret_text);
}

static void expect(const struct world *world, const char *model, const char *wanted)
{
        char text[1024];

        list(world, model, text, sizeof(text));
        cr_assert_not_null(strstr(text, wanted), "\"%s\" is not in:\n%s", wanted, text);
}

Test(batch_limit, models_say_their_batch_and_why, .timeout = 60)
{
        struct world world;

        world_init(&world);
        world_keep(&world, "lenet");
        add_large_model(&world);
        world_add_model_config(&world, "large", "{}\n");
        world_start(&world);
        expect(&world, "large", ": batch_max 2 (a larger one would pass batch_bytes_max), plan 0.0 MiB");
        expect(&world, "large", "pool 32.0 MiB");
        expect(&world, "lenet", ": batch_max 32 (the plan has no larger one), plan ");
        world_stop(&world);

        world_add_model_config(&world, "large", "batch_max: 4\n");
        world_start(&world);
        expect(&world, "large", ": batch_max 4 (configured), plan 0.0 MiB");
        expect(&world, "large", "pool 64.0 MiB");
        world_stop(&world);
        world_free(&world);
}
