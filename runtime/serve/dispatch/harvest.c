/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest.h"

#include "accumulator.h"
#include "cancel.h"
#include "completion.h"
#include "conditions.h"
#include "decisions.h"
#include "dispatcher_state.h"
#include "executor.h"
#include "intake.h"
#include "let.h"
#include "meter.h"
#include "partial.h"
#include "probe.h"
#include "record.h"

#include <errno.h>

/* Processes that may die with a piece. */
#define LOSSES_MAX 3u

static uint64_t earlier(uint64_t a, uint64_t b)
{
        return !a || (b && b < a) ? b : a;
}

static uint64_t later(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static struct sl_request *request_of(const struct sl_dispatcher *d, const struct sl_piece *piece)
{
        return sl_request_of(sl_accumulator_segment(d->options.accumulator, piece->segment)->work);
}

static void finish_segment(struct sl_dispatcher *d, struct sl_request *request, uint32_t id, uint32_t samples)
{
        struct sl_queue *queue = request->queue;
        int32_t verdict = request->verdict;

        request->ensemble->broadcasts.samples_out -= samples;
        if (request->priority == SL_BACKGROUND)
                request->ensemble->broadcasts.background_out -= samples;
        sl_accumulator_close(d->options.accumulator, id);
        request->finished += samples;
        if (request->finished < (verdict ? request->broadcast : request->samples))
                return;
        if (verdict && request->any_size && sl_intake_own_size(d, request))
                return;
        sl_complete(d, request, verdict);
        sl_completions_publish(d, queue);
}

/* Of a whole job, as long as none of its pieces was given up before. */
static uint64_t units_of(const struct sl_job *job, const struct sl_prediction *prediction)
{
        uint64_t units = 0;

        for (uint32_t i = 0; i < job->n_pieces && prediction->job_samples == job->n_pieces; i++)
                units += job->pieces[i].units;
        return units;
}

static void learn_size(struct sl_model *model, const struct sl_executor *worker, uint64_t units, uint64_t ns)
{
        if (worker->class->is_immediate) {
                sl_inline_learn_size(&model->gauge, units, ns);
                return;
        }
        sl_size_line_learn(&model->line, units, ns);
        sl_inline_learn_size_elsewhere(&model->gauge, units, ns);
}

/* Jobs that ended early say nothing about how long they would have taken. */
static void learn_service_time(struct sl_dispatcher *d, struct sl_model *model, struct sl_executor *worker,
        const struct sl_job *job, const struct sl_prediction *prediction)
{
        uint64_t units;

        if (prediction->status < 0 || !prediction->job_samples)
                return;
        units = units_of(job, prediction);
        if (units)
                learn_size(model, worker, units, prediction->busy_ns);
        sl_model_learn(model, prediction->job_samples, prediction->busy_ns);
        sl_conditions_learn(d, model, worker, prediction);
        sl_batching_learn(
                &model->batching_state, &model->batching, prediction->job_samples, worker->batch_max, prediction->busy_ns);
        if (model->inliner && prediction->job_samples <= model->inliner->batch_max)
                (worker->class->is_immediate ? sl_inline_learn : sl_inline_learn_elsewhere)(
                        &model->gauge, prediction->job_samples, prediction->busy_ns, d->options.inline_ns);
        model->jobs += model->jobs < SL_JOBS_KNOWN;
}

/* What a piece took, for whoever it was computed by. */
static void count_piece(struct sl_model *model, const struct sl_executor *worker, const struct sl_request *request,
        const struct sl_piece *piece, const struct sl_prediction *prediction)
{
        model->samples_given -= piece->samples;
        if (worker->let && worker->let->stats)
                sl_meter_let(worker->let->stats, prediction, request->priority);
        if (worker->histograms && prediction->lost != SL_LOST_LONG && prediction->lost != SL_LOST_YIELDED)
                sl_meter_piece(worker->histograms, request, prediction);
}

/* Of a carrier, with the last of its launch. */
static void end_job(const struct sl_executor *worker, uint32_t priority)
{
        if (worker->carrier && !sl_carrier_answered(worker->carrier, &priority))
                return;
        if (worker->let)
                sl_let_turn(worker->let, priority, -worker->cores);
}

/* Of an output that says only afterwards how large it is. */
static void keep_made(struct sl_request *request, const struct sl_job *job, uint32_t number)
{
        const struct sl_assembly *assembly = request->work.assembly;
        const struct sl_piece *piece = &job->pieces[number];

        if (!assembly->open_outputs || number >= SL_JOB_ALIKE_MAX)
                return;
        for (uint32_t i = 0; i < job->n_outputs; i++)
                request->work.made[piece->member * assembly->member_outputs + i] = sl_job_made(job, number)[i];
}

static void count_answered(struct sl_dispatcher *d, struct sl_request *request, uint32_t id, uint32_t samples)
{
        struct sl_segment *segment = sl_accumulator_segment(d->options.accumulator, id);

        segment->unanswered -= samples;
        if (segment->unanswered)
                return;
        if (!sl_partial_has_stages(request->work.assembly) || !sl_partial_goes_on(d, request, id))
                finish_segment(d, request, id, segment->samples);
}

static void hear(
        struct sl_dispatcher *d, const struct sl_executor *worker, const struct sl_job *job, const struct sl_prediction *prediction)
{
        const struct sl_piece *piece = &job->pieces[prediction->piece];
        struct sl_request *request = request_of(d, piece);

        SL_PROBE(piece_answered, request->queue->channel->id, request->queue->number, request->index, request->ensemble->name,
                piece->samples, prediction->status);
        sl_meter_prediction(request, prediction);
        request->started_ns = earlier(request->started_ns, prediction->started_ns);
        request->staged_ns = later(request->staged_ns, prediction->staged_ns);
        request->combined_ns = later(request->combined_ns, prediction->combined_ns);
        sl_record_piece(d, request, worker, prediction);
        keep_made(request, job, prediction->piece);
        if (prediction->explained)
                sl_fault_tell(request->fault, job->faults[prediction->piece].text);
        if (prediction->status < 0 && !sl_partial_bears(d, request, piece->samples, prediction->status))
                sl_give_up(d, request, prediction->status);
        count_answered(d, request, piece->segment, piece->samples);
}

/* It waits again, where it was in the order of arrival; not for the dispatcher itself. */
static bool return_piece(
        struct sl_model *model, const struct sl_request *request, const struct sl_piece *piece, uint32_t losses, bool reruns)
{
        return sl_scheduler_return(&model->scheduler,
                &(struct sl_task){
                        .segment = piece->segment,
                        .member = piece->member,
                        .first = piece->first,
                        .samples = piece->samples,
                        .client = request->queue->channel->slot,
                        .losses = (uint8_t)losses,
                        .reruns = reruns,
                        .units = piece->units,
                        .arrival_ns = request->taken_ns,
                        .deadline_ns = piece->deadline_ns,
                },
                request->priority);
}

/*
 * Its process is gone. What it had not begun, as it says, goes to another; what it had is run again once, where the configuration
 * says so. What has been lost several times fails, whatever was said, and so does what was combined there, if a part of that is
 * lost.
 */
static bool goes_again(struct sl_dispatcher *d, struct sl_model *model, const struct sl_job *job, const struct sl_prediction *lost)
{
        const struct sl_piece *piece = &job->pieces[lost->piece];
        const struct sl_request *request = request_of(d, piece);
        const struct sl_segment *segment = sl_accumulator_segment(d->options.accumulator, piece->segment);
        bool computing = lost->lost == SL_LOST_COMPUTING;

        if (atomic_load_explicit(&segment->unstaged, memory_order_relaxed))
                return false;
        if (request->verdict || piece->losses + 1 >= LOSSES_MAX || (computing && (!model->reruns || piece->reruns)))
                return false;
        return return_piece(model, request, piece, piece->losses + 1, piece->reruns || computing);
}

/* The dispatcher itself has given it up, or it has given way: nothing has died with it, and a worker computes all of it. */
static bool moves_to_worker(
        struct sl_dispatcher *d, struct sl_model *model, const struct sl_job *job, const struct sl_prediction *given_up)
{
        const struct sl_piece *piece = &job->pieces[given_up->piece];
        const struct sl_request *request = request_of(d, piece);

        return !request->verdict && return_piece(model, request, piece, piece->losses, piece->reruns);
}

static void receive_lost(struct sl_dispatcher *d, struct sl_model *model, const struct sl_executor *worker,
        const struct sl_job *job, const struct sl_prediction *prediction)
{
        const struct sl_piece *piece = &job->pieces[prediction->piece];

        bool is_alive = prediction->lost == SL_LOST_LONG || prediction->lost == SL_LOST_YIELDED;

        if (prediction->lost == SL_LOST_LONG && prediction->busy_ns)
                sl_inline_overran(&model->gauge, prediction->busy_ns, d->options.inline_ns);
        if (!is_alive)
                sl_meter_lost(request_of(d, piece));
        if (is_alive ? moves_to_worker(d, model, job, prediction) : goes_again(d, model, job, prediction)) {
                sl_record_piece(d, request_of(d, piece), worker, prediction);
                return;
        }
        request_of(d, piece)->any_size = false; /* what its process has ended with is not tried with another plan */
        sl_accumulator_deliver(d->options.accumulator, piece->segment, piece->samples, prediction->status);
        hear(d, worker, job, prediction);
}

/* Where others come so often that a job never ends between them, a shorter one does. */
static void learn_background(struct sl_model *model, const struct sl_job *job, const struct sl_prediction *prediction)
{
        uint32_t samples = 0;

        if (prediction->lost == SL_LOST_YIELDED) {
                for (uint32_t i = 0; i < job->n_pieces; i++)
                        samples += job->pieces[i].samples;
                model->background_samples = (samples + 1) / 2;
        } else if (model->background_samples && prediction->job_samples >= model->background_samples) {
                model->background_samples = prediction->job_samples < SL_SLICE_SAMPLES_MAX / 2 ? 2 * prediction->job_samples : 0;
        }
}

static void receive_answer(struct sl_dispatcher *d, struct sl_model *model, struct sl_executor *worker, const struct sl_job *job,
        const struct sl_prediction *prediction)
{
        const struct sl_piece *piece = &job->pieces[prediction->piece];
        uint32_t priority = job->priority;

        if (priority == SL_BACKGROUND)
                learn_background(model, job, prediction);
        sl_decisions_answer(d, model, worker, prediction);
        count_piece(model, worker, request_of(d, piece), piece, prediction);
        if (prediction->lost) {
                receive_lost(d, model, worker, job, prediction);
        } else {
                learn_service_time(d, model, worker, job, prediction);
                hear(d, worker, job, prediction);
        }
        if (sl_executor_answered(worker, prediction->slot, prediction->piece))
                end_job(worker, priority);
}

static uint32_t harvest_worker(struct sl_dispatcher *d, struct sl_model *model, struct sl_executor *worker)
{
        struct sl_prediction prediction;
        struct sl_job *job;
        uint32_t n = 0;

        for (; sl_executor_poll(worker, &job, &prediction); n++)
                receive_answer(d, model, worker, job, &prediction);
        return n;
}

static uint32_t harvest_carrier(struct sl_dispatcher *d, struct sl_carrier *carrier)
{
        struct sl_prediction prediction;
        struct sl_executor *lane;
        struct sl_job *job;
        uint32_t n = 0;

        for (; sl_carrier_poll(carrier, &lane, &job, &prediction); n++) {
                d->unsettled |= lane->model->workers.n_leaving > 0;
                receive_answer(d, lane->model, lane, job, &prediction);
        }
        return n;
}

static uint32_t harvest_bundle(struct sl_dispatcher *d, const struct sl_bundle *bundle)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < bundle->n_carriers; i++)
                n += harvest_carrier(d, bundle->carriers[i]);
        return n;
}

static uint32_t harvest_model(struct sl_dispatcher *d, struct sl_model *model)
{
        uint32_t n = 0;
        bool ended = false;

        if (model->bundle)
                return 0;
        for (uint32_t i = 0; i < sl_workers_all(&model->workers); i++) {
                n += harvest_worker(d, model, model->workers.list[i]);
                ended |= model->workers.list[i]->ended;
        }
        if (ended)
                sl_workers_dismiss_ended(&model->workers);
        d->unsettled |= model->workers.n_leaving > 0;
        return n;
}

/* What waits for a model without a worker. */
struct deserted {
        struct sl_dispatcher *dispatcher;
        const struct sl_model *model;
};

static void end_if_down(const struct deserted *deserted, struct sl_request *request)
{
        const char *why = sl_fault_text(&deserted->model->down);

        if (request->verdict || !why)
                return;
        sl_fault_tell(request->fault, why);
        sl_give_up(deserted->dispatcher, request, -EIO);
}

void sl_harvest_dropped(struct sl_dispatcher *d, struct sl_request *request, const struct sl_task *task, int status)
{
        sl_accumulator_deliver(d->options.accumulator, task->segment, task->samples, status);
        count_answered(d, request, task->segment, task->samples);
}

static bool end_deserted(void *context, const struct sl_task *task)
{
        const struct deserted *deserted = context;
        struct sl_dispatcher *d = deserted->dispatcher;
        struct sl_request *request = sl_request_of(sl_accumulator_segment(d->options.accumulator, task->segment)->work);

        if (sl_fault_text(&deserted->model->down) && sl_partial_bears(d, request, task->samples, -EIO)) {
                sl_harvest_dropped(d, request, task, -EIO);
                return true;
        }
        end_if_down(deserted, request);
        if (!request->verdict)
                return false;
        sl_harvest_dropped(d, request, task, request->verdict);
        return true;
}

/* Where there is no worker to find out that a request has been given up, or will come soon, its segments are answered here. */
static uint32_t harvest_queues(struct sl_dispatcher *d, struct sl_model *model)
{
        struct deserted deserted = {.dispatcher = d, .model = model};

        return model->workers.n ? 0 : sl_scheduler_drop(&model->scheduler, end_deserted, &deserted);
}

uint32_t sl_harvest(struct sl_dispatcher *d)
{
        uint32_t n = 0;

        for (struct sl_model *model = d->busy.first, *next; model; model = next) {
                n += harvest_model(d, model) + harvest_queues(d, model);
                next = model->next_busy;
                if (sl_model_is_idle(model))
                        sl_busy_remove(&d->busy, model);
        }
        for (const struct sl_bundle *bundle = d->bundles; bundle; bundle = bundle->next)
                n += harvest_bundle(d, bundle);
        return n;
}

void sl_harvest_new(struct sl_dispatcher *d)
{
        d->busy.has_new = false;
        for (struct sl_model *model = d->busy.first; model; model = model->next_busy) {
                if (model->is_new)
                        (void)harvest_model(d, model);
                model->is_new = false;
        }
}

void sl_harvest_inline(struct sl_dispatcher *d)
{
        for (struct sl_model *model = d->busy.first; model; model = model->next_busy)
                if (model->inliner && sl_executor_jobs(model->inliner))
                        harvest_worker(d, model, model->inliner);
}
