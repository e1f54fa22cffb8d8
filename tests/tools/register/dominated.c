/* SPDX-License-Identifier: Apache-2.0 */
/* Which candidates are left out, and which one is named as the reason. */
#include "dominated.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct registered make(const char *name, double accuracy, double bytes, double one_ns, double eight_ns)
{
        struct registered candidate = {.state = REGISTERED_MADE, .accuracy = accuracy, .weights_bytes = bytes, .n_points = 2};

        snprintf(candidate.name, sizeof(candidate.name), "%s", name);
        candidate.points[0] = (struct registered_point){.batch = 1, .threads = 1, .latency_ns = one_ns};
        candidate.points[1] = (struct registered_point){.batch = 8, .threads = 1, .latency_ns = eight_ns};
        return candidate;
}

static void expect(const struct registered *candidate, const char *by)
{
        if (!by)
                cr_expect_str_empty(candidate->reason, "%s: %s", candidate->name, candidate->reason);
        else
                cr_expect(strncmp(candidate->reason, by, strlen(by)) == 0, "%s: %s", candidate->name, candidate->reason);
}

Test(register_dominated, a_candidate_stays_that_is_better_in_one_thing)
{
        struct registered all[] = {make("base", 0.9, 100, 10, 80), make("accurate", 0.91, 200, 20, 160),
                make("small", 0.9, 50, 11, 90), make("batches", 0.9, 100, 12, 70)};

        registered_leave_out(all, 4);
        for (int i = 0; i < 4; i++)
                expect(&all[i], NULL);
}

Test(register_dominated, a_candidate_goes_that_is_better_in_nothing)
{
        struct registered all[] = {make("worse", 0.9, 100, 10, 80), make("same", 0.9, 100, 10, 79)};

        registered_leave_out(all, 2);
        expect(&all[0], "same ");
        expect(&all[1], NULL);
}

Test(register_dominated, the_one_that_is_named_stays_itself)
{
        struct registered all[] = {
                make("third", 0.7, 300, 30, 300), make("second", 0.8, 200, 20, 200), make("first", 0.9, 100, 10, 100)};

        registered_leave_out(all, 3);
        expect(&all[0], "first ");
        expect(&all[1], "first ");
        expect(&all[2], NULL);
}

Test(register_dominated, of_equals_the_first_stays)
{
        struct registered all[] = {make("one", 0.9, 100, 10, 80), make("two", 0.9, 100, 10, 80), make("three", 0.9, 100, 10, 80)};

        registered_leave_out(all, 3);
        expect(&all[0], NULL);
        expect(&all[1], "one ");
        expect(&all[2], "one ");
}

Test(register_dominated, what_is_not_known_is_compared_with_nothing)
{
        struct registered all[] = {
                make("known", 0.9, 100, 10, 80), make("not profiled", 0.8, 200, 20, 160), make("not made", 0.8, 200, 20, 160)};

        all[1].n_points = 0;
        all[2].state = REGISTERED_NOT_YET;
        registered_leave_out(all, 3);
        for (int i = 0; i < 3; i++)
                expect(&all[i], NULL);
        all[1].n_points = 1;
        all[1].points[0].batch = 2; /* none that both have */
        registered_leave_out(all, 2);
        expect(&all[1], NULL);
}
