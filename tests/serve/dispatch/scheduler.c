/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "executor.h"
#include "fixture.h"
#include "let.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUTS    4u
#define CLASSES   10u
#define BATCH_MAX 8u
#define SECOND_NS 1000000000ull

/* An executor that computes nothing: its jobs lie in their slots until the test answers them. */
struct idle {
        struct sl_executor common;
        void *memory;
        uint32_t given, taken; /* jobs in all; those that the test has looked at */
        const struct sl_job *jobs[512];
};

static void give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        struct idle *idle = (struct idle *)executor;
        struct sl_job *copy = malloc(sl_job_bytes(1, 1));

        (void)from;
        memcpy(copy, executor->slots[slot].job, sl_job_bytes(1, 1));
        idle->jobs[idle->given++] = copy;
}

static const struct sl_executor_class idle_class = {.name = "idle", .give = give};

struct crew {
        struct fixture *f;
        struct sl_model *model;
        struct idle workers[2], inliner;
        struct sl_executor *list[2];
        struct sl_let own_let, *let; /* of all its workers */
        uint64_t run;
        struct sl_inline_budget budget;
        uint64_t next_ns;
        bool full;
};

static void idle_init(struct idle *idle)
{
        idle->memory = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(1, 1));
        sl_executor_init(&idle->common, idle->memory, SL_EXECUTOR_JOBS_MAX, 1, 1);
        idle->common.class = &idle_class;
        idle->common.batch_max = BATCH_MAX;
}

static void idle_deinit(struct idle *idle)
{
        for (uint32_t i = 0; i < idle->given; i++)
                free((void *)idle->jobs[i]);
        free(idle->memory);
}

/* The workers of both run where those of @with do. */
static void share_let(struct crew *crew, struct crew *with)
{
        crew->let = &with->own_let;
        for (uint32_t i = 0; i < 2; i++)
                crew->workers[i].common.let = crew->let;
        crew->let->turns.for_one = false;
}

static void crew_init(struct crew *crew, uint32_t n_workers)
{
        memset(crew, 0, sizeof(*crew));
        crew->f = fixture_new(1, SL_RULE_NONE, INPUTS, CLASSES, 16);
        crew->model = &crew->f->models[0];
        for (uint32_t i = 0; i < n_workers; i++) {
                idle_init(&crew->workers[i]);
                crew->list[i] = &crew->workers[i].common;
        }
        idle_init(&crew->inliner);
        crew->model->workers = (struct sl_workers){.n = n_workers, .list = {crew->list[0], crew->list[1]}};
        crew->own_let = (struct sl_let){.turns.at_once = 1};
        share_let(crew, crew);
        crew->let->turns.for_one = true;
}

static void crew_deinit(struct crew *crew)
{
        for (uint32_t i = 0; i < crew->model->workers.n; i++)
                idle_deinit(&crew->workers[i]);
        idle_deinit(&crew->inliner);
        fixture_free(crew->f);
}

/* The worker's next job that was not looked at; NULL: it has got none. */
static const struct sl_job *next_job(struct crew *crew, uint32_t worker)
{
        struct idle *idle = &crew->workers[worker];

        return idle->taken < idle->given ? idle->jobs[idle->taken++] : NULL;
}

/* The worker answers its oldest job, and the dispatcher counts its end. */
static void end_job(struct crew *crew)
{
        struct sl_executor *worker = crew->list[0];
        uint32_t n = worker->slots[worker->oldest].job->n_pieces, priority = worker->slots[worker->oldest].job->priority;

        for (uint32_t piece = 0; piece < n; piece++)
                cr_assert_eq(sl_executor_answered(worker, worker->oldest, piece), piece == n - 1);
        crew->let->turns.running[priority]--;
}

static void push(struct crew *crew, uint32_t id, uint32_t samples, uint32_t priority, bool is_inline)
{
        sl_scheduler_push(
                &crew->model->scheduler, &(struct sl_task){.segment = id, .samples = samples, .is_inline = is_inline}, priority);
}

/* One segment of @samples waits for the model. */
static void wait_with_priority(struct crew *crew, uint16_t tag, uint32_t samples, uint32_t priority)
{
        struct sl_request *request = fixture_request(crew->f, tag, samples);
        int id = sl_accumulator_open(crew->f->accumulator, &request->work, 0, samples);

        cr_assert_geq(id, 0);
        push(crew, (uint32_t)id, samples, priority, false);
}

static void wait_for_worker(struct crew *crew, uint16_t tag, uint32_t samples)
{
        wait_with_priority(crew, tag, samples, 0);
}

static uint32_t run_at(struct crew *crew, uint64_t now_ns)
{
        return sl_scheduler_run(&(struct sl_schedule){.models = crew->model,
                .run = ++crew->run,
                .budget = &crew->budget,
                .accumulator = crew->f->accumulator,
                .now_ns = now_ns,
                .ret_next_ns = &crew->next_ns,
                .ret_full = &crew->full});
}

static uint32_t run(struct crew *crew)
{
        return run_at(crew, 1);
}

static void give_all(struct crew *crew)
{
        run(crew);
}

static uint32_t job_samples(const struct sl_job *job)
{
        uint32_t samples = 0;

        for (uint32_t i = 0; i < job->n_pieces; i++)
                samples += job->pieces[i].samples;
        return samples;
}

/* Of a worker whose job has been computed and waits for other members there is nothing to wait for, as long as it has a slot. */
Test(scheduler, a_job_that_rests_does_not_keep_its_worker_from_the_next)
{
        struct crew crew;

        crew_init(&crew, 1);
        wait_for_worker(&crew, 0, 2);
        give_all(&crew);
        wait_for_worker(&crew, 1, 2);
        give_all(&crew);
        cr_expect_eq(sl_executor_jobs(crew.list[0]), 1, "it computes, and the next job is not full");
        crew.list[0]->resting = 1;
        give_all(&crew);
        cr_expect_eq(sl_executor_jobs(crew.list[0]), 2);
        crew.list[0]->resting = 2;
        wait_for_worker(&crew, 2, 2);
        give_all(&crew);
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
                        wait_for_worker(&crew, i, rows[row].samples[i]);
                for (uint32_t i = 0; i < 4 && rows[row].n_pieces[i]; i++) {
                        give_all(&crew);
                        const struct sl_job *job = next_job(&crew, 0);

                        cr_assert(job, "row %zu, job %u", row, i);
                        cr_expect_eq(job->n_pieces, rows[row].n_pieces[i], "row %zu, job %u: %u pieces", row, i, job->n_pieces);
                        cr_expect(job->n_pieces == 1 || job_samples(job) <= BATCH_MAX, "row %zu, job %u", row, i);
                        end_job(&crew);
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
                wait_for_worker(&crew, i % 8, 1);
        give_all(&crew);
        cr_expect_eq(next_job(&crew, 0)->n_pieces, 50);
        crew_deinit(&crew);
}

Test(scheduler, no_idle_worker_goes_without_while_another_gets_several)
{
        struct crew crew;

        crew_init(&crew, 2);
        for (uint16_t i = 0; i < 3; i++)
                wait_for_worker(&crew, i, 1);
        give_all(&crew);
        cr_expect_eq(next_job(&crew, 0)->n_pieces, 2);
        cr_expect_eq(next_job(&crew, 1)->n_pieces, 1);
        crew_deinit(&crew);
}

Test(scheduler, each_worker_gathers_up_to_its_own_batch)
{
        struct crew crew;

        crew_init(&crew, 2);
        crew.workers[0].common.batch_max = 2;
        for (uint16_t i = 0; i < 8; i++)
                wait_for_worker(&crew, i, 1);
        give_all(&crew);
        cr_expect_eq(next_job(&crew, 0)->n_pieces, 2);
        cr_expect_eq(next_job(&crew, 1)->n_pieces, 6);
        crew_deinit(&crew);
}

Test(scheduler, what_waits_for_a_model_without_workers_holds_up_nobody)
{
        struct crew absent, other;

        crew_init(&absent, 0);
        crew_init(&other, 1);
        share_let(&absent, &other);
        other.model->next_busy = absent.model;
        other.let->turns.at_once = 0;
        wait_with_priority(&absent, 0, 8, 0);
        wait_with_priority(&other, 0, 8, 3);
        give_all(&other);
        cr_expect_not_null(next_job(&other, 0));
        crew_deinit(&absent);
        crew_deinit(&other);
}

Test(scheduler, a_model_without_a_batch_gets_one_segment_at_a_time)
{
        struct crew crew;

        crew_init(&crew, 1);
        crew.f->info.batchable = 0;
        for (uint16_t i = 0; i < 2; i++)
                wait_for_worker(&crew, i, 1);
        give_all(&crew);
        cr_expect_eq(next_job(&crew, 0)->n_pieces, 1);
        crew_deinit(&crew);
}

/* The first tag of the worker's next job; -1: it has none. */
static int next_tag(struct crew *crew)
{
        const struct sl_job *job = next_job(crew, 0);

        if (!job)
                return -1;
        return sl_request_of(sl_accumulator_segment(crew->f->accumulator, job->pieces[0].segment)->work)->tag;
}

Test(scheduler, what_is_more_urgent_overtakes_all_that_waits_and_shares_no_job_with_it)
{
        struct crew crew;

        crew_init(&crew, 1);
        wait_with_priority(&crew, 0, 8, 2);
        give_all(&crew);
        cr_assert_eq(next_tag(&crew), 0);
        for (uint16_t tag = 1; tag < 4; tag++)
                wait_with_priority(&crew, tag, 4, 2);
        wait_with_priority(&crew, 4, 1, 0);
        end_job(&crew);
        give_all(&crew);
        cr_expect_eq(crew.workers[0].jobs[1]->n_pieces, 1);
        cr_expect_eq(next_tag(&crew), 4);
        cr_expect_eq(next_tag(&crew), 1, "the next lies ready");
        crew_deinit(&crew);
}

/* It does not fill a job, and so is not given ahead itself. */
Test(scheduler, nothing_is_given_ahead_of_what_is_more_urgent)
{
        struct crew crew;

        crew_init(&crew, 1);
        wait_with_priority(&crew, 0, 8, 2);
        give_all(&crew);
        cr_assert_eq(next_tag(&crew), 0);
        wait_with_priority(&crew, 1, 1, 0);
        for (uint16_t tag = 2; tag < 5; tag++)
                wait_with_priority(&crew, tag, 8, 2);
        give_all(&crew);
        cr_expect_eq(next_tag(&crew), -1);
        end_job(&crew);
        give_all(&crew);
        cr_expect_eq(next_tag(&crew), 1);
        cr_expect_eq(next_tag(&crew), 2);
        crew_deinit(&crew);
}

Test(scheduler, a_job_gathers_no_more_than_fits_the_slice)
{
        struct crew crew;

        crew_init(&crew, 1);
        crew.model->slice_samples = 3;
        for (uint16_t tag = 0; tag < 4; tag++)
                wait_for_worker(&crew, tag, 1);
        give_all(&crew);
        cr_expect_eq(job_samples(next_job(&crew, 0)), 3);
        crew_deinit(&crew);
}

/* Two models on one core. */
Test(scheduler, another_model_gets_no_new_job_on_a_shared_core_as_long_as_something_urgent_computes)
{
        struct crew urgent, other;

        crew_init(&urgent, 1);
        crew_init(&other, 1);
        share_let(&urgent, &other);
        other.model->next_busy = urgent.model;
        wait_with_priority(&other, 0, 8, 3);
        wait_with_priority(&urgent, 0, 8, 1);
        give_all(&other);
        cr_expect_eq(next_tag(&urgent), 0);
        cr_expect_eq(next_tag(&other), -1);
        sl_executor_answered(urgent.list[0], urgent.list[0]->oldest, 0);
        other.let->turns.running[1]--;
        give_all(&other);
        cr_expect_eq(next_tag(&other), 0);
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
        wait_for_worker(&crew, 0, 2);
        wait_for_worker(&crew, 1, 5);
        give_all(&crew);
        cr_expect_eq(crew.next_ns, 501);
        cr_expect_eq(crew.workers[0].given, 0);
        cr_assert_not_null(job = next_job(&crew, 1));
        cr_assert_eq(job->n_pieces, 2);
        cr_expect_eq(job->pieces[1].first, 0);
        cr_expect_eq(job->pieces[1].samples, 1, "of the second segment");
        for (uint32_t i = 0; i < 2; i++)
                sl_executor_answered(crew.list[1], crew.list[1]->oldest, i);
        give_all(&crew);
        cr_assert_not_null(job = next_job(&crew, 1));
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
        give_all(crew);
        cr_expect_eq(crew->full, full, "%s", what);
}

Test(scheduler, workers_are_full_when_each_has_a_job_and_more_waits)
{
        struct crew crew;

        crew_init(&crew, 2);
        crew.let->turns.at_once = 2;
        expect_full(&crew, false, "nothing waits");
        wait_for_worker(&crew, 0, 16);
        wait_for_worker(&crew, 1, 16);
        expect_full(&crew, false, "both get a job");
        wait_for_worker(&crew, 2, 16);
        expect_full(&crew, true, "a third one waits for them");
        crew_deinit(&crew);
}

Test(scheduler, workers_are_not_full_while_a_policy_holds_back_what_an_idle_one_could_take)
{
        struct crew crew;

        crew_init(&crew, 2);
        crew.let->turns.at_once = 2;
        crew.model->policy = hold_all;
        wait_for_worker(&crew, 0, 16);
        expect_full(&crew, false, "both are idle");
        crew.model->policy = sl_policy_work_conserving;
        expect_full(&crew, false, "it has been given out");
        crew.model->policy = hold_all;
        wait_for_worker(&crew, 1, 16);
        expect_full(&crew, false, "one is idle");
        crew_deinit(&crew);
}

Test(scheduler, a_model_without_workers_has_none_that_are_full)
{
        struct crew crew;

        crew_init(&crew, 0);
        wait_for_worker(&crew, 0, 16);
        expect_full(&crew, false, "nobody is there to take it");
        crew_deinit(&crew);
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

                        while ((job = next_job(&r->crews[m], w)))
                                fprintf(r->file, "%u\tmodel %u\tworker %u\tclass %u\tpieces %u\tsamples %u\tfirst segment %u\n",
                                        step, m, w, job->priority, job->n_pieces, job_samples(job), job->pieces[0].segment);
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
        push(crew, (uint32_t)id, samples, priority, false);
}

static void log_decisions(FILE *file, uint32_t workers, bool takes_turns)
{
        struct log_run r = {.dice = 7 * workers + takes_turns, .file = file};

        crew_init(&r.crews[0], workers);
        crew_init(&r.crews[1], 1);
        r.crews[0].model->next_busy = r.crews[1].model;
        if (takes_turns)
                share_let(&r.crews[1], &r.crews[0]);
        for (uint32_t step = 0; step < LOG_STEPS; step++) {
                if (roll(&r, 2) && r.open < FIXTURE_SEGMENTS)
                        log_wait(&r);
                else
                        log_answer(&r);
                give_all(&r.crews[0]);
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

/* ---- what the dispatcher computes itself ---- */

/* One sample waits that is short enough, of a model that takes @ns for it. */
static void wait_inline(struct crew *crew, uint16_t tag, uint32_t priority, uint64_t ns)
{
        struct sl_request *request = fixture_request(crew->f, tag, 1);
        int id = sl_accumulator_open(crew->f->accumulator, &request->work, 0, 1);

        cr_assert_geq(id, 0);
        crew->model->inliner = &crew->inliner.common;
        sl_service_time_learn(&crew->model->service_time, 1, ns);
        push(crew, (uint32_t)id, 1, priority, true);
}

static void allow(struct crew *crew, uint64_t ns)
{
        crew->budget = (struct sl_inline_budget){.limit_ns = 20000, .left_ns = ns};
}

Test(scheduler, what_waits_for_a_model_without_workers_keeps_the_dispatcher_from_nothing)
{
        struct crew absent, other;

        crew_init(&absent, 0);
        crew_init(&other, 1);
        other.model->next_busy = absent.model;
        wait_with_priority(&absent, 0, 8, 0);
        wait_inline(&other, 0, 3, 1000);
        allow(&other, 50000);
        run(&other);
        cr_expect_eq(other.inliner.given, 1);
        crew_deinit(&absent);
        crew_deinit(&other);
}

Test(scheduler, what_is_short_enough_is_computed_by_the_dispatcher_itself_as_long_as_it_has_time)
{
        struct crew crew;

        crew_init(&crew, 1);
        for (uint16_t tag = 0; tag < 3; tag++)
                wait_inline(&crew, tag, 0, 1000);
        allow(&crew, SECOND_NS);
        cr_expect_eq(run(&crew), 1);
        cr_expect_eq(crew.budget.jobs, 1);
        cr_assert_eq(crew.inliner.given, 1);
        cr_expect_eq(crew.inliner.jobs[0]->n_pieces, 3, "they share a batch");
        cr_expect_eq(crew.workers[0].given, 0);
        crew_deinit(&crew);

        crew_init(&crew, 1);
        wait_inline(&crew, 0, 0, 1000);
        allow(&crew, 0);
        cr_expect_eq(run(&crew), 1);
        cr_expect_eq(crew.workers[0].given, 1, "without time it is a worker's");
        cr_expect_eq(crew.inliner.given, 0);
        crew_deinit(&crew);
}

Test(scheduler, the_dispatcher_computes_nothing_while_something_more_urgent_waits_for_a_worker)
{
        struct crew crew, busy;

        crew_init(&crew, 1);
        crew_init(&busy, 1);
        busy.model->next_busy = crew.model;
        for (uint16_t tag = 0; tag < 3; tag++)
                wait_with_priority(&busy, tag, 16, 0);
        wait_inline(&crew, 0, 1, 1000);
        allow(&busy, SECOND_NS);
        give_all(&busy);
        cr_expect_eq(crew.inliner.given, 0);
        cr_expect_eq(crew.workers[0].given, 1);
        busy.model->next_busy = NULL;
        crew_deinit(&crew);
        crew_deinit(&busy);
}

/* The budget suffices for the shorter one only. */
Test(scheduler, of_several_the_dispatcher_computes_the_shortest_first)
{
        struct crew longer, shorter;

        crew_init(&longer, 1);
        crew_init(&shorter, 1);
        longer.model->next_busy = shorter.model;
        wait_inline(&longer, 0, 0, SECOND_NS);
        wait_inline(&shorter, 0, 0, 1000);
        allow(&longer, SECOND_NS / 2);
        give_all(&longer);
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
        give_all(first);
}

static void end_pair(struct crew *first, struct crew *second)
{
        first->model->next_busy = NULL;
        crew_deinit(first);
        crew_deinit(second);
}

Test(scheduler, what_the_next_pass_has_done_before_a_thread_would_run_is_not_given_to_workers)
{
        struct crew first, second;

        leave_second(&first, &second, 45000, 40000);
        cr_expect_eq(first.inliner.given, 1);
        cr_expect_eq(second.inliner.given, 0);
        cr_expect_eq(second.workers[0].given, 0);
        cr_expect(first.budget.kept);
        allow(&first, SL_INLINE_PASS_NS);
        give_all(&first);
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
        run_at(crew, sl_clock_ns());
}

/* What is shorter comes again in each pass, and would take the other's turn for as long as it does. */
Test(scheduler, what_several_passes_have_kept_goes_before_what_is_shorter)
{
        struct crew first, second;

        leave_second(&first, &second, 40000, 30000);
        for (uint16_t pass = 1; pass < SL_INLINE_PASSES; pass++) {
                answer_inline(&first);
                wait_inline(&first, pass, 0, 1000);
                allow(&first, 30000);
                run(&first);
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
Test(scheduler, what_too_many_passes_have_kept_is_a_workers)
{
        struct crew crew;

        crew_init(&crew, 1);
        wait_inline(&crew, 0, 1, 45000);
        for (uint32_t pass = 0; pass <= SL_INLINE_PASSES; pass++) {
                allow(&crew, 40000);
                run(&crew);
                cr_assert(crew.budget.kept && !crew.workers[0].given, "pass %u", pass);
        }
        allow(&crew, 40000);
        run(&crew);
        cr_expect_eq(crew.inliner.given, 0);
        cr_expect_eq(crew.workers[0].given, 1);
        crew_deinit(&crew);
}

Test(scheduler, what_a_whole_pass_does_not_suffice_for_is_a_workers)
{
        struct crew crew;

        crew_init(&crew, 1);
        wait_inline(&crew, 0, 0, 60000);
        allow(&crew, 50000);
        give_all(&crew);
        cr_expect_eq(crew.inliner.given, 0);
        cr_expect_eq(crew.workers[0].given, 1);
        crew_deinit(&crew);
}

Test(scheduler, what_several_take_is_not_done_before_a_thread_would_run)
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
        give_all(&first);
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
Test(scheduler, what_takes_less_than_waking_all_of_its_workers_is_kept)
{
        struct crew crews[32];

        for (uint32_t i = 0; i < 32; i++) {
                crew_init(&crews[i], 1);
                wait_inline(&crews[i], 0, 0, 4000);
                if (i)
                        crews[i - 1].model->next_busy = crews[i].model;
        }
        allow(&crews[0], 4000);
        give_all(&crews[0]);
        cr_expect_eq(crews[0].inliner.given, 1);
        for (uint32_t i = 0; i < 32; i++)
                cr_expect_eq(crews[i].workers[0].given, 0, "model %u", i);
        for (uint32_t i = 0; i < 32; i++) {
                crews[i].model->next_busy = NULL;
                crew_deinit(&crews[i]);
        }
}

Test(scheduler, what_is_kept_in_one_class_keeps_nothing_of_another_from_workers)
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
        give_all(&urgent);
        cr_expect_eq(urgent.inliner.given, 1);
        cr_expect_eq(first.workers[0].given, 0);
        cr_expect_eq(second.workers[0].given, 1);
        urgent.model->next_busy = NULL;
        end_pair(&first, &second);
        crew_deinit(&urgent);
}

/* Who has an answer is told before another job of that length: here any job is as long. */
Test(scheduler, a_run_computes_no_longer_than_a_job_may_take)
{
        struct crew first, second;

        crew_init(&first, 1);
        crew_init(&second, 1);
        first.model->next_busy = second.model;
        wait_inline(&first, 0, 0, 1000);
        wait_inline(&second, 0, 0, 2000);
        first.budget = (struct sl_inline_budget){.limit_ns = 1, .left_ns = SECOND_NS};
        run_at(&first, sl_clock_ns());
        cr_expect_eq(first.inliner.given, 1);
        cr_expect_eq(second.inliner.given, 0);
        cr_expect_eq(second.workers[0].given, 0);
        cr_expect_gt(first.budget.left_ns, 0);
        run_at(&first, sl_clock_ns());
        cr_expect_eq(second.inliner.given, 1);
        end_pair(&first, &second);
}

/* A task that shares no job leaves what was gathered with it to the next decision of the round, which was made for other tasks. */
Test(scheduler, several_pieces_fit_a_batch_though_a_task_that_goes_alone_stood_before_them)
{
        struct crew crew;
        uint32_t samples[] = {1, 1, BATCH_MAX + 1, 1}, given = 0;

        crew_init(&crew, 2);
        for (uint16_t i = 0; i < 4; i++)
                wait_for_worker(&crew, i, samples[i]);
        sl_task_queue_at(&crew.model->scheduler.queues[0], 0)->reruns = 1;
        run(&crew);
        for (uint32_t w = 0; w < 2; w++)
                for (const struct sl_job *job; (job = next_job(&crew, w));) {
                        uint32_t of_job = 0;

                        for (uint32_t i = 0; i < job->n_pieces; i++)
                                of_job += job->pieces[i].samples;
                        cr_expect(job->n_pieces == 1 || of_job <= BATCH_MAX, "%u samples of %u pieces", of_job, job->n_pieces);
                        given += of_job;
                }
        cr_expect_gt(given, 2);
        crew_deinit(&crew);
}
