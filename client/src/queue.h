/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue pair on the client's side. Everything here belongs to its owner thread; what is shared with the runtime lies behind @map.
 *
 *     queue_open.c  opened, bound to the rings of a connection, closed
 *     submit.c      entry and descriptors -> ring, doorbell
 *     completion.c  ring -> flights -> application; the end of the runtime
 *     wait.c        until there is something in the ring
 *     infer.c       all of it for one request
 *     aside.c       off the dispatcher's core
 *     query.c       which variant of a task has a request
 *     event.c       the descriptor for event loops
 */
#pragma once

#include "base/error.h"
#include "client.h"
#include "doorbell.h"
#include "flights.h"
#include "ring.h"

struct sl_answer;
struct sl_chooser;

struct starling_queue {
        struct starling_client *client;
        struct sl_queue_map map;
        const struct sl_dispatcher_line *dispatcher;
        struct sl_submitter submitter;
        struct sl_reaper reaper;
        struct sl_flights flights;
        uint16_t epoch;
        bool armed;                /* sl_queue_request.sleep is SL_ASLEEP_FD */
        bool may_spin;             /* the machine has more than one CPU */
        uint32_t yield_rest;       /* waits that do not yield before they sleep */
        uint32_t yield_penalty;    /* how many they were after the last yield that took too long; 0: the last did not */
        uint32_t spin_ns;          /* how long the next wait spins, if spinning helps */
        uint64_t n_waits, n_spins; /* waits that found nothing at first; of these, that spun */
        uint64_t checked_ns;       /* when a sleeper last looked at the socket */
        uint64_t aside_ns;         /* when its thread last left the dispatcher's core */
        uint32_t empty_polls;      /* since the last look at the socket */
        uint32_t vain_polls;       /* in a row */
        uint64_t vain_ns;          /* when it was last looked how fast they follow each other */
        int event_fd;              /* an epoll instance; -1 until asked for */
        uint32_t number;           /* of the queue pair in the channel */
        bool open, abandoned;      /* under the client's lock; abandoned: closed while the runtime did not answer */
        struct sl_error error;
        struct sl_chooser *choosers; /* of queries (query.h), and who had each; NULL: there was none */
        struct sl_answer *answers;   /* [depth], by tag */
        uint64_t second_tries;       /* of queries, ever */
        uint64_t turns;              /* of choices: state of SplitMix64 */
};

/* Takes the rings of the connection of now, which are fresh. */
void sl_queue_bind(struct starling_queue *queue);

/*
 * Ends what a connection that is gone leaves: completions that were published are kept for the application, the rest is completed
 * as -EPIPE. May be called again.
 */
void sl_queue_bury(struct starling_queue *queue);

/* Puts the ring's completions aside for a later poll. */
void sl_queue_stash(struct starling_queue *queue);

/* Until the ring holds something. Return: 0, -EPIPE the runtime is gone (the ring may hold the last ones), -ETIMEDOUT, -EINTR. */
int sl_queue_wait(struct starling_queue *queue, uint64_t timeout_ns);

/* Watches the completion bell and the socket of the connection of now, if the queue pair has an event_fd. Return: 0, -errno. */
int sl_queue_watch(struct starling_queue *queue);

/* Those of the connection of now are watched no more: that they are closed does not suffice, as a forked child may have them. */
void sl_queue_unwatch(struct starling_queue *queue);

/* The descriptor stops to tell. */
static inline void sl_queue_disarm(struct starling_queue *queue)
{
        if (__builtin_expect(queue->armed, 0)) {
                sl_client_awake(&queue->map);
                queue->armed = false;
        }
}

void sl_queue_free(struct starling_queue *queue);
