/* SPDX-License-Identifier: Apache-2.0 */
#include "fair.h"

#include <criterion/criterion.h>

#define QUANTUM 128u

static uint32_t cost(const struct sl_request *request)
{
        return request->samples;
}

/* Serves until nothing waits or @turns are over; samples that each client got. */
static void serve(struct sl_fair *fair, struct sl_request *requests, uint32_t per_client, uint32_t turns, uint32_t *ret_samples)
{
        for (uint32_t i = 0; i < turns; i++) {
                struct sl_request *request = sl_fair_peek(fair, QUANTUM, cost);

                if (!request)
                        return;
                uint32_t client = (uint32_t)(request - requests) / per_client;
                sl_fair_charge(fair, client, request, cost(request));
                sl_fair_remove(fair, client, request);
                ret_samples[client] += request->samples;
        }
}

Test(fair, gives_two_clients_the_same_samples_whatever_the_sizes_of_their_requests)
{
        struct sl_request requests[2 * 1000] = {0};
        uint32_t samples[2] = {0};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(2, &fair), 0);
        for (uint32_t i = 0; i < 1000; i++) {
                requests[i].samples = 1;
                requests[1000 + i].samples = 128;
                sl_fair_push(fair, 0, &requests[i]);
                sl_fair_push(fair, 1, &requests[1000 + i]);
        }
        serve(fair, requests, 1000, 129 * 5, samples);
        cr_assert_eq(samples[0], 5 * 128);
        cr_assert_eq(samples[1], 5 * 128);
        sl_fair_free(fair);
}

Test(fair, serves_a_lower_priority_number_first)
{
        struct sl_request requests[2] = {{.samples = 1, .priority = 3}, {.samples = 1, .priority = 0}};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(1, &fair), 0);
        sl_fair_push(fair, 0, &requests[0]);
        sl_fair_push(fair, 0, &requests[1]);
        cr_assert_eq(sl_fair_peek(fair, QUANTUM, cost), &requests[1]);
        sl_fair_free(fair);
}

Test(fair, keeps_the_order_of_one_client)
{
        struct sl_request requests[3] = {{.samples = 7}, {.samples = 1}, {.samples = 100}};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(1, &fair), 0);
        for (uint32_t i = 0; i < 3; i++)
                sl_fair_push(fair, 0, &requests[i]);
        for (uint32_t i = 0; i < 3; i++) {
                cr_assert_eq(sl_fair_peek(fair, QUANTUM, cost), &requests[i]);
                sl_fair_charge(fair, 0, &requests[i], requests[i].samples);
                sl_fair_remove(fair, 0, &requests[i]);
        }
        cr_assert_null(sl_fair_peek(fair, QUANTUM, cost));
        sl_fair_free(fair);
}

Test(fair, forgets_a_request_that_is_removed_from_the_middle)
{
        struct sl_request requests[3] = {{.samples = 1}, {.samples = 1}, {.samples = 1}};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(1, &fair), 0);
        for (uint32_t i = 0; i < 3; i++)
                sl_fair_push(fair, 0, &requests[i]);
        sl_fair_remove(fair, 0, &requests[1]);
        sl_fair_remove(fair, 0, &requests[0]);
        cr_assert_eq(sl_fair_peek(fair, QUANTUM, cost), &requests[2]);
        sl_fair_remove(fair, 0, &requests[2]);
        cr_assert_null(sl_fair_peek(fair, QUANTUM, cost));
        sl_fair_free(fair);
}

/* Peeking again and again while the window is full must not collect credit. */
Test(fair, grants_nothing_for_looking)
{
        struct sl_request requests[2 * 4] = {0};
        uint32_t samples[2] = {0};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(2, &fair), 0);
        for (uint32_t i = 0; i < 8; i++) {
                requests[i].samples = 128;
                sl_fair_push(fair, i / 4, &requests[i]);
        }
        for (int i = 0; i < 1000; i++)
                sl_fair_peek(fair, QUANTUM, cost);
        serve(fair, requests, 4, 4, samples);
        cr_assert_eq(samples[0], 256);
        cr_assert_eq(samples[1], 256);
        sl_fair_free(fair);
}

/* Deficit round robin: a flow that has nothing more keeps no credit. One who comes again does not pass those who stayed. */
Test(fair, keeps_no_credit_for_a_client_that_has_nothing_waiting)
{
        struct sl_request requests[2 * 6] = {0};
        uint32_t samples[2] = {0};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(2, &fair), 0);
        requests[0].samples = 1;
        sl_fair_push(fair, 0, &requests[0]);
        serve(fair, requests, 6, 1, samples); /* 127 of its turn are left */
        for (uint32_t i = 1; i < 6; i++) {
                requests[i].samples = requests[6 + i].samples = 64;
                sl_fair_push(fair, 0, &requests[i]);
                sl_fair_push(fair, 1, &requests[6 + i]);
        }
        serve(fair, requests, 6, 3, samples);
        cr_expect_eq(samples[0], 1 + 128);
        cr_expect_eq(samples[1], 64);
        sl_fair_free(fair);
}

static struct sl_fair *two_clients(struct sl_request *requests, uint32_t first, uint32_t second)
{
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(3, &fair), 0);
        for (uint32_t i = 0; i < first + second; i++) {
                requests[i].samples = 1;
                sl_fair_push(fair, i >= first, &requests[i]);
        }
        return fair;
}

Test(fair, says_that_a_new_client_waits_for_one_turn_of_each_other_at_most)
{
        struct sl_request requests[1000 + 3] = {0};
        struct sl_fair *fair = two_clients(requests, 1000, 3);

        cr_expect_eq(sl_fair_ahead(fair, 2, 0, QUANTUM), 2 * QUANTUM, "a turn of each of two clients");
        cr_expect_eq(sl_fair_ahead(fair, 1, 0, QUANTUM), 3 + QUANTUM, "its own, and a turn of the other");
        cr_expect_eq(sl_fair_ahead(fair, 0, 0, QUANTUM), 1000 + 3, "its own, and all that the other has");
        cr_expect_eq(sl_fair_ahead(fair, 0, 0, 1000), 1000 + 3);
        sl_fair_free(fair);
}

Test(fair, counts_what_is_more_urgent_as_ahead_and_nothing_that_is_less)
{
        struct sl_request urgent = {.samples = 50, .priority = 0}, late = {.samples = 70, .priority = 2};
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(2, &fair), 0);
        sl_fair_push(fair, 0, &urgent);
        sl_fair_push(fair, 0, &late);
        cr_expect_eq(sl_fair_ahead(fair, 1, 1, QUANTUM), 50);
        cr_expect_eq(sl_fair_ahead(fair, 1, 0, QUANTUM), 50);
        cr_expect_eq(sl_fair_ahead(fair, 1, 3, QUANTUM), 50 + 70);
        sl_fair_charge(fair, 0, &urgent, 20);
        cr_expect_eq(sl_fair_ahead(fair, 1, 1, QUANTUM), 30, "what is given out does not wait");
        sl_fair_remove(fair, 0, &urgent);
        sl_fair_remove(fair, 0, &late);
        cr_expect_eq(sl_fair_ahead(fair, 1, 3, QUANTUM), 0, "nothing is left");
        sl_fair_free(fair);
}
