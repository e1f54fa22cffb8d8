/* SPDX-License-Identifier: Apache-2.0 */
#include "lateness.h"

#include <criterion/criterion.h>

Test(lateness, is_the_mean_wait_of_the_last_turns)
{
        uint64_t late_ns = 0;

        for (int i = 0; i < 30; i++)
                late_ns = sl_lateness_forget(late_ns, 10 * 40000, 10, 3);
        cr_expect_gt(late_ns, 39000);
        cr_expect_leq(late_ns, 40000);
}

Test(lateness, of_a_thread_that_was_away_once_while_it_took_many_entries_is_small)
{
        cr_expect_eq(sl_lateness_forget(0, 1000000, 1, 5000), 50);
        cr_expect_eq(sl_lateness_forget(0, 1000000, 1, 0), 250000);
}

Test(lateness, is_forgotten_by_a_thread_that_never_waits)
{
        uint64_t late_ns = 10000000;

        for (int i = 0; i < 60; i++)
                late_ns = sl_lateness_forget(late_ns, 0, 0, 0);
        cr_expect_eq(late_ns, 0);
}

Test(lateness, where_the_kernel_does_not_count_it_nobody_is_late)
{
        struct sl_lateness lateness;

        sl_lateness_init(&lateness);
        sl_lateness_read(&lateness, 0); /* whatever it is */
        sl_lateness_deinit(&lateness);
        cr_expect_eq(sl_lateness_read(&lateness, 0), 0);
}
