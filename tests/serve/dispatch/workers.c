/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a model has its workers, however they come. */
#include "workers.h"

#include "executor.h"
#include "let.h"

#include <criterion/criterion.h>

static struct sl_let gpus[2] = {{.gpu = {.name = "gpu:0"}}, {.gpu = {.name = "gpu:1", .gpu = 1}}}, cores;

static struct sl_executor worker(struct sl_let *let, uint32_t batch_max)
{
        return (struct sl_executor){.let = let, .batch_max = batch_max};
}

/* Neighbours are on different GPUs as long as there are such, in every order of coming. */
Test(workers, of_several_gpus_take_turns_and_the_largest_batches_are_first)
{
        struct sl_executor all[] = {worker(&gpus[0], 4), worker(&gpus[0], 4), worker(&gpus[1], 4), worker(&gpus[1], 4),
                worker(&gpus[0], 1), worker(&gpus[1], 1)};

        for (uint32_t first = 0; first < 6; first++)
                for (uint32_t step = 1; step < 6; step += 4) {
                        struct sl_workers workers = {.n = 0};

                        for (uint32_t i = 0; i < 6; i++)
                                sl_workers_add(&workers, &all[(first + i * step) % 6]);
                        for (uint32_t i = 0; i < 6; i++) {
                                cr_expect_eq(workers.list[i]->batch_max, i < 4 ? 4u : 1u);
                                cr_expect(i % 2 == 0 || workers.list[i]->let != workers.list[i - 1]->let, "%u", i);
                        }
                }
}

Test(workers, that_leave_stay_behind_those_that_come)
{
        struct sl_executor all[] = {worker(&gpus[0], 4), worker(&gpus[0], 4), worker(&gpus[1], 4)};
        struct sl_workers workers = {.n = 0};

        sl_workers_add(&workers, &all[0]);
        sl_workers_add(&workers, &all[1]);
        cr_assert(sl_workers_dismiss(&workers, &all[0]));
        sl_workers_add(&workers, &all[2]);
        cr_assert_eq(workers.n, 2);
        cr_assert_eq(workers.n_leaving, 1);
        cr_expect_eq(workers.list[2], &all[0]);
        cr_expect(workers.list[0] == &all[1] && workers.list[1] == &all[2]);
}

Test(workers, on_cores_are_in_the_order_in_which_they_came)
{
        struct sl_executor all[] = {worker(&cores, 1), worker(&cores, 4), worker(&cores, 2)};
        struct sl_workers workers = {.n = 0};

        for (uint32_t i = 0; i < 3; i++)
                sl_workers_add(&workers, &all[i]);
        for (uint32_t i = 0; i < 3; i++)
                cr_expect_eq(workers.list[i], &all[i]);
}
