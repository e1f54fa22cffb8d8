/* SPDX-License-Identifier: Apache-2.0 */
/* What the dispatcher computes itself, and what it leaves to workers. */
#include "base/clock.h"
#include "crew.h"

#include <criterion/criterion.h>

/* One sample waits that is short enough, of a model that takes @ns for it. */
static void wait_inline(struct crew *crew, uint16_t tag, uint32_t priority, uint64_t ns)
{
        struct sl_request *request = fixture_request(crew->f, tag, 1);
        int id = sl_accumulator_open(crew->f->accumulator, &request->work, 0, 1);

        cr_assert_geq(id, 0);
        crew->model->inliner = &crew->inliner.common;
        sl_service_time_learn(&crew->model->service_time, 1, ns);
        crew_push(crew, (uint32_t)id, 1, priority, true);
}

static void allow(struct crew *crew, uint64_t ns)
{
        crew->budget = (struct sl_inline_budget){.limit_ns = 20000, .left_ns = ns};
}

Test(inline_run, what_waits_for_a_model_without_workers_keeps_the_dispatcher_from_nothing)
{
        struct crew absent, other;

        crew_init(&absent, 0);
        crew_init(&other, 1);
        other.model->next_busy = absent.model;
        crew_wait_with_priority(&absent, 0, 8, 0);
        wait_inline(&other, 0, 3, 1000);
        allow(&other, 50000);
        crew_run(&other);
        cr_expect_eq(other.inliner.given, 1);
        crew_deinit(&absent);
        crew_deinit(&other);
}

Test(inline_run, what_is_short_enough_is_computed_by_the_dispatcher_itself_as_long_as_it_has_time)
{
        struct crew crew;

        crew_init(&crew, 1);
        for (uint16_t tag = 0; tag < 3; tag++)
                wait_inline(&crew, tag, 0, 1000);
        allow(&crew, SL_NS_PER_SECOND);
        cr_expect_eq(crew_run(&crew), 1);
        cr_expect_eq(crew.budget.jobs, 1);
        cr_assert_eq(crew.inliner.given, 1);
        cr_expect_eq(crew.inliner.jobs[0]->n_pieces, 3, "they share a batch");
        cr_expect_eq(crew.workers[0].given, 0);
        crew_deinit(&crew);

        crew_init(&crew, 1);
        wait_inline(&crew, 0, 0, 1000);
        allow(&crew, 0);
        cr_expect_eq(crew_run(&crew), 1);
        cr_expect_eq(crew.workers[0].given, 1, "without time it is a worker's");
        cr_expect_eq(crew.inliner.given, 0);
        crew_deinit(&crew);
}

Test(inline_run, the_dispatcher_computes_nothing_while_something_more_urgent_waits_for_a_worker)
{
        struct crew crew, busy;

        crew_init(&crew, 1);
        crew_init(&busy, 1);
        busy.model->next_busy = crew.model;
        for (uint16_t tag = 0; tag < 3; tag++)
                crew_wait_with_priority(&busy, tag, 16, 0);
        wait_inline(&crew, 0, 1, 1000);
        allow(&busy, SL_NS_PER_SECOND);
        crew_give_all(&busy);
        cr_expect_eq(crew.inliner.given, 0);
        cr_expect_eq(crew.workers[0].given, 1);
        busy.model->next_busy = NULL;
        crew_deinit(&crew);
        crew_deinit(&busy);
}

/* The budget suffices for the shorter one only. */
Test(inline_run, of_several_the_dispatcher_computes_the_shortest_first)
{
        struct crew longer, shorter;

        crew_init(&longer, 1);
        crew_init(&shorter, 1);
        longer.model->next_busy = shorter.model;
        wait_inline(&longer, 0, 0, SL_NS_PER_SECOND);
        wait_inline(&shorter, 0, 0, 1000);
        allow(&longer, SL_NS_PER_SECOND / 2);
        crew_give_all(&longer);
        cr_expect_eq(shorter.inliner.given, 1);
        cr_expect_eq(longer.inliner.given, 0);
        cr_expect_eq(longer.workers[0].given, 1, "what the dispatcher has no time for is a worker's");
        longer.model->next_busy = NULL;
        crew_deinit(&longer);
        crew_deinit(&shorter);
}

/* Two models, of which the dispatcher has time for the first alone. */
static void leave_second(struct crew *first, struct crew *second, uint64_t second_ns, uint64_t left_ns)
{
        crew_init(first, 1);
        crew_init(second, 1);
        first->model->next_busy = second->model;
        wait_inline(first, 0, 0, 1000);
        wait_inline(second, 0, 0, second_ns);
        allow(first, left_ns);
        crew_give_all(first);
}

static void end_pair(struct crew *first, struct crew *second)
{
        first->model->next_busy = NULL;
        crew_deinit(first);
        crew_deinit(second);
}

Test(inline_run, what_the_next_pass_has_done_before_a_thread_would_run_is_not_given_to_workers)
{
        struct crew first, second;

        leave_second(&first, &second, 45000, 40000);
        cr_expect_eq(first.inliner.given, 1);
        cr_expect_eq(second.inliner.given, 0);
        cr_expect_eq(second.workers[0].given, 0);
        cr_expect(first.budget.kept);
        allow(&first, SL_INLINE_PASS_NS);
        crew_give_all(&first);
        cr_expect_eq(second.inliner.given, 1);
        end_pair(&first, &second);

        leave_second(&first, &second, 60000, 40000);
        cr_expect_eq(second.workers[0].given, 1, "no pass suffices for that");
        end_pair(&first, &second);
}

static void answer_inline(struct crew *crew)
{
        struct sl_executor *inliner = &crew->inliner.common;
        uint32_t n = inliner->slots[inliner->oldest].job->n_pieces;

        for (uint32_t piece = 0; piece < n; piece++)
                cr_assert_eq(sl_executor_answered(inliner, inliner->oldest, piece), piece == n - 1);
}

/* One run of a pass, which has time for one job. */
static void run_one(struct crew *crew, uint64_t left_ns)
{
        crew->budget = (struct sl_inline_budget){.limit_ns = 1, .left_ns = left_ns};
        crew_run_at(crew, sl_clock_ns());
}

/* What is shorter comes again in each pass, and would take the other's turn for as long as it does. */
Test(inline_run, what_several_passes_have_kept_goes_before_what_is_shorter)
{
        struct crew first, second;

        leave_second(&first, &second, 40000, 30000);
        for (uint16_t pass = 1; pass < SL_INLINE_PASSES; pass++) {
                answer_inline(&first);
                wait_inline(&first, pass, 0, 1000);
                allow(&first, 30000);
                crew_run(&first);
                cr_assert(first.budget.kept);
        }
        cr_assert_eq(first.inliner.given, SL_INLINE_PASSES);
        cr_assert_eq(second.inliner.given, 0);
        answer_inline(&first);
        wait_inline(&first, SL_INLINE_PASSES, 0, 1000);
        run_one(&first, 45000);
        cr_expect_eq(second.inliner.given, 1);
        cr_expect_eq(first.inliner.given, SL_INLINE_PASSES);
        answer_inline(&second);
        wait_inline(&second, 1, 0, 40000);
        run_one(&first, 45000);
        cr_expect_eq(first.inliner.given, SL_INLINE_PASSES + 1, "what was computed is kept no more");
        cr_expect_eq(second.inliner.given, 1);
        end_pair(&first, &second);
}

/* Of each pass something more urgent has taken a part. */
Test(inline_run, what_too_many_passes_have_kept_is_a_workers)
{
        struct crew crew;

        crew_init(&crew, 1);
        wait_inline(&crew, 0, 1, 45000);
        for (uint32_t pass = 0; pass <= SL_INLINE_PASSES; pass++) {
                allow(&crew, 40000);
                crew_run(&crew);
                cr_assert(crew.budget.kept && !crew.workers[0].given, "pass %u", pass);
        }
        allow(&crew, 40000);
        crew_run(&crew);
        cr_expect_eq(crew.inliner.given, 0);
        cr_expect_eq(crew.workers[0].given, 1);
        crew_deinit(&crew);
}

Test(inline_run, what_a_whole_pass_does_not_suffice_for_is_a_workers)
{
        struct crew crew;

        crew_init(&crew, 1);
        wait_inline(&crew, 0, 0, 60000);
        allow(&crew, 50000);
        crew_give_all(&crew);
        cr_expect_eq(crew.inliner.given, 0);
        cr_expect_eq(crew.workers[0].given, 1);
        crew_deinit(&crew);
}

Test(inline_run, what_several_take_is_not_done_before_a_thread_would_run)
{
        struct crew first, others[3];

        for (uint32_t i = 0; i < 3; i++) {
                crew_init(&others[i], 1);
                wait_inline(&others[i], 0, 0, 45000);
                if (i)
                        others[i - 1].model->next_busy = others[i].model;
        }
        crew_init(&first, 1);
        first.model->next_busy = others[0].model;
        wait_inline(&first, 0, 0, 1000);
        allow(&first, 40000);
        crew_give_all(&first);
        cr_expect_eq(first.inliner.given, 1);
        for (uint32_t i = 0; i < 3; i++) {
                cr_expect_eq(others[i].workers[0].given, 1);
                others[i].model->next_busy = NULL;
                crew_deinit(&others[i]);
        }
        first.model->next_busy = NULL;
        crew_deinit(&first);
}

/* 31 calls that each wake a thread take longer. */
Test(inline_run, what_takes_less_than_waking_all_of_its_workers_is_kept)
{
        struct crew crews[32];

        for (uint32_t i = 0; i < 32; i++) {
                crew_init(&crews[i], 1);
                wait_inline(&crews[i], 0, 0, 4000);
                if (i)
                        crews[i - 1].model->next_busy = crews[i].model;
        }
        allow(&crews[0], 4000);
        crew_give_all(&crews[0]);
        cr_expect_eq(crews[0].inliner.given, 1);
        for (uint32_t i = 0; i < 32; i++)
                cr_expect_eq(crews[i].workers[0].given, 0, "model %u", i);
        for (uint32_t i = 0; i < 32; i++) {
                crews[i].model->next_busy = NULL;
                crew_deinit(&crews[i]);
        }
}

Test(inline_run, what_is_kept_in_one_class_keeps_nothing_of_another_from_workers)
{
        struct crew first, second, urgent;

        crew_init(&first, 1);
        crew_init(&second, 1);
        crew_init(&urgent, 1);
        urgent.model->next_busy = first.model;
        first.model->next_busy = second.model;
        wait_inline(&urgent, 0, 0, 1000);
        wait_inline(&first, 0, 0, 45000);
        wait_inline(&second, 0, 1, 1000);
        allow(&urgent, 40000);
        crew_give_all(&urgent);
        cr_expect_eq(urgent.inliner.given, 1);
        cr_expect_eq(first.workers[0].given, 0);
        cr_expect_eq(second.workers[0].given, 1);
        urgent.model->next_busy = NULL;
        end_pair(&first, &second);
        crew_deinit(&urgent);
}

/* Who has an answer is told before another job of that length: here any job is as long. */
Test(inline_run, a_run_computes_no_longer_than_a_job_may_take)
{
        struct crew first, second;

        crew_init(&first, 1);
        crew_init(&second, 1);
        first.model->next_busy = second.model;
        wait_inline(&first, 0, 0, 1000);
        wait_inline(&second, 0, 0, 2000);
        first.budget = (struct sl_inline_budget){.limit_ns = 1, .left_ns = SL_NS_PER_SECOND};
        crew_run_at(&first, sl_clock_ns());
        cr_expect_eq(first.inliner.given, 1);
        cr_expect_eq(second.inliner.given, 0);
        cr_expect_eq(second.workers[0].given, 0);
        cr_expect_gt(first.budget.left_ns, 0);
        crew_run_at(&first, sl_clock_ns());
        cr_expect_eq(second.inliner.given, 1);
        end_pair(&first, &second);
}
