/* SPDX-License-Identifier: Apache-2.0 */
#include "lets.h"

#include <criterion/criterion.h>

static cpu_set_t cores(int first, int last)
{
        cpu_set_t set;

        CPU_ZERO(&set);
        for (int core = first; core <= last; core++)
                CPU_SET(core, &set);
        return set;
}

static struct sl_lets *make(cpu_set_t workers, cpu_set_t dispatcher, uint32_t expected)
{
        struct sl_lets *lets;

        cr_assert_eq(sl_lets_new(&workers, &dispatcher, 3, NULL, &lets), 0);
        sl_lets_expect(lets, expected);
        return lets;
}

static bool is_core(const struct sl_let *let, int core)
{
        return let->turns.for_one && CPU_COUNT(&let->cpus) == 1 && CPU_ISSET(core, &let->cpus);
}

Test(lets, each_worker_has_a_core_for_itself_as_long_as_there_are_enough)
{
        struct sl_lets *lets = make(cores(1, 3), cores(0, 0), 3);
        struct sl_let *second;

        cr_expect(is_core(sl_lets_assign(lets, NULL, 0), 1));
        second = sl_lets_assign(lets, NULL, 0);
        cr_expect(is_core(second, 2));
        cr_expect(is_core(sl_lets_assign(lets, NULL, 0), 3));
        sl_lets_return(second);
        cr_expect(is_core(sl_lets_assign(lets, NULL, 0), 2), "the one with the fewest workers");
        sl_lets_free(lets);
}

Test(lets, all_share_the_worker_cores_where_there_are_too_few)
{
        struct sl_lets *lets = make(cores(0, 1), cores(0, 0), 2);
        struct sl_let *let = sl_lets_assign(lets, NULL, 0);

        cr_expect_not(let->turns.for_one);
        cr_expect_eq(CPU_COUNT(&let->cpus), 2, "the dispatcher's too, where the configuration says so");
        cr_expect_eq(let->turns.at_once, 2);
        cr_expect_eq(sl_lets_assign(lets, NULL, 0), let);
        cr_expect_eq(let->n_assigned, 2);
        sl_lets_free(lets);
}

Test(lets, the_core_that_the_dispatcher_has_too_is_nobodys_own)
{
        struct sl_lets *lets = make(cores(0, 1), cores(0, 0), 1);

        cr_expect(is_core(sl_lets_assign(lets, NULL, 0), 1));
        sl_lets_free(lets);
}

Test(lets, workers_run_anywhere_where_no_cores_are_configured)
{
        struct sl_lets *lets = make(cores(0, -1), cores(0, -1), 1);
        struct sl_let *let = sl_lets_assign(lets, NULL, 0);

        cr_expect_eq(CPU_COUNT(&let->cpus), 0);
        cr_expect_eq(let->turns.at_once, 3, "as many cores as the process may use");
        sl_lets_free(lets);
}

Test(lets, who_takes_the_place_of_another_may_have_its_core)
{
        struct sl_lets *lets = make(cores(1, 2), cores(0, 0), 2);
        struct sl_let *first = sl_lets_assign(lets, NULL, 0);

        sl_lets_assign(lets, NULL, 0);
        cr_expect_eq(sl_lets_assign(lets, &first, 1), first);
        sl_lets_free(lets);
}
