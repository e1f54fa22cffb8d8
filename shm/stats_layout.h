/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of the stats page /dev/shm/starling.NAME: what the runtime counts, readable while it changes by whom the runtime lets
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
 * A slot is the control thread's until it hands it on, and again once its users are done. Readers: any process. This header is
 * installed as <starling/stats.h>, with what it includes: starling-stats(5) says how a page is read.
 */
#pragma once

#include "histogram.h"

#include <stddef.h>

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
        char executor[16]; /* "thread", "inline": the dispatcher itself */
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
        _Atomic uint64_t memory_bytes; /* promised, of memory_max (serve/control/memory.h); writer: the control thread */
        _Atomic uint64_t memory_max;   /* UINT64_MAX: no limit */
};
