/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include "base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE     UINT32_MAX
#define NEXT_MAX (SL_LAYOUT_PASTS_MAX * SL_LAYOUT_WAYS_MAX)

/* Two bits for each live value: it lies PLAIN, it lies CHANNELS_LAST. */
struct past {
        uint64_t lies[2];
        double seconds;
        uint16_t before; /* its index among the pasts one node ago */
        uint16_t way;
};

static_assert(SL_LAYOUT_LIVE_MAX <= 64, "a bit for each");
static_assert(NEXT_MAX <= UINT16_MAX, "an index of a past");

struct search {
        const struct sl_layout_problem *problem;
        uint32_t *last_reads; /* of each value: a node, or n_nodes for an output; NONE: nobody reads it */
        uint32_t *slots;      /* of each live value: its bit */
        uint64_t taken;       /* slots */
        struct past *now, *next;
        uint32_t n_now, n_next;
        struct past *trail; /* SL_LAYOUT_PASTS_MAX for each node */
};

static void find_last_reads(struct search *search)
{
        const struct sl_layout_problem *problem = search->problem;

        for (uint32_t i = 0; i < problem->n_values; i++)
                search->last_reads[i] = search->slots[i] = NONE;
        for (uint32_t i = 0; i < problem->n_nodes; i++) {
                for (uint32_t k = 0; k < problem->nodes[i].n_reads; k++)
                        search->last_reads[problem->nodes[i].reads[k].value] = i;
        }
        for (uint32_t i = 0; i < problem->n_outputs; i++)
                search->last_reads[problem->outputs[i]] = problem->n_nodes;
}

/* Where both layouts are the same bytes there is nothing to remember. */
static bool has_price(const struct search *search, uint32_t value)
{
        return search->problem->reorder_seconds[value] > 0;
}

static int take_slot(struct search *search, uint32_t value)
{
        if (!has_price(search, value) || search->last_reads[value] == NONE)
                return 0;
        if (search->taken == UINT64_MAX)
                return -E2BIG;
        search->slots[value] = (uint32_t)__builtin_ctzll(~search->taken);
        search->taken |= 1ull << search->slots[value];
        return 0;
}

static void mark_made(const struct sl_layout_problem *problem, bool *made)
{
        for (uint32_t i = 0; i < problem->n_nodes; i++) {
                for (uint32_t k = 0; k < problem->nodes[i].n_makes; k++)
                        made[problem->nodes[i].makes[k]] = true;
        }
}

/* What nobody makes is there, PLAIN. */
static int begin(struct search *search)
{
        SL_CLEANUP(sl_cleanup_free) bool *made = calloc(search->problem->n_values + 1u, sizeof(*made));

        if (!made)
                return -ENOMEM;
        mark_made(search->problem, made);
        search->n_now = 1;
        search->now[0] = (struct past){0};
        for (uint32_t i = 0; i < search->problem->n_values; i++) {
                if (made[i] || search->slots[i] != NONE)
                        continue;
                if (take_slot(search, i) < 0)
                        return -E2BIG;
                if (search->slots[i] != NONE)
                        search->now[0].lies[SL_LAYOUT_PLAIN] |= 1ull << search->slots[i];
        }
        return 0;
}

/* What it takes to have @value in @layout, which it then is. */
static double bring(const struct search *search, struct past *past, uint32_t value, enum sl_layout layout)
{
        uint64_t bit = search->slots[value] == NONE ? 0 : 1ull << search->slots[value];

        if (!bit || past->lies[layout] & bit)
                return 0;
        past->lies[layout] |= bit;
        return search->problem->reorder_seconds[value];
}

static void go_on(struct search *search, const struct sl_layout_node *node, uint32_t before, uint32_t way)
{
        struct past *next = &search->next[search->n_next++];

        *next = search->now[before];
        next->before = (uint16_t)before;
        next->way = (uint16_t)way;
        next->seconds += node->ways[way].seconds;
        for (uint32_t i = 0; i < node->n_reads; i++)
                next->seconds +=
                        bring(search, next, node->reads[i].value, node->reads[i].plain ? SL_LAYOUT_PLAIN : node->ways[way].in);
        for (uint32_t i = 0; i < node->n_makes; i++) {
                if (search->slots[node->makes[i]] != NONE)
                        next->lies[node->ways[way].out] |= 1ull << search->slots[node->makes[i]];
        }
}

/* Values that this node was the last to read are forgotten. */
static void forget(struct search *search, uint32_t index)
{
        const struct sl_layout_node *node = &search->problem->nodes[index];
        uint64_t gone = 0;

        for (uint32_t i = 0; i < node->n_reads; i++) {
                uint32_t value = node->reads[i].value;

                if (search->last_reads[value] != index || search->slots[value] == NONE)
                        continue;
                gone |= 1ull << search->slots[value];
                search->slots[value] = NONE;
        }
        search->taken &= ~gone;
        for (uint32_t i = 0; i < search->n_next; i++) {
                search->next[i].lies[0] &= ~gone;
                search->next[i].lies[1] &= ~gone;
        }
}

static int by_lies(const void *a, const void *b)
{
        const struct past *left = a, *right = b;
        int order = memcmp(left->lies, right->lies, sizeof(left->lies));

        return order ? order : (left->seconds > right->seconds) - (left->seconds < right->seconds);
}

static int by_seconds(const void *a, const void *b)
{
        const struct past *left = a, *right = b;

        return left->seconds == right->seconds ? by_lies(a, b) : left->seconds > right->seconds ? 1 : -1;
}

/* Of those that agree only the cheapest, and of these no more than there is room for. */
static void keep_cheapest(struct search *search, uint32_t index)
{
        struct past *next = search->next;
        uint32_t n = 0;

        qsort(next, search->n_next, sizeof(*next), by_lies);
        for (uint32_t i = 0; i < search->n_next; i++) {
                if (!n || memcmp(next[n - 1].lies, next[i].lies, sizeof(next[i].lies)))
                        next[n++] = next[i];
        }
        qsort(next, n, sizeof(*next), by_seconds);
        search->n_now = n < SL_LAYOUT_PASTS_MAX ? n : SL_LAYOUT_PASTS_MAX;
        memcpy(search->now, next, search->n_now * sizeof(*next));
        memcpy(search->trail + (size_t)index * SL_LAYOUT_PASTS_MAX, next, search->n_now * sizeof(*next));
}

static int step(struct search *search, uint32_t index)
{
        const struct sl_layout_node *node = &search->problem->nodes[index];

        if (!node->n_ways || node->n_ways > SL_LAYOUT_WAYS_MAX)
                return -ENOTSUP;
        for (uint32_t i = 0; i < node->n_makes; i++) {
                if (take_slot(search, node->makes[i]) < 0)
                        return -E2BIG;
        }
        search->n_next = 0;
        for (uint32_t i = 0; i < search->n_now; i++) {
                for (uint32_t way = 0; way < node->n_ways; way++)
                        go_on(search, node, i, way);
        }
        forget(search, index);
        keep_cheapest(search, index);
        return 0;
}

/* The outputs are brought to where the caller wants them; from the cheapest past the way leads back. */
static void finish(struct search *search, uint32_t *ret_ways, double *ret_seconds)
{
        const struct sl_layout_problem *problem = search->problem;
        uint32_t best = 0;

        for (uint32_t i = 0; i < search->n_now; i++) {
                for (uint32_t k = 0; k < problem->n_outputs; k++)
                        search->now[i].seconds += bring(search, &search->now[i], problem->outputs[k], SL_LAYOUT_PLAIN);
                if (search->now[i].seconds < search->now[best].seconds)
                        best = i;
        }
        *ret_seconds = search->now[best].seconds;
        for (uint32_t i = problem->n_nodes; i-- > 0;) {
                const struct past *past = &search->trail[(size_t)i * SL_LAYOUT_PASTS_MAX + best];

                ret_ways[i] = past->way;
                best = past->before;
        }
}

static int search_all(struct search *search, uint32_t *ret_ways, double *ret_seconds)
{
        int r = begin(search);

        for (uint32_t i = 0; i < search->problem->n_nodes && r == 0; i++)
                r = step(search, i);
        if (r == 0)
                finish(search, ret_ways, ret_seconds);
        return r;
}

int sl_layout_solve(const struct sl_layout_problem *problem, uint32_t *ret_ways, double *ret_seconds)
{
        SL_CLEANUP(sl_cleanup_free) uint32_t *tables = calloc(2 * (size_t)problem->n_values + 1, sizeof(*tables));
        SL_CLEANUP(sl_cleanup_free) struct past *pasts = calloc(SL_LAYOUT_PASTS_MAX + NEXT_MAX, sizeof(*pasts));
        SL_CLEANUP(sl_cleanup_free) struct past *trail = calloc((size_t)problem->n_nodes * SL_LAYOUT_PASTS_MAX + 1, sizeof(*trail));
        struct search search = {.problem = problem};

        if (!tables || !pasts || !trail)
                return -ENOMEM;
        search.last_reads = tables;
        search.slots = tables + problem->n_values;
        search.now = pasts;
        search.next = pasts + SL_LAYOUT_PASTS_MAX;
        search.trail = trail;
        find_last_reads(&search);
        return search_all(&search, ret_ways, ret_seconds);
}
