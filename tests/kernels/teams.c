/* SPDX-License-Identifier: Apache-2.0 */
#include "team.h"

#include "base/clock.h"
#include "base/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define TEAM_CALLS 3000u

/* What a call writes, without atomics: the team is what orders it. */
struct sheet {
        uint64_t number, seed;
        uint32_t parts;
        uint64_t written[SL_TEAM_MEMBERS_MAX];
        uint32_t times[SL_TEAM_MEMBERS_MAX], by[SL_TEAM_MEMBERS_MAX];
};

static uint64_t next_random(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return *state >> 33;
}

static void pause_ns(uint64_t ns)
{
        nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static void write_part(void *context, uint32_t part, uint32_t member)
{
        struct sheet *sheet = context;

        sheet->written[part] = sheet->number * 100 + part;
        sheet->times[part]++;
        sheet->by[part] = member;
        if ((sheet->number * 7 + part) % 41 == sheet->seed % 41)
                sched_yield();
}

static struct sl_team *new_team(uint32_t size, uint64_t spin_ns)
{
        struct sl_error error = {""};
        struct sl_team *team;

        cr_assert_eq(sl_team_new(&(struct sl_team_options){.size = size, .spin_ns = spin_ns}, &team, &error), 0, "%s", error.text);
        return team;
}

static void call_and_check(struct sl_team *team, struct sheet *sheet, uint32_t parts)
{
        memset(sheet->times, 0, sizeof(sheet->times));
        sheet->number++;
        sheet->parts = parts;
        sl_team_run(team, parts, write_part, sheet);
        for (uint32_t p = 0; p < SL_TEAM_MEMBERS_MAX; p++) {
                cr_assert_eq(sheet->times[p], p < parts, "call %llu: part %u ran %u times", (unsigned long long)sheet->number, p,
                        sheet->times[p]);
                if (p >= parts)
                        continue;
                cr_assert_eq(sheet->written[p], sheet->number * 100 + p);
                cr_assert(sheet->by[p] == p || sheet->by[p] == 0, "part %u was computed by member %u", p, sheet->by[p]);
        }
}

static void run_calls(uint32_t size, uint64_t spin_ns, uint32_t calls)
{
        struct sl_team *team = new_team(size, spin_ns);
        struct sheet sheet = {.seed = size};
        uint64_t random = size + 1;

        cr_assert_eq(sl_team_size(team), size);
        for (uint32_t i = 0; i < calls; i++) {
                uint64_t what = next_random(&random) % 200;

                if (what == 0)
                        sl_team_rest(team);
                if (what == 1)
                        pause_ns(300000);
                call_and_check(team, &sheet, 1 + (uint32_t)(next_random(&random) % size));
        }
        sl_team_free(team);
}

Test(team, runs_each_part_once_whatever_its_size)
{
        for (uint32_t size = 1; size <= 16; size++)
                run_calls(size, SL_TEAM_SPIN_NS, size > 2 ? TEAM_CALLS / 10 : TEAM_CALLS);
}

Test(team, that_never_spins_runs_each_part_once)
{
        for (uint32_t size = 2; size <= 16; size *= 2)
                run_calls(size, 0, TEAM_CALLS / 10);
}

Test(team, ends_at_any_moment)
{
        struct sheet sheet = {.seed = 3};
        uint64_t random = 9;

        for (uint32_t round = 0; round < 150; round++) {
                uint32_t size = 1 + round % 16;
                struct sl_team *team = new_team(size, round % 3 ? SL_TEAM_SPIN_NS : 0);

                for (uint64_t calls = next_random(&random) % 3; calls > 0; calls--)
                        call_and_check(team, &sheet, size);
                if (round % 5 == 0)
                        sl_team_rest(team);
                if (round % 7 == 0)
                        pause_ns(next_random(&random) % 400000);
                sl_team_free(team);
        }
}

static void be_slow_elsewhere(void *context, uint32_t part, uint32_t member)
{
        uint32_t *by = context;

        by[part] = member;
        if (member == 0)
                pause_ns(2000000);
}

/* Members asleep take too long to come, or do not come at all: their parts are the owner's. */
Test(team, whose_members_sleep_is_slow_and_does_not_hang)
{
        struct sl_team *team = new_team(4, 0);
        uint32_t by[4];

        for (int i = 0; i < 20; i++) {
                sl_team_rest(team);
                pause_ns(500000);
                sl_team_run(team, 4, be_slow_elsewhere, by);
                for (uint32_t p = 0; p < 4; p++)
                        cr_assert(by[p] == p || by[p] == 0);
        }
        sl_team_free(team);
}

static void count_part(void *context, uint32_t part, uint32_t member)
{
        (void)member;
        ((uint32_t *)context)[part]++;
}

/* All of them on the owner's CPU: nobody runs but when another sleeps. */
Test(team, on_one_processor_ends_its_calls)
{
        int cpu = sched_getcpu(), cpus[8];
        struct sl_error error = {""};
        cpu_set_t set, before;
        uint32_t counts[8] = {0};
        struct sl_team *team;

        cr_assert_eq(sched_getaffinity(0, sizeof(before), &before), 0);
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
        for (int i = 0; i < 8; i++)
                cpus[i] = cpu;
        cr_assert_eq(sl_team_new(&(struct sl_team_options){.size = 8, .cpus = cpus, .spin_ns = SL_TEAM_SPIN_NS}, &team, &error), 0);
        for (int i = 0; i < 300; i++)
                sl_team_run(team, 8, count_part, counts);
        sl_team_free(team);
        for (int i = 0; i < 8; i++)
                cr_assert_eq(counts[i], 300);
        sched_setaffinity(0, sizeof(before), &before);
}

Test(team, counts_the_parts_that_its_owner_takes_over)
{
        struct sl_team *team = new_team(2, 0);
        struct sheet sheet = {.seed = 1};
        uint64_t over = 0;

        for (int i = 0; i < 200; i++) {
                call_and_check(team, &sheet, 2);
                over += sheet.by[1] == 0;
        }
        cr_assert_eq(sl_team_taken_over(team), over);
        sl_team_free(team);
}

Test(team, refuses_sizes_and_cpus_out_of_range)
{
        struct sl_error error = {""};
        struct sl_team *team;
        int cpus[2] = {0, 100000};

        cr_assert_eq(sl_team_new(&(struct sl_team_options){.size = 0}, &team, &error), -EINVAL);
        cr_assert_eq(sl_team_new(&(struct sl_team_options){.size = 65}, &team, &error), -EINVAL);
        cr_assert_str_eq(error.text, "a team of 65 threads, of 1 to 64");
        cr_assert_eq(sl_team_new(&(struct sl_team_options){.size = 2, .cpus = cpus}, &team, &error), -EINVAL);
        cr_assert_str_eq(error.text, "a team on CPU 100000, of 0 to 1023");
        cr_assert_null(sl_team_free(NULL));
}
