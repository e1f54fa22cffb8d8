/* SPDX-License-Identifier: Apache-2.0 */
#include "broadcaster.h"

#include "accumulator.h"
#include "base/assert.h"
#include "broadcast_window.h"
#include "busy.h"
#include "channel.h"
#include "ensemble.h"
#include "executor.h"
#include "model.h"
#include "places.h"
#include "probe.h"
#include "recorder.h"

static struct sl_broadcast_members members_of(const struct sl_ensemble *ensemble)
{
        struct sl_broadcast_members members = sl_broadcast_members_none();

        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++)
                sl_broadcast_members_add(&members, ensemble->members[m]->slice_samples, ensemble->members[m]->workers.n);
        return members;
}

void sl_broadcaster_enqueue(struct sl_ensemble *ensemble, struct sl_request *request)
{
        request->state = SL_REQUEST_WAITING;
        request->turn = (struct sl_fair_item){
                .client = request->queue->channel->slot, .priority = request->priority, .samples = request->samples};
        sl_broadcast_queue_push(&ensemble->broadcasts, &request->turn);
        sl_arrivals_add(&ensemble->arrivals, request);
}

uint64_t sl_broadcaster_ahead(const struct sl_ensemble *ensemble, uint32_t client, uint32_t priority)
{
        const struct sl_broadcast_queue *broadcasts = &ensemble->broadcasts;
        const struct sl_broadcast_members members = members_of(ensemble);
        uint32_t quantum = sl_broadcast_segment_samples(&members, ensemble->segment_samples);

        return broadcasts->samples_out - (priority < SL_BACKGROUND ? broadcasts->background_out : 0) +
               sl_fair_ahead(broadcasts->waiting, client, priority, quantum);
}

static void stop_waiting(struct sl_request *request)
{
        sl_arrivals_remove(&request->ensemble->arrivals, request);
        request->state = SL_REQUEST_RUNNING;
}

void sl_broadcaster_withdraw(struct sl_request *request)
{
        sl_broadcast_queue_remove(&request->ensemble->broadcasts, &request->turn);
        stop_waiting(request);
}

/* 1 + the GPU in whose process all workers of all members are; 0: they are not, or nothing is combined. */
static uint32_t gpu_of(const struct sl_ensemble *ensemble)
{
        const struct sl_workers *first = &ensemble->members[0]->workers;
        uint32_t gpu = first->n && !ensemble->assembly.direct && !ensemble->assembly.on_host ? first->list[0]->gpu : 0;

        for (uint32_t m = 0; m < ensemble->assembly.n_members && gpu; m++) {
                const struct sl_workers *workers = &ensemble->members[m]->workers;

                if (!workers->n)
                        return 0;
                for (uint32_t i = 0; i < workers->n; i++)
                        if (workers->list[i]->gpu != gpu)
                                return 0;
        }
        return gpu;
}

/* Its id goes to every member, or to those that are asked first. */
static void send_segment(const struct sl_broadcast *broadcast, const struct sl_request *request, uint32_t segment, uint32_t samples)
{
        const struct sl_inline_limit *limit = &broadcast->limit;
        struct sl_ensemble *ensemble = request->ensemble;
        uint32_t n_members = ensemble->assembly.is_partial ? ensemble->assembly.n_first : ensemble->assembly.n_members;
        struct sl_task task = {
                .segment = segment,
                .samples = samples,
                .client = request->turn.client,
                .is_inline =
                        request->priority < SL_BACKGROUND &&
                        sl_inline_wants(ensemble, samples, request->units,
                                &(struct sl_inline_limit){.ns = limit->ns, .alone = limit->alone && samples == request->samples}),
                .arrival_ns = request->taken_ns,
                .deadline_ns = request->work.deadline_ns,
                .kind = request->kind,
                .rows = request->rows,
                .units = request->units,
        };

        sl_accumulator_segment(broadcast->accumulator, segment)->is_inline = task.is_inline;
        for (uint32_t m = 0; m < n_members; m++) {
                task.member = m;
                sl_scheduler_push(&ensemble->members[m]->scheduler, &task, request->priority);
                sl_busy_add(broadcast->busy, ensemble->members[m]);
        }
}

/* Return: 0; as sl_accumulator_open(). */
static int broadcast_segment(const struct sl_broadcast *broadcast, const struct sl_broadcast_decision *decision)
{
        struct sl_ensemble *ensemble = sl_ensemble_of(decision->queue);
        struct sl_request *request = sl_request_of_turn(decision->item);
        int segment = sl_accumulator_open(broadcast->accumulator, &request->work, request->broadcast, decision->samples);

        if (segment < 0)
                return segment;
        sl_accumulator_segment(broadcast->accumulator, (uint32_t)segment)->gpu = gpu_of(ensemble);
        send_segment(broadcast, request, (uint32_t)segment, decision->samples);
        SL_PROBE(
                segment_broadcast, request->queue->channel->id, request->queue->number, request->index, segment, decision->samples);
        sl_record_broadcast(request->record, decision->samples, broadcast->now_ns);
        sl_places_pin(ensemble->places, request);
        request->broadcast += decision->samples;
        if (request->broadcast == request->samples)
                stop_waiting(request);
        return 0;
}

/* Service times and workers have changed since the last round. */
static void look_at_windows(const struct sl_broadcast_ring *ring)
{
        for (struct sl_broadcast_queue *queue = ring->first; queue; queue = queue->next) {
                const struct sl_ensemble *ensemble = sl_ensemble_of(queue);
                const struct sl_broadcast_members members = members_of(ensemble);

                queue->segment_samples = sl_broadcast_segment_samples(&members, ensemble->segment_samples);
                /* Of a plan of any size each request is a sample: as many are out as are gathered. */
                queue->window_samples =
                        sl_broadcast_window_samples(&members, ensemble->gathers ? SL_JOB_ALIKE_MAX : ensemble->segment_samples);
        }
}

uint32_t sl_broadcaster_run(struct sl_broadcast_ring *ring, const struct sl_broadcast *broadcast)
{
        struct sl_broadcast_round round;
        struct sl_broadcast_decision decision;
        uint32_t segments = 0;

        SL_WALK(sl_broadcast_ring_walk(ring));
        look_at_windows(ring);
        sl_broadcast_round_begin(&round, ring);
        while (sl_broadcast_round_next(&round, &decision)) {
                int r = broadcast_segment(broadcast, &decision);

                if (r < 0) {
                        sl_broadcast_round_lacks(&round, r);
                        continue;
                }
                sl_broadcast_round_took(&round, &decision);
                segments++;
        }
        return segments;
}
