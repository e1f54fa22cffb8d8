#include "fixture.h"
#include "worker.h"

#include <criterion/criterion.h>
#include <string.h>

#define INPUTS    4u
#define CLASSES   10u
#define BATCH_MAX 8u

/* Workers without a thread: their jobs stay in the inbox. */
struct crew {
        struct fixture *f;
        struct sl_model *model;
        struct sl_worker workers[2], *list[2];
};

static void crew_init(struct crew *crew, uint32_t n_workers)
{
        memset(crew, 0, sizeof(*crew));
        crew->f = fixture_new(1, SL_RULE_NONE, INPUTS, CLASSES, 16);
        crew->model = &crew->f->models[0];
        for (uint32_t i = 0; i < n_workers; i++) {
                crew->list[i] = &crew->workers[i];
                crew->workers[i].batch_max = BATCH_MAX;
                cr_assert_eq(sl_mailbox_new(SL_WORKER_JOBS_MAX + 1, sizeof(struct sl_job), &crew->workers[i].inbox), 0);
        }
        crew->model->workers = crew->list;
        crew->model->n_workers = n_workers;
}

static void crew_deinit(struct crew *crew)
{
        for (uint32_t i = 0; i < crew->model->n_workers; i++)
                sl_mailbox_free(crew->workers[i].inbox);
        fixture_free(crew->f);
}

/* One segment of @samples waits for the model. */
static void wait_for_worker(struct crew *crew, uint16_t tag, uint32_t samples)
{
        struct sl_request *request = fixture_request(crew->f, tag, samples);
        int id = sl_accumulator_open(crew->f->accumulator, request, 0);

        cr_assert_geq(id, 0);
        sl_scheduler_push(&crew->model->scheduler, (uint32_t)id, 0);
}

static void give_all(struct crew *crew)
{
        sl_scheduler_run(crew->model, crew->f->accumulator, NULL, 1);
}

static uint32_t job_samples(struct crew *crew, const struct sl_job *job)
{
        uint32_t samples = 0;

        for (uint32_t i = 0; i < job->n_segments; i++)
                samples += sl_accumulator_segment(crew->f->accumulator, job->items[i].segment)->samples;
        return samples;
}

Test(scheduler, segments_that_wait_share_a_job_as_far_as_they_fit_one_batch_together)
{
        static const struct {
                uint32_t samples[4], n_segments[4]; /* what waits; what each job takes of it */
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
                struct sl_job job;

                crew_init(&crew, 1);
                for (uint16_t i = 0; i < 4 && rows[row].samples[i]; i++)
                        wait_for_worker(&crew, i, rows[row].samples[i]);
                for (uint32_t i = 0; i < 4 && rows[row].n_segments[i]; i++) {
                        give_all(&crew);
                        cr_assert(sl_mailbox_take(crew.workers[0].inbox, &job), "row %zu, job %u", row, i);
                        cr_expect_eq(job.n_segments, rows[row].n_segments[i], "row %zu, job %u: %u segments", row, i, job.n_segments);
                        cr_expect(job.n_segments == 1 || job_samples(&crew, &job) <= BATCH_MAX, "row %zu, job %u", row, i);
                        while (crew.workers[0].outstanding[0])
                                sl_worker_answered(&crew.workers[0]);
                }
                crew_deinit(&crew);
        }
}

Test(scheduler, no_idle_worker_goes_without_while_another_gets_several)
{
        struct crew crew;
        struct sl_job jobs[2];

        crew_init(&crew, 2);
        for (uint16_t i = 0; i < 3; i++)
                wait_for_worker(&crew, i, 1);
        give_all(&crew);
        cr_assert(sl_mailbox_take(crew.workers[0].inbox, &jobs[0]));
        cr_assert(sl_mailbox_take(crew.workers[1].inbox, &jobs[1]));
        cr_expect_eq(jobs[0].n_segments, 2);
        cr_expect_eq(jobs[1].n_segments, 1);
        crew_deinit(&crew);
}

Test(scheduler, a_model_without_a_batch_gets_one_segment_at_a_time)
{
        struct crew crew;
        struct sl_job job;

        crew_init(&crew, 1);
        crew.f->info.batchable = 0;
        for (uint16_t i = 0; i < 2; i++)
                wait_for_worker(&crew, i, 1);
        give_all(&crew);
        cr_assert(sl_mailbox_take(crew.workers[0].inbox, &job));
        cr_expect_eq(job.n_segments, 1);
        crew_deinit(&crew);
}
