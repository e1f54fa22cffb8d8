/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "crew.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a worker whose job has been computed and waits for other members there is nothing to wait for, as long as it has a slot. */
Test(scheduler, a_job_that_rests_does_not_keep_its_worker_from_the_next)
{
        struct crew crew;

        crew_init(&crew, 1);
        crew_wait(&crew, 0, 2);
        crew_give_all(&crew);
        crew_wait(&crew, 1, 2);
        crew_give_all(&crew);
        cr_expect_eq(sl_executor_jobs(crew.list[0]), 1, "it computes, and the next job is not full");
        crew.list[0]->resting = 1;
        crew_give_all(&crew);
        cr_expect_eq(sl_executor_jobs(crew.list[0]), 2);
        crew.list[0]->resting = 2;
        crew_wait(&crew, 2, 2);
        crew_give_all(&crew);
        cr_expect_eq(sl_executor_jobs(crew.list[0]), SL_EXECUTOR_JOBS_MAX, "it has no slot left");
        crew_deinit(&crew);
}

Test(scheduler, segments_that_wait_share_a_job_as_far_as_they_fit_one_batch_together)
{
        static const struct {
                uint32_t samples[4], n_pieces[4]; /* what waits; what each job takes of it */
        } rows[] = {
                {{4, 4, 1, 0}, {2, 1}},
                {{5, 4, 0, 0}, {1, 1}},
                {{7, 1, 7, 2}, {2, 1, 1}},
                {{3, 3, 2, 8}, {3, 1}},
                {{16, 1, 1, 0}, {1, 2}},
                {{8, 1, 0, 0}, {1, 1}},
        };

        for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
                struct crew crew;

                crew_init(&crew, 1);
                for (uint16_t i = 0; i < 4 && rows[row].samples[i]; i++)
                        crew_wait(&crew, i, rows[row].samples[i]);
                for (uint32_t i = 0; i < 4 && rows[row].n_pieces[i]; i++) {
                        crew_give_all(&crew);
                        const struct sl_job *job = crew_next_job(&crew, 0);

                        cr_assert(job, "row %zu, job %u", row, i);
                        cr_expect_eq(job->n_pieces, rows[row].n_pieces[i], "row %zu, job %u: %u pieces", row, i, job->n_pieces);
                        cr_expect(job->n_pieces == 1 || crew_job_samples(job) <= CREW_BATCH_MAX, "row %zu, job %u", row, i);
                        crew_end_job(&crew);
                }
                crew_deinit(&crew);
        }
}

/* As many requests as there are pieces in a job fit one batch, if they fit it by their samples. */
Test(scheduler, a_batch_holds_as_many_requests_as_its_samples)
{
        struct crew crew;

        crew_init(&crew, 1);
        crew.workers[0].common.batch_max = SL_JOB_PIECES_MAX;
        for (uint16_t i = 0; i < 50; i++)
                crew_wait(&crew, i % 8, 1);
        crew_give_all(&crew);
        cr_expect_eq(crew_next_job(&crew, 0)->n_pieces, 50);
        crew_deinit(&crew);
}

Test(scheduler, no_idle_worker_goes_without_while_another_gets_several)
{
        struct crew crew;

        crew_init(&crew, 2);
        for (uint16_t i = 0; i < 3; i++)
                crew_wait(&crew, i, 1);
        crew_give_all(&crew);
        cr_expect_eq(crew_next_job(&crew, 0)->n_pieces, 2);
        cr_expect_eq(crew_next_job(&crew, 1)->n_pieces, 1);
        crew_deinit(&crew);
}

Test(scheduler, each_worker_gathers_up_to_its_own_batch)
{
        struct crew crew;

        crew_init(&crew, 2);
        crew.workers[0].common.batch_max = 2;
        for (uint16_t i = 0; i < 8; i++)
                crew_wait(&crew, i, 1);
        crew_give_all(&crew);
        cr_expect_eq(crew_next_job(&crew, 0)->n_pieces, 2);
        cr_expect_eq(crew_next_job(&crew, 1)->n_pieces, 6);
        crew_deinit(&crew);
}

Test(scheduler, what_waits_for_a_model_without_workers_holds_up_nobody)
{
        struct crew absent, other;

        crew_init(&absent, 0);
        crew_init(&other, 1);
        crew_share_let(&absent, &other);
        other.model->next_busy = absent.model;
        other.let->turns.at_once = 0;
        crew_wait_with_priority(&absent, 0, 8, 0);
        crew_wait_with_priority(&other, 0, 8, 3);
        crew_give_all(&other);
        cr_expect_not_null(crew_next_job(&other, 0));
        crew_deinit(&absent);
        crew_deinit(&other);
}

Test(scheduler, a_model_without_a_batch_gets_one_segment_at_a_time)
{
        struct crew crew;

        crew_init(&crew, 1);
        crew.f->info.batchable = 0;
        for (uint16_t i = 0; i < 2; i++)
                crew_wait(&crew, i, 1);
        crew_give_all(&crew);
        cr_expect_eq(crew_next_job(&crew, 0)->n_pieces, 1);
        crew_deinit(&crew);
}

Test(scheduler, what_is_more_urgent_overtakes_all_that_waits_and_shares_no_job_with_it)
{
        struct crew crew;

        crew_init(&crew, 1);
        crew_wait_with_priority(&crew, 0, 8, 2);
        crew_give_all(&crew);
        cr_assert_eq(crew_next_tag(&crew), 0);
        for (uint16_t tag = 1; tag < 4; tag++)
                crew_wait_with_priority(&crew, tag, 4, 2);
        crew_wait_with_priority(&crew, 4, 1, 0);
        crew_end_job(&crew);
        crew_give_all(&crew);
        cr_expect_eq(crew.workers[0].jobs[1]->n_pieces, 1);
        cr_expect_eq(crew_next_tag(&crew), 4);
        cr_expect_eq(crew_next_tag(&crew), 1, "the next lies ready");
        crew_deinit(&crew);
}

/* It does not fill a job, and so is not given ahead itself. */
Test(scheduler, nothing_is_given_ahead_of_what_is_more_urgent)
{
        struct crew crew;

        crew_init(&crew, 1);
        crew_wait_with_priority(&crew, 0, 8, 2);
        crew_give_all(&crew);
        cr_assert_eq(crew_next_tag(&crew), 0);
        crew_wait_with_priority(&crew, 1, 1, 0);
        for (uint16_t tag = 2; tag < 5; tag++)
                crew_wait_with_priority(&crew, tag, 8, 2);
        crew_give_all(&crew);
        cr_expect_eq(crew_next_tag(&crew), -1);
        crew_end_job(&crew);
        crew_give_all(&crew);
        cr_expect_eq(crew_next_tag(&crew), 1);
        cr_expect_eq(crew_next_tag(&crew), 2);
        crew_deinit(&crew);
}

Test(scheduler, a_job_gathers_no_more_than_fits_the_slice)
{
        struct crew crew;

        crew_init(&crew, 1);
        crew.model->slice_samples = 3;
        for (uint16_t tag = 0; tag < 4; tag++)
                crew_wait(&crew, tag, 1);
        crew_give_all(&crew);
        cr_expect_eq(crew_job_samples(crew_next_job(&crew, 0)), 3);
        crew_deinit(&crew);
}

/* Two models on one core. */
Test(scheduler, another_model_gets_no_new_job_on_a_shared_core_as_long_as_something_urgent_computes)
{
        struct crew urgent, other;

        crew_init(&urgent, 1);
        crew_init(&other, 1);
        crew_share_let(&urgent, &other);
        other.model->next_busy = urgent.model;
        crew_wait_with_priority(&other, 0, 8, 3);
        crew_wait_with_priority(&urgent, 0, 8, 1);
        crew_give_all(&other);
        cr_expect_eq(crew_next_tag(&urgent), 0);
        cr_expect_eq(crew_next_tag(&other), -1);
        sl_executor_answered(urgent.list[0], urgent.list[0]->oldest, 0);
        other.let->turns.running[1]--;
        crew_give_all(&other);
        cr_expect_eq(crew_next_tag(&other), 0);
        crew_deinit(&urgent);
        crew_deinit(&other);
}

/* ---- policies ---- */

/* As some policies will: three samples for the second worker now, and the rest later. */
static uint32_t cut(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        (void)max;
        *ret_next_ns = now_ns + 500;
        if (view->workers[1].jobs)
                return 0;
        ret_decisions[0] = (struct sl_decision){.worker = 1, .samples = 3};
        return 1;
}

Test(scheduler, what_a_policy_decides_is_done_to_the_sample_and_asked_again_when_it_says)
{
        struct crew crew;
        const struct sl_job *job;

        crew_init(&crew, 2);
        crew.model->policy = cut;
        crew_wait(&crew, 0, 2);
        crew_wait(&crew, 1, 5);
        crew_give_all(&crew);
        cr_expect_eq(crew.next_ns, 501);
        cr_expect_eq(crew.workers[0].given, 0);
        cr_assert_not_null(job = crew_next_job(&crew, 1));
        cr_assert_eq(job->n_pieces, 2);
        cr_expect_eq(job->pieces[1].first, 0);
        cr_expect_eq(job->pieces[1].samples, 1, "of the second segment");
        for (uint32_t i = 0; i < 2; i++)
                sl_executor_answered(crew.list[1], crew.list[1]->oldest, i);
        crew_give_all(&crew);
        cr_assert_not_null(job = crew_next_job(&crew, 1));
        cr_assert_eq(job->n_pieces, 1);
        cr_expect_eq(job->pieces[0].first, 1);
        cr_expect_eq(job->pieces[0].samples, 3);
        crew_deinit(&crew);
}

/* ---- whether workers have all that they can take ---- */

static uint32_t hold_all(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        (void)view, (void)ret_decisions, (void)max;
        *ret_next_ns = now_ns + 500;
        return 0;
}

static void expect_full(struct crew *crew, bool full, const char *what)
{
        crew->full = !full;
        crew_give_all(crew);
        cr_expect_eq(crew->full, full, "%s", what);
}

Test(scheduler, workers_are_full_when_each_has_a_job_and_more_waits)
{
        struct crew crew;

        crew_init(&crew, 2);
        crew.let->turns.at_once = 2;
        expect_full(&crew, false, "nothing waits");
        crew_wait(&crew, 0, 16);
        crew_wait(&crew, 1, 16);
        expect_full(&crew, false, "both get a job");
        crew_wait(&crew, 2, 16);
        expect_full(&crew, true, "a third one waits for them");
        crew_deinit(&crew);
}

Test(scheduler, workers_are_not_full_while_a_policy_holds_back_what_an_idle_one_could_take)
{
        struct crew crew;

        crew_init(&crew, 2);
        crew.let->turns.at_once = 2;
        crew.model->policy = hold_all;
        crew_wait(&crew, 0, 16);
        expect_full(&crew, false, "both are idle");
        crew.model->policy = sl_policy_work_conserving;
        expect_full(&crew, false, "it has been given out");
        crew.model->policy = hold_all;
        crew_wait(&crew, 1, 16);
        expect_full(&crew, false, "one is idle");
        crew_deinit(&crew);
}

Test(scheduler, a_model_without_workers_has_none_that_are_full)
{
        struct crew crew;

        crew_init(&crew, 0);
        crew_wait(&crew, 0, 16);
        expect_full(&crew, false, "nobody is there to take it");
        crew_deinit(&crew);
}

/* ---- in the background ---- */

static void expect_next_job(struct crew *crew, uint32_t worker, uint32_t priority)
{
        const struct sl_job *job = crew_next_job(crew, worker);

        cr_assert_not_null(job, "worker %u has got nothing", worker);
        cr_expect_eq(job->priority, priority);
}

Test(scheduler, what_is_in_the_background_goes_behind_all_classes_and_counts_as_nothing)
{
        struct crew crew;

        crew_init(&crew, 1);
        crew_wait_with_priority(&crew, 0, 8, SL_BACKGROUND);
        crew_wait_with_priority(&crew, 1, 8, SL_PRIORITIES - 1);
        crew_give_all(&crew);
        expect_next_job(&crew, 0, SL_PRIORITIES - 1);
        cr_expect_null(crew_next_job(&crew, 0));
        expect_full(&crew, false, "nobody waits for what is left");
        crew_end_job(&crew);
        crew_give_all(&crew);
        expect_next_job(&crew, 0, SL_BACKGROUND);
        crew_deinit(&crew);
}

Test(scheduler, a_worker_that_gives_way_is_idle_for_who_waits_and_has_one_job_in_the_background)
{
        struct sl_executor_class yielding;
        struct crew crew;

        crew_init(&crew, 1);
        yielding = *crew.list[0]->class;
        yielding.gives_way = true;
        crew.list[0]->class = &yielding;
        crew_wait_with_priority(&crew, 0, 8, SL_BACKGROUND);
        crew_wait_with_priority(&crew, 1, 8, SL_BACKGROUND);
        crew_give_all(&crew);
        expect_next_job(&crew, 0, SL_BACKGROUND);
        cr_expect_null(crew_next_job(&crew, 0), "a place is left for who waits");
        crew_wait(&crew, 2, 8);
        crew_give_all(&crew);
        expect_next_job(&crew, 0, 0);
        crew_deinit(&crew);
}

static uint32_t open_segment(struct crew *crew, uint16_t tag, uint32_t samples)
{
        int id = sl_accumulator_open(crew->f->accumulator, &fixture_request(crew->f, tag, samples)->work, 0, samples);

        cr_assert_geq(id, 0);
        return (uint32_t)id;
}

Test(scheduler, what_is_in_the_background_has_the_let_s_cores_once_and_leaves_one_beside_others)
{
        struct crew online, offline;

        crew_init(&online, 1);
        crew_init(&offline, 2);
        crew_share_let(&offline, &online);
        online.model->next_busy = offline.model;
        online.let->turns.at_once = 3;
        crew_wait(&online, 0, 8);
        for (uint16_t i = 1; i < 4; i++)
                crew_push(&offline, open_segment(&online, i, 8), 8, SL_BACKGROUND, false);
        crew_give_all(&online);
        expect_next_job(&online, 0, 0);
        expect_next_job(&offline, 0, SL_BACKGROUND);
        cr_expect_null(crew_next_job(&offline, 1), "the other core is for who comes next");
        cr_expect(!atomic_load(&online.let->is_wanted));
        crew_end_job(&online);
        crew_give_all(&online);
        expect_next_job(&offline, 1, SL_BACKGROUND);
        crew_wait(&online, 4, 8);
        crew_give_all(&online);
        expect_next_job(&online, 0, 0);
        cr_expect(atomic_load(&online.let->is_wanted), "no core is left");
        online.model->next_busy = NULL;
        crew_deinit(&offline);
        crew_deinit(&online);
}

/* ---- a recorded log ---- */

#define LOG_STEPS 400u

/* Two models on one core, or with cores of their own: the first has @workers workers. */
struct log_run {
        struct crew crews[2];
        uint32_t dice, open;
        uint16_t tag;
        FILE *file;
};

static uint32_t roll(struct log_run *r, uint32_t sides)
{
        r->dice = r->dice * 1664525u + 1013904223u;
        return (r->dice >> 16) % sides;
}

static void log_jobs(struct log_run *r, uint32_t step)
{
        for (uint32_t m = 0; m < 2; m++)
                for (uint32_t w = 0; w < r->crews[m].model->workers.n; w++) {
                        const struct sl_job *job;

                        while ((job = crew_next_job(&r->crews[m], w)))
                                fprintf(r->file, "%u\tmodel %u\tworker %u\tclass %u\tpieces %u\tsamples %u\tfirst segment %u\n",
                                        step, m, w, job->priority, job->n_pieces, crew_job_samples(job), job->pieces[0].segment);
                }
}

/* Some worker answers its oldest job, and its segments are closed. */
static void log_answer(struct log_run *r)
{
        struct crew *crew = &r->crews[roll(r, 2)];
        struct sl_executor *worker = crew->list[roll(r, crew->model->workers.n)];

        if (!sl_executor_jobs(worker))
                return;
        const struct sl_job *job = worker->slots[worker->oldest].job;
        uint32_t n = job->n_pieces, priority = job->priority;
        for (uint32_t i = 0; i < n; i++) {
                sl_accumulator_close(r->crews[0].f->accumulator, job->pieces[i].segment);
                r->open--;
        }
        for (uint32_t i = 0; i < n; i++)
                sl_executor_answered(worker, worker->oldest, i);
        crew->let->turns.running[priority]--;
}

static void log_wait(struct log_run *r)
{
        struct crew *crew = &r->crews[roll(r, 2)];
        uint32_t samples = 1 + roll(r, roll(r, 2) ? 16 : 3), priority = roll(r, 3) ? 2 : roll(r, SL_PRIORITIES);
        struct sl_request *request = fixture_request(r->crews[0].f, r->tag++ % 8, samples);
        int id = sl_accumulator_open(r->crews[0].f->accumulator, &request->work, 0, samples);

        cr_assert_geq(id, 0);
        r->open++;
        crew_push(crew, (uint32_t)id, samples, priority, false);
}

static void log_decisions(FILE *file, uint32_t workers, bool takes_turns)
{
        struct log_run r = {.dice = 7 * workers + takes_turns, .file = file};

        crew_init(&r.crews[0], workers);
        crew_init(&r.crews[1], 1);
        r.crews[0].model->next_busy = r.crews[1].model;
        if (takes_turns)
                crew_share_let(&r.crews[1], &r.crews[0]);
        for (uint32_t step = 0; step < LOG_STEPS; step++) {
                if (roll(&r, 2) && r.open < FIXTURE_SEGMENTS)
                        log_wait(&r);
                else
                        log_answer(&r);
                crew_give_all(&r.crews[0]);
                log_jobs(&r, step);
        }
        r.crews[0].model->next_busy = NULL;
        crew_deinit(&r.crews[0]);
        crew_deinit(&r.crews[1]);
}

/* The log was written by the scheduler that decided and gave in one; policy.c decides the same. */
Test(scheduler, decides_as_recorded)
{
        char *log, *recorded;
        size_t bytes, size;
        FILE *file = open_memstream(&log, &bytes);

        log_decisions(file, 1, false);
        log_decisions(file, 1, true);
        log_decisions(file, 2, false);
        log_decisions(file, 2, true);
        fclose(file);
        cr_assert_not_null(file = fopen(RECORDED_LOG, "r"));
        recorded = calloc(1, bytes + 1);
        size = fread(recorded, 1, bytes, file);
        cr_expect_eq(fgetc(file), EOF, "as many decisions as recorded");
        fclose(file);
        cr_expect(size == bytes && memcmp(log, recorded, bytes) == 0);
        free(recorded);
        free(log);
}

/* A task that shares no job leaves what was gathered with it to the next decision of the round, which was made for other tasks. */
Test(scheduler, several_pieces_fit_a_batch_though_a_task_that_goes_alone_stood_before_them)
{
        struct crew crew;
        uint32_t samples[] = {1, 1, CREW_BATCH_MAX + 1, 1}, given = 0;

        crew_init(&crew, 2);
        for (uint16_t i = 0; i < 4; i++)
                crew_wait(&crew, i, samples[i]);
        sl_task_queue_at(&crew.model->scheduler.queues[0], 0)->reruns = 1;
        crew_run(&crew);
        for (uint32_t w = 0; w < 2; w++)
                for (const struct sl_job *job; (job = crew_next_job(&crew, w));) {
                        uint32_t of_job = 0;

                        for (uint32_t i = 0; i < job->n_pieces; i++)
                                of_job += job->pieces[i].samples;
                        cr_expect(job->n_pieces == 1 || of_job <= CREW_BATCH_MAX, "%u samples of %u pieces", of_job, job->n_pieces);
                        given += of_job;
                }
        cr_expect_gt(given, 2);
        crew_deinit(&crew);
}
