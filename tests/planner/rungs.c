/* SPDX-License-Identifier: Apache-2.0 */
/* Which variants of a task are to serve: the rules of rungs.h, by examples and in any fleet. */
#include "rungs.h"

#include <criterion/criterion.h>

#define FLEETS    20000u
#define RUNGS_MAX 7u

static uint64_t draw(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state >> 8;
}

static void expect_move(const struct sl_rung *rungs, uint32_t n, enum sl_rungs_move move, uint32_t rung)
{
        uint32_t found = UINT32_MAX;

        cr_assert_eq(sl_rungs_next(rungs, n, &found), move);
        cr_expect_eq(found, rung);
}

Test(rungs, of_those_that_are_faster_than_what_lacks_the_most_accurate_comes)
{
        struct sl_rung rungs[] = {{.accuracy = 0.97, .rate = 1000}, {.accuracy = 0.98, .rate = 300},
                {.accuracy = 0.99, .rate = 100, .serves = true, .lacks = true, .required = 120}, {.accuracy = 0.995, .rate = 50}};

        expect_move(rungs, 4, SL_RUNGS_FASTER, 1);
        rungs[1].waits = true;
        expect_move(rungs, 4, SL_RUNGS_FASTER, 0);
        rungs[1].waits = false;
        rungs[0].comes = true;
        expect_move(rungs, 4, SL_RUNGS_STAY, UINT32_MAX);
        rungs[0] = (struct sl_rung){.accuracy = 0.97, .rate = 1000, .serves = true};
        expect_move(rungs, 4, SL_RUNGS_STAY, UINT32_MAX);
        rungs[0].lacks = true;
        expect_move(rungs, 4, SL_RUNGS_STAY, UINT32_MAX);
}

Test(rungs, the_more_accurate_returns_when_it_does_what_is_required_of_all)
{
        struct sl_rung rungs[] = {{.accuracy = 0.97, .rate = 1000, .serves = true, .required = 90}, {.accuracy = 0.98, .rate = 300},
                {.accuracy = 0.99, .rate = 100}, {.accuracy = 0.995}};

        expect_move(rungs, 4, SL_RUNGS_ACCURATE, 2);
        rungs[0].required = 101;
        expect_move(rungs, 4, SL_RUNGS_ACCURATE, 1);
        rungs[1].waits = true;
        expect_move(rungs, 4, SL_RUNGS_STAY, UINT32_MAX);
}

Test(rungs, what_has_never_computed_counts_as_faster_than_what_is_more_accurate)
{
        struct sl_rung rungs[] = {
                {.accuracy = 0.97}, {.accuracy = 0.99, .rate = 100, .serves = true, .lacks = true}, {.accuracy = 0.995}};

        expect_move(rungs, 3, SL_RUNGS_FASTER, 0);
        rungs[0].serves = true;
        expect_move(rungs, 3, SL_RUNGS_STAY, UINT32_MAX);
}

static struct sl_rung draw_rung(uint64_t *state)
{
        struct sl_rung rung = {.accuracy = (double)(draw(state) % 100) / 100,
                .rate = (double)(draw(state) % 4 * 100),
                .required = (double)(draw(state) % 300),
                .serves = draw(state) % 2,
                .waits = draw(state) % 4 == 0};

        rung.lacks = rung.serves && draw(state) % 3 == 0;
        rung.comes = !rung.serves && draw(state) % 12 == 0;
        return rung;
}

/* Whatever comes does not serve yet, is not waited with, and is for something: and nothing else would be better for that. */
Test(rungs, in_any_fleet_one_comes_that_is_for_something)
{
        uint64_t state = 88172645463325252ull;
        uint32_t moves[3] = {0};

        for (uint32_t round = 0; round < FLEETS; round++) {
                uint32_t n = (uint32_t)(draw(&state) % (RUNGS_MAX + 1)), rung = UINT32_MAX, lacking = 0, coming = 0;
                struct sl_rung rungs[RUNGS_MAX];
                enum sl_rungs_move move;
                double top = -1;

                for (uint32_t i = 0; i < n; i++) {
                        rungs[i] = draw_rung(&state);
                        lacking += rungs[i].lacks;
                        coming += rungs[i].comes;
                        if (rungs[i].serves && rungs[i].accuracy > top)
                                top = rungs[i].accuracy;
                }
                move = sl_rungs_next(rungs, n, &rung);
                moves[move]++;
                if (move == SL_RUNGS_STAY)
                        continue;
                cr_assert(rung < n && !rungs[rung].serves && !rungs[rung].waits && !coming, "round %u", round);
                cr_assert_eq(move == SL_RUNGS_FASTER, lacking > 0, "round %u", round);
                if (move == SL_RUNGS_ACCURATE)
                        cr_assert(rungs[rung].accuracy > top && rungs[rung].rate > 0, "round %u", round);
                for (uint32_t i = 0; i < n && move == SL_RUNGS_ACCURATE; i++)
                        cr_assert(rungs[i].serves || rungs[i].waits || rungs[i].accuracy <= rungs[rung].accuracy ||
                                          rungs[i].rate < rungs[rung].rate || rungs[i].rate == 0 || rungs[i].accuracy <= top,
                                "round %u", round);
        }
        cr_expect(moves[SL_RUNGS_STAY] > 1000 && moves[SL_RUNGS_FASTER] > 500 && moves[SL_RUNGS_ACCURATE] > 100, "%u %u %u",
                moves[0], moves[1], moves[2]);
}
