/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accumulator's walker sees each of its equations broken. For builds with assertions: the file under test is a part of this
 * one, as its structs are its own.
 */
#include "../../../runtime/serve/execute/accumulator.c"

#include <criterion/criterion.h>
#include <signal.h>

static struct sl_served_port output;
static struct sl_assembly assembly = {
        .n_members = 2, .n_outputs = 1, .member_outputs = 1, .rule = SL_RULE_MEAN, .outputs = &output};
static struct sl_work works[2];
static struct sl_accumulator *accumulator;

/* Records 0 and 1 are the first work's, 3 the second's; 2 was closed, and 4 never used. */
static struct sl_accumulator *make_accumulator(void)
{
        struct sl_port port = {.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {SL_DIM_BATCH, 10}}};
        struct sl_regions *regions;

        cr_assert_eq(sl_served_port_init(&assembly.outputs[0], &port), 0);
        cr_assert_eq(sl_regions_new(4, &regions), 0);
        cr_assert_eq(sl_accumulator_new(regions, 5, 1 << 20, &accumulator), 0);
        for (int i = 0; i < 2; i++)
                works[i] = (struct sl_work){.assembly = &assembly, .segments = SL_NO_SEGMENT};
        for (int i = 0; i < 4; i++)
                cr_assert_eq(sl_accumulator_open(accumulator, &works[i / 2], 0, 4), i);
        accumulator->segments[2].unanswered = 0;
        atomic_store(&accumulator->segments[2].missing, 0);
        sl_accumulator_close(accumulator, 2);
        sl_accumulator_walk(accumulator, 0);
        return accumulator;
}

#define BREAKS(equation, statement)                                                                                                \
        Test(broken_accumulator, equation, .signal = SIGABRT)                                                                      \
        {                                                                                                                          \
                struct sl_accumulator *a = make_accumulator();                                                                     \
                                                                                                                                   \
                statement;                                                                                                         \
                sl_accumulator_walk(a, 0);                                                                                         \
        }

BREAKS(a1_an_open_record_is_not_free, (a->segments[3].next = a->segments[2].next, a->segments[2].next = 3))
BREAKS(a1_a_record_is_not_lost, a->free = 4)
BREAKS(a1_no_record_is_free_twice, a->segments[2].next = 2)
BREAKS(a1_those_never_used_follow_in_order, a->segments[2].next = SL_NO_SEGMENT)
BREAKS(a2_a_record_is_in_no_other_work_s_list, a->segments[1].work = &works[1])
BREAKS(a2_records_of_a_work_know_the_one_before, a->segments[0].previous = SL_NO_SEGMENT)
BREAKS(a3_staging_lies_inside_of_its_region, a->segments[0].staging.offset = 1 << 20)
BREAKS(a3_no_two_records_have_the_same_staging, a->segments[0].staging.offset = a->segments[3].staging.offset + 64)
BREAKS(a4_the_dispatcher_does_not_hear_before_a_sender_counts, a->segments[0].unanswered = 3)
BREAKS(a4_no_more_is_unanswered_than_was_sent, a->segments[0].unanswered = 9)
