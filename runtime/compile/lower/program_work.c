/* SPDX-License-Identifier: Apache-2.0 */
#include "program_work.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "lower.h"
#include "placement.h"
#include "schedule.h"

#include <stdlib.h>

struct work {
        double sum, most; /* in units of a multiply-add; beyond 2^53 nobody asks for the last one */
        uint32_t node;    /* the dearest */
};

static int add_step(struct work *work, const struct sl_program *program, const struct sl_step *step, struct sl_node_desc *desc)
{
        double each;
        int r;

        if (step->dynamic || step->node == SL_VALUE_NONE)
                return 0;
        r = sl_graph_describe(program->placement->graph, step->node, desc);
        if (r < 0)
                return r;
        each = (double)sl_op_work(desc) * step->backend->step_weight;
        work->sum += each;
        if (each > work->most) {
                work->most = each;
                work->node = step->node;
        }
        return 0;
}

int sl_program_work_check(const struct sl_program *program, const struct sl_lower_options *options, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_node_desc *desc = calloc(1, sizeof(*desc));
        const struct sl_schedule *schedule = program->schedule;
        const struct sl_node *node;
        struct work work = {0};
        int r = 0;

        if (!desc)
                return sl_error_set(error, ENOMEM, "no memory for %zu bytes", sizeof(*desc));
        for (uint32_t i = 0; i < schedule->n_steps && r == 0; i++)
                r = add_step(&work, program, &schedule->steps[i], desc);
        if (r < 0)
                return sl_error_set(error, -r, "batch %u: a node has more inputs than one may have", program->batch);
        if (work.sum <= options->work_max)
                return 0;
        node = &program->placement->graph->nodes[work.node];
        return sl_error_set(error, E2BIG,
                "batch %u: node \"%s\" (%s) is work of %.3g elementary steps, all nodes are %.3g, work_max is %.3g", program->batch,
                node->name, sl_op_name(node->op), work.most, work.sum, options->work_max);
}

uint64_t sl_program_work_on_ref(const struct sl_lower_options *options)
{
        return (uint64_t)(options->work_max / sl_backend_ref.step_weight);
}
