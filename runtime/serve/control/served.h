/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One name that is served, or is to be: what the repository says of it, how far it is, and what clients see of it in the
 * catalogue. Control thread only; see registry.h for the states.
 */
#pragma once

#include "layout.h"
#include "spec.h"
#include "stats.h"

#include <limits.h>
#include <stdbool.h>

struct sl_ensemble;
struct sl_load;
struct sl_model;
struct sl_plan;

enum sl_served_state {
        SL_SERVED_NONE,
        SL_SERVED_WAITING,
        SL_SERVED_LOADING,
        SL_SERVED_READY,
        SL_SERVED_FAILED,
        SL_SERVED_DRAINING
};

/* A spec with its own copies of what it points to. */
struct sl_own_spec {
        struct sl_model_spec spec;
        char name[SL_MODEL_NAME_BYTES], path[PATH_MAX];
        char members[SL_MEMBERS_MAX][SL_MODEL_NAME_BYTES];
        const char *member_names[SL_MEMBERS_MAX];
        float weights[SL_MEMBERS_MAX];
};

struct sl_served {
        enum sl_served_state state;
        uint32_t index;
        uint32_t generation;
        struct sl_own_spec own;
        struct sl_model *model;       /* of a model that serves */
        struct sl_ensemble *ensemble; /* what serves */
        bool replace;                 /* while READY: load again */
        bool resize;                  /* while READY: as many workers as the spec says */
        struct sl_load *load;         /* under way, for the first time or as a replacement */
        uint32_t load_number;         /* of the stage of that load: no two have the same */
        uint64_t load_ns;             /* when it began */
        bool compiled;                /* of the load: its fd is no longer watched */
        bool aside;                   /* of the load: it waits for a process, and others go ahead */
        bool look_again;              /* the repository has said something else of it meanwhile */
        uint64_t asker;
        struct {
                uint64_t mark; /* of what the dispatcher has to take before the world hears of it; 0: it has */
                const char *event, *answer;
        } news;                              /* news.c */
        char why[SL_CATALOGUE_REASON_BYTES]; /* of FAILED; else why its last load failed, or "" */

        /* standing.c */
        uint32_t loads, load_failures;
        uint64_t took_ns; /* the last one that ended well */
        struct sl_model_counting counting;
        struct sl_model_stats shown; /* as it is now in the stats page */

        struct sl_own_spec *served_spec; /* of an open model: what is served, as `own` may be what is to follow, or has failed to */
        struct sl_plan *base;            /* of an open model: that of the plans of its sizes; held. NULL: there is none yet */

        bool is_shape; /* it serves the open one at `open`, at these sizes; nobody's repository knows it */
        bool orphan;   /* and that one is gone: it drains */
        bool asked;    /* a request has asked for them, of this user: */
        uint32_t uid;
        uint32_t open;
        int64_t sizes[SL_SYMBOLS_MAX];
        struct {
                bool wanted; /* while it drains: somebody has asked for the same sizes again */
                uint32_t open, uid;
        } again;
};

/* Copies a spec with everything that it points to. */
void sl_own_spec_copy(struct sl_own_spec *own, const struct sl_model_spec *spec);

/* True when there is nothing to load again: at most the number of workers differs. */
bool sl_spec_same(const struct sl_model_spec *a, const struct sl_model_spec *b);

/* True when that does. An ensemble has none. */
bool sl_spec_resized(const struct sl_model_spec *a, const struct sl_model_spec *b);

/* Writes what the catalogue has of it. */
void sl_served_publish(struct sl_catalogue *catalogue, const struct sl_served *served);
