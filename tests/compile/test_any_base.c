/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan of any size that is derived from the plan of one size: what that has packed as its kernels want it is there once.
 */
#include "base/error.h"
#include "builder.h"
#include "compile.h"
#include "lower_options.h"
#include "plan.h"
#include "ref/live.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WIDTH 64
#define INNER 512
#define ROWS  48
#define RUNS  40

/* Two products, 128 KiB of weights each. */
static void build(struct builder *b)
{
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2, WIDTH));
        builder_random(b, "up", DIMS(WIDTH, INNER));
        builder_random(b, "down", DIMS(INNER, WIDTH));
        builder_node(b, "MatMul", "x,up", "wide");
        builder_node(b, "Relu", "wide", "bent");
        builder_node(b, "MatMul", "bent,down", "y");
        builder_output(b, "y");
}

static void write_model(char path[40])
{
        struct builder *b = builder_new(17);
        const uint8_t *bytes;
        size_t n_bytes;
        int fd;

        build(b);
        bytes = builder_pack(b, &n_bytes);
        strcpy(path, "/tmp/starling-any-base-XXXXXX");
        fd = mkstemp(path);
        cr_assert_eq(write(fd, bytes, n_bytes), (ssize_t)n_bytes);
        close(fd);
        builder_free(b);
}

/* @base: NULL: it stands alone. */
static struct sl_plan *compile(const char *path, const struct sl_lower_options *options, struct sl_plan *base)
{
        int fd = memfd_create("plan", MFD_CLOEXEC);
        struct sl_plan *plan = NULL;
        struct sl_error error = {""};

        cr_assert_eq(sl_compile_here(path, options, base ? sl_plan_fd(base) : -1, fd, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_open_on(fd, base, &plan, &error), 0, "%s", error.text);
        close(fd);
        return plan;
}

static bool grant_all(struct sl_pool_grant *grant, uint64_t wanted)
{
        grant->bytes = wanted;
        return true;
}

/* The most that its runs had in use, what they packed included. */
static uint64_t run(struct sl_plan *plan, float *ret_y)
{
        static float x[ROWS * WIDTH];
        const struct sl_shape shape = {.rank = 3, .dims = {1, ROWS, WIDTH}};
        struct sl_open_output made = {.capacity_bytes = sizeof(x)};
        struct sl_pool_grant grant = {.more = grant_all};
        struct sl_instance *instance;
        struct sl_error error = {""};
        const void *input = x;
        void *output = ret_y;

        for (uint32_t i = 0; i < ROWS * WIDTH; i++)
                x[i] = (float)(i * 7 % 13) / 13 - 0.5f;
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &error), 0, "%s", error.text);
        sl_instance_lend(instance, &grant);
        sl_instance_give(instance, &shape);
        for (uint32_t i = 0; i < RUNS; i++)
                cr_assert_eq(sl_instance_run_open(instance, 1, &input, &output, &made, &error), 0, "%s", error.text);
        sl_instance_free(instance);
        return grant.peak_bytes;
}

Test(any_base, what_the_base_has_packed_is_not_packed_again)
{
        const uint64_t weight_bytes = (uint64_t)WIDTH * INNER * sizeof(float);
        static float alone_y[ROWS * WIDTH], derived_y[ROWS * WIDTH];
        struct sl_lower_options sized, any;
        struct sl_plan *base, *alone, *derived;
        uint64_t alone_bytes, derived_bytes;
        char path[40];

        write_model(path);
        sl_lower_options_init(&any);
        any.any_size = SL_ANY_SIZE_ONLY;
        sl_lower_options_init(&sized);
        cr_assert_eq(sl_dim_sizes_add(&sized.shapes, "M", 1, ROWS), 0);
        base = compile(path, &sized, NULL);
        alone = compile(path, &any, NULL);
        derived = compile(path, &any, base);
        alone_bytes = run(alone, alone_y);
        derived_bytes = run(derived, derived_y);
        cr_expect_geq(alone_bytes, derived_bytes + weight_bytes);
        for (uint32_t i = 0; i < ROWS * WIDTH; i++)
                cr_assert(fabsf(alone_y[i] - derived_y[i]) <= 1e-4f * (1 + fabsf(alone_y[i])));
        sl_plan_free(derived);
        sl_plan_free(alone);
        sl_plan_free(base);
        unlink(path);
}
