/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes of a carrier that one plan computes: a merged plan (graph/merge) has the ports of its members one behind the other, and
 * takes a batch of each at a time. A launch in which enough of the members have a job of one and the same number of samples is one
 * run of that plan; who has none is left out where a step can do that, or computed on zeros, and nobody sees it. All others compute
 * by the plans of their own, and so do all where that run fails, so that no answer changes through another member.
 *
 *     jobs of lanes  A  -  C  D      inputs where they lie, or gathered in the member's pool; zeros for who has no job
 *                    |  0  |  |
 *                   [merged plan]
 *                    |  x  |  |      outputs to their places, or to the pool and from there
 *
 * Threads: made by any, handed over as a whole, then its carrier's. Blocks of one carrier are a list, which a launch names: it is
 * not touched behind the last answer of that, and does not change while one names it (carrier.h).
 */
#pragma once

#include "carrier.h"
#include "job_runner.h"

#include <stdint.h>

struct sl_block;
struct sl_error;

/* What pays of a size of its ladder. */
struct sl_block_size {
        uint32_t least; /* so many members with a job are cheaper so than one by one; 0: none are */
        uint64_t ns;    /* that a run takes with a job of each */
};

struct sl_block_options {
        struct sl_plan *plan;                      /* merged; held by the block */
        const struct sl_plan_info *const *members; /* whose ports it has, in this order; read during the call */
        uint32_t n_members;
        uint32_t batch_max;                /* a size of its ladder */
        const struct sl_block_size *sizes; /* of its ladder, each; copied */
};

/*
 * Kernels and memory, and a run of each size with zeros. Return: 0; -EINVAL its ports are not those of the members; what
 * sl_instance_new() and sl_instance_run() say. With text.
 */
int sl_block_new(const struct sl_block_options *options, struct sl_block **ret_block, struct sl_error *error);

/* Frees those behind it as well. NULL is fine. Returns NULL. */
struct sl_block *sl_block_free(struct sl_block *block);

/* Memory that one takes, and what of that lies in a room; weights are the plan's. Pure. UINT64_MAX: more than can be said. */
uint64_t sl_block_bytes(const struct sl_block_options *options);
uint64_t sl_block_room_bytes(const struct sl_block_options *options);

/* From now on it computes in @room, of so many bytes, which others may use between launches. Before it is handed over. */
void sl_block_move(struct sl_block *block, void *room);

/* Member @member is this lane of the carrier. Before it is handed over. */
void sl_block_seat(struct sl_block *block, uint32_t member, uint32_t lane);

/* Before it is handed over: @behind comes after it. */
void sl_block_chain(struct sl_block *block, struct sl_block *behind);

/* Of all in the list, as bits. */
uint64_t sl_blocks_lanes(const struct sl_block *blocks);

/* Of @lanes, as bits, with a job of @samples each, those that the block of @lane computes together with that, in about @ret_ns; 0:
 * too few. */
uint64_t sl_blocks_together(const struct sl_block *blocks, uint32_t lane, uint64_t lanes, uint32_t samples, uint64_t *ret_ns);

/*
 * The thread of the carrier: computes what it can of @lanes, as bits, whose jobs are runs[lane], not begun. @now_ns: the clock, as
 * it was read last, and then as it is. Return: lanes that have been answered.
 */
uint64_t sl_blocks_run(struct sl_block *blocks, uint64_t lanes, struct sl_job_run *runs, uint64_t *now_ns);

/* Any thread: runs of merged plans, and jobs that they computed. */
struct sl_block_count {
        uint64_t runs, jobs;
};
struct sl_block_count sl_blocks_count(const struct sl_block *blocks);
