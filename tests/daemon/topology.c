/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores the threads get, on machines that are only described. */
#include "cores.h"
#include "topology.h"
#include "base/error.h"

#include <criterion/criterion.h>
#include <string.h>

static struct sl_machine machine_of(int n_cores)
{
        struct sl_machine machine;

        memset(&machine, 0, sizeof(machine));
        for (int core = 0; core < n_cores; core++)
                CPU_SET(core, &machine.allowed);
        return machine;
}

static struct sl_thread_cores_wish no_wish(void)
{
        struct sl_thread_cores_wish wish = {.numa_node = UINT32_MAX, .spin_ns = 50000};

        CPU_ZERO(&wish.dispatcher_cores);
        CPU_ZERO(&wish.worker_cores);
        return wish;
}

static void expect(const struct sl_machine *machine, const struct sl_thread_cores_wish *wish, const char *dispatcher,
        const char *workers, uint64_t spin_ns)
{
        struct sl_thread_cores thread_cores;
        struct sl_error error = {""};
        char text[128];

        cr_assert_eq(sl_thread_cores_choose(machine, wish, &thread_cores, &error), 0, "%s", error.text);
        cr_assert_str_eq(sl_cores_text(&thread_cores.dispatcher_cores, text, sizeof(text)), dispatcher);
        cr_assert_str_eq(sl_cores_text(&thread_cores.worker_cores, text, sizeof(text)), workers);
        cr_assert_eq(thread_cores.spin_ns, spin_ns);
}

Test(topology, on_one_core_all_share_it_and_nobody_spins)
{
        struct sl_machine machine = machine_of(1);
        struct sl_thread_cores_wish wish = no_wish();

        expect(&machine, &wish, "0", "0", 0);
}

Test(topology, on_two_cores_the_workers_may_use_the_dispatchers_too)
{
        struct sl_machine machine = machine_of(2);
        struct sl_thread_cores_wish wish = no_wish();

        expect(&machine, &wish, "0", "0-1", 50000);
}

Test(topology, on_many_cores_the_workers_have_all_but_the_dispatchers)
{
        struct sl_machine machine = machine_of(16);
        struct sl_thread_cores_wish wish = no_wish();

        expect(&machine, &wish, "0", "1-15", 50000);
}

Test(topology, only_cores_of_the_affinity_mask_are_used)
{
        struct sl_machine machine = machine_of(8);
        struct sl_thread_cores_wish wish = no_wish();

        CPU_CLR(0, &machine.allowed);
        CPU_CLR(1, &machine.allowed);
        CPU_CLR(4, &machine.allowed);
        expect(&machine, &wish, "2", "3,5-7", 50000);
}

Test(topology, no_more_cores_than_the_control_group_grants)
{
        struct sl_machine machine = machine_of(8);
        struct sl_thread_cores_wish wish = no_wish();

        machine.quota_milli = 3500;
        expect(&machine, &wish, "0", "1-2", 50000);
        machine.quota_milli = 1500;
        expect(&machine, &wish, "0", "0", 0);
        machine.quota_milli = 100;
        expect(&machine, &wish, "0", "0", 0);
}

Test(topology, a_numa_node_limits_the_choice)
{
        struct sl_machine machine = machine_of(8);
        struct sl_thread_cores_wish wish = no_wish();

        for (int core = 4; core < 8; core++)
                machine.node_of[core] = 1;
        wish.numa_node = 1;
        expect(&machine, &wish, "4", "5-7", 50000);
}

Test(topology, named_cores_are_taken_and_the_rest_is_chosen_around_them)
{
        struct sl_machine machine = machine_of(4);
        struct sl_thread_cores_wish wish = no_wish();

        CPU_SET(3, &wish.dispatcher_cores);
        expect(&machine, &wish, "3", "0-2", 50000);
        CPU_ZERO(&wish.dispatcher_cores);
        CPU_SET(0, &wish.worker_cores);
        CPU_SET(1, &wish.worker_cores);
        expect(&machine, &wish, "2", "0-1", 50000);
        CPU_ZERO(&wish.worker_cores);
        CPU_SET(1, &wish.worker_cores);
        CPU_SET(1, &wish.dispatcher_cores);
        expect(&machine, &wish, "1", "1", 0);
}

static void take(cpu_set_t *cores, int first, int last)
{
        for (int core = first; core <= last; core++)
                CPU_SET(core, cores);
}

Test(topology, cores_that_no_other_runtime_has_come_first)
{
        struct sl_machine machine = machine_of(8);
        struct sl_thread_cores_wish wish = no_wish();

        take(&machine.taken, 0, 3);
        take(&machine.dispatching, 0, 0);
        expect(&machine, &wish, "4", "5-7", 50000);
        machine.quota_milli = 2000;
        expect(&machine, &wish, "4", "4-5", 50000);
}

Test(topology, where_all_are_taken_no_dispatcher_shares_with_a_dispatcher)
{
        struct sl_machine machine = machine_of(4);
        struct sl_thread_cores_wish wish = no_wish();

        take(&machine.taken, 0, 3);
        take(&machine.dispatching, 0, 0);
        expect(&machine, &wish, "1", "2-3", 50000);
        take(&machine.dispatching, 0, 3);
        expect(&machine, &wish, "0", "1-3", 50000);
        machine = machine_of(2);
        take(&machine.taken, 0, 1);
        take(&machine.dispatching, 0, 0);
        expect(&machine, &wish, "1", "0-1", 50000);
        machine = machine_of(1);
        take(&machine.taken, 0, 0);
        expect(&machine, &wish, "0", "0", 0);
}

Test(topology, a_core_or_node_that_the_process_may_not_use_is_an_error_with_the_cause)
{
        struct sl_machine machine = machine_of(2);
        struct sl_thread_cores_wish wish = no_wish();
        struct sl_thread_cores thread_cores;
        struct sl_error error = {""};

        CPU_SET(5, &wish.worker_cores);
        cr_assert_eq(sl_thread_cores_choose(&machine, &wish, &thread_cores, &error), -EINVAL);
        cr_assert_str_eq(error.text, "threads.worker_cores: core 5 is not among those that this process may use, 0-1");
        CPU_ZERO(&wish.worker_cores);
        wish.numa_node = 3;
        cr_assert_eq(sl_thread_cores_choose(&machine, &wish, &thread_cores, &error), -EINVAL);
        cr_assert(strstr(error.text, "node 3"), "%s", error.text);
}

Test(topology, this_machine_can_be_read_and_placed)
{
        struct sl_machine machine;
        struct sl_thread_cores thread_cores;
        struct sl_thread_cores_wish wish = no_wish();

        sl_machine_read(&machine);
        cr_assert_gt(CPU_COUNT(&machine.allowed), 0);
        cr_assert_eq(sl_thread_cores_choose(&machine, &wish, &thread_cores, NULL), 0);
        cr_assert_gt(thread_cores.n_usable, 0);
}

/* Between two, so that no other one is named. */
Test(topology, text_is_cut_and_never_overruns)
{
        cpu_set_t cores;
        char text[64];

        CPU_ZERO(&cores);
        for (int core = 0; core < 8; core += 2)
                CPU_SET(core, &cores);
        cr_expect_str_eq(sl_cores_text(&cores, text, 8), "0,2,4,6");
        for (int core = 8; core < 128; core += 2)
                CPU_SET(core, &cores);
        cr_expect_str_eq(sl_cores_text(&cores, text, 8), "0,2,...");
        cr_expect_str_eq(sl_cores_text(&cores, text, 7), "0,...");
        cr_expect_str_eq(sl_cores_text(&cores, text, 32), "0,2,4,6,8,10,12,14,16,18,20,...");
        for (size_t bytes = 1; bytes <= sizeof(text); bytes++)
                cr_expect_lt(strlen(sl_cores_text(&cores, text, bytes)), bytes);
}
