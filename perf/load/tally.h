/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of a load, counted while it runs: for one thread at a time; several threads have one each, which are merged.
 *
 * A request counts by when it was *due*: those of the measured time and no others, however late they were sent or answered. Its
 * latency is that from there until its answer was taken, and is the sum of its stages:
 *
 *     sending     due until it was handed to the runtime: what the generator was late with, and any wait for a place in flight
 *     queued, batched, computing, combining       as its completion says
 *     waking      the rest: its way through both rings, and until a thread that may have slept took the answer
 */
#pragma once

#include "histogram.h"
#include "latencies.h"

#include <stdbool.h>

#define SL_LOAD_STAGES(X)                                                                                                          \
        X(SENDING, "sending")                                                                                                      \
        X(QUEUED, "queued")                                                                                                        \
        X(BATCHED, "batched")                                                                                                      \
        X(COMPUTING, "computing")                                                                                                  \
        X(COMBINING, "combining")                                                                                                  \
        X(WAKING, "waking")

enum sl_load_stage {
#define X(id, name) SL_LOAD_##id,
        SL_LOAD_STAGES(X)
#undef X
                SL_LOAD_STAGES_N
};

const char *sl_load_stage_name(enum sl_load_stage stage);

/* How the time is parted for a plot. */
#define SL_TALLY_SLICES 64u

struct sl_tally_slice {
        uint64_t due;
        struct sl_histogram latencies; /* of those due in it that were answered */
};

/* What a model got. */
struct sl_tally_model {
        uint64_t due, failed;
        struct sl_latencies total;
};

/* One request and all that is known of it. */
struct sl_tally_entry {
        uint64_t due_ns, sent_ns, answered_ns;
        uint64_t queued_ns, batched_ns, computing_ns, combining_ns;
        uint32_t model, samples;
        int status;
        bool blocked; /* it had to wait for a place in flight */
};

struct sl_tally_options {
        uint64_t from_ns, until_ns; /* the measured time, on the clock of the load */
        uint64_t objective_ns;      /* what a latency should not exceed; 0: none */
        uint32_t n_models;
};

struct sl_tally {
        struct sl_tally_options options;
        uint64_t due, blocked, unsent;     /* unsent: given up when the time was long over */
        uint64_t answered, samples;        /* with status 0, and the samples in them */
        uint64_t refused, expired, failed; /* -EBUSY, -EDQUOT; -ETIME; any other */
        int first_failure;
        uint64_t violations;                          /* later than the objective, refused, expired, failed or unsent */
        uint64_t answered_in_time, samples_in_time;   /* answered within the measured time, whenever they were due */
        uint64_t last_ns;                             /* of the answers that count */
        struct sl_latencies total, lateness;          /* lateness: `sending` of those that were not blocked */
        struct sl_latencies prompt;                   /* `total` as it were without that */
        struct sl_latencies stages[SL_LOAD_STAGES_N]; /* of what is in `total` */
        struct sl_tally_model *models;
        struct sl_tally_slice *slices;
};

/* Return: 0, -ENOMEM (then it may be deinitialised). */
int sl_tally_init(struct sl_tally *tally, const struct sl_tally_options *options);
void sl_tally_deinit(struct sl_tally *tally);

/* A request was due, answered or not. */
void sl_tally_due(struct sl_tally *tally, uint32_t model, uint64_t due_ns);

/* An answer was taken, or submitting failed for good. */
void sl_tally_answer(struct sl_tally *tally, const struct sl_tally_entry *entry);

/* A request that was due and will never be sent. */
void sl_tally_unsent(struct sl_tally *tally, uint64_t due_ns);

/* Adds @from to @into; both have the same options. */
void sl_tally_merge(struct sl_tally *into, const struct sl_tally *from);
