#include "broadcaster.h"

#include "accumulator.h"
#include "channel.h"
#include "ensemble.h"
#include "model.h"

static uint32_t client_of(const struct sl_request *request)
{
        return request->queue->channel->slot;
}

/* Samples of the request's next segment: its cost in the fair queue. */
static uint32_t next_samples(const struct sl_request *request)
{
        uint32_t n = request->ensemble->segment_samples;
        uint32_t left = request->samples - request->broadcast * n;

        return left < n ? left : n;
}

void sl_broadcaster_enqueue(struct sl_ensemble *ensemble, struct sl_request *request)
{
        request->state = SL_REQUEST_WAITING;
        sl_fair_push(ensemble->waiting, client_of(request), request);
}

void sl_broadcaster_withdraw(struct sl_request *request)
{
        sl_fair_remove(request->ensemble->waiting, client_of(request), request);
        request->state = SL_REQUEST_RUNNING;
}

static void broadcast(struct sl_ensemble *ensemble, struct sl_request *request, uint32_t segment)
{
        uint32_t samples = next_samples(request);

        for (uint32_t m = 0; m < ensemble->n_members; m++)
                sl_scheduler_push(&ensemble->members[m]->scheduler, segment, m);
        sl_fair_charge(ensemble->waiting, client_of(request), request, samples);
        ensemble->samples_out += samples;
        if (++request->broadcast == request->n_segments)
                sl_broadcaster_withdraw(request);
}

uint32_t sl_broadcaster_run(struct sl_ensemble *ensemble, struct sl_accumulator *accumulator)
{
        uint32_t segments = 0;

        while (ensemble->samples_out < ensemble->window_samples) {
                struct sl_request *request = sl_fair_peek(ensemble->waiting, next_samples);
                int segment;

                if (!request)
                        break;
                segment = sl_accumulator_open(accumulator, request, request->broadcast);
                if (segment < 0)
                        break;
                broadcast(ensemble, request, (uint32_t)segment);
                segments++;
        }
        return segments;
}
