/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the profile of nodes: every step once, in order, named, with what it computes and moves.
 */
#include "base/error.h"
#include "network.h"
#include "node_profile.h"
#include "op.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct network net;
static struct sl_plan *plan;

static void setup(void)
{
        uint32_t x;
        int fd;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 8, 12, 12));
        x = network_conv(&net, x, 8, 16, 3, 1, 1);
        x = network_conv(&net, x, 16, 4, 1, 1, 1);
        network_output(&net, x);
        network_finish(&net);
        fd = network_plan_fd(&net, "cpu", 2);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        close(fd);
}

static void teardown(void)
{
        sl_plan_free(plan);
        network_deinit(&net);
}

TestSuite(profile, .init = setup, .fini = teardown);

Test(profile, counts_the_work_of_every_step_at_its_batch)
{
        static const uint64_t expected = 12 * 12 * (8 * 16 * 9 + 16 * 4);
        struct sl_node_profile *profile;
        struct sl_error error = {""};

        for (uint32_t batch = 1; batch <= 2; batch++) {
                uint64_t multiply_adds = 0;

                cr_assert_eq(sl_node_profile_new(plan, batch, 1e-3, &profile, &error), 0, "%s", error.text);
                cr_assert_eq(profile->n_steps, sl_plan_steps(plan, batch));
                cr_assert_geq(profile->n_runs, 3);
                for (uint64_t i = 0; i < profile->n_steps; i++) {
                        multiply_adds += profile->steps[i].multiply_adds;
                        cr_expect_geq(profile->steps[i].bytes, sl_tensor_bytes(&profile->steps[i].out));
                        cr_expect_geq(profile->step_ns[i], 0);
                }
                cr_expect_eq(multiply_adds, batch * expected);
                cr_expect_gt(profile->peak_flops, 0);
                sl_node_profile_free(profile);
        }
}

Test(profile, refuses_a_batch_that_the_plan_lacks)
{
        struct sl_node_profile *profile = NULL;

        cr_assert_eq(sl_node_profile_new(plan, 3, 1e-3, &profile, NULL), -EINVAL);
        cr_assert_null(profile);
}

Test(profile, a_step_has_the_name_and_the_operator_of_its_node)
{
        struct sl_step_info info;
        uint32_t convolutions = 0;

        for (uint64_t i = 0; i < sl_plan_steps(plan, 1); i++) {
                cr_assert_eq(sl_plan_step_info(plan, 1, i, &info), 0);
                convolutions += !strcmp(info.operator_name, "Conv");
                cr_expect_eq(strcmp(info.backend, "cpu"), 0);
        }
        cr_assert_eq(convolutions, 2);
        cr_assert_eq(sl_plan_step_info(plan, 1, 1000, &info), -EINVAL);
}
