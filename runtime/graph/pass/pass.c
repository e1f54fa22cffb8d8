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

int sl_passes_run(struct sl_graph *graph, uint32_t without, struct sl_error *error)
{
        for (uint32_t i = 0; i < SL_PASS_COUNT; i++) {
                if (without & (1u << i))
                        continue;
                int result = passes[i].run(graph, error);

                if (result < 0)
                        return sl_error_prefix(error, result, "pass %s", passes[i].name);
                result = sl_graph_check(graph, error);
                if (result < 0)
                        return sl_error_prefix(error, result, "after pass %s", passes[i].name);
        }
        return 0;
}
