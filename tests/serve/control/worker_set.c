/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of workers on several GPUs: who is on which, and what is left of them where there is none. */
#include "worker_set.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static const struct sl_gpu_let two[] = {{.name = "gpu:1", .gpu = 1, .percent = 100}, {.name = "gpu:3/50%", .gpu = 3, .percent = 50}};

static struct sl_worker_set set_of(uint32_t n, const char *gpu)
{
        struct sl_worker_set set = {.n = n};
        struct sl_error error;

        for (uint32_t i = 0; i < n; i++) {
                set.wishes[i].batch_size = n - i;
                if (gpu)
                        cr_assert_eq(sl_worker_wish_place(&set.wishes[i], gpu, NULL, &error), 0, "%s", error.text);
        }
        return set;
}

/* As where a policy goes through workers in order. */
Test(worker_set, has_every_worker_once_for_each_gpu_and_neighbours_apart)
{
        struct sl_worker_set set = set_of(2, NULL), spread;
        struct sl_error error;
        uint32_t gpus[SL_GPUS_MAX];

        cr_assert_eq(sl_worker_set_spread(&set, two, 2, &spread, &error), 0);
        cr_assert_eq(spread.n, 4);
        for (uint32_t i = 0; i < 4; i++) {
                cr_expect_eq(spread.wishes[i].batch_size, 2 - i / 2);
                cr_expect_str_eq(spread.wishes[i].gpu.name, two[i % 2].name);
        }
        cr_assert_eq(sl_worker_set_gpus(&spread, gpus), 2);
        cr_expect(gpus[0] == 1 && gpus[1] == 3);
        cr_expect_eq(sl_worker_set_gpus(&set, gpus), 0);
}

Test(worker_set, of_each_gpu_keeps_its_percentage)
{
        struct sl_worker_set set = set_of(1, NULL), spread;
        struct sl_error error;
        uint32_t gpus[SL_GPUS_MAX];

        set.wishes[0].gpu = sl_gpu_let_of(SL_GPU_EACH, 25);
        cr_expect(sl_worker_set_wants_each(&set));
        cr_expect_eq(sl_worker_set_gpus(&set, gpus), 0);
        cr_assert_eq(sl_worker_set_spread(&set, two, 2, &spread, &error), 0);
        cr_expect_not(sl_worker_set_wants_each(&spread));
        cr_assert_eq(spread.n, 2);
        cr_expect_str_eq(spread.wishes[0].gpu.name, "gpu:1/25%");
        cr_expect_str_eq(spread.wishes[1].gpu.name, "gpu:3/25%");
}

Test(worker_set, that_is_placed_stays_where_it_is)
{
        struct sl_worker_set set = set_of(2, "gpu:2"), spread;
        struct sl_error error;

        cr_assert_eq(sl_worker_set_spread(&set, two, 2, &spread, &error), 0);
        cr_expect(sl_worker_set_equal(&set, &spread));
        set.wishes[0].gpu = two[0];
        cr_expect_not(sl_worker_set_equal(&set, &spread), "another GPU is another place");
}

Test(worker_set, that_is_too_large_is_told)
{
        struct sl_worker_set set = set_of(33, NULL), spread = {.n = 7};
        struct sl_error error;

        cr_assert_eq(sl_worker_set_spread(&set, two, 2, &spread, &error), -E2BIG);
        cr_expect_str_eq(error.text, "33 workers on each of 2 GPUs, a model has at most 64 in all");
        cr_expect_eq(spread.n, 7);
        set.n = 32;
        cr_expect_eq(sl_worker_set_spread(&set, two, 2, &spread, &error), 0);
}

Test(worker_set, without_gpus_is_that_of_one_of_them)
{
        struct sl_worker_set set = set_of(3, NULL), spread, without;
        struct sl_error error;

        cr_assert_eq(sl_worker_set_spread(&set, two, 2, &spread, &error), 0);
        sl_worker_set_without_gpus(&spread, &without);
        cr_expect(sl_worker_set_equal(&set, &without));
        sl_worker_set_without_gpus(&set, &without);
        cr_expect(sl_worker_set_equal(&set, &without));
}

Test(worker_set, is_placed_on_what_there_is)
{
        struct sl_worker_wish wish = {0};
        struct sl_error error;

        cr_expect_eq(sl_worker_wish_place(&wish, "gpu:16", NULL, &error), -EINVAL);
        cr_expect_eq(sl_worker_wish_place(&wish, "gpu:*", NULL, &error), -EINVAL, "an allocation says which");
        cr_expect_eq(sl_worker_wish_place(&wish, "tpu", NULL, &error), -EINVAL);
        cr_assert_eq(sl_worker_wish_place(&wish, "cpu", NULL, &error), 0);
        cr_expect(CPU_COUNT(&wish.cores) && !wish.gpu.name[0]);
}
