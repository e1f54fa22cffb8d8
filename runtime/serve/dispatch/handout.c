/* SPDX-License-Identifier: Apache-2.0 */
#include "handout.h"

#include "accumulator.h"
#include "assembly.h"
#include "base/assert.h"
#include "carrier.h"
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

#include <string.h>

_Static_assert(SL_POLICY_WORKERS_MAX >= SL_WORKERS_MAX, "a policy sees all workers of a model");
_Static_assert(SL_POLICY_TASKS_MAX == SL_JOB_PIECES_MAX, "what a policy gathers is a job");

/* Of a model in one run. */
#define DECISIONS_MAX (SL_POLICY_WORKERS_MAX + 1)

struct sl_handout sl_handout_of(const struct sl_schedule *schedule, struct sl_model *model, uint32_t priority)
{
        return (struct sl_handout){
                .schedule = schedule, .model = model, .queue = &model->scheduler.queues[priority], .priority = priority};
}

uint32_t sl_handout_waiting(const struct sl_handout *handout)
{
        return sl_task_queue_length(handout->queue);
}

static void note_assigned(const struct sl_segment *segment, const struct sl_executor *executor, uint64_t now_ns)
{
        struct sl_request *request = sl_request_of(segment->work);

        sl_record_given(request->record, executor->number, now_ns);
        if (!request->assigned_ns)
                request->assigned_ns = now_ns;
}

/* How much room there is for outputs that say only afterwards how large they are; and what the request says of inputs. */
static void note_capacities(struct sl_job *job, const struct sl_segment *segment, uint32_t member)
{
        const struct sl_assembly *assembly = segment->work->assembly;
        uint32_t piece = job->n_pieces;

        for (uint32_t i = 0; i < job->n_outputs && assembly->open_outputs && piece < SL_JOB_ALIKE_MAX; i++)
                sl_job_made(job, piece)[i] = segment->work->made[member * assembly->member_outputs + i];
        for (uint32_t i = 0; i < job->n_inputs && assembly->open_inputs && !piece; i++)
                sl_job_given(job)[i] = segment->work->given[i];
}

static void add_piece(
        struct sl_handout *handout, const struct sl_task *task, const struct sl_executor *executor, struct sl_job *job)
{
        struct sl_accumulator *accumulator = handout->schedule->accumulator;
        const struct sl_segment *segment = sl_accumulator_segment(accumulator, task->segment);
        struct sl_piece *piece = &job->pieces[job->n_pieces];

        note_capacities(job, segment, task->member);
        sl_accumulator_add_piece(accumulator, job, task->segment, task->member, task->first, task->samples);
        piece->reruns = task->reruns;
        piece->losses = task->losses;
        piece->rows = task->rows;
        piece->units = task->units;
        note_assigned(segment, executor, handout->schedule->now_ns);
}

/* Who may go along with a job. */
struct company {
        const struct sl_handout *handout;
        const struct sl_executor *executor;
        const struct sl_job *job;
};

/* What others of the job may make comes first. */
static bool has_room(const struct company *company, const struct sl_task *task)
{
        const struct sl_segment *segment = sl_accumulator_segment(company->handout->schedule->accumulator, task->segment);
        const struct sl_assembly *assembly = segment->work->assembly;
        const struct sl_made_output *made = &segment->work->made[task->member * assembly->member_outputs];
        uint64_t room_bytes = company->executor->room_bytes;
        const struct sl_job *job = company->job;

        for (uint32_t i = 0; i < job->n_outputs && assembly->open_outputs && room_bytes != UINT64_MAX; i++) {
                uint64_t taken = sl_job_room(job, job->n_pieces, i);

                if (taken > room_bytes || made[i].capacity_bytes > room_bytes - taken)
                        return false;
        }
        return true;
}

/* What two requests to a plan of any size say of their inputs, as a kind alone is no proof of it; and there is room for outputs. */
static bool goes_along(void *context, const struct sl_task *a, const struct sl_task *b)
{
        const struct company *company = context;
        const struct sl_handout *handout = company->handout;
        const struct sl_work *first = sl_accumulator_segment(handout->schedule->accumulator, a->segment)->work,
                             *second = sl_accumulator_segment(handout->schedule->accumulator, b->segment)->work;

        for (uint32_t i = 0; i < handout->model->info->n_inputs; i++) {
                const struct sl_made_output *x = &first->given[i], *y = &second->given[i];

                if (x->rank != y->rank ||
                        (x->rank > 1 && memcmp(&x->dims[1], &y->dims[1], (x->rank - 1) * sizeof(x->dims[0])) != 0))
                        return false;
        }
        return has_room(company, b);
}

/* Requests of the first one's size go along. */
static void gather_alike(struct sl_handout *handout, struct sl_taking *taking, const struct sl_task *first,
        const struct sl_executor *executor, struct sl_job *job)
{
        const struct sl_model *model = handout->model;
        bool is_inline = executor->class->is_immediate;
        struct company company = {.handout = handout, .executor = executor, .job = job};
        const struct sl_alike alike = {
                .rows_max = model->rows_max,
                .pieces_max = SL_JOB_ALIKE_MAX,
                .spared = handout->spared,
                .in_order = model->batching.in_order,
                .line = is_inline ? &model->gauge.line : &model->line,
                .now_ns = handout->schedule->now_ns,
                .ns_max = is_inline ? handout->schedule->budget->limit_ns : model->slice_ns,
                .goes_along = goes_along,
                .context = &company,
        };
        struct sl_task task;

        while (sl_taking_next_alike(taking, &alike, first, &task)) {
                add_piece(handout, &task, executor, job);
                if (handout->schedule->decisions) /* whose decisions know of no kinds */
                        handout->schedule->decisions->has_changed = true;
        }
}

/* Several pieces fit one batch (taking.h). */
static void fill(struct sl_handout *handout, uint32_t samples, const struct sl_executor *executor, struct sl_job *job)
{
        struct sl_taking taking;
        struct sl_task task, first = {0};

        job->priority = handout->priority;
        sl_taking_begin(&taking, handout->queue, samples, executor->batch_max);
        taking.alone = sl_plan_info_is_alone(handout->model->info);
        while (sl_taking_next(&taking, &task)) {
                if (!job->n_pieces)
                        first = task;
                add_piece(handout, &task, executor, job);
        }
        if (first.kind)
                gather_alike(handout, &taking, &first, executor, job);
        handout->model->samples_given += taking.taken;
        SL_PROBE(job_given, handout->model->name, executor->class->name, job->pieces[0].segment, job->n_pieces, taking.taken);
}

/* A job that rests, or that gives way, takes a place and no time; who has no place left is not idle. */
static struct sl_policy_worker own_worker_shown(const struct sl_executor *worker)
{
        uint32_t yielding = worker->class->gives_way ? worker->n_background : 0;
        uint32_t jobs = sl_executor_computing(worker) - yielding, left = worker->jobs_max - sl_executor_jobs(worker);

        return (struct sl_policy_worker){.batch_max = worker->batch_max, .jobs = jobs || left ? jobs : 1, .jobs_max = jobs + left};
}

static struct sl_policy_worker worker_shown(const struct sl_executor *worker)
{
        const struct sl_carrier *carrier = worker->carrier;

        if (carrier)
                return (struct sl_policy_worker){.batch_max = worker->batch_max,
                        .jobs = sl_carrier_jobs(carrier, worker),
                        .jobs_max = sl_carrier_jobs_max(carrier)};
        return own_worker_shown(worker);
}

/* In the background it has one job, and none behind another one, so that there is always room for what is more urgent. */
static struct sl_policy_worker background_worker_shown(const struct sl_executor *worker)
{
        struct sl_policy_worker shown = worker_shown(worker);

        shown.jobs += worker->class->gives_way ? worker->n_background : 0;
        shown.jobs_max = shown.jobs ? shown.jobs : 1;
        return shown;
}

static void look(const struct sl_handout *handout, struct sl_look *ret_look, struct sl_policy_view *ret_view)
{
        const struct sl_model *model = handout->model;

        sl_look_begin(ret_look, ret_view, model->scheduler.queues, handout->priority, handout->schedule->run);
        ret_view->batchable = model->info->batchable;
        ret_view->service_time = &model->service_time;
        ret_view->slice_samples = model->slice_samples;
        ret_view->batching = &model->batching;
        ret_view->batching_state = &model->batching_state;
        ret_view->samples_given = model->samples_given;
        for (uint32_t i = 0; i < model->workers.n; i++) {
                const struct sl_executor *worker = model->workers.list[i];
                const struct sl_policy_worker shown =
                        handout->priority == SL_BACKGROUND ? background_worker_shown(worker) : worker_shown(worker);

                sl_look_at(ret_look, &shown, &worker->let->turns);
        }
}

static uint64_t expected_ns_of(const struct sl_model *model, const struct sl_job *job, uint32_t samples)
{
        uint64_t units = 0, ns;

        for (uint32_t i = 0; i < job->n_pieces; i++)
                units += job->pieces[i].units;
        ns = units ? sl_size_line_ns(&model->line, units) : 0;
        return ns ? ns : sl_service_time_ns(&model->service_time, samples);
}

/* For any thread of the let that is awake (execute/ready_queue.h). */
static bool is_light(const struct sl_handout *handout, const struct sl_executor *worker, const struct sl_job *job, uint32_t samples)
{
        uint64_t expected_ns = expected_ns_of(handout->model, job, samples);

        return sl_turns_are_shared(&worker->let->turns) && expected_ns && expected_ns <= SL_LIGHT_NS;
}

/* A job takes its place on the let, until its last answer. */
void sl_handout_take_turn(struct sl_let *let, uint32_t priority, uint32_t cores)
{
        sl_let_turn(let, priority, cores);
        if (let->stats)
                sl_counter_add(&let->stats->turns, 1);
}

void sl_handout_give(struct sl_handout *handout, struct sl_executor *executor, uint32_t samples)
{
        struct sl_job *job = sl_executor_job(executor);

        SL_ASSERT(samples > 0 && job);
        handout->model->passed_over = 0;
        fill(handout, samples, executor, job);
        job->is_light = executor->let && handout->priority < SL_BACKGROUND && is_light(handout, executor, job, samples);
        sl_executor_give(executor, handout->schedule->from);
}

static void give(struct sl_handout *handout, const struct sl_decision *decision)
{
        struct sl_executor *worker = handout->model->workers.list[decision->worker];
        uint32_t samples = decision->samples < worker->samples_max ? decision->samples : worker->samples_max;

        if (handout->priority == SL_BACKGROUND && handout->model->background_samples &&
                samples > handout->model->background_samples)
                samples = handout->model->background_samples;
        sl_handout_give(handout, worker, samples);
        if (worker->carrier)
                worker->carrier->filled_ns += sl_service_time_ns(&handout->model->service_time, samples);
        else
                sl_handout_take_turn(worker->let, handout->priority, worker->cores);
}

static void write_decision(const struct sl_handout *handout, const struct sl_decision *decision)
{
        struct sl_decision_log *log = handout->schedule->decisions;

        if (log)
                sl_decision_log_decide(log, &(struct sl_logged){.kind = SL_LOGGED_DECISION,
                                                    .of = sl_decision_log_find_model(log, handout->model),
                                                    .worker = decision->worker,
                                                    .samples = decision->samples,
                                                    .extra = decision->padding,
                                                    .priority = handout->priority});
}

uint32_t sl_handout_run(struct sl_handout *handout)
{
        struct sl_decision decisions[DECISIONS_MAX];
        struct sl_policy_view view;
        struct sl_look shown;
        uint64_t next_ns;
        uint32_t n;

        if (!sl_handout_waiting(handout) || !handout->model->workers.n)
                return 0;
        look(handout, &shown, &view);
        n = handout->model->policy(&view, handout->schedule->now_ns, decisions, DECISIONS_MAX, &next_ns);
        for (uint32_t i = 0; i < n; i++) {
                handout->spared = n - 1 - i;
                write_decision(handout, &decisions[i]);
                give(handout, &decisions[i]);
        }
        if (next_ns < *handout->schedule->ret_next_ns)
                *handout->schedule->ret_next_ns = next_ns;
        *handout->schedule->ret_full |= handout->priority < SL_BACKGROUND && sl_look_lacks_workers(&shown, decisions, n);
        sl_look_end(&shown);
        return n;
}

bool sl_handout_is_inline(const struct sl_handout *handout)
{
        return sl_handout_waiting(handout) && sl_task_queue_at(handout->queue, 0)->is_inline;
}
