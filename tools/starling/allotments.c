/* SPDX-License-Identifier: Apache-2.0 */
#include "allotments.h"
#include "allocation_file.h"

#include <stdlib.h>

struct starling_allotment *allotments_of(const struct sl_allocation *allocation)
{
        struct starling_allotment *allotments = calloc(allocation->n_workers + 1ul, sizeof(*allotments));

        for (uint32_t i = 0; allotments && i < allocation->n_workers; i++) {
                const struct sl_allocation_worker *worker = &allocation->workers[i];

                allotments[i] = (struct starling_allotment){
                        .model = allocation->models[worker->model],
                        .device = allocation->devices[worker->device],
                        .batch = worker->batch,
                };
        }
        return allotments;
}
