/* SPDX-License-Identifier: Apache-2.0 */
#include "accumulator.h"
#include "base/clock.h"
#include "exercise.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#define MEMBERS 5u
#define SAMPLES 44u
#define CLASSES 10u

static float prediction(uint32_t member, uint32_t element)
{
        return (float)(1.0 / (1.0 + member + 0.37 * element));
}

static void stage(struct exercise *e, uint32_t id, uint32_t member)
{
        const struct sl_segment *segment = sl_accumulator_segment(e->accumulator, id);
        float *place = exercise_output(e, id, member, 0);

        for (uint32_t i = 0; i < segment->samples * CLASSES; i++)
                place[i] = prediction(member, i);
}

/* Delivers in the order @order; the result of the last. */
static int deliver_in_order(struct exercise *e, const uint32_t *order, float *ret_output)
{
        uint32_t id;
        int last = 0;

        exercise_segment(e, 0, SAMPLES, &id);

        memset(e->first_output, 0, SAMPLES * CLASSES * sizeof(float));
        for (uint32_t i = 0; i < e->assembly.n_members; i++) {
                stage(e, id, order[i]);
                last = sl_accumulator_deliver(e->accumulator, id, SAMPLES, 0);
                cr_assert_eq(last != 0, i == e->assembly.n_members - 1, "answer %u: only the last one combines", i);
        }
        memcpy(ret_output, e->first_output, SAMPLES * CLASSES * sizeof(float));
        sl_accumulator_close(e->accumulator, id);
        return last;
}

Test(accumulator, result_is_the_same_to_the_bit_whatever_the_order_of_arrival)
{
        static const uint32_t orders[4][MEMBERS] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {3, 4, 0, 2, 1}};
        struct exercise *e = exercise_new(MEMBERS, SL_RULE_MEAN, CLASSES);
        float first[SAMPLES * CLASSES], other[SAMPLES * CLASSES];

        deliver_in_order(e, orders[0], first);
        cr_assert_neq(first[0], 0);
        for (int i = 1; i < 4; i++) {
                deliver_in_order(e, orders[i], other);
                cr_expect_eq(memcmp(first, other, sizeof(first)), 0, "order %d", i);
        }
        exercise_free(e);
}

/* One member in pieces of 1, 2, 4 ... samples, the other whole: the last piece combines all. */
Test(accumulator, counts_samples_in_whatever_pieces_they_come)
{
        struct exercise *e = exercise_new(2, SL_RULE_MEAN, CLASSES);
        float whole[SAMPLES * CLASSES];
        uint32_t id;

        deliver_in_order(e, (uint32_t[]){0, 1}, whole);
        memset(e->first_output, 0, sizeof(whole));
        exercise_segment(e, 0, SAMPLES, &id);
        stage(e, id, 1);
        cr_assert_eq(sl_accumulator_deliver(e->accumulator, id, SAMPLES, 0), 0);
        for (uint32_t first = 0, n = 1; first<SAMPLES; first += n, n = first + 2 * n> SAMPLES ? SAMPLES - first : 2 * n) {
                float *place = exercise_output(e, id, 0, first);

                for (uint32_t i = 0; i < n * CLASSES; i++)
                        place[i] = prediction(0, first * CLASSES + i);
                cr_assert_eq(sl_accumulator_deliver(e->accumulator, id, n, 0), first + n == SAMPLES, "samples %u+%u", first, n);
        }
        cr_expect_eq(memcmp(whole, e->first_output, sizeof(whole)), 0);
        exercise_free(e);
}

/* Member 0's piece comes with the result of all, as a process has combined them; the others' come with nothing. */
Test(accumulator, does_not_combine_what_has_come_combined)
{
        static const uint32_t orders[2][3] = {{0, 1, 2}, {2, 1, 0}};
        struct exercise *e = exercise_new(3, SL_RULE_MEAN, CLASSES);

        for (uint32_t order = 0; order < 2; order++) {
                uint32_t id;

                exercise_segment(e, 0, SAMPLES, &id);
                memset(e->first_output, 0, SAMPLES * CLASSES * sizeof(float));
                for (uint32_t i = 0; i < 3; i++) {
                        const struct sl_piece piece = {.segment = id, .member = orders[order][i], .samples = SAMPLES};
                        struct sl_place place = sl_accumulator_result(e->accumulator, &piece, 0);

                        cr_expect_eq(sl_accumulator_is_untouched(sl_accumulator_segment(e->accumulator, id)), i == 0);
                        if (piece.member == 0)
                                *(float *)sl_regions_at(e->regions, &place) = 5;
                        sl_accumulator_note_combined(e->accumulator, &piece);
                        cr_assert_eq(sl_accumulator_deliver(e->accumulator, id, SAMPLES, 0), i == 2);
                }
                cr_expect_eq(e->first_output[0], 5);
                cr_expect_eq(e->first_output[1], 0, "nothing was combined here");
                sl_accumulator_close(e->accumulator, id);
        }
        exercise_free(e);
}

/* Its process has died between two answers: what was combined without the result is nowhere. */
Test(accumulator, fails_what_has_come_combined_in_part)
{
        struct exercise *e = exercise_new(2, SL_RULE_MEAN, CLASSES);
        struct sl_piece piece = {.member = 1, .samples = SAMPLES};

        exercise_segment(e, 0, SAMPLES, &piece.segment);
        stage(e, piece.segment, 0);
        sl_accumulator_note_combined(e->accumulator, &piece);
        cr_assert_eq(sl_accumulator_deliver(e->accumulator, piece.segment, SAMPLES, 0), 0);
        cr_assert_eq(sl_accumulator_deliver(e->accumulator, piece.segment, SAMPLES, 0), -EIO);
        cr_expect_eq(e->first_output[0], 0);
        sl_accumulator_close(e->accumulator, piece.segment);

        exercise_segment(e, 0, SAMPLES, &piece.segment);
        cr_expect_eq(atomic_load(&sl_accumulator_segment(e->accumulator, piece.segment)->unstaged), 0, "the next one is another");
        exercise_free(e);
}

/* A request's end is told to whoever has a piece of it, and to nobody else. */
Test(accumulator, a_verdict_reaches_all_open_segments_of_a_request_and_no_other)
{
        struct exercise *e = exercise_new(1, SL_RULE_NONE, CLASSES);
        struct sl_work other = e->work;
        uint32_t ids[4];
        int r;

        for (uint32_t i = 0; i < 3; i++)
                exercise_segment(e, 4 * i, 4, &ids[i]);
        r = sl_accumulator_open(e->accumulator, &other, 12, 4);
        cr_assert_geq(r, 0);
        ids[3] = (uint32_t)r;
        sl_accumulator_close(e->accumulator, ids[1]);
        sl_accumulator_give_up(e->accumulator, &e->work, -ECANCELED);
        for (uint32_t i = 0; i < 4; i++)
                cr_expect_eq(atomic_load(sl_accumulator_verdict(e->accumulator, ids[i])), i % 2 ? 0 : -ECANCELED, "segment %u", i);
        sl_accumulator_close(e->accumulator, ids[0]);
        sl_accumulator_close(e->accumulator, ids[2]);
        cr_expect_eq(e->work.segments, SL_NO_SEGMENT);
        exercise_segment(e, 0, 4, &ids[0]);
        cr_expect_eq(atomic_load(sl_accumulator_verdict(e->accumulator, ids[0])), 0, "the next has none");
        exercise_free(e);
}

Test(accumulator, combines_nothing_when_a_member_failed)
{
        struct exercise *e = exercise_new(2, SL_RULE_MEAN, CLASSES);
        uint32_t id;

        exercise_segment(e, 0, SAMPLES, &id);
        stage(e, id, 0);
        stage(e, id, 1);
        cr_assert_eq(sl_accumulator_deliver(e->accumulator, id, SAMPLES, -EIO), 0);
        cr_assert_eq(sl_accumulator_deliver(e->accumulator, id, SAMPLES, 0), 1);
        cr_assert_eq(e->first_output[0], 0);
        exercise_free(e);
}

Test(accumulator, looks_at_deadline_and_verdict_once_more_before_it_combines)
{
        struct exercise *e = exercise_new(1, SL_RULE_MEAN, CLASSES);
        uint32_t id;
        struct sl_segment *segment = exercise_segment(e, 0, SAMPLES, &id);

        e->work.deadline_ns = sl_clock_ns() - 1;
        stage(e, id, 0);
        cr_assert_eq(sl_accumulator_deliver(e->accumulator, id, SAMPLES, 0), -ETIME);
        cr_assert_eq(e->first_output[0], 0);

        e->work.deadline_ns = 0;
        sl_accumulator_give_up(e->accumulator, &e->work, -ECANCELED);
        cr_assert_eq(atomic_load(sl_accumulator_verdict(e->accumulator, id)), -ECANCELED);
        atomic_store(&segment->missing, SAMPLES);
        cr_assert_eq(sl_accumulator_deliver(e->accumulator, id, SAMPLES, 0), 1);
        cr_assert_eq(e->first_output[0], 0);
        exercise_free(e);
}

Test(accumulator, who_delivered_first_finds_the_segment_delivered_once_the_last_has)
{
        struct exercise *e = exercise_new(2, SL_RULE_MEAN, CLASSES);
        uint32_t id;

        exercise_segment(e, 0, SAMPLES, &id);
        stage(e, id, 0);
        cr_assert_eq(sl_accumulator_deliver(e->accumulator, id, SAMPLES, 0), 0);
        cr_expect_not(sl_accumulator_delivered(e->accumulator, id));
        stage(e, id, 1);
        cr_assert_eq(sl_accumulator_deliver(e->accumulator, id, SAMPLES, 0), 1);
        cr_expect(sl_accumulator_delivered(e->accumulator, id));
        exercise_free(e);
}

/* [10] without a batch are ten classes of one sample, and not ten samples of one class. */
Test(accumulator, a_vote_runs_over_the_classes_of_an_output_without_a_batch)
{
        struct exercise *e = exercise_new(3, SL_RULE_MAJORITY_VOTE, CLASSES);
        uint32_t id;

        e->assembly.outputs[0].port.batch_axis = SL_PORT_NO_BATCH;
        e->assembly.outputs[0].port.shape = (struct sl_shape){.rank = 1, .dims = {CLASSES}};
        exercise_segment(e, 0, 1, &id);
        for (uint32_t m = 0; m < 3; m++) {
                float *place = exercise_output(e, id, m, 0);

                memset(place, 0, CLASSES * sizeof(float));
                place[m == 0 ? 1 : 7] = 1;
                sl_accumulator_deliver(e->accumulator, id, 1, 0);
        }
        for (uint32_t i = 0; i < CLASSES; i++)
                cr_expect_float_eq(e->first_output[i], i == 7 ? 2 / 3.0f : i == 1 ? 1 / 3.0f : 0, 1e-6, "class %u", i);
        exercise_free(e);
}

Test(accumulator, lets_members_of_rule_none_write_side_by_side_into_the_clients_outputs)
{
        struct exercise *e = exercise_new(2, SL_RULE_NONE, CLASSES);
        uint32_t id;

        exercise_segment(e, 32, SAMPLES - 32, &id);
        e->outputs[1].offset = 1000 * sizeof(float);
        cr_assert_eq(exercise_output(e, id, 0, 0), e->first_output + 32 * CLASSES);
        cr_assert_eq(exercise_output(e, id, 1, 0), e->first_output + 1000 + 32 * CLASSES);
        cr_assert_eq(exercise_output(e, id, 1, 5), e->first_output + 1000 + 37 * CLASSES);
        exercise_free(e);
}

/* Senders on threads of their own; clean under ThreadSanitizer only if delivery orders staging before combining. */
struct sender {
        struct exercise *exercise;
        uint32_t member;
        pthread_barrier_t *barrier;
};

static void *send_all(void *argument)
{
        struct sender *sender = argument;

        for (uint32_t i = 0; i < EXERCISE_SEGMENTS; i++) {
                pthread_barrier_wait(sender->barrier);
                stage(sender->exercise, i, sender->member);
                sl_accumulator_deliver(sender->exercise->accumulator, i, 4, 0);
        }
        return NULL;
}

Test(accumulator, whichever_thread_comes_last_sees_what_all_others_staged)
{
        struct exercise *e = exercise_new(3, SL_RULE_MEAN, CLASSES);
        struct sender senders[3];
        pthread_barrier_t barrier;
        pthread_t threads[3];

        for (uint32_t i = 0; i < EXERCISE_SEGMENTS; i++) {
                uint32_t id;

                exercise_segment(e, 4 * i, 4, &id);
                cr_assert_eq(id, i);
        }
        pthread_barrier_init(&barrier, NULL, 3);
        for (uint32_t m = 0; m < 3; m++) {
                senders[m] = (struct sender){.exercise = e, .member = m, .barrier = &barrier};
                pthread_create(&threads[m], NULL, send_all, &senders[m]);
        }
        for (uint32_t m = 0; m < 3; m++)
                pthread_join(threads[m], NULL);
        for (uint32_t i = 0; i < 4 * EXERCISE_SEGMENTS * CLASSES; i++) {
                uint32_t element = i % (4 * CLASSES);
                float sum = prediction(0, element) + prediction(1, element) + prediction(2, element);

                cr_assert_eq(e->first_output[i], sum / 3.0f, "element %u", i);
        }
        exercise_free(e);
}
