/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: Joo Seong Jeong, Soojeong Kim, Gyeong-In Yu, Yunseong Lee, Byung-Gon Chun, Accelerating Multi-Model Inference by Merging
 * DNNs of Different Weights, 2020, Algorithm 1, with three corrections that its text states: line 6 takes operators without
 * incoming edges; an operator is taken once, when all its parents are merged; and ties, as well as operators without parents that
 * do not care, take Batch. Lines 18 to 21 and 29 to 37, the edges and the reshapes between unequal dimensions, are what sl_merge()
 * does with any assignment. Ours: where lanes are to be neighbours Channel is INNER (weave.h).
 */
#include "base/cleanup.h"
#include "merge/assign.h"
#include "merge/prices.h"
#include "merge/rows.h"

#include <errno.h>
#include <stdlib.h>

/* The common nodes as the paper's V and E. */
struct traversal {
        const struct sl_prices *prices;
        const struct sl_graph *graph;
        uint32_t *queue, head, tail;
        uint32_t *waits;        /* of each common node: parents that are not merged yet */
        uint32_t *maker;        /* of each value: the common node that makes it, or SL_VALUE_NONE */
        uint32_t *first, *next; /* edges (parent, child): chains of children */
        uint32_t *children;
        uint32_t *forms; /* d, as it is found */
};

static const struct sl_node *node_of(const struct traversal *t, uint32_t common)
{
        return &t->graph->nodes[t->prices->match->common[common]];
}

static uint32_t parent_of(const struct traversal *t, uint32_t common, uint32_t input)
{
        uint32_t value = node_of(t, common)->inputs[input];

        return value == SL_VALUE_NONE ? SL_VALUE_NONE : t->maker[value];
}

/* Channels are the axis along which the node normalizes or convolves. */
static uint32_t form_of(const struct traversal *t, uint32_t common, enum sl_merge_dimension dimension)
{
        const struct sl_node *node = node_of(t, common);
        uint32_t rank = t->graph->values[node->outputs[0]].tensor.shape.rank;

        if (dimension == SL_MERGE_APART)
                return SL_FORM_APART;
        if (dimension != SL_MERGE_CHANNEL)
                return SL_FORM_LANE;
        if (node->op == SL_OP_LAYER_NORM)
                return rank > 1 ? rank - 1 : 1;
        return t->prices->neighbours ? SL_FORM_INNER : 1;
}

/* Line 26. Parents that stay apart have no dimension. */
static uint32_t most_frequent(const struct traversal *t, uint32_t common)
{
        uint32_t counts[SL_FORM_COUNT] = {0}, best = SL_FORM_LANE;

        for (uint32_t i = 0; i < node_of(t, common)->n_inputs; i++) {
                uint32_t parent = parent_of(t, common, i);

                if (parent != SL_VALUE_NONE && t->forms[parent] != SL_FORM_APART)
                        counts[t->forms[parent]]++;
        }
        for (uint32_t form = 0; form < SL_FORM_COUNT; form++)
                if (counts[form] > counts[best])
                        best = form;
        return best;
}

/* Lines 15 and 23 to 27. */
static uint32_t merge(const struct traversal *t, uint32_t common)
{
        enum sl_merge_dimension dimension = sl_merge_row(node_of(t, common)->op)->dimension;
        uint32_t wanted = dimension == SL_MERGE_DONT_CARE ? most_frequent(t, common) : form_of(t, common, dimension);
        const uint32_t others[] = {
                wanted, wanted == SL_FORM_INNER && dimension == SL_MERGE_CHANNEL ? 1 : SL_FORM_LANE, SL_FORM_LANE, 1};

        for (uint32_t i = 0; i < sizeof(others) / sizeof(*others); i++)
                if (sl_prices_find(t->prices, common, others[i]))
                        return others[i];
        return SL_FORM_APART;
}

/* Lines 4 to 6, and the edges. */
static void start(struct traversal *t)
{
        uint32_t n_edges = 0;

        for (uint32_t c = 0; c < t->prices->match->n_common; c++)
                for (uint32_t i = 0; i < node_of(t, c)->n_outputs; i++)
                        if (node_of(t, c)->outputs[i] != SL_VALUE_NONE)
                                t->maker[node_of(t, c)->outputs[i]] = c;
        for (uint32_t c = 0; c < t->prices->match->n_common; c++) {
                for (uint32_t i = 0; i < node_of(t, c)->n_inputs; i++) {
                        uint32_t parent = parent_of(t, c, i);

                        if (parent == SL_VALUE_NONE)
                                continue;
                        t->children[n_edges] = c;
                        t->next[n_edges] = t->first[parent];
                        t->first[parent] = n_edges++;
                        t->waits[c]++;
                }
                if (!t->waits[c])
                        t->queue[t->tail++] = c;
        }
}

/* Lines 8 to 41. */
static void traverse(struct traversal *t)
{
        while (t->head < t->tail) {
                uint32_t common = t->queue[t->head++];

                t->forms[common] = merge(t, common);
                for (uint32_t e = t->first[common]; e != SL_VALUE_NONE; e = t->next[e])
                        if (!--t->waits[t->children[e]])
                                t->queue[t->tail++] = t->children[e];
        }
}

static uint64_t count_edges(const struct sl_prices *prices)
{
        uint64_t n = 0;

        for (uint32_t c = 0; c < prices->match->n_common; c++)
                n += prices->match->graphs[0]->nodes[prices->match->common[c]].n_inputs;
        return n;
}

int sl_assign_algorithm_1(const struct sl_prices *prices, uint32_t *ret_forms)
{
        const struct sl_graph *graph = prices->match->graphs[0];
        uint64_t n = prices->match->n_common + 1ull, n_edges = count_edges(prices) + 1;
        SL_CLEANUP(sl_cleanup_free) uint32_t *room = malloc((3 * n + 2 * n_edges + graph->n_values) * sizeof(*room));
        struct traversal t = {.prices = prices, .graph = graph, .forms = ret_forms};

        if (!room)
                return -ENOMEM;
        for (uint64_t i = 0; i < 3 * n + 2 * n_edges + graph->n_values; i++)
                room[i] = SL_VALUE_NONE;
        t.queue = room;
        t.waits = t.queue + n;
        t.first = t.waits + n;
        t.next = t.first + n;
        t.children = t.next + n_edges;
        t.maker = t.children + n_edges;
        for (uint64_t i = 0; i < n; i++)
                t.waits[i] = 0;
        start(&t);
        traverse(&t);
        return 0;
}
