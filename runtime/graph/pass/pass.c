/* SPDX-License-Identifier: Apache-2.0 */
/* The passes in their order, and the checker after each. */
#include "pass.h"

#include "base/error.h"
#include "graph.h"

static const struct {
        const char *name;
        int (*run)(struct sl_graph *graph, struct sl_error *error);
} passes[SL_PASS_COUNT] = {
#define X(id, label, function) [SL_PASS_##id] = {.name = label, .run = sl_pass_##function},
        SL_PASSES(X)
#undef X
};

const char *sl_pass_name(enum sl_pass pass)
{
        return pass < SL_PASS_COUNT ? passes[pass].name : "unknown";
}

/* Bodies first: what becomes known in them is known to the nodes behind theirs. */
static int run_pass(struct sl_graph *graph, uint32_t pass, struct sl_error *error)
{
        int result = 0;

        for (uint32_t i = 0; i < graph->n_nodes && result == 0; i++)
                for (uint32_t b = 0; b < graph->nodes[i].n_bodies && result == 0 && !graph->nodes[i].dead; b++)
                        result = run_pass(graph->nodes[i].bodies[b], pass, error);
        return result < 0 ? result : passes[pass].run(graph, error);
}

int sl_passes_run(struct sl_graph *graph, uint32_t without, struct sl_error *error)
{
        for (uint32_t i = 0; i < SL_PASS_COUNT; i++) {
                if (without & (1u << i))
                        continue;
                int result = run_pass(graph, i, error);

                if (result < 0)
                        return sl_error_prefix(error, result, "pass %s", passes[i].name);
                result = sl_graph_check(graph, error);
                if (result < 0)
                        return sl_error_prefix(error, result, "after pass %s", passes[i].name);
        }
        return 0;
}
