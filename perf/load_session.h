/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load on a runtime by any number of client threads, each with a connection and a queue pair of its own, put on again and again:
 * a repeat is warm-up, measured time, and the wait for what is still in flight. What it took is read at both ends of the measured
 * time.
 *
 * Threads: the caller's, and those of a repeat, which end with it. A thread has its client and its tally for itself; the caller
 * merges when they have ended.
 */
#pragma once

#include "generator.h"
#include "load_client.h"
#include "runtime_account.h"
#include "verdict.h"

struct starling_error;
struct sl_load_session;

#define SL_LOAD_THREADS_MAX 64u

struct sl_load_options {
        struct sl_load_client_options client; /* in_flight: of all threads together */
        double weights[SL_LOAD_MODELS_MAX];   /* of the models in the mix */
        const struct sl_trace *trace;         /* instead of arrivals and mix; its models are the client's, in this order */
        double speed;                         /* of the trace */
        uint32_t threads;
        int cpus[SL_LOAD_THREADS_MAX]; /* that the threads are bound to, in turn */
        uint32_t n_cpus;               /* 0: not bound */
        uint64_t seed, warm_up_ns, duration_ns;
        uint64_t objective_ns; /* 0: none */
        double percentile;     /* that is to keep it */
};

/* One level of load. */
struct sl_load_level {
        bool closed;
        uint32_t in_flight;                  /* closed: kept in flight; at most that of the options */
        struct sl_arrivals_options arrivals; /* open; its seed is that of the repeat */
        uint64_t requests;                   /* all due at the start, and no more; 0: as many as the time brings */
};

struct sl_load_repeat {
        struct sl_tally tally;                    /* sl_tally_deinit() */
        uint64_t measured_ns;                     /* that figures per second are over */
        uint64_t client_cpu_ns, client_rss_bytes; /* of this process */
        struct sl_runtime_account before, after;
};

/* Connects all threads' clients. Return: 0, -errno with text. @options is copied, what it points to outlives the session. */
int sl_load_session_new(const struct sl_load_options *options, struct sl_load_session **ret_session, struct starling_error *error);
struct sl_load_session *sl_load_session_free(struct sl_load_session *session);

/* @number: of the repeat; the same number is the same load. Return: 0; -EINTR; -errno with text. */
int sl_load_session_run(struct sl_load_session *session, const struct sl_load_level *level, uint32_t number,
        struct sl_load_repeat *ret_repeat, struct starling_error *error);
