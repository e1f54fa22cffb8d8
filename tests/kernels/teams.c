/* SPDX-License-Identifier: Apache-2.0 */
#include "team.h"

#include "base/clock.h"
#include "base/error.h"
#include "team_watch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* Without a member that is away: parts from it on are those of the next one. */
static void call_without(struct sl_team *team, struct sheet *sheet, uint32_t parts, uint32_t away)
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
                cr_assert(sheet->by[p] == p + (away && p >= away) || sheet->by[p] == 0, "part %u was computed by member %u", p,
                        sheet->by[p]);
        }
}

static void call_and_check(struct sl_team *team, struct sheet *sheet, uint32_t parts)
{
        call_without(team, sheet, parts, 0);
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

Test(team, leaves_out_who_is_away_and_takes_them_back)
{
        for (uint32_t size = 2; size <= 16; size += size < 5 ? 1 : 5) {
                struct sl_team *team = new_team(size, size % 2 ? SL_TEAM_SPIN_NS : 0);
                struct sheet sheet = {.seed = size};
                uint64_t random = size;

                for (int i = 0; i < 200; i++) {
                        uint32_t away = (uint32_t)(next_random(&random) % size);

                        sl_team_send_away(team, away);
                        cr_assert_eq(sl_team_present(team), size - (away > 0));
                        cr_assert_eq(sl_team_gather(team), sl_team_present(team));
                        for (int k = 0; k < 3; k++)
                                call_without(team, &sheet, sl_team_present(team), away);
                }
                sl_team_free(team);
        }
}

static uint64_t process_ns(void)
{
        struct timespec used;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        return (uint64_t)used.tv_sec * SL_NS_PER_SECOND + (uint64_t)used.tv_nsec;
}

/* Whether the process does without a processor for a while, within five seconds. */
static bool comes_to_rest(void)
{
        for (int i = 0; i < 100; i++) {
                uint64_t before = process_ns();

                pause_ns(50 * SL_NS_PER_MS);
                if (process_ns() - before < 10 * SL_NS_PER_MS)
                        return true;
        }
        return false;
}

/* With one core they never spin. */
Test(team, that_rests_spins_with_nobody_who_is_present_or_away, .timeout = 60)
{
        for (uint32_t size = 2; size <= 3; size++) {
                struct sl_team *team = new_team(size, 100 * SL_NS_PER_SECOND);
                struct sheet sheet = {.seed = size};

                for (uint32_t round = 0; round < 4; round++) {
                        uint32_t away = round % 2;

                        call_without(team, &sheet, sl_team_present(team), sl_team_present(team) < size);
                        sl_team_send_away(team, away);
                        if (round > 1)
                                call_without(team, &sheet, sl_team_present(team), away);
                        sl_team_rest(team);
                        cr_expect(comes_to_rest(), "%u members, round %u: one still looks for steps", size, round);
                }
                sl_team_free(team);
        }
}

/* What members 1 and 2 of three have had since before: ran, waited, in ms. */
static uint32_t judge(struct sl_team_watch *watch, uint64_t now_ms, const uint64_t ms[4])
{
        static struct sl_thread_times times[3];

        if (!watch->next_ns)
                memset(times, 0, sizeof(times));
        for (int i = 0; i < 2; i++) {
                times[i + 1].ran_ns += ms[2 * i] * 1000000;
                times[i + 1].waited_ns += ms[2 * i + 1] * 1000000;
        }
        return sl_team_watch_judge(watch, now_ms * 1000000, times, 3);
}

Test(team_watch, sends_away_who_waits_longest_for_its_cpu)
{
        struct sl_team_watch watch = {.next_ns = 0};

        cr_expect_eq(judge(&watch, 20, (uint64_t[]){20, 0, 20, 0}), 0);
        cr_expect_eq(judge(&watch, 40, (uint64_t[]){19, 1, 17, 3}), 0, "less than a fifth");
        cr_expect_eq(judge(&watch, 60, (uint64_t[]){14, 6, 10, 10}), 2);
        cr_expect_eq(judge(&watch, 80, (uint64_t[]){10, 10, 0, 0}), 2, "one at a time");
}

Test(team_watch, takes_back_on_trial_and_waits_longer_each_time_that_nothing_has_changed)
{
        struct sl_team_watch watch = {.next_ns = 0};
        uint64_t now = 20, before = 0;

        (void)judge(&watch, now, (uint64_t[]){20, 0, 20, 0});
        for (int i = 0; i < 8; i++) {
                uint64_t away_ms = 0;

                cr_assert_eq(judge(&watch, now += 20, (uint64_t[]){10, 10, 20, 0}), 1);
                while (judge(&watch, now += 20, (uint64_t[]){0, 0, 20, 0}))
                        away_ms += 20;
                cr_expect(away_ms > before || away_ms >= 3000, "away for %llu ms after %llu", (unsigned long long)away_ms,
                        (unsigned long long)before);
                before = away_ms;
        }
        cr_assert_eq(judge(&watch, now += 20, (uint64_t[]){20, 0, 20, 0}), 0);
        cr_assert_eq(judge(&watch, now += 20, (uint64_t[]){10, 10, 20, 0}), 1);
        cr_expect_eq(watch.pause_ns, SL_WATCH_PAUSE_NS, "what has gone well is forgotten");
}

Test(team_watch, forgets_what_came_while_nobody_looked)
{
        struct sl_team_watch watch = {.next_ns = 0};

        (void)judge(&watch, 20, (uint64_t[]){20, 0, 20, 0});
        cr_expect_eq(judge(&watch, 5000, (uint64_t[]){10, 900, 20, 0}), 0);
        cr_expect_eq(judge(&watch, 5020, (uint64_t[]){10, 10, 20, 0}), 1);
}

Test(team_watch, keeps_who_waited_while_the_team_had_nothing_to_do)
{
        struct sl_team_watch watch = {.next_ns = 0};

        (void)judge(&watch, 20, (uint64_t[]){20, 0, 20, 0});
        cr_expect_eq(judge(&watch, 140, (uint64_t[]){1, 4, 1, 11}), 0, "11 of 120 ms");
        cr_expect_eq(judge(&watch, 260, (uint64_t[]){1, 4, 1, 12}), 2, "12 of 120 ms");
}

/* The system counts at its ticks. */
Test(team_watch, reads_what_a_thread_has_had)
{
        struct sl_thread_times times = {.ran_ns = 0};
        uint64_t until = sl_clock_ns() + SL_NS_PER_SECOND;

        cr_expect_not(sl_thread_times_read(-1, &times));
        if (!sl_thread_times_read(gettid(), &times))
                cr_skip_test("this system does not say");
        while (!times.ran_ns && sl_clock_ns() < until)
                cr_assert(sl_thread_times_read(gettid(), &times));
        cr_expect_gt(times.ran_ns, 0);
}
