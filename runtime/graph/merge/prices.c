/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/prices.h"

#include "base/cleanup.h"
#include "control.h"
#include "merge/rows.h"
#include "parameter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SLOTS ((uint64_t)SL_PRICED_FORMS_MAX * SL_PRICED_FORMS_MAX)

SL_DEFINE_CLEANUP(struct sl_prices *, sl_prices_free)

uint32_t sl_prices_slot(uint32_t form)
{
        return form == SL_FORM_LANE ? 0 : form == SL_FORM_APART ? 1 : form == 1 ? 2 : form == SL_FORM_INNER ? 4 : 3;
}

/* False: it is none that is computed. */
static bool describe(const struct sl_graph *graph, uint32_t index, struct sl_node_desc *ret_desc, uint64_t *ret_constants)
{
        const struct sl_node *node = &graph->nodes[index];

        if (node->dead || (sl_op_traits(node->op) & SL_OP_VIEW) || sl_graph_describe(graph, index, ret_desc) < 0)
                return false;
        *ret_constants = 0;
        for (uint32_t i = 0; i < node->n_inputs && i < 64; i++)
                if (sl_graph_is_constant(graph, node->inputs[i]))
                        *ret_constants |= 1ull << i;
        return true;
}

/* What one node of @graph costs. */
static double node_seconds(const struct sl_prices *prices, const struct sl_graph *graph, uint32_t index)
{
        struct sl_node_desc desc;
        uint64_t constants;

        return describe(graph, index, &desc, &constants) ? prices->costs->seconds(prices->costs->context, &desc, constants) : 0;
}

static double rehearsed_seconds(const struct sl_prices *prices)
{
        const struct sl_graph *graph = prices->weave->graph;
        double seconds = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                seconds += node_seconds(prices, graph, i);
        return seconds;
}

/* Of what stands for @node of all lanes. */
static uint64_t rehearsed_copies(const struct sl_prices *prices, uint32_t node)
{
        const struct sl_graph *graph = prices->weave->graph;
        struct sl_node_desc desc, single;
        uint64_t constants, bytes = 0;

        if (!describe(prices->sized, node, &single, &constants))
                return 0;
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (describe(graph, i, &desc, &constants) && constants)
                        bytes += prices->copies->bytes(prices->copies->context, &desc, &single, constants);
        return bytes;
}

/* Graphs of one architecture have constants alike: those of the first count for all. */
static void bound_copies(struct sl_prices *prices)
{
        struct sl_node_desc desc;
        uint64_t constants;

        for (uint32_t i = 0; i < prices->sized->n_nodes; i++)
                if (describe(prices->sized, i, &desc, &constants) && constants)
                        prices->lanes_bytes +=
                                prices->match->n_graphs * prices->copies->bytes(prices->copies->context, &desc, NULL, constants);
        prices->copies_max = (uint64_t)(prices->copies->share_max * (double)prices->lanes_bytes);
        if (prices->copies_max < prices->copies->lane_bytes_max * prices->match->n_graphs)
                prices->copies_max = prices->copies->lane_bytes_max * prices->match->n_graphs;
}

static bool is_known(const struct sl_graph *graph, const uint32_t *values, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                for (uint32_t d = 0; values[i] != SL_VALUE_NONE && d < graph->values[values[i]].tensor.shape.rank; d++)
                        if (graph->values[values[i]].tensor.shape.dims[d] == SL_DIM_UNKNOWN)
                                return false;
        return true;
}

/* Its shapes are known, up to the batch, and it is given its lanes by something that is computed. */
static bool may_merge(const struct sl_graph *graph, const struct sl_node *node)
{
        bool computed = false;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                computed =
                        computed || (node->inputs[i] != SL_VALUE_NONE && graph->values[node->inputs[i]].kind != SL_VALUE_CONSTANT);
        return computed && !node->n_bodies && !sl_parameters_pending(node) && !(sl_op_traits(node->op) & SL_OP_COUNTS) &&
               node->n_outputs && node->outputs[0] != SL_VALUE_NONE && is_known(graph, node->inputs, node->n_inputs) &&
               is_known(graph, node->outputs, node->n_outputs);
}

static sl_weave_node *weaver_of(const struct sl_node *node, uint32_t form)
{
        const struct sl_merge_row *row = sl_merge_row(node->op);

        return form == SL_FORM_LANE ? row->lane : row->channel;
}

/* 1: it can be in that form; 0: not; -errno. */
static int rehearse(struct sl_prices *prices, uint32_t node, uint32_t form, const struct sl_graph *sizes)
{
        sl_weave_node *weave_node = weaver_of(&prices->match->graphs[0]->nodes[node], form);
        int r = weave_node ? sl_weave_rehearse(prices->weave) : -ENOTSUP;

        prices->weave->sizes = sizes;
        if (r == 0)
                r = weave_node(prices->weave, node, form);
        return r == 0 ? 1 : r == -ENOMEM ? r : 0;
}

static int price_form(struct sl_prices *prices, uint32_t common, uint32_t form)
{
        struct sl_priced_node *priced = &prices->nodes[common];
        uint32_t node = prices->match->common[common];
        struct sl_priced_form made = {.form = form};
        int r = rehearse(prices, node, form, prices->match->graphs[0]);

        /* What is folded away, or needed by nobody, at that size costs nothing. */
        if (r > 0 && prices->sized && !prices->sized->nodes[node].dead) {
                r = rehearse(prices, node, form, prices->sized);
                made.seconds = prices->costs ? rehearsed_seconds(prices) : 0;
                made.copied_bytes = prices->copies ? rehearsed_copies(prices, node) : 0;
        }
        if (r <= 0 || !isfinite(made.seconds))
                return r < 0 ? r : 0;
        priced->forms[priced->n_forms++] = made;
        return 0;
}

static double apart_seconds(const struct sl_prices *prices, uint32_t node)
{
        return prices->costs ? prices->match->n_graphs * node_seconds(prices, prices->sized, node) : 0;
}

static int price_node(struct sl_prices *prices, uint32_t common)
{
        const struct sl_graph *graph = prices->match->graphs[0];
        uint32_t node = prices->match->common[common], rank;
        int r;

        prices->nodes[common] = (struct sl_priced_node){.n_forms = 1, .forms = {{SL_FORM_APART, apart_seconds(prices, node), 0}}};
        if (!may_merge(graph, &graph->nodes[node]))
                return 0;
        rank = graph->values[graph->nodes[node].outputs[0]].tensor.shape.rank;
        r = price_form(prices, common, SL_FORM_LANE);
        if (r == 0 && rank > 1)
                r = price_form(prices, common, 1);
        if (r == 0 && rank > 2)
                r = price_form(prices, common, rank - 1);
        /* Of images, and what they are flattened to. */
        if (r == 0 && rank > 1 && graph->nodes[node].inputs[0] != SL_VALUE_NONE &&
                graph->values[graph->nodes[node].inputs[0]].tensor.shape.rank == 4)
                r = price_form(prices, common, SL_FORM_INNER);
        return r;
}

int sl_prices_new(const struct sl_match *match, const struct sl_merge_costs *costs, const struct sl_merge_copies *copies,
        struct sl_error *error, struct sl_prices **ret_prices)
{
        SL_CLEANUP(sl_cleanup_sl_prices_free) struct sl_prices *prices = calloc(1, sizeof(*prices));
        uint64_t n_turns = SLOTS * (match->graphs[0]->n_values + 1ull);
        int r = prices ? 0 : -ENOMEM;

        if (r < 0)
                return r;
        prices->match = match;
        prices->costs = costs;
        prices->copies = copies;
        prices->nodes = calloc(match->n_common + 1u, sizeof(*prices->nodes));
        prices->turns = malloc(n_turns * sizeof(*prices->turns));
        if (!prices->nodes || !prices->turns)
                return -ENOMEM;
        for (uint64_t i = 0; i < n_turns; i++)
                prices->turns[i] = -1;
        r = sl_weave_new(match, NULL, NULL, &prices->weave);
        if (r == 0 && (costs || copies))
                r = sl_graph_specialise(match->graphs[0], costs ? costs->batch : 1, &prices->sized, error);
        if (r == 0 && copies)
                bound_copies(prices);
        for (uint32_t i = 0; i < match->n_common && r == 0; i++)
                r = price_node(prices, i);
        if (r == 0)
                *ret_prices = sl_take(prices);
        return r;
}

struct sl_prices *sl_prices_free(struct sl_prices *prices)
{
        if (!prices)
                return NULL;
        sl_weave_free(prices->weave);
        sl_graph_free(prices->sized);
        free(prices->nodes);
        free(prices->turns);
        free(prices);
        return NULL;
}

const struct sl_priced_form *sl_prices_find(const struct sl_prices *prices, uint32_t common, uint32_t form)
{
        const struct sl_priced_node *node = &prices->nodes[common];

        for (uint32_t i = 0; i < node->n_forms; i++)
                if (node->forms[i].form == form)
                        return &node->forms[i];
        return NULL;
}

/* Lanes that follow each other in the channels become neighbours, or no longer are: a shuffle that costs more than either gains. */
static bool shuffles(uint32_t from, uint32_t to)
{
        return (from == SL_FORM_INNER && to == 1) || (from == 1 && to == SL_FORM_INNER);
}

static double ask_turn(struct sl_prices *prices, uint32_t joint, uint32_t from, uint32_t to)
{
        if (shuffles(from, to))
                return INFINITY;
        prices->weave->sizes = prices->match->graphs[0];
        if (sl_weave_rehearse(prices->weave) < 0 || sl_weave_turn(prices->weave, joint, from, to) < 0)
                return INFINITY;
        if (!prices->costs)
                return 0;
        prices->weave->sizes = prices->sized;
        if (sl_weave_rehearse(prices->weave) < 0 || sl_weave_turn(prices->weave, joint, from, to) < 0)
                return INFINITY;
        return rehearsed_seconds(prices);
}

double sl_prices_turn(struct sl_prices *prices, uint32_t joint, uint32_t from, uint32_t to)
{
        float *turn = &prices->turns[joint * SLOTS + sl_prices_slot(from) * SL_PRICED_FORMS_MAX + sl_prices_slot(to)];

        if (*turn < 0)
                *turn = (float)ask_turn(prices, joint, from, to);
        return *turn;
}
