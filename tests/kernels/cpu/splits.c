/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the planner cuts nodes for teams follows from what a core and all of them reach, and from nothing else.
 */
#include "case.h"
#include "target.h"

#include <criterion/criterion.h>
#include <errno.h>

static const char product[] = "MatMul 128x1024 1024x1024 packed";

/* For a team of two on such cores. */
static struct sl_split split_of(const char *line, const struct sl_core_figures *core)
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
                .target = &target};

        cr_assert_eq(sl_backend_cpu.planner->provide(&source, &provision, NULL), 0);
        test_kernel_deinit(&kernel);
        return provision.splits[SL_TEAM_SIZE_2];
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

/* One core brings the weights as fast as two do: both wait for them, as long as one would. */
Test(cpu_splits, what_waits_for_a_bandwidth_that_cores_share_is_computed_alone)
{
        struct sl_core_figures core = sl_target_typical.core;

        core.shared = 1e6;
        cr_expect_eq(split_of(product, &core).members, 0);
}

/* Each part of some rows brings all weights, each part of some columns its own. */
Test(cpu_splits, few_weights_a_second_are_cut_along_their_columns)
{
        struct sl_core_figures core = sl_target_typical.core;

        core.shared = 1024 * 1024 * sizeof(float) / (128 * 1024.0 * 1024 * 2 / core.flops / 2);
        cr_expect_eq(split_of(product, &core).axis, SL_AXIS_COLUMNS);
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
