/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stats page /dev/shm/starling.NAME: what the runtime counts, readable while it changes by whom the runtime lets
 * (stats_guard.h), and left behind by a crash as the flight recorder. Created by the runtime, who holds a write lock on it (fcntl
 * OFD) as its proof of life. Where somebody else's file has that name, it lies in the folder of the socket.
 *
 *     +--------+---------------+----------+-----------+----------+----------------------------------------------+
 *     | header | dispatchers[] | models[] | clients[] | workers[]| histograms[][SL_STAGES] ... as far as it goes |
 *     +--------+---------------+----------+-----------+----------+----------------------------------------------+
 *                              model 0 and histograms 0 are common ones, for models that found no room
 *
 * The header says where each section begins, how many slots it has and how far they lie apart: a reader that knows shorter slots
 * than the writer still finds them. Fields are only ever added at the end of a slot; anything else is a new SL_STATS_VERSION.
 * Each counter has one writing thread, named below; sl_counter_add() costs no locked instruction.
 *
 * Threads: create, free, add and remove on the runtime's control thread. A slot is the control thread's until it hands it on, and
 * again once its users are done. Readers: any process; they get copies and never wait.
 */
#pragma once

#include "histogram.h"

#include <stdbool.h>
#include <stddef.h>

struct sl_error;
struct sl_stats_guard;

#define SL_STATS_MAGIC         0x54535f474e4c5453ull
#define SL_STATS_VERSION       1
#define SL_STATS_DIRECTORY     "/dev/shm"
#define SL_STATS_BYTES_DEFAULT (16u * 1024u * 1024u)
#define SL_STATS_LABEL_BYTES   32u
#define SL_STATS_NAME_BYTES    64u

/* Why the dispatcher refused an entry. */
#define SL_REFUSALS(X)                                                                                                             \
        /* id         text */                                                                                                      \
        X(FLAGS, "unknown flags or reserved bytes")                                                                                \
        X(TAG, "tag out of range or in flight")                                                                                    \
        X(MODEL, "no such model, or not ready")                                                                                    \
        X(GENERATION, "model changed since it was opened")                                                                         \
        X(SHAPE, "types or shapes differ from the model's")                                                                        \
        X(RANGE, "tensor outside of its region")                                                                                   \
        X(SAMPLES, "too many samples")                                                                                             \
        X(CAPACITY, "output capacity too small")                                                                                   \
        X(DEADLINE, "deadline passed at admission")                                                                                \
        X(QUEUE_FULL, "queue of the model full")                                                                                   \
        X(QUOTA, "quota of the client or its user")                                                                                \
        X(MEMORY, "no memory left below memory_max")                                                                               \
        X(STOPPING, "runtime or model is stopping")                                                                                \
        X(PROTOCOL, "contradiction on the wire; channel ended")                                                                    \
        X(SHARE, "share of the user, of a queue or of the sizes of a model")                                                       \
        X(TOO_LATE, "what goes before takes too long for the deadline")

enum sl_refusal {
#define X(id, text) SL_REFUSAL_##id,
        SL_REFUSALS(X)
#undef X
                SL_REFUSAL_LIMIT
};

#define SL_STAGES_OF_A_REQUEST(X)                                                                                                  \
        X(TOTAL, "total")                                                                                                          \
        X(QUEUED, "queued")                                                                                                        \
        X(BATCHED, "batched")                                                                                                      \
        X(COMPUTING, "computing")                                                                                                  \
        X(COMBINING, "combining")

enum sl_stage {
#define X(id, name) SL_STAGE_##id,
        SL_STAGES_OF_A_REQUEST(X)
#undef X
                SL_STAGES
};

/* Writer: the dispatcher. */
#define SL_DISPATCHER_COUNTERS(X)                                                                                                  \
        X(requests, "entries taken, refused ones included")                                                                        \
        X(completions, "completions published")                                                                                    \
        X(passes, "rounds over all queue pairs")                                                                                   \
        X(sleeps, "times that it went to sleep")                                                                                   \
        X(wakes, "sleeping clients that it woke")                                                                                  \
        X(doorbells, "times that a doorbell woke it")

/* Writer: the one thread that the slot was added for, or anybody through sl_model_count() when it is shared. */
#define SL_MODEL_COUNTERS(X)                                                                                                       \
        X(requests, "requests accepted")                                                                                           \
        X(samples, "samples accepted")                                                                                             \
        X(completed, "requests done")                                                                                              \
        X(failed, "requests that ended with an error")                                                                             \
        X(expired, "requests whose deadline passed")                                                                               \
        X(cancelled, "requests cancelled")                                                                                         \
        X(refused, "requests refused, or ended, as the queue was full")                                                            \
        X(batches, "batches given to workers")                                                                                     \
        X(batch_samples, "samples in them")                                                                                        \
        X(worker_busy_ns, "time of workers from batch to prediction")                                                              \
        X(compute_ns, "of that, time inside the network")                                                                          \
        X(overhead_ns, "time of the runtime beside the networks")

/* Writer: the dispatcher of the client's queue pairs; a client with several dispatchers has a slot for each. */
#define SL_CLIENT_COUNTERS(X)                                                                                                      \
        X(requests, "entries taken, refused ones included")                                                                        \
        X(completions, "completions published")                                                                                    \
        X(refused, "entries refused")                                                                                              \
        X(in_flight, "requests in flight now")                                                                                     \
        X(arena_bytes, "bytes of all regions now; writer: the control thread")

/* Writer: the worker. */
#define SL_WORKER_COUNTERS(X)                                                                                                      \
        X(batches, "batches done")                                                                                                 \
        X(samples, "samples in them")                                                                                              \
        X(busy_ns, "time from batch to prediction")                                                                                \
        X(warmup_runs, "runs on zeros while it became warm")                                                                       \
        X(batch_reason, "why its batch_max is what it is: enum sl_batch_reason; writer of this and the next: the control thread")  \
        X(plan_bytes, "its plan file, which all workers of the model share")                                                       \
        X(workspace_bytes, "activations and scratch of its largest batch")                                                         \
        X(pool_bytes, "inputs and outputs of its largest batch, where several requests are gathered")

/* Where a worker's batch_max comes from. */
#define SL_BATCH_REASONS(X)                                                                                                        \
        /* id         text */                                                                                                      \
        X(CONFIGURED, "configured")                                                                                                \
        X(LADDER, "the plan has no larger one")                                                                                    \
        X(BYTES, "a larger one would pass batch_bytes_max")                                                                        \
        X(ONE_SIZE, "the model cannot be batched")

enum sl_batch_reason {
#define X(id, text) SL_BATCH_##id,
        SL_BATCH_REASONS(X)
#undef X
                SL_BATCH_REASON_LIMIT
};

#define SL_STATS_FIELD(name, text) _Atomic uint64_t name;

/* Every slot begins with this. The control thread changes `used` and the names under `seq` (seqlock.h). */
struct sl_stats_slot {
        _Atomic uint32_t seq;
        uint32_t reserved;
        uint64_t used; /* 0 or 1; all from here on is copied under seq */
};

struct sl_dispatcher_stats {
        alignas(128) struct sl_stats_slot slot;
        int32_t core; /* it is pinned to; -1: none */
        uint32_t reserved;
        SL_DISPATCHER_COUNTERS(SL_STATS_FIELD)
        _Atomic uint64_t refusals[SL_REFUSAL_LIMIT];
};

struct sl_model_stats {
        alignas(128) struct sl_stats_slot slot;
        uint32_t histograms; /* index of its set in the section of histograms; 0 is the common one */
        uint32_t reserved;
        char name[SL_STATS_NAME_BYTES];
        SL_MODEL_COUNTERS(SL_STATS_FIELD)
};

struct sl_client_stats {
        alignas(128) struct sl_stats_slot slot;
        uint64_t id;
        uint32_t uid;
        uint32_t pid; /* in the runtime's PID namespace */
        char label[SL_STATS_LABEL_BYTES];
        SL_CLIENT_COUNTERS(SL_STATS_FIELD)
};

struct sl_worker_stats {
        alignas(128) struct sl_stats_slot slot;
        int32_t core; /* first core of its let; -1: not pinned */
        uint32_t batch_max;
        char model[SL_STATS_NAME_BYTES];
        SL_WORKER_COUNTERS(SL_STATS_FIELD)
};

struct sl_histogram_set {
        alignas(128) struct sl_histogram stages[SL_STAGES];
};

#define SL_STATS_SECTIONS(X)                                                                                                       \
        X(DISPATCHERS, struct sl_dispatcher_stats)                                                                                 \
        X(MODELS, struct sl_model_stats)                                                                                           \
        X(CLIENTS, struct sl_client_stats)                                                                                         \
        X(WORKERS, struct sl_worker_stats)                                                                                         \
        X(HISTOGRAMS, struct sl_histogram_set)

enum sl_stats_section {
#define X(id, type) SL_STATS_##id,
        SL_STATS_SECTIONS(X)
#undef X
                SL_STATS_SECTIONS_N
};

enum sl_runtime_state { SL_RUNTIME_STARTING, SL_RUNTIME_READY, SL_RUNTIME_STOPPING, SL_RUNTIME_STOPPED };

struct sl_stats_header {
        alignas(128) _Atomic uint64_t magic; /* stored last: the page is whole */
        uint32_t version;
        uint32_t header_bytes;
        uint64_t bytes; /* of the file */
        uint32_t pid;
        _Atomic uint32_t state;   /* enum sl_runtime_state; still STARTING or READY after a crash */
        uint64_t started_ns;      /* CLOCK_MONOTONIC */
        uint64_t started_unix_ns; /* CLOCK_REALTIME */
        _Atomic uint64_t crowded; /* models (or parts of them) that had to be counted in a common slot */
        char runtime_name[64];    /* NUL-terminated */
        char wait_name[32];       /* "io_uring" or "epoll" */
        struct sl_stats_extent {
                uint64_t offset;
                uint32_t stride;
                uint32_t count;
        } sections[SL_STATS_SECTIONS_N];
        _Atomic uint64_t memory_bytes; /* promised, of memory_max (serve/memory.h); writer: the control thread */
        _Atomic uint64_t memory_max;   /* UINT64_MAX: no limit */
};

/* ---- the runtime's side --------------------------------------------------------------------------------------------- */

struct sl_stats;

struct sl_stats_options {
        const char *name;      /* of the runtime; no slash, at most 63 bytes */
        const char *directory; /* NULL: SL_STATS_DIRECTORY */
        const char *wait_name;
        const struct sl_stats_guard *guard; /* who may read it; NULL: everybody */
        uint64_t bytes;                     /* of the file; 0: SL_STATS_BYTES_DEFAULT. Memory is taken as slots are used */
        uint32_t n_dispatchers;
        uint32_t n_models;  /* 0: 512 */
        uint32_t n_clients; /* 0: 1024 */
        uint32_t n_workers; /* 0: 512 */
};

/*
 * Creates the page, or replaces the one that a dead runtime of this name left behind. The text names path and bytes. Return: 0, or
 *   -EINVAL      the name, or no room for the sections in so few bytes
 *   -EADDRINUSE  a runtime of this name lives; one that was killed just now is waited for
 *   -EPERM       the path is a symbolic link, no regular file, or somebody else's
 *   -ENOSPC      the file system is full
 *   -ENOMEM, -errno
 */
int sl_stats_create(const struct sl_stats_options *options, struct sl_stats **ret_stats, struct sl_error *error);

/* Where it lies; whether a dead runtime's lay there; 0, or why (-errno) nobody but the owner may read it although @guard names
 * others. */
const char *sl_stats_path(const struct sl_stats *stats);
bool sl_stats_has_replaced(const struct sl_stats *stats);
int sl_stats_guarded(const struct sl_stats *stats);

/* True when a living runtime's page @name lies in @directory. */
bool sl_stats_is_claimed(const char *name, const char *directory);

/* Removes the file. NULL is fine. */
struct sl_stats *sl_stats_free(struct sl_stats *stats);

void sl_stats_set_state(struct sl_stats *stats, enum sl_runtime_state state);

/* What the runtime has promised of the memory that it may take. */
void sl_stats_set_memory(struct sl_stats *stats, uint64_t bytes, uint64_t max);

/* Dispatcher @index's slot; NULL unless below n_dispatchers. In use from the start. */
struct sl_dispatcher_stats *sl_stats_dispatcher(struct sl_stats *stats, uint32_t index);
void sl_stats_dispatcher_pinned(struct sl_stats *stats, uint32_t index, int32_t core);

/* What a model's thread counts with: pointers into the page, and whether other models count in the same place. A plain value. */
struct sl_model_counting {
        struct sl_model_stats *counters;
        struct sl_histogram_set *histograms;
        bool shared_counters, shared_histograms;
};

/*
 * A slot for one thread that counts for model @name; a model for which several threads count has several slots of one name, which
 * readers add up. Return: 0; -ENOSPC: no room for its histograms (or no slot at all): *ret_counting is usable nevertheless and
 * counts in the common ones, the text says so.
 */
int sl_stats_model_add(struct sl_stats *stats, const char *name, struct sl_model_counting *ret_counting, struct sl_error *error);
void sl_stats_model_remove(struct sl_stats *stats, struct sl_model_counting *counting);

/* Return: 0, -ENOSPC: all slots are in use; *ret_slot is then an unpublished slot that may be written as any other. */
int sl_stats_client_add(
        struct sl_stats *stats, uint64_t id, uint32_t uid, uint32_t pid, const char *label, struct sl_client_stats **ret_slot);
void sl_stats_client_remove(struct sl_stats *stats, struct sl_client_stats *slot);

int sl_stats_worker_add(
        struct sl_stats *stats, const char *model, int32_t core, uint32_t batch_max, struct sl_worker_stats **ret_slot);
void sl_stats_worker_remove(struct sl_stats *stats, struct sl_worker_stats *slot);

static inline void sl_counter_set(_Atomic uint64_t *counter, uint64_t value)
{
        atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* sl_model_count(&counting, completed, 1) */
#define sl_model_count(counting, field, n) sl_model_count_at((counting), &(counting)->counters->field, (n))

static inline void sl_model_count_at(const struct sl_model_counting *counting, _Atomic uint64_t *counter, uint64_t n)
{
        if (counting->shared_counters)
                atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
        else
                sl_counter_add(counter, n);
}

static inline void sl_model_record(const struct sl_model_counting *counting, enum sl_stage stage, uint64_t ns)
{
        if (counting->shared_histograms)
                sl_histogram_record_shared(&counting->histograms->stages[stage], ns);
        else
                sl_histogram_record(&counting->histograms->stages[stage], ns);
}

/* ---- a reader's side ------------------------------------------------------------------------------------------------ */

struct sl_stats_view;

/*
 * Maps the page of runtime @name for reading. @directory: NULL: SL_STATS_DIRECTORY, else the folder of its socket; that of a living
 * runtime is preferred, and there a page is believed only if it is root's, the caller's own, or of whom the socket belongs to
 * (without a socket that is not known). Return: 0; -ENOENT; -EPERM somebody else's; -EBADMSG no stats page, damaged, or of another
 * version; -errno.
 */
int sl_stats_open(const char *name, const char *directory, struct sl_stats_view **ret_view, struct sl_error *error);
struct sl_stats_view *sl_stats_close(struct sl_stats_view *view);

/* Copy of the header. */
void sl_stats_read_header(const struct sl_stats_view *view, struct sl_stats_header *ret_header);

/* True while the runtime that writes this page lives. */
bool sl_stats_is_live(const struct sl_stats_view *view);

/* Number of slots, used or not: the bound of @index below. */
uint32_t sl_stats_count(const struct sl_stats_view *view, enum sl_stats_section section);

/* Copies of slots. Return: 0; -ENOENT unused or out of range; -EAGAIN just being changed, or left so by a crash. */
int sl_stats_read_dispatcher(const struct sl_stats_view *view, uint32_t index, struct sl_dispatcher_stats *ret_slot);
int sl_stats_read_model(const struct sl_stats_view *view, uint32_t index, struct sl_model_stats *ret_slot);
int sl_stats_read_client(const struct sl_stats_view *view, uint32_t index, struct sl_client_stats *ret_slot);
int sl_stats_read_worker(const struct sl_stats_view *view, uint32_t index, struct sl_worker_stats *ret_slot);

/* The live histograms of a model; NULL for a number out of range. Valid until the view is closed. */
const struct sl_histogram_set *sl_stats_histograms(const struct sl_stats_view *view, const struct sl_model_stats *model);

const char *sl_stage_name(enum sl_stage stage);
const char *sl_refusal_text(enum sl_refusal refusal);
const char *sl_batch_reason_text(enum sl_batch_reason reason);
