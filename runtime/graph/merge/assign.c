/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic programming over the common nodes in order. A state says for each value that somebody will still read in which forms it
 * is there: what was made in one form and turned once is there in both. Nodes are added one by one, in each form that they can
 * take; of two ways to one state the cheaper stays. That is exact while there are no more than STATES states; beyond, the cheapest
 * ones go on. Values have places like variables have registers; where they do not suffice nothing is searched.
 */
#include "merge/assign.h"

#include "base/cleanup.h"
#include "merge/prices.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define STATES      256u
#define PLACES      32u
#define NO_PLACE    UINT8_MAX
#define FIRST_PRICE 0x1p-8 /* of all copied bytes, beside all seconds */
#define DOUBLINGS   40     /* of the price, until they fit */
#define BISECTIONS  8

struct state {
        double seconds;
        uint32_t before;       /* the state that it comes from, of the node before */
        uint32_t choice;       /* which of the node's forms */
        uint8_t forms[PLACES]; /* of the value at each place: bits of sl_prices_slot(); 0: none is there */
};

struct step {
        uint32_t before;
        uint8_t choice;
};

struct search {
        struct sl_prices *prices;
        const struct sl_graph *graph;
        uint32_t *last; /* of each value: the last common node that reads it, or that makes it */
        uint8_t *place; /* of each value: its place; NO_PLACE */
        bool *leaves;   /* of each value: somebody reads its lanes apart besides */
        uint64_t free;  /* bits: places that nobody has */
        bool overflows; /* there were too few */
};

static const struct sl_node *node_of(const struct search *s, uint32_t common)
{
        return &s->graph->nodes[s->prices->match->common[common]];
}

static bool is_read(const struct search *s, uint32_t value)
{
        return value != SL_VALUE_NONE && s->graph->values[value].kind != SL_VALUE_CONSTANT;
}

static void note_reader(struct search *s, uint32_t lane, uint32_t value)
{
        uint32_t joint = value == SL_VALUE_NONE ? SL_VALUE_NONE : s->prices->match->joint_of[lane][value];

        if (joint != SL_VALUE_NONE)
                s->leaves[joint] = true;
}

/* Own nodes and the ports want lanes apart. */
static int find_leaving(struct search *s)
{
        const struct sl_match *match = s->prices->match;

        for (uint32_t g = 0; g < match->n_graphs; g++) {
                const struct sl_graph *graph = match->graphs[g];
                SL_CLEANUP(sl_cleanup_free) bool *common = calloc(graph->n_nodes + 1u, sizeof(*common));

                if (!common)
                        return -ENOMEM;
                for (uint32_t c = 0; c < match->n_common; c++)
                        common[match->nodes[g][c]] = true;
                for (uint32_t n = 0; n < graph->n_nodes; n++)
                        for (uint32_t i = 0; i < graph->nodes[n].n_inputs && !graph->nodes[n].dead && !common[n]; i++)
                                note_reader(s, g, graph->nodes[n].inputs[i]);
                for (uint32_t i = 0; i < graph->n_outputs; i++)
                        note_reader(s, g, graph->outputs[i]);
        }
        return 0;
}

static void find_last(struct search *s)
{
        for (uint32_t c = 0; c < s->prices->match->n_common; c++) {
                const struct sl_node *node = node_of(s, c);

                for (uint32_t i = 0; i < node->n_inputs; i++)
                        if (is_read(s, node->inputs[i]))
                                s->last[node->inputs[i]] = c;
                for (uint32_t i = 0; i < node->n_outputs; i++)
                        if (node->outputs[i] != SL_VALUE_NONE)
                                s->last[node->outputs[i]] = c;
        }
}

/* A value that the search has not seen is there apart, in every state. */
static void open_value(struct search *s, uint32_t value, struct state *states, uint32_t n)
{
        uint32_t place;

        if (!is_read(s, value) || s->place[value] != NO_PLACE)
                return;
        if (!s->free) {
                s->overflows = true;
                return;
        }
        place = (uint32_t)__builtin_ctzll(s->free);
        s->free &= s->free - 1;
        s->place[value] = (uint8_t)place;
        for (uint32_t i = 0; i < n; i++)
                states[i].forms[place] = (uint8_t)(1u << sl_prices_slot(SL_FORM_APART));
}

static void close_value(struct search *s, uint32_t value, uint32_t common, struct state *states, uint32_t n)
{
        uint32_t place;

        if (!is_read(s, value) || s->last[value] != common || s->place[value] == NO_PLACE)
                return;
        place = s->place[value];
        s->place[value] = NO_PLACE;
        s->free |= 1ull << place;
        for (uint32_t i = 0; i < n; i++)
                states[i].forms[place] = 0;
}

static void open_values(struct search *s, uint32_t common, struct state *states, uint32_t n)
{
        const struct sl_node *node = node_of(s, common);

        for (uint32_t i = 0; i < node->n_inputs; i++)
                open_value(s, node->inputs[i], states, n);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                open_value(s, node->outputs[i], states, n);
}

static void close_values(struct search *s, uint32_t common, struct state *states, uint32_t n)
{
        const struct sl_node *node = node_of(s, common);

        for (uint32_t i = 0; i < node->n_inputs; i++)
                close_value(s, node->inputs[i], common, states, n);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                close_value(s, node->outputs[i], common, states, n);
}

/* The form that another one is made from: as the weave does it, the first that is in one value. */
static uint32_t source_of(const struct search *s, uint32_t value, uint8_t forms)
{
        uint32_t rank = s->graph->values[value].tensor.shape.rank;
        const uint32_t order[] = {SL_FORM_LANE, 1, rank ? rank - 1 : 0, SL_FORM_INNER};

        for (uint32_t i = 0; i < sizeof(order) / sizeof(*order); i++)
                if (forms & (1u << sl_prices_slot(order[i])))
                        return order[i];
        return SL_FORM_APART;
}

static void want(struct search *s, struct state *state, uint32_t value, uint32_t form)
{
        uint8_t *forms = &state->forms[s->place[value]];

        if (*forms & (1u << sl_prices_slot(form)))
                return;
        state->seconds += sl_prices_turn(s->prices, value, source_of(s, value, *forms), form);
        *forms |= (uint8_t)(1u << sl_prices_slot(form));
}

/* The node in one of its forms: all that it reads is turned to it, and what leaves is parted at once. */
static void take(struct search *s, uint32_t common, uint32_t choice, struct state *state)
{
        const struct sl_node *node = node_of(s, common);
        const struct sl_priced_form *priced = &s->prices->nodes[common].forms[choice];

        state->choice = choice;
        state->seconds += priced->seconds + s->prices->byte_seconds * (double)priced->copied_bytes;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (is_read(s, node->inputs[i]))
                        want(s, state, node->inputs[i], priced->form);
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                if (node->outputs[i] == SL_VALUE_NONE)
                        continue;
                state->forms[s->place[node->outputs[i]]] = (uint8_t)(1u << sl_prices_slot(priced->form));
                if (s->leaves[node->outputs[i]])
                        want(s, state, node->outputs[i], SL_FORM_APART);
        }
}

static int by_forms(const void *a, const void *b)
{
        const struct state *x = a, *y = b;
        int order = memcmp(x->forms, y->forms, sizeof(x->forms));

        return order ? order : (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static int by_seconds(const void *a, const void *b)
{
        const struct state *x = a, *y = b;

        return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* One of each, and of these the cheapest. */
static uint32_t keep(struct state *states, uint32_t n)
{
        uint32_t kept = 0;

        qsort(states, n, sizeof(*states), by_forms);
        for (uint32_t i = 0; i < n; i++)
                if (isfinite(states[i].seconds) &&
                        (!kept || memcmp(states[kept - 1].forms, states[i].forms, sizeof(states[i].forms))))
                        states[kept++] = states[i];
        if (kept > STATES)
                qsort(states, kept, sizeof(*states), by_seconds);
        return kept < STATES ? kept : STATES;
}

static uint32_t expand(struct search *s, uint32_t common, const struct state *states, uint32_t n, struct state *next)
{
        uint32_t n_next = 0;

        for (uint32_t i = 0; i < n; i++)
                for (uint32_t c = 0; c < s->prices->nodes[common].n_forms; c++) {
                        next[n_next] = states[i];
                        next[n_next].before = i;
                        take(s, common, c, &next[n_next++]);
                }
        return n_next;
}

static void trace(const struct search *s, const struct step *steps, uint32_t at, uint32_t *ret_forms)
{
        for (uint32_t c = s->prices->match->n_common; c-- > 0;) {
                const struct step *step = &steps[(uint64_t)c * STATES + at];

                ret_forms[c] = s->prices->nodes[c].forms[step->choice].form;
                at = step->before;
        }
}

/* @rooms: for the states of one node, and for all that follow from them. *ret_found: it came to an end. */
static void search_all(
        struct search *s, struct state *states, struct state *next, struct step *steps, uint32_t *ret_forms, bool *ret_found)
{
        uint32_t n = 1, best = 0;

        states[0] = (struct state){0};
        for (uint32_t c = 0; c < s->prices->match->n_common; c++) {
                open_values(s, c, states, n);
                if (s->overflows)
                        return;
                uint32_t n_next = expand(s, c, states, n, next);

                close_values(s, c, next, n_next);
                n = keep(next, n_next);
                for (uint32_t i = 0; i < n; i++) {
                        states[i] = next[i];
                        steps[(uint64_t)c * STATES + i] = (struct step){next[i].before, (uint8_t)next[i].choice};
                }
        }
        for (uint32_t i = 1; i < n; i++)
                if (states[i].seconds < states[best].seconds)
                        best = i;
        *ret_found = n > 0;
        if (n)
                trace(s, steps, best, ret_forms);
}

static int search_new(struct sl_prices *prices, struct search *s)
{
        uint64_t n = prices->match->graphs[0]->n_values + 1ull;

        *s = (struct search){.prices = prices, .graph = prices->match->graphs[0], .free = (1ull << PLACES) - 1};
        s->last = calloc(n, sizeof(*s->last));
        s->place = malloc(n);
        s->leaves = calloc(n, sizeof(*s->leaves));
        if (!s->last || !s->place || !s->leaves)
                return -ENOMEM;
        memset(s->place, NO_PLACE, n);
        find_last(s);
        return find_leaving(s);
}

static void search_deinit(struct search *s)
{
        free(s->last);
        free(s->place);
        free(s->leaves);
}

static uint32_t choice_of(const struct sl_prices *prices, uint32_t common, uint32_t form)
{
        const struct sl_priced_form *found = sl_prices_find(prices, common, form);

        return found ? (uint32_t)(found - prices->nodes[common].forms) : SL_VALUE_NONE;
}

/* One state goes through all nodes: each value has a place, of as many as that takes. */
static double follow(struct search *s, const uint32_t *forms)
{
        struct state state = {0};

        for (uint32_t c = 0; c < s->prices->match->n_common; c++) {
                uint32_t choice = choice_of(s->prices, c, forms[c]);

                open_values(s, c, &state, 1);
                if (s->overflows || choice == SL_VALUE_NONE)
                        return INFINITY;
                take(s, c, choice, &state);
                close_values(s, c, &state, 1);
        }
        return state.seconds;
}

int sl_assign_seconds(struct sl_prices *prices, const uint32_t *forms, double *ret_seconds)
{
        struct search s;
        int r = search_new(prices, &s);

        if (r == 0)
                *ret_seconds = follow(&s, forms);
        search_deinit(&s);
        return r;
}

static int search(struct sl_prices *prices, uint32_t *ret_forms, bool *ret_found)
{
        SL_CLEANUP(sl_cleanup_free) struct state *states = calloc(STATES, sizeof(*states));
        SL_CLEANUP(sl_cleanup_free) struct state *next = calloc(STATES * SL_PRICED_FORMS_MAX, sizeof(*next));
        SL_CLEANUP(sl_cleanup_free) struct step *steps = calloc((prices->match->n_common + 1ull) * STATES, sizeof(*steps));
        struct search s = {0};
        int r = states && next && steps ? search_new(prices, &s) : -ENOMEM;

        *ret_found = false;
        if (r == 0)
                search_all(&s, states, next, steps, ret_forms, ret_found);
        search_deinit(&s);
        return r;
}

/* @forms in place of @ret_forms, if they are cheaper. */
static int prefer(struct sl_prices *prices, const uint32_t *forms, double *best, uint32_t *ret_forms)
{
        double seconds;
        int r = sl_assign_seconds(prices, forms, &seconds);

        if (r < 0 || !(seconds < *best))
                return r;
        *best = seconds;
        if (forms != ret_forms)
                memcpy(ret_forms, forms, prices->match->n_common * sizeof(*forms));
        return 0;
}

int sl_assign_cheapest(struct sl_prices *prices, const uint32_t *algorithm_1, uint32_t *ret_forms)
{
        uint32_t n = prices->match->n_common;
        SL_CLEANUP(sl_cleanup_free) uint32_t *apart = malloc((n + 1u) * sizeof(*apart));
        double best = INFINITY;
        bool found;
        int r = apart ? search(prices, ret_forms, &found) : -ENOMEM;

        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n; i++)
                apart[i] = SL_FORM_APART;
        if (found)
                r = prefer(prices, ret_forms, &best, ret_forms);
        else
                memcpy(ret_forms, apart, n * sizeof(*apart));
        if (r == 0)
                r = prefer(prices, algorithm_1, &best, ret_forms);
        return r < 0 ? r : prefer(prices, apart, &best, ret_forms);
}

/* ---- within a bound of what is copied ---- */

uint64_t sl_assign_copied_bytes(const struct sl_prices *prices, const uint32_t *forms)
{
        uint64_t bytes = 0;

        for (uint32_t c = 0; c < prices->match->n_common; c++) {
                const struct sl_priced_form *priced = sl_prices_find(prices, c, forms[c]);

                bytes += priced ? priced->copied_bytes : 0;
        }
        return bytes;
}

static bool is_within(const struct sl_prices *prices, const uint32_t *forms)
{
        return !prices->copies || sl_assign_copied_bytes(prices, forms) <= prices->copies_max;
}

struct bounded {
        struct sl_prices *prices;
        const uint32_t *algorithm_1;
        uint32_t *tried, *best;
        double seconds; /* of the best; infinite: none is within the bound yet */
};

/* The cheapest when a copied byte costs so much. */
static int try_price(struct bounded *b, double byte_seconds, bool *ret_within)
{
        double seconds = INFINITY;
        int r;

        b->prices->byte_seconds = byte_seconds;
        r = sl_assign_cheapest(b->prices, b->algorithm_1, b->tried);
        b->prices->byte_seconds = 0;
        *ret_within = is_within(b->prices, b->tried);
        if (r == 0 && *ret_within)
                r = sl_assign_seconds(b->prices, b->tried, &seconds);
        if (r < 0 || !(seconds < b->seconds))
                return r;
        b->seconds = seconds;
        memcpy(b->best, b->tried, b->prices->match->n_common * sizeof(*b->tried));
        return 0;
}

static double apart_seconds(const struct sl_prices *prices)
{
        double seconds = 0;

        for (uint32_t c = 0; c < prices->match->n_common; c++)
                seconds += prices->nodes[c].forms[0].seconds;
        return seconds;
}

/* Below @low they do not fit, at @high they do. */
static int bisect(struct bounded *b, double low, double high)
{
        bool within;
        int r = 0;

        for (uint32_t i = 0; i < BISECTIONS && r == 0; i++) {
                double middle = sqrt(low * high);

                r = try_price(b, middle, &within);
                *(within ? &high : &low) = middle;
        }
        return r;
}

int sl_assign_cheapest_within(struct sl_prices *prices, const uint32_t *algorithm_1, uint32_t *forms)
{
        uint32_t n = prices->match->n_common;
        SL_CLEANUP(sl_cleanup_free) uint32_t *tried = malloc((n + 1u) * sizeof(*tried));
        struct bounded b = {prices, algorithm_1, tried, forms, INFINITY};
        double price = apart_seconds(prices) / (double)(sl_assign_copied_bytes(prices, forms) + 1) * FIRST_PRICE;
        bool within = false;
        int r = tried ? 0 : -ENOMEM;

        for (uint32_t c = 0; c < n; c++)
                forms[c] = SL_FORM_APART;
        for (uint32_t i = 0; i < DOUBLINGS && r == 0 && !within && price > 0; i++) {
                price *= 2;
                r = try_price(&b, price, &within);
        }
        return r < 0 || !within ? r : bisect(&b, price / 2, price);
}

void sl_assign_keep_within(const struct sl_prices *prices, uint32_t *forms)
{
        while (!is_within(prices, forms)) {
                uint64_t most = 0;
                uint32_t at = 0;

                for (uint32_t c = 0; c < prices->match->n_common; c++) {
                        const struct sl_priced_form *priced = sl_prices_find(prices, c, forms[c]);

                        if (priced && priced->copied_bytes > most) {
                                most = priced->copied_bytes;
                                at = c;
                        }
                }
                forms[at] = SL_FORM_APART;
        }
}
