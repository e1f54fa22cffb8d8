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

static void stage(const struct sl_segment *segment, uint32_t member)
{
        float *place = sl_accumulator_place(segment, member, 0);

        for (uint32_t i = 0; i < segment->samples * CLASSES; i++)
                place[i] = prediction(member, i);
}

/* Delivers in the order @order; the result of the last. */
static int deliver_in_order(struct exercise *e, const uint32_t *order, float *ret_output)
{
        uint32_t id;
        struct sl_segment *segment = exercise_segment(e, 0, SAMPLES, &id);
        int last = 0;

        memset(e->first_output, 0, SAMPLES * CLASSES * sizeof(float));
        for (uint32_t i = 0; i < MEMBERS; i++) {
                stage(segment, order[i]);
                last = sl_accumulator_deliver(segment, 0);
                cr_assert_eq(last != 0, i == MEMBERS - 1, "message %u: only the last one combines", i);
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

Test(accumulator, combines_nothing_when_a_member_failed)
{
        struct exercise *e = exercise_new(2, SL_RULE_MEAN, CLASSES);
        uint32_t id;
        struct sl_segment *segment = exercise_segment(e, 0, SAMPLES, &id);

        stage(segment, 0);
        stage(segment, 1);
        cr_assert_eq(sl_accumulator_deliver(segment, -EIO), 0);
        cr_assert_eq(sl_accumulator_deliver(segment, 0), 1);
        cr_assert_eq(e->first_output[0], 0);
        exercise_free(e);
}

Test(accumulator, looks_at_deadline_and_verdict_once_more_before_it_combines)
{
        struct exercise *e = exercise_new(1, SL_RULE_MEAN, CLASSES);
        uint32_t id;
        struct sl_segment *segment = exercise_segment(e, 0, SAMPLES, &id);

        e->work.deadline_ns = sl_clock_ns() - 1;
        stage(segment, 0);
        cr_assert_eq(sl_accumulator_deliver(segment, 0), -ETIME);
        cr_assert_eq(e->first_output[0], 0);

        e->work.deadline_ns = 0;
        atomic_store(&e->work.verdict, -ECANCELED);
        atomic_store(&segment->missing, 1);
        cr_assert_eq(sl_accumulator_deliver(segment, 0), 1);
        cr_assert_eq(e->first_output[0], 0);
        exercise_free(e);
}

/* [10] without a batch are ten classes of one sample, and not ten samples of one class. */
Test(accumulator, a_vote_runs_over_the_classes_of_an_output_without_a_batch)
{
        struct exercise *e = exercise_new(3, SL_RULE_MAJORITY_VOTE, CLASSES);
        uint32_t id;

        e->assembly.outputs[0].port.batch_axis = SL_PORT_NO_BATCH;
        e->assembly.outputs[0].port.shape = (struct sl_shape){.rank = 1, .dims = {CLASSES}};
        struct sl_segment *segment = exercise_segment(e, 0, 1, &id);
        for (uint32_t m = 0; m < 3; m++) {
                float *place = sl_accumulator_place(segment, m, 0);

                memset(place, 0, CLASSES * sizeof(float));
                place[m == 0 ? 1 : 7] = 1;
                sl_accumulator_deliver(segment, 0);
        }
        for (uint32_t i = 0; i < CLASSES; i++)
                cr_expect_float_eq(e->first_output[i], i == 7 ? 2 / 3.0f : i == 1 ? 1 / 3.0f : 0, 1e-6, "class %u", i);
        exercise_free(e);
}

Test(accumulator, lets_members_of_rule_none_write_side_by_side_into_the_clients_outputs)
{
        struct exercise *e = exercise_new(2, SL_RULE_NONE, CLASSES);
        uint32_t id;
        struct sl_segment *segment = exercise_segment(e, 32, SAMPLES - 32, &id);

        e->outputs[1] = e->first_output + 1000;
        cr_assert_eq(sl_accumulator_place(segment, 0, 0), e->first_output + 32 * CLASSES);
        cr_assert_eq(sl_accumulator_place(segment, 1, 0), e->first_output + 1000 + 32 * CLASSES);
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
                struct sl_segment *segment = sl_accumulator_segment(sender->exercise->accumulator, i);

                pthread_barrier_wait(sender->barrier);
                stage(segment, sender->member);
                sl_accumulator_deliver(segment, 0);
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
