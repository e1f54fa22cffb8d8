/* SPDX-License-Identifier: Apache-2.0 */
/* When a thread's answers wake whoever has given it its jobs. */
#include "base/clock.h"
#include "job.h"
#include "stand.h"

#include <criterion/criterion.h>
#include <unistd.h>

/* Samples [first, first + 2) of a segment of four, and their answer. */
static void compute_half(struct stand *s, struct sl_executor *thread, uint32_t segment, uint32_t first)
{
        uint64_t end_ns = sl_clock_ns() + 10 * SL_NS_PER_SECOND;
        struct sl_job *job = sl_executor_job(thread);
        struct sl_prediction answer;

        sl_accumulator_add_piece(s->accumulator, job, segment, 0, first, 2);
        sl_executor_give(thread, NULL);
        while (!sl_executor_poll(thread, &job, &answer))
                cr_assert_lt(sl_clock_ns(), end_ns);
        cr_assert_eq(answer.status, 0);
        sl_executor_answered(thread, answer.piece);
}

/* The ring comes behind the answer. */
static bool is_rung(const struct stand *s)
{
        for (uint32_t i = 0; i < 2000; i++) {
                if (atomic_load(&s->bell.sleeping) == SL_BELL_AWAKE)
                        return true;
                usleep(1000);
        }
        return false;
}

static void expect_rings(void (*sleep)(struct sl_bell *bell), bool first_half_rings)
{
        struct stand *s = stand_new();
        struct sl_executor *thread = stand_thread(s, 8);
        int segment;

        cr_assert_eq(stand_wait(s, thread), SL_EXECUTOR_READY);
        usleep(20000); /* "ready" has been rung */
        segment = sl_accumulator_open(s->accumulator, &s->work, 0, 4);
        sleep(&s->bell);
        compute_half(s, thread, (uint32_t)segment, 0);
        if (first_half_rings)
                cr_expect(is_rung(s));
        sleep(&s->bell);
        compute_half(s, thread, (uint32_t)segment, 2);
        cr_expect(is_rung(s), "the segment is complete");
        sl_accumulator_close(s->accumulator, (uint32_t)segment);
        sl_executor_free(thread);
        stand_free(s);
}

static void sleep_for_all(struct sl_bell *bell)
{
        sl_bell_sleep(bell);
}

static void sleep_for_ends(struct sl_bell *bell)
{
        sl_bell_sleep_for_ends(bell);
}

Test(thread, each_job_rings_who_sleeps_for_all, .timeout = 60)
{
        expect_rings(sleep_for_all, true);
}

Test(thread, the_end_of_a_segment_rings_who_sleeps_for_ends, .timeout = 60)
{
        expect_rings(sleep_for_ends, false);
}

Test(thread, a_part_of_a_segment_does_not_ring_who_sleeps_for_ends, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *thread = stand_thread(s, 8);
        int segment;

        cr_assert_eq(stand_wait(s, thread), SL_EXECUTOR_READY);
        usleep(20000);
        segment = sl_accumulator_open(s->accumulator, &s->work, 0, 4);
        sl_bell_sleep_for_ends(&s->bell);
        compute_half(s, thread, (uint32_t)segment, 0);
        sl_executor_free(thread); /* which joins it: it rings nobody any more */
        cr_expect_eq(atomic_load(&s->bell.sleeping), SL_BELL_FOR_ENDS);
        sl_accumulator_close(s->accumulator, (uint32_t)segment);
        stand_free(s);
}
