/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"
#include "allocation_file.h"
#include "allocation_specs.h"
#include "attach.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/value.h"
#include "cached_allocations.h"
#include "compile_zygote.h"
#include "config.h"
#include "config_change.h"
#include "core_claims.h"
#include "cores.h"
#include "log.h"
#include "memory_room.h"
#include "notify.h"
#include "plan_cache.h"
#include "process_limits.h"
#include "repository.h"
#include "runtime.h"
#include "topology.h"
#include "watchdog.h"
#include "zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define STAGING_BYTES (64ull << 20)

#define PLACEMENT_TRIES 4
#define LOAD_TRIES      2 /* without an allocation that failed: at the first others may still have its memory */

struct daemon {
        const struct sl_daemon_options *options;
        struct sl_plan_cache *cache;      /* NULL: none */
        struct sl_compile_zygote *zygote; /* NULL: none */
        struct sl_config *config;         /* of the start, never replaced: options of the runtime point into it */
        struct sl_log log;
        _Atomic uint32_t log_dropped;
        uint32_t wait; /* enum sl_wait_kind: as the command line says, or the configuration */
        char socket_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
        struct sl_thread_cores thread_cores;
        struct sl_core_claims *claims;
        /* What the last scan read, and the next one, until that is looked at: the control thread's, and the scanning one's. */
        struct sl_config *models, *next_models;
        struct sl_repository_scan *scan, *next_scan;
        const char **repositories;
        struct sl_cached_allocations cached;
        struct sl_runtime *runtime;
        struct sl_watchdog watchdog;
        int signals;
        bool stopping;
        bool told_triton;
        char told_restart[SL_CONFIG_KEYS_BYTES];
};

/* An event with one field. */
static void log_text(const struct daemon *daemon, enum sl_log_level level, const char *event, const char *key, const char *value)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, key, value);
        sl_log_event(&daemon->log, level, event, fields.text);
}

static void on_report(void *context, const char *text)
{
        const struct daemon *daemon = context;

        log_text(daemon, SL_LOG_WARNING, "model-left-out", "cause", text);
}

static void on_unused(void *context, const char *text)
{
        const struct daemon *daemon = context;

        log_text(daemon, SL_LOG_WARNING, "option-unused", "cause", text);
}

static void on_log(void *context, int level, const char *event, const char *fields)
{
        const struct daemon *daemon = context;

        sl_log_event(&daemon->log, (enum sl_log_level)level, event, fields);
}

/* Those of the command line first. The array is the daemon's, the strings are not. */
static int join_repositories(struct daemon *daemon, const struct sl_config *config, uint32_t *ret_n)
{
        const struct sl_daemon_options *options = daemon->options;
        uint32_t n = options->n_repositories + config->n_repositories;
        const char **joined = calloc(n + 1ul, sizeof(*joined));

        if (!joined)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                joined[i] =
                        i < options->n_repositories ? options->repositories[i] : config->repositories[i - options->n_repositories];
        free(daemon->repositories);
        daemon->repositories = joined;
        *ret_n = n;
        return 0;
}

static bool gives_batch_max(const char *assignment)
{
        const char *name = sl_lower_option_name(SL_LOWER_OPTION_batch_max);
        size_t bytes = strlen(name);

        return !strncmp(assignment, name, bytes) && assignment[bytes] == '=';
}

/* The file, and over it what the command line says of all models. */
static int read_config(const struct daemon *daemon, struct sl_config **ret_config, struct sl_error *error)
{
        struct sl_config *config;
        int result = sl_config_read(daemon->options->config_path, &config, error);

        if (result < 0)
                return result == -ENOMEM ? result : -EINVAL; /* a file that cannot be read is a wrong configuration */
        for (uint32_t i = 0; i < daemon->options->n_lowering && result == 0; i++) {
                result = sl_lower_options_parse(&config->model_defaults.lowering, daemon->options->lowering[i], error);
                config->model_defaults.batch_given |= gives_batch_max(daemon->options->lowering[i]);
        }
        if (result == 0 && daemon->options->n_lowering && sl_model_config_check(&config->model_defaults, error) < 0)
                result = sl_error_prefix(error, -EINVAL, "-O");
        if (daemon->options->fake)
                config->model_defaults.worker.predictions = SL_PREDICTIONS_FAKE;
        if (result < 0)
                sl_config_free(config);
        else
                *ret_config = config;
        return result;
}

/* Once: who comes from Triton has options there that nobody reads here. */
static void mention_triton(struct daemon *daemon, uint32_t n)
{
        struct sl_fields fields = {0};

        if (!n || daemon->told_triton)
                return;
        daemon->told_triton = true;
        sl_fields_add_number(&fields, "models", n);
        sl_fields_add(&fields, "cause",
                "config.pbtxt is not read: `starling import-triton REPOSITORY --write` makes a config.yaml of it");
        sl_log_event(&daemon->log, SL_LOG_WARNING, "triton-configuration", fields.text);
}

static int place_by_file(const struct daemon *daemon, const char *path, struct sl_repository_scan *scan, struct sl_error *error)
{
        struct sl_allocation *allocation;
        struct sl_model_spec *specs;
        uint32_t n;
        int r = sl_allocation_read(path, &allocation, error);

        if (r < 0)
                return r;
        specs = sl_repository_specs(scan, &n);
        r = sl_allocation_specs(allocation, &daemon->thread_cores.worker_cores, specs, n, error);
        sl_allocation_free(allocation);
        return r < 0 ? sl_error_prefix(error, r, "%s", path) : 0;
}

/* As an allocation says, if there is one. */
static int place_workers(
        struct daemon *daemon, const struct sl_config *config, struct sl_repository_scan *scan, struct sl_error *error)
{
        const char *wanted = daemon->options->allocation ? daemon->options->allocation : config->allocation;
        uint32_t n;
        struct sl_model_spec *specs = sl_repository_specs(scan, &n);

        if (!wanted || strcmp(wanted, "auto") == 0) {
                if (config->cache_bytes)
                        sl_cached_allocations_place(
                                &daemon->cached, config->cache_directory, &daemon->thread_cores.worker_cores, specs, n);
                return 0;
        }
        return strcmp(wanted, "none") == 0 ? 0 : place_by_file(daemon, wanted, scan, error);
}

/* Once for the same keys. */
static void mention_restart(struct daemon *daemon, const struct sl_config *said)
{
        char keys[SL_CONFIG_KEYS_BYTES];

        if (sl_config_wants_restart(daemon->config, said, keys) && strcmp(keys, daemon->told_restart) != 0)
                log_text(daemon, SL_LOG_WARNING, "restart-needed", "keys", keys);
        memcpy(daemon->told_restart, keys, sizeof(keys));
}

/* What there is to serve now, on the thread that scans. The scan before stays valid until this one is looked at. */
static int on_scan(void *context, const struct sl_model_spec **ret_specs, uint32_t *ret_n_specs, struct sl_error *error)
{
        struct daemon *daemon = context;
        struct sl_repository_scan *scan;
        struct sl_config *config;
        uint32_t n_repositories;
        int result = read_config(daemon, &config, error);

        if (result < 0)
                return result;
        result = join_repositories(daemon, config, &n_repositories);
        if (result < 0) {
                sl_config_free(config);
                return sl_error_set(error, -result, "configuration: out of memory");
        }
        struct sl_repository_query query = {.repositories = daemon->repositories,
                .n_repositories = n_repositories,
                .models = config->models,
                .n_models = config->n_models,
                .defaults = &config->model_defaults};
        result = sl_repository_scan(&query, on_report, daemon, &scan, error);
        if (result < 0) {
                sl_config_free(config);
                return result;
        }
        result = place_workers(daemon, config, scan, error);
        if (result < 0) {
                sl_repository_scan_free(scan);
                sl_config_free(config);
                return result;
        }
        sl_repository_tell_unused(scan, on_unused, daemon);
        daemon->next_scan = scan;
        daemon->next_models = config;
        mention_triton(daemon, sl_repository_triton(scan));
        mention_restart(daemon, config);
        *ret_specs = sl_repository_specs(scan, ret_n_specs);
        return 0;
}

static void on_scanned(void *context)
{
        struct daemon *daemon = context;

        sl_repository_scan_free(daemon->scan);
        sl_config_free(daemon->models);
        daemon->scan = sl_take(daemon->next_scan);
        daemon->models = sl_take(daemon->next_models);
}

/* Of the same scan. */
static const struct sl_task_spec *on_tasks(void *context, uint32_t *ret_n)
{
        const struct daemon *daemon = context;

        return sl_repository_tasks(daemon->scan, ret_n);
}

static void stop(struct daemon *daemon, uint32_t signal)
{
        log_text(daemon, SL_LOG_INFO, daemon->stopping ? "stop-at-once" : "stop", "signal", sigabbrev_np((int)signal));
        if (!daemon->stopping)
                sl_notify("STOPPING=1");
        daemon->stopping = true;
        sl_runtime_stop(daemon->runtime);
}

static void reload(struct daemon *daemon)
{
        if (daemon->stopping)
                return;
        sl_log_event(&daemon->log, SL_LOG_INFO, "reload", "");
        sl_notify_reloading();
        sl_runtime_reload(daemon->runtime);
}

static void on_reloaded(void *context)
{
        struct daemon *daemon = context;

        if (daemon->stopping)
                return;
        sl_runtime_sample(daemon->runtime, daemon->models->sampling);
        sl_notify("READY=1");
}

static void on_signal(void *context)
{
        struct daemon *daemon = context;
        struct signalfd_siginfo info;

        while (read(daemon->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
                if (info.ssi_signo == SIGHUP)
                        reload(daemon);
                else
                        stop(daemon, info.ssi_signo);
        }
}

/* Blocked before any thread is made, so that every thread inherits the mask and the signalfd alone gets them. */
static int take_signals(struct daemon *daemon, struct sl_error *error)
{
        struct sigaction ignore = {.sa_handler = SIG_IGN};
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        sigaction(SIGPIPE, &ignore, NULL);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        daemon->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return daemon->signals < 0 ? sl_error_set(error, errno, "signalfd: %s", strerrordesc_np(errno)) : 0;
}

/* Nobody of another user may look into this process, and it may have as much as the system grants. */
static void harden(void)
{
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        sl_process_limits_raise();
}

static int check_limits(const struct daemon *daemon, struct sl_error *error)
{
        uint64_t stats_bytes = daemon->config->stats_bytes;
        uint64_t staging_bytes = daemon->config->staging_bytes ? daemon->config->staging_bytes : STAGING_BYTES;
        bool staging = staging_bytes > stats_bytes;

        return sl_process_limits_check(
                staging ? staging_bytes : stats_bytes, staging ? "limits.staging_bytes" : "limits.stats_bytes", error);
}

static const char *name_of(const struct daemon *daemon)
{
        return daemon->options->name ? daemon->options->name : daemon->config->name;
}

/* The socket's path, whose folder is made when it is not there. */
static int find_socket(struct daemon *daemon, struct sl_error *error)
{
        const char *folder = daemon->config->socket_dir, *name = name_of(daemon);
        size_t bytes = sizeof(daemon->socket_path);
        char *path = daemon->socket_path;
        int result = 0;

        if (!folder)
                result = sl_socket_path(name, path, bytes);
        else if (snprintf(path, bytes, "%s/%s.sock", folder, name) >= (int)bytes)
                result = -ENAMETOOLONG;
        if (result < 0)
                return sl_error_set(error, -result, "socket of runtime \"%s\" in \"%s\": %s", name,
                        folder ? folder : "the default folder", strerrordesc_np(-result));

        char *slash = strrchr(path, '/');
        *slash = 0;
        if ((mkdir(path, 0755) < 0 && errno != EEXIST) || faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0)
                result = sl_error_set(error, errno,
                        "socket folder \"%s\": %s: set socket_dir, $STARLING_SOCKET_DIR or $XDG_RUNTIME_DIR to one that user %u "
                        "may "
                        "write to",
                        path, strerrordesc_np(errno), geteuid());
        *slash = '/';
        return result;
}

static void log_thread_cores(const struct daemon *daemon)
{
        const struct sl_thread_cores *thread_cores = &daemon->thread_cores;
        struct sl_fields fields = {0};
        char cores[128];

        sl_fields_add(&fields, "dispatcher_cores", sl_cores_text(&thread_cores->dispatcher_cores, cores, sizeof(cores)));
        sl_fields_add(&fields, "worker_cores", sl_cores_text(&thread_cores->worker_cores, cores, sizeof(cores)));
        sl_fields_add_number(&fields, "spin_us", (long long)(thread_cores->spin_ns / SL_NS_PER_US));
        sl_log_event(&daemon->log, SL_LOG_INFO, "placed", fields.text);
}

static void log_sharing(const struct daemon *daemon, const struct sl_core_sharing *sharing)
{
        struct sl_fields fields = {0};
        char cores[128];

        if (sharing->result < 0)
                log_text(daemon, SL_LOG_WARNING, "cores-unclaimed", "cause", strerrordesc_np(-sharing->result));
        if (CPU_COUNT(&sharing->cores) == 0)
                return;
        sl_fields_add(&fields, "cores", sl_cores_text(&sharing->cores, cores, sizeof(cores)));
        sl_fields_add(&fields, "holders", sharing->holders);
        sl_log_event(&daemon->log, SL_LOG_WARNING, "cores-shared", fields.text);
}

/* Another runtime may start at the same moment and take the cores that were free: then it is looked again. */
static int choose_cores(
        struct daemon *daemon, struct sl_machine *machine, const struct sl_thread_cores_wish *wish, struct sl_error *error)
{
        char folder[sizeof(daemon->socket_path)];
        struct sl_core_sharing sharing;

        strcpy(folder, daemon->socket_path);
        *strrchr(folder, '/') = 0;
        for (int i = 0; i < PLACEMENT_TRIES; i++) {
                const cpu_set_t none = {0};
                cpu_set_t unexpected;

                machine->taken = machine->dispatching = none;
                sl_core_claims_survey(folder, machine);
                int result = sl_thread_cores_choose(machine, wish, &daemon->thread_cores, error);
                if (result < 0)
                        return result;
                sl_core_claims_free(daemon->claims);
                daemon->claims = NULL;
                if (sl_core_claims_take(folder, name_of(daemon), &daemon->thread_cores, &daemon->claims, &sharing) < 0)
                        return sl_error_set(error, ENOMEM, "cores: out of memory");
                CPU_AND(&unexpected, &sharing.cores, &machine->taken);
                if (CPU_EQUAL(&unexpected, &sharing.cores))
                        break;
        }
        log_thread_cores(daemon);
        log_sharing(daemon, &sharing);
        return 0;
}

static int place(struct daemon *daemon, struct sl_error *error)
{
        const struct sl_config *config = daemon->config;
        struct sl_machine machine;
        struct sl_thread_cores_wish wish = {.dispatcher_cores = config->dispatcher_cores,
                .worker_cores = config->worker_cores,
                .numa_node = config->numa_node,
                .spin_ns = config->spin_us * SL_NS_PER_US};

        sl_machine_read(&machine);
        int result = choose_cores(daemon, &machine, &wish, error);
        if (result < 0)
                return result;
        if (config->numa_node != SL_NUMA_ANY && numa_available() >= 0)
                numa_set_preferred((int)config->numa_node);
        return 0;
}

static struct sl_access access_of(const struct sl_config *config)
{
        return (struct sl_access){
                .client_uids = config->clients.uids,
                .n_client_uids = config->clients.n_uids,
                .client_gids = config->clients.gids,
                .n_client_gids = config->clients.n_gids,
                .everybody_client = config->clients.everybody,
                .admin_uids = config->admins.uids,
                .n_admin_uids = config->admins.n_uids,
                .admin_gids = config->admins.gids,
                .n_admin_gids = config->admins.n_gids,
                .reader_uids = config->readers.uids,
                .n_reader_uids = config->readers.n_uids,
                .reader_gids = config->readers.gids,
                .n_reader_gids = config->readers.n_gids,
                .everybody_reader = config->readers.everybody,
        };
}

/* What the configuration says, else what there is. */
static void bound_memory(const struct daemon *daemon, struct sl_runtime_options *options)
{
        const struct sl_config *config = daemon->config;
        struct sl_fields fields = {0};
        struct sl_memory_room room;

        sl_memory_room_read("", &room);
        options->memory_max = config->memory_max ? config->memory_max : sl_memory_room_usable(room.bytes);
        options->models_max = config->models_max_loaded;
        options->load_wait_ns = config->load_wait_s * SL_NS_PER_SECOND;
        options->staging_bytes = config->staging_bytes;
        if (!options->staging_bytes)
                options->staging_bytes = options->memory_max / 8 < STAGING_BYTES ? options->memory_max / 8 : STAGING_BYTES;
        sl_fields_add_number(&fields, "memory_max_bytes", (long long)options->memory_max);
        sl_fields_add(&fields, "source", config->memory_max ? "configuration" : "available");
        sl_fields_add_number(&fields, "available_bytes", (long long)room.bytes);
        sl_fields_add(&fields, "available_source", room.source);
        sl_log_event(&daemon->log, SL_LOG_INFO, "memory-bound", fields.text);
}

static void fill_options(struct daemon *daemon, const char *socket_path, struct sl_runtime_options *ret_options)
{
        const struct sl_config *config = daemon->config;

        sl_runtime_options_init(ret_options);
        ret_options->name = name_of(daemon);
        ret_options->socket_path = socket_path;
        ret_options->access = access_of(config);
        ret_options->history = daemon->options->history;
        ret_options->client_quota = (struct sl_quota){config->client_arena_bytes, config->client_in_flight};
        ret_options->uid_quota = (struct sl_quota){config->uid_arena_bytes, config->uid_in_flight};
        ret_options->uid_shapes = config->uid_shapes;
        ret_options->uid_log_lines = config->uid_log_lines;
        ret_options->clients_max = config->clients_max;
        ret_options->stats_bytes = config->stats_bytes;
        ret_options->worker_histograms = config->worker_histograms;
        ret_options->wait = (enum sl_wait_kind)daemon->wait;
        ret_options->autoscale.mode = (enum sl_autoscale_mode)config->autoscale;
        ret_options->autoscale.scaler = config->scaling_rule;
        ret_options->autoscale.slack = 1 + config->scaling_headroom / 100.0;
        ret_options->autoscale.lambda = config->scaling_lambda;
        ret_options->autoscale.core_price = config->scaling_core_price;
        ret_options->autoscale.gib_price = config->scaling_gib_price;
        ret_options->autoscale.idle_least_ns = config->scaling_idle_ms * SL_NS_PER_MS;
        ret_options->dispatcher_cpus = daemon->thread_cores.dispatcher_cores;
        ret_options->worker_cpus = daemon->thread_cores.worker_cores;
        ret_options->spin_ns = daemon->thread_cores.spin_ns;
        ret_options->inline_ns = config->inline_us * SL_NS_PER_US;
        ret_options->cores = daemon->thread_cores.n_granted;
        ret_options->grace_ns = config->grace_seconds * SL_NS_PER_SECOND;
        ret_options->compile_jobs = config->compile_jobs;
        ret_options->fuse_bytes = config->fuse_bytes;
        ret_options->compile_memory_bytes = config->compile_memory_bytes;
        ret_options->compile_seconds = config->compile_seconds;
        ret_options->data_folders = &config->data_folders;
        ret_options->cache = daemon->cache;
        ret_options->zygote = daemon->zygote;
        bound_memory(daemon, ret_options);
        ret_options->scan = on_scan;
        ret_options->scanned = on_scanned;
        ret_options->reloaded = on_reloaded;
        ret_options->tasks = on_tasks;
        ret_options->log = on_log;
        ret_options->context = daemon;
}

/* A cache that cannot be used costs a line in the log and time, no more. */
static void open_cache(struct daemon *daemon)
{
        const struct sl_config *config = daemon->config;
        struct sl_error error = {""};

        if (!config->cache_bytes || sl_plan_cache_new(config->cache_directory, config->cache_bytes, &daemon->cache, &error) == 0)
                return;
        log_text(daemon, config->cache_directory ? SL_LOG_WARNING : SL_LOG_INFO, "no-cache", "cause", error.text);
}

static int new_runtime(struct daemon *daemon, struct sl_error *error)
{
        struct sl_runtime_options options;

        open_cache(daemon);
        /* Without memory for it each compiler is started. */
        (void)sl_compile_zygote_new(NULL, &daemon->zygote);
        fill_options(daemon, daemon->socket_path, &options);
        int result = sl_runtime_new(&options, &daemon->runtime, error);

        if (result == 0)
                sl_runtime_sample(daemon->runtime, daemon->config->sampling);
        return result;
}

static void mention_nothing(const struct daemon *daemon)
{
        const struct sl_daemon_options *options = daemon->options;
        uint32_t n_specs;

        sl_repository_specs(daemon->scan, &n_specs);
        if (n_specs == 0)
                log_text(daemon, SL_LOG_WARNING, "serves-nothing", "cause",
                        options->n_repositories + daemon->models->n_repositories
                                ? "no repository has a model, NAME.onnx or NAME/VERSION/model.onnx"
                                : "no model repository is named, neither as an argument nor in the configuration: starling serve "
                                  "REPOSITORY");
}

/* What is said of all models may be meant for one of them; what none of those that serve has is a mistake. */
static void mention_sizes(const struct daemon *daemon, uint32_t n_failed)
{
        const struct sl_dim_sizes *sizes = &daemon->models->model_defaults.lowering.shapes;
        char text[SL_ERROR_TEXT_BYTES];
        uint32_t n_specs;

        sl_repository_specs(daemon->scan, &n_specs);
        for (uint32_t i = 0; i < sizes->n && n_failed < n_specs; i++) {
                if (sl_runtime_takes_size(daemon->runtime, sl_dim_sizes_name(sizes, i)))
                        continue;
                snprintf(text, sizeof(text), "shapes: no input of a model that is served has an open dimension \"%s\"",
                        sl_dim_sizes_name(sizes, i));
                log_text(daemon, SL_LOG_WARNING, "option-unused", "cause", text);
        }
}

/* A watchdog that cannot be fed will end the process: the line says why. */
static void watch_self(struct daemon *daemon)
{
        int r = sl_watchdog_start(&daemon->watchdog, daemon->runtime);

        if (r < 0)
                log_text(daemon, SL_LOG_WARNING, "no-watchdog", "cause", strerrordesc_np(-r));
}

static bool has_failed(void *context, const char *model)
{
        const struct daemon *daemon = context;

        return sl_runtime_has_failed(daemon->runtime, model);
}

/* A model whose allocation was given up has not loaded yet. */
static bool misses(struct daemon *daemon)
{
        uint32_t n;
        const struct sl_model_spec *specs = sl_repository_specs(daemon->scan, &n);

        return sl_cached_allocations_misses(&daemon->cached, specs, n, has_failed, daemon);
}

/* What does not load under an allocation of the cache is loaded without it. */
static int load_all(struct daemon *daemon, uint32_t *ret_failed, struct sl_error *error)
{
        int result = sl_runtime_load_all(daemon->runtime, ret_failed, error);
        const struct sl_model_spec *specs;
        uint32_t n;

        if (result < 0 || !*ret_failed || daemon->stopping)
                return result;
        specs = sl_repository_specs(daemon->scan, &n);
        if (!sl_cached_allocations_give_up(&daemon->cached, specs, n, has_failed, daemon))
                return 0;
        for (int i = 0; i < LOAD_TRIES && result == 0 && misses(daemon) && !daemon->stopping; i++)
                result = sl_runtime_load_all(daemon->runtime, ret_failed, error);
        return result;
}

static void on_zygote(void *context)
{
        sl_compile_zygote_hear(context);
}

/* One that somebody kills is reaped, with the child that waits, whether or not anything is compiled afterwards. */
static int watch_zygote(struct daemon *daemon)
{
        struct sl_compile_zygote *zygote = daemon->zygote;

        return zygote ? sl_runtime_watch(daemon->runtime, sl_zygote_fd(sl_compile_zygote_of(zygote)), on_zygote, zygote) : 0;
}

static int run(struct daemon *daemon, struct sl_error *error)
{
        uint32_t n_failed = 0;
        int result = sl_runtime_watch(daemon->runtime, daemon->signals, on_signal, daemon);

        if (result == 0)
                result = watch_zygote(daemon);
        if (result == 0)
                watch_self(daemon);
        if (result == 0)
                result = load_all(daemon, &n_failed, error);
        if (result == 0 && !daemon->stopping)
                result = sl_process_limits_check_descriptors(error);
        /* Whoever can attach can infer: the socket appears when the models are ready. */
        if (result == 0 && !daemon->stopping)
                result = sl_runtime_listen(daemon->runtime, error);
        if (result < 0)
                return result;
        if (!daemon->stopping) {
                struct sl_fields fields = {0};

                mention_nothing(daemon);
                mention_sizes(daemon, n_failed);
                sl_fields_add_number(&fields, "failed_models", n_failed + sl_repository_unnamed(daemon->scan));
                sl_log_event(&daemon->log, SL_LOG_INFO, "ready", fields.text);
                sl_notify("READY=1");
        }
        result = sl_runtime_run(daemon->runtime);
        if (result < 0)
                return sl_error_set(error, -result, "the runtime ended: %s", strerrordesc_np(-result));
        sl_log_event(&daemon->log, SL_LOG_INFO, "stopped", "");
        return 0;
}

/* The log's level and format, and wait, have the same names on the command line as in the file. */
static int override(struct daemon *daemon, struct sl_error *error)
{
        static const char *const levels[] = {"error", "warning", "info", "debug"};
        static const char *const waits[] = {"auto", "io_uring", "epoll"};
        const struct sl_daemon_options *options = daemon->options;
        uint64_t level = daemon->config->log_level, wait = daemon->config->wait;
        char wish[SL_WISH_BYTES];

        if (options->log_level && sl_value_choice(options->log_level, levels, 4, &level, wish) < 0)
                return sl_error_set(error, EINVAL, "--log-level: \"%s\" is %s", options->log_level, wish);
        if (options->wait && sl_value_choice(options->wait, waits, 3, &wait, wish) < 0)
                return sl_error_set(error, EINVAL, "--wait: \"%s\" is %s", options->wait, wish);
        if (options->name && sl_value_name(options->name, wish) < 0)
                return sl_error_set(error, EINVAL, "--name: \"%s\" is %s", options->name, wish);
        daemon->wait = (uint32_t)wait;
        daemon->log.level = (enum sl_log_level)level;
        if (!options->log_format)
                daemon->log.format = (enum sl_log_format)daemon->config->log_format;
        return 0;
}

/* Before anything that may fail and be logged. */
static int choose_format(struct daemon *daemon, struct sl_error *error)
{
        static const char *const formats[] = {"text", "json"};
        uint64_t format = SL_LOG_TEXT;
        char wish[SL_WISH_BYTES];

        if (daemon->options->log_format && sl_value_choice(daemon->options->log_format, formats, SL_LOG_FORMATS, &format, wish) < 0)
                return sl_error_set(error, EINVAL, "--log-format: \"%s\" is %s", daemon->options->log_format, wish);
        daemon->log.format = (enum sl_log_format)format;
        return 0;
}

/* Why it ends is the last line of a log that programs read. In front of people the caller says it. */
static void log_failure(const struct daemon *daemon, struct sl_error *error)
{
        if (daemon->log.format != SL_LOG_JSON)
                return;
        log_text(daemon, SL_LOG_ERROR, "failed", "cause", error->text);
        error->text[0] = 0;
}

/* The log's first line. */
static void log_start(const struct daemon *daemon)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "version", STARLING_VERSION);
        sl_fields_add(&fields, "name", name_of(daemon));
        sl_fields_add_number(&fields, "pid", getpid());
        sl_log_event(&daemon->log, SL_LOG_INFO, "start", fields.text);
}

static int start(struct daemon *daemon, struct sl_error *error)
{
        int result = choose_format(daemon, error);

        if (result == 0)
                result = read_config(daemon, &daemon->config, error);
        harden();
        if (result == 0)
                result = override(daemon, error);
        if (result == 0)
                result = take_signals(daemon, error);
        if (result == 0) /* whoever has read it may send a signal */
                log_start(daemon);
        if (result == 0)
                result = check_limits(daemon, error);
        if (result == 0)
                result = find_socket(daemon, error);
        if (result == 0)
                result = place(daemon, error);
        if (result < 0)
                return result;
        return new_runtime(daemon, error);
}

int sl_daemon_serve(const struct sl_daemon_options *options, struct sl_error *error)
{
        struct daemon daemon = {.options = options, .log = {.fd = STDERR_FILENO, .level = SL_LOG_INFO}, .signals = -1};
        int result;

        daemon.log.dropped = &daemon.log_dropped;
        daemon.cached.log = &daemon.log;
        result = start(&daemon, error);

        if (result == 0)
                result = run(&daemon, error);
        if (result < 0)
                log_failure(&daemon, error);
        sl_runtime_free(daemon.runtime);
        sl_watchdog_stop(&daemon.watchdog);
        sl_core_claims_free(daemon.claims);
        sl_plan_cache_free(daemon.cache);
        sl_compile_zygote_free(daemon.zygote);
        if (daemon.signals >= 0)
                close(daemon.signals);
        sl_cached_allocations_deinit(&daemon.cached);
        sl_repository_scan_free(daemon.scan);
        sl_repository_scan_free(daemon.next_scan);
        sl_config_free(daemon.models);
        sl_config_free(daemon.next_models);
        sl_config_free(daemon.config);
        free(daemon.repositories);
        return result;
}
