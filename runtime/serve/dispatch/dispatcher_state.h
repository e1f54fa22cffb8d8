/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher's own state, shared by the files that are its stages: intake.c (entries -> requests), harvest.c (predictions
 * -> finished segments), completion.c (requests -> completions), command.c (control), event.c (to control), settle.c
 * (the end of things). All run on the dispatcher's thread.
 */
#pragma once

#include "channel.h"
#include "dispatcher.h"
#include "ensemble.h"
#include "lateness.h"
#include "model.h"
#include "refuse.h"
#include "scheduler.h"
#include "stats.h"
#include "turns.h"

/* Entries taken from one queue pair in one pass: the turn that it gets. */
#define SL_INTAKE_ENTRIES_MAX 32u

struct sl_dispatcher {
        struct sl_dispatcher_options options;
        struct sl_wait *wait;
        struct sl_bell bell;
        struct sl_mailbox *commands, *events;
        struct sl_dispatcher_stats *stats;
        pthread_t thread;
        bool running, quit;

        struct sl_queue **hot, **cold; /* queue pairs by how they are polled */
        uint32_t n_hot, n_cold, hot_turn, cold_turn;
        struct sl_ensemble *served[SL_CATALOGUE_MODELS]; /* by catalogue index */
        struct sl_ensemble *ensembles;                   /* all that have requests or are served */
        struct sl_ensemble *turn;                        /* of these: who broadcasts first */
        struct sl_model *models;
        struct sl_inline_budget budget;
        uint64_t next_ns;        /* when a policy wants to be asked again; UINT64_MAX: none does */
        struct sl_turns turns;   /* of the models whose workers share cores */
        bool shares_core;        /* some worker may run where the dispatcher does */
        uint32_t in_flight;      /* requests of all clients */
        uint32_t shapes_loading; /* slots of all open ensembles: at most SL_SHAPES_MAX */
        uint32_t with_deadline;
        uint64_t deadlines_checked_ns;
        struct sl_lateness lateness;
        uint64_t advised_ns;
        uint32_t waiting;           /* queue pairs whose clients wait, as last counted */
        bool crowded;               /* as advised: more threads would run than there are cores */
        bool saturated;             /* and after this pass workers have all that they can take */
        uint64_t listened_ns;       /* when it last let clients wake it, or found something of theirs, while saturated */
        uint32_t untimed_passes;    /* since the clock was last looked at */
        struct sl_queue *told;      /* got completions and were not looked at whether they sleep: through next_told */
        uint64_t pass_ns;           /* sl_pass_now() */
        bool pass_timed;            /* in this pass */
        struct sl_channel *leaving; /* have requests in flight that nobody waits for */
        bool unsettled;             /* something ended: sl_settle() has to look */
        bool closing;               /* nothing new is admitted */
        bool drain_reported;
};

/* The time of this pass: read once, by whoever asks first; moved on by what the dispatcher computes itself. */
uint64_t sl_pass_now(struct sl_dispatcher *dispatcher);

/* intake.c: takes up to SL_INTAKE_ENTRIES_MAX entries, completes no-ops and refusals. Return: entries taken. */
uint32_t sl_intake(struct sl_dispatcher *dispatcher, struct sl_queue *queue);

/*
 * intake.c: is there a completion slot for one more entry? One is reserved for every entry that is taken, so that the completion
 * ring can never be full. A client of this library never runs out: it keeps at most `depth` requests in flight.
 */
bool sl_intake_room(struct sl_queue *queue);

/* intake.c: is there anything that the client rings for, an entry or a cancellation? seq_cst: W2 of the doorbell protocol. */
bool sl_intake_waiting(struct sl_queue *queue);

/* intake.c: a request that was parked, and no longer is, goes to the ensemble of its sizes, or is completed as refused. */
void sl_intake_again(struct sl_dispatcher *dispatcher, struct sl_request *request, struct sl_ensemble *ensemble);

/* harvest.c: takes all answers of all workers. Return: how many. */
uint32_t sl_harvest(struct sl_dispatcher *dispatcher);

/* harvest.c: those of what the dispatcher has computed itself. */
void sl_harvest_inline(struct sl_dispatcher *dispatcher);

/* completion.c: fills the completion of a request without a segment in flight; RUNNING -> FREE. */
void sl_complete(struct sl_dispatcher *dispatcher, struct sl_request *request, int32_t status);

/* completion.c: the same of one that is refused when it is looked at again. */
void sl_complete_refused(
        struct sl_dispatcher *dispatcher, struct sl_request *request, int32_t status, const struct sl_refused *refused);

/* completion.c: completes an entry that became no request. */
void sl_complete_entry(struct sl_queue *queue, const struct sl_entry *entry, int32_t status, const struct sl_refused *refused);

/* completion.c: publishes what was filled. A client that sleeps is woken at the end of the pass, once for all that it got. */
void sl_completions_publish(struct sl_dispatcher *dispatcher, struct sl_queue *queue);

/* completion.c: wakes the clients that sleep of those that something was published for. */
void sl_clients_wake(struct sl_dispatcher *dispatcher);

/* completion.c: the queue pair is about to be freed. */
void sl_clients_forget(struct sl_dispatcher *dispatcher, struct sl_queue *queue);

/* spin_advice.c: tells clients whether it helps to spin, when the last time is long enough ago. */
void sl_spin_advice_give(struct sl_dispatcher *dispatcher, uint64_t now_ns);

/* command.c: does what control asks. Return: commands done. */
uint32_t sl_commands(struct sl_dispatcher *dispatcher);

/* event.c: an event for control. */
void sl_event_send(struct sl_dispatcher *dispatcher, enum sl_event_kind kind, void *pointer, int32_t status, const char *text);

/*
 * event.c: an event about sizes of an open ensemble. Return: 0; -EBUSY as many sizes are being loaded as there is room for.
 */
int sl_event_shape(struct sl_dispatcher *dispatcher, enum sl_event_kind kind, struct sl_ensemble *ensemble,
        const int64_t sizes[SL_SYMBOLS_MAX], uint32_t uid);

/*
 * settle.c: reports what has come to its end: channels, ensembles, the whole. Called at the end of a pass and nowhere else, as what
 * it reports may be freed by control at once.
 */
void sl_settle(struct sl_dispatcher *dispatcher);
