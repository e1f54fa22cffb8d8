/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler.h"

#include "accumulator.h"
#include "assembly.h"
#include "base/assert.h"
#include "base/clock.h"
#include "executor.h"
#include "job.h"
#include "model.h"
#include "request.h"
#include "turns.h"

#include <errno.h>
#include <stdlib.h>

int sl_scheduler_init(struct sl_scheduler *scheduler, uint32_t segments)
{
        uint32_t slots = 1;

        while (slots < segments)
                slots <<= 1;
        *scheduler = (struct sl_scheduler){.mask = slots - 1};
        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                scheduler->queues[i].tasks = calloc(slots, sizeof(struct sl_task));
                if (!scheduler->queues[i].tasks) {
                        sl_scheduler_deinit(scheduler);
                        return -ENOMEM;
                }
        }
        return 0;
}

void sl_scheduler_deinit(struct sl_scheduler *scheduler)
{
        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                free(scheduler->queues[i].tasks);
                scheduler->queues[i].tasks = NULL;
        }
}

void sl_scheduler_push(struct sl_scheduler *scheduler, const struct sl_task *task, uint32_t priority)
{
        struct sl_task_queue *queue = &scheduler->queues[priority];

        SL_ASSERT(queue->tail - queue->head <= scheduler->mask);
        queue->tasks[queue->tail++ & scheduler->mask] = *task;
}

bool sl_scheduler_waits(const struct sl_scheduler *scheduler)
{
        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                if (scheduler->queues[i].head != scheduler->queues[i].tail)
                        return true;
        return false;
}

/* What jobs are made of: who is to compute, for which class, and when. */
struct round {
        const struct sl_schedule *schedule;
        struct sl_model *model;
        struct sl_task_queue *queue; /* of the class */
        uint32_t priority;
};

static uint32_t waiting(const struct round *round)
{
        return round->queue->tail - round->queue->head;
}

static struct sl_segment *waiting_segment(const struct round *round, uint32_t index, struct sl_task *ret_task)
{
        *ret_task = round->queue->tasks[index & round->model->scheduler.mask];
        return sl_accumulator_segment(round->schedule->accumulator, ret_task->segment);
}

static uint32_t count_idle(const struct sl_model *model)
{
        uint32_t idle = 0;

        for (uint32_t i = 0; i < model->n_workers; i++)
                idle += sl_executor_jobs(model->workers[i]) == 0;
        return idle;
}

/* Samples up to which segments are gathered: one batch, and no longer than a slice. */
static uint32_t gathered_max(const struct sl_model *model)
{
        uint32_t batch_max = model->workers[0]->batch_max;

        return batch_max < model->slice_samples ? batch_max : model->slice_samples;
}

static void note_assigned(const struct sl_segment *segment, uint64_t now_ns)
{
        struct sl_request *request = sl_request_of(segment->work);

        if (!request->assigned_ns)
                request->assigned_ns = now_ns;
}

/* How much room there is for outputs that say only afterwards how large they are. */
static void note_capacities(struct sl_job *job, const struct sl_segment *segment, uint32_t member)
{
        const struct sl_assembly *assembly = segment->work->assembly;

        for (uint32_t i = 0; i < job->n_outputs && assembly->open_outputs; i++)
                job->made[i] = segment->work->made[member * assembly->member_outputs + i];
}

/*
 * Fills a job from the queue: the first segment whatever its size, more as long as all are at most @samples_max and no idle worker
 * goes without. Models without a batch take one segment at a time.
 */
static void fill_job(struct round *round, uint32_t share, uint32_t samples_max, struct sl_job *job)
{
        uint32_t most = round->model->info->batchable ? share : 1;
        uint32_t samples = 0;

        job->priority = round->priority;
        while (waiting(round) && job->n_pieces < most && job->n_pieces < SL_JOB_PIECES_MAX) {
                struct sl_task task;
                struct sl_segment *segment = waiting_segment(round, round->queue->head, &task);

                if (job->n_pieces && samples + segment->samples > samples_max)
                        break;
                samples += segment->samples;
                round->queue->head++;
                note_capacities(job, segment, task.member);
                sl_accumulator_add_piece(round->schedule->accumulator, job, task.segment, task.member, 0, segment->samples);
                note_assigned(segment, round->schedule->now_ns);
        }
}

static bool may_start(const struct round *round)
{
        return !round->model->takes_turns || sl_turns_allow(round->schedule->turns, round->priority);
}

static void give(struct round *round, struct sl_executor *worker, uint32_t share)
{
        fill_job(round, share, gathered_max(round->model), sl_executor_job(worker));
        sl_executor_give(worker, round->schedule->from);
        if (round->model->takes_turns)
                round->schedule->turns->running[round->priority]++;
}

/* Enough waits to fill a job: what comes later could not have been gathered with it. */
static bool job_waits(const struct round *round)
{
        uint32_t samples = 0;

        for (uint32_t i = round->queue->head; i != round->queue->tail; i++) {
                struct sl_task task;

                samples += waiting_segment(round, i, &task)->samples;
                if (samples >= gathered_max(round->model))
                        return true;
        }
        return false;
}

static bool more_urgent_waits(const struct round *round)
{
        for (uint32_t i = 0; i < round->priority; i++)
                if (round->model->scheduler.queues[i].head != round->model->scheduler.queues[i].tail)
                        return true;
        return false;
}

/*
 * An only worker gets its next job while it computes, so that it need not wait for the dispatcher. Of several workers each gets
 * work when it is idle: which of them will be idle first is not known before. Nothing is given ahead of what is more urgent and
 * waits for the worker to be idle because it does not fill a job.
 */
static uint32_t give_ahead(struct round *round)
{
        struct sl_executor *worker = round->model->workers[0];

        if (round->model->n_workers != 1 || sl_executor_jobs(worker) == SL_EXECUTOR_JOBS_MAX || more_urgent_waits(round) ||
                !job_waits(round) || !may_start(round))
                return 0;
        give(round, worker, UINT32_MAX);
        return 1;
}

static uint32_t give_to_idle(struct round *round)
{
        struct sl_model *model = round->model;
        uint32_t idle = count_idle(model), jobs = 0;

        for (uint32_t i = 0; i < model->n_workers && idle && waiting(round) && may_start(round); i++) {
                if (sl_executor_jobs(model->workers[i]))
                        continue;
                give(round, model->workers[i], (waiting(round) + idle - 1) / idle);
                idle--;
                jobs++;
        }
        return jobs;
}

static bool head_is_inline(const struct round *round)
{
        return waiting(round) && round->queue->tasks[round->queue->head & round->model->scheduler.mask].is_inline;
}

static uint32_t run_model(struct round *round)
{
        uint32_t jobs;

        if (!waiting(round))
                return 0;
        jobs = give_to_idle(round);
        jobs += give_ahead(round);
        if (round->model->takes_turns)
                round->schedule->turns->waiting[round->priority] |= waiting(round) > 0;
        return jobs;
}

static struct round round_of(const struct sl_schedule *schedule, struct sl_model *model, uint32_t priority)
{
        return (struct round){
                .schedule = schedule, .model = model, .queue = &model->scheduler.queues[priority], .priority = priority};
}

/* @spares_inline: what the dispatcher may compute itself is left to it. */
static uint32_t run_workers(const struct sl_schedule *schedule, uint32_t priority, bool spares_inline)
{
        uint32_t jobs = 0;

        for (struct sl_model *model = schedule->models; model; model = model->next) {
                struct round round = round_of(schedule, model, priority);

                if (!spares_inline || !head_is_inline(&round))
                        jobs += run_model(&round);
        }
        return jobs;
}

/* What the first segment that waits for the dispatcher itself is expected to take; UINT64_MAX: there is none, or it has a job. */
static uint64_t inline_ns(const struct round *round)
{
        struct sl_task task;

        if (!head_is_inline(round) || sl_executor_jobs(round->model->inliner))
                return UINT64_MAX;
        return sl_service_time_ns(&round->model->service_time, waiting_segment(round, round->queue->head, &task)->samples);
}

static struct sl_model *shortest_inline(const struct sl_schedule *schedule, uint32_t priority, uint64_t *ret_ns)
{
        struct sl_model *shortest = NULL;

        *ret_ns = UINT64_MAX;
        for (struct sl_model *model = schedule->models; model; model = model->next) {
                struct round round = round_of(schedule, model, priority);
                uint64_t ns = inline_ns(&round);

                if (ns < *ret_ns) {
                        *ret_ns = ns;
                        shortest = model;
                }
        }
        return shortest;
}

/* Samples that are gathered for the dispatcher itself. */
static uint32_t inline_max(const struct sl_schedule *schedule, const struct sl_model *model)
{
        return sl_service_time_samples(&model->service_time, schedule->budget->limit_ns, model->inliner->batch_max);
}

static void compute(const struct sl_schedule *schedule, struct sl_model *model, uint32_t priority)
{
        struct round round = round_of(schedule, model, priority);
        struct sl_inline_budget *budget = schedule->budget;
        uint64_t begun_ns = budget->now_ns, away_ns;

        fill_job(&round, UINT32_MAX, inline_max(schedule, model), sl_executor_job(model->inliner));
        sl_executor_give(model->inliner, schedule->from);
        budget->now_ns = sl_clock_ns();
        away_ns = budget->now_ns - begun_ns;
        budget->left_ns -= away_ns < budget->left_ns ? away_ns : budget->left_ns;
        budget->jobs++;
}

/* One job of each model at most: its answers have to be harvested before the next. */
static uint32_t run_inline(const struct sl_schedule *schedule, uint32_t priority)
{
        uint32_t jobs = 0;

        while (schedule->budget->left_ns) {
                uint64_t expected_ns;
                struct sl_model *model = shortest_inline(schedule, priority, &expected_ns);

                if (!model)
                        return jobs;
                if (expected_ns > schedule->budget->left_ns) {
                        schedule->budget->left_ns = 0;
                        return jobs;
                }
                compute(schedule, model, priority);
                jobs++;
        }
        return jobs;
}

static bool class_waits(const struct sl_model *models, uint32_t priority)
{
        for (; models; models = models->next)
                if (models->scheduler.queues[priority].head != models->scheduler.queues[priority].tail)
                        return true;
        return false;
}

/* Workers first, so that they compute meanwhile. What the dispatcher has no time for, or should not take time for, they get as
 * well. */
static uint32_t run_class(const struct sl_schedule *schedule, uint32_t priority, bool more_urgent_waits)
{
        bool computes = schedule->budget->left_ns > 0 && !more_urgent_waits;
        uint32_t jobs = run_workers(schedule, priority, computes);

        if (!computes)
                return jobs;
        jobs += run_inline(schedule, priority);
        if (schedule->budget->left_ns == 0)
                jobs += run_workers(schedule, priority, false);
        return jobs;
}

/* Most requests are of one class: what nobody waits in costs no walk over the models. */
static void find_classes(const struct sl_model *models, bool ret_waits[SL_PRIORITIES])
{
        for (; models; models = models->next)
                for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                        ret_waits[i] |= models->scheduler.queues[i].head != models->scheduler.queues[i].tail;
}

uint32_t sl_scheduler_run(const struct sl_schedule *schedule)
{
        bool waits[SL_PRIORITIES] = {false}, urgent = false;
        uint32_t jobs = 0;

        schedule->budget->jobs = 0;
        schedule->budget->now_ns = schedule->now_ns;
        find_classes(schedule->models, waits);
        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                schedule->turns->waiting[i] = false;
                if (!waits[i])
                        continue;
                jobs += run_class(schedule, i, urgent);
                urgent |= class_waits(schedule->models, i);
        }
        return jobs;
}
