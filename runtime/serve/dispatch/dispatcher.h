/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher: the one thread that reads submission rings, admits, broadcasts, schedules, and completes. It owns channels'
 * queue pairs, ensembles' queues, schedulers and requests; other threads reach it through mailboxes only.
 *
 *     commands (control) --> +------------+ --> jobs (workers)
 *     entries (clients)  --> | dispatcher | --> completions (clients)
 *     predictions (workers)> +------------+ --> events (control)
 *
 * A pass looks at every hot queue pair, one cold one, every outbox and the commands. A queue pair is hot when it had an entry
 * within the last passes. When nothing was found for spin_ns it says that it sleeps (catalogue line for clients, bell for threads),
 * looks once more at everything, and waits.
 */
#pragma once

#include "bell.h"
#include "layout.h"
#include "mailbox.h"
#include "message.h"
#include "wait.h"

#include <sched.h>

struct sl_accumulator;
struct sl_decision_log;
struct sl_dispatcher;
struct sl_error;
struct sl_stats;

struct sl_dispatcher_options {
        enum sl_wait_kind wait;
        cpu_set_t cpus;
        uint64_t spin_ns;
        uint64_t inline_ns; /* what it computes itself takes no longer; 0: it computes nothing */
        uint32_t cores;     /* that the runtime and its clients share, for spin_advice.c; 0: not known */
        uint32_t clients_max;
        uint32_t client_in_flight_max, user_in_flight_max; /* requests accepted and not completed */
        struct sl_accumulator *accumulator;
        struct sl_dispatcher_line *line; /* in the catalogue */
        struct sl_stats *stats;
        struct sl_bell *control;           /* rung after an event */
        struct sl_decision_log *decisions; /* what enters and what is decided is written there; NULL: nowhere */
};

/* Starts the thread; returns when it runs. Return: 0, -ENOMEM, -EMFILE, -EAGAIN. */
int sl_dispatcher_new(const struct sl_dispatcher_options *options, struct sl_dispatcher **ret_dispatcher, struct sl_error *error);

/* Sends QUIT and joins; its bell can still be rung. NULL is fine. */
void sl_dispatcher_stop(struct sl_dispatcher *dispatcher);

/* Stops and frees. NULL is fine. Returns NULL. */
struct sl_dispatcher *sl_dispatcher_free(struct sl_dispatcher *dispatcher);

/* Control thread: puts a command and rings. Waits when the mailbox is full. Nothing happens when the dispatcher has stopped. */
void sl_dispatcher_command(struct sl_dispatcher *dispatcher, const struct sl_command *command);

/* Control thread: the next event, if there is one. */
bool sl_dispatcher_event(struct sl_dispatcher *dispatcher, struct sl_event *ret_event);

/* What workers ring. */
struct sl_bell *sl_dispatcher_bell(struct sl_dispatcher *dispatcher);
