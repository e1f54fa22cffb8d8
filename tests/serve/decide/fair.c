/* SPDX-License-Identifier: Apache-2.0 */
#include "fair.h"

#include <criterion/criterion.h>

#define QUANTUM 128u

static void push(struct sl_fair *fair, uint32_t client, struct sl_fair_item *item)
{
        item->client = client;
        sl_fair_push(fair, item);
}

/* Serves until nothing waits or @turns are over; samples that each client got. */
static void serve(struct sl_fair *fair, uint32_t turns, uint32_t *ret_samples)
{
        for (uint32_t i = 0; i < turns; i++) {
                struct sl_fair_item *item = sl_fair_peek(fair, QUANTUM);

                if (!item)
                        return;
                ret_samples[item->client] += item->samples;
                sl_fair_charge(fair, item, item->samples);
                sl_fair_remove(fair, item);
        }
}

Test(fair, gives_two_clients_the_same_samples_whatever_the_sizes_of_their_items)
{
        struct sl_fair_item items[2 * 1000] = {0};
        uint32_t samples[2] = {0};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(2, &fair), 0);
        for (uint32_t i = 0; i < 1000; i++) {
                items[i].samples = 1;
                items[1000 + i].samples = 128;
                push(fair, 0, &items[i]);
                push(fair, 1, &items[1000 + i]);
        }
        serve(fair, 129 * 5, samples);
        cr_assert_eq(samples[0], 5 * 128);
        cr_assert_eq(samples[1], 5 * 128);
        sl_fair_free(fair);
}

Test(fair, serves_a_lower_priority_number_first)
{
        struct sl_fair_item items[2] = {{.samples = 1, .priority = 3}, {.samples = 1, .priority = 0}};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(1, &fair), 0);
        push(fair, 0, &items[0]);
        push(fair, 0, &items[1]);
        cr_assert_eq(sl_fair_peek(fair, QUANTUM), &items[1]);
        sl_fair_free(fair);
}

Test(fair, keeps_the_order_of_one_client)
{
        struct sl_fair_item items[3] = {{.samples = 7}, {.samples = 1}, {.samples = 100}};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(1, &fair), 0);
        for (uint32_t i = 0; i < 3; i++)
                push(fair, 0, &items[i]);
        for (uint32_t i = 0; i < 3; i++) {
                cr_assert_eq(sl_fair_peek(fair, QUANTUM), &items[i]);
                sl_fair_charge(fair, &items[i], items[i].samples);
                sl_fair_remove(fair, &items[i]);
        }
        cr_assert_null(sl_fair_peek(fair, QUANTUM));
        sl_fair_free(fair);
}

Test(fair, forgets_a_request_that_is_removed_from_the_middle)
{
        struct sl_fair_item items[3] = {{.samples = 1}, {.samples = 1}, {.samples = 1}};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(1, &fair), 0);
        for (uint32_t i = 0; i < 3; i++)
                push(fair, 0, &items[i]);
        sl_fair_remove(fair, &items[1]);
        sl_fair_remove(fair, &items[0]);
        cr_assert_eq(sl_fair_peek(fair, QUANTUM), &items[2]);
        sl_fair_remove(fair, &items[2]);
        cr_assert_null(sl_fair_peek(fair, QUANTUM));
        sl_fair_free(fair);
}

/* Peeking again and again while the window is full must not collect credit. */
Test(fair, grants_nothing_for_looking)
{
        struct sl_fair_item items[2 * 4] = {0};
        uint32_t samples[2] = {0};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(2, &fair), 0);
        for (uint32_t i = 0; i < 8; i++) {
                items[i].samples = 128;
                push(fair, i / 4, &items[i]);
        }
        for (int i = 0; i < 1000; i++)
                sl_fair_peek(fair, QUANTUM);
        serve(fair, 4, samples);
        cr_assert_eq(samples[0], 256);
        cr_assert_eq(samples[1], 256);
        sl_fair_free(fair);
}

/* Deficit round robin: a flow that has nothing more keeps no credit. One who comes again does not pass those who stayed. */
Test(fair, keeps_no_credit_for_a_client_that_has_nothing_waiting)
{
        struct sl_fair_item items[2 * 6] = {0};
        uint32_t samples[2] = {0};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(2, &fair), 0);
        items[0].samples = 1;
        push(fair, 0, &items[0]);
        serve(fair, 1, samples); /* 127 of its turn are left */
        for (uint32_t i = 1; i < 6; i++) {
                items[i].samples = items[6 + i].samples = 64;
                push(fair, 0, &items[i]);
                push(fair, 1, &items[6 + i]);
        }
        serve(fair, 3, samples);
        cr_expect_eq(samples[0], 1 + 128);
        cr_expect_eq(samples[1], 64);
        sl_fair_free(fair);
}

static struct sl_fair *two_clients(struct sl_fair_item *items, uint32_t first, uint32_t second)
{
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(3, &fair), 0);
        for (uint32_t i = 0; i < first + second; i++) {
                items[i].samples = 1;
                push(fair, i >= first, &items[i]);
        }
        return fair;
}

Test(fair, says_that_a_new_client_waits_for_one_turn_of_each_other_at_most)
{
        struct sl_fair_item items[1000 + 3] = {0};
        struct sl_fair *fair = two_clients(items, 1000, 3);

        cr_expect_eq(sl_fair_ahead(fair, 2, 0, QUANTUM), 2 * QUANTUM, "a turn of each of two clients");
        cr_expect_eq(sl_fair_ahead(fair, 1, 0, QUANTUM), 3 + QUANTUM, "its own, and a turn of the other");
        cr_expect_eq(sl_fair_ahead(fair, 0, 0, QUANTUM), 1000 + 3, "its own, and all that the other has");
        cr_expect_eq(sl_fair_ahead(fair, 0, 0, 1000), 1000 + 3);
        sl_fair_free(fair);
}

Test(fair, counts_what_is_more_urgent_as_ahead_and_nothing_that_is_less)
{
        struct sl_fair_item urgent = {.samples = 50, .priority = 0}, late = {.samples = 70, .priority = 2};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(2, &fair), 0);
        push(fair, 0, &urgent);
        push(fair, 0, &late);
        cr_expect_eq(sl_fair_ahead(fair, 1, 1, QUANTUM), 50);
        cr_expect_eq(sl_fair_ahead(fair, 1, 0, QUANTUM), 50);
        cr_expect_eq(sl_fair_ahead(fair, 1, 3, QUANTUM), 50 + 70);
        cr_assert_eq(sl_fair_peek(fair, QUANTUM), &urgent);
        sl_fair_charge(fair, &urgent, 20);
        cr_expect_eq(sl_fair_ahead(fair, 1, 1, QUANTUM), 30, "what is given out does not wait");
        sl_fair_remove(fair, &urgent);
        sl_fair_remove(fair, &late);
        cr_expect_eq(sl_fair_ahead(fair, 1, 3, QUANTUM), 0, "nothing is left");
        sl_fair_free(fair);
}
