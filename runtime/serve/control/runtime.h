/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime: everything that serves, behind one handle. The daemon describes what to serve and how; nothing here knows of
 * YAML, repositories or signals.
 *
 *     control thread (the caller of sl_runtime_run)   attach socket, loads and unloads models, client deaths, signals
 *     dispatcher thread                               submission rings, admission, broadcaster, schedulers, completions
 *     worker threads (one per instance)               batcher, predictor, sender; the last sender of a segment combines it
 *
 * One thread is the control thread: it makes the runtime and makes every call below. Threads own what they touch and talk through
 * single-producer mailboxes; see README.md in this folder.
 */
#pragma once

#include "spec.h"
#include "wait.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sl_plan_cache;

struct sl_error;
struct sl_runtime;

/* Who may attach as what; the runtime's own uid and root always may. */
struct sl_access {
        const uid_t *client_uids, *admin_uids, *reader_uids;
        uint32_t n_client_uids, n_admin_uids, n_reader_uids;
        const gid_t *client_gids, *admin_gids, *reader_gids; /* a primary or a supplementary group of the peer */
        uint32_t n_client_gids, n_admin_gids, n_reader_gids;
        bool everybody_client, everybody_reader;
};

struct sl_quota {
        uint64_t arena_bytes; /* of all regions */
        uint32_t in_flight;   /* requests accepted and not completed */
};

/* One line of the log. @level: 0 error, 1 warning, 2 info, 3 debug. @event: "client-attached". @fields: "client=3 uid=1000", as of fields.h. Any
 * thread. */
typedef void (*sl_runtime_log_fn)(void *context, int level, const char *event, const char *fields);

/*
 * What there is to serve now: called by the control thread at the start, for LOAD, and for a reload. On success the array and
 * what it points to stay valid until the next call. Return: 0, -errno with text.
 */
typedef int (*sl_runtime_scan_fn)(
        void *context, const struct sl_model_spec **ret_specs, uint32_t *ret_n_specs, struct sl_error *error);

struct sl_runtime_options {
        const char *name;        /* "starling": of the socket and of the stats page */
        const char *socket_path; /* NULL: sl_socket_path(name) */
        struct sl_access access;
        struct sl_quota client_quota, uid_quota;
        uint32_t uid_shapes;    /* sizes of open models that are compiled in a minute for requests of one user; at least 1 */
        uint32_t uid_log_lines; /* in a minute, on behalf of one user; at least 1 */
        uint32_t clients_max;   /* at most 1024 */
        uint64_t stats_bytes;   /* of the stats page */
        uint64_t staging_bytes; /* of all predictions that wait to be combined */
        uint64_t memory_max;    /* of all that the runtime takes (memory.h); UINT64_MAX: no limit */
        enum sl_wait_kind wait;
        cpu_set_t dispatcher_cpus; /* empty: not pinned */
        cpu_set_t worker_cpus;     /* empty: not pinned. A worker gets one of them when there are enough, else all */
        uint64_t spin_ns;          /* how long dispatcher and workers look before they sleep; 0 on one core */
        uint32_t cores;            /* that the runtime and its clients share; 0: those that this process may use */
        uint64_t grace_ns;         /* at stop: how long accepted requests may go on */
        uint32_t compile_jobs;     /* models compiled at the same time; at least 1 */
        uint64_t compile_memory_bytes, compile_seconds; /* limits of one compilation; 0: the defaults */
        const char *compile_program;                    /* NULL: /proc/self/exe */
        struct sl_plan_cache *cache;                    /* of plans; NULL: none. Outlives the runtime; the control thread's */

        sl_runtime_scan_fn scan;
        sl_runtime_log_fn log;
        void *context; /* of scan and log */
};

/* Defaults for everything but scan. */
void sl_runtime_options_init(struct sl_runtime_options *options);

/*
 * Makes the stats page, the catalogue and the dispatcher; serves nothing yet. Options are copied (what they point to is
 * not). Return: 0; -EADDRINUSE another runtime has this name; -EACCES, -ENOSPC, -EMFILE, -ENOMEM; the text names the thing.
 */
int sl_runtime_new(const struct sl_runtime_options *options, struct sl_runtime **ret_runtime, struct sl_error *error);

/* Frees; stops first if need be (without grace). Removes socket and stats page. NULL is fine. Returns NULL. */
struct sl_runtime *sl_runtime_free(struct sl_runtime *runtime);

/*
 * Loads everything that scan() lists and waits until each is ready or has failed (one log line each). To be called before
 * sl_runtime_listen(): ready means ready. Return: 0, also when some failed; -errno of scan(). @ret_failed: how many did.
 */
int sl_runtime_load_all(struct sl_runtime *runtime, uint32_t *ret_failed, struct sl_error *error);

/* Calls @handle in the control thread whenever @fd is readable (a signalfd). The fd stays the caller's. */
int sl_runtime_watch(struct sl_runtime *runtime, int fd, void (*handle)(void *context), void *context);

/* Whether the dispatcher has answered the last probe; if so, it gets another one. Control thread (a handler). */
bool sl_runtime_probe(struct sl_runtime *runtime);

/* Opens the attach socket: from here on a client that connects can infer. The folder of the socket must exist. -errno with text. */
int sl_runtime_listen(struct sl_runtime *runtime, struct sl_error *error);

/* Serves until sl_runtime_stop(), then drains: no new requests, grace time, the rest completed as cancelled. Return: 0, -errno. */
int sl_runtime_run(struct sl_runtime *runtime);

/* Ends sl_runtime_run(): from a handler of sl_runtime_watch(). Called a second time: without grace. */
void sl_runtime_stop(struct sl_runtime *runtime);

/* Scans again: loads what is new, reloads what changed, unloads what is gone. Control thread (a handler); goes on in the
 * background. */
void sl_runtime_reload(struct sl_runtime *runtime);
