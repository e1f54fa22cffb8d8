/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of one model as control sees them: where each runs, how far it is, and what memory it was promised. The model may be
 * on its way, when they are handed over with it, or serve, when they join and leave one at a time.
 *
 *     (none) --sl_crew_start, sl_crew_resize--> STARTING --ready: sl_crew_enlist, ADD_WORKER--> SERVING
 *        ^                                         |                                               |
 *        +-----------------------------------------+ not needed, or cannot start                   | REMOVE_WORKER
 *        +-- sl_crew_bury: its thread has ended ------------ (gone) <--sl_crew_gone: WORKER_GONE-- LEAVING
 *
 * Control thread only; none of these functions waits, but for workers that are freed while they start, and sl_crew_free().
 */
#pragma once

#include "batch_limit.h"
#include "gpu_let.h"
#include "model_digest.h"
#include "seats.h"
#include "worker_options.h"
#include "worker_set.h"
#include "workers.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_accumulator;
struct sl_bell;
struct sl_dispatcher;
struct sl_error;
struct sl_executor;
struct sl_inline_trial;
struct sl_let;
struct sl_lets;
struct sl_memory;
struct sl_model;
struct sl_plan;
struct sl_regions;
struct sl_runtime_options;
struct sl_stats;
struct sl_supervisor;
struct sl_workers;

enum sl_crew_state { SL_CREW_STARTING, SL_CREW_SERVING, SL_CREW_LEAVING };

struct sl_crew_options {
        const struct sl_runtime_options *runtime;
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        struct sl_stats *stats;
        struct sl_memory *memory;
        struct sl_lets *lets;
        struct sl_bell *control;
        struct sl_dispatcher *dispatcher;
        struct sl_model *model;          /* it has its plan */
        struct sl_model_identity file;   /* of which that was made */
        struct sl_batch_limit limit;     /* of a worker without a batch size of its own */
        uint64_t dynamic_bytes;          /* of data-dependent steps, for each worker */
        struct sl_worker_options worker; /* of processes `threads` does not count */
        bool own_process;                /* each worker has one, or is in that of a GPU */
        bool on_gpu;                     /* on which ones wishes say */
        bool fell_back;                  /* it was to be, and is on the CPU: then GPUs of wishes do not count */
        uint32_t n_gpus;
        struct sl_gpu_let gpus[SL_GPUS_MAX]; /* what SL_GPU_EACH is here */
        bool asked;                          /* a request of this user wanted its sizes: what is kept of it counts as its */
        uint32_t uid;
        struct sl_supervisor *supervisor; /* of those */
        uint64_t first_ns; /* of its plan on standby: what a sample took before (standby.h); those that start later run one */
};

struct sl_crew {
        struct sl_crew_options options;
        uint64_t gpu_number;          /* on GPUs: of no other crew */
        uint64_t replaced_gpu_number; /* of the one whose place it takes, until that is gone; 0: of none */
        struct sl_worker_set wanted;
        struct sl_worker_set before;  /* as was wanted before the change that is under way */
        bool holds;                   /* nobody leaves yet */
        uint64_t starting_due_ns;     /* sl_crew_starting() is to look again then, by sl_clock_ns(); UINT64_MAX: it need not */
        uint32_t n_named;             /* threads that have got a name */
        char why[SL_STATS_WHY_BYTES]; /* the last process ended that did */
        struct sl_seats seats;
        struct sl_crew_relief {
                uint32_t strikes; /* processes that ended, one after another, before they had answered anything */
                uint64_t due_ns;  /* no process starts before */
        } reliefs[SL_GPUS_MAX];   /* of each GPU, so that none waits for another; else the first counts */
        uint32_t n_gone;          /* workers that are `gone` */
        uint32_t n;
        struct sl_crew_worker {
                enum sl_crew_state state;
                struct sl_worker_wish wish;
                bool moves;     /* it serves, and leaves once another one is in its place elsewhere */
                uint64_t bytes; /* promised when it started: the cores, and so its team, may be others by now */
                struct sl_executor *executor;
                struct sl_let *let;
                struct sl_worker_stats *seat; /* NULL: vacant, for the one that follows */
                bool gone;                    /* LEAVING: the dispatcher no longer knows it */
        } workers[SL_WORKERS_MAX];
};

/* Nobody yet. Return: 0, -ENOMEM. */
int sl_crew_new(const struct sl_crew_options *options, struct sl_crew **ret_crew);

/* The dispatcher no longer knows the model: ends and frees all. NULL is fine. Returns NULL. */
struct sl_crew *sl_crew_free(struct sl_crew *crew);

/* Whether its plan has the batch sizes of an allocation, and the runtime its cores. Return: 0; -EINVAL with the value and the
 * limit. */
int sl_crew_check(const struct sl_crew *crew, const struct sl_worker_set *set, struct sl_error *error);

/*
 * Of a model that is being loaded: these workers start, with the memory for all of them. @replaced: whose place they take; NULL:
 * nobody's.
 * @background: something is served meanwhile. Return: 0; as sl_crew_check(); -ENOMEM, -EAGAIN, -EMFILE with text.
 */
int sl_crew_start(struct sl_crew *crew, const struct sl_worker_set *set, const struct sl_crew *replaced, bool background,
        struct sl_error *error);

/* That one is gone, whose place it may have taken. */
void sl_crew_outlives(struct sl_crew *crew, const struct sl_crew *gone);

/* How many take jobs; whether those are fewer than there should be, and no change is under way. */
uint32_t sl_crew_serving(const struct sl_crew *crew);
bool sl_crew_is_short(const struct sl_crew *crew);

/*
 * How many have not said that they are ready. One that cannot start is left out, with a line in the log, as long as another one can
 * (the ensemble paper, section II.C.2, shuts down). Return: >= 0; -errno with text: the last one cannot start.
 */
int sl_crew_starting(struct sl_crew *crew, struct sl_error *error);

/* What the trial for inline has shown, which is the caller's from here on. All are ready. */
struct sl_inline_trial sl_crew_take_trial(struct sl_crew *crew);

/* All are ready, and go to the dispatcher with the model. */
void sl_crew_enlist(struct sl_crew *crew, struct sl_workers *workers);

/*
 * Of a model that serves: these workers are wanted. Those that are missing start, with memory for all of them; those that are too
 * many leave once the others are ready (sl_crew_advance), at once where nobody starts. Return: 0; as sl_crew_check(); -ENOMEM,
 * -E2BIG, -EAGAIN, -EMFILE with text: nothing is changed.
 */
int sl_crew_resize(struct sl_crew *crew, const struct sl_worker_set *set, struct sl_error *error);

/* While it holds nobody leaves, whoever is not wanted any more: for changes of several crews at once. */
void sl_crew_hold(struct sl_crew *crew, bool holds);

/* Worker @i, which serves, is to run elsewhere: at the next sl_crew_resize() another one starts in its place. Where none can, it
 * stays (sl_crew_undo). */
void sl_crew_move(struct sl_crew *crew, uint32_t i);
bool sl_crew_moves(const struct sl_crew *crew);

/* These workers are not those that it has, or has asked for; or some of those are to run elsewhere, or have a let that has lost
 * cores. */
bool sl_crew_needs(const struct sl_crew *crew, const struct sl_worker_set *set);

/* Somebody starts; starts or leaves. */
bool sl_crew_is_starting(const struct sl_crew *crew);
bool sl_crew_is_changing(const struct sl_crew *crew);

/*
 * Of worker processes, of a model that serves: those that are ready join. Those that have ended leave, those that hang are
 * killed, also while they leave, and others start in their place: at once where the last one has answered anything, else later and
 * later, while the dispatcher says to those who wait for the model what it is (MODEL_DOWN). Return: when to ask again,
 * CLOCK_MONOTONIC; UINT64_MAX: nobody is due.
 */
uint64_t sl_crew_relieve(struct sl_crew *crew, uint64_t now_ns);

/* Those that are ready join. Return: how many start or leave still; -errno with text: one cannot start, and as
 * many are wanted as before. */
int sl_crew_advance(struct sl_crew *crew, struct sl_error *error);

/* More workers that are on their way, or have just come, leave again: as many are wanted as before. Fewer stay fewer. */
void sl_crew_undo(struct sl_crew *crew);

/* Its processes, wherever they are; threads are left alone. */
void sl_crew_kill(struct sl_crew *crew);

/* WORKER_GONE: it ends (sl_crew_bury), and is there until it has. */
void sl_crew_gone(struct sl_crew *crew, struct sl_executor *executor);

/* Those that have ended are freed, of those that are gone. False: some have not. */
bool sl_crew_bury(struct sl_crew *crew);

/* The dispatcher no longer knows the model: all are to end. True: to free the crew waits for nobody. */
bool sl_crew_leave(struct sl_crew *crew);
