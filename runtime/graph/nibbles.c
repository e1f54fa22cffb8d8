/* SPDX-License-Identifier: Apache-2.0 */
#include "nibbles.h"

#include "backend.h"
#include "base/error.h"
#include "graph.h"
#include "shape/nibbles.h"

/* Of one sample, and one of whatever else is open. */
static void close_dims(struct sl_tensor *tensor)
{
        for (uint32_t i = 0; i < tensor->shape.rank; i++)
                if (tensor->shape.dims[i] < 0)
                        tensor->shape.dims[i] = 1;
}

static bool is_for(const struct sl_backend *backend, const struct sl_target *target, const struct sl_node_desc *node)
{
        struct sl_node_desc closed = *node;

        close_dims(&closed.inputs[0]);
        close_dims(&closed.outputs[0]);
        return backend && backend->planner->supports(target, &closed);
}

/* What has data in the graph; NULL: it has none. */
static const uint8_t *bytes_of(const struct sl_graph *graph, const struct sl_node *node, uint32_t index)
{
        return index < node->n_inputs && node->inputs[index] != SL_VALUE_NONE ? sl_graph_constant(graph, node->inputs[index])
                                                                              : NULL;
}

static void write_floats(const struct sl_nibbles *n, const uint8_t *b, const float *scales, const uint8_t *zeros, float *to)
{
        for (int64_t column = 0; column < n->columns; column++)
                for (int64_t k = 0; k < n->depth; k++) {
                        int64_t block = column * n->blocks + k / n->block, place = k % n->block;
                        int q = b[block * (n->block / 2) + place / 2] >> (place % 2 ? 4 : 0) & 15;

                        to[k * n->columns + column] = (float)(q - (zeros ? zeros[block] : 8)) * scales[block];
                }
}

static int expand(struct sl_graph *graph, uint32_t index, const struct sl_nibbles *n)
{
        const struct sl_node *node = &graph->nodes[index];
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {n->depth, n->columns}}};
        const uint8_t *b = bytes_of(graph, node, 1), *zeros = bytes_of(graph, node, 3);
        const float *scales = (const void *)bytes_of(graph, node, 2);
        uint32_t inputs[2] = {node->inputs[0]};
        uint64_t bytes = sl_tensor_bytes(&tensor);
        float *data = bytes == UINT64_MAX ? NULL : sl_graph_alloc(graph, bytes);
        int r;

        if (!data)
                return -ENOMEM;
        write_floats(n, b, scales, zeros, data);
        sl_graph_drop_copies(graph);
        r = sl_graph_add_constant(graph, node->name, &tensor, data, &inputs[1]);
        if (r < 0)
                return r;
        graph->nodes[index].op = SL_OP_MATMUL;
        graph->nodes[index].attrs = (struct sl_attrs){0};
        return sl_graph_set_inputs(graph, index, inputs, 2);
}

int sl_graph_expand_nibbles(
        struct sl_graph *graph, const struct sl_backend *backend, const struct sl_target *target, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                struct sl_node_desc desc;
                struct sl_nibbles n;
                int r;

                if (graph->nodes[i].dead || graph->nodes[i].op != SL_OP_NIBBLE_MATMUL || sl_graph_describe(graph, i, &desc) < 0 ||
                        sl_nibbles_read(&desc, &n, NULL) || n.depth < 1 || desc.inputs[0].dtype != SL_DTYPE_F32 ||
                        !bytes_of(graph, &graph->nodes[i], 1) || !bytes_of(graph, &graph->nodes[i], 2) ||
                        is_for(backend, target, &desc))
                        continue;
                r = expand(graph, i, &n);
                if (r < 0)
                        return sl_error_set(error, -r, "node \"%s\": no memory for its weights as floats", graph->nodes[i].name);
                r = sl_graph_infer_node(graph, i, error);
                if (r < 0)
                        return r;
        }
        return 0;
}
