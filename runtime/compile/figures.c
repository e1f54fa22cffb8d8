#include "figures.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"
#include "lower.h"
#include "placement.h"
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_lowered *, sl_lowered_free)

static void fill_size(const struct sl_program *program, uint32_t i, struct sl_compile_figures *figures)
{
        const struct sl_schedule *schedule = program->schedule;

        figures->memory[i] = (struct sl_inspect_memory){
                .batch = program->batch, .workspace_bytes = schedule->workspace_bytes, .sum_bytes = schedule->unshared_bytes};
        figures->lower_bound_bytes[i] = schedule->lower_bound_bytes;
        figures->n_steps[i] = schedule->n_steps;
        figures->n_reorders[i] = program->placement->n_reorders;
}

/* One block: the nodes, and their names behind them. */
static int fill_nodes(const struct sl_placement *placement, struct sl_compile_figures *figures)
{
        const struct sl_graph *graph = placement->graph;
        char(*names)[SL_NAME_BYTES];
        uint32_t n = 0;

        figures->nodes = calloc(graph->n_nodes + 1u, sizeof(*figures->nodes) + sizeof(*names));
        if (!figures->nodes)
                return -ENOMEM;
        names = (void *)(figures->nodes + graph->n_nodes + 1u);
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                if (graph->nodes[i].dead || !placement->backends[i])
                        continue;
                memcpy(names[n], graph->nodes[i].name, SL_NAME_BYTES);
                figures->nodes[n] = (struct sl_inspect_node){
                        .name = names[n], .operator= sl_op_name(graph->nodes[i].op), .backend = placement->backends[i]->name};
                n++;
        }
        figures->n_nodes = n;
        return 0;
}

int sl_compile_figures(const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_compile_figures *ret_figures,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = NULL;
        int r = sl_lowered_new(graph, options, &lowered, error);

        if (r == 0)
                r = sl_lowered_measure(lowered, error);
        if (r < 0)
                return r;
        memset(ret_figures, 0, sizeof(*ret_figures));
        memcpy(ret_figures->backend, lowered->info.backend, sizeof(ret_figures->backend));
        ret_figures->weights_bytes = lowered->info.weights_bytes;
        ret_figures->multiply_adds = lowered->info.multiply_adds;
        ret_figures->batchable = lowered->info.batchable;
        ret_figures->n_batches = lowered->info.n_batches;
        for (uint32_t i = 0; i < lowered->info.n_batches; i++)
                fill_size(&lowered->programs[i], i, ret_figures);
        r = fill_nodes(lowered->programs[lowered->info.n_batches - 1].placement, ret_figures);
        return r < 0 ? sl_error_set(error, -r, "no memory to name the nodes of a plan") : 0;
}

void sl_compile_figures_free(struct sl_compile_figures *figures)
{
        free(figures->nodes);
        figures->nodes = NULL;
        figures->n_nodes = 0;
}
