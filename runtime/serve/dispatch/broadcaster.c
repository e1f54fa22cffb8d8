/* SPDX-License-Identifier: Apache-2.0 */
#include "broadcaster.h"

#include "accumulator.h"
#include "channel.h"
#include "ensemble.h"
#include "model.h"
#include "places.h"

#include <errno.h>

static uint32_t client_of(const struct sl_request *request)
{
        return request->queue->channel->slot;
}

/* Samples that fit the slice of every member; SL_SLICE_SAMPLES_MAX as long as nothing is known of their service times. */
static uint32_t slice_samples(const struct sl_ensemble *ensemble)
{
        uint32_t samples = SL_SLICE_SAMPLES_MAX;

        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++)
                if (ensemble->members[m]->slice_samples < samples)
                        samples = ensemble->members[m]->slice_samples;
        return samples;
}

/* The largest segment that is cut just now. */
static uint32_t segment_samples(const struct sl_ensemble *ensemble)
{
        uint32_t slice = slice_samples(ensemble);

        return slice < ensemble->segment_samples ? slice : ensemble->segment_samples;
}

/* Samples of the request's next segment: its cost in the fair queue. */
static uint32_t next_samples(const struct sl_request *request)
{
        uint32_t n = segment_samples(request->ensemble), left = request->samples - request->broadcast;

        return left < n ? left : n;
}

static uint32_t most_workers(const struct sl_ensemble *ensemble)
{
        uint32_t workers = 0;

        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++)
                if (ensemble->members[m]->workers.n > workers)
                        workers = ensemble->members[m]->workers.n;
        return workers;
}

/*
 * What may be out at a time: a slice for every worker of the member that has most and one more that waits, so that whoever is more
 * urgent, or comes next in turn, has no more than that before it. However fast the members are, two full segments for each.
 */
static uint64_t window_samples(const struct sl_ensemble *ensemble)
{
        uint64_t slice = slice_samples(ensemble), most = 2ull * ensemble->segment_samples;

        return (most_workers(ensemble) + 1ull) * (slice < most ? slice : most);
}

void sl_broadcaster_enqueue(struct sl_ensemble *ensemble, struct sl_request *request)
{
        request->state = SL_REQUEST_WAITING;
        sl_fair_push(ensemble->waiting, client_of(request), request);
}

uint64_t sl_broadcaster_ahead(const struct sl_ensemble *ensemble, uint32_t client, uint32_t priority)
{
        return ensemble->samples_out + sl_fair_ahead(ensemble->waiting, client, priority, segment_samples(ensemble));
}

void sl_broadcaster_withdraw(struct sl_request *request)
{
        sl_fair_remove(request->ensemble->waiting, client_of(request), request);
        request->state = SL_REQUEST_RUNNING;
}

static void broadcast(struct sl_ensemble *ensemble, struct sl_request *request, uint32_t segment, uint64_t inline_ns)
{
        uint32_t samples = next_samples(request);
        struct sl_task task = {
                .segment = segment,
                .samples = samples,
                .client = client_of(request),
                .is_inline = sl_inline_wants(ensemble, samples, inline_ns),
                .arrival_ns = request->taken_ns,
                .deadline_ns = request->work.deadline_ns,
        };

        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++) {
                task.member = m;
                sl_scheduler_push(&ensemble->members[m]->scheduler, &task, request->priority);
        }
        sl_places_pin(ensemble->places, request);
        sl_fair_charge(ensemble->waiting, client_of(request), request, samples);
        ensemble->samples_out += samples;
        request->broadcast += samples;
        if (request->broadcast == request->samples)
                sl_broadcaster_withdraw(request);
}

/* Return: 0, or why it had to stop short of the window, as sl_accumulator_open() says. */
static int fill_window(struct sl_ensemble *ensemble, struct sl_accumulator *accumulator, uint64_t inline_ns, uint32_t *ret_segments)
{
        uint64_t window = window_samples(ensemble);

        *ret_segments = 0;
        while (ensemble->samples_out < window) {
                struct sl_request *request = sl_fair_peek(ensemble->waiting, segment_samples(ensemble), next_samples);
                int segment;

                if (!request)
                        break;
                segment = sl_accumulator_open(accumulator, &request->work, request->broadcast, next_samples(request));
                if (segment < 0)
                        return segment;
                broadcast(ensemble, request, (uint32_t)segment, inline_ns);
                ++*ret_segments;
        }
        return 0;
}

uint32_t sl_broadcaster_turns(
        struct sl_ensemble *ensembles, struct sl_ensemble **turn, struct sl_accumulator *accumulator, uint64_t inline_ns)
{
        struct sl_ensemble *first = *turn ? *turn : ensembles, *ensemble = first;
        bool no_staging = false, claimed = false;
        uint32_t segments = 0;

        while (ensemble) {
                struct sl_ensemble *next = ensemble->next ? ensemble->next : ensembles;
                uint32_t n = 0;
                int r = no_staging && !ensemble->assembly.direct ? 0 : fill_window(ensemble, accumulator, inline_ns, &n);

                segments += n;
                no_staging |= r == -ENOMEM;
                if (r < 0 && !claimed)
                        *turn = n ? next : ensemble;
                claimed |= r < 0;
                if (r == -EAGAIN || next == first)
                        break;
                ensemble = next;
        }
        return segments;
}
