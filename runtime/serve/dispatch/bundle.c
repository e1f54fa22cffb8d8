/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle.h"

#include "base/assert.h"
#include "model.h"

void sl_bundle_add(struct sl_bundle *bundle, struct sl_model *model)
{
        SL_ASSERT(bundle->n_models < SL_CARRIER_LANES_MAX);
        model->place = bundle->n_models;
        bundle->models[bundle->n_models++] = model;
}

void sl_bundle_remove(struct sl_bundle *bundle, const struct sl_model *model)
{
        uint32_t place = model->place;
        uint64_t below = (UINT64_C(1) << place) - 1;

        SL_ASSERT(bundle->models[place] == model);
        bundle->due = (bundle->due & below) | (bundle->due >> 1 & ~below);
        for (bundle->n_models--; place < bundle->n_models; place++) {
                bundle->models[place] = bundle->models[place + 1];
                bundle->models[place]->place = place;
        }
}

bool sl_bundle_add_worker(struct sl_bundle *bundle, const struct sl_executor *worker)
{
        if (!sl_carrier_knows(worker->carrier, worker->lane))
                return false;
        SL_ASSERT(bundle->n_carriers < SL_WORKERS_MAX);
        bundle->carriers[bundle->n_carriers++] = worker->carrier;
        return true;
}

bool sl_bundle_remove_worker(struct sl_bundle *bundle, const struct sl_executor *worker)
{
        struct sl_carrier *carrier = worker->carrier;

        if (!sl_carrier_forgets(carrier, worker->lane))
                return false;
        for (uint32_t i = 0; i < bundle->n_carriers; i++)
                if (bundle->carriers[i] == carrier)
                        bundle->carriers[i--] = bundle->carriers[--bundle->n_carriers];
        return true;
}

struct sl_model *sl_bundle_next(const struct sl_bundle *bundle, uint64_t *left)
{
        uint64_t due = *left & bundle->due;
        uint32_t place = due ? sl_lanes_first(due, !bundle->forwards) : sl_lanes_first(*left, bundle->forwards);

        *left &= ~(UINT64_C(1) << place);
        return bundle->models[place];
}

void sl_bundle_took_turn(struct sl_bundle *bundle, const struct sl_model *model)
{
        uint64_t turn = UINT64_C(1) << model->place;

        if (!(bundle->due & turn)) {
                bundle->due = ~UINT64_C(0);
                bundle->forwards = !bundle->forwards;
        }
        bundle->due &= ~turn;
}

bool sl_bundle_waiting(const struct sl_bundle *bundle)
{
        for (uint32_t i = 0; i < bundle->n_carriers; i++)
                if (sl_carrier_waiting(bundle->carriers[i]))
                        return true;
        return false;
}
