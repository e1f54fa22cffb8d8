/* SPDX-License-Identifier: Apache-2.0 */
#include "partial.h"

#include "accumulator.h"
#include "busy.h"
#include "cancel.h"
#include "channel.h"
#include "decision_log.h"
#include "dispatcher_state.h"
#include "harvest.h"
#include "meter.h"

#include <errno.h>

/* What of a segment wants another member, and the one that is asked. */
struct question {
        struct sl_dispatcher *dispatcher;
        struct sl_request *request;
        struct sl_model *model;
        struct sl_task task;
};

static void push(const struct question *q, uint32_t first, uint32_t samples)
{
        struct sl_task task = q->task;

        task.first = first;
        task.samples = samples;
        sl_scheduler_push(&q->model->scheduler, &task, q->request->priority);
}

/* Runs of samples that are open; the last place is behind the last of them. */
static uint32_t count_runs(const struct sl_staged_segment *staged, uint32_t *ret_first, uint32_t *ret_end, uint32_t *ret_samples)
{
        uint32_t n = 0, first, samples, all = 0, end = 0;

        for (uint32_t at = 0; sl_segment_next_open(staged, at, &first, &samples); at = end, n++) {
                *ret_first = n ? *ret_first : first;
                end = first + samples;
                all += samples;
        }
        *ret_end = end;
        *ret_samples = all;
        return n;
}

/* Where there is no room for so many runs, what lies between them is computed as well, and does not count. */
static void ask(struct question *q, const struct sl_staged_segment *staged)
{
        struct sl_accumulator *accumulator = q->dispatcher->options.accumulator;
        uint32_t first = 0, end, samples, runs = count_runs(staged, &first, &end, &samples);
        bool is_whole = runs > sl_scheduler_room(&q->model->scheduler, q->request->priority);

        q->task.member = sl_accumulator_ask(accumulator, q->task.segment, is_whole ? end - first : samples);
        if (is_whole) {
                push(q, first, end - first);
                return;
        }
        for (uint32_t at = first, n; sl_segment_next_open(staged, at, &first, &n); at = first + n)
                push(q, first, n);
}

static struct question ask_about(struct sl_dispatcher *d, struct sl_request *request, uint32_t id, uint32_t member)
{
        if (d->options.decisions) /* which know of no stages */
                d->options.decisions->has_changed = true;
        return (struct question){
                .dispatcher = d,
                .request = request,
                .model = request->ensemble->members[member],
                .task = {.segment = id,
                        .client = request->queue->channel->slot,
                        .is_inline = sl_accumulator_segment(d->options.accumulator, id)->is_inline,
                        .arrival_ns = request->taken_ns,
                        .deadline_ns = request->work.deadline_ns},
        };
}

static void ask_next(struct sl_dispatcher *d, struct sl_request *request, uint32_t id)
{
        const struct sl_staged_segment staged = sl_accumulator_staged(d->options.accumulator, id);
        struct question question = ask_about(d, request, id, sl_accumulator_segment(d->options.accumulator, id)->asked);

        ask(&question, &staged);
        sl_busy_add(&d->busy, question.model);
}

/* Samples of which members were not asked. */
static void count_skipped(const struct sl_request *request, const struct sl_segment *segment)
{
        uint64_t all = (uint64_t)segment->samples * request->ensemble->assembly.n_members;

        if (!request->late && !request->verdict)
                sl_meter_skipped(request, all - segment->predictions);
}

static bool ask_combiner(struct sl_dispatcher *d, struct sl_request *request, uint32_t id)
{
        const struct sl_segment *segment = sl_accumulator_segment(d->options.accumulator, id);
        uint32_t combiner = request->ensemble->assembly.n_members;
        struct question question = ask_about(d, request, id, combiner);

        if (segment->is_stacked || request->verdict)
                return false;
        sl_accumulator_stack(d->options.accumulator, id);
        question.task.member = combiner;
        push(&question, 0, segment->samples);
        sl_busy_add(&d->busy, question.model);
        return true;
}

bool sl_partial_goes_on(struct sl_dispatcher *d, struct sl_request *request, uint32_t id)
{
        struct sl_segment *segment = sl_accumulator_segment(d->options.accumulator, id);

        if (request->ensemble->assembly.is_stacked)
                return ask_combiner(d, request, id);
        if (segment->open && !request->verdict) {
                if (!request->late) {
                        ask_next(d, request, id);
                        return true;
                }
                sl_accumulator_end(d->options.accumulator, id);
        }
        if (segment->lacks && !request->verdict)
                sl_give_up(d, request, segment->lacks);
        request->members_any |= segment->used.any;
        request->members_lack |= ~segment->used.all;
        count_skipped(request, segment);
        return false;
}

static bool has_quorum(const struct sl_request *request)
{
        const struct sl_assembly *assembly = &request->ensemble->assembly;

        return assembly->is_partial && assembly->quorum < assembly->n_members;
}

bool sl_partial_bears(struct sl_dispatcher *d, struct sl_request *request, uint32_t samples, int status)
{
        if (!has_quorum(request) || request->verdict || status == -ECANCELED)
                return false;
        sl_meter_missed(request, samples);
        request->bore = true;
        if (status == -ETIME)
                return request->late || sl_partial_close(d, request);
        return true;
}

struct late {
        struct sl_dispatcher *dispatcher;
        struct sl_request *request;
};

static bool drop_late(void *context, const struct sl_task *task)
{
        const struct late *late = context;
        struct sl_accumulator *accumulator = late->dispatcher->options.accumulator;

        if (sl_request_of(sl_accumulator_segment(accumulator, task->segment)->work) != late->request)
                return false;
        sl_meter_missed(late->request, task->samples);
        sl_harvest_dropped(late->dispatcher, late->request, task, -ETIME);
        return true;
}

/* The request may be over when its last task is dropped. */
bool sl_partial_close(struct sl_dispatcher *d, struct sl_request *request)
{
        const struct sl_ensemble *ensemble = request->ensemble;
        struct late late = {.dispatcher = d, .request = request};

        if (!has_quorum(request) || request->verdict || request->state != SL_REQUEST_RUNNING)
                return false;
        if (request->late)
                return true;
        request->late = true;
        sl_accumulator_give_up(d->options.accumulator, &request->work, -ETIME);
        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++)
                (void)sl_scheduler_drop(&ensemble->members[m]->scheduler, drop_late, &late);
        return true;
}
