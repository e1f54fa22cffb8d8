/* SPDX-License-Identifier: Apache-2.0 */
#include "lets.h"

#include <criterion/criterion.h>
#include <sched.h>

static cpu_set_t cores(int first, int last)
{
        cpu_set_t set;

        CPU_ZERO(&set);
        for (int core = first; core <= last; core++)
                CPU_SET(core, &set);
        return set;
}

static const cpu_set_t anywhere;

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

        cr_expect(is_core(sl_lets_assign(lets, &anywhere, NULL, 0), 1));
        second = sl_lets_assign(lets, &anywhere, NULL, 0);
        cr_expect(is_core(second, 2));
        cr_expect(is_core(sl_lets_assign(lets, &anywhere, NULL, 0), 3));
        sl_lets_return(second);
        cr_expect(is_core(sl_lets_assign(lets, &anywhere, NULL, 0), 2), "the one with the fewest workers");
        sl_lets_free(lets);
}

/* Two cores that this process has. */
static bool find_two(int ret_cores[2])
{
        cpu_set_t mine;
        int n = 0;

        cr_assert_eq(sched_getaffinity(0, sizeof(mine), &mine), 0);
        for (int core = 0; core < CPU_SETSIZE && n < 2; core++)
                if (CPU_ISSET(core, &mine))
                        ret_cores[n++] = core;
        return n == 2;
}

static bool are(cpu_set_t a, cpu_set_t b)
{
        return CPU_EQUAL(&a, &b);
}

Test(lets, what_starts_in_the_background_starts_where_no_dispatcher_runs)
{
        int two[2];

        if (!find_two(two))
                cr_skip_test("there is one core");
        cpu_set_t first = cores(two[0], two[0]), second = cores(two[1], two[1]), both;
        CPU_OR(&both, &first, &second);
        struct sl_lets *lets = make(both, first, 1);

        cr_expect(are(sl_lets_start_cores(lets, &both, true), second));
        cr_expect(are(sl_lets_start_cores(lets, &first, true), second), "also what is to run beside it later");
        cr_expect(are(sl_lets_start_cores(lets, &second, true), second));
        cr_expect(are(sl_lets_start_cores(lets, NULL, true), second));
        cr_expect(are(sl_lets_start_cores(lets, &anywhere, true), anywhere), "it could not go back to where it may run");
        cr_expect(are(sl_lets_start_cores(lets, &both, false), both));
        cr_expect(are(sl_lets_start_cores(lets, NULL, false), anywhere));
        sl_lets_free(lets);
}

Test(lets, what_starts_where_all_cores_have_a_dispatcher_starts_where_it_will_run)
{
        int two[2];

        if (!find_two(two))
                cr_skip_test("there is one core");
        cpu_set_t first = cores(two[0], two[0]);
        struct sl_lets *lets = make(first, first, 1), *unbound = make(first, anywhere, 1);

        cr_expect(are(sl_lets_start_cores(lets, &first, true), first));
        cr_expect(are(sl_lets_start_cores(unbound, &first, true), first));
        sl_lets_free(lets);
        sl_lets_free(unbound);
}

/* Those on one part of a GPU share it, and take no core from anybody. */
Test(lets, a_worker_on_a_gpu_has_no_core)
{
        const struct sl_gpu_let whole = {.name = "gpu:0", .percent = 100}, half = {.name = "gpu:0/50%", .percent = 50};
        struct sl_lets *lets = make(cores(1, 2), cores(0, 0), 2);
        struct sl_let *let = sl_lets_assign_gpu(lets, &whole), *other = sl_lets_assign_gpu(lets, &half);
        cpu_set_t fewer = cores(2, 2);

        cr_expect_eq(CPU_COUNT(&let->cpus), 0);
        cr_expect_neq(let, other);
        cr_expect_eq(sl_lets_assign_gpu(lets, &whole), let);
        cr_expect_eq(let->n_assigned, 2);
        let->turns.running[0] = 100;
        cr_expect_gt(sl_turns_left(&let->turns, 1, 1), 100, "jobs there run beside each other");
        cr_expect(is_core(sl_lets_assign(lets, &anywhere, NULL, 0), 1));
        cr_expect(is_core(sl_lets_assign(lets, &anywhere, NULL, 0), 2));
        sl_lets_return(let);
        sl_lets_return(let);
        cr_expect_eq(sl_lets_assign_gpu(lets, &whole), let, "it is there for the next one");
        cr_expect(sl_lets_update(lets, &fewer));
        cr_expect_not(let->stale, "cores that are gone are not its own");
        sl_lets_free(lets);
}

Test(lets, a_core_is_idle_on_which_no_worker_is_by_any_let)
{
        const cpu_set_t two_and_three = cores(2, 3), all = cores(1, 3);
        struct sl_lets *lets = make(cores(1, 3), cores(0, 0), 1);
        struct sl_let *own = sl_lets_assign(lets, &anywhere, NULL, 0), *named, *shared;

        cr_expect(is_core(own, 1));
        cr_expect(sl_lets_have_idle(lets, own));
        named = sl_lets_assign(lets, &two_and_three, NULL, 0);
        cr_expect_not(sl_lets_have_idle(lets, own), "an allocation has put one on the others");
        cr_expect_not(sl_lets_have_idle(lets, named), "that one is where it was put");
        sl_lets_return(named);
        shared = sl_lets_assign(lets, &all, NULL, 0);
        cr_expect_not(sl_lets_have_idle(lets, own), "a team has all");
        cr_expect_not(sl_lets_have_idle(lets, shared));
        sl_lets_return(shared);
        cr_expect(sl_lets_have_idle(lets, own));
        sl_lets_expect(lets, 4);
        cr_expect_not(sl_lets_have_idle(lets, own), "there are too few for each");
        sl_lets_free(lets);
}

Test(lets, a_core_that_was_left_for_its_neighbours_goes_last_and_the_one_left_longest_ago_first)
{
        struct sl_lets *lets = make(cores(1, 3), cores(0, 0), 1);

        for (int core = 1; core <= 7; core++) {
                struct sl_let *let = sl_lets_assign(lets, &anywhere, NULL, 0);

                cr_expect(is_core(let, (core - 1) % 3 + 1), "departure %d", core);
                sl_lets_note_departure(lets, let);
                sl_lets_return(let);
        }
        sl_lets_free(lets);
}

Test(lets, all_share_the_worker_cores_where_there_are_too_few)
{
        struct sl_lets *lets = make(cores(0, 1), cores(0, 0), 2);
        struct sl_let *let = sl_lets_assign(lets, &anywhere, NULL, 0);

        cr_expect_not(let->turns.for_one);
        cr_expect_eq(CPU_COUNT(&let->cpus), 2, "the dispatcher's too, where the configuration says so");
        cr_expect_eq(let->turns.at_once, 2);
        cr_expect_eq(sl_lets_assign(lets, &anywhere, NULL, 0), let);
        cr_expect_eq(let->n_assigned, 2);
        sl_lets_free(lets);
}

/* A model whose workers nobody has counted takes no core that is another's. */
Test(lets, a_model_may_have_the_cores_that_no_other_worker_is_expected_on)
{
        struct sl_lets *few = make(cores(0, 1), cores(0, 0), 1), *lets = make(cores(0, 7), cores(0, 0), 3);

        cr_expect_eq(sl_lets_each(few), 2, "they share both, as each would have but one");
        sl_lets_expect_further(few, 1);
        cr_expect_not(is_core(sl_lets_assign(few, &anywhere, NULL, 0), 1));
        cr_expect_eq(sl_lets_each(lets), 5);
        sl_lets_expect_further(lets, 4);
        for (int core = 1; core <= 7; core++)
                cr_expect(is_core(sl_lets_assign(lets, &anywhere, NULL, 0), core));
        cr_expect_eq(sl_lets_each(lets), 8, "no core is left");
        sl_lets_expect_further(lets, 5);
        cr_expect_eq(CPU_COUNT(&sl_lets_assign(lets, &anywhere, NULL, 0)->cpus), 8);
        sl_lets_free(few);
        sl_lets_free(lets);
}

Test(lets, the_core_that_the_dispatcher_has_too_is_nobodys_own)
{
        struct sl_lets *lets = make(cores(0, 1), cores(0, 0), 1);

        cr_expect(is_core(sl_lets_assign(lets, &anywhere, NULL, 0), 1));
        sl_lets_free(lets);
}

Test(lets, workers_run_anywhere_where_no_cores_are_configured)
{
        struct sl_lets *lets = make(cores(0, -1), cores(0, -1), 1);
        struct sl_let *let = sl_lets_assign(lets, &anywhere, NULL, 0);

        cr_expect_eq(CPU_COUNT(&let->cpus), 0);
        cr_expect_eq(let->turns.at_once, 3, "as many cores as the process may use");
        sl_lets_free(lets);
}

Test(lets, who_takes_the_place_of_another_may_have_its_core)
{
        struct sl_lets *lets = make(cores(1, 2), cores(0, 0), 2);
        struct sl_let *first = sl_lets_assign(lets, &anywhere, NULL, 0);

        sl_lets_assign(lets, &anywhere, NULL, 0);
        cr_expect_eq(sl_lets_assign(lets, &anywhere, &first, 1), first);
        sl_lets_free(lets);
}

Test(lets, who_is_to_run_on_certain_cores_shares_their_let_with_its_like_alone)
{
        struct sl_lets *lets = make(cores(0, 3), cores(0, 0), 1);
        cpu_set_t two = cores(1, 2), one = cores(2, 2), all = cores(0, 3), beyond = cores(3, 4);
        struct sl_let *let = sl_lets_assign(lets, &two, NULL, 0), *own = sl_lets_assign(lets, &anywhere, NULL, 0);

        cr_expect(CPU_EQUAL(&let->cpus, &two));
        cr_expect_eq(let->turns.at_once, 2);
        cr_expect_not(let->turns.for_one);
        cr_expect_eq(sl_lets_assign(lets, &two, NULL, 0), let);
        cr_expect_eq(let->n_assigned, 2);
        cr_expect_neq(sl_lets_assign(lets, &one, NULL, 0), let);
        cr_expect(is_core(own, 1), "it does not count where others were put");
        cr_expect_eq(sl_lets_assign(lets, &all, NULL, 0), lets->shared);
        cr_expect(sl_lets_allow(lets, &all));
        cr_expect_not(sl_lets_allow(lets, &beyond));
        sl_lets_free(lets);
}

Test(lets, beyond_so_many_workers_run_on_all_cores)
{
        struct sl_lets *lets = make(cores(0, 127), cores(0, 0), 1);
        cpu_set_t some;

        for (int i = 0; lets->n < SL_LETS_MAX; i++) {
                some = cores(i / 100, i / 100 + 1 + i % 100);
                cr_assert_neq(sl_lets_assign(lets, &some, NULL, 0), lets->shared, "%d", i);
        }
        some = cores(60, 127);
        cr_expect_eq(sl_lets_assign(lets, &some, NULL, 0), lets->shared);
        sl_lets_free(lets);
}

Test(lets, what_has_lost_a_core_is_nobodys_until_that_is_back)
{
        struct sl_lets *lets = make(cores(0, 3), cores(0, 0), 2);
        cpu_set_t two = cores(2, 3), fewer = cores(0, 2), all = cores(0, 7), third = cores(2, 2), elsewhere = cores(5, 6);
        struct sl_let *shared = lets->shared, *named = sl_lets_assign(lets, &two, NULL, 0), *narrow;
        struct sl_let *own[2] = {sl_lets_assign(lets, &anywhere, NULL, 0), sl_lets_assign(lets, &anywhere, NULL, 0)};

        cr_expect(sl_lets_update(lets, &fewer));
        cr_expect_not(sl_lets_update(lets, &fewer));
        cr_expect(named->stale);
        cr_expect(shared->stale);
        cr_expect_neq(lets->shared, shared);
        cr_expect(CPU_EQUAL(&lets->shared->cpus, &fewer));
        cr_expect(is_core(own[0], 1) && !own[0]->stale && is_core(own[1], 2) && !own[1]->stale);
        cr_expect_not(sl_lets_allow(lets, &two));
        narrow = sl_lets_assign(lets, &third, NULL, 0);
        cr_expect_not(narrow->stale);

        cr_expect(sl_lets_update(lets, &all), "what is not configured does not count");
        cr_expect_not(named->stale);
        cr_expect_eq(lets->shared, shared);
        cr_expect_eq(sl_lets_assign(lets, &two, NULL, 0), named);

        cr_expect(sl_lets_update(lets, &elsewhere), "no core of its own is left");
        cr_expect(CPU_EQUAL(&lets->shared->cpus, &elsewhere));
        sl_lets_free(lets);
}

Test(lets, workers_are_left_out_with_their_cores_but_for_the_last)
{
        struct sl_lets *lets = make(cores(0, 3), cores(0, 0), 2);
        cpu_set_t fewer = cores(0, 1);
        struct sl_worker_set set = {.n = 3, .wishes = {{8, cores(2, 3)}, {4, cores(1, 2)}, {2, anywhere}}}, fit;

        sl_lets_update(lets, &fewer);
        sl_lets_fit(lets, &set, &fit);
        cr_assert_eq(fit.n, 2);
        cr_expect_eq(fit.wishes[0].batch_size, 4);
        cr_expect_eq(CPU_COUNT(&fit.wishes[0].cores), 1);
        cr_expect(CPU_ISSET(1, &fit.wishes[0].cores));
        cr_expect_eq(CPU_COUNT(&fit.wishes[1].cores), 0);

        set.n = 1;
        sl_lets_fit(lets, &set, &fit);
        cr_assert_eq(fit.n, 1);
        cr_expect_eq(fit.wishes[0].batch_size, 8);
        cr_expect_eq(CPU_COUNT(&fit.wishes[0].cores), 0, "anywhere");
        sl_lets_free(lets);
}
