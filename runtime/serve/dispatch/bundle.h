/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that share workers: a bundle has carriers (execute/carrier.h), and each of its models a lane of every carrier, which are
 * the model's workers. Each model has its queues, its policy and its limits as any other; what waits for them when a carrier is
 * idle goes to it together.
 *
 *     models  [A] [B] [C] [D]        for each class of priority, from the one whose turn it is:
 *              |   |   |   |           each model's policy sees a carrier that has launched something as busy, and one that others
 *              v   v   v   v           have filled in this pass as idle, until it has its share
 *            carrier 0   carrier 1   then each carrier gets what was filled as one launch
 *
 * A carrier is full when it has its share of the models that wait, or what it has takes a slice (`slice_ns`) or more: a launch
 * takes less than two slices. It is full of pieces, too (SL_CARRIER_PIECES_MAX). Where all of it takes no longer than a thread
 * takes to wake, one carrier gets all, if it has a lane of each. A model may have lanes of some carriers only.
 *
 * Turns are in rounds: who has had its turn waits for those that have not. Every other round goes backwards, and so does every
 * other launch of a carrier: where the weights of all of them fill more than a cache, what was computed last is still in it, and
 * what comes round in one order never is.
 *
 * The dispatcher computes what is short enough in a carrier without a thread (execute/inline_carrier.h), the shortest first: those
 * are the ones whose weights are in a cache.
 *
 * Threads: made and freed by control; the dispatcher's from its first model's ADD_MODEL to its last one's MODEL_GONE.
 */
#pragma once

#include "carrier.h"
#include "layout.h"
#include "workers.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_model;
struct sl_schedule;

struct sl_bundle {
        uint32_t n_models;
        bool forwards; /* the round goes from the first model to the last; else from the last to the first */
        uint64_t due;  /* who has its turn in the round still, as bits by place */
        struct sl_model *models[SL_CARRIER_LANES_MAX];
        uint64_t waiting[SL_CLASSES]; /* which of them have something in the class, in a run of the scheduler: bits by place */
        struct {
                uint64_t lanes, run; /* bits; of which run of the scheduler this is true */
                uint32_t priority, samples;
        } ready;                         /* lanes of the inliner whose next job has so many samples */
        bool put_off;                    /* what goes together had not enough of a pass's time, and waits for the next one */
        uint32_t n_carriers;             /* with lanes of models that are here */
        struct sl_carrier *carriers[SL_WORKERS_MAX];
        struct sl_carrier *inliner; /* of what the dispatcher computes itself; NULL: it never has */
        struct sl_bundle *next;     /* of those that have a model */
};

/* Control sees to it that there are no more models than lanes. */
void sl_bundle_add(struct sl_bundle *bundle, struct sl_model *model);
void sl_bundle_remove(struct sl_bundle *bundle, const struct sl_model *model);

/* A worker of one of its models joins. True: it is the first lane of its carrier here. */
bool sl_bundle_add_worker(struct sl_bundle *bundle, const struct sl_executor *worker);

/* One is gone, and blocks with it that it is a lane of. True: it was the last one of its carrier. */
bool sl_bundle_remove_worker(struct sl_bundle *bundle, const struct sl_executor *worker);

/* Of the models @left, as bits by their place, the one whose turn is next, which is taken out: in this round, or where none has one
 * in the next, which goes the other way. */
struct sl_model *sl_bundle_next(const struct sl_bundle *bundle, uint64_t *left);

/* The model has had its turn. If that was not in this round the next one has begun. */
void sl_bundle_took_turn(struct sl_bundle *bundle, const struct sl_model *model);

/* Gives what waits in that class to its carriers. @spares_inline: what the dispatcher may compute itself is left to it. Return:
 * jobs. */
uint32_t sl_bundle_run(const struct sl_schedule *schedule, struct sl_bundle *bundle, uint32_t priority, bool spares_inline);

/* Any answer of its carriers? seq_cst, for the last look before a sleep. */
bool sl_bundle_waiting(const struct sl_bundle *bundle);
