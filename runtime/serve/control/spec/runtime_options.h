/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the runtime is told when it is made: who may attach, how much there is of everything, where threads run, what there is to
 * serve, and where its log goes. Plain values, which do not change while it runs; any thread.
 */
#pragma once

#include "spec.h"
#include "task_spec.h"
#include "wait.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of threads that administrators wait for, and which compute little: behind the dispatcher, before workers. */
#define SL_CONTROL_NICENESS (-5)

struct sl_compile_zygote;
struct sl_decision_log;
struct sl_error;
struct sl_data_folders;
struct sl_plan_cache;

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

/* One line of the log. @level: 0 error, 1 warning, 2 info, 3 debug. @event: "client-attached". @fields: "client=3 uid=1000", as of
 * fields.h. Any thread. */
typedef void (*sl_runtime_log_fn)(void *context, int level, const char *event, const char *fields);

/*
 * What there is to serve now: called at the start, for LOAD, and for a reload, on a thread of its own, where it may wait for files.
 * One call at a time. On success the array and what it points to stay valid until the next call. Return: 0, -errno with text.
 */
typedef int (*sl_runtime_scan_fn)(
        void *context, const struct sl_model_spec **ret_specs, uint32_t *ret_n_specs, struct sl_error *error);

/* A scan has succeeded, and what it gave is looked at from now on. Control thread, never during a scan. */
typedef void (*sl_runtime_scanned_fn)(void *context);

/* What sl_runtime_reload() has asked for is wanted, or could not be read. Control thread. */
typedef void (*sl_runtime_reloaded_fn)(void *context);

/* The tasks of the last scan, valid as long as what that gave. Control thread. */
typedef const struct sl_task_spec *(*sl_runtime_tasks_fn)(void *context, uint32_t *ret_n);

enum sl_autoscale_mode { SL_AUTOSCALE_OFF, SL_AUTOSCALE_ADVISE, SL_AUTOSCALE_ON };

struct sl_runtime_options {
        const char *name;        /* "starling": of the socket and of the stats page */
        const char *socket_path; /* NULL: sl_socket_path(name) */
        struct sl_access access;
        struct sl_quota client_quota, uid_quota;
        uint32_t uid_shapes;    /* sizes of open models that are compiled in a minute for requests of one user; at least 1 */
        uint32_t uid_log_lines; /* in a minute, on behalf of one user; at least 1 */
        uint32_t clients_max;   /* at most 1024 */
        uint64_t stats_bytes;   /* of the stats page */
        bool worker_histograms; /* each worker has a set of its own there */
        uint32_t models_max;    /* loaded at a time; 0: any number */
        uint64_t load_wait_ns;  /* that a request for a model waits for its load, at most */
        uint64_t staging_bytes; /* of all predictions that wait to be combined */
        uint64_t memory_max;    /* of all that the runtime takes (memory.h); UINT64_MAX: no limit */
        enum sl_wait_kind wait;
        cpu_set_t dispatcher_cpus; /* empty: not pinned */
        cpu_set_t worker_cpus;     /* empty: not pinned. A worker gets one of them when there are enough, else all */
        uint64_t spin_ns;          /* how long dispatcher and workers look before they sleep; 0 on one core */
        uint64_t inline_ns;        /* the dispatcher computes itself what takes no longer; 0: nothing */
        uint64_t inline_bound_ns;  /* and has a worker do what takes so long twice; 0: what a job may be expected to take */
        uint32_t cores;            /* that the runtime and its clients share; 0: those that this process may use */
        uint64_t grace_ns;         /* at stop: how long accepted requests may go on */
        uint32_t compile_jobs;     /* models compiled at the same time; at least 1 */
        uint64_t compile_memory_bytes, compile_seconds; /* limits of one compilation; 0: the defaults */
        uint64_t fuse_bytes;         /* that a merged plan of models which share workers may take beside theirs; 0: none is made */
        const char *compile_program; /* NULL: /proc/self/exe */
        const struct sl_data_folders
                *data_folders;            /* into which links of external data may lead; outlive the runtime. NULL: none */
        struct sl_compile_zygote *zygote; /* forks compilers (compile_zygote.h); NULL: each is started. Outlives the runtime; the
                                             control  thread's */
        struct {
                enum sl_autoscale_mode mode;
                uint32_t scaler;           /* enum sl_scaler */
                double slack;              /* at least 1: capacity by load, at least */
                double lambda;             /* of cost a second, for a second of loading */
                double core_price;         /* of a core, a second; above 0 */
                double gib_price;          /* of a GiB of memory, a second */
                uint64_t idle_least_ns;    /* a variant that no query chooses stays so long, at least */
        } autoscale;                       /* of workers, by load (../scale/autoscale.h) */
        const char *history;               /* a file for what was wanted, what was there, and the steps; NULL: none */
        struct sl_decision_log *decisions; /* what enters and what is decided is written there, for tests; NULL: nowhere */
        struct sl_plan_cache *cache;       /* of plans; NULL: none. Outlives the runtime; the control thread's */

        sl_runtime_scan_fn scan;
        sl_runtime_scanned_fn scanned;   /* NULL: nothing is to be done */
        sl_runtime_reloaded_fn reloaded; /* likewise */
        sl_runtime_tasks_fn tasks;       /* NULL: there are none */
        sl_runtime_log_fn log;
        void *context; /* of all of these */
};

/* Defaults for everything but scan. */
void sl_runtime_options_init(struct sl_runtime_options *options);
