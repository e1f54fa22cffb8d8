/* SPDX-License-Identifier: Apache-2.0 */
#include "fair.h"

#include "base/assert.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * Of each flow:
 *     (F1) it is in its class's ring                    <=>  it has an item
 *     (F2) samples                                       =   sum of its items' samples, each of which is above 0
 *     (F3) it has no item                                =>  deficit = 0
 *     (F4) its items are its client's and its class's, each the previous of its next
 * Of each class:
 *     (F5) flows    =  length of the ring from turn on, in which each is the previous of its next
 *     (F6) samples  =  sum of its flows' samples
 *     (F7) granted  => turn is not NULL
 */
struct flow {
        struct sl_fair_item *first, *last;
        uint64_t deficit, samples;
        struct flow *next, *previous; /* ring of active flows */
};

struct priority_class {
        struct flow *turn; /* whose turn it is; NULL when no flow is active */
        bool granted;      /* this turn's quantum has been added */
        uint32_t flows;    /* active ones */
        uint64_t samples;  /* of all of them */
};

struct sl_fair {
        uint32_t clients_max;
        struct priority_class classes[SL_CLASSES];
        struct flow flows[]; /* [clients_max][SL_CLASSES] */
};

static void walk_flow(const struct flow *flow, uint32_t client, uint32_t priority)
{
        const struct sl_fair_item *previous = NULL;
        uint64_t samples = 0;

        SL_ASSERT(!flow->first == !flow->next);       /* F1 */
        SL_ASSERT(flow->first || flow->deficit == 0); /* F3 */
        SL_ASSERT(!flow->next || flow->next->previous == flow);
        for (const struct sl_fair_item *item = flow->first; item; previous = item, item = item->next) {
                SL_ASSERT(item->client == client && item->priority == priority); /* F4 */
                SL_ASSERT(item->previous == previous);
                SL_ASSERT(item->samples > 0);
                samples += item->samples;
        }
        SL_ASSERT(flow->last == previous);
        SL_ASSERT(flow->samples == samples); /* F2 */
}

static void walk_class(const struct sl_fair *fair, uint32_t priority)
{
        const struct priority_class *class = &fair->classes[priority];
        const struct flow *flow = class->turn;
        uint64_t samples = 0;

        for (uint32_t i = 0; i < class->flows; i++, flow = flow->next) {
                SL_ASSERT(flow && (i == 0 || flow != class->turn));
                samples += flow->samples;
        }
        SL_ASSERT(flow == class->turn && !class->turn == !class->flows); /* F5 */
        SL_ASSERT(class->samples == samples);                            /* F6 */
        SL_ASSERT(!class->granted || class->turn);                       /* F7 */
}

void sl_fair_walk(const struct sl_fair *fair)
{
        for (uint32_t i = 0; i < fair->clients_max * SL_CLASSES; i++)
                walk_flow(&fair->flows[i], i / SL_CLASSES, i % SL_CLASSES);
        for (uint32_t i = 0; i < SL_CLASSES; i++)
                walk_class(fair, i);
}

int sl_fair_new(uint32_t clients_max, struct sl_fair **ret_fair)
{
        struct sl_fair *fair = calloc(1, sizeof(*fair) + (size_t)clients_max * SL_CLASSES * sizeof(struct flow));

        if (!fair)
                return -ENOMEM;
        fair->clients_max = clients_max;
        *ret_fair = fair;
        return 0;
}

struct sl_fair *sl_fair_free(struct sl_fair *fair)
{
        free(fair);
        return NULL;
}

bool sl_fair_is_empty(const struct sl_fair *fair)
{
        for (uint32_t i = 0; i < SL_CLASSES; i++)
                if (fair->classes[i].turn)
                        return false;
        return true;
}

uint64_t sl_fair_samples(const struct sl_fair *fair)
{
        uint64_t samples = 0;

        for (uint32_t i = 0; i < SL_CLASSES; i++)
                samples += fair->classes[i].samples;
        return samples;
}

uint64_t sl_fair_urgent_samples(const struct sl_fair *fair)
{
        return sl_fair_samples(fair) - fair->classes[SL_BACKGROUND].samples;
}

static struct flow *flow_of(struct sl_fair *fair, const struct sl_fair_item *item)
{
        return &fair->flows[(size_t)item->client * SL_CLASSES + item->priority];
}

/* A new flow waits for its turn behind all others of its class. */
static void activate(struct priority_class *class, struct flow *flow)
{
        class->flows++;
        if (!class->turn) {
                flow->next = flow->previous = flow;
                class->turn = flow;
                return;
        }
        flow->next = class->turn;
        flow->previous = class->turn->previous;
        flow->previous->next = flow;
        flow->next->previous = flow;
}

static void deactivate(struct priority_class *class, struct flow *flow)
{
        class->flows--;
        if (class->turn == flow) {
                class->turn = flow->next == flow ? NULL : flow->next;
                class->granted = false;
        }
        flow->previous->next = flow->next;
        flow->next->previous = flow->previous;
        flow->next = flow->previous = NULL;
        flow->deficit = 0;
}

static void take_samples(struct sl_fair *fair, struct flow *flow, struct sl_fair_item *item, uint32_t n)
{
        item->samples -= n;
        flow->samples -= n;
        fair->classes[item->priority].samples -= n;
}

void sl_fair_push(struct sl_fair *fair, struct sl_fair_item *item)
{
        struct flow *flow = flow_of(fair, item);

        item->next = NULL;
        item->previous = flow->last;
        if (flow->last)
                flow->last->next = item;
        else
                flow->first = item;
        flow->last = item;
        flow->samples += item->samples;
        fair->classes[item->priority].samples += item->samples;
        if (!flow->next)
                activate(&fair->classes[item->priority], flow);
}

/* The quantum may have been larger in the flow's last turn: what is left of that counts as no more than one of today's. */
static void grant_turn(struct priority_class *class, struct flow *flow, uint32_t quantum)
{
        if (flow->deficit > quantum)
                flow->deficit = quantum;
        flow->deficit += quantum;
        class->granted = true;
}

/* A segment never costs more than the quantum, so that each turn serves at least one and the loop ends. */
static struct sl_fair_item *peek_class(struct priority_class *class, uint32_t quantum)
{
        while (class->turn) {
                struct flow *flow = class->turn;

                if (!class->granted)
                        grant_turn(class, flow, quantum);
                if (flow->deficit >= sl_fair_cost(flow->first, quantum))
                        return flow->first;
                class->turn = flow->next;
                class->granted = false;
        }
        return NULL;
}

struct sl_fair_item *sl_fair_peek(struct sl_fair *fair, uint32_t quantum)
{
        for (uint32_t i = 0; i < SL_CLASSES; i++) {
                struct sl_fair_item *item = peek_class(&fair->classes[i], quantum);

                if (item)
                        return item;
        }
        return NULL;
}

void sl_fair_charge(struct sl_fair *fair, struct sl_fair_item *item, uint32_t cost)
{
        struct flow *flow = flow_of(fair, item);

        SL_ASSERT(cost <= flow->deficit && cost <= item->samples);
        flow->deficit -= cost;
        take_samples(fair, flow, item, cost);
}

/* Each turn of the client is one of every other, which takes no more than a quantum and what it has. */
static uint64_t ahead_of_class(const struct priority_class *class, const struct flow *flow, uint32_t quantum)
{
        uint64_t others = class->samples - flow->samples;
        uint64_t turns = flow->samples / quantum + 1, other_flows = class->flows - (flow->samples > 0);
        uint64_t most = turns * other_flows * quantum;

        return flow->samples + (others < most ? others : most);
}

uint64_t sl_fair_ahead(const struct sl_fair *fair, uint32_t client, uint32_t priority, uint32_t quantum)
{
        const struct flow *flow = &fair->flows[(size_t)client * SL_CLASSES + priority];
        uint64_t samples = ahead_of_class(&fair->classes[priority], flow, quantum);

        for (uint32_t i = 0; i < priority; i++)
                samples += fair->classes[i].samples;
        return samples;
}

void sl_fair_remove(struct sl_fair *fair, struct sl_fair_item *item)
{
        struct flow *flow = flow_of(fair, item);

        if (item->previous)
                item->previous->next = item->next;
        else
                flow->first = item->next;
        if (item->next)
                item->next->previous = item->previous;
        else
                flow->last = item->previous;
        item->next = item->previous = NULL;
        take_samples(fair, flow, item, item->samples);
        if (!flow->first)
                deactivate(&fair->classes[item->priority], flow);
}
