/* SPDX-License-Identifier: Apache-2.0 */
#include "any_size.h"

#include "base/error.h"
#include "graph.h"
#include "lower.h"

#include <string.h>

/* Weights are in the plans of single sizes as well. */
#define WEIGHTS_BYTES_MAX (64ull << 20)

/* Arithmetic on shapes counts, and the length follows from numbers; what else counts looks at the data. */
static bool op_suits(uint32_t op)
{
        return op == SL_OP_RANGE || !(sl_op_traits(op) & (SL_OP_COUNTS | SL_OP_CONTROL | SL_OP_DRAWS));
}

static uint64_t constant_bytes(const struct sl_graph *graph)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < graph->n_values; i++)
                if (graph->values[i].kind == SL_VALUE_CONSTANT && !graph->values[i].dead)
                        bytes += graph->values[i].data_bytes;
        return bytes;
}

/* Passes learn dimensions that the importer could not hold to the limit. */
static int check_sizes(const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_values; i++) {
                const struct sl_value *value = &graph->values[i];
                char shape[SL_SHAPE_TEXT_BYTES];

                if (value->dead || value->kind != SL_VALUE_COMPUTED || sl_graph_least_bytes(&value->tensor) <= options->tensor_bytes_max)
                        continue;
                return sl_error_set(error, ENOTSUP, "value \"%s\", %s %s, is larger than %llu bytes (tensor_bytes_max)", value->name,
                        sl_dtype_name(value->tensor.dtype), sl_shape_print(&value->tensor.shape, shape),
                        (unsigned long long)options->tensor_bytes_max);
        }
        return 0;
}

int sl_any_size_suits(const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_error *error)
{
        uint64_t bytes = constant_bytes(graph);

        if (!strcmp(sl_lower_options_backend(options), "cuda"))
                return sl_error_set(error, ENOTSUP, "a plan of any size is for backend cpu");
        if (sl_lower_asks_for_halves(graph, options) || options->precision != SL_PRECISION_FP32)
                return sl_error_set(error, ENOTSUP, "a plan of any size is computed in float32");
        if (bytes > WEIGHTS_BYTES_MAX)
                return sl_error_set(error, ENOTSUP, "weights of %llu bytes, a plan of any size has at most %llu",
                        (unsigned long long)bytes, WEIGHTS_BYTES_MAX);
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && !op_suits(graph->nodes[i].op))
                        return sl_error_set(error, ENOTSUP, "node \"%s\" (%s) is for no plan of any size", graph->nodes[i].name,
                                sl_op_name(graph->nodes[i].op));
        return check_sizes(graph, options, error);
}
