/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building and querying a graph. Values and nodes are two growing arrays: the capacity of n entries is n rounded up to a power
 * of two, at least ENTRIES_MIN, so that it need not be stored. Index arrays and constants lie in the arena. One owner thread.
 */
#include "graph.h"

#include "arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "index.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MIN 16
#define ENTRIES_MAX (1u << 24)

const struct sl_graph_limits sl_graph_limits_default = {
        .file_bytes = 2ull << 30,
        .constant_bytes = 8ull << 30,
        .nodes = 100000,
        .values = 200000,
        .tensor_bytes = 4ull << 30,
};

int sl_graph_new(struct sl_graph **ret_graph)
{
        struct sl_graph *graph = calloc(1, sizeof(*graph));

        if (!graph)
                return -ENOMEM;
        graph->name = "";
        graph->arena = sl_graph_arena_new();
        graph->index = sl_graph_index_new();
        if (!graph->arena || !graph->index) {
                sl_graph_free(graph);
                return -ENOMEM;
        }
        *ret_graph = graph;
        return 0;
}

struct sl_graph *sl_graph_free(struct sl_graph *graph)
{
        if (!graph)
                return NULL;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                for (uint32_t b = 0; b < graph->nodes[i].n_bodies; b++)
                        sl_graph_free(graph->nodes[i].bodies[b]);
        sl_graph_arena_free(graph->arena);
        sl_graph_index_free(graph->index);
        free(graph->values);
        free(graph->nodes);
        free(graph);
        return NULL;
}

/* Makes room for one more entry behind @n of them. */
static int grow(void **entries, uint32_t n, size_t entry_bytes)
{
        bool full = n == 0 || (n >= ENTRIES_MIN && sl_is_power_of_two(n));
        size_t capacity = n < ENTRIES_MIN ? ENTRIES_MIN : (size_t)n * 2;
        void *moved;

        if (n >= ENTRIES_MAX)
                return -E2BIG;
        if (!full)
                return 0;
        moved = realloc(*entries, capacity * entry_bytes);
        if (!moved)
                return -ENOMEM;
        *entries = moved;
        return 0;
}

/* NULL when there is no memory. */
static const char *copy_name(struct sl_graph *graph, const char *name)
{
        size_t length = name ? strlen(name) : 0;
        char *copy = length ? sl_graph_alloc(graph, length + 1) : NULL;

        if (!length)
                return "";
        return copy ? memcpy(copy, name, length) : NULL;
}

static int set_name(struct sl_graph *graph, const char *name, const char **target)
{
        const char *copy = copy_name(graph, name);

        if (!copy)
                return -ENOMEM;
        *target = copy;
        return 0;
}

int sl_graph_rename(struct sl_graph *graph, const char *name)
{
        return set_name(graph, name, &graph->name);
}

int sl_graph_rename_value(struct sl_graph *graph, uint32_t value, const char *name)
{
        return set_name(graph, name, &graph->values[value].name);
}

int sl_graph_add_value(
        struct sl_graph *graph, const char *name, enum sl_value_kind kind, const struct sl_tensor *tensor, uint32_t *ret_value)
{
        /* The tensor may be that of another value, which moves when the array grows. */
        struct sl_value value = {.kind = kind, .tensor = *tensor};
        int result = set_name(graph, name, &value.name);

        if (result == 0)
                result = grow((void **)&graph->values, graph->n_values, sizeof(*graph->values));
        if (result < 0)
                return result;
        graph->values[graph->n_values] = value;
        *ret_value = graph->n_values++;
        return 0;
}

int sl_graph_add_constant(
        struct sl_graph *graph, const char *name, const struct sl_tensor *tensor, const void *data, uint32_t *ret_value)
{
        int result = sl_graph_add_value(graph, name, SL_VALUE_CONSTANT, tensor, ret_value);

        if (result < 0)
                return result;
        graph->values[*ret_value].data = data;
        graph->values[*ret_value].data_bytes = sl_tensor_bytes(tensor);
        return 0;
}

static uint32_t *copy_indices(struct sl_graph *graph, const uint32_t *indices, uint32_t n)
{
        uint32_t *copy = sl_graph_alloc(graph, n * sizeof(*copy));

        if (copy && n)
                memcpy(copy, indices, n * sizeof(*copy));
        return copy;
}

int sl_graph_add_node(struct sl_graph *graph, uint32_t op, const char *name, const uint32_t *inputs, uint32_t n_inputs,
        const uint32_t *outputs, uint32_t n_outputs, uint32_t *ret_node)
{
        struct sl_node node = {.op = op, .n_inputs = n_inputs, .n_outputs = n_outputs};
        int result;

        if (n_inputs > SL_NODE_INPUTS_MAX || n_outputs > SL_NODE_OUTPUTS_MAX)
                return -E2BIG;
        node.name = copy_name(graph, name);
        node.inputs = copy_indices(graph, inputs, n_inputs);
        node.outputs = copy_indices(graph, outputs, n_outputs);
        result = node.name && node.inputs && node.outputs ? grow((void **)&graph->nodes, graph->n_nodes, sizeof(*graph->nodes))
                                                          : -ENOMEM;
        if (result < 0)
                return result;
        graph->nodes[graph->n_nodes] = node;
        *ret_node = graph->n_nodes++;
        return 0;
}

int sl_graph_set_inputs(struct sl_graph *graph, uint32_t node, const uint32_t *inputs, uint32_t n_inputs)
{
        uint32_t *copy;

        if (n_inputs > SL_NODE_INPUTS_MAX)
                return -E2BIG;
        copy = copy_indices(graph, inputs, n_inputs);
        if (!copy)
                return -ENOMEM;
        graph->nodes[node].inputs = copy;
        graph->nodes[node].n_inputs = n_inputs;
        for (uint32_t i = 0; i < n_inputs; i++)
                sl_graph_index_use(graph->index, inputs[i], node);
        return 0;
}

void sl_graph_set_input(struct sl_graph *graph, uint32_t node, uint32_t input, uint32_t value)
{
        graph->nodes[node].inputs[input] = value;
        sl_graph_index_use(graph->index, value, node);
}

void sl_graph_set_output(struct sl_graph *graph, uint32_t node, uint32_t output, uint32_t value)
{
        graph->nodes[node].outputs[output] = value;
        sl_graph_index_make(graph->index, value, node);
}

int sl_graph_add_body(struct sl_graph *graph, uint32_t index, struct sl_graph *body)
{
        struct sl_node *node = &graph->nodes[index];
        struct sl_graph **bodies = sl_graph_alloc(graph, (node->n_bodies + 1) * sizeof(*bodies));

        if (!bodies)
                return -ENOMEM;
        for (uint32_t i = 0; i < node->n_bodies; i++)
                bodies[i] = node->bodies[i];
        bodies[node->n_bodies++] = body;
        node->bodies = bodies;
        return 0;
}

void *sl_graph_alloc(struct sl_graph *graph, uint64_t bytes)
{
        return sl_graph_arena_alloc(graph->arena, bytes);
}

int sl_graph_describe(const struct sl_graph *graph, uint32_t node, struct sl_node_desc *ret_desc)
{
        const struct sl_node *from = &graph->nodes[node];

        if (from->n_inputs > SL_NODE_INPUTS_MAX || from->n_outputs > SL_NODE_OUTPUTS_MAX)
                return -E2BIG;
        memset(ret_desc, 0, sizeof(*ret_desc)); /* what lies between its fields, too: equal nodes are found by their bytes */
        ret_desc->op = from->op;
        ret_desc->n_inputs = from->n_inputs;
        ret_desc->n_outputs = from->n_outputs;
        ret_desc->attrs = from->attrs;
        ret_desc->epilogue = from->epilogue;
        for (uint32_t i = 0; i < from->n_inputs; i++)
                if (from->inputs[i] != SL_VALUE_NONE)
                        ret_desc->inputs[i] = graph->values[from->inputs[i]].tensor;
        for (uint32_t i = 0; i < from->n_outputs; i++)
                if (from->outputs[i] != SL_VALUE_NONE)
                        ret_desc->outputs[i] = graph->values[from->outputs[i]].tensor;
        return 0;
}

static void replace(uint32_t *indices, uint32_t n, uint32_t from, uint32_t to)
{
        for (uint32_t i = 0; i < n; i++)
                if (indices[i] == from)
                        indices[i] = to;
}

static void replace_inputs_of(struct sl_graph *graph, uint32_t node, uint32_t from, uint32_t to)
{
        if (graph->nodes[node].dead || !sl_node_uses(&graph->nodes[node], from))
                return;
        replace(graph->nodes[node].inputs, graph->nodes[node].n_inputs, from, to);
        sl_graph_index_use(graph->index, to, node);
}

void sl_graph_replace_inputs(struct sl_graph *graph, uint32_t from, uint32_t to)
{
        uint32_t state = 0, user;

        if (!sl_graph_index_ready(graph->index, graph)) {
                for (uint32_t i = 0; i < graph->n_nodes; i++)
                        replace_inputs_of(graph, i, from, to);
                return;
        }
        while ((user = sl_graph_index_next_user(graph->index, from, &state)) != SL_VALUE_NONE)
                replace_inputs_of(graph, user, from, to);
}

void sl_graph_replace_uses(struct sl_graph *graph, uint32_t from, uint32_t to)
{
        sl_graph_replace_inputs(graph, from, to);
        replace(graph->outputs, graph->n_outputs, from, to);
}

bool sl_graph_is_output(const struct sl_graph *graph, uint32_t value)
{
        for (uint32_t i = 0; i < graph->n_outputs; i++)
                if (graph->outputs[i] == value)
                        return true;
        return false;
}

bool sl_node_uses(const struct sl_node *node, uint32_t value)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i] == value)
                        return true;
        return false;
}

/* Counts @node among the users if it is one that is not there yet. */
static uint32_t count_user(
        const struct sl_graph *graph, uint32_t value, uint32_t node, uint32_t *ret_users, uint32_t room, uint32_t n)
{
        if (graph->nodes[node].dead || !sl_node_uses(&graph->nodes[node], value))
                return n;
        for (uint32_t i = 0; i < n && i < room; i++)
                if (ret_users[i] == node)
                        return n;
        if (n < room)
                ret_users[n] = node;
        return n + 1;
}

uint32_t sl_graph_users(const struct sl_graph *graph, uint32_t value, uint32_t *ret_users, uint32_t room)
{
        uint32_t n = 0, state = 0, user;

        if (!sl_graph_index_ready(graph->index, graph)) {
                for (uint32_t i = 0; i < graph->n_nodes; i++)
                        n = count_user(graph, value, i, ret_users, room, n);
                return n;
        }
        while ((user = sl_graph_index_next_user(graph->index, value, &state)) != SL_VALUE_NONE)
                n = count_user(graph, value, user, ret_users, room, n);
        return n;
}

uint32_t sl_graph_only_user(const struct sl_graph *graph, uint32_t value)
{
        uint32_t user;

        if (sl_graph_is_output(graph, value))
                return SL_VALUE_NONE;
        return sl_graph_users(graph, value, &user, 1) == 1 ? user : SL_VALUE_NONE;
}

static bool makes(const struct sl_graph *graph, uint32_t index, uint32_t value)
{
        const struct sl_node *node = &graph->nodes[index];

        for (uint32_t k = 0; k < node->n_outputs && !node->dead; k++)
                if (node->outputs[k] == value)
                        return true;
        return false;
}

uint32_t sl_graph_producer(const struct sl_graph *graph, uint32_t value)
{
        bool ready;
        uint32_t hint;

        if (value == SL_VALUE_NONE || graph->values[value].kind != SL_VALUE_COMPUTED)
                return SL_VALUE_NONE;
        ready = sl_graph_index_ready(graph->index, graph);
        hint = ready ? sl_graph_index_maker(graph->index, value) : SL_VALUE_NONE;
        if (hint != SL_VALUE_NONE && makes(graph, hint, value))
                return hint;
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                if (!makes(graph, i, value))
                        continue;
                sl_graph_index_make(graph->index, value, i);
                return i;
        }
        return SL_VALUE_NONE;
}

bool sl_graph_is_constant(const struct sl_graph *graph, uint32_t value)
{
        return value != SL_VALUE_NONE && graph->values[value].kind == SL_VALUE_CONSTANT;
}

const void *sl_graph_constant(const struct sl_graph *graph, uint32_t value)
{
        const struct sl_value *constant = sl_graph_is_constant(graph, value) ? &graph->values[value] : NULL;
        const void *aligned;

        if (!constant || (uintptr_t)constant->data % sl_dtype_bytes(constant->tensor.dtype) == 0)
                return constant ? constant->data : NULL;
        aligned = sl_graph_arena_align(graph->arena, constant->data, constant->data_bytes);
        return aligned ? aligned : constant->data;
}

void sl_graph_drop_copies(const struct sl_graph *graph)
{
        sl_graph_arena_drop_copies(graph->arena);
}

bool sl_graph_draws(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && (sl_op_traits(graph->nodes[i].op) & SL_OP_DRAWS))
                        return true;
        return false;
}

bool sl_graph_has_bodies(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && graph->nodes[i].n_bodies)
                        return true;
        return false;
}

void sl_graph_moved_nodes(struct sl_graph *graph)
{
        sl_graph_index_free(graph->index);
        graph->index = sl_graph_index_new();
}

struct sl_node *sl_graph_take_nodes(struct sl_graph *graph, uint32_t *ret_n_nodes)
{
        struct sl_node *nodes = graph->nodes;

        *ret_n_nodes = graph->n_nodes;
        graph->nodes = NULL;
        graph->n_nodes = 0;
        sl_graph_moved_nodes(graph);
        return nodes;
}

static int copy_bodies(struct sl_graph *copy, uint32_t index, const struct sl_node *node)
{
        int result = 0;

        for (uint32_t i = 0; i < node->n_bodies && result == 0; i++) {
                struct sl_graph *body;

                result = sl_graph_copy(node->bodies[i], &body);
                if (result < 0)
                        return result;
                result = sl_graph_add_body(copy, index, body);
                if (result < 0)
                        sl_graph_free(body);
        }
        return result;
}

int sl_graph_copy(const struct sl_graph *graph, struct sl_graph **ret_graph)
{
        struct sl_graph *copy;
        uint32_t ignored;
        int result = sl_graph_new(&copy);

        if (result < 0)
                return result;
        copy->name = graph->name;
        copy->opset = graph->opset;
        copy->ir_version = graph->ir_version;
        for (uint32_t i = 0; i < graph->n_values && result == 0; i++) {
                result = sl_graph_add_value(copy, NULL, graph->values[i].kind, &graph->values[i].tensor, &ignored);
                if (result == 0)
                        copy->values[i] = graph->values[i];
        }
        for (uint32_t i = 0; i < graph->n_nodes && result == 0; i++) {
                const struct sl_node *node = &graph->nodes[i];

                result = sl_graph_add_node(
                        copy, node->op, NULL, node->inputs, node->n_inputs, node->outputs, node->n_outputs, &ignored);
                if (result < 0)
                        break;
                copy->nodes[i].name = node->name;
                copy->nodes[i].dead = node->dead;
                copy->nodes[i].attrs = node->attrs;
                copy->nodes[i].epilogue = node->epilogue;
                result = copy_bodies(copy, i, node);
        }
        if (result == 0)
                result = sl_graph_set_ports(copy, graph->inputs, graph->n_inputs, graph->outputs, graph->n_outputs);
        if (result < 0) {
                sl_graph_free(copy);
                return result;
        }
        *ret_graph = copy;
        return 0;
}

int sl_graph_set_ports(
        struct sl_graph *graph, const uint32_t *inputs, uint32_t n_inputs, const uint32_t *outputs, uint32_t n_outputs)
{
        uint32_t *in = copy_indices(graph, inputs, n_inputs), *out = copy_indices(graph, outputs, n_outputs);

        if (!in || !out)
                return -ENOMEM;
        graph->inputs = in;
        graph->n_inputs = n_inputs;
        graph->outputs = out;
        graph->n_outputs = n_outputs;
        return 0;
}

const char *sl_graph_labels_of(const struct sl_graph *graph, const char *port)
{
        const struct sl_graph_labels *labels = graph->labels;

        while (labels && strcmp(labels->port, port))
                labels = labels->next;
        return labels ? labels->text : "";
}
