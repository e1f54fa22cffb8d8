/* SPDX-License-Identifier: Apache-2.0 */
#include "reference_run.h"

#include "base/cleanup.h"
#include "graph.h"
#include "node_run.h"
#include "placement.h"
#include "run_buffers.h"

#include <errno.h>

SL_DEFINE_CLEANUP(struct sl_run_buffers *, sl_run_buffers_free)
SL_DEFINE_CLEANUP(struct sl_node_run *, sl_node_run_free)

static int run_node(const struct sl_backend *backend, struct sl_run_node *current, struct sl_node_run **ret_run)
{
        SL_CLEANUP(sl_cleanup_sl_node_run_free) struct sl_node_run *run = NULL;
        int r = current->complete ? sl_node_run_new(backend, &current->desc, current->constants, &run, NULL) : -ENOTSUP;

        if (r == 0)
                r = sl_node_run_bind(run, current->inputs, current->outputs, NULL);
        if (r == 0)
                r = sl_node_run_launch(run);
        if (r == 0)
                *ret_run = sl_take(run);
        return r;
}

/* What cannot run alone is passed over, and so is what reads its results. */
static int visit_node(const struct sl_placement *placement, uint32_t node, struct sl_run_buffers *buffers,
        sl_reference_visitor *visit, void *context)
{
        SL_CLEANUP(sl_cleanup_sl_node_run_free) struct sl_node_run *run = NULL;
        struct sl_reference_node reference = {.node = node};
        struct sl_run_node *current;
        int r = sl_run_buffers_enter(buffers, node, &current);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = run_node(placement->backends[node], current, &run);
        if (r == 0) {
                reference.desc = &current->desc;
                reference.constants = current->constants;
                reference.inputs = current->inputs;
                reference.run = run;
                r = visit(context, &reference);
        } else if (r != -ENOMEM) {
                r = 0;
        }
        sl_run_buffers_leave(buffers, node, run != NULL);
        return r;
}

int sl_reference_run(const struct sl_placement *placement, sl_reference_visitor *visit, void *context)
{
        SL_CLEANUP(sl_cleanup_sl_run_buffers_free) struct sl_run_buffers *buffers = NULL;
        int r = sl_run_buffers_new(placement, &buffers);

        for (uint32_t i = 0; i < placement->graph->n_nodes && r == 0; i++) {
                if (placement->backends[i])
                        r = visit_node(placement, i, buffers, visit, context);
        }
        return r;
}
