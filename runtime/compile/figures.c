#include "figures.h"

#include "base/cleanup.h"
#include "lower.h"
#include "placement.h"
#include "schedule.h"

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
        return 0;
}
