/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two stages. Each graph's nodes are aligned with those of the first by their signatures alone, as a line editor aligns two files:
 * in step while they are equal, and after a difference from the next place where WINDOW of them agree. Then one walk over the first
 * graph keeps the nodes that every other has, whose contents agree (a signature is only a hash), and whose inputs come from values
 * that belong together. Values of own nodes and inputs of the graphs belong together once a common node reads them in one place.
 */
#include "merge/match.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "graph.h"
#include "merge/architecture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW    3u
#define WHY_BYTES 192

SL_DEFINE_CLEANUP(struct sl_match *, sl_match_free)

/* The live nodes of a graph and their signatures; those behind the end count as 0. */
struct sequence {
        uint32_t n;
        uint32_t *nodes;
        uint64_t *signatures;
};

/* Windows of the first graph: chains of places in ascending order, found by open addressing. */
struct places {
        uint32_t room;
        uint64_t *windows;
        uint32_t *first, *next; /* place + 1; 0 ends a chain */
};

struct matcher {
        struct sl_match *match;
        struct sequence *sequences; /* of each graph */
        uint32_t **partners;        /* [graph][place in the first]: place in the graph, or SL_VALUE_NONE */
        struct places places;
        uint32_t *ends; /* [graph]: the place behind its last common node */
        bool open;      /* the last node of the first graph was its own */
};

static uint32_t *numbers_new(uint64_t n)
{
        uint32_t *numbers = malloc((n + 1) * sizeof(*numbers));

        if (numbers)
                memset(numbers, 0xff, (n + 1) * sizeof(*numbers));
        return numbers;
}

static int read_sequence(const struct sl_graph *graph, struct sequence *sequence)
{
        int r = 0;

        sequence->nodes = numbers_new(graph->n_nodes);
        sequence->signatures = calloc(graph->n_nodes + WINDOW + 1ull, sizeof(*sequence->signatures));
        if (!sequence->nodes || !sequence->signatures)
                return -ENOMEM;
        for (uint32_t i = 0; i < graph->n_nodes && r == 0; i++) {
                if (graph->nodes[i].dead)
                        continue;
                sequence->nodes[sequence->n] = i;
                r = sl_architecture_node(graph, i, &sequence->signatures[sequence->n++]);
        }
        return r;
}

static uint64_t window_at(const struct sequence *sequence, uint32_t place)
{
        uint64_t window = 1;

        for (uint32_t i = 0; i < WINDOW; i++)
                window = (window ^ sequence->signatures[place + i]) * 0x9e3779b97f4a7c15u;
        return window ^ window >> 32;
}

static uint32_t slot_of(const struct places *places, uint64_t window)
{
        uint32_t at = (uint32_t)window & (places->room - 1);

        while (places->first[at] && places->windows[at] != window)
                at = (at + 1) & (places->room - 1);
        return at;
}

/* From the last place to the first, so that chains ascend. */
static int find_places(const struct sequence *sequence, struct places *places)
{
        places->room = 64;
        while (places->room < 2 * sequence->n)
                places->room *= 2;
        places->windows = calloc(places->room, sizeof(*places->windows));
        places->first = calloc(places->room, sizeof(*places->first));
        places->next = calloc(sequence->n + 1u, sizeof(*places->next));
        if (!places->windows || !places->first || !places->next)
                return -ENOMEM;
        for (uint32_t i = sequence->n; i-- > 0;) {
                uint64_t window = window_at(sequence, i);
                uint32_t at = slot_of(places, window);

                places->windows[at] = window;
                places->next[i] = places->first[at];
                places->first[at] = i + 1;
        }
        return 0;
}

/*
 * The first place from @from on that begins with the window, or SL_VALUE_NONE. Chains are cut as they are walked: @from only
 * grows while one graph is aligned.
 */
static uint32_t next_place(const struct places *places, uint32_t *heads, uint64_t window, uint32_t from)
{
        uint32_t at = slot_of(places, window), place = heads[at];

        while (place && place - 1 < from)
                place = places->next[place - 1];
        heads[at] = place;
        return place ? place - 1 : SL_VALUE_NONE;
}

static int align(struct matcher *m, uint32_t graph)
{
        const struct sequence *a = &m->sequences[0], *b = &m->sequences[graph];
        SL_CLEANUP(sl_cleanup_free) uint32_t *heads = malloc(m->places.room * sizeof(*heads));
        uint32_t i = 0, j = 0;

        if (!heads)
                return -ENOMEM;
        memcpy(heads, m->places.first, m->places.room * sizeof(*heads));
        while (i < a->n && j < b->n) {
                uint32_t place = i;

                if (a->signatures[i] != b->signatures[j]) {
                        place = next_place(&m->places, heads, window_at(b, j), i);
                        if (place == SL_VALUE_NONE) {
                                j++;
                                continue;
                        }
                }
                i = place;
                m->partners[graph][i++] = j++;
        }
        return 0;
}

static uint32_t value_at(const struct matcher *m, uint32_t graph, uint32_t place, uint32_t input)
{
        const struct sequence *sequence = &m->sequences[graph];

        return m->match->graphs[graph]->nodes[sequence->nodes[place]].inputs[input];
}

/* Value @there of the graph stands, or may stand from now on, for value @here of the first. */
static bool belongs(const struct matcher *m, uint32_t graph, uint32_t here, uint32_t there)
{
        if (here == SL_VALUE_NONE || m->match->graphs[0]->values[here].kind == SL_VALUE_CONSTANT)
                return true;
        if (m->match->joint_of[graph][there] == here)
                return true;
        return m->match->joint_of[graph][there] == SL_VALUE_NONE && m->match->lane_of[graph][here] == SL_VALUE_NONE;
}

static void pair(struct matcher *m, uint32_t graph, uint32_t here, uint32_t there)
{
        if (here == SL_VALUE_NONE || m->match->graphs[0]->values[here].kind == SL_VALUE_CONSTANT)
                return;
        m->match->joint_of[graph][there] = here;
        m->match->lane_of[graph][here] = there;
}

/* One value at two inputs of one graph is one value in the others. */
static bool repeats_agree(const struct matcher *m, uint32_t graph, uint32_t here, uint32_t there, uint32_t n_inputs)
{
        for (uint32_t i = 0; i < n_inputs; i++)
                for (uint32_t k = 0; k < i; k++) {
                        uint32_t a = value_at(m, 0, here, i), b = value_at(m, graph, there, i);

                        if (a == SL_VALUE_NONE || m->match->graphs[0]->values[a].kind == SL_VALUE_CONSTANT)
                                continue;
                        if ((a == value_at(m, 0, here, k)) != (b == value_at(m, graph, there, k)))
                                return false;
                }
        return true;
}

static bool wiring_agrees(const struct matcher *m, uint32_t graph, uint32_t place, char *why, size_t room)
{
        uint32_t there = m->partners[graph][place];
        const struct sl_node *node = &m->match->graphs[0]->nodes[m->sequences[0].nodes[place]];
        char here[41], other[41];

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                uint32_t a = value_at(m, 0, place, i), b = value_at(m, graph, there, i);

                if (belongs(m, graph, a, b))
                        continue;
                snprintf(why, room, "input %u is \"%s\" here, \"%s\" there, which stands for another value", i,
                        sl_utf8_fit(m->match->graphs[0]->values[a].name, here, sizeof(here)),
                        sl_utf8_fit(m->match->graphs[graph]->values[b].name, other, sizeof(other)));
                return false;
        }
        if (repeats_agree(m, graph, place, there, node->n_inputs))
                return true;
        snprintf(why, room, "one value goes into two inputs here or there alone");
        return false;
}

static bool agrees(const struct matcher *m, uint32_t graph, uint32_t place, char *why, size_t room)
{
        uint32_t there = m->partners[graph][place];
        const struct sequence *b = &m->sequences[graph];
        uint32_t node = m->sequences[0].nodes[place];

        if (there != SL_VALUE_NONE)
                return sl_architecture_agrees(m->match->graphs[0], node, m->match->graphs[graph], b->nodes[there], why, room) &&
                       wiring_agrees(m, graph, place, why, room);
        if (m->ends[graph] >= b->n)
                snprintf(why, room, "there the nodes end");
        else if (sl_architecture_agrees(m->match->graphs[0], node, m->match->graphs[graph], b->nodes[m->ends[graph]], why, room))
                snprintf(why, room, "there it stands in another order");
        return false;
}

/* One break for a run of own nodes. */
static void note_break(struct matcher *m, uint32_t node, uint32_t graph, const char *why)
{
        struct sl_match *match = m->match;
        const struct sl_node *n = node == SL_VALUE_NONE ? NULL : &match->graphs[0]->nodes[node];
        struct sl_match_break *b = &match->breaks[match->n_breaks];
        char name[61];

        if (m->open)
                return;
        m->open = true;
        if (match->n_breaks++ >= SL_MATCH_BREAKS_MAX)
                return;
        *b = (struct sl_match_break){.node = node, .graph = graph};
        if (n)
                snprintf(b->text, sizeof(b->text), "node \"%s\" (%s): graph %u differs: %s",
                        sl_utf8_fit(n->name, name, sizeof(name)), sl_op_name(n->op), graph, why);
        else
                snprintf(b->text, sizeof(b->text), "behind the last node: graph %u %s", graph, why);
}

static void take(struct matcher *m, uint32_t place)
{
        struct sl_match *match = m->match;
        const struct sl_node *node = &match->graphs[0]->nodes[m->sequences[0].nodes[place]];

        for (uint32_t g = 0; g < match->n_graphs; g++) {
                uint32_t at = g ? m->partners[g][place] : place;
                const struct sl_node *there = &match->graphs[g]->nodes[m->sequences[g].nodes[at]];

                for (uint32_t i = 0; i < node->n_inputs; i++)
                        pair(m, g, node->inputs[i], there->inputs[i]);
                for (uint32_t i = 0; i < node->n_outputs; i++)
                        pair(m, g, node->outputs[i], there->outputs[i]);
                match->nodes[g][match->n_common] = m->sequences[g].nodes[at];
                m->ends[g] = at + 1;
        }
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i] != SL_VALUE_NONE)
                        match->joint[node->outputs[i]] = true;
        match->number_of[m->sequences[0].nodes[place]] = match->n_common;
        match->common[match->n_common++] = m->sequences[0].nodes[place];
        m->open = false;
}

static void walk(struct matcher *m)
{
        char why[WHY_BYTES];

        for (uint32_t i = 0; i < m->sequences[0].n; i++) {
                uint32_t g = 1;

                while (g < m->match->n_graphs && agrees(m, g, i, why, sizeof(why)))
                        g++;
                if (g == m->match->n_graphs)
                        take(m, i);
                else
                        note_break(m, m->sequences[0].nodes[i], g, why);
        }
        for (uint32_t g = 1; g < m->match->n_graphs; g++)
                if (m->ends[g] < m->sequences[g].n)
                        note_break(m, SL_VALUE_NONE, g, "has more nodes");
}

static int allocate(struct matcher *m)
{
        struct sl_match *match = m->match;
        const struct sl_graph *first = match->graphs[0];

        m->sequences = calloc(match->n_graphs, sizeof(*m->sequences));
        m->partners = calloc(match->n_graphs, sizeof(*m->partners));
        match->joint_of = calloc(match->n_graphs, sizeof(*match->joint_of));
        m->ends = calloc(match->n_graphs, sizeof(*m->ends));
        match->common = numbers_new(first->n_nodes);
        match->number_of = numbers_new(first->n_nodes);
        match->nodes = calloc(match->n_graphs, sizeof(*match->nodes));
        match->lane_of = calloc(match->n_graphs, sizeof(*match->lane_of));
        match->joint = calloc(first->n_values + 1u, sizeof(*match->joint));
        if (!m->sequences || !m->partners || !match->joint_of || !m->ends || !match->common || !match->number_of || !match->nodes ||
                !match->lane_of || !match->joint)
                return -ENOMEM;
        for (uint32_t g = 0; g < match->n_graphs; g++) {
                m->partners[g] = numbers_new(first->n_nodes);
                match->joint_of[g] = numbers_new(match->graphs[g]->n_values);
                match->nodes[g] = numbers_new(first->n_nodes);
                match->lane_of[g] = numbers_new(first->n_values);
                if (!m->partners[g] || !match->joint_of[g] || !match->nodes[g] || !match->lane_of[g])
                        return -ENOMEM;
        }
        return 0;
}

static void matcher_deinit(struct matcher *m)
{
        for (uint32_t g = 0; g < m->match->n_graphs; g++) {
                if (m->sequences) {
                        free(m->sequences[g].nodes);
                        free(m->sequences[g].signatures);
                }
                free(m->partners ? m->partners[g] : NULL);
        }
        free(m->sequences);
        free(m->partners);
        free(m->ends);
        free(m->places.windows);
        free(m->places.first);
        free(m->places.next);
}

static int run_matcher(struct matcher *m)
{
        int r = allocate(m);

        for (uint32_t g = 0; g < m->match->n_graphs && r == 0; g++)
                r = read_sequence(m->match->graphs[g], &m->sequences[g]);
        if (r == 0)
                r = find_places(&m->sequences[0], &m->places);
        for (uint32_t g = 1; g < m->match->n_graphs && r == 0; g++)
                r = align(m, g);
        if (r == 0)
                walk(m);
        return r;
}

int sl_match_new(const struct sl_graph *const *graphs, uint32_t n_graphs, struct sl_match **ret_match, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_match_free) struct sl_match *match = NULL;
        struct matcher m;
        int r;

        if (n_graphs < 2 || n_graphs > SL_MATCH_GRAPHS_MAX)
                return sl_error_set(error, EINVAL, "%u graphs to merge: 2 to %d are wanted", n_graphs, SL_MATCH_GRAPHS_MAX);
        match = calloc(1, sizeof(*match));
        if (!match)
                return sl_error_set(error, ENOMEM, "no memory to match %u graphs", n_graphs);
        match->n_graphs = n_graphs;
        match->graphs = graphs;
        m = (struct matcher){.match = match};
        r = run_matcher(&m);
        matcher_deinit(&m);
        if (r < 0)
                return sl_error_set(error, -r, "no memory to match %u graphs", n_graphs);
        *ret_match = sl_take(match);
        return 0;
}

struct sl_match *sl_match_free(struct sl_match *match)
{
        if (!match)
                return NULL;
        for (uint32_t g = 0; g < match->n_graphs; g++) {
                free(match->nodes ? match->nodes[g] : NULL);
                free(match->lane_of ? match->lane_of[g] : NULL);
                free(match->joint_of ? match->joint_of[g] : NULL);
        }
        free(match->nodes);
        free(match->lane_of);
        free(match->joint_of);
        free(match->common);
        free(match->number_of);
        free(match->joint);
        free(match);
        return NULL;
}

bool sl_match_is_whole(const struct sl_match *match)
{
        return match->n_breaks == 0;
}
