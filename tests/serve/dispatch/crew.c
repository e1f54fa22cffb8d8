/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        struct idle *idle = (struct idle *)executor;
        struct sl_job *copy = malloc(sl_job_bytes(1, 1));

        (void)from;
        memcpy(copy, executor->slots[slot].job, sl_job_bytes(1, 1));
        idle->jobs[idle->given++] = copy;
}

static const struct sl_executor_class idle_class = {.name = "idle", .give = give};

static void idle_init(struct idle *idle)
{
        idle->memory = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(1, 1));
        sl_executor_init(&idle->common, idle->memory, SL_EXECUTOR_JOBS_MAX, 1, 1);
        idle->common.class = &idle_class;
        idle->common.batch_max = CREW_BATCH_MAX;
}

static void idle_deinit(struct idle *idle)
{
        for (uint32_t i = 0; i < idle->given; i++)
                free((void *)idle->jobs[i]);
        free(idle->memory);
}

void crew_share_let(struct crew *crew, struct crew *with)
{
        crew->let = &with->own_let;
        for (uint32_t i = 0; i < 2; i++)
                crew->workers[i].common.let = crew->let;
        crew->let->turns.for_one = false;
}

void crew_init(struct crew *crew, uint32_t n_workers)
{
        memset(crew, 0, sizeof(*crew));
        crew->f = fixture_new(1, SL_RULE_NONE, CREW_INPUTS, CREW_CLASSES, 16);
        crew->model = &crew->f->models[0];
        for (uint32_t i = 0; i < n_workers; i++) {
                idle_init(&crew->workers[i]);
                crew->list[i] = &crew->workers[i].common;
        }
        idle_init(&crew->inliner);
        crew->model->workers = (struct sl_workers){.n = n_workers, .list = {crew->list[0], crew->list[1]}};
        crew->own_let = (struct sl_let){.turns.at_once = 1};
        crew_share_let(crew, crew);
        crew->let->turns.for_one = true;
}

void crew_deinit(struct crew *crew)
{
        for (uint32_t i = 0; i < crew->model->workers.n; i++)
                idle_deinit(&crew->workers[i]);
        idle_deinit(&crew->inliner);
        fixture_free(crew->f);
}

const struct sl_job *crew_next_job(struct crew *crew, uint32_t worker)
{
        struct idle *idle = &crew->workers[worker];

        return idle->taken < idle->given ? idle->jobs[idle->taken++] : NULL;
}

void crew_end_job(struct crew *crew)
{
        struct sl_executor *worker = crew->list[0];
        uint32_t n = worker->slots[worker->oldest].job->n_pieces, priority = worker->slots[worker->oldest].job->priority;

        for (uint32_t piece = 0; piece < n; piece++)
                cr_assert_eq(sl_executor_answered(worker, worker->oldest, piece), piece == n - 1);
        sl_let_turn(crew->let, priority, -worker->cores);
}

void crew_push(struct crew *crew, uint32_t id, uint32_t samples, uint32_t priority, bool is_inline)
{
        sl_scheduler_push(
                &crew->model->scheduler, &(struct sl_task){.segment = id, .samples = samples, .is_inline = is_inline}, priority);
}

void crew_wait_with_priority(struct crew *crew, uint16_t tag, uint32_t samples, uint32_t priority)
{
        struct sl_request *request = fixture_request(crew->f, tag, samples);
        int id = sl_accumulator_open(crew->f->accumulator, &request->work, 0, samples);

        cr_assert_geq(id, 0);
        crew_push(crew, (uint32_t)id, samples, priority, false);
}

void crew_wait(struct crew *crew, uint16_t tag, uint32_t samples)
{
        crew_wait_with_priority(crew, tag, samples, 0);
}

uint32_t crew_run_at(struct crew *crew, uint64_t now_ns)
{
        return sl_scheduler_run(&(struct sl_schedule){.models = crew->model,
                .run = ++crew->run,
                .budget = &crew->budget,
                .accumulator = crew->f->accumulator,
                .now_ns = now_ns,
                .ret_next_ns = &crew->next_ns,
                .ret_full = &crew->full});
}

uint32_t crew_run(struct crew *crew)
{
        return crew_run_at(crew, 1);
}

void crew_give_all(struct crew *crew)
{
        crew_run(crew);
}

uint32_t crew_job_samples(const struct sl_job *job)
{
        uint32_t samples = 0;

        for (uint32_t i = 0; i < job->n_pieces; i++)
                samples += job->pieces[i].samples;
        return samples;
}

int crew_next_tag(struct crew *crew)
{
        const struct sl_job *job = crew_next_job(crew, 0);

        if (!job)
                return -1;
        return sl_request_of(sl_accumulator_segment(crew->f->accumulator, job->pieces[0].segment)->work)->tag;
}
