/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long clients that sleep take to run again, from the publication of what they are woken for (the stage WAKING of the stats
 * page). A client says when it ran (sl_queue_request.awake_ns); that is looked at when it shows itself the next time, so that
 * nobody waits for it and a client that is awake costs nothing. One value for each wake-up, for the model whose completion came
 * last, and for the client. What a client says is kept within what has passed here.
 *
 * (V1) client:     awake_ns stored relaxed, before whatever it publishes next (S1), or says that it sleeps again (W1).
 * (V2) dispatcher: loaded relaxed, behind S2, or K2.                                                      pairs with V1
 *
 * Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_dispatcher;
struct sl_ensemble;
struct sl_model_counting;
struct sl_queue;

/* Of a queue pair. */
struct sl_waking {
        uint64_t since_ns;                        /* what it was woken for was published; 0: it was not woken, or that is known */
        uint64_t held_ns;                         /* the same of one that sleeps on for a moment; 0: it does not */
        const struct sl_model_counting *counting; /* of the model whose completion came last; NULL: of none */
        const struct sl_model_counting *woken;    /* the same, when it was woken */
        uint64_t traced, woken_traced;            /* the same of the request, when that is sampled; 0: it is not */
};

/* It sleeps and is about to be woken. */
void sl_waking_begin(struct sl_dispatcher *dispatcher, struct sl_queue *queue);

/* It may have run since. */
void sl_waking_look(struct sl_dispatcher *dispatcher, struct sl_queue *queue);

/* The ensemble is about to go. */
void sl_waking_forget(struct sl_dispatcher *dispatcher, const struct sl_ensemble *ensemble);
