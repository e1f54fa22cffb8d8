/* SPDX-License-Identifier: Apache-2.0 */
#include "flights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sl_flights_init(struct sl_flights *flights, uint32_t depth, uint32_t tensors)
{
        *flights = (struct sl_flights){
                .depth = depth,
                .tensors = tensors,
                .n_free = depth,
                .free_tags = calloc(depth, sizeof(*flights->free_tags)),
                .stash_order = calloc(depth, sizeof(*flights->stash_order)),
                .by_tag = calloc(depth, sizeof(*flights->by_tag)),
                .stashed = calloc(depth, sizeof(*flights->stashed)),
                .shapes = calloc((size_t)depth * tensors, sizeof(*flights->shapes)),
        };
        if (!flights->free_tags || !flights->stash_order || !flights->by_tag || !flights->stashed || !flights->shapes) {
                sl_flights_deinit(flights);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < depth; i++)
                flights->free_tags[i] = (uint16_t)i; /* the lowest, which wide requests want, are taken last */
        return 0;
}

void sl_flights_deinit(struct sl_flights *flights)
{
        free(flights->free_tags);
        free(flights->stash_order);
        free(flights->by_tag);
        free(flights->stashed);
        free(flights->shapes);
        free(flights->wide);
        free(flights->texts);
        memset(flights, 0, sizeof(*flights));
}

char *sl_flights_text(struct sl_flights *flights, uint16_t tag)
{
        if (!flights->texts)
                flights->texts = calloc(flights->depth, sizeof(*flights->texts));
        return flights->texts ? flights->texts[tag] : NULL;
}

void sl_flights_stash(struct sl_flights *flights, uint16_t tag, const struct starling_completion *completion)
{
        flights->by_tag[tag].state = SL_FLIGHT_STASHED;
        flights->stashed[tag] = *completion;
        flights->stash_order[(flights->oldest + flights->n_stashed++) % flights->depth] = tag;
}

static uint16_t pop_stash(struct sl_flights *flights)
{
        uint16_t tag = flights->stash_order[flights->oldest];

        flights->oldest = (flights->oldest + 1) % flights->depth;
        flights->n_stashed--;
        return tag;
}

uint32_t sl_flights_unstash(struct sl_flights *flights, struct starling_completion *ret_completions, uint32_t max)
{
        uint32_t n = flights->n_stashed < max ? flights->n_stashed : max;

        for (uint32_t i = 0; i < n; i++) {
                uint16_t tag = pop_stash(flights);

                ret_completions[i] = flights->stashed[tag];
                sl_flights_release(flights, tag);
        }
        return n;
}

/* Turns the queue once round, so that the others keep their order. */
bool sl_flights_unstash_one(struct sl_flights *flights, uint64_t id, struct starling_completion *ret_completion)
{
        bool found = false;

        for (uint32_t i = flights->n_stashed; i > 0; i--) {
                uint16_t tag = pop_stash(flights);

                if (!found && flights->stashed[tag].id == id) {
                        *ret_completion = flights->stashed[tag];
                        sl_flights_release(flights, tag);
                        found = true;
                } else {
                        flights->stash_order[(flights->oldest + flights->n_stashed++) % flights->depth] = tag;
                }
        }
        return found;
}

void sl_flights_fail(struct sl_flights *flights, int status)
{
        for (uint32_t tag = 0; tag < flights->depth; tag++) {
                const struct sl_flight *flight = &flights->by_tag[tag];

                if (flight->state == SL_FLIGHT_FLYING)
                        sl_flights_stash(flights, (uint16_t)tag,
                                &(struct starling_completion){.id = flight->id, .user_data = flight->user_data, .status = status});
        }
}

void sl_flights_drop_stash(struct sl_flights *flights)
{
        while (flights->n_stashed > 0)
                sl_flights_release(flights, pop_stash(flights));
}
