/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for a model, in the order in which it came, whatever of it is taken, comes back or is dropped.
 */
#include "task_queue.h"

#include <criterion/criterion.h>

#define ROOM 8u

static struct sl_task_queue queue;

static void set_up(void)
{
        cr_assert_eq(sl_task_queue_init(&queue, ROOM), 0);
}

static void tear_down(void)
{
        sl_task_queue_deinit(&queue);
}

TestSuite(task_queue, .init = set_up, .fini = tear_down);

static struct sl_task task(uint64_t arrival_ns)
{
        return (struct sl_task){.segment = (uint32_t)arrival_ns, .samples = 2, .arrival_ns = arrival_ns};
}

static void push(uint64_t arrival_ns)
{
        const struct sl_task one = task(arrival_ns);

        sl_task_queue_push(&queue, &one);
}

static bool give_back(uint64_t arrival_ns)
{
        const struct sl_task one = task(arrival_ns);

        return sl_task_queue_return(&queue, &one);
}

static void expect_in_order(uint64_t first_ns, uint32_t n)
{
        cr_assert_eq(sl_task_queue_length(&queue), n);
        cr_expect_eq(queue.samples, 2 * n);
        for (uint32_t i = 0; i < n; i++)
                cr_expect_eq(sl_task_queue_at(&queue, i)->arrival_ns, first_ns + i);
}

Test(task_queue, an_empty_one_begins_with_the_same_slots_again)
{
        for (uint32_t round = 0; round < 3; round++) {
                push(1);
                cr_expect_eq(sl_task_queue_at(&queue, 0), &queue.tasks[0]);
                push(2);
                sl_task_queue_take(&queue, 1);
                sl_task_queue_take(&queue, 1);
                expect_in_order(2, 1);
                sl_task_queue_take(&queue, 2);
                expect_in_order(0, 0);
        }
}

Test(task_queue, what_comes_back_lies_before_what_came_later_also_in_one_that_was_empty)
{
        push(1);
        sl_task_queue_take(&queue, 2);
        push(2);
        push(4);
        cr_expect(give_back(1));
        cr_expect(give_back(3));
        expect_in_order(1, 4);
        for (uint64_t i = 5; i <= ROOM; i++)
                push(i);
        expect_in_order(1, ROOM);
        cr_expect_not(give_back(0), "there is no room");
        expect_in_order(1, ROOM);
}

static bool is_odd(void *context, const struct sl_task *one)
{
        (void)context;
        return one->arrival_ns % 2 == 1;
}

Test(task_queue, what_is_dropped_leaves_the_others_in_order)
{
        for (uint64_t i = 1; i <= ROOM; i++)
                push(i);
        cr_expect_eq(sl_task_queue_drop(&queue, is_odd, NULL), ROOM / 2);
        cr_assert_eq(sl_task_queue_length(&queue), ROOM / 2);
        for (uint32_t i = 0; i < ROOM / 2; i++)
                cr_expect_eq(sl_task_queue_at(&queue, i)->arrival_ns, 2 * (i + 1));
}
