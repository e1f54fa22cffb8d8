/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the slots of an open model's sizes: the one used longest ago makes room, but never a size that another user keeps.
 */
#include "ensemble.h"
#include "shapes.h"
#include "user.h"

#include <criterion/criterion.h>
#include <errno.h>

#define SLOTS 8u
#define USERS 4u

struct scene {
        struct sl_shapes *shapes;
        struct sl_user users[USERS];
        struct sl_ensemble ensembles[SLOTS];
};

static void begin(struct scene *s)
{
        *s = (struct scene){0};
        cr_assert_eq(sl_shapes_new(1, SLOTS, USERS, &s->shapes), 0);
        for (uint32_t i = 0; i < USERS; i++)
                s->users[i].number = i;
}

static struct sl_shape_slot *slot_of(struct scene *s, int64_t size)
{
        return sl_shapes_find(s->shapes, (int64_t[SL_SYMBOLS_MAX]){size});
}

static struct sl_shape_slot *start(struct scene *s, struct sl_user *user, int64_t size, int *ret_r)
{
        struct sl_shape_slot *slot;

        *ret_r = sl_shapes_room(s->shapes, user, &slot);
        if (*ret_r < 0)
                return NULL;
        sl_shapes_clear(s->shapes, slot);
        slot->state = SL_SHAPE_LOADING;
        slot->asker = user;
        slot->sizes[0] = size;
        sl_shapes_touch(s->shapes, slot, user);
        return slot;
}

/* A request of the user for this size, which is loaded at once if need be. Return: as sl_shapes_room(). */
static int use(struct scene *s, uint32_t user, int64_t size)
{
        struct sl_shape_slot *slot = slot_of(s, size);
        int r = 0;

        if (slot) {
                sl_shapes_touch(s->shapes, slot, &s->users[user]);
                return 0;
        }
        slot = start(s, &s->users[user], size, &r);
        if (slot) {
                slot->state = SL_SHAPE_READY;
                slot->asker = NULL;
                slot->ensemble = &s->ensembles[slot - s->shapes->slots];
        }
        return r;
}

static uint32_t count(struct scene *s, int64_t first, int64_t last)
{
        uint32_t n = 0;

        for (int64_t size = first; size <= last; size++)
                n += slot_of(s, size) != NULL;
        return n;
}

static void end(struct scene *s)
{
        sl_shapes_free(s->shapes);
}

Test(shape_slots, a_user_that_is_alone_has_them_all_and_the_one_used_longest_ago_makes_room)
{
        struct scene s;

        begin(&s);
        for (int64_t size = 1; size <= SLOTS; size++)
                cr_assert_eq(use(&s, 0, size), 0);
        cr_assert_eq(use(&s, 0, 1), 0);
        cr_assert_eq(use(&s, 0, 100), 0);
        cr_assert_null(slot_of(&s, 2));
        cr_assert_eq(count(&s, 1, SLOTS), SLOTS - 1);
        end(&s);
}

Test(shape_slots, sizes_without_end_of_one_user_leave_the_share_of_another_alone)
{
        struct scene s;

        begin(&s);
        for (int64_t size = 1; size <= 4; size++)
                cr_assert_eq(use(&s, 0, size), 0);
        for (int64_t size = 100; size < 1000; size++)
                cr_assert_eq(use(&s, 1, size), 0);
        cr_assert_eq(count(&s, 1, 4), 4);
        end(&s);
}

Test(shape_slots, what_a_user_has_beyond_its_share_makes_room_for_others_oldest_first)
{
        struct scene s;

        begin(&s);
        for (int64_t size = 1; size <= SLOTS; size++)
                cr_assert_eq(use(&s, 0, size), 0);
        for (int64_t size = 100; size < 200; size++)
                cr_assert_eq(use(&s, 1, size), 0);
        cr_assert_eq(count(&s, 1, SLOTS), SLOTS / 2);
        cr_assert_eq(count(&s, 5, SLOTS), SLOTS / 2, "the ones used last stay");
        end(&s);
}

Test(shape_slots, a_size_that_another_user_uses_too_is_not_the_first_users_to_give_up)
{
        struct scene s;

        begin(&s);
        cr_assert_eq(use(&s, 1, 7), 0);
        cr_assert_eq(use(&s, 0, 7), 0);
        for (int64_t size = 100; size < 200; size++)
                cr_assert_eq(use(&s, 1, size), 0);
        cr_assert_not_null(slot_of(&s, 7));
        end(&s);
}

Test(shape_slots, what_nobody_uses_any_more_makes_room)
{
        struct scene s;

        begin(&s);
        for (int64_t size = 1; size <= 4; size++)
                cr_assert_eq(use(&s, 0, size), 0);
        sl_shapes_forget(s.shapes, &s.users[0]);
        for (int64_t size = 100; size < 200; size++)
                cr_assert_eq(use(&s, 1, size), 0);
        cr_assert_eq(count(&s, 1, 4), 0);
        end(&s);
}

Test(shape_slots, sizes_that_cannot_be_are_nobodys_to_keep)
{
        struct scene s;

        begin(&s);
        for (int64_t size = 1; size <= 4; size++) {
                cr_assert_eq(use(&s, 0, size), 0);
                slot_of(&s, size)->state = SL_SHAPE_FAILED;
        }
        for (int64_t size = 100; size < 100 + SLOTS; size++)
                cr_assert_eq(use(&s, 1, size), 0);
        cr_assert_eq(count(&s, 1, 4), 0);
        end(&s);
}

Test(shape_slots, one_user_does_not_have_them_all_loading_at_a_time)
{
        struct scene s;
        int r = 0;

        begin(&s);
        for (int64_t size = 1; start(&s, &s.users[0], size, &r); size++)
                ;
        cr_assert_eq(r, -EDQUOT);
        cr_assert_not_null(start(&s, &s.users[1], 1000, &r), "there is one for whoever has none");
        end(&s);
}

Test(shape_slots, beside_others_no_more_than_its_share_is_loading_for_a_user)
{
        struct scene s;
        uint32_t n = 0;
        int r = 0;

        begin(&s);
        cr_assert_eq(use(&s, 1, 1000), 0);
        while (start(&s, &s.users[0], n + 1, &r))
                n++;
        cr_assert_eq(n, SLOTS / 2);
        cr_assert_eq(r, -EDQUOT);
        for (int64_t size = 1001; size < 1004; size++)
                cr_assert_eq(use(&s, 1, size), 0, "there is its share for the other one");
        cr_assert_eq(count(&s, 1000, 1003), 4);
        end(&s);
}

Test(shape_slots, when_something_is_in_flight_in_each_there_is_no_room)
{
        struct scene s;

        begin(&s);
        for (int64_t size = 1; size <= SLOTS; size++)
                cr_assert_eq(use(&s, (uint32_t)size % 2, size), 0);
        for (uint32_t i = 0; i < SLOTS; i++)
                s.ensembles[i].in_flight = 1;
        cr_assert_eq(use(&s, 2, 1000), -EBUSY);
        s.ensembles[7].in_flight = 0;
        cr_assert_eq(use(&s, 2, 1000), -EBUSY, "this one its user keeps");
        s.ensembles[0].in_flight = 0;
        cr_assert_eq(use(&s, 2, 1000), 0);
        end(&s);
}

/* ---- sizes that a plan of any size computes ---- */

static bool any(struct scene *s, int64_t size)
{
        return sl_shapes_count(s->shapes, (int64_t[SL_SYMBOLS_MAX]){size});
}

Test(shape_slots, a_size_that_comes_often_is_worth_a_plan_and_others_beside_it_are_not)
{
        struct scene s;
        uint32_t worth = 0;

        begin(&s);
        for (int64_t i = 0; i < 40 * SL_SIZE_WINDOW; i++) {
                cr_assert_not(any(&s, 100 + i % 511), "of 511 sizes none comes often");
                worth += i % 10 == 0 && any(&s, 5);
        }
        cr_expect(worth > 0);
        end(&s);
}

Test(shape_slots, a_size_that_begins_to_come_often_is_found_though_others_came_before_it)
{
        struct scene s;
        bool worth = false;

        begin(&s);
        for (int64_t i = 0; i < 2 * SL_SIZE_COUNTS; i++)
                cr_assert_not(any(&s, 200 + i % SL_SIZE_COUNTS));
        for (uint32_t i = 0; i < SL_SIZE_WINDOW / 2; i++)
                worth |= any(&s, 5);
        cr_expect(worth);
        end(&s);
}

Test(shape_slots, sixteen_sizes_that_take_turns_are_worth_plans)
{
        bool worth[16] = {false};
        struct scene s;

        begin(&s);
        for (uint32_t i = 0; i < SL_SIZE_WINDOW; i++)
                worth[i % 16] |= any(&s, i % 16);
        for (uint32_t i = 0; i < 16; i++)
                cr_expect(worth[i], "size %u", i);
        end(&s);
}

Test(shape_slots, a_size_that_comes_often_does_not_take_the_slot_of_one_that_does_too)
{
        struct scene s;

        begin(&s);
        for (int64_t size = 1; size <= SLOTS; size++)
                cr_assert_eq(use(&s, 0, size), 0);
        for (uint32_t i = 0; i < 2 * SL_SIZE_WINDOW; i++) {
                cr_assert_not(any(&s, 100), "all slots were used a moment ago");
                for (int64_t size = 1; size <= SLOTS; size++)
                        cr_assert_eq(use(&s, 0, size), 0);
        }
        bool worth = false;

        for (uint32_t i = 0; i < 2 * SL_SIZE_WINDOW; i++)
                worth |= any(&s, 100);
        cr_expect(worth, "nobody uses the slots any more");
        end(&s);
}
