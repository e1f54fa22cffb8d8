/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher's own state, shared by the files that are its stages: intake (entries -> requests), harvest (predictions ->
 * finished segments), completion (requests -> completions), command (control), event (to control), settle (the end of things).
 * All run on the dispatcher's thread.
 */
#pragma once

#include "bundle.h"
#include "busy.h"
#include "channel.h"
#include "dispatcher.h"
#include "ensemble.h"
#include "lateness.h"
#include "model.h"
#include "pass_clock.h"
#include "recorder.h"
#include "scheduler.h"
#include "stats.h"

struct sl_variant_line;

/* A place of the catalogue whose model is a variant (lines.h). */
struct sl_watched {
        uint32_t index;
        struct sl_variant_line *line;
};

struct sl_dispatcher {
        struct sl_dispatcher_options options;
        struct sl_wait *wait;
        struct sl_bell bell;
        struct sl_mailbox *commands, *events;
        struct sl_dispatcher_stats *stats;
        struct sl_recorder recorder;
        pthread_t thread;
        bool running, quit;

        struct sl_queue **hot, **cold; /* queue pairs by how they are polled */
        uint32_t n_hot, n_cold, hot_turn, cold_turn;
        struct sl_watched watched[SL_CATALOGUE_MODELS];
        uint32_t n_watched;
        double drift;                        /* of all workers together, as a logarithm (conditions.h) */
        bool is_overloaded;                  /* a worker has become so, and control has not been told */
        bool is_slowed;                      /* a worker is interfered with, and control has not been told */
        uint64_t drift_ns;                   /* when it was last looked at */
        struct sl_ensemble *ensembles;       /* all that have requests or are served */
        struct sl_broadcast_ring broadcasts; /* of those that have something to broadcast */
        struct sl_model *models;
        uint64_t n_added; /* models, ever */
        struct sl_busy busy;
        struct sl_bundle *bundles; /* that have some of these */
        struct sl_inline_budget budget;
        uint64_t next_ns; /* when a policy wants to be asked again; UINT64_MAX: none does */
        bool full;        /* something waits while all workers that could take it have jobs */
        uint64_t scheduler_runs;
        bool shares_core;        /* some worker may run where the dispatcher does */
        uint32_t in_flight;      /* requests of all clients */
        uint64_t origins;        /* state of SplitMix64, that of each request's random numbers; begun at random */
        uint32_t shapes_loading; /* slots of all open ensembles: at most SL_SHAPES_MAX */
        uint32_t with_deadline;
        uint64_t deadlines_checked_ns;
        uint64_t gauges_shown_ns;
        struct sl_lateness lateness;
        uint64_t advised_ns;
        uint32_t given;          /* jobs to workers, since that was last advised */
        uint32_t waiting;        /* queue pairs whose clients wait, as last counted */
        bool crowded;            /* as advised: more threads would run than there are cores */
        bool saturated;          /* and after this pass workers have all that they can take */
        uint64_t listened_ns;    /* when it last let clients wake it, or found something of theirs, while saturated */
        uint32_t untimed_passes; /* since the clock was last looked at */
        struct sl_queue *told;   /* got completions and were not looked at whether they sleep: through next_told */
        struct sl_pass_clock pass;
        struct sl_channel *leaving; /* have requests in flight that nobody waits for */
        bool unsettled;             /* something ended: sl_settle() has to look */
        bool closing;               /* nothing new is admitted */
        bool drain_reported;
        struct sl_ensemble *served[SL_CATALOGUE_MODELS]; /* by catalogue index; last, as it is large */
};
