/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle.h"

#include "base/assert.h"

#include <string.h>

void sl_bundle_add(struct sl_bundle *bundle, struct sl_model *model)
{
        SL_ASSERT(bundle->n_models < SL_CARRIER_LANES_MAX);
        bundle->models[bundle->n_models++] = model;
}

void sl_bundle_remove(struct sl_bundle *bundle, const struct sl_model *model)
{
        for (uint32_t i = 0; i < bundle->n_models; i++)
                if (bundle->models[i] == model) {
                        memmove(bundle->models + i, bundle->models + i + 1, (--bundle->n_models - i) * sizeof(bundle->models[0]));
                        break;
                }
        bundle->turn = bundle->turn < bundle->n_models ? bundle->turn : 0;
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

struct sl_model *sl_bundle_model(const struct sl_bundle *bundle, uint32_t i)
{
        return bundle->models[(bundle->turn + i) % bundle->n_models];
}

bool sl_bundle_waiting(const struct sl_bundle *bundle)
{
        for (uint32_t i = 0; i < bundle->n_carriers; i++)
                if (sl_carrier_waiting(bundle->carriers[i]))
                        return true;
        return false;
}
