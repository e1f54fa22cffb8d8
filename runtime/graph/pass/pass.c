/* SPDX-License-Identifier: Apache-2.0 */
/* The passes in their order, phase by phase, and the checker after each. */
#include "pass.h"

#include "base/assert.h"
#include "base/error.h"
#include "graph.h"

static const struct pass {
        const char *name;
        enum sl_pass_phase phase;
        union {
                SL_PASS_PROTOTYPE_PORTABLE((*PORTABLE));
                SL_PASS_PROTOTYPE_MERGE((*MERGE));
                SL_PASS_PROTOTYPE_BACKEND((*BACKEND));
        } run;
} passes[SL_PASS_COUNT] = {
#define X(kind, id, label, function) [SL_PASS_##id] = {.name = label, .phase = SL_PASS_##kind, .run.kind = sl_pass_##function},
        SL_PASSES(X)
#undef X
};

const char *sl_pass_name(enum sl_pass pass)
{
        return pass < SL_PASS_COUNT ? passes[pass].name : "unknown";
}

enum sl_pass_phase sl_pass_phase(enum sl_pass pass)
{
        return passes[pass].phase;
}

/* Bodies first: what becomes known in them is known to the nodes behind theirs. */
static int run_pass(struct sl_graph *graph, const struct pass *pass, const struct sl_pass_options *options, struct sl_error *error)
{
        int result = 0;

        for (uint32_t i = 0; i < graph->n_nodes && result == 0; i++)
                for (uint32_t b = 0; b < graph->nodes[i].n_bodies && result == 0 && !graph->nodes[i].dead; b++)
                        result = run_pass(graph->nodes[i].bodies[b], pass, options, error);
        if (result < 0)
                return result;
        result = pass->phase == SL_PASS_PORTABLE ? pass->run.PORTABLE(graph, error) : pass->run.BACKEND(graph, options, error);
        sl_graph_drop_copies(graph);
        return result;
}

/* A check takes longer than most passes: builds that assert look behind each, which one has broken the graph; others once. */
static bool checks_each(void)
{
        bool each = false;

        SL_WALK(each = true);
        return each;
}

static int run_and_check(
        struct sl_graph *graph, const struct pass *pass, const struct sl_pass_options *options, struct sl_error *error)
{
        int result = run_pass(graph, pass, options, error);
        if (result < 0)
                return sl_error_prefix(error, result, "pass %s", pass->name);
        result = checks_each() ? sl_graph_check(graph, error) : 0;
        return result < 0 ? sl_error_prefix(error, result, "after pass %s", pass->name) : 0;
}

static bool is_wanted(uint32_t pass, enum sl_pass_phase phase, uint32_t without)
{
        return passes[pass].phase == phase && !(without & (1u << pass));
}

int sl_passes_run_phase(
        struct sl_graph *graph, enum sl_pass_phase phase, const struct sl_pass_options *options, struct sl_error *error)
{
        int result = 0;

        for (uint32_t i = 0; i < SL_PASS_COUNT && result == 0; i++)
                if (is_wanted(i, phase, options->without))
                        result = run_and_check(graph, &passes[i], options, error);
        if (result == 0 && phase == SL_PASS_BACKEND && is_wanted(SL_PASS_REMOVE_DEAD, SL_PASS_PORTABLE, options->without))
                result = run_and_check(graph, &passes[SL_PASS_REMOVE_DEAD], options, error);
        return result == 0 && !checks_each() ? sl_graph_check(graph, error) : result;
}

int sl_passes_merge(
        const struct sl_graph *const *graphs, uint32_t n_graphs, uint32_t without, struct sl_graph *merged, struct sl_error *error)
{
        int result = 0;

        for (uint32_t i = 0; i < SL_PASS_COUNT && result == 0; i++) {
                if (!is_wanted(i, SL_PASS_MERGE, without))
                        continue;
                result = passes[i].run.MERGE(graphs, n_graphs, merged, error);
                if (result < 0)
                        return sl_error_prefix(error, result, "pass %s", passes[i].name);
        }
        if (result == 0)
                return 0;
        result = sl_graph_check(merged, error);
        return result < 0 ? sl_error_prefix(error, result, "after merging %u graphs", n_graphs) : 1;
}

int sl_passes_run(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        int result = sl_passes_run_phase(graph, SL_PASS_PORTABLE, options, error);

        return result < 0 || !options->backend ? result : sl_passes_run_phase(graph, SL_PASS_BACKEND, options, error);
}
