/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client handle owns.
 *
 *     starling_client
 *       |-- connection   the runtime of now: replaced by a reconnect, while nobody else is in a call
 *       |-- regions[]    the arena: those in which nothing is allocated are given back when a block finds no room (region.h)
 *       |-- queues[]     made at their first open, kept until the client is closed, as their rings go on where they were
 *       `-- models       a list; a reconnect looks each up again
 *
 * @lock guards the coming and going of regions, the list of models, the opening and closing of queue pairs, and question and answer
 * on the socket. The request path never takes it.
 */
#pragma once

#include "arena.h"
#include "connection.h"
#include "fork_guard.h"
#include "starling.h"

#include <pthread.h>

struct sl_error;

/* Threads, and the meaning of the atomics: region.h. */
struct sl_region {
        _Atomic uint32_t version; /* odd: base and bytes are those of a region; even: there is none */
        _Atomic uint32_t users;   /* threads that use the arena, and SL_REGION_TAKES, SL_REGION_GIVES */
        _Atomic uintptr_t base;
        _Atomic uint64_t bytes;
        int fd; /* handed back to the next runtime */
        struct sl_mapping mapping;
        struct sl_arena *arena;
        _Atomic uint64_t touched; /* bytes from the start whose pages have been faulted in; only ever grows */
};

/* What the arena wanted to grow by, and why it could not. */
struct sl_growth {
        uint64_t bytes;
        struct starling_error why;
};

struct starling_client {
        struct sl_fork_guard fork;
        struct sl_connection connection;
        _Atomic uint32_t n_regions; /* past the highest index that ever had one; stored with release after the entry is whole */
        _Atomic uint32_t n_opened;  /* counts regions that became ready to be taken from */
        struct sl_region regions[SL_REGIONS_MAX];

        pthread_mutex_t lock;
        struct sl_fresh_region unmapped; /* the next region, for which there was no address space yet; fd -1: there is none */
        struct starling_queue *queues[SL_QUEUES_MAX];
        struct starling_model *models;
        uint64_t n_queries; /* opened ever; under the lock */
        uint16_t epoch; /* counts connections; part of every request's id */
        char *runtime;
        char label[32];
        uint64_t arena_bytes;     /* of the first region, and the least to grow by */
        struct sl_growth refused; /* the last one that the runtime refused; under the lock */
};

/* The text of the public struct has the same shape. */
static inline struct sl_error *sl_error_of(struct starling_error *error)
{
        return (struct sl_error *)(void *)error;
}

static inline bool sl_client_gone(const struct starling_client *client)
{
        return __builtin_expect(atomic_load_explicit(&client->connection.gone, memory_order_acquire), 0);
}
