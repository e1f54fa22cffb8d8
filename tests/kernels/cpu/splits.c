/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the planner cuts nodes for teams follows from what a core and all of them reach, and from nothing else.
 */
#include "case.h"
#include "target.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>

static const char product[] = "MatMul 128x1024 1024x1024 packed";

/* On such cores; @times: of its parts, NULL: nobody has timed them. */
static struct sl_provision provision_of(const char *line, const struct sl_core_figures *core, const struct sl_part_times *times)
{
        const struct sl_target target = {.core = *core};
        struct sl_provision provision = {0};
        struct test_kernel kernel;
        struct test_case test;

        case_parse(line, &test);
        cr_assert(test_kernel_init(&kernel, &sl_backend_cpu, &test));
        const struct sl_kernel_source source = {.node = &kernel.node,
                .packed = kernel.packed,
                .constants = (const void *const *)kernel.packed_data,
                .target = &target,
                .times = times};

        cr_assert_eq(sl_backend_cpu.planner->provide(&source, &provision, NULL), 0);
        test_kernel_deinit(&kernel);
        return provision;
}

/* For a team of two. */
static struct sl_split timed_split_of(const char *line, const struct sl_core_figures *core, const struct sl_part_times *times)
{
        return provision_of(line, core, times).splits[SL_TEAM_SIZE_2];
}

static struct sl_split split_of(const char *line, const struct sl_core_figures *core)
{
        return timed_split_of(line, core, NULL);
}

Test(cpu_splits, a_large_product_is_cut_for_two)
{
        cr_expect_eq(split_of(product, &sl_target_typical.core).members, 2);
}

Test(cpu_splits, what_takes_less_than_a_call_is_computed_alone)
{
        struct sl_core_figures core = sl_target_typical.core;

        core.barrier = 1;
        cr_expect_eq(split_of(product, &core).members, 0);
}

/* A call of sixteen takes longer than what their parts are shorter than those of eight. */
Test(cpu_splits, a_large_team_leaves_out_members_that_make_it_slower)
{
        struct sl_core_figures core = sl_target_typical.core;
        struct sl_provision provision;

        core.barrier = 128 * 1024.0 * 1024 * 2 / core.flops / 10;
        provision = provision_of(product, &core, NULL);
        cr_expect_eq(provision.splits[SL_TEAM_SIZE_4].members, 4);
        cr_expect_eq(provision.splits[SL_TEAM_SIZE_8].members, 8);
        cr_expect_eq(provision.splits[SL_TEAM_SIZE_16].members, 8);
        core.barrier = 1e-9;
        cr_expect_eq(provision_of(product, &core, NULL).splits[SL_TEAM_SIZE_16].members, 16);
}

/* One core brings the weights as fast as two do: both wait for them, as long as one would. */
Test(cpu_splits, what_waits_for_a_bandwidth_that_cores_share_is_computed_alone)
{
        struct sl_core_figures core = sl_target_typical.core;

        core.shared = 1e6;
        cr_expect_eq(split_of(product, &core).members, 0);
}

/* Two cores bring 1.6 times as much: halves of it are still shorter, whatever the weights lie in. */
Test(cpu_splits, weights_count_as_they_are_packed)
{
        struct sl_core_figures core = sl_target_typical.core;

        core.shared = 1.6 * core.stream;
        cr_expect_eq(split_of("MatMul 1x1024 1024x4096 packed", &core).members, 2);
        cr_expect_eq(split_of("MatMul 1x1024 1024x4096 packed weights:f16", &core).members, 2);
}

/* Each part of some rows brings all weights, each part of some columns its own. */
Test(cpu_splits, few_weights_a_second_are_cut_along_their_columns)
{
        struct sl_core_figures core = sl_target_typical.core;

        core.shared = 1024 * 1024 * sizeof(float) / (128 * 1024.0 * 1024 * 2 / core.flops / 2);
        cr_expect_eq(split_of(product, &core).axis, SL_AXIS_COLUMNS);
}

/* The whole, rows, and columns. */
static struct sl_split split_by(const char *line, double whole, double rows, double columns)
{
        return timed_split_of(line, &sl_target_typical.core,
                &(struct sl_part_times){
                        .members = 2, .seconds = {[SL_AXIS_NONE] = whole, [SL_AXIS_ROWS] = rows, [SL_AXIS_COLUMNS] = columns}});
}

Test(cpu_splits, what_was_timed_goes_before_what_is_guessed)
{
        cr_expect_eq(split_by(product, 2e-3, 1.1e-3, 1.4e-3).axis, SL_AXIS_ROWS);
        cr_expect_eq(split_by(product, 2e-3, 1.4e-3, 1.1e-3).axis, SL_AXIS_COLUMNS);
        cr_expect_eq(split_by(product, 1e-3, 1.2e-3, 1.2e-3).members, 0, "a part takes longer than all of it");
        cr_expect_eq(split_by(product, 2e-3, 1.1e-3, 1.05e-3).axis, SL_AXIS_ROWS, "what is hardly faster stays as it was guessed");
        cr_expect_eq(split_by(product, 2e-3, INFINITY, INFINITY).members, 0, "what has not run in parts is not cut");
        cr_expect_eq(split_by(product, INFINITY, INFINITY, INFINITY).members, 2, "nothing was timed");
}

Test(cpu_splits, a_call_of_onednn_is_cut_where_its_parts_were_faster)
{
        static const char stack[] = "MatMul 4x64x64 4x64x64";

        cr_expect_eq(split_by(stack, 2e-3, 1.1e-3, INFINITY).members, 2);
        cr_expect_eq(split_by(stack, 2e-3, 2e-3, INFINITY).members, 0);
        cr_expect_eq(split_by("MatMul 4x512x512 4x512x512", 2e-3, INFINITY, INFINITY).members, 2,
                "more parts than it can have are not timed");
}

/* Nothing that two cores do at once is slower than what one of them does. */
Test(cpu_splits, cores_together_bring_no_less_than_one)
{
        struct sl_target target;
        int r = sl_backend_cpu.planner->measure(&target);

        if (r == -ENOTSUP)
                cr_skip_test("this processor has no AVX2");
        cr_assert_eq(r, 0);
        cr_expect_geq(target.core.shared, target.core.stream);
        cr_expect_gt(target.core.barrier, 0);
}
