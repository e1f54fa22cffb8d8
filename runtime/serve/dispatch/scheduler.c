/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler.h"

#include "accumulator.h"
#include "assembly.h"
#include "base/assert.h"
#include "base/clock.h"
#include "decision_log.h"
#include "executor.h"
#include "job.h"
#include "let.h"
#include "look.h"
#include "model.h"
#include "policy.h"
#include "probe.h"
#include "recorder.h"
#include "request.h"
#include "stats.h"
#include "taking.h"
#include "turns.h"

_Static_assert(SL_POLICY_WORKERS_MAX >= SL_WORKERS_MAX, "a policy sees all workers of a model");
_Static_assert(SL_POLICY_TASKS_MAX == SL_JOB_PIECES_MAX, "what a policy gathers is a job");

/* Of a model in one run. */
#define DECISIONS_MAX (SL_POLICY_WORKERS_MAX + 1)

/* About what it takes until a thread runs that slept: behind a job that is expected to take no longer another one may wait. */
#define LIGHT_NS (100 * SL_NS_PER_US)

int sl_scheduler_init(struct sl_scheduler *scheduler, uint32_t segments)
{
        *scheduler = (struct sl_scheduler){0};
        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                int r = sl_task_queue_init(&scheduler->queues[i], 2 * segments); /* pieces that come back are tasks of their own */

                if (r < 0) {
                        sl_scheduler_deinit(scheduler);
                        return r;
                }
        }
        return 0;
}

void sl_scheduler_deinit(struct sl_scheduler *scheduler)
{
        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                sl_task_queue_deinit(&scheduler->queues[i]);
}

void sl_scheduler_push(struct sl_scheduler *scheduler, const struct sl_task *task, uint32_t priority)
{
        sl_task_queue_push(&scheduler->queues[priority], task);
}

bool sl_scheduler_return(struct sl_scheduler *scheduler, const struct sl_task *task, uint32_t priority)
{
        return sl_task_queue_return(&scheduler->queues[priority], task);
}

bool sl_scheduler_waits(const struct sl_scheduler *scheduler)
{
        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                if (sl_task_queue_length(&scheduler->queues[i]))
                        return true;
        return false;
}

uint32_t sl_scheduler_drop(struct sl_scheduler *scheduler, bool (*ends)(void *context, const struct sl_task *task), void *context)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                n += sl_task_queue_drop(&scheduler->queues[i], ends, context);
        return n;
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
        return sl_task_queue_length(round->queue);
}

static void note_assigned(const struct sl_segment *segment, const struct sl_executor *executor, uint64_t now_ns)
{
        struct sl_request *request = sl_request_of(segment->work);

        sl_record_given(request->record, executor->number, now_ns);
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

/* Several pieces fit one batch (taking.h). */
static void fill_job(struct round *round, uint32_t samples, const struct sl_executor *executor, struct sl_job *job)
{
        struct sl_accumulator *accumulator = round->schedule->accumulator;
        struct sl_taking taking;
        struct sl_task task;

        job->priority = round->priority;
        sl_taking_begin(&taking, round->queue, samples, executor->batch_max);
        while (sl_taking_next(&taking, &task)) {
                const struct sl_segment *segment = sl_accumulator_segment(accumulator, task.segment);

                note_capacities(job, segment, task.member);
                sl_accumulator_add_piece(accumulator, job, task.segment, task.member, task.first, task.samples);
                job->pieces[job->n_pieces - 1].reruns = task.reruns;
                job->pieces[job->n_pieces - 1].losses = task.losses;
                note_assigned(segment, executor, round->schedule->now_ns);
        }
        round->model->samples_given += taking.taken;
        SL_PROBE(job_given, round->model->name, executor->class->name, job->pieces[0].segment, job->n_pieces, taking.taken);
}

static void look(const struct round *round, struct sl_look *ret_look, struct sl_policy_view *ret_view)
{
        const struct sl_model *model = round->model;

        sl_look_begin(ret_look, ret_view, model->scheduler.queues, round->priority, round->schedule->run);
        ret_view->batchable = model->info->batchable;
        ret_view->service_time = &model->service_time;
        ret_view->slice_samples = model->slice_samples;
        ret_view->batching = &model->batching;
        ret_view->batching_state = &model->batching_state;
        ret_view->samples_given = model->samples_given;
        for (uint32_t i = 0; i < model->workers.n; i++)
                sl_look_at(ret_look,
                        &(struct sl_policy_worker){.batch_max = model->workers.list[i]->batch_max,
                                .jobs = sl_executor_jobs(model->workers.list[i]),
                                .jobs_max = SL_EXECUTOR_JOBS_MAX},
                        &model->workers.list[i]->let->turns);
}

/* For any thread of the let that is awake (execute/ready_queue.h). */
static bool is_light(const struct round *round, const struct sl_executor *worker, uint32_t samples)
{
        uint64_t expected_ns = sl_service_time_ns(&round->model->service_time, samples);

        return sl_turns_are_shared(&worker->let->turns) && expected_ns && expected_ns <= LIGHT_NS;
}

static void give(struct round *round, const struct sl_decision *decision)
{
        struct sl_executor *worker = round->model->workers.list[decision->worker];
        struct sl_job *job = sl_executor_job(worker);
        uint32_t samples = decision->samples < worker->samples_max ? decision->samples : worker->samples_max;

        SL_ASSERT(samples > 0 && job);
        fill_job(round, samples, worker, job);
        job->is_light = is_light(round, worker, samples);
        sl_executor_give(worker, round->schedule->from);
        worker->let->turns.running[round->priority] += worker->cores;
        if (worker->let->stats)
                sl_counter_add(&worker->let->stats->turns, 1);
}

static void write_decision(const struct round *round, const struct sl_decision *decision)
{
        struct sl_decision_log *log = round->schedule->decisions;

        if (log)
                sl_decision_log_decide(log, &(struct sl_logged){.kind = SL_LOGGED_DECISION,
                                                    .of = sl_decision_log_find_model(log, round->model),
                                                    .worker = decision->worker,
                                                    .samples = decision->samples,
                                                    .extra = decision->padding,
                                                    .priority = round->priority});
}

static uint32_t run_model(struct round *round)
{
        struct sl_decision decisions[DECISIONS_MAX];
        struct sl_policy_view view;
        struct sl_look shown;
        uint64_t next_ns;
        uint32_t n;

        if (!waiting(round) || !round->model->workers.n)
                return 0;
        look(round, &shown, &view);
        n = round->model->policy(&view, round->schedule->now_ns, decisions, DECISIONS_MAX, &next_ns);
        for (uint32_t i = 0; i < n; i++) {
                write_decision(round, &decisions[i]);
                give(round, &decisions[i]);
        }
        if (next_ns < *round->schedule->ret_next_ns)
                *round->schedule->ret_next_ns = next_ns;
        sl_look_end(&shown);
        return n;
}

static bool head_is_inline(const struct round *round)
{
        return waiting(round) && sl_task_queue_at(round->queue, 0)->is_inline;
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
        if (!head_is_inline(round) || sl_executor_jobs(round->model->inliner))
                return UINT64_MAX;
        return sl_service_time_ns(&round->model->service_time, sl_task_queue_at(round->queue, 0)->samples);
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

/* Whole tasks that are gathered for the dispatcher itself: as many samples as fit its limit. */
static uint32_t inline_samples(const struct round *round)
{
        const struct sl_model *model = round->model;
        uint32_t most = sl_service_time_samples(&model->service_time, round->schedule->budget->limit_ns, model->inliner->batch_max),
                 samples = sl_task_queue_at(round->queue, 0)->samples;

        for (uint32_t i = 1; model->info->batchable && i < waiting(round); i++) {
                const struct sl_task *task = sl_task_queue_at(round->queue, i);

                if (!task->is_inline || samples + task->samples > most)
                        break;
                samples += task->samples;
        }
        return samples;
}

static void compute(const struct sl_schedule *schedule, struct sl_model *model, uint32_t priority)
{
        struct round round = round_of(schedule, model, priority);
        struct sl_inline_budget *budget = schedule->budget;
        uint64_t begun_ns = budget->now_ns, away_ns;

        fill_job(&round, inline_samples(&round), model->inliner, sl_executor_job(model->inliner));
        sl_executor_give(model->inliner, schedule->from);
        budget->now_ns = sl_clock_ns();
        away_ns = budget->now_ns - begun_ns;
        budget->left_ns -= away_ns < budget->left_ns ? away_ns : budget->left_ns;
        budget->jobs++;
}

/* There is no time for the next one. What a whole pass would not suffice for is the workers' after all. */
static void end_budget(struct sl_inline_budget *budget)
{
        budget->kept = budget->keeps && budget->left_ns < SL_INLINE_PASS_NS;
        budget->left_ns = 0;
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
                        end_budget(schedule->budget);
                        return jobs;
                }
                compute(schedule, model, priority);
                jobs++;
        }
        return jobs;
}

/* Where there is no worker nothing can be done for what waits: it holds up nobody. */
static bool class_waits(const struct sl_model *models, uint32_t priority)
{
        for (; models; models = models->next)
                if (models->workers.n && sl_task_queue_length(&models->scheduler.queues[priority]))
                        return true;
        return false;
}

/* Workers first, so that they compute meanwhile. What the dispatcher has no time for, or should not take time for, they get as
 * well. */
static uint32_t run_class(const struct sl_schedule *schedule, uint32_t priority, bool more_urgent_waits)
{
        const struct sl_inline_budget *budget = schedule->budget;
        bool computes = budget->left_ns > 0 && !more_urgent_waits;
        uint32_t jobs = run_workers(schedule, priority, computes || budget->kept);

        if (!computes)
                return jobs;
        jobs += run_inline(schedule, priority);
        if (budget->left_ns == 0 && !budget->kept)
                jobs += run_workers(schedule, priority, false);
        return jobs;
}

/* Most requests are of one class: what nobody waits in costs no walk over the models. */
static void find_classes(const struct sl_model *models, bool ret_waits[SL_PRIORITIES])
{
        for (; models; models = models->next)
                for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                        ret_waits[i] |= sl_task_queue_length(&models->scheduler.queues[i]) > 0;
}

uint32_t sl_scheduler_run(const struct sl_schedule *schedule)
{
        bool waits[SL_PRIORITIES] = {false}, urgent = false;
        uint32_t jobs = 0;

        schedule->budget->jobs = 0;
        schedule->budget->now_ns = schedule->now_ns;
        *schedule->ret_next_ns = UINT64_MAX;
        find_classes(schedule->models, waits);
        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                if (!waits[i])
                        continue;
                jobs += run_class(schedule, i, urgent);
                urgent |= class_waits(schedule->models, i);
        }
        return jobs;
}
