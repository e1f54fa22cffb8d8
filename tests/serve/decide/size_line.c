/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jobs of any size are expected to take.
 */
#include "size_line.h"

#include <criterion/criterion.h>

static struct sl_size_line learned(uint32_t jobs, uint64_t fixed_ns, uint64_t one_ns)
{
        struct sl_size_line line = {0};

        for (uint32_t i = 0; i < jobs; i++)
                sl_size_line_learn(&line, 1 + i * 37 % 101, fixed_ns + one_ns * (1 + i * 37 % 101));
        return line;
}

static void expect_near(const struct sl_size_line *line, uint64_t size, double wanted_ns)
{
        double ns = (double)sl_size_line_ns(line, size);

        cr_expect(ns > 0.98 * wanted_ns - 2 && ns < 1.02 * wanted_ns + 2, "size %llu: %g instead of %g", (unsigned long long)size,
                ns, wanted_ns);
}

Test(size_line, nothing_is_expected_before_some_jobs_are_known)
{
        struct sl_size_line line = learned(SL_SIZE_LINE_JOBS - 1, 1000, 10);

        cr_expect_eq(sl_size_line_ns(&line, 50), 0u);
        sl_size_line_learn(&line, 50, 1500);
        cr_expect_neq(sl_size_line_ns(&line, 50), 0u);
}

Test(size_line, a_size_that_was_never_seen_is_on_the_line_of_the_others)
{
        struct sl_size_line line = learned(200, 5000, 30);

        expect_near(&line, 10, 5300);
        expect_near(&line, 1000, 35000);
}

Test(size_line, equal_sizes_tell_a_mean)
{
        struct sl_size_line line = {0};

        for (uint32_t i = 0; i < 50; i++)
                sl_size_line_learn(&line, 64, 1000 + (i % 2) * 200);
        expect_near(&line, 64, 1100);
}

Test(size_line, larger_ones_are_never_expected_to_be_quicker_and_none_to_take_less_than_nothing)
{
        struct sl_size_line line = {0};

        for (uint32_t i = 0; i < 50; i++)
                sl_size_line_learn(&line, 1 + i % 10, 2000 - 100 * (i % 10));
        cr_expect_geq(sl_size_line_ns(&line, 1000), sl_size_line_ns(&line, 1));
        line = (struct sl_size_line){0};
        for (uint32_t i = 0; i < 50; i++)
                sl_size_line_learn(&line, 100 + i, (uint64_t)(100 + i) * (100 + i));
        cr_expect_geq(sl_size_line_ns(&line, 1), 1u);
        cr_expect_leq(sl_size_line_ns(&line, 1), sl_size_line_ns(&line, 100));
}

Test(size_line, one_that_was_preempted_changes_little)
{
        struct sl_size_line line = learned(200, 5000, 30);

        sl_size_line_learn(&line, 50, 1000000000);
        cr_expect_lt(sl_size_line_ns(&line, 50), 2 * (5000 + 30 * 50));
}

Test(size_line, what_was_known_is_forgotten)
{
        struct sl_size_line line = learned(200, 50000, 300);

        for (uint32_t i = 0; i < 1000; i++)
                sl_size_line_learn(&line, 1 + i * 37 % 101, 500 + 3 * (1 + i * 37 % 101));
        expect_near(&line, 40, 620);
}
