/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatcher_state.h"

#include "accumulator.h"
#include "meter.h"
#include "worker.h"

#include <errno.h>

static uint64_t earlier(uint64_t a, uint64_t b)
{
        return !a || (b && b < a) ? b : a;
}

static uint64_t later(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static void finish_segment(struct sl_dispatcher *d, struct sl_request *request, uint32_t id, uint32_t samples)
{
        struct sl_queue *queue = request->queue;
        int32_t verdict = atomic_load_explicit(&request->work.verdict, memory_order_relaxed);

        request->ensemble->samples_out -= samples;
        sl_accumulator_close(d->options.accumulator, id);
        request->finished += samples;
        if (request->finished < (verdict ? request->broadcast : request->samples))
                return;
        sl_complete(d, request, verdict);
        sl_completions_publish(d, queue);
}

/* Jobs that ended early say nothing about how long they would have taken. */
static void learn_service_time(struct sl_model *model, const struct sl_prediction *message)
{
        if (message->status < 0 || !message->job_samples)
                return;
        sl_model_learn(model, message->job_samples, message->busy_ns);
        model->jobs += model->jobs < SL_JOBS_KNOWN;
}

static void end_job(struct sl_dispatcher *d, const struct sl_model *model, uint32_t priority)
{
        if (model->takes_turns)
                d->turns.running[priority]--;
}

static void receive(struct sl_dispatcher *d, struct sl_model *model, struct sl_worker *worker, const struct sl_prediction *message)
{
        uint32_t id = (uint32_t)message->segment;
        struct sl_segment *segment = sl_accumulator_segment(d->options.accumulator, id);
        struct sl_request *request = sl_request_of(segment->work);

        uint32_t priority = worker->jobs[0].priority;

        if (sl_worker_answered(worker))
                end_job(d, model, priority);
        learn_service_time(model, message);
        sl_meter_prediction(request, message);
        request->started_ns = earlier(request->started_ns, message->started_ns);
        request->staged_ns = later(request->staged_ns, message->staged_ns);
        request->combined_ns = later(request->combined_ns, message->combined_ns);
        if (message->status < 0)
                sl_give_up(d, request, message->status);
        if (--segment->messages_left == 0)
                finish_segment(d, request, id, segment->samples);
}

static uint32_t harvest_model(struct sl_dispatcher *d, struct sl_model *model)
{
        struct sl_prediction message;
        uint32_t n = 0;

        for (uint32_t i = 0; i < model->n_workers; i++)
                while (sl_mailbox_take(model->workers[i]->outbox, &message)) {
                        receive(d, model, model->workers[i], &message);
                        n++;
                }
        return n;
}

uint32_t sl_harvest(struct sl_dispatcher *d)
{
        uint32_t n = 0;

        for (struct sl_model *model = d->models; model; model = model->next)
                n += harvest_model(d, model);
        return n;
}
