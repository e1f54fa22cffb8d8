/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the profile of nodes: every step once, in order, named, with what it computes and moves; and of what teams should take
 * by it.
 */
#include "base/error.h"
#include "network.h"
#include "node_profile.h"
#include "op.h"
#include "target.h"
#include "team_model.h"

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

static struct sl_team_model *model_teams_on(
        const struct sl_node_profile *profile, double barrier, double bandwidth, const uint32_t *sizes, uint32_t n)
{
        const struct sl_core_figures core = {.barrier = barrier, .stream = bandwidth, .shared = bandwidth};
        struct sl_error error = {""};
        struct sl_team_model *model;

        cr_assert_eq(sl_team_model_new(plan, profile, &core, sizes, n, &model, &error), 0, "%s", error.text);
        return model;
}

static struct sl_team_model *model_teams(const struct sl_node_profile *profile, double barrier, const uint32_t *sizes, uint32_t n)
{
        return model_teams_on(profile, barrier, 1e15, sizes, n);
}

/* A network whose first node is worth a team of two by the planner's typical figures. */
static void use_large_plan(void)
{
        uint32_t x;
        int fd;

        teardown();
        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 64, 28, 28));
        x = network_conv(&net, x, 64, 64, 3, 1, 1);
        network_output(&net, x);
        network_finish(&net);
        fd = network_plan_fd(&net, "cpu", 1);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        close(fd);
}

Test(profile, a_team_takes_the_longest_parts_the_calls_and_what_is_not_cut)
{
        static const uint32_t sizes[] = {1, 2, 3};
        struct sl_node_profile *profile;
        struct sl_team_model *model;
        uint32_t n_cut = 0;

        use_large_plan();
        cr_assert_eq(sl_node_profile_new(plan, 1, 1e-3, &profile, NULL), 0);
        model = model_teams(profile, 1e-6, sizes, 3);
        cr_assert_eq(model->n_points, 3);
        for (uint32_t p = 0; p < 3; p++) {
                const struct sl_team_point *point = &model->points[p];
                double sum = 0;

                for (uint64_t i = 0; i < model->n_steps; i++) {
                        const struct sl_team_step *step = &point->steps[i];
                        uint32_t members = step->split.members > 1 ? step->split.members : 1;

                        n_cut += members > 1;
                        cr_expect_leq(members, point->threads);
                        cr_expect_geq(step->part_ns * members, profile->step_ns[i] * (1 - 1e-9), "no part is lost");
                        cr_expect_eq(step->call_ns > 0, members > 1);
                        sum += step->part_ns + step->call_ns;
                }
                cr_expect_float_eq(point->ns, sum, 1e-6 * sum);
                cr_expect_float_eq(point->divided_ns + point->call_ns + point->whole_ns, point->ns, 1e-6 * sum);
        }
        cr_expect_gt(n_cut, 0);
        cr_expect_eq(model->points[0].whole_ns, model->points[0].ns, "one thread calls nobody");
        sl_team_model_free(model);
        sl_node_profile_free(profile);
}

Test(profile, a_barrier_costs_by_its_calls_and_members)
{
        static const uint32_t sizes[] = {2, 4};
        struct sl_node_profile *profile;
        struct sl_team_model *cheap, *dear;

        use_large_plan();
        cr_assert_eq(sl_node_profile_new(plan, 1, 1e-3, &profile, NULL), 0);
        cheap = model_teams(profile, 1e-6, sizes, 2);
        dear = model_teams(profile, 3e-6, sizes, 2);
        cr_expect_gt(cheap->points[0].call_ns, 999);
        for (uint32_t p = 0; p < 2; p++) {
                cr_expect_float_eq(dear->points[p].call_ns, 3 * cheap->points[p].call_ns, 1);
                cr_expect_eq(dear->points[p].divided_ns, cheap->points[p].divided_ns);
        }
        sl_team_model_free(cheap);
        sl_team_model_free(dear);
        sl_node_profile_free(profile);
}

Test(profile, weights_that_all_cores_bring_slowly_bound_a_team)
{
        static const uint32_t sizes[] = {2, 4};
        struct sl_node_profile *profile;
        struct sl_team_model *fast, *slow;

        use_large_plan();
        cr_assert_eq(sl_node_profile_new(plan, 1, 1e-3, &profile, NULL), 0);
        fast = model_teams_on(profile, 1e-6, 1e15, sizes, 2);
        slow = model_teams_on(profile, 1e-6, 1, sizes, 2);
        for (uint32_t p = 0; p < 2; p++)
                for (uint64_t i = 0; i < profile->n_steps; i++) {
                        const struct sl_team_step *step = &slow->points[p].steps[i];

                        if (step->split.members < 2 || !profile->steps[i].weight_bytes)
                                continue;
                        cr_expect_gt(profile->step_ns[i], fast->points[p].steps[i].part_ns);
                        cr_expect_eq(step->part_ns, profile->step_ns[i], "no longer than what one core brings");
                }
        sl_team_model_free(fast);
        sl_team_model_free(slow);
        sl_node_profile_free(profile);
}
