/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which steps stand side by side, by seconds that are made up: the graph says who may, the seconds say for which teams it pays.
 */
#include "branches.h"

#include "backend.h"
#include "network.h"
#include "placement.h"
#include "schedule.h"
#include "target.h"

#include <criterion/criterion.h>

#define US   1e-6
#define CALL US /* of a team of two */

static struct network net;
static struct sl_placement *placement;
static struct sl_schedule *schedule;

static void begin(void)
{
        network_init(&net);
}

static void end(void)
{
        schedule = sl_schedule_free(schedule);
        placement = sl_placement_free(placement);
        network_deinit(&net);
}

TestSuite(branches, .init = begin, .fini = end);

/* Not in place, for it reads its argument twice. */
static uint32_t twice(uint32_t x)
{
        return network_node(&net, SL_OP_ADD, VALUES(x, x), 0, NULL);
}

static uint32_t sum(uint32_t a, uint32_t b)
{
        return network_node(&net, SL_OP_ADD, VALUES(a, b), 0, NULL);
}

static void schedule_it(uint32_t output)
{
        network_output(&net, output);
        network_finish(&net);
        cr_assert_eq(sl_placement_new(net.graph, "ref", NULL, &placement, NULL), 0);
        cr_assert_eq(sl_schedule_new(placement, false, &schedule), 0);
        for (uint32_t s = 0; s < schedule->n_steps; s++)
                schedule->steps[s].seconds.whole = 100 * US;
}

/* Any team of @members and more cuts the step into so many parts, smaller ones into as many as they are; nothing is lost by it. */
static void cut(uint32_t step, uint32_t members)
{
        struct sl_step *target = &schedule->steps[step];

        for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT; i++) {
                uint32_t size = sl_team_size_at(i), n = size < members ? size : members;

                target->splits[i] = (struct sl_split){SL_AXIS_ROWS, (uint8_t)n, 0, 0};
                target->seconds.team[i] = target->seconds.whole / n;
        }
}

static void arrange(uint32_t widest)
{
        struct sl_core_figures core = sl_target_typical.core;

        core.barrier = CALL;
        cr_assert_eq(sl_branches_arrange(schedule, placement->graph, &core, widest), 0);
}

static void expect_split(uint32_t step, uint32_t size, uint32_t axis, uint32_t members, uint32_t first)
{
        struct sl_split split = schedule->steps[step].splits[size];

        cr_expect(split.axis == axis && split.members == members && split.first == first,
                "step %u, a team of %u: axis %u, %u members from %u on", step, sl_team_size_at(size), split.axis, split.members,
                split.first);
}

static uint32_t made_by(uint32_t step)
{
        return placement->graph->nodes[schedule->steps[step].node].outputs[0];
}

static const struct sl_block *block_of(uint32_t value)
{
        cr_assert_eq(schedule->storages[value].place, SL_PLACE_WORKSPACE);
        return &schedule->blocks[schedule->storages[value].index];
}

/* A large value that is gone before the branches begin, so that these may take more than they did. */
static uint32_t large_stem(void)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 4096));

        return network_node(&net, SL_OP_MATMUL, VALUES(twice(x), network_weights(&net, DIMS(4096, 16))), 0, NULL);
}

Test(branches, whole_steps_that_touch_nothing_of_each_others_have_a_member_each)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16));

        schedule_it(sum(twice(x), twice(x)));
        arrange(2);
        expect_split(0, SL_TEAM_SIZE_2, SL_AXIS_NONE, 1, 0);
        expect_split(1, SL_TEAM_SIZE_2, SL_AXIS_NONE, 1, 1);
        cr_expect(schedule->steps[0].splits[SL_TEAM_SIZE_2].begins && !schedule->steps[1].splits[SL_TEAM_SIZE_2].begins);
        expect_split(2, SL_TEAM_SIZE_2, SL_AXIS_NONE, 0, 0);
        expect_split(0, SL_TEAM_SIZE_4, SL_AXIS_NONE, 0, 0);
}

Test(branches, steps_that_all_members_finish_as_soon_are_computed_by_all)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16));

        schedule_it(sum(twice(x), twice(x)));
        cut(0, 64);
        cut(1, 64);
        arrange(16);
        for (uint32_t size = 0; size <= SL_TEAM_SIZE_16; size++) {
                expect_split(0, size, SL_AXIS_ROWS, sl_team_size_at(size), 0);
                expect_split(1, size, SL_AXIS_ROWS, sl_team_size_at(size), 0);
        }
}

Test(branches, members_that_a_step_leaves_out_compute_another_one)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16));

        schedule_it(sum(twice(x), twice(x)));
        cut(0, 4);
        cut(1, 4);
        arrange(16);
        expect_split(0, SL_TEAM_SIZE_4, SL_AXIS_ROWS, 4, 0);
        expect_split(1, SL_TEAM_SIZE_4, SL_AXIS_ROWS, 4, 0);
        expect_split(0, SL_TEAM_SIZE_8, SL_AXIS_ROWS, 4, 0);
        expect_split(1, SL_TEAM_SIZE_8, SL_AXIS_ROWS, 4, 4);
}

Test(branches, a_step_that_needs_another_one_is_behind_it)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16)), y = twice(x);

        schedule_it(sum(twice(y), y));
        arrange(16);
        for (uint32_t s = 0; s < schedule->n_steps; s++) {
                cr_expect_eq(schedule->steps[s].node, s);
                expect_split(s, SL_TEAM_SIZE_2, SL_AXIS_NONE, 0, 0);
        }
}

Test(branches, of_several_steps_go_in_step_and_their_values_live_as_long_as_their_neighbours)
{
        uint32_t stem = large_stem(), left = twice(stem), right;

        left = twice(left);
        right = twice(stem);
        right = twice(right);
        schedule_it(sum(left, right));
        cr_assert_eq(schedule->n_steps, 7);
        arrange(2);
        cr_expect_eq(made_by(3), placement->graph->nodes[schedule->steps[5].node].inputs[0], "the other branch has moved up");
        cr_expect_eq(made_by(4), left);
        for (uint32_t s = 2; s <= 5; s++)
                expect_split(s, SL_TEAM_SIZE_2, SL_AXIS_NONE, 1, s % 2);
        for (uint32_t s = 2; s <= 3; s++) {
                cr_expect_eq(block_of(made_by(s))->first, 2);
                cr_expect_eq(block_of(made_by(s))->last, 5);
        }
        for (uint32_t s = 4; s <= 5; s++) {
                cr_expect_eq(block_of(made_by(s))->first, 4);
                cr_expect_eq(block_of(made_by(s))->last, 6);
        }
        cr_expect_eq(block_of(stem)->last, 3);
}

/* One large value at a time, or both. */
Test(branches, that_take_an_eighth_more_memory_stay_one_behind_the_other)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 4096)), weights = network_weights(&net, DIMS(4096, 16));
        uint32_t left = network_node(&net, SL_OP_MATMUL, VALUES(twice(x), weights), 0, NULL);
        uint32_t right = network_node(&net, SL_OP_MATMUL, VALUES(twice(x), weights), 0, NULL);

        schedule_it(sum(left, right));
        arrange(2);
        for (uint32_t s = 0; s < schedule->n_steps; s++) {
                cr_expect_eq(schedule->steps[s].node, s);
                expect_split(s, SL_TEAM_SIZE_2, SL_AXIS_NONE, 0, 0);
        }
        cr_assert_eq(sl_schedule_place(schedule), 0);
        cr_expect_lt(schedule->workspace_bytes, 2 * 4096 * sizeof(float));
}

/* The second node writes over what the first one reads. */
Test(branches, a_step_in_place_is_behind_who_reads_its_argument)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16)), y = twice(x), reader = twice(y);
        uint32_t writer = network_apply(&net, SL_OP_EXP, y);

        schedule_it(sum(writer, reader));
        cr_assert_eq(schedule->storages[writer].index, schedule->storages[y].index);
        arrange(16);
        for (uint32_t s = 0; s < schedule->n_steps; s++)
                expect_split(s, SL_TEAM_SIZE_16, SL_AXIS_NONE, 0, 0);
}
