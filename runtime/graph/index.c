/* SPDX-License-Identifier: Apache-2.0 */
#include "index.h"

#include "graph.h"

#include <stdlib.h>

#define ENTRIES_MIN 64

struct use {
        uint32_t node;
        uint32_t next; /* 1 + index of the next use of this value; 0: none */
};

struct value_entry {
        uint32_t maker;
        uint32_t first_use; /* as next */
};

struct sl_graph_index {
        struct value_entry *values;
        struct use *uses;
        uint32_t n_values, values_room, n_uses, uses_room;
        uint32_t n_nodes; /* that have been seen */
        bool failed;      /* there was no memory: never ready again */
};

struct sl_graph_index *sl_graph_index_new(void)
{
        return calloc(1, sizeof(struct sl_graph_index));
}

struct sl_graph_index *sl_graph_index_free(struct sl_graph_index *index)
{
        if (!index)
                return NULL;
        free(index->values);
        free(index->uses);
        free(index);
        return NULL;
}

static bool grow(void **entries, uint32_t *room, uint32_t wanted, size_t entry_bytes)
{
        uint32_t grown = *room ? *room : ENTRIES_MIN;
        void *moved;

        while (grown < wanted)
                grown = grown > UINT32_MAX / 2 ? UINT32_MAX : grown * 2;
        if (grown == *room)
                return true;
        moved = reallocarray(*entries, grown, entry_bytes);
        if (!moved)
                return false;
        *entries = moved;
        *room = grown;
        return true;
}

static bool know_values(struct sl_graph_index *index, uint32_t n)
{
        if (!grow((void **)&index->values, &index->values_room, n, sizeof(*index->values)))
                return false;
        for (; index->n_values < n; index->n_values++)
                index->values[index->n_values] = (struct value_entry){.maker = SL_VALUE_NONE};
        return true;
}

static void add_use(struct sl_graph_index *index, uint32_t value, uint32_t node)
{
        if (index->failed || value == SL_VALUE_NONE)
                return;
        if (!know_values(index, value >= index->n_values ? value + 1 : index->n_values) || index->n_uses == UINT32_MAX - 1 ||
                !grow((void **)&index->uses, &index->uses_room, index->n_uses + 1, sizeof(*index->uses))) {
                index->failed = true;
                return;
        }
        index->uses[index->n_uses] = (struct use){.node = node, .next = index->values[value].first_use};
        index->values[value].first_use = ++index->n_uses;
}

bool sl_graph_index_ready(struct sl_graph_index *index, const struct sl_graph *graph)
{
        if (!index || index->failed)
                return false;
        index->failed = !know_values(index, graph->n_values);
        for (; index->n_nodes < graph->n_nodes && !index->failed; index->n_nodes++) {
                const struct sl_node *node = &graph->nodes[index->n_nodes];

                for (uint32_t i = 0; i < node->n_inputs; i++)
                        add_use(index, node->inputs[i], index->n_nodes);
                for (uint32_t i = 0; i < node->n_outputs; i++)
                        if (node->outputs[i] != SL_VALUE_NONE && !node->dead)
                                index->values[node->outputs[i]].maker = index->n_nodes;
        }
        return !index->failed;
}

void sl_graph_index_use(struct sl_graph_index *index, uint32_t value, uint32_t node)
{
        if (index && node < index->n_nodes)
                add_use(index, value, node);
}

void sl_graph_index_make(struct sl_graph_index *index, uint32_t value, uint32_t node)
{
        if (index && node < index->n_nodes && value < index->n_values)
                index->values[value].maker = node;
}

uint32_t sl_graph_index_maker(const struct sl_graph_index *index, uint32_t value)
{
        return index->values[value].maker;
}

uint32_t sl_graph_index_next_user(const struct sl_graph_index *index, uint32_t value, uint32_t *state)
{
        uint32_t at = *state ? index->uses[*state - 1].next : index->values[value].first_use;

        *state = at;
        return at ? index->uses[at - 1].node : SL_VALUE_NONE;
}
