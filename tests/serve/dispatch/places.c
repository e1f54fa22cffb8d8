/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of places in a queue: whoever is alone has them all, and nobody who has less than its share is refused.
 */
#include "places.h"

#include "channel.h"
#include "request.h"

#include <criterion/criterion.h>
#include <errno.h>

#define USERS    4u
#define REQUESTS 64u

struct user {
        struct sl_user user;
        struct sl_channel channel;
        struct sl_queue queue;
        struct sl_request requests[REQUESTS];
        uint32_t n; /* requests so far */
};

struct scene {
        struct sl_places *places;
        struct user users[USERS];
        uint32_t total, taken, victims;
};

static void begin(struct scene *s, uint32_t total)
{
        *s = (struct scene){.total = total};
        cr_assert_eq(sl_places_new(USERS, &s->places), 0);
        for (uint32_t i = 0; i < USERS; i++) {
                struct user *user = &s->users[i];

                user->user.number = i;
                user->channel.user = &user->user;
                user->queue.channel = &user->channel;
                for (uint32_t k = 0; k < REQUESTS; k++)
                        user->requests[k].queue = &user->queue;
        }
}

static struct user *user_of(const struct sl_request *request)
{
        return (struct user *)((char *)request->queue->channel->user - offsetof(struct user, user));
}

static void leave(struct scene *s, struct sl_request *request)
{
        sl_places_leave(s->places, request);
        s->taken--;
}

/* One more request of this user, as the dispatcher does it. Return: as sl_places_ask(). */
static int ask(struct scene *s, uint32_t user)
{
        struct sl_request *victim, *request = &s->users[user].requests[s->users[user].n];
        int r = sl_places_ask(s->places, s->total, s->taken, user, &victim);

        if (r < 0)
                return r;
        if (victim) {
                cr_assert_eq(victim, &user_of(victim)->requests[--user_of(victim)->n], "the newest ends");
                leave(s, victim);
                s->victims++;
        }
        sl_places_enter(s->places, request);
        s->users[user].n++;
        s->taken++;
        return 0;
}

static uint32_t ask_until_refused(struct scene *s, uint32_t user, int refusal)
{
        uint32_t n = 0;
        int r;

        while ((r = ask(s, user)) == 0)
                n++;
        cr_assert_eq(r, refusal);
        return n;
}

Test(places, a_user_that_is_alone_has_the_whole_queue_and_is_told_that_it_is_full)
{
        struct scene s;

        begin(&s, 8);
        cr_assert_eq(ask_until_refused(&s, 2, -EBUSY), 8);
        cr_assert_eq(s.victims, 0);
        sl_places_free(s.places);
}

Test(places, who_comes_later_takes_back_as_far_as_its_share_and_no_further)
{
        struct scene s;

        begin(&s, 12);
        ask_until_refused(&s, 0, -EBUSY);
        cr_assert_eq(ask_until_refused(&s, 1, -EDQUOT), 6);
        cr_assert_eq(ask_until_refused(&s, 2, -EDQUOT), 4);
        cr_assert_eq(s.users[0].n, 4);
        cr_assert_eq(s.users[1].n, 4);
        cr_assert_eq(s.taken, 12);
        cr_assert_eq(ask(&s, 0), -EDQUOT, "it has its share");
        cr_assert_eq(s.victims, 6 + 4);
        sl_places_free(s.places);
}

Test(places, who_has_more_than_its_share_is_refused_before_anybody_else)
{
        struct scene s;

        begin(&s, 12);
        for (uint32_t i = 0; i < 3; i++)
                cr_assert_eq(ask(&s, 1), 0);
        cr_assert_eq(ask_until_refused(&s, 0, -EDQUOT), 9);
        for (uint32_t i = 0; i < 3; i++)
                cr_assert_eq(ask(&s, 1), 0);
        cr_assert_eq(s.users[0].n, 6);
        sl_places_free(s.places);
}

Test(places, it_is_taken_from_the_one_that_is_most_above_its_share)
{
        struct scene s;

        begin(&s, 12);
        for (uint32_t i = 0; i < 5; i++)
                cr_assert_eq(ask(&s, 1), 0);
        for (uint32_t i = 0; i < 7; i++)
                cr_assert_eq(ask(&s, 0), 0);
        cr_assert_eq(ask(&s, 2), 0);
        cr_assert_eq(s.users[0].n, 6);
        cr_assert_eq(s.users[1].n, 5);
        sl_places_free(s.places);
}

Test(places, what_computes_is_not_taken_back_and_keeps_nobody_out)
{
        struct scene s;

        begin(&s, 4);
        ask_until_refused(&s, 0, -EBUSY);
        for (uint32_t i = 0; i < 4; i++)
                sl_places_pin(s.places, &s.users[0].requests[i]);
        sl_places_pin(s.places, &s.users[0].requests[2]);
        cr_assert_eq(ask_until_refused(&s, 1, -EDQUOT), 2, "its share of four");
        cr_assert_eq(s.victims, 0);
        cr_assert_eq(ask(&s, 0), -EDQUOT);
        for (uint32_t i = 0; i < 4; i++)
                leave(&s, &s.users[0].requests[i]);
        cr_assert_eq(ask_until_refused(&s, 1, -EBUSY), 2, "it is alone now");
        sl_places_free(s.places);
}

Test(places, requests_may_leave_in_any_order)
{
        struct scene s;

        begin(&s, 6);
        ask_until_refused(&s, 3, -EBUSY);
        for (uint32_t i = 1; i < 6; i += 2)
                leave(&s, &s.users[3].requests[i]);
        sl_places_pin(s.places, &s.users[3].requests[0]);
        s.users[3].n = 5; /* the newest that is left, and yields, is number 4 */
        for (uint32_t i = 0; i < 3; i++)
                cr_assert_eq(ask(&s, 0), 0);
        cr_assert_eq(s.victims, 0);
        cr_assert_eq(ask(&s, 1), 0);
        cr_assert_eq(s.victims, 1);
        sl_places_free(s.places);
}

Test(places, there_is_one_for_each_user_even_when_there_are_more_users_than_places)
{
        struct scene s;

        begin(&s, 2);
        for (uint32_t i = 0; i < USERS; i++)
                cr_assert_eq(ask(&s, i), 0);
        for (uint32_t i = 0; i < USERS; i++)
                cr_assert_eq(ask(&s, i), -EDQUOT);
        sl_places_free(s.places);
}
