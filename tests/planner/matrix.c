/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix.h"
#include "base/error.h"
#include "fleet.h"
#include "problem.h"

#include <criterion/criterion.h>
#include <string.h>

/* Two GPUs of 1,000 bytes and a CPU; three models of 100 bytes and 10 a sample. */
struct world {
        struct sl_costs *costs;
        struct sl_problem problem;
        struct sl_matrix *matrix;
};

static struct world world_new(void)
{
        struct world world = {.costs = plain_fleet(2, 3), .matrix = sl_matrix_new(3, 3)};

        world.problem.costs = world.costs;
        for (uint32_t m = 0; m < 3; m++)
                *sl_matrix_entry(world.matrix, m, m) = 8;
        return world;
}

static void world_free(struct world *world)
{
        sl_matrix_free(world->matrix);
        sl_costs_free(world->costs);
}

static void expect(struct world *world, int r, const char *text)
{
        struct sl_error error = {""};

        cr_expect_eq(sl_matrix_check(&world->problem, world->matrix, &error), r, "%s", error.text);
        cr_expect(strstr(error.text, text), "\"%s\" has no \"%s\"", error.text, text);
        world_free(world);
}

Test(matrix, rows_may_be_zero_columns_may_not)
{
        struct world world = world_new();

        *sl_matrix_entry(world.matrix, 0, 1) = 8;
        *sl_matrix_entry(world.matrix, 1, 1) = 0;
        cr_expect_eq(sl_matrix_devices(world.matrix), 2);
        cr_expect_eq(sl_matrix_check(&world.problem, world.matrix, NULL), 0);
        *sl_matrix_entry(world.matrix, 0, 1) = 0;
        expect(&world, -EINVAL, "allocation: \"m1\" has no worker on any of 3 devices");
}

Test(matrix, a_batch_size_that_is_not_allowed_is_named_with_its_cell)
{
        struct world world = world_new();

        *sl_matrix_entry(world.matrix, 1, 2) = 12;
        expect(&world, -EINVAL, "allocation: \"m2\" on \"gpu1\": batch 12, allowed are 8 16 32");
}

Test(matrix, a_device_without_enough_memory_is_named_with_its_largest_cell_and_the_limit)
{
        struct world world = world_new();

        for (uint32_t m = 0; m < 3; m++)
                *sl_matrix_entry(world.matrix, 0, m) = m == 1 ? 32 : 16;
        cr_expect_eq(sl_matrix_memory(&world.problem, world.matrix, 0), 940);
        cr_expect_eq(sl_matrix_check(&world.problem, world.matrix, NULL), 0);
        world.problem.headroom = 0.1;
        expect(&world, -ENOSPC, "\"m1\" on \"gpu0\", batch 32, takes 420 bytes: all there take 940, the limit is 900 of 1000");
}

Test(matrix, zero_memory_holds_nothing)
{
        struct world world = world_new();

        world.costs->devices[0].memory_bytes = 0;
        expect(&world, -ENOSPC, "the limit is 0 of 0");
}

Test(matrix, lets_of_a_device_share_its_memory_and_a_models_weights)
{
        struct world world = world_new();

        world.costs->devices[1].memory_of = 0;
        *sl_matrix_entry(world.matrix, 1, 0) = 16;
        cr_expect_eq(sl_matrix_memory(&world.problem, world.matrix, 0), 100 + 80 + 160 + 100 + 80);
        cr_expect_eq(sl_matrix_memory(&world.problem, world.matrix, 1), 0);
        world.costs->devices[0].memory_bytes = 519;
        expect(&world, -ENOSPC, "all there take 520, the limit is 519 of 519");
}

/* 2^14 workers of 2^50 bytes each take 2^64, which is 0 of 64 bits. */
Test(matrix, no_memory_is_so_large_that_its_sum_comes_round)
{
        struct sl_costs *costs = plain_fleet(SL_COST_DEVICES_MAX - 1, 4);
        struct world world = {costs, {.costs = costs}, sl_matrix_new(SL_COST_DEVICES_MAX, 4)};

        for (uint32_t m = 0; m < 4; m++)
                costs->models[m].weights_bytes = 0;
        for (uint32_t d = 0; d < SL_COST_DEVICES_MAX; d++) {
                costs->devices[d].memory_of = 0;
                costs->devices[d].class_index = 1;
                for (uint32_t m = 0; m < 4; m++)
                        *sl_matrix_entry(world.matrix, d, m) = 8;
        }
        for (uint32_t m = 0; m < 4; m++)
                sl_costs_cell(costs, 1, m, 0)->workspace_bytes = SL_COST_BYTES_MAX;
        costs->devices[0].memory_bytes = SL_COST_BYTES_MAX;
        cr_assert_not(sl_matrix_fits(&world.problem, world.matrix));
        expect(&world, -ENOSPC, "takes 1125899906842624 bytes");
}

Test(matrix, forbidden_devices_and_pins_are_kept)
{
        struct world world = world_new();
        const bool forbidden[] = {false, true, false};
        uint32_t pinned[9];

        memset(pinned, 0xff, sizeof(pinned));
        world.problem.forbidden = forbidden;
        cr_expect_eq(sl_matrix_check(&world.problem, world.matrix, NULL), -EINVAL);
        world.problem.forbidden = NULL;
        world.problem.pinned = pinned;
        cr_expect_eq(sl_matrix_check(&world.problem, world.matrix, NULL), 0);
        pinned[4] = 16;
        expect(&world, -EINVAL, "allocation: \"m1\" on \"gpu1\": batch 8, pinned to 16");
}

Test(matrix, a_pin_or_a_headroom_that_cannot_be_is_refused)
{
        struct world world = world_new();
        uint32_t pinned[9];
        struct sl_error error;

        memset(pinned, 0xff, sizeof(pinned));
        world.problem.pinned = pinned;
        cr_expect_eq(sl_problem_check(&world.problem, NULL), 0);
        pinned[1] = 7;
        cr_expect_eq(sl_problem_check(&world.problem, &error), -EINVAL);
        cr_expect_str_eq(error.text, "allocation: \"m1\" pinned to \"gpu0\", batch 7: no cost is known for that");
        pinned[1] = 0;
        world.problem.headroom = 1;
        cr_expect_eq(sl_problem_check(&world.problem, &error), -EINVAL);
        world_free(&world);
}

Test(matrix, another_size_than_the_costs_is_refused)
{
        struct world world = world_new();

        sl_matrix_free(world.matrix);
        world.matrix = sl_matrix_new(2, 3);
        expect(&world, -EINVAL, "allocation: 2 x 3, the costs are of 3 devices and 3 models");
}
