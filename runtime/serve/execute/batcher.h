/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first stage of a runner: from the pieces of a job to batches that the predictor can run.
 *
 * One piece is split: batches of the plan's sizes, largest first, whose inputs are read straight from the client's arena and whose
 * predictions go straight to their place. Several pieces are gathered: one copy of each input into the pool, one copy of each
 * prediction out of it. An output that the request leaves out stays in the pool. Inputs that an indexing kernel consumes are always
 * copied first.
 */
#pragma once

#include "job.h"
#include "plan.h"

#include <stdbool.h>

struct sl_batcher;

struct sl_batch {
        uint32_t samples;    /* a size of the plan's ladder */
        const void **inputs; /* of the plan's ports; the batcher's, until its next batch */
        void **outputs;
        const struct sl_draw_key *keys; /* of its samples, of a plan that draws random numbers; NULL */
};

/*
 * The pool holds one batch of @batch_max samples, inputs and outputs; zeros, of which none takes memory yet. @regions: what the
 * jobs' places are in. Return: 0, -ENOMEM.
 */
int sl_batcher_new(
        const struct sl_plan_info *info, uint32_t batch_max, const struct sl_regions *regions, struct sl_batcher **ret_batcher);
struct sl_batcher *sl_batcher_free(struct sl_batcher *batcher);

/* Faults at most @bytes_max of the pool, as sl_instance_populate() does. */
int sl_batcher_populate(struct sl_batcher *batcher, uint64_t bytes_max);

/* Memory that the pool takes: in batches of one, only inputs that index are ever copied into it. Pure. */
uint64_t sl_batcher_bytes(const struct sl_plan_info *info, uint32_t batch_max);

/*
 * What a pool of @batch_max samples has. Pure. From sl_batcher_move() on it lies there, where others may write between jobs, and
 * the batcher's own is given up.
 */
uint64_t sl_batcher_pool_bytes(const struct sl_plan_info *info, uint32_t batch_max);
void sl_batcher_move(struct sl_batcher *batcher, void *pool);

/*
 * Until sl_batcher_return() its jobs are one batch each, of @samples, and lie in this pool, of sl_batcher_pool_bytes() for so many:
 * another plan computes them (block.h).
 */
void sl_batcher_lend(struct sl_batcher *batcher, void *pool, uint32_t samples);
void sl_batcher_return(struct sl_batcher *batcher);

/* Starts on those pieces of a job that are worth computing; @n >= 1. @pieces is left alone until the last batch is scattered. */
void sl_batcher_begin(struct sl_batcher *batcher, struct sl_job *job, const uint32_t *pieces, uint32_t n);

/* The next batch; false when the job is done. */
bool sl_batcher_next(struct sl_batcher *batcher, const struct sl_instance *instance, struct sl_batch *ret_batch);

/* All of the job as one batch. */
void sl_batcher_whole(struct sl_batcher *batcher, struct sl_batch *ret_batch);

/* After the last batch of gathered pieces: predictions from the pool to each one's place. */
void sl_batcher_scatter(struct sl_batcher *batcher);

/* A batch that lies wholly in the pool, for warm-up. @samples is at most batch_max. */
void sl_batcher_pool(struct sl_batcher *batcher, uint32_t samples, struct sl_batch *ret_batch);
