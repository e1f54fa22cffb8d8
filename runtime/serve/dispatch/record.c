/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include "dispatcher_state.h"
#include "executor.h"

void sl_record_begin(struct sl_dispatcher *d, struct sl_request *request, enum sl_flight_stage stage)
{
        const struct sl_channel *channel = request->queue->channel;

        if (request->record) {
                sl_record_model(request->record, request->ensemble->counting.number);
                sl_record_stage(request->record, stage, sl_pass_now(&d->pass));
                return;
        }
        request->record = sl_recorder_take(&d->recorder, &(struct sl_flight_record){
                                                                 .client = channel->id,
                                                                 .uid = channel->uid,
                                                                 .pid = (uint32_t)channel->pid,
                                                                 .model = request->ensemble->counting.number,
                                                                 .queue = (uint16_t)request->queue->number,
                                                                 .priority = request->priority,
                                                                 .stage = (uint32_t)stage,
                                                                 .samples = request->samples,
                                                                 .index = request->index,
                                                                 .taken_ns = request->taken_ns,
                                                                 .since_ns = request->taken_ns,
                                                         });
}

static void trace_piece(struct sl_dispatcher *d, const struct sl_request *request, const struct sl_executor *worker,
        const struct sl_prediction *prediction)
{
        sl_recorder_span(&d->recorder, &(struct sl_trace_span){
                                               .request = request->record->slot.used,
                                               .client = request->record->client,
                                               .worker = worker->number ? worker->number - 1u : SL_STATS_NONE,
                                               .samples = prediction->samples,
                                               .begun_ns = prediction->started_ns,
                                               .ended_ns = prediction->staged_ns,
                                               .combined_ns = prediction->combined_ns,
                                       });
}

void sl_record_piece(struct sl_dispatcher *d, const struct sl_request *request, const struct sl_executor *worker,
        const struct sl_prediction *prediction)
{
        if (!request->record)
                return;
        sl_record_answered(request->record, worker->number, request->started_ns, request->staged_ns, request->combined_ns);
        if (request->record->sampled && prediction->started_ns && worker->number)
                trace_piece(d, request, worker, prediction);
}

void sl_record_end(struct sl_dispatcher *d, struct sl_request *request, int32_t status)
{
        struct sl_flight_record *record = request->record;

        request->queue->waking.traced = record && record->sampled ? record->slot.used : 0;
        sl_recorder_end(&d->recorder, record, status, sl_pass_now(&d->pass));
        request->record = NULL;
}

void sl_record_woken(struct sl_dispatcher *d, const struct sl_queue *queue, uint64_t awake_ns)
{
        if (!queue->waking.woken_traced)
                return;
        sl_recorder_span(&d->recorder, &(struct sl_trace_span){
                                               .request = queue->waking.woken_traced,
                                               .client = queue->channel->id,
                                               .worker = SL_STATS_NONE,
                                               .samples = queue->number,
                                               .begun_ns = queue->waking.since_ns,
                                               .ended_ns = awake_ns,
                                       });
}

void sl_record_worker(const struct sl_dispatcher *d, struct sl_executor *worker)
{
        uint32_t number = sl_stats_number(d->options.stats, SL_STATS_WORKERS, worker->stats);

        worker->number = number < SL_FLIGHT_SEVERAL - 1 ? (uint16_t)(number + 1) : SL_FLIGHT_SEVERAL;
}
