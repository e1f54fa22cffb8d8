/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who computes for several models, which are its lanes. A job that is given to the executor of a lane lies there until the giver
 * has looked at all of the models; then everything goes as one launch: one message, one thread to wake, one workspace.
 *
 *     sl_executor_give(lane) -> filled --sl_carrier_launch()--> LAUNCHED --last answer of its last lane--> over
 *
 * A launch has one job of each lane that has one, all of one class of priority. Launches are computed in order, and so are the
 * lanes of one, forwards or backwards, but for those that a merged plan computes together (block.h), which come first. Where it
 * computes is its class's: a thread of its own, or its giver's.
 *
 * Threads: lanes are seated and freed by the loader (control) while the dispatcher does not know them; all else is the
 * dispatcher's. The thread of a carrier reads `lanes`, and blocks, only where a launch says so, and not behind its last answer: a
 * list of blocks that is put away is control's again when the launches that name it are over.
 *
 *     (none) --put--> USED --put away, or a lane of it is gone--> LEAVING --the last launch that names it is over--> (none)
 */
#pragma once

#include "executor.h"

#include <stdbool.h>
#include <stdint.h>

/* One bit each. */
#define SL_CARRIER_LANES_MAX 64u

/* Pieces of a launch, of all its jobs together. */
#define SL_CARRIER_PIECES_MAX 512u

struct sl_block;
struct sl_carrier;

struct sl_carrier_launch {
        uint64_t lanes;          /* as bits: one job of each */
        struct sl_block *blocks; /* what may be computed together, of several; NULL: nothing */
        bool backwards;          /* from the last lane to the first */
        bool is_light;           /* all of it takes no longer than a thread takes to wake: its answers are told of together */
};

struct sl_carrier_class {
        const char *name;
        void (*launch)(struct sl_carrier *carrier, const struct sl_carrier_launch *launch, struct sl_wait *from);
        /* The next answer, which names its lane. NULL: each lane answers for itself. */
        bool (*poll)(struct sl_carrier *carrier, struct sl_prediction *ret_prediction);
        /* Is there one? seq_cst, for the last look before a sleep (wait/bell.h). */
        bool (*waiting)(struct sl_carrier *carrier);
        /* It has no lane. Ends what runs, and frees. */
        void (*stop)(struct sl_carrier *carrier);
};

struct sl_carrier {
        const struct sl_carrier_class *class;
        struct sl_let *let;                              /* where it runs; NULL: in its giver's thread */
        struct sl_executor *lanes[SL_CARRIER_LANES_MAX]; /* NULL: nobody's */
        uint32_t n_lanes;                                /* control */

        /* dispatcher */
        uint64_t known;     /* lanes, as bits */
        bool backwards;     /* the next launch is */
        bool is_full;       /* of what is filled now: nothing more goes with it */
        uint32_t n_waiting; /* models that wait, in a run of the scheduler, and have a lane here */
        uint32_t n_only;    /* those of them that no other idle carrier has */
        uint32_t share;     /* models that it gets */
        uint64_t filled;    /* lanes, as bits */
        uint64_t filled_ns; /* that these are expected to take */
        uint32_t filled_pieces;
        uint32_t n_launches; /* under way */
        uint32_t oldest;
        struct sl_block *blocks;  /* for the next launch; NULL: none */
        struct sl_block *leaving; /* put away; NULL: none */
        struct {
                uint32_t unanswered; /* jobs */
                uint32_t priority;
                const struct sl_block *blocks;
        } launches[SL_EXECUTOR_JOBS_MAX];
};

/* Of lanes, as bits, the one that comes first. There is one. */
static inline uint32_t sl_lanes_first(uint64_t lanes, bool backwards)
{
        return (uint32_t)(backwards ? 63 - __builtin_clzll(lanes) : __builtin_ctzll(lanes));
}

/* ---- control ---- */

/* The executor, which has named the carrier, gets a lane. Return: its number; -ENOSPC: there are SL_CARRIER_LANES_MAX. */
int sl_carrier_seat(struct sl_carrier *carrier, struct sl_executor *executor);
void sl_carrier_leave(struct sl_carrier *carrier, const struct sl_executor *executor);

/* NULL is fine. Returns NULL. It has no lane. */
struct sl_carrier *sl_carrier_free(struct sl_carrier *carrier);

/* ---- dispatcher ---- */

/* A lane is here; it is gone, and blocks that have it are put away. True: it is the first one; it was the last one. */
bool sl_carrier_knows(struct sl_carrier *carrier, uint32_t lane);
bool sl_carrier_forgets(struct sl_carrier *carrier, uint32_t lane);

/* For a lane's class: its job goes with the next launch. Beyond SL_CARRIER_PIECES_MAX - SL_JOB_PIECES_MAX pieces it is full. */
void sl_carrier_fill(struct sl_carrier *carrier, uint32_t lane);

/* What is filled goes, if anything is. @is_light: as of sl_carrier_launch. Return: true when something was. */
bool sl_carrier_send(struct sl_carrier *carrier, uint32_t priority, bool is_light, struct sl_wait *from);

/* The next answer, whose it is, and the job that it is about. */
bool sl_carrier_poll(
        struct sl_carrier *carrier, struct sl_executor **ret_lane, struct sl_job **ret_job, struct sl_prediction *ret_prediction);

/* A job is answered. True when it was the last of its launch, whose class is told. */
bool sl_carrier_answered(struct sl_carrier *carrier, uint32_t *ret_priority);

/* There are none, and none leave. Those that have a lane which is not here leave at once. */
void sl_carrier_put_blocks(struct sl_carrier *carrier, struct sl_block *blocks);
void sl_carrier_put_blocks_away(struct sl_carrier *carrier);

/* Blocks that have left, which are the caller's; NULL: there are none. */
struct sl_block *sl_carrier_take_blocks(struct sl_carrier *carrier);

/* Jobs that the lane has, as who gives it more should see it: what others have launched occupies it as well. */
uint32_t sl_carrier_jobs(const struct sl_carrier *carrier, const struct sl_executor *lane);

/* And how many it may have: while nothing is launched only what goes now, so that everybody's first job goes together. */
uint32_t sl_carrier_jobs_max(const struct sl_carrier *carrier);

static inline bool sl_carrier_waiting(struct sl_carrier *carrier)
{
        return carrier->class->waiting && carrier->class->waiting(carrier);
}
