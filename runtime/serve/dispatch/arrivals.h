/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of one ensemble that wait for their turn, all or a part of each, in the order in which they came. Turns are given by
 * fair.h; this is for whoever asks how many wait, and since when. Dispatcher only; O(1).
 */
#pragma once

#include "request.h"

struct sl_arrivals {
        struct sl_request *oldest, *newest; /* through next and previous */
        uint32_t n;
};

static inline void sl_arrivals_add(struct sl_arrivals *arrivals, struct sl_request *request)
{
        request->next = NULL;
        request->previous = arrivals->newest;
        if (arrivals->newest)
                arrivals->newest->next = request;
        else
                arrivals->oldest = request;
        arrivals->newest = request;
        arrivals->n++;
}

static inline void sl_arrivals_remove(struct sl_arrivals *arrivals, struct sl_request *request)
{
        if (request->previous)
                request->previous->next = request->next;
        else
                arrivals->oldest = request->next;
        if (request->next)
                request->next->previous = request->previous;
        else
                arrivals->newest = request->previous;
        request->next = request->previous = NULL;
        arrivals->n--;
}
