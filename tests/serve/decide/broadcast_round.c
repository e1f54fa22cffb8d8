/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The round driven step by step: queues and items, and no runtime around them.
 */
#include "broadcast_round.h"

#include <criterion/criterion.h>
#include <errno.h>

#define SEGMENT 8u

struct side {
        struct sl_broadcast_queue queue;
        struct sl_fair_item items[2];
};

static void wait_for_turn(struct side *side, uint32_t i, uint32_t samples)
{
        side->items[i] = (struct sl_fair_item){.client = i, .samples = samples};
        sl_broadcast_queue_push(&side->queue, &side->items[i]);
}

/* Each of @n queues has @samples of one client, a window of two segments, and needs staging. The first is the first of the ring. */
static void make_ring(struct sl_broadcast_ring *ring, struct side *sides, uint32_t n, uint32_t samples)
{
        *ring = (struct sl_broadcast_ring){NULL};
        for (uint32_t i = n; i-- > 0;) {
                sides[i] = (struct side){.queue = {.window_samples = 2 * SEGMENT, .segment_samples = SEGMENT, .is_staged = true}};
                cr_assert_eq(sl_fair_new(2, &sides[i].queue.waiting), 0);
                sl_broadcast_ring_add(ring, &sides[i].queue);
                wait_for_turn(&sides[i], 0, samples);
        }
}

static void free_ring(struct side *sides, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                sl_fair_free(sides[i].queue.waiting);
}

static void expect(struct sl_broadcast_round *round, const struct side *side, uint32_t samples, int line)
{
        struct sl_broadcast_decision decision;

        cr_assert(sl_broadcast_round_next(round, &decision), "line %d: the round is over", line);
        cr_assert_eq(decision.queue, &side->queue, "line %d: another queue", line);
        cr_assert_eq(decision.samples, samples, "line %d: %u samples", line, decision.samples);
}

static void expect_taken(struct sl_broadcast_round *round, const struct side *side, uint32_t samples, int line)
{
        struct sl_broadcast_decision decision;

        expect(round, side, samples, line);
        cr_assert(sl_broadcast_round_next(round, &decision), "asked again, it decides the same");
        cr_assert_eq(decision.samples, samples);
        sl_broadcast_round_took(round, &decision);
}

static void expect_over(struct sl_broadcast_round *round, int line)
{
        struct sl_broadcast_decision decision;

        cr_expect_not(sl_broadcast_round_next(round, &decision), "line %d: the round goes on", line);
}

#define EXPECT(round, side, samples)       expect(round, side, samples, __LINE__)
#define EXPECT_TAKEN(round, side, samples) expect_taken(round, side, samples, __LINE__)
#define EXPECT_OVER(round)                 expect_over(round, __LINE__)

Test(broadcast_round, fills_the_window_of_each_queue_and_ends)
{
        struct side sides[2];
        struct sl_broadcast_ring ring;
        struct sl_broadcast_round round;

        make_ring(&ring, sides, 2, 5 * SEGMENT);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &sides[0], SEGMENT);
        EXPECT_TAKEN(&round, &sides[0], SEGMENT);
        EXPECT_TAKEN(&round, &sides[1], SEGMENT);
        EXPECT_TAKEN(&round, &sides[1], SEGMENT);
        EXPECT_OVER(&round);
        sides[1].queue.samples_out -= SEGMENT;
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &sides[1], SEGMENT);
        EXPECT_OVER(&round);
        free_ring(sides, 2);
}

Test(broadcast_round, the_last_segment_is_what_is_left_and_its_item_leaves)
{
        struct side sides[1];
        struct sl_broadcast_ring ring;
        struct sl_broadcast_round round;

        make_ring(&ring, sides, 1, SEGMENT + 3);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &sides[0], SEGMENT);
        EXPECT_TAKEN(&round, &sides[0], 3);
        cr_expect(sl_fair_is_empty(sides[0].queue.waiting));
        EXPECT_OVER(&round);
        free_ring(sides, 1);
}

Test(broadcast_round, clients_of_a_queue_take_turns_of_one_segment)
{
        struct side sides[1];
        struct sl_broadcast_ring ring;
        struct sl_broadcast_round round;

        make_ring(&ring, sides, 1, 5 * SEGMENT);
        struct sl_broadcast_decision decision;

        wait_for_turn(&sides[0], 1, 5 * SEGMENT);
        sides[0].queue.window_samples = 6 * SEGMENT;
        sl_broadcast_round_begin(&round, &ring);
        for (uint32_t i = 0; i < 6; i++) {
                cr_assert(sl_broadcast_round_next(&round, &decision));
                cr_expect_eq(decision.item, &sides[0].items[i % 2], "turn %u", i);
                sl_broadcast_round_took(&round, &decision);
        }
        EXPECT_OVER(&round);
        free_ring(sides, 1);
}

Test(broadcast_round, who_finds_no_staging_keeps_it_from_all_others_but_not_those_who_need_none)
{
        struct side sides[3];
        struct sl_broadcast_ring ring;
        struct sl_broadcast_round round;

        make_ring(&ring, sides, 3, 5 * SEGMENT);
        sides[2].queue.is_staged = false;
        sl_broadcast_round_begin(&round, &ring);
        EXPECT(&round, &sides[0], SEGMENT);
        sl_broadcast_round_lacks(&round, -ENOMEM);
        EXPECT_TAKEN(&round, &sides[2], SEGMENT);
        EXPECT_TAKEN(&round, &sides[2], SEGMENT);
        EXPECT_OVER(&round);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &sides[0], SEGMENT);
        free_ring(sides, 3);
}

Test(broadcast_round, who_got_nothing_goes_first_until_it_gets_some_and_who_got_some_goes_last)
{
        struct side sides[3];
        struct sl_broadcast_ring ring;
        struct sl_broadcast_round round;

        make_ring(&ring, sides, 3, 5 * SEGMENT);
        sides[0].queue.window_samples = sides[1].queue.window_samples = sides[2].queue.window_samples = 100 * SEGMENT;
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &sides[0], SEGMENT);
        EXPECT(&round, &sides[0], SEGMENT);
        sl_broadcast_round_lacks(&round, -EAGAIN);
        EXPECT_OVER(&round);
        for (int i = 0; i < 3; i++) {
                sl_broadcast_round_begin(&round, &ring);
                EXPECT(&round, &sides[1], SEGMENT);
                sl_broadcast_round_lacks(&round, -EAGAIN);
                EXPECT_OVER(&round);
        }
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &sides[1], SEGMENT);
        EXPECT(&round, &sides[1], SEGMENT);
        sl_broadcast_round_lacks(&round, -EAGAIN);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &sides[2], SEGMENT);
        free_ring(sides, 3);
}

Test(broadcast_round, the_first_that_lacks_something_has_the_next_turn)
{
        struct side sides[3];
        struct sl_broadcast_ring ring;
        struct sl_broadcast_round round;

        make_ring(&ring, sides, 3, 5 * SEGMENT);
        sides[2].queue.is_staged = false;
        sl_broadcast_round_begin(&round, &ring);
        EXPECT(&round, &sides[0], SEGMENT);
        sl_broadcast_round_lacks(&round, -ENOMEM);
        EXPECT(&round, &sides[2], SEGMENT);
        sl_broadcast_round_lacks(&round, -EAGAIN);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT(&round, &sides[0], SEGMENT);
        free_ring(sides, 3);
}

Test(broadcast_round, a_queue_in_which_nothing_waits_hands_its_turn_on)
{
        struct side sides[3];
        struct sl_broadcast_ring ring;
        struct sl_broadcast_round round;

        make_ring(&ring, sides, 3, 5 * SEGMENT);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &sides[0], SEGMENT);
        EXPECT(&round, &sides[0], SEGMENT);
        sl_broadcast_round_lacks(&round, -EAGAIN);
        sl_broadcast_queue_remove(&sides[1].queue, &sides[1].items[0]);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &sides[2], SEGMENT);
        EXPECT_TAKEN(&round, &sides[2], SEGMENT);
        EXPECT_TAKEN(&round, &sides[0], SEGMENT);
        sl_broadcast_queue_remove(&sides[0].queue, &sides[0].items[0]);
        sl_broadcast_queue_remove(&sides[2].queue, &sides[2].items[0]);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_OVER(&round);
        free_ring(sides, 3);
}

Test(broadcast_round, the_ring_holds_those_in_which_something_waits_at_their_places)
{
        struct side sides[3];
        struct sl_broadcast_ring ring;
        struct sl_broadcast_round round;

        make_ring(&ring, sides, 3, SEGMENT);
        sl_broadcast_round_begin(&round, &ring);
        for (int i = 0; i < 3; i++)
                EXPECT_TAKEN(&round, &sides[i], SEGMENT);
        EXPECT_OVER(&round);
        cr_expect_null(ring.first);
        for (int i = 3; i-- > 1;)
                wait_for_turn(&sides[i], 0, SEGMENT);
        wait_for_turn(&sides[1], 1, SEGMENT);
        sl_broadcast_ring_walk(&ring);
        sl_broadcast_round_begin(&round, &ring);
        sides[1].queue.samples_out = sides[2].queue.samples_out = 0;
        EXPECT_TAKEN(&round, &sides[1], SEGMENT);
        EXPECT_TAKEN(&round, &sides[1], SEGMENT);
        EXPECT_TAKEN(&round, &sides[2], SEGMENT);
        EXPECT_OVER(&round);
        cr_expect_null(ring.first);
        free_ring(sides, 3);
}

/* What nobody waits for may fill its window, and takes none of the others'. */
Test(broadcast_round, the_background_fills_its_window_and_not_that_of_others)
{
        struct side side;
        struct sl_fair_item online = {.client = 1, .priority = 0, .samples = SEGMENT};
        struct sl_broadcast_ring ring;
        struct sl_broadcast_round round;

        make_ring(&ring, &side, 1, 4 * SEGMENT);
        sl_broadcast_queue_remove(&side.queue, &side.items[0]);
        side.items[0] = (struct sl_fair_item){.priority = SL_BACKGROUND, .samples = 4 * SEGMENT};
        sl_broadcast_queue_push(&side.queue, &side.items[0]);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &side, SEGMENT);
        EXPECT_TAKEN(&round, &side, SEGMENT);
        EXPECT_OVER(&round);
        cr_expect_eq(sl_fair_urgent_samples(side.queue.waiting), 0);
        sl_broadcast_queue_push(&side.queue, &online);
        cr_expect_eq(sl_fair_urgent_samples(side.queue.waiting), SEGMENT);
        sl_broadcast_round_begin(&round, &ring);
        EXPECT_TAKEN(&round, &side, SEGMENT);
        EXPECT_OVER(&round);
        cr_expect_eq(side.queue.background_out, 2 * SEGMENT);
        free_ring(&side, 1);
}
