/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of those that wait go along with the oldest one, of a model that has one plan for many sizes.
 */
#include "taking.h"

#include <criterion/criterion.h>

#define ROOM 16u

static struct sl_task_queue queue;
static struct sl_size_line line;
static struct sl_alike alike;
static uint32_t n_taken, taken[ROOM];

static bool is_equal(void *context, const struct sl_task *a, const struct sl_task *b)
{
        (void)context;
        return a->member == b->member;
}

/* A job takes 100 ns, and 10 ns for each unit. */
static void set_up(void)
{
        cr_assert_eq(sl_task_queue_init(&queue, ROOM), 0);
        line = (struct sl_size_line){0};
        for (uint64_t i = 1; i <= 50; i++)
                sl_size_line_learn(&line, i, 100 + 10 * i);
        alike = (struct sl_alike){
                .rows_max = 100, .pieces_max = 100, .line = &line, .now_ns = 1000, .ns_max = 1000000, .goes_along = is_equal};
}

static void tear_down(void)
{
        sl_task_queue_deinit(&queue);
}

TestSuite(alike, .init = set_up, .fini = tear_down);

/* By its number, which is its segment. */
static struct sl_task *push(uint64_t kind)
{
        uint32_t number = sl_task_queue_length(&queue);

        sl_task_queue_push(&queue, &(struct sl_task){.segment = number, .samples = 1, .kind = kind, .rows = 1, .units = 10});
        return sl_task_queue_at(&queue, number);
}

static void take(void)
{
        struct sl_taking taking;
        struct sl_task first, task;

        sl_taking_begin(&taking, &queue, 1, 1);
        cr_assert(sl_taking_next(&taking, &first));
        cr_assert_not(sl_taking_next(&taking, &task), "a decision was made for one");
        for (n_taken = 0; sl_taking_next_alike(&taking, &alike, &first, &task);)
                taken[n_taken++] = task.segment;
        cr_expect_eq(taking.taken, 1 + n_taken);
}

static void expect_left(uint32_t n, const uint32_t *numbers)
{
        cr_assert_eq(sl_task_queue_length(&queue), n);
        cr_expect_eq(queue.samples, n);
        for (uint32_t i = 0; i < n; i++)
                cr_expect_eq(sl_task_queue_at(&queue, i)->segment, numbers[i]);
}

Test(alike, those_of_the_first_ones_kind_go_along_and_the_others_keep_their_order)
{
        for (uint32_t i = 0; i < 9; i++)
                push(1 + i % 3);
        take();
        cr_assert_eq(n_taken, 2u);
        cr_expect_eq(taken[0], 3u);
        cr_expect_eq(taken[1], 6u);
        expect_left(6, (uint32_t[]){1, 2, 4, 5, 7, 8});
}

Test(alike, one_without_a_kind_is_alone)
{
        push(0);
        push(0);
        take();
        cr_expect_eq(n_taken, 0u);
}

Test(alike, equal_kinds_are_no_proof_of_equal_shapes)
{
        push(1);
        push(1)->member = 1;
        push(1);
        take();
        cr_assert_eq(n_taken, 1u);
        cr_expect_eq(taken[0], 2u);
}

Test(alike, a_run_has_at_most_so_many_rows_and_pieces)
{
        push(1);
        push(1)->rows = 99;
        push(1)->rows = 98;
        push(1);
        take();
        cr_expect_eq(n_taken, 1u, "99 more fill it");
        alike.pieces_max = 2;
        push(1);
        push(1);
        take();
        cr_expect_eq(n_taken, 1u);
}

Test(alike, what_others_were_promised_is_left)
{
        for (uint32_t i = 0; i < 5; i++)
                push(1);
        alike.spared = 3;
        take();
        cr_expect_eq(n_taken, 1u);
        cr_expect_eq(sl_task_queue_length(&queue), 3u);
}

Test(alike, a_job_stays_within_its_time)
{
        for (uint32_t i = 0; i < 8; i++)
                push(1);
        alike.ns_max = 100 + 10 * 35;
        take();
        cr_expect_eq(n_taken, 2u, "three times 10 units are 400 ns, four are 500");
}

Test(alike, nothing_goes_along_before_it_is_known_what_it_costs)
{
        line = (struct sl_size_line){0};
        push(1);
        push(1);
        take();
        cr_expect_eq(n_taken, 0u);
}

Test(alike, none_makes_one_late_that_is_in_time_without_it)
{
        push(1)->deadline_ns = 1000 + 350;
        push(1);
        push(1);
        take();
        cr_expect_eq(n_taken, 1u, "two are 300 ns, three are 400");
        push(1)->deadline_ns = 1; /* which is late in any case */
        push(1);
        take();
        cr_expect_eq(n_taken, 2u);
}

Test(alike, where_answers_keep_the_order_of_requests_none_is_passed_by)
{
        push(1);
        push(1);
        push(2);
        push(1);
        alike.in_order = true;
        take();
        cr_expect_eq(n_taken, 1u);
        expect_left(2, (uint32_t[]){2, 3});
}

Test(alike, what_a_process_has_died_with_is_alone)
{
        push(1);
        push(1)->reruns = true;
        push(1);
        take();
        cr_assert_eq(n_taken, 1u);
        cr_expect_eq(taken[0], 2u);
        take();
        cr_expect_eq(n_taken, 0u);
}
