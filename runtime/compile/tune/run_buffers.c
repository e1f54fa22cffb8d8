/* SPDX-License-Identifier: Apache-2.0 */
#include "run_buffers.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "graph.h"
#include "node_run.h"
#include "placement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct buffer {
        void *data;
        uint64_t bytes;
        bool taken;
};

struct sl_run_buffers {
        const struct sl_placement *placement;
        const struct sl_graph *graph;
        uint32_t *held;       /* of each value: its buffer, NONE; a view has that of its root */
        uint32_t *roots;      /* of each value: itself, or what it is a view of */
        uint32_t *last_reads; /* of a root: the last node that reads it, NONE: nobody, or it stays */
        struct buffer *all;
        uint32_t n, room; /* of all */
        uint32_t scratch; /* its buffer, NONE */
        struct sl_run_node current;
};

SL_DEFINE_CLEANUP(struct sl_run_buffers *, sl_run_buffers_free)

static void find_last_reads(struct sl_run_buffers *buffers)
{
        const struct sl_graph *graph = buffers->graph;

        for (uint32_t i = 0; i < graph->n_values; i++) {
                buffers->roots[i] = i;
                buffers->held[i] = buffers->last_reads[i] = NONE;
        }
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (!buffers->placement->backends[i])
                        buffers->roots[node->outputs[0]] = buffers->roots[node->inputs[0]];
                for (uint32_t k = 0; k < node->n_inputs; k++) {
                        if (node->inputs[k] != SL_VALUE_NONE)
                                buffers->last_reads[buffers->roots[node->inputs[k]]] = i;
                }
        }
        for (uint32_t i = 0; i < graph->n_inputs; i++)
                buffers->last_reads[graph->inputs[i]] = NONE;
}

static int grow(struct sl_run_buffers *buffers)
{
        uint32_t room = buffers->room * 2 + 16;
        struct buffer *grown = reallocarray(buffers->all, room, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        buffers->all = grown;
        buffers->room = room;
        return 0;
}

static int add_buffer(struct sl_run_buffers *buffers, uint64_t bytes, uint32_t *ret_buffer)
{
        uint64_t whole = sl_align_up(bytes + 1, SL_LINE_BYTES);
        void *data;

        if (buffers->n == buffers->room && grow(buffers) < 0)
                return -ENOMEM;
        data = aligned_alloc(SL_LINE_BYTES, whole);
        if (!data)
                return -ENOMEM;
        /* Its pages are taken now, not while somebody is timed. */
        memset(data, 0, whole);
        *ret_buffer = buffers->n++;
        buffers->all[*ret_buffer] = (struct buffer){data, whole, true};
        return 0;
}

static int take_buffer(struct sl_run_buffers *buffers, uint64_t bytes, uint32_t *ret_buffer)
{
        uint32_t best = NONE;

        for (uint32_t i = 0; i < buffers->n; i++) {
                const struct buffer *buffer = &buffers->all[i];

                if (!buffer->taken && buffer->bytes > bytes && (best == NONE || buffer->bytes < buffers->all[best].bytes))
                        best = i;
        }
        if (best == NONE)
                return add_buffer(buffers, bytes, ret_buffer);
        buffers->all[best].taken = true;
        *ret_buffer = best;
        return 0;
}

static void give_back(struct sl_run_buffers *buffers, uint32_t *held)
{
        if (*held != NONE)
                buffers->all[*held].taken = false;
        *held = NONE;
}

static int fill_inputs(struct sl_run_buffers *buffers)
{
        for (uint32_t i = 0; i < buffers->graph->n_inputs; i++) {
                uint32_t value = buffers->graph->inputs[i];
                const struct sl_tensor *tensor = &buffers->graph->values[value].tensor;

                if (take_buffer(buffers, sl_tensor_bytes(tensor), &buffers->held[value]) < 0)
                        return -ENOMEM;
                sl_node_run_fill(tensor, value, buffers->all[buffers->held[value]].data);
        }
        return 0;
}

int sl_run_buffers_new(const struct sl_placement *placement, struct sl_run_buffers **ret_buffers)
{
        SL_CLEANUP(sl_cleanup_sl_run_buffers_free) struct sl_run_buffers *buffers = calloc(1, sizeof(*buffers));
        uint32_t n_values = placement->graph->n_values;

        if (!buffers)
                return -ENOMEM;
        buffers->placement = placement;
        buffers->graph = placement->graph;
        buffers->scratch = NONE;
        buffers->held = calloc(n_values + 1u, sizeof(*buffers->held));
        buffers->roots = calloc(n_values + 1u, sizeof(*buffers->roots));
        buffers->last_reads = calloc(n_values + 1u, sizeof(*buffers->last_reads));
        if (!buffers->held || !buffers->roots || !buffers->last_reads)
                return -ENOMEM;
        find_last_reads(buffers);
        if (fill_inputs(buffers) < 0)
                return -ENOMEM;
        *ret_buffers = sl_take(buffers);
        return 0;
}

struct sl_run_buffers *sl_run_buffers_free(struct sl_run_buffers *buffers)
{
        if (!buffers)
                return NULL;
        for (uint32_t i = 0; i < buffers->n; i++)
                free(buffers->all[i].data);
        free(buffers->all);
        free(buffers->held);
        free(buffers->roots);
        free(buffers->last_reads);
        free(buffers);
        return NULL;
}

static void find_inputs(struct sl_run_buffers *buffers, const struct sl_node *node)
{
        struct sl_run_node *current = &buffers->current;

        current->complete = true;
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t value = node->inputs[i], root = value == SL_VALUE_NONE ? NONE : buffers->roots[value];

                current->constants[i] = current->inputs[i] = NULL;
                if (root == NONE)
                        continue;
                current->constants[i] = sl_graph_constant(buffers->graph, root);
                if (current->constants[i])
                        continue;
                if (buffers->held[root] == NONE)
                        current->complete = false;
                else
                        current->inputs[i] = buffers->all[buffers->held[root]].data;
        }
}

int sl_run_buffers_enter(struct sl_run_buffers *buffers, uint32_t node_index, struct sl_run_node **ret_current)
{
        const struct sl_node *node = &buffers->graph->nodes[node_index];
        struct sl_run_node *current = &buffers->current;
        int r;

        memset(&current->desc, 0, sizeof(current->desc));
        r = sl_graph_describe(buffers->graph, node_index, &current->desc);
        if (r < 0)
                return r;
        find_inputs(buffers, node);
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                const struct sl_tensor *tensor = &current->desc.outputs[i];
                uint32_t *held = &buffers->held[node->outputs[i]];

                current->outputs[i] = NULL;
                if (tensor->dtype == SL_DTYPE_NONE || !sl_shape_is_static(&tensor->shape))
                        continue;
                if (take_buffer(buffers, sl_tensor_bytes(tensor), held) < 0)
                        return -ENOMEM;
                current->outputs[i] = buffers->all[*held].data;
        }
        *ret_current = current;
        return 0;
}

void sl_run_buffers_leave(struct sl_run_buffers *buffers, uint32_t node_index, bool done)
{
        const struct sl_node *node = &buffers->graph->nodes[node_index];

        give_back(buffers, &buffers->scratch);
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t root = node->inputs[i] == SL_VALUE_NONE ? NONE : buffers->roots[node->inputs[i]];

                if (root != NONE && buffers->last_reads[root] == node_index)
                        give_back(buffers, &buffers->held[root]);
        }
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                if (!done && node->outputs[i] != SL_VALUE_NONE)
                        give_back(buffers, &buffers->held[node->outputs[i]]);
        }
}

static bool is_input(const struct sl_graph *graph, uint32_t value)
{
        return graph->values[value].kind == SL_VALUE_INPUT;
}

void sl_run_buffers_clear(struct sl_run_buffers *buffers)
{
        for (uint32_t i = 0; i < buffers->graph->n_values; i++) {
                if (!is_input(buffers->graph, i))
                        give_back(buffers, &buffers->held[i]);
        }
}

int sl_run_buffers_scratch(struct sl_run_buffers *buffers, uint64_t bytes, void **ret_data)
{
        int r = take_buffer(buffers, bytes, &buffers->scratch);

        if (r == 0)
                *ret_data = buffers->all[buffers->scratch].data;
        return r;
}
