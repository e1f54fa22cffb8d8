/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include "account.h"
#include "accumulator.h"
#include "attach.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/urgent.h"
#include "dispatcher.h"
#include "listener.h"
#include "memory.h"
#include "reaper.h"
#include "registry.h"
#include "segment.h"
#include "served.h"
#include "session.h"
#include "stats.h"
#include "stats_page.h"
#include "supervisor.h"
#include "task_page.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define TOKEN_LISTEN  1u
#define TOKEN_BELL    2u
#define TOKEN_WORKERS 3u
#define TOKEN_WATCH   4u

/* Segments in flight, of all ensembles. */
#define SEGMENTS                4096u
#define WATCHES_MAX             4u
/* Of the stats page so many bytes are promised at first, which is enough for 200 models and their clients, then as many at a time.
 */
#define STATS_FIRST             (18u << 20)
#define STATS_STEP              (1u << 20)
/* Users that have left are remembered for a while: that many for each connection. */
#define ACCOUNTS_PER_CONNECTION 2u
#define SLEEP_LIMIT_NS          (1000 * SL_NS_PER_MS)
/* A worker process that goes on for so long with what was cancelled hangs. */
#define HUNG_NS                 (2 * SL_NS_PER_SECOND)

struct watch {
        int fd;
        void (*handle)(void *context);
        void *context;
};

struct sl_runtime {
        struct sl_runtime_options options;
        char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
        int listen_fd;
        int spare_fd; /* given up for a moment to refuse a connection when no other fd is left */
        bool bound;
        struct sl_wait *wait;
        struct sl_bell bell;
        struct sl_stats *stats;
        struct sl_memory memory;
        uint64_t stats_promised; /* bytes of the stats page */
        int catalogue_fd;
        struct sl_mapping catalogue_map;
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        struct sl_dispatcher *dispatcher;
        struct sl_accounts *accounts;
        struct sl_supervisor *supervisor;
        struct sl_registry *registry;
        struct sl_sessions *sessions;
        struct sl_reaper *reaper;
        struct watch watches[WATCHES_MAX];
        uint32_t n_watches;
        uint32_t stops;   /* times that sl_runtime_stop() was called */
        bool starts;      /* sl_runtime_load_all() has asked for a scan, which has not ended */
        int start_status; /* of the last such scan */
        struct sl_error start_error;
        bool drained;
        bool probed; /* the dispatcher has not answered the last probe */
};

static void log_event(const struct sl_runtime *rt, int level, const char *event, const char *fields)
{
        if (rt->options.log)
                rt->options.log(rt->options.context, level, event, fields);
}

/* ---- making ---- */

static void answer(void *context, uint64_t asker, int status, const char *text)
{
        struct sl_runtime *rt = context;

        sl_sessions_answer(rt->sessions, asker, status, text);
}

static void refuse(void *context, uint64_t asker, int status, const char *text)
{
        struct sl_runtime *rt = context;

        sl_sessions_refuse(rt->sessions, asker, status, text);
}

static void report_reload(struct sl_runtime *rt, int status, const char *text)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "cause", text);
        if (status < 0)
                log_event(rt, 0, "reload-failed", fields.text);
        if (rt->options.reloaded)
                rt->options.reloaded(rt->options.context);
}

static void synced(void *context, int status, const char *text)
{
        struct sl_runtime *rt = context;

        if (!rt->starts) {
                report_reload(rt, status, text);
                return;
        }
        rt->starts = false;
        rt->start_status = status;
        sl_error_set(&rt->start_error, -status, "%s", text);
}

static int make_catalogue(struct sl_runtime *rt, struct sl_error *error)
{
        int r = sl_segment_create("starling-catalogue", SL_TASK_PAGE_BYTES + sizeof(struct sl_catalogue), SL_SEAL_RESPONSE,
                &rt->catalogue_fd, &rt->catalogue_map, error);
        struct sl_catalogue *catalogue = rt->catalogue_map.base;

        if (r < 0)
                return r;
        catalogue->magic = SL_WIRE_MAGIC;
        catalogue->version = SL_WIRE_VERSION;
        catalogue->pid = (uint32_t)getpid();
        catalogue->started_ns = sl_clock_ns();
        snprintf(catalogue->runtime_name, sizeof(catalogue->runtime_name), "%s", rt->options.name);
        return 0;
}

static uint32_t usable_cores(void)
{
        cpu_set_t cores;

        return sched_getaffinity(0, sizeof(cores), &cores) < 0 ? 0 : (uint32_t)CPU_COUNT(&cores);
}

static int make_dispatcher(struct sl_runtime *rt, struct sl_error *error)
{
        struct sl_catalogue *catalogue = rt->catalogue_map.base;

        return sl_dispatcher_new(
                &(struct sl_dispatcher_options){
                        .wait = rt->options.wait,
                        .cpus = rt->options.dispatcher_cpus,
                        .spin_ns = rt->options.spin_ns,
                        .inline_ns = rt->options.inline_ns,
                        .decisions = rt->options.decisions,
                        .cores = rt->options.cores ? rt->options.cores : usable_cores(),
                        .clients_max = rt->options.clients_max,
                        .client_in_flight_max = rt->options.client_quota.in_flight,
                        .user_in_flight_max = rt->options.uid_quota.in_flight,
                        .accumulator = rt->accumulator,
                        .line = &catalogue->dispatchers[0],
                        .stats = rt->stats,
                        .control = &rt->bell,
                },
                &rt->dispatcher, error);
}

static void say_of_worker(void *context, int level, const char *event, const char *model, const char *cause)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", model);
        sl_fields_add(&fields, "cause", cause);
        log_event(context, level, event, fields.text);
}

static void tell_of_worker(void *context, int level, const char *event, const char *fields)
{
        log_event(context, level, event, fields);
}

static int make_supervisor(struct sl_runtime *rt)
{
        const struct sl_supervisor_options options = {
                .say = say_of_worker, .tell = tell_of_worker, .context = rt, .cache = rt->options.cache};
        int r = sl_supervisor_new(&options, &rt->supervisor);

        return r < 0 ? r : sl_wait_watch(rt->wait, sl_supervisor_fd(rt->supervisor), TOKEN_WORKERS);
}

static int make_registry(struct sl_runtime *rt, struct sl_error *error)
{
        return sl_registry_new(
                &(struct sl_registry_options){
                        .runtime = &rt->options,
                        .accounts = rt->accounts,
                        .catalogue = rt->catalogue_map.base,
                        .task_page = sl_task_page_in(&rt->catalogue_map),
                        .regions = rt->regions,
                        .accumulator = rt->accumulator,
                        .segments = SEGMENTS,
                        .usable_cores = usable_cores(),
                        .dispatcher = rt->dispatcher,
                        .control = &rt->bell,
                        .wait = rt->wait,
                        .stats = rt->stats,
                        .memory = &rt->memory,
                        .supervisor = rt->supervisor,
                        .answer = answer,
                        .refuse = refuse,
                        .synced = synced,
                        .context = rt,
                },
                &rt->registry, error);
}

static int make_sessions(struct sl_runtime *rt)
{
        return sl_sessions_new(
                &(struct sl_sessions_options){
                        .runtime = &rt->options,
                        .dispatcher = rt->dispatcher,
                        .registry = rt->registry,
                        .accounts = rt->accounts,
                        .stats = rt->stats,
                        .memory = &rt->memory,
                        .wait = rt->wait,
                        .reaper = rt->reaper,
                        .regions = rt->regions,
                        .catalogue_fd = rt->catalogue_fd,
                        .catalogue_bytes = rt->catalogue_map.bytes,
                },
                &rt->sessions);
}

static int make_tables(struct sl_runtime *rt, struct sl_error *error)
{
        int r = sl_accounts_new(&rt->options, ACCOUNTS_PER_CONNECTION * sl_sessions_max(&rt->options), &rt->accounts);

        if (r == 0)
                r = make_supervisor(rt);
        if (r == 0) {
                r = make_registry(rt, error);
                if (r < 0)
                        return r;
                r = make_sessions(rt);
        }
        return r < 0 ? sl_error_set(error, -r, "no memory for the tables of %u clients", rt->options.clients_max) : 0;
}

/* A slot of the stats page, or a set of histograms. What has none is counted together with others. */
static int promise_stats(void *context, uint64_t more)
{
        struct sl_runtime *rt = context;
        uint64_t reserved = sl_stats_reserved(rt->stats) + more;
        uint64_t step = reserved > rt->stats_promised ? sl_align_up(reserved - rt->stats_promised, STATS_STEP) : 0;
        int r = step ? sl_memory_take(&rt->memory, SL_MEMORY_STATS, step, NULL) : 0;

        rt->stats_promised += r == 0 ? step : 0;
        return r;
}

/* What is there from the start is promised whole, although most of it is touched only when it is used. */
static int take_fixed_memory(struct sl_runtime *rt, struct sl_error *error)
{
        int r;

        sl_memory_init(&rt->memory, rt->options.memory_max, rt->stats);
        r = sl_memory_take(&rt->memory, SL_MEMORY_STAGING, rt->options.staging_bytes, error);
        if (r < 0)
                return sl_error_prefix(error, r, "staging_bytes");
        rt->stats_promised = rt->options.stats_bytes < STATS_FIRST ? rt->options.stats_bytes : STATS_FIRST;
        r = sl_memory_take(&rt->memory, SL_MEMORY_STATS, rt->stats_promised, error);
        if (r < 0)
                return sl_error_prefix(error, r, "stats_bytes");
        sl_stats_promise(rt->stats, promise_stats, rt);
        r = sl_memory_take(&rt->memory, SL_MEMORY_CATALOGUE,
                offsetof(struct sl_catalogue, models) + SL_CATALOGUE_ROOM_FIRST + SL_TASK_PAGE_BYTES, error);
        return r < 0 ? sl_error_prefix(error, r, "the catalogue") : 0;
}

/* Of all clients' regions and the staging. */
static int make_staging(struct sl_runtime *rt, struct sl_error *error)
{
        int r = sl_regions_new(rt->options.clients_max * SL_REGIONS_MAX + 1, &rt->regions);

        if (r == 0)
                r = sl_accumulator_new(rt->regions, SEGMENTS, rt->options.staging_bytes, &rt->accumulator);
        if (r < 0)
                return sl_error_set(error, -r, "staging_bytes %llu cannot be had: %s",
                        (unsigned long long)rt->options.staging_bytes, strerror(-r));
        return 0;
}

static int make_parts(struct sl_runtime *rt, struct sl_error *error)
{
        int r = sl_wait_new(rt->options.wait, &rt->wait, error);

        if (r < 0)
                return r;
        rt->bell.wait = rt->wait;
        rt->bell.token = TOKEN_BELL;
        r = sl_stats_page_make(&rt->options, rt->socket_path, sl_wait_name(rt->wait), &rt->stats, error);
        if (r == 0)
                r = take_fixed_memory(rt, error);
        if (r == 0)
                r = make_catalogue(rt, error);
        if (r < 0)
                return r;
        r = make_staging(rt, error);
        if (r < 0)
                return r;
        r = sl_reaper_new(&rt->reaper, error);
        if (r == 0)
                r = make_dispatcher(rt, error);
        return r < 0 ? r : make_tables(rt, error);
}

static int find_socket_path(struct sl_runtime *rt, struct sl_error *error)
{
        int r = 0;

        if (rt->options.socket_path) {
                if (strlen(rt->options.socket_path) >= sizeof(rt->socket_path))
                        r = -ENAMETOOLONG;
                else
                        strcpy(rt->socket_path, rt->options.socket_path);
        } else {
                r = sl_socket_path(rt->options.name, rt->socket_path, sizeof(rt->socket_path));
        }
        if (r < 0)
                return sl_error_set(error, -r, "socket path \"%s\" of runtime \"%s\": at most %zu bytes, and a name has no slash",
                        rt->options.socket_path ? rt->options.socket_path : "", rt->options.name, sizeof(rt->socket_path) - 1);
        return 0;
}

int sl_runtime_new(const struct sl_runtime_options *options, struct sl_runtime **ret_runtime, struct sl_error *error)
{
        struct sl_runtime *rt = aligned_alloc(SL_LINE_PAIR_BYTES, sl_align_up(sizeof(*rt), SL_LINE_PAIR_BYTES));
        int r;

        if (!rt)
                return sl_error_set(error, ENOMEM, "no memory for the runtime");
        memset(rt, 0, sizeof(*rt));
        rt->options = *options;
        rt->listen_fd = rt->spare_fd = rt->catalogue_fd = -1;
        r = find_socket_path(rt, error);
        if (r == 0)
                r = make_parts(rt, error);
        if (r < 0) {
                sl_runtime_free(rt);
                return r;
        }
        *ret_runtime = rt;
        return 0;
}

static void hear_dispatcher(struct sl_runtime *rt)
{
        struct sl_event event;

        while (sl_dispatcher_event(rt->dispatcher, &event)) {
                sl_sessions_event(rt->sessions, &event);
                sl_registry_event(rt->registry, &event);
                rt->drained |= event.kind == SL_EVENT_DRAINED;
                rt->probed &= event.kind != SL_EVENT_ALIVE;
        }
}

/*
 * Workers ring the dispatcher's bell until they are joined, and read the clients' arenas: it is stopped first and freed after them,
 * as the sessions are.
 */
struct sl_runtime *sl_runtime_free(struct sl_runtime *rt)
{
        if (!rt)
                return NULL;
        if (rt->bound)
                unlink(rt->socket_path);
        if (rt->listen_fd >= 0) /* what connected and was not accepted may hold anything */
                sl_reaper_end(rt->reaper, rt->listen_fd);
        sl_cleanup_fd(&rt->spare_fd);
        sl_dispatcher_stop(rt->dispatcher);
        if (rt->sessions)
                hear_dispatcher(rt);
        sl_registry_free(rt->registry);
        sl_supervisor_free(rt->supervisor);
        sl_sessions_free(rt->sessions);
        sl_reaper_free(rt->reaper);
        sl_accounts_free(rt->accounts);
        sl_dispatcher_free(rt->dispatcher);
        sl_accumulator_free(rt->accumulator);
        sl_regions_free(rt->regions);
        sl_mapping_free(&rt->catalogue_map);
        sl_cleanup_fd(&rt->catalogue_fd);
        sl_stats_free(rt->stats);
        sl_wait_free(rt->wait);
        free(rt);
        return NULL;
}

/* ---- the loop ---- */

static void open_spare(struct sl_runtime *rt)
{
        rt->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Without a fd for a connection it would hang until its time is up: it gets the spare one, and an answer. */
static void turn_away(struct sl_runtime *rt, int code)
{
        struct pollfd waiting = {.fd = rt->listen_fd, .events = POLLIN};
        struct sl_error error;

        sl_error_set(&error, code, "the runtime can take no connection: %s", strerror(code));
        sl_cleanup_fd(&rt->spare_fd);
        while (poll(&waiting, 1, 0) == 1) {
                int fd = accept4(rt->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd < 0)
                        break;
                sl_sessions_turn_away(rt->sessions, fd, -code, error.text);
        }
        open_spare(rt);
}

static void happened(struct sl_runtime *rt, const struct sl_wait_event *event)
{
        if (event->token == TOKEN_LISTEN && (event->what & SL_WAIT_ACCEPTED) && event->value < 0)
                turn_away(rt, -event->value);
        else if (event->token == TOKEN_LISTEN && (event->what & SL_WAIT_ACCEPTED))
                sl_sessions_accept(rt->sessions, event->value);
        else if (event->token == TOKEN_WORKERS)
                sl_supervisor_hear(rt->supervisor);
        else if (event->token >= TOKEN_WATCH && event->token < TOKEN_WATCH + rt->n_watches)
                rt->watches[event->token - TOKEN_WATCH].handle(rt->watches[event->token - TOKEN_WATCH].context);
        else if (sl_registry_owns(event->token))
                sl_registry_compiled(rt->registry, event->token);
        else if (sl_sessions_owns(rt->sessions, event->token))
                sl_sessions_happened(rt->sessions, event->token, event->what);
}

/*
 * A turn of the loop is a look and a rest. Whoever waits for something asks for it between the two: what the look has heard nobody
 * rings for again. The bell says "asleep" all the time but while the loop is busy, so that whoever rings after the look is heard.
 */
static void runtime_look(struct sl_runtime *rt)
{
        sl_bell_sleep(&rt->bell);
        hear_dispatcher(rt);
        sl_registry_advance(rt->registry);
        sl_accounts_tell(rt->accounts);
}

/* As long as @limit_ns, but not beyond @due_ns of the clock. */
static uint64_t shorter(uint64_t limit_ns, uint64_t due_ns)
{
        uint64_t now_ns = due_ns == UINT64_MAX ? 0 : sl_clock_ns();
        uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;

        return left_ns < limit_ns ? left_ns : limit_ns;
}

static void rest(struct sl_runtime *rt, uint64_t limit_ns)
{
        struct sl_wait_event events[16];
        uint64_t timeout = sl_sessions_continue(rt->sessions) ? 0 : shorter(limit_ns, sl_registry_due_ns(rt->registry));
        int n = sl_wait_for(rt->wait, events, 16, timeout);

        for (int i = 0; i < n; i++)
                happened(rt, &events[i]);
}

int sl_runtime_load_all(struct sl_runtime *rt, uint32_t *ret_failed, struct sl_error *error)
{
        int r;

        sl_urgent_thread_unless_given(SL_CONTROL_NICENESS);
        rt->starts = true;
        rt->start_status = 0;
        r = sl_registry_sync(rt->registry, error);
        if (r < 0)
                return r;
        for (runtime_look(rt); sl_registry_busy(rt->registry, ret_failed) && !rt->stops; runtime_look(rt))
                rest(rt, SLEEP_LIMIT_NS);
        if (rt->start_status < 0)
                *error = rt->start_error;
        return rt->start_status;
}

bool sl_runtime_has_failed(const struct sl_runtime *rt, const char *name)
{
        return sl_registry_has_failed(rt->registry, name);
}

bool sl_runtime_takes_size(const struct sl_runtime *rt, const char *name)
{
        return sl_registry_takes_size(rt->registry, name);
}

int sl_runtime_watch(struct sl_runtime *rt, int fd, void (*handle)(void *context), void *context)
{
        int r;

        if (rt->n_watches == WATCHES_MAX)
                return -E2BIG;
        r = sl_wait_watch(rt->wait, fd, TOKEN_WATCH + rt->n_watches);
        if (r == 0)
                rt->watches[rt->n_watches++] = (struct watch){.fd = fd, .handle = handle, .context = context};
        return r;
}

bool sl_runtime_probe(struct sl_runtime *rt)
{
        if (rt->probed)
                return false;
        rt->probed = true;
        sl_dispatcher_command(rt->dispatcher, &(struct sl_command){.kind = SL_COMMAND_PROBE});
        return true;
}

void sl_runtime_stop(struct sl_runtime *rt)
{
        rt->stops++;
}

void sl_runtime_sample(struct sl_runtime *rt, uint32_t sampling)
{
        sl_dispatcher_command(rt->dispatcher, &(struct sl_command){.kind = SL_COMMAND_SAMPLE, .index = sampling});
        sl_stats_dispatcher_samples(rt->stats, 0, sampling);
}

void sl_runtime_reload(struct sl_runtime *rt)
{
        struct sl_error error;
        int r = sl_registry_sync(rt->registry, &error);

        if (r < 0)
                report_reload(rt, r, error.text);
}

/* The stats page proves that no other runtime of this name lives: a socket that lies there is a dead one's. */
static int listen_on_socket(struct sl_runtime *rt, struct sl_error *error)
{
        int r = sl_listener_open(rt->socket_path, &rt->listen_fd, error);

        if (r < 0)
                return r;
        rt->bound = true;
        open_spare(rt);
        r = sl_wait_accept(rt->wait, rt->listen_fd, TOKEN_LISTEN);
        return r < 0 ? sl_error_set(error, -r, "cannot accept on \"%s\": %s", rt->socket_path, strerror(-r)) : 0;
}

static void turn_until_drained(struct sl_runtime *rt, uint64_t limit_ns, uint32_t stops)
{
        uint64_t end = sl_clock_ns() + limit_ns;

        for (runtime_look(rt); !rt->drained && rt->stops <= stops; runtime_look(rt)) {
                uint64_t now = sl_clock_ns();

                if (now >= end)
                        return;
                rest(rt, end - now);
        }
}

/* In order: no new requests, grace for what runs, cancellation for the rest. */
static void drain(struct sl_runtime *rt)
{
        sl_stats_set_state(rt->stats, SL_RUNTIME_STOPPING);
        sl_dispatcher_command(rt->dispatcher, &(struct sl_command){.kind = SL_COMMAND_CLOSE});
        turn_until_drained(rt, rt->options.grace_ns, 1);
        if (rt->drained)
                return;
        log_event(rt, 1, "grace-over", "action=cancel");
        sl_dispatcher_command(rt->dispatcher, &(struct sl_command){.kind = SL_COMMAND_CANCEL_ALL});
        /* Ends when the batches that compute just now are done; a process can be ended before. */
        turn_until_drained(rt, HUNG_NS, UINT32_MAX);
        if (rt->drained)
                return;
        sl_registry_kill_workers(rt->registry);
        turn_until_drained(rt, UINT64_MAX / 2, UINT32_MAX);
}

int sl_runtime_listen(struct sl_runtime *rt, struct sl_error *error)
{
        int r = listen_on_socket(rt, error);

        if (r == 0)
                sl_stats_set_state(rt->stats, SL_RUNTIME_READY);
        return r;
}

int sl_runtime_run(struct sl_runtime *rt)
{
        sl_urgent_thread_unless_given(SL_CONTROL_NICENESS);
        for (runtime_look(rt); !rt->stops; runtime_look(rt))
                rest(rt, SLEEP_LIMIT_NS);
        drain(rt);
        sl_stats_set_state(rt->stats, SL_RUNTIME_STOPPED);
        return 0;
}
