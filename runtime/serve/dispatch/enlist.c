/* SPDX-License-Identifier: Apache-2.0 */
#include "enlist.h"

#include "dispatcher_state.h"
#include "executor.h"
#include "gauges.h"
#include "let.h"
#include "listening.h"
#include "record.h"

/* The lanes of a carrier are one on its let, as they compute in turn. */
void sl_worker_joins(struct sl_dispatcher *d, struct sl_model *model, struct sl_executor *worker)
{
        worker->model = model;
        if (!worker->carrier || sl_bundle_add_worker(model->bundle, worker))
                worker->let->turns.n_workers++;
        sl_workers_watch(d, worker);
        sl_record_worker(d, worker);
}

void sl_worker_leaves(struct sl_dispatcher *d, struct sl_model *model, struct sl_executor *worker)
{
        sl_workers_unwatch(d, worker);
        if (!worker->carrier || sl_bundle_remove_worker(model->bundle, worker))
                worker->let->turns.n_workers--;
        sl_gauges_let(worker->let);
}
