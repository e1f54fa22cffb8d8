/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * The configuration of a runtime: `starling serve --config FILE`. Every option has a default, so that no file is needed at all.
 *
 *     name: starling                   # of the socket and of the stats page
 *     socket_dir: /run/starling        # default: $STARLING_SOCKET_DIR, $XDG_RUNTIME_DIR/starling, /run/starling
 *     access:                          # "alice", 1000, "@group", "*"; the runtime's own user and root always may
 *       allow: []                      # clients
 *       admins: []                     # load, unload, reload; "*" is refused
 *       readers: []                    # catalogue and statistics, which clients may read as well
 *     model_repositories: []           # folders, or .onnx files (repository.h); those of the command line come first
 *     data_folders: []                 # into which links of models' external data may lead, beside their own folders
 *     models: []                       # names to serve; empty: all that the repositories have
 *     model_defaults: {}               # as in model_config.h, but ensembles
 *     allocation: auto                 # where workers of models run, and in which batch sizes, over what the models' own
 *                                      # configurations say: a file (planner/file/allocation_file.h), read again by a reload; auto:
 *                                      # what `starling optimize` has found for them on this host (allocation_cache.h); none
 *     autoscale: off                   # workers of models by their load: advise says in the log what on does (serve/control/scale/autoscale.h)
 *     scaling:
 *       rule: starling                 # or infaas, the greedy of that paper (planner/scale/scaler.h)
 *       headroom_percent: 5            # of capacity above the load, at least
 *       lambda: 0                      # of cost a second, for a second of loading
 *       idle_least_ms: 1000            # a variant that no query chooses stays so long, and as long as it takes to come back
 *       prices: {core: 1, gib: 0}      # of a core and of a GiB of memory, a second, in any unit
 *     limits:
 *       clients: 64
 *       client: {arena_bytes: 1 GiB, in_flight: 4096}
 *       uid:
 *         arena_bytes: 4 GiB
 *         in_flight: 16384
 *         shapes: 60                   # sizes of open models that are compiled for its requests in a minute; more wait
 *         log_lines: 120               # in a minute, on behalf of one user; then one line says how many were left out
 *       memory_max: 2 GiB              # of all that the runtime takes, compilers included (serve/control/budget/memory.h); default: seven
 *                                      # eighths of what is available at the start, see memory_room.h
 *       models_max_loaded: 0           # at a time; those with `load: on_request` that are idle make room; 0: any number
 *       load_wait_s: 60                # for the load of such a model; then those who wait for it are told
 *       staging_bytes: 64 MiB          # predictions that wait to be combined; at most an eighth of memory_max by default
 *       fuse_bytes: 64 MiB             # a merged plan of models with `fuse: auto`, beside what it reads of theirs; 0: none is made (serve/control/merge/merger.h)
 *       stats_bytes: 30 MiB
 *     threads:
 *       dispatcher_cores: []           # numbers and ranges; empty: chosen, see topology.h
 *       worker_cores: []
 *       numa_node: 0                   # only cores of this node; default: all
 *       spin_us: 50                    # how long a thread looks for work before it sleeps
 *       inline_us: 20                  # the dispatcher computes itself what takes no longer; 0: nothing (serve/dispatch/inline_rule.h)
 *     grace_seconds: 5                 # for what runs when the runtime is told to stop
 *     compile: {jobs: 1, memory_bytes: 8 GiB, seconds: 120}
 *     cache:                           # of compiled plans
 *       directory: /srv/plans          # this user's alone; default: $XDG_CACHE_HOME/starling, ~/.cache/starling
 *       bytes: 16 GiB                  # what was used longest ago goes, by shares (compile/cache/cache_folder.h); 0: no cache
 *     stats: {worker_histograms: false}  # a set of its own for each worker in the stats page, 50 KB of stats_bytes
 *     trace: {sampling: 0}             # share of requests that are traced; 1: all
 *     wait: auto                       # io_uring, epoll
 *     log_level: info                  # error, warning, info, debug
 *     log_format: text                 # or json: an object in each line (log.h)
 *
 * Threads: one at a time; immutable once read. Strings belong to the configuration.
 */
/* clang-format on */
#pragma once

#include "access.h"
#include "model_config.h"
#include "model_file.h"

#include <sched.h>
#include <stdint.h>

struct sl_error;
struct sl_setting;
struct sl_yaml_file;

#define SL_NUMA_ANY UINT32_MAX

struct sl_config {
        const char *name;
        const char *socket_dir; /* NULL: the default */
        struct sl_people clients, admins, readers;
        const char *const *repositories;
        uint32_t n_repositories;
        struct sl_data_folders data_folders;
        const char *const *models;
        uint32_t n_models;
        struct sl_model_config model_defaults;
        const char *allocation; /* "auto", "none", or a file; NULL: auto */
        uint32_t autoscale;     /* enum sl_autoscale_mode */
        uint32_t scaling_rule;  /* enum sl_scaler */
        uint32_t scaling_headroom, scaling_lambda, scaling_idle_ms, scaling_core_price, scaling_gib_price;

        uint32_t clients_max;
        uint64_t client_arena_bytes, uid_arena_bytes;
        uint32_t client_in_flight, uid_in_flight, uid_shapes, uid_log_lines;
        uint64_t memory_max; /* 0: the default */
        uint32_t models_max_loaded, load_wait_s;
        uint64_t staging_bytes; /* 0: the default */
        uint64_t fuse_bytes;
        uint64_t stats_bytes;
        uint32_t worker_histograms; /* 0 or 1 */
        uint32_t sampling;          /* of 2^32 - 1 requests, how many are traced; read again by a reload */

        cpu_set_t dispatcher_cores, worker_cores; /* empty: to be chosen */
        uint32_t numa_node;                       /* or SL_NUMA_ANY */
        uint32_t spin_us, inline_us;

        uint32_t grace_seconds;
        uint32_t compile_jobs;
        uint64_t compile_memory_bytes, compile_seconds;
        const char *cache_directory; /* NULL: the default */
        uint64_t cache_bytes;
        uint32_t wait;       /* enum sl_wait_kind */
        uint32_t log_level;  /* enum sl_log_level */
        uint32_t log_format; /* enum sl_log_format */

        struct sl_yaml_file *file;
};

/* @path NULL: the defaults. Return: 0; -errno with file, line and key. */
int sl_config_read(const char *path, struct sl_config **ret_config, struct sl_error *error);
struct sl_config *sl_config_free(struct sl_config *config);

/* The tables that parse it, for config_keys.h. */
extern const cyaml_schema_field_t sl_config_fields[];
const struct sl_setting *sl_config_settings(size_t *ret_n);
