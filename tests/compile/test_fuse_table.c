/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the table of a merged plan says, and how it comes about: perceptrons merged by Algorithm 1 beside their own plans.
 */
#include "base/clock.h"
#include "base/error.h"
#include "fuse_measure.h"
#include "merged_lanes.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>

#define LANES MERGED_LANES

/* No step leaves idle lanes out. */
static void set_merged(struct sl_fuse_row *row, double seconds)
{
        for (uint32_t k = 0; k < SL_FUSE_OCCUPANCIES_MAX; k++)
                row->merged[k] = seconds;
}

static struct sl_fuse_table synthetic(void)
{
        struct sl_fuse_table table;

        sl_fuse_table_init(&table, 16);
        table.n_rows = 2;
        for (uint32_t i = 0; i < table.n_rows; i++) {
                struct sl_fuse_row *row = &table.rows[i];

                row->batch = i ? 8 : 1;
                row->n_turns = 1;
                for (uint32_t k = 0; k < table.n_occupancies; k++)
                        row->separate[k] = row->one_job[k] = table.occupied[k];
                set_merged(row, i ? 20 : 5);
        }
        return table;
}

Test(fuse_table, occupancies_are_one_a_quarter_half_and_all_each_once)
{
        const struct {
                uint32_t lanes, n, occupied[SL_FUSE_OCCUPANCIES_MAX];
        } rows[] = {{2, 2, {1, 2}}, {4, 3, {1, 2, 4}}, {8, 4, {1, 2, 4, 8}}, {7, 3, {1, 3, 7}}, {64, 4, {1, 16, 32, 64}}};
        struct sl_fuse_table table;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                sl_fuse_table_init(&table, rows[i].lanes);
                cr_expect_eq(table.n_occupancies, rows[i].n, "%u lanes", rows[i].lanes);
                cr_expect_arr_eq(table.occupied, rows[i].occupied, sizeof(table.occupied), "%u lanes", rows[i].lanes);
        }
}

/* A lane costs 1, merged 5: at 5 lanes it is as cheap, at 6 it is cheaper. */
Test(fuse_table, least_lanes_are_those_at_which_merged_gains)
{
        struct sl_fuse_table table = synthetic();

        cr_expect_eq(sl_fuse_least_lanes(&table, 1), 6);
        set_merged(&table.rows[0], 0.97 * 5);
        cr_expect_eq(sl_fuse_least_lanes(&table, 1), 5, "exactly 3 %% are enough");
        set_merged(&table.rows[0], 0.98 * 5);
        cr_expect_eq(sl_fuse_least_lanes(&table, 1), 6);
        set_merged(&table.rows[0], 0.5);
        cr_expect_eq(sl_fuse_least_lanes(&table, 1), 1);
}

/* A lane costs 1; merged 2 and a quarter of each that is occupied: 2.75 at 3 lanes, 3 at 4. */
Test(fuse_table, idle_lanes_that_are_left_out_count_for_less)
{
        struct sl_fuse_table table = synthetic();

        for (uint32_t k = 0; k < table.n_occupancies; k++)
                table.rows[0].merged[k] = 2 + table.occupied[k] / 4.0;
        cr_expect_float_eq(sl_fuse_merged_seconds(&table, 6, 1), 3.5, 1e-12);
        cr_expect_eq(sl_fuse_least_lanes(&table, 1), 3);
        table.rows[0].merged[2] = 9; /* at half of the lanes it loses: it is not worth it below */
        cr_expect_eq(sl_fuse_least_lanes(&table, 1), 9);
}

/* A lane costs 1 by itself. */
static struct sl_fuse_table with_lanes(uint32_t lanes, double fixed, double each)
{
        struct sl_fuse_table table;

        sl_fuse_table_init(&table, lanes);
        table.n_rows = 1;
        table.rows[0].batch = table.rows[0].n_turns = 1;
        for (uint32_t k = 0; k < table.n_occupancies; k++) {
                table.rows[0].separate[k] = table.rows[0].one_job[k] = table.occupied[k];
                table.rows[0].merged[k] = fixed + each * table.occupied[k];
        }
        return table;
}

Test(fuse_table, the_gain_among_models_is_that_of_all_occupancies)
{
        struct sl_fuse_table all = with_lanes(32, 0, 0.5), fixed = with_lanes(32, 12, 0), few = with_lanes(8, 3, 0),
                             never = with_lanes(8, 8, 0.5);

        /* Idle lanes cost nothing: the number of lanes does not matter. */
        cr_expect_float_eq(sl_fuse_gain_among(&all, 32), 2, 1e-9);
        cr_expect_float_eq(sl_fuse_gain_among(&(struct sl_fuse_table[]){with_lanes(8, 0, 0.5)}[0], 32), 2, 1e-9);
        /* Nothing is left out, and half of 32 wait at a time: where all are occupied it is 16 lanes' worth, and else not cheaper.
         */
        cr_expect_float_eq(sl_fuse_gain_among(&fixed, 32), pow(16.0 / 12, 0.25), 1e-9);
        /* Eight of 32 gain as much with all of them, and all of them wait where all are occupied. */
        cr_expect_float_eq(sl_fuse_gain(&few), sl_fuse_gain(&fixed), 1e-9);
        cr_expect_gt(sl_fuse_gain_among(&few, 32), pow(8.0 / 3, 0.25));
        cr_expect_float_eq(sl_fuse_gain_among(&never, 64), 1, 1e-9);
        cr_expect_eq(sl_fuse_gain_among(&(struct sl_fuse_table){.n_lanes = 8}, 8), 0);
}

Test(fuse_table, a_plan_that_takes_too_long_for_who_serves_is_worth_less_than_any_that_does_not)
{
        struct sl_fuse_table few = with_lanes(8, 8, 0), many = with_lanes(32, 12, 0); /* seconds; few gain nothing */

        cr_expect_float_eq(sl_fuse_worth(&many, 32, 0), sl_fuse_gain_among(&many, 32), 1e-9);
        cr_expect_lt(sl_fuse_worth(&many, 32, 11999999999), sl_fuse_worth(&few, 32, 11999999999));
        cr_expect_lt(sl_fuse_worth(&few, 32, 7999999999), sl_fuse_worth(&many, 32, 7999999999), "both do");
        cr_expect_eq(sl_fuse_worth(&(struct sl_fuse_table){.n_lanes = 8}, 8, 1000), 0);
}

/* Idle lanes cost nothing: only how many wait at a time matters. */
Test(fuse_table, who_serves_computes_a_plan_when_more_than_half_of_its_lanes_wait)
{
        struct sl_fuse_table all = with_lanes(32, 0, 0.5), half = with_lanes(16, 0, 0.5), few = with_lanes(8, 0, 0.5);

        cr_expect_float_eq(sl_fuse_worth(&all, 32, UINT64_MAX), 1, 1e-9, "half of 32 have been answered");
        cr_expect_float_eq(sl_fuse_worth(&half, 32, UINT64_MAX), pow(2, 0.25), 1e-9, "16 are, where all of 32 are occupied");
        cr_expect_gt(sl_fuse_worth(&few, 32, UINT64_MAX), sl_fuse_worth(&half, 32, UINT64_MAX), "5 of 8, where half are");
        cr_expect_float_eq(sl_fuse_worth(&all, 64, UINT64_MAX), pow(2, 0.25), 1e-9);
}

Test(fuse_table, what_never_gains_or_was_not_measured_is_never_merged)
{
        struct sl_fuse_table table = synthetic();

        cr_expect_eq(sl_fuse_least_lanes(&table, 8), SL_FUSE_NEVER, "20 for 16 lanes of 1");
        cr_expect_eq(sl_fuse_least_lanes(&table, 9), SL_FUSE_NEVER, "nobody has measured 9 samples");
        cr_expect(isinf(sl_fuse_merged_seconds(&table, 16, 9)));
        table.n_rows = 0;
        cr_expect_eq(sl_fuse_least_lanes(&table, 1), SL_FUSE_NEVER);
}

Test(fuse_table, sizes_between_rows_are_judged_by_the_larger_one)
{
        struct sl_fuse_table table = synthetic();

        set_merged(&table.rows[1], 10);
        cr_expect_eq(sl_fuse_least_lanes(&table, 2), 11);
        cr_expect_float_eq(sl_fuse_merged_seconds(&table, 1, 2), 10, 1e-12);
        cr_expect_float_eq(sl_fuse_one_job_seconds(&table, 11, 2), 11, 1e-12, "on the line between 8 and 16 lanes");
}

Test(fuse_table, numbers_that_nobody_can_have_measured_are_refused)
{
        struct sl_fuse_table table = synthetic();

        cr_expect(sl_fuse_table_is_sound(&table));
        table.rows[1].one_job[3] = NAN;
        cr_expect_not(sl_fuse_table_is_sound(&table));
        table = synthetic();
        table.rows[1].batch = 1;
        cr_expect_not(sl_fuse_table_is_sound(&table), "batches ascend");
        table = synthetic();
        table.n_rows = SL_FUSE_ROWS_MAX + 1;
        cr_expect_not(sl_fuse_table_is_sound(&table));
        table = synthetic();
        table.occupied[1] = 0;
        cr_expect_not(sl_fuse_table_is_sound(&table), "a division by the distance of two occupancies");
}

/* ---- measured ---- */

static void build(struct network *net)
{
        uint32_t x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 16));

        for (uint32_t i = 0; i < 2; i++)
                x = network_node(net, SL_OP_GEMM, VALUES(x, network_weights(net, DIMS(16, 16)), network_weights(net, DIMS(16))),
                        ATTRS({SL_ATTR_TRANS_B, 0, {1}}));
        network_output(net, x);
}

static struct sl_fuse_measure measure_of(const struct merged_lanes *m)
{
        return (struct sl_fuse_measure){
                .merged = m->plan, .singles = m->singles, .n_lanes = LANES, .budget_ns = 60 * SL_NS_PER_SECOND};
}

Test(fuse_measure, a_table_has_every_way_at_every_occupancy_and_batch)
{
        static struct merged_lanes m;
        struct sl_fuse_measure measure;
        struct sl_fuse_table table;
        struct sl_error error = {0};

        merged_lanes_init(&m, build);
        measure = measure_of(&m);
        cr_assert_eq(sl_fuse_measure(&measure, &table, &error), 0, "%s", error.text);
        cr_expect(sl_fuse_table_is_sound(&table));
        cr_expect_eq(table.n_lanes, LANES);
        cr_expect_eq(table.n_rows, 4, "batches 1, 2, 4 and 8");
        cr_expect_eq(table.rows[3].batch, 8);
        cr_expect_leq(table.difference, SL_FUSE_DIFFERENCE_MAX);
        measure.batch_max = 2;
        measure.neighbour_bytes = UINT64_MAX; /* no more of them is read than leaves nothing in a cache */
        cr_assert_eq(sl_fuse_measure(&measure, &table, &error), 0, "%s", error.text);
        cr_expect_eq(table.n_rows, 2, "larger ones are not asked for");
        cr_assert_eq(sl_fuse_check(&measure, &table, &error), 0, "%s", error.text);
        cr_expect_eq(table.n_rows, 0);
        cr_expect_eq(sl_fuse_least_lanes(&table, 1), SL_FUSE_NEVER);
        merged_lanes_deinit(&m);
}

Test(fuse_measure, a_merged_plan_with_other_answers_is_refused)
{
        static struct merged_lanes m;
        struct sl_fuse_measure measure;
        struct sl_fuse_table table;
        struct sl_error error = {0};
        struct sl_plan *first;

        merged_lanes_init(&m, build);
        measure = measure_of(&m);
        first = m.singles[0];
        m.singles[0] = m.singles[1];
        cr_expect_eq(sl_fuse_measure(&measure, &table, &error), -EBADMSG);
        cr_expect_not_null(strstr(error.text, "off the single plan's"), "%s", error.text);
        cr_expect_eq(sl_fuse_check(&measure, &table, &error), -EBADMSG);
        m.singles[0] = first;
        merged_lanes_deinit(&m);
}

Test(fuse_measure, ports_that_are_not_the_members_are_refused)
{
        static struct merged_lanes m;
        struct sl_fuse_measure measure;
        struct sl_fuse_table table;
        struct sl_error error = {0};

        merged_lanes_init(&m, build);
        measure = measure_of(&m);
        measure.n_lanes = LANES - 1;
        cr_expect_eq(sl_fuse_measure(&measure, &table, &error), -EINVAL, "a lane that nobody has");
        measure = measure_of(&m);
        measure.merged = m.singles[0];
        cr_expect_eq(sl_fuse_measure(&measure, &table, &error), -EINVAL, "too few ports");
        merged_lanes_deinit(&m);
}

Test(fuse_measure, a_verdict_ends_it_and_so_does_its_budget)
{
        static struct merged_lanes m;
        struct sl_fuse_measure measure;
        struct sl_fuse_table table;
        struct sl_error error = {0};
        _Atomic int32_t verdict = -ECANCELED;

        merged_lanes_init(&m, build);
        measure = measure_of(&m);
        measure.verdict = &verdict;
        cr_expect_eq(sl_fuse_measure(&measure, &table, &error), -ECANCELED);
        measure.verdict = NULL;
        measure.budget_ns = 1;
        cr_expect_eq(sl_fuse_measure(&measure, &table, &error), -ETIME, "%s", error.text);
        merged_lanes_deinit(&m);
}
