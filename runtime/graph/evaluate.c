/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every value gets a buffer of its own, inputs and constants are read where they lie. Nothing is reused: an oracle has no
 * memory plan that could be wrong.
 */
#include "evaluate.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int launch(struct sl_kernel *kernel, const void *const *inputs, void *const *outputs, const struct sl_node *node,
        struct sl_error *error)
{
        size_t scratch_bytes = sl_backend_ref.runner->scratch_bytes(kernel);
        void *scratch = aligned_alloc(SL_LINE_BYTES, sl_align_up(scratch_bytes + 1, SL_LINE_BYTES));
        struct sl_binding binding = {.inputs = inputs, .outputs = outputs, .scratch = scratch};
        int result = scratch ? sl_backend_ref.runner->launch(kernel, &binding) : -ENOMEM;

        free(scratch);
        if (result < 0)
                return sl_error_set(error, -result, "node \"%s\" (%s): %s", node->name, sl_op_name(node->op), strerror(-result));
        return 0;
}

int sl_graph_run_node(
        const struct sl_graph *graph, uint32_t index, const void *const *inputs, void *const *outputs, struct sl_error *error)
{
        static const struct sl_packed unpacked[SL_NODE_INPUTS_MAX];
        const struct sl_node *node = &graph->nodes[index];
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_node_desc desc;
        struct sl_kernel *kernel = NULL;
        int result = sl_graph_describe(graph, index, &desc);

        if (result < 0)
                return sl_error_set(error, -result, "node \"%s\": more than %d inputs", node->name, SL_NODE_INPUTS_MAX);
        for (uint32_t i = 0; i < node->n_inputs; i++)
                constants[i] = sl_graph_constant(graph, node->inputs[i]);
        if (!sl_backend_ref.planner->supports(NULL, &desc))
                return sl_error_set(error, ENOTSUP, "node \"%s\": no reference kernel for %s of %s", node->name,
                        sl_op_name(node->op), sl_dtype_name(desc.inputs[0].dtype));
        result = sl_backend_ref.runner->compile(
                NULL, &(struct sl_kernel_source){.node = &desc, .packed = unpacked, .constants = constants}, &kernel, error);
        if (result < 0)
                return sl_error_prefix(error, result, "node \"%s\" (%s)", node->name, sl_op_name(node->op));
        result = launch(kernel, inputs, outputs, node, error);
        sl_backend_ref.runner->kernel_free(kernel);
        return result;
}

static int allocate_outputs(const struct sl_graph *graph, const struct sl_node *node, void **buffers, struct sl_error *error)
{
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                uint32_t index = node->outputs[i];
                const struct sl_value *value = index == SL_VALUE_NONE ? NULL : &graph->values[index];
                uint64_t bytes = value ? sl_tensor_bytes(&value->tensor) : 0;

                if (!value || buffers[index])
                        continue;
                if (bytes > SIZE_MAX / 2)
                        return sl_error_set(error, EINVAL, "value \"%s\" has no static shape", value->name);
                buffers[index] = aligned_alloc(SL_LINE_BYTES, sl_align_up(bytes + 1, SL_LINE_BYTES));
                if (!buffers[index])
                        return sl_error_set(error, ENOMEM, "value \"%s\": no memory for %" PRIu64 " bytes", value->name, bytes);
        }
        return 0;
}

static int evaluate_node(const struct sl_graph *graph, uint32_t index, void **buffers, struct sl_error *error)
{
        const struct sl_node *node = &graph->nodes[index];
        const void *inputs[SL_NODE_INPUTS_MAX] = {NULL};
        void *outputs[SL_NODE_OUTPUTS_MAX] = {NULL};
        int result = allocate_outputs(graph, node, buffers, error);

        if (result < 0)
                return result;
        for (uint32_t i = 0; i < node->n_inputs && i < SL_NODE_INPUTS_MAX; i++) {
                uint32_t value = node->inputs[i];

                if (value != SL_VALUE_NONE)
                        inputs[i] = buffers[value] ? buffers[value] : sl_graph_constant(graph, value);
        }
        for (uint32_t i = 0; i < node->n_outputs && i < SL_NODE_OUTPUTS_MAX; i++)
                if (node->outputs[i] != SL_VALUE_NONE)
                        outputs[i] = buffers[node->outputs[i]];
        return sl_graph_run_node(graph, index, inputs, outputs, error);
}

static void copy_outputs(const struct sl_graph *graph, void *const *buffers, void *const *outputs)
{
        for (uint32_t i = 0; i < graph->n_outputs; i++) {
                const struct sl_value *value = &graph->values[graph->outputs[i]];
                uint64_t bytes = sl_tensor_bytes(&value->tensor);

                if (bytes)
                        memcpy(outputs[i], value->kind == SL_VALUE_CONSTANT ? value->data : buffers[graph->outputs[i]], bytes);
        }
}

int sl_graph_evaluate(const struct sl_graph *graph, const void *const *inputs, void *const *outputs, struct sl_error *error)
{
        void **buffers = calloc(graph->n_values + 1, sizeof(*buffers));
        int result = buffers ? 0 : sl_error_set(error, ENOMEM, "no memory for %u values", graph->n_values);

        for (uint32_t i = 0; i < graph->n_inputs && result == 0; i++)
                buffers[graph->inputs[i]] = (void *)inputs[i];
        for (uint32_t i = 0; i < graph->n_nodes && result == 0; i++)
                if (!graph->nodes[i].dead)
                        result = evaluate_node(graph, i, buffers, error);
        if (result == 0)
                copy_outputs(graph, buffers, outputs);
        for (uint32_t i = 0; i < graph->n_values && buffers; i++)
                if (graph->values[i].kind == SL_VALUE_COMPUTED)
                        free(buffers[i]);
        free(buffers);
        return result;
}
