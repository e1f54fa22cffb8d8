/* SPDX-License-Identifier: Apache-2.0 */
#include "condition.h"

#include <criterion/criterion.h>

#define MS 1000000ull

/* A worker whose clock goes on with what it does. */
struct rig {
        struct sl_worker_condition worker;
        uint64_t now_ns;
        uint32_t changes[SL_CONDITION_CHANGE_COUNT];
};

static struct rig rig(void)
{
        struct rig rig = {.now_ns = 1000 * MS};

        sl_condition_begin(&rig.worker);
        return rig;
}

static void count(struct rig *rig, uint32_t changes)
{
        for (uint32_t i = 0; i < SL_CONDITION_CHANGE_COUNT; i++)
                rig->changes[i] += changes >> i & 1;
}

/* @n jobs of 1 ms, each after a pause. */
static void jobs(struct rig *rig, uint32_t n, uint64_t pause_ns, bool waits, double log_ratio)
{
        for (uint32_t i = 0; i < n; i++) {
                rig->now_ns += pause_ns + MS;
                count(rig, sl_condition_job_ended(&rig->worker, &(struct sl_job_end){.end_ns = rig->now_ns,
                                                                        .busy_ns = MS,
                                                                        .waits = waits,
                                                                        .has_ratio = true,
                                                                        .log_ratio = log_ratio}));
        }
}

static void rest(struct rig *rig, uint64_t ns)
{
        rig->now_ns += ns;
        count(rig, sl_condition_rests(&rig->worker, rig->now_ns));
}

static void expect_state(const struct rig *rig, enum sl_condition wanted)
{
        cr_expect_str_eq(sl_condition_name(rig->worker.condition), sl_condition_name(wanted));
}

static void expect_changes(const struct rig *rig, uint32_t peak, uint32_t below_peak, uint32_t slowed, uint32_t recovered)
{
        cr_expect_eq(rig->changes[SL_CONDITION_CHANGE_PEAK], peak);
        cr_expect_eq(rig->changes[SL_CONDITION_CHANGE_BELOW_PEAK], below_peak);
        cr_expect_eq(rig->changes[SL_CONDITION_CHANGE_SLOWED], slowed);
        cr_expect_eq(rig->changes[SL_CONDITION_CHANGE_RECOVERED], recovered);
}

Test(condition, below_its_peak_a_worker_is_active)
{
        struct rig r = rig();

        jobs(&r, 1000, MS, false, 0);
        expect_state(&r, SL_CONDITION_ACTIVE);
        jobs(&r, 1000, MS / 2, true, 0); /* work waits for others, and it has pauses */
        expect_state(&r, SL_CONDITION_ACTIVE);
        jobs(&r, 1000, 0, false, 0); /* as much as it can do, and no more */
        expect_state(&r, SL_CONDITION_ACTIVE);
        expect_changes(&r, 0, 0, 0, 0);
}

Test(condition, busy_without_a_break_while_work_waits_is_overloaded_until_it_rests)
{
        struct rig r = rig();

        jobs(&r, 1000, 0, true, 0);
        expect_state(&r, SL_CONDITION_OVERLOADED);
        rest(&r, 100 * MS);
        expect_state(&r, SL_CONDITION_ACTIVE);
        expect_changes(&r, 1, 1, 0, 0);
}

Test(condition, a_burst_of_a_few_jobs_is_no_overload)
{
        struct rig r = rig();

        for (uint32_t i = 0; i < 100; i++) {
                jobs(&r, 7, 0, true, 0);
                rest(&r, 50 * MS);
        }
        expect_changes(&r, 0, 0, 0, 0);
}

/* Between the two bounds it stays what it is. */
Test(condition, a_load_about_the_bound_does_not_flap)
{
        struct rig r = rig();

        jobs(&r, 1000, 0, true, 0);
        for (uint32_t i = 0; i < 1000; i++)
                jobs(&r, 1, i % 2 ? MS / 5 : 0, true, 0); /* busy for 91 % */
        expect_state(&r, SL_CONDITION_OVERLOADED);
        expect_changes(&r, 1, 0, 0, 0);
        rest(&r, 1000 * MS);
        for (uint32_t i = 0; i < 1000; i++)
                jobs(&r, 1, i % 2 ? MS / 5 : 0, true, 0);
        expect_state(&r, SL_CONDITION_ACTIVE);
        expect_changes(&r, 1, 1, 0, 0);
}

Test(condition, slower_than_its_profile_below_its_peak_is_interfered)
{
        struct rig r = rig();

        jobs(&r, 100, 3 * MS, false, 0.26);
        expect_state(&r, SL_CONDITION_INTERFERED);
        jobs(&r, 100, 3 * MS, false, 0);
        expect_state(&r, SL_CONDITION_ACTIVE);
        expect_changes(&r, 0, 0, 1, 1);
}

Test(condition, at_its_peak_it_is_overloaded_however_slow)
{
        struct rig r = rig();

        jobs(&r, 1000, 0, true, 0.26);
        expect_state(&r, SL_CONDITION_OVERLOADED);
        rest(&r, 100 * MS);
        expect_state(&r, SL_CONDITION_INTERFERED); /* nothing has said otherwise since */
        expect_changes(&r, 1, 1, r.changes[SL_CONDITION_CHANGE_SLOWED], 0);
        cr_expect_geq(r.changes[SL_CONDITION_CHANGE_SLOWED], 1u);
}

/* However often it is looked at; and then a neighbour is found as soon as before. */
Test(condition, interference_is_forgotten_after_a_second_without_a_job)
{
        struct rig r = rig();

        jobs(&r, 100, 3 * MS, false, 0.26);
        for (uint32_t i = 0; i < 99; i++)
                rest(&r, 10 * MS);
        expect_state(&r, SL_CONDITION_INTERFERED);
        rest(&r, 10 * MS);
        expect_state(&r, SL_CONDITION_ACTIVE);
        expect_changes(&r, 0, 0, 1, 1);
        jobs(&r, 20, 3 * MS, false, 0.26);
        expect_state(&r, SL_CONDITION_INTERFERED);
        expect_changes(&r, 0, 0, 2, 1);
}

/* What jobs far apart say adds up. */
Test(condition, a_neighbour_is_found_by_jobs_that_are_seconds_apart)
{
        struct rig r = rig();

        for (uint32_t i = 0; i < 20; i++) {
                jobs(&r, 1, 0, false, 0.26);
                if (r.changes[SL_CONDITION_CHANGE_SLOWED])
                        break;
                rest(&r, 5000 * MS);
        }
        expect_changes(&r, 0, 0, 1, 0);
}

Test(condition, a_long_rest_is_one_look)
{
        struct rig r = rig();

        jobs(&r, 1000, 0, true, 0);
        rest(&r, 3600ull * 1000 * MS);
        cr_expect_lt(r.worker.busy, 0.001);
        rest(&r, 0);
        expect_changes(&r, 1, 1, 0, 0);
}

Test(condition, of_a_variant_follows_from_those_of_its_workers)
{
        static const struct {
                uint32_t active, overloaded, interfered;
                enum sl_condition wanted;
        } cases[] = {
                {0, 0, 0, SL_CONDITION_INACTIVE},
                {3, 0, 0, SL_CONDITION_ACTIVE},
                {1, 5, 0, SL_CONDITION_ACTIVE},
                {0, 2, 0, SL_CONDITION_OVERLOADED},
                {0, 2, 1, SL_CONDITION_INTERFERED},
                {1, 0, 1, SL_CONDITION_INTERFERED},
                {2, 0, 1, SL_CONDITION_ACTIVE},
        };

        for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                const uint32_t workers[SL_CONDITION_COUNT] = {[SL_CONDITION_ACTIVE] = cases[i].active,
                        [SL_CONDITION_OVERLOADED] = cases[i].overloaded,
                        [SL_CONDITION_INTERFERED] = cases[i].interfered};

                cr_expect_eq(sl_condition_of(workers), cases[i].wanted, "case %u", i);
        }
}
