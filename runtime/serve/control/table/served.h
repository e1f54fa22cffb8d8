/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One name: what is wanted of it (wanted.h), what is there, and what clients see of it in the catalogue. Its state follows from the
 * two, and is nowhere kept:
 *
 *     AVAILABLE  it is loaded on request, and nobody has asked: nothing is there, or it rests
 *     STANDBY    the same, but its plan is there
 *     WAITING    something is wanted, and nothing is there
 *     LOADING    and is being loaded
 *     READY      something serves, whatever else is wanted or under way
 *     FAILED     what is wanted could not be had, and nothing serves
 *     DRAINING   what has served takes no more requests, and the last have not ended
 *
 * Control thread only.
 */
#pragma once

#include "layout.h"
#include "own_spec.h"
#include "standby.h"
#include "stats.h"
#include "step.h"
#include "wanted.h"

#include <stdbool.h>

struct sl_ensemble;
struct sl_load;
struct sl_model;
struct sl_plan;
struct sl_registry;

enum sl_served_state {
        SL_SERVED_NONE,
        SL_SERVED_AVAILABLE,
        SL_SERVED_STANDBY,
        SL_SERVED_WAITING,
        SL_SERVED_LOADING,
        SL_SERVED_READY,
        SL_SERVED_FAILED,
        SL_SERVED_DRAINING
};

struct sl_served {
        uint32_t index;
        uint32_t generation;
        bool used;       /* the name has its place */
        bool awake;      /* it is among registry.awake, */
        uint32_t place;  /* there, when the fleet was last looked at */
        uint64_t listed; /* the listing that it was in last (listing.c), */
        bool is_broken;  /* which could not say how it is to be served */
        char name[SL_MODEL_NAME_BYTES];
        struct sl_want want;

        /* What serves. */
        struct sl_ensemble *ensemble;
        struct sl_own_spec *spec;         /* of what serves; held */
        struct sl_model *model;           /* of a model */
        bool rests;                       /* the ensemble has ports and no model: requests wait in it */
        struct sl_standby standby;        /* of one that rests: its plan */
        uint64_t standby_want;            /* and of which want that is; 0: there is none */
        uint64_t no_standby;              /* for which want there was no memory for it */
        uint64_t used_ns;                 /* on standby: the end of the last request */
        uint64_t serves;                  /* number of the want; 0: nothing */
        uint64_t failed;                  /* of the want that failed last */
        uint64_t composition;             /* of an ensemble: of which models it is, or could not be made (../../converge/fleet.h) */
        uint32_t members[SL_MEMBERS_MAX]; /* of the ensemble that is wanted: their places in the table; SL_FLEET_NONE */
        uint32_t member_places[SL_MEMBERS_MAX]; /* and in the fleet (fleet_view.c) */
        uint64_t members_looked_up;             /* when the table was as registry.names says */
        bool drains;
        uint64_t has_workers, failed_workers; /* numbers of sets (wanted.h): which it has or is getting, which it could not get */
        bool changing;                        /* some of them start or leave */

        /* Its load. */
        struct sl_load *load;
        uint64_t load_want, load_workers, load_file; /* for which */
        uint64_t load_begun; /* number of the last want when it began; of a plan on standby, when that did */
        uint64_t load_cores;                         /* worker cores as registry.cores numbers them, when it began */
        uint32_t load_number;                        /* of the stage: no two have the same */
        uint64_t load_ns;                            /* when it began */
        bool compiled;                               /* its fd is no longer watched */
        uint64_t load_gone;                          /* how many models had gone when it began */
        bool aside;                                  /* it waits for a process, and others go ahead */
        bool load_is_plan;                           /* without workers, for standby */

        struct {
                uint64_t mark; /* of what the dispatcher has to take before the world hears of it; 0: it has */
                const char *event;
        } news;                              /* news.c */
        const char *answer;                  /* to those who asked for what serves: "ready", "replaced" */
        char why[SL_CATALOGUE_REASON_BYTES]; /* of FAILED; else why its last load failed, or who asked waited in vain; or "" */

        enum sl_await awaits; /* what it waited for when it was last looked at (../../converge/step.h) */
        uint64_t awaits_ns;   /* since when */
        uint64_t awaits_want; /* for which want */

        /* standing.c */
        uint32_t loads, load_failures;
        uint64_t took_ns; /* the last one that ended well, */
        uint64_t woke_ns; /* and that began with a plan on standby; 0: there was none */
        struct sl_model_counting counting;
        struct sl_model_stats shown; /* as it is now in the stats page */

        struct sl_plan *base; /* of an open model: that of the plans of its sizes; held. NULL: there is none yet */
        bool any_shares;      /* of an open model: its plan of any size is to be derived from that as well */
        bool is_shape;        /* it serves the open one at `open`, at these sizes; nobody's repository knows it */
        bool given;           /* of such sizes: requests give optional inputs */
        bool asked;           /* a request has asked for them, of this user: */
        uint32_t uid;
        uint32_t open;
        int64_t sizes[SL_SYMBOLS_MAX];
};

enum sl_served_state sl_served_state(const struct sl_served *served);

/* It takes requests, and computes them. */
static inline bool sl_served_is_ready(const struct sl_served *served)
{
        return served->ensemble && !served->drains && !served->rests;
}

/* What is wanted of it, or else what serves; never NULL of a name that is used. */
static inline const struct sl_model_spec *sl_served_spec(const struct sl_served *served)
{
        return served->want.spec ? &served->want.spec->spec : &served->spec->spec;
}

/* Its workers are those of another set than is wanted, or start or leave. */
static inline bool sl_served_is_changing(const struct sl_served *served)
{
        return sl_served_is_ready(served) && served->model &&
               (served->changing || (served->want.workers_number != served->has_workers &&
                                            served->want.workers_number != served->failed_workers));
}

/* It waits for something, or no longer; notes since when. Return: whether that is something else than before. */
bool sl_served_await(struct sl_served *served, enum sl_await await);

/* Models in the catalogue, their inputs and outputs: memory for so much is promised at first, then as it is needed, in steps. */
#define SL_CATALOGUE_ROOM_FIRST (4ull << 20)
#define SL_CATALOGUE_ROOM_STEP  (1ull << 20)

/* Writes what the catalogue has of it. */
void sl_served_publish(struct sl_registry *registry, const struct sl_served *served);
