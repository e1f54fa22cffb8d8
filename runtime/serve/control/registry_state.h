/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the registry, for the files that it consists of. Control thread only; none of their functions waits.
 *
 *     registry.c   what is asked for: sync, load, unload, events
 *     listing.c    what the repository lists
 *     loads.c      loads under way, from the start to a loaded model; the cores of its workers
 *     serving.c    from a loaded model to what serves under a name, and down again
 *     sizes.c      sizes of open dimensions: who wants them, and the plan whose weights they share
 *     merger.c     models that share workers, merged while they serve
 *     change.c     the workers of several models change at once
 *     names.c      the table
 *     news.c       what is told of a change, once the dispatcher has taken it
 */
#pragma once

#include "account.h"
#include "base/error.h"
#include "bundles.h"
#include "registry.h"
#include "served.h"

/* Workers as the configuration says, which somebody asked for. */
struct sl_configured {
        uint64_t asker; /* 0: nobody */
        uint64_t mark;  /* of the last command; 0: not all is done */
        int status;     /* of the first model that stays as it is */
        struct sl_error why;
};

struct sl_registry {
        struct sl_registry_options options;
        struct sl_served served[SL_CATALOGUE_MODELS];
        uint32_t loads;        /* under way, without those aside */
        uint32_t load_numbers; /* given so far */
        uint32_t n_left_out;   /* names of the repository for which the table had no room when it was last read */
        uint64_t load_turn;    /* of the last load of sizes that a user asked for */
        struct sl_lets *lets;
        struct sl_bundles bundles;  /* of models that share workers */
        struct sl_merger *merger;   /* of those */
        struct sl_model *loaded;    /* all models that have workers */
        struct sl_change *change;   /* under way; NULL: none */
        struct sl_change *in_force; /* NULL: what the configuration says */
        struct sl_configured configured;
        struct {
                uint64_t given, sent, heard;
        } marks;            /* of commands to the dispatcher (news.c): heard <= sent <= given */
        uint64_t looked_ns; /* when it was last looked which cores there are */
        uint64_t due_ns;    /* when a worker is to start in the place of one that has ended; UINT64_MAX: none is */
};
