/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of claims on cores: who holds one counts, also where its process cannot be seen, and nobody is waited for time and again.
 */
#include "core_claims.h"
#include "base/clock.h"
#include "folder.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define CORES 4

static struct folder folder;

static void set_up(void)
{
        folder_make(&folder);
}

static void tear_down(void)
{
        folder_remove(&folder);
}

TestSuite(core_claims, .init = set_up, .fini = tear_down);

static struct sl_thread_cores cores_of(int n)
{
        struct sl_thread_cores cores = {.spin_ns = 0};

        CPU_SET(0, &cores.dispatcher_cores);
        for (int core = 0; core < n; core++)
                CPU_SET(core, &cores.worker_cores);
        return cores;
}

static struct sl_core_claims *take(const char *name, struct sl_core_sharing *ret_sharing)
{
        const struct sl_thread_cores cores = cores_of(CORES);
        struct sl_core_claims *claims = NULL;

        cr_assert_eq(sl_core_claims_take(folder.path, name, &cores, &claims, ret_sharing), 0);
        return claims;
}

static void survey(struct sl_machine *ret_machine)
{
        *ret_machine = (struct sl_machine){.taken = {{0}}};
        for (int core = 0; core < 2 * CORES; core++)
                CPU_SET(core, &ret_machine->allowed);
        sl_core_claims_survey(folder.path, ret_machine);
}

/* What a runtime of another namespace has written: there is no such process here. */
static void hide_holder(const char *use, int core)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/core-%d.%s", folder.path, core, use);
        FILE *file = fopen(path, "r+");
        cr_assert_not_null(file);
        fputs("hidden 4294967294", file);
        cr_assert_eq(fclose(file), 0);
}

static void hide_all(void)
{
        hide_holder("dispatcher", 0);
        for (int core = 0; core < CORES; core++)
                hide_holder("workers", core);
}

Test(core_claims, who_holds_a_core_counts_though_its_process_is_in_another_namespace)
{
        struct sl_core_sharing sharing;
        struct sl_core_claims *claims = take("hidden", &sharing);
        struct sl_machine machine;

        survey(&machine);
        cr_expect_eq(CPU_COUNT(&machine.taken), CORES);
        hide_all();
        survey(&machine);
        cr_expect_eq(CPU_COUNT(&machine.taken), CORES);
        cr_expect(CPU_ISSET(0, &machine.dispatching));
        sl_core_claims_free(claims);
        survey(&machine);
        cr_expect_eq(CPU_COUNT(&machine.taken), 0);
}

Test(core_claims, a_start_waits_once_for_all_holders)
{
        struct sl_core_sharing sharing;
        struct sl_core_claims *claims = take("hidden", &sharing);
        uint64_t start_ns;

        hide_all();
        start_ns = sl_clock_ns();
        struct sl_core_claims *second = take("second", &sharing);
        cr_expect_lt(sl_clock_ns() - start_ns, 2 * CORES * SL_NS_PER_SECOND, "two seconds for each of CORES + 1 claims");
        cr_expect_eq(CPU_COUNT(&sharing.cores), CORES);
        cr_expect_str_eq(sharing.holders, "hidden (pid 4294967294)");
        sl_core_claims_free(second);
        sl_core_claims_free(claims);
}
