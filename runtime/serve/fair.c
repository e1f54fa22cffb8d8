#include "fair.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct flow {
        struct sl_request *first, *last;
        uint64_t deficit;
        struct flow *next, *previous; /* ring of active flows */
};

struct priority_class {
        struct flow *turn; /* whose turn it is; NULL when no flow is active */
        bool granted;      /* this turn's quantum has been added */
};

struct sl_fair {
        struct priority_class classes[SL_PRIORITIES];
        struct flow flows[]; /* [clients_max][SL_PRIORITIES] */
};

int sl_fair_new(uint32_t clients_max, struct sl_fair **ret_fair)
{
        struct sl_fair *fair = calloc(1, sizeof(*fair) + (size_t)clients_max * SL_PRIORITIES * sizeof(struct flow));

        if (!fair)
                return -ENOMEM;
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
        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                if (fair->classes[i].turn)
                        return false;
        return true;
}

static struct flow *flow_of(struct sl_fair *fair, uint32_t client, const struct sl_request *request)
{
        return &fair->flows[(size_t)client * SL_PRIORITIES + request->priority];
}

/* A new flow waits for its turn behind all others of its class. */
static void activate(struct priority_class *class, struct flow *flow)
{
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
        if (class->turn == flow) {
                class->turn = flow->next == flow ? NULL : flow->next;
                class->granted = false;
        }
        flow->previous->next = flow->next;
        flow->next->previous = flow->previous;
        flow->next = flow->previous = NULL;
        flow->deficit = 0;
}

void sl_fair_push(struct sl_fair *fair, uint32_t client, struct sl_request *request)
{
        struct flow *flow = flow_of(fair, client, request);

        request->next = NULL;
        request->previous = flow->last;
        if (flow->last)
                flow->last->next = request;
        else
                flow->first = request;
        flow->last = request;
        if (!flow->next)
                activate(&fair->classes[request->priority], flow);
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
static struct sl_request *peek_class(struct priority_class *class, uint32_t quantum, uint32_t (*cost)(const struct sl_request *))
{
        while (class->turn) {
                struct flow *flow = class->turn;

                if (!class->granted)
                        grant_turn(class, flow, quantum);
                if (flow->deficit >= cost(flow->first))
                        return flow->first;
                class->turn = flow->next;
                class->granted = false;
        }
        return NULL;
}

struct sl_request *sl_fair_peek(struct sl_fair *fair, uint32_t quantum, uint32_t (*cost)(const struct sl_request *))
{
        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                struct sl_request *request = peek_class(&fair->classes[i], quantum, cost);

                if (request)
                        return request;
        }
        return NULL;
}

void sl_fair_charge(struct sl_fair *fair, uint32_t client, const struct sl_request *request, uint32_t cost)
{
        flow_of(fair, client, request)->deficit -= cost;
}

void sl_fair_remove(struct sl_fair *fair, uint32_t client, struct sl_request *request)
{
        struct flow *flow = flow_of(fair, client, request);

        if (request->previous)
                request->previous->next = request->next;
        else
                flow->first = request->next;
        if (request->next)
                request->next->previous = request->previous;
        else
                flow->last = request->previous;
        request->next = request->previous = NULL;
        if (!flow->first)
                deactivate(&fair->classes[request->priority], flow);
}
