/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private table of what is in flight, by tag. It is what makes "exactly one completion per accepted request" true
 * whatever the other side does: only a tag that flies can complete, and what still flies when the runtime has gone is
 * completed from here.
 *
 *     FREE --sl_flights_take()--> FLYING --sl_flights_release()--> FREE
 *                                    \--sl_flights_stash()--> STASHED --sl_flights_unstash()--> FREE
 *
 * Stashed are completions that are known but not yet handed to the application: those of others that came while
 * starling_infer() waited for its own, and those of a runtime that has gone. Free, flying and stashed tags add up to the depth.
 * Owner thread of the queue pair only.
 */
#pragma once

#include "starling.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_FLIGHT_TEXT_BYTES 256u

enum sl_flight_state { SL_FLIGHT_FREE, SL_FLIGHT_FLYING, SL_FLIGHT_STASHED };

struct sl_flight {
        uint64_t id; /* see sl_flight_id() */
        uint64_t user_data;
        uint8_t state;                     /* enum sl_flight_state */
        uint16_t n_tensors, n_outputs;     /* that were given */
        uint64_t members_any, members_all; /* of its completion, as in layout.h */
};

struct sl_flights {
        uint32_t depth, tensors;
        uint32_t n_free;            /* tags in free_tags[], a stack: the tag used last is warm */
        uint32_t n_stashed, oldest; /* a queue in stash_order[], in the order of completion */
        uint16_t *free_tags, *stash_order;
        struct sl_flight *by_tag;
        struct starling_completion *stashed; /* by tag */
        struct starling_shape *shapes;       /* [depth][tensors], by tag: what the completions point to */
        struct starling_shape *wide;         /* [SL_WIDE_SLOTS][SL_TENSORS_MAX], of requests with more; NULL until there was one */
        char (*texts)[SL_FLIGHT_TEXT_BYTES]; /* [depth], by tag: what models said of their failures; NULL until one has */
};

/* Return: 0, -ENOMEM. */
int sl_flights_init(struct sl_flights *flights, uint32_t depth, uint32_t tensors);
void sl_flights_deinit(struct sl_flights *flights);

/* Room for the text of a tag, from the first that is asked for on; NULL: there is no memory. */
char *sl_flights_text(struct sl_flights *flights, uint16_t tag);

/* Keeps the completion of a flying tag for later. */
void sl_flights_stash(struct sl_flights *flights, uint16_t tag, const struct starling_completion *completion);

/* Hands out the oldest stashed ones. Return: how many. */
uint32_t sl_flights_unstash(struct sl_flights *flights, struct starling_completion *ret_completions, uint32_t max);

/* Hands out the stashed one of @id; false when there is none. */
bool sl_flights_unstash_one(struct sl_flights *flights, uint64_t id, struct starling_completion *ret_completion);

/* Stashes everything that flies as completed with @status. */
void sl_flights_fail(struct sl_flights *flights, int status);

/* Drops everything stashed. */
void sl_flights_drop_stash(struct sl_flights *flights);

static inline uint32_t sl_flights_unreaped(const struct sl_flights *flights)
{
        return flights->depth - flights->n_free;
}

static inline uint32_t sl_flights_flying(const struct sl_flights *flights)
{
        return flights->depth - flights->n_free - flights->n_stashed;
}

/* The connection's count in the upper 16 bits, then the submission index, then the tag. Connections count from 1: never 0. */
static inline uint64_t sl_flight_id(uint16_t epoch, uint32_t index, uint16_t tag)
{
        return (uint64_t)epoch << 48 | (uint64_t)index << 16 | tag;
}

static inline uint16_t sl_flight_tag(uint64_t id)
{
        return (uint16_t)id;
}

static inline uint32_t sl_flight_index(uint64_t id)
{
        return (uint32_t)(id >> 16);
}

/* Whether a tag below @below is free, which is then the next to be taken. */
static inline bool sl_flights_prefer(struct sl_flights *flights, uint16_t below)
{
        for (uint32_t i = flights->n_free; i-- > 0;) {
                uint16_t tag = flights->free_tags[i];

                if (tag >= below)
                        continue;
                flights->free_tags[i] = flights->free_tags[flights->n_free - 1];
                flights->free_tags[flights->n_free - 1] = tag;
                return true;
        }
        return false;
}

/* There is one: n_free > 0. */
static inline uint16_t sl_flights_take(struct sl_flights *flights)
{
        return flights->free_tags[--flights->n_free];
}

static inline void sl_flights_release(struct sl_flights *flights, uint16_t tag)
{
        flights->by_tag[tag].state = SL_FLIGHT_FREE;
        flights->free_tags[flights->n_free++] = tag;
}

static inline bool sl_flights_flies(const struct sl_flights *flights, uint64_t id)
{
        uint16_t tag = sl_flight_tag(id);

        return tag < flights->depth && flights->by_tag[tag].state == SL_FLIGHT_FLYING && flights->by_tag[tag].id == id;
}
