/* SPDX-License-Identifier: Apache-2.0 */
#include "meter.h"

#include "dispatcher_state.h"

#include <errno.h>

void sl_meter_taken(struct sl_dispatcher *d, struct sl_queue *queue, uint32_t n)
{
        sl_counter_add(&d->stats->requests, n);
        sl_counter_add(&queue->channel->stats->requests, n);
}

enum sl_refusal sl_meter_cause(int status)
{
        switch (-status) {
        case EFAULT:
                return SL_REFUSAL_RANGE;
        case EMSGSIZE:
                return SL_REFUSAL_CAPACITY;
        case E2BIG:
                return SL_REFUSAL_SAMPLES;
        case ETIME:
                return SL_REFUSAL_DEADLINE;
        case EBUSY:
                return SL_REFUSAL_QUEUE_FULL;
        case EDQUOT:
                return SL_REFUSAL_QUOTA;
        case ESTALE:
                return SL_REFUSAL_GENERATION;
        case ENOENT:
                return SL_REFUSAL_MODEL;
        case ENOMEM:
                return SL_REFUSAL_MEMORY;
        case ECANCELED:
                return SL_REFUSAL_STOPPING;
        case EPROTO:
                return SL_REFUSAL_PROTOCOL;
        default:
                return SL_REFUSAL_SHAPE;
        }
}

void sl_meter_refused(struct sl_dispatcher *d, struct sl_queue *queue, const struct sl_ensemble *ensemble, enum sl_refusal cause)
{
        sl_counter_add(&d->stats->refusals[cause], 1);
        sl_counter_add(&queue->channel->stats->refused, 1);
        if (ensemble && (cause == SL_REFUSAL_QUEUE_FULL || cause == SL_REFUSAL_SHARE || cause == SL_REFUSAL_TOO_LATE))
                sl_model_count(&ensemble->counting, refused, 1);
}

void sl_meter_taken_back(struct sl_dispatcher *d)
{
        sl_counter_add(&d->stats->refusals[SL_REFUSAL_SHARE], 1);
}

void sl_meter_accepted(const struct sl_request *request)
{
        const struct sl_channel *channel = request->queue->channel;

        sl_counter_set(&channel->stats->in_flight, channel->in_flight);
        sl_model_count(&request->ensemble->counting, requests, 1);
        sl_model_count(&request->ensemble->counting, samples, request->samples);
        sl_counter_add(&channel->stats->samples, request->samples);
}

void sl_meter_published(struct sl_dispatcher *d, struct sl_queue *queue, uint32_t n)
{
        sl_counter_add(&d->stats->completions, n);
        sl_counter_add(&queue->channel->stats->completions, n);
}

void sl_meter_prediction(const struct sl_request *request, const struct sl_prediction *prediction)
{
        const struct sl_model_counting *counting = &request->ensemble->counting;
        uint64_t combining = prediction->combined_ns > prediction->staged_ns ? prediction->combined_ns - prediction->staged_ns : 0;

        sl_model_count(counting, batches, prediction->batches);
        sl_model_count(counting, batch_samples, prediction->samples);
        sl_model_count(counting, worker_busy_ns, prediction->busy_ns);
        sl_model_count(counting, compute_ns, prediction->computing_ns);
        sl_model_count(counting, overhead_ns, prediction->busy_ns - prediction->computing_ns + combining);
}

static void record_piece(struct sl_histogram_set *set, enum sl_stage stage, uint64_t from, uint64_t to)
{
        if (from && to >= from)
                sl_histogram_record(&set->stages[stage], to - from);
}

void sl_meter_piece(struct sl_histogram_set *set, const struct sl_request *request, const struct sl_prediction *prediction)
{
        if (prediction->status < 0 || !prediction->started_ns)
                return;
        record_piece(
                set, SL_STAGE_TOTAL, request->taken_ns, prediction->combined_ns ? prediction->combined_ns : prediction->staged_ns);
        record_piece(set, SL_STAGE_QUEUED, request->taken_ns, request->assigned_ns);
        record_piece(set, SL_STAGE_BATCHED, request->assigned_ns, prediction->started_ns);
        record_piece(set, SL_STAGE_COMPUTING, prediction->started_ns, prediction->staged_ns);
        record_piece(set, SL_STAGE_COMBINING, prediction->staged_ns, prediction->combined_ns);
}

void sl_meter_let(struct sl_let_stats *let, const struct sl_prediction *prediction, uint32_t priority)
{
        if (!prediction->busy_ns)
                return;
        sl_counter_add(&let->busy_ns, prediction->busy_ns);
        sl_counter_add(&let->samples, prediction->job_samples);
        if (priority == SL_BACKGROUND)
                sl_counter_add(&let->background_ns, prediction->busy_ns);
}

void sl_meter_lost(const struct sl_request *request)
{
        sl_model_count(&request->ensemble->counting, lost, 1);
}

void sl_meter_skipped(const struct sl_request *request, uint64_t predictions)
{
        if (predictions)
                sl_model_count(&request->ensemble->counting, skipped, predictions);
}

void sl_meter_missed(const struct sl_request *request, uint64_t predictions)
{
        sl_model_count(&request->ensemble->counting, missed, predictions);
}

static void count_end(const struct sl_model_counting *counting, int status)
{
        switch (-status) {
        case 0:
                sl_model_count(counting, completed, 1);
                break;
        case ETIME:
                sl_model_count(counting, expired, 1);
                break;
        case ECANCELED:
        case EPIPE:
                sl_model_count(counting, cancelled, 1);
                break;
        case EBUSY:
        case EDQUOT:
                sl_model_count(counting, refused, 1);
                break;
        default:
                sl_model_count(counting, failed, 1);
        }
}

static void record(const struct sl_model_counting *counting, enum sl_stage stage, uint64_t from, uint64_t to)
{
        if (from && to >= from)
                sl_model_record(counting, stage, to - from);
}

void sl_meter_moved(const struct sl_request *request)
{
        count_end(&request->ensemble->counting, request->verdict);
}

void sl_meter_ended(const struct sl_request *request, int status, uint64_t now_ns)
{
        const struct sl_model_counting *counting = &request->ensemble->counting;
        const struct sl_channel *channel = request->queue->channel;

        sl_counter_set(&channel->stats->in_flight, channel->in_flight);
        count_end(counting, status);
        if (status < 0) {
                sl_counter_add(&channel->stats->failed, 1);
                return;
        }
        if (request->priority == SL_BACKGROUND) /* latencies are those of who waits */
                return;
        record(counting, SL_STAGE_TOTAL, request->taken_ns, now_ns);
        record(counting, SL_STAGE_QUEUED, request->taken_ns, request->assigned_ns);
        record(counting, SL_STAGE_BATCHED, request->assigned_ns, request->started_ns);
        record(counting, SL_STAGE_COMPUTING, request->started_ns, request->staged_ns);
        record(counting, SL_STAGE_COMBINING, request->staged_ns, request->combined_ns);
}
