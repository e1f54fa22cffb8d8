/* SPDX-License-Identifier: Apache-2.0 */
#include "bundles.h"

#include "base/error.h"
#include "base/utf8.h"
#include "block.h"
#include "crew.h"
#include "dispatcher.h"
#include "inline_carrier.h"
#include "job_runner.h"
#include "lets.h"
#include "memory.h"
#include "model.h"
#include "runtime_options.h"
#include "thread_carrier.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks that a carrier has been given. */
struct put_blocks {
        struct sl_block *blocks; /* NULL: none */
        bool leaves;             /* the dispatcher has been told */
        uint64_t bytes;          /* promised for them */
        struct sl_memory *memory;
};

/* A carrier, and what control keeps of it. */
struct carrier_seat {
        struct put_blocks put;
        struct sl_carrier *carrier;
        cpu_set_t cores; /* on which it was wanted; empty: anywhere */
        uint64_t bytes;  /* promised for it */
        struct sl_memory *memory;
};

struct sl_bundle_home {
        struct sl_bundle bundle; /* first: the dispatcher's view */
        struct sl_bundles *bundles;
        struct sl_bundle_home *next;
        uint64_t family[2], circle;
        uint32_t n_models;    /* those that load among them */
        uint32_t n_named;     /* threads that have got a name */
        uint64_t joins;       /* models that have ever come, of all bundles before it too */
        uint64_t seen, lacks; /* the merger's */
        struct sl_carrier *inliner;
        struct put_blocks inliner_put;
        uint32_t n_seats;
        struct carrier_seat seats[SL_WORKERS_MAX];
};

static struct sl_bundle_home *home_of(const struct sl_bundle *bundle)
{
        return (struct sl_bundle_home *)((char *)(uintptr_t)bundle - offsetof(struct sl_bundle_home, bundle));
}

static bool has_seat(const struct sl_bundle_home *home, const uint64_t family[2], uint64_t circle)
{
        return memcmp(home->family, family, sizeof(home->family)) == 0 && home->circle == circle &&
               home->n_models < SL_CARRIER_LANES_MAX;
}

static struct sl_bundle_home *find(
        const struct sl_bundles *bundles, const uint64_t family[2], uint64_t circle, struct sl_bundle *preferred)
{
        if (preferred && has_seat(home_of(preferred), family, circle))
                return home_of(preferred);
        for (struct sl_bundle_home *home = bundles->first; home; home = home->next)
                if (has_seat(home, family, circle))
                        return home;
        return NULL;
}

int sl_bundles_join(struct sl_bundles *bundles, const struct sl_plan_info *info, uint64_t circle, struct sl_bundle *preferred,
        struct sl_bundle **ret_bundle)
{
        struct sl_bundle_home *home = find(bundles, info->family, circle, preferred);

        if (!home) {
                home = calloc(1, sizeof(*home));
                if (!home)
                        return -ENOMEM;
                memcpy(home->family, info->family, sizeof(home->family));
                home->circle = circle;
                home->bundles = bundles;
                home->next = bundles->first;
                bundles->first = home;
        }
        home->n_models++;
        home->joins = ++bundles->joins;
        *ret_bundle = &home->bundle;
        return 0;
}

static void free_blocks(struct put_blocks *put)
{
        if (!put->blocks)
                return;
        sl_block_free(put->blocks);
        sl_memory_give(put->memory, SL_MEMORY_WORKERS, put->bytes);
        *put = (struct put_blocks){0};
}

void sl_bundle_leave(struct sl_bundle *bundle)
{
        struct sl_bundle_home *home = home_of(bundle), **link = &home->bundles->first;

        if (--home->n_models)
                return;
        while (*link != home)
                link = &(*link)->next;
        *link = home->next;
        sl_bundle_trim(bundle);
        free_blocks(&home->inliner_put);
        sl_carrier_free(home->inliner);
        free(home);
}

uint32_t sl_bundle_size(const struct sl_bundle *bundle)
{
        return home_of(bundle)->n_models;
}

static bool has_lane(const struct sl_crew *crew, const struct sl_carrier *carrier)
{
        for (uint32_t i = 0; i < crew->n; i++)
                if (crew->workers[i].executor->carrier == carrier)
                        return true;
        return false;
}

struct sl_carrier *sl_bundle_find_carrier(
        const struct sl_bundle *bundle, const struct sl_crew *crew, const struct sl_worker_wish *wish)
{
        const struct sl_bundle_home *home = home_of(bundle);

        for (uint32_t i = 0; i < home->n_seats; i++) {
                const struct carrier_seat *seat = &home->seats[i];

                if (CPU_EQUAL(&seat->cores, &wish->cores) && !seat->carrier->let->stale &&
                        seat->carrier->n_lanes < SL_CARRIER_LANES_MAX && !has_lane(crew, seat->carrier))
                        return seat->carrier;
        }
        return NULL;
}

/* Its room is as large as the first lane needs: of others of the family most fit. */
static int start_carrier(struct sl_bundle_home *home, const struct sl_crew *crew, struct sl_let *let, uint64_t room_bytes,
        struct sl_carrier **ret_carrier, struct sl_error *error)
{
        const struct sl_crew_options *options = &crew->options;
        char name[16];

        snprintf(name, sizeof(name), "sl-%.*s+%u", (int)sl_utf8_head(options->model->name, 9), options->model->name,
                home->n_named++ % 10);
        return sl_thread_carrier_new(
                &(struct sl_thread_carrier_options){
                        .accumulator = options->accumulator,
                        .let = let,
                        .room_bytes = room_bytes,
                        .spin_ns = let->turns.for_one ? options->runtime->spin_ns : 0,
                        .wait = options->runtime->wait,
                        .name = name,
                        .dispatcher = sl_dispatcher_bell(options->dispatcher),
                },
                ret_carrier, error);
}

int sl_bundle_add_carrier(struct sl_bundle *bundle, const struct sl_crew *crew, const struct sl_worker_wish *wish,
        struct sl_let *let, uint64_t room_bytes, struct sl_carrier **ret_carrier, struct sl_error *error)
{
        struct sl_bundle_home *home = home_of(bundle);
        struct sl_memory *memory = crew->options.memory;
        uint64_t bytes = sl_thread_carrier_bytes(room_bytes);
        int r;

        if (home->n_seats == SL_WORKERS_MAX)
                return sl_error_set(error, EBUSY, "models that share workers have %u of them at most", SL_WORKERS_MAX);
        r = sl_memory_take(memory, SL_MEMORY_WORKERS, bytes, error);
        if (r < 0)
                return sl_error_prefix(error, r, "a worker that several models share");
        r = start_carrier(home, crew, let, room_bytes, ret_carrier, error);
        if (r < 0) {
                sl_memory_give(memory, SL_MEMORY_WORKERS, bytes);
                return r;
        }
        home->seats[home->n_seats++] =
                (struct carrier_seat){.carrier = *ret_carrier, .cores = wish->cores, .bytes = bytes, .memory = memory};
        return 0;
}

void sl_bundle_trim(struct sl_bundle *bundle)
{
        struct sl_bundle_home *home = home_of(bundle);

        for (uint32_t i = home->n_seats; i-- > 0;) {
                struct carrier_seat seat = home->seats[i];

                if (seat.carrier->n_lanes)
                        continue;
                memmove(home->seats + i, home->seats + i + 1, (--home->n_seats - i) * sizeof(seat));
                free_blocks(&seat.put);
                sl_lets_return(seat.carrier->let);
                sl_carrier_free(seat.carrier);
                sl_memory_give(seat.memory, SL_MEMORY_WORKERS, seat.bytes);
        }
}

struct sl_carrier *sl_bundle_inliner(struct sl_bundle *bundle)
{
        struct sl_bundle_home *home = home_of(bundle);

        if (!home->inliner)
                (void)sl_inline_carrier_new(&home->inliner);
        return home->inliner;
}

/* ---- blocks ---- */

struct sl_bundle *sl_bundles_next(const struct sl_bundles *bundles, const struct sl_bundle *before)
{
        struct sl_bundle_home *next = before ? home_of(before)->next : bundles->first;

        return next ? &next->bundle : NULL;
}

uint64_t sl_bundle_joins(const struct sl_bundle *bundle)
{
        return home_of(bundle)->joins;
}

uint64_t *sl_bundle_seen(struct sl_bundle *bundle)
{
        return &home_of(bundle)->seen;
}

uint64_t *sl_bundle_lacks(struct sl_bundle *bundle)
{
        return &home_of(bundle)->lacks;
}

struct sl_carrier *sl_bundle_carrier(const struct sl_bundle *bundle, uint32_t i)
{
        const struct sl_bundle_home *home = home_of(bundle);

        if (i < home->n_seats)
                return home->seats[i].carrier;
        return i == home->n_seats ? home->inliner : NULL;
}

bool sl_bundle_is_inliner(const struct sl_bundle *bundle, const struct sl_carrier *carrier)
{
        return carrier == home_of(bundle)->inliner;
}

/* NULL: the carrier is none of the bundle's. */
static struct put_blocks *put_of(struct sl_bundle_home *home, const struct sl_carrier *carrier)
{
        for (uint32_t i = 0; i < home->n_seats; i++)
                if (home->seats[i].carrier == carrier)
                        return &home->seats[i].put;
        return carrier == home->inliner ? &home->inliner_put : NULL;
}

static void command_blocks(struct sl_dispatcher *dispatcher, struct sl_carrier *carrier, struct sl_block *blocks)
{
        sl_dispatcher_command(
                dispatcher, &(struct sl_command){.kind = SL_COMMAND_PUT_BLOCKS, .carrier = carrier, .pointer = blocks});
}

void sl_bundle_put_blocks(struct sl_bundle *bundle, struct sl_carrier *carrier, struct sl_block *blocks, uint64_t bytes,
        const struct sl_crew_options *options)
{
        struct put_blocks *put = put_of(home_of(bundle), carrier);

        *put = (struct put_blocks){.blocks = blocks, .bytes = bytes, .memory = options->memory};
        command_blocks(options->dispatcher, carrier, blocks);
}

bool sl_bundle_put_blocks_away(struct sl_bundle *bundle, struct sl_dispatcher *dispatcher)
{
        struct sl_carrier *carrier;
        bool some = false;

        for (uint32_t i = 0; (carrier = sl_bundle_carrier(bundle, i)); i++) {
                struct put_blocks *put = put_of(home_of(bundle), carrier);

                some |= put->blocks != NULL;
                if (!put->blocks || put->leaves)
                        continue;
                put->leaves = true;
                command_blocks(dispatcher, carrier, NULL);
        }
        return some;
}

static bool free_if_gone(struct sl_bundle_home *home, const struct sl_block *blocks)
{
        struct sl_carrier *carrier;

        for (uint32_t i = 0; (carrier = sl_bundle_carrier(&home->bundle, i)); i++) {
                struct put_blocks *put = put_of(home, carrier);

                if (put->blocks != blocks)
                        continue;
                free_blocks(put);
                return true;
        }
        return false;
}

void sl_bundles_blocks_gone(struct sl_bundles *bundles, const struct sl_block *blocks)
{
        for (struct sl_bundle_home *home = bundles->first; home; home = home->next)
                if (free_if_gone(home, blocks))
                        return;
}
