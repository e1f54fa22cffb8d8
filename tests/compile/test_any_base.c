/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan of any size that is derived from the plan of one size: what that has packed as its kernels want it is there once. So is
 * what instances of a plan of any size pack, however many there are.
 */
#include "base/error.h"
#include "builder.h"
#include "compile.h"
#include "lower_options.h"
#include "plan.h"

#include <criterion/criterion.h>
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

static float x[ROWS * WIDTH];

/* Each node has a kernel from the first run on, so that the answer does not hang on what anything takes. */
static struct sl_instance *new_instance(struct sl_plan *plan)
{
        struct sl_instance *instance;
        struct sl_error error = {""};

        cr_assert_eq(sl_instance_new(plan, 1, &instance, &error), 0, "%s", error.text);
        sl_instance_meet(instance, true);
        return instance;
}

static void run(struct sl_instance *instance, float *ret_y)
{
        static const struct sl_shape shape = {.rank = 3, .dims = {1, ROWS, WIDTH}};
        struct sl_open_output made = {.capacity_bytes = sizeof(x)};
        struct sl_error error = {""};
        const void *input = x;
        void *output = ret_y;

        sl_instance_give(instance, &shape);
        for (uint32_t i = 0; i < RUNS; i++)
                cr_assert_eq(sl_instance_run_open(instance, 1, &input, &output, &made, &error), 0, "%s", error.text);
}

Test(any_base, what_is_packed_is_there_once_for_base_and_instances)
{
        const uint64_t weight_bytes = 2ull * WIDTH * INNER * sizeof(float);
        static float alone_y[ROWS * WIDTH], derived_y[ROWS * WIDTH], second_y[ROWS * WIDTH];
        struct sl_instance *first, *second, *on_base;
        struct sl_lower_options sized, any;
        struct sl_plan *base, *alone, *derived;
        uint64_t packed_bytes;
        char path[40];

        for (uint32_t i = 0; i < ROWS * WIDTH; i++)
                x[i] = (float)(i * 7 % 13) / 13 - 0.5f;
        write_model(path);
        sl_lower_options_init(&any);
        any.any_size = SL_ANY_SIZE_ONLY;
        sl_lower_options_init(&sized);
        cr_assert_eq(sl_dim_sizes_add(&sized.shapes, "M", 1, ROWS), 0);
        base = compile(path, &sized, NULL);
        alone = compile(path, &any, NULL);
        derived = compile(path, &any, base);
        first = new_instance(alone);
        second = new_instance(alone);
        on_base = new_instance(derived);
        run(first, alone_y);
        packed_bytes = sl_plan_packed_bytes(alone);
        cr_expect_geq(packed_bytes, weight_bytes);
        cr_expect_leq(packed_bytes, weight_bytes + weight_bytes / 8, "and the padding of panels");
        run(second, second_y);
        cr_expect_eq(sl_plan_packed_bytes(alone), packed_bytes, "a second instance adds nothing");
        run(on_base, derived_y);
        cr_expect_leq(sl_plan_packed_bytes(derived), packed_bytes - weight_bytes / 2, "the base has some of it");
        cr_expect_eq(sl_plan_packed_bytes(base), 0u);
        cr_expect_arr_eq(second_y, alone_y, sizeof(alone_y));
        cr_expect_arr_eq(derived_y, alone_y, sizeof(alone_y));
        sl_instance_free(first);
        sl_instance_free(second);
        sl_instance_free(on_base);
        sl_plan_free(derived);
        sl_plan_free(alone);
        sl_plan_free(base);
        unlink(path);
}
