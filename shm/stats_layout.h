/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of the stats page /dev/shm/starling.NAME: what the runtime counts. Users whom the runtime lets (stats_guard.h) read it
 * while it changes. A crash leaves it behind as the flight recorder. The runtime creates it, and holds a write lock on it (fcntl
 * OFD) as its proof of life. Where a foreign file has that name, it lies in the folder of the socket.
 *
 *     +--------+---------------+----------+-----+----------------------------------------------+
 *     | header | dispatchers[] | models[] | ... | histograms[][SL_STAGES] ... as far as it goes |
 *     +--------+---------------+----------+-----+----------------------------------------------+
 *                              model 0 and histograms 0 are common ones, for models that found no room
 *
 * Memory for slots of models, clients, workers, queues, lets and kinds of memory is taken one by one, when a slot is used the first
 * time. Behind the last that was used, the file has a hole. The name of a model takes as much of its slot as the longest one.
 *
 * The header says how many sections there are, where each begins, how many slots it has and how far they lie apart. So a reader
 * that knows shorter slots, or fewer sections, than the writer still finds what it knows. Fields are only ever added at the end of
 * a slot, sections at the end of SL_STATS_SECTIONS; anything else is a new SL_STATS_VERSION.
 *
 * Each counter has one writing thread, named below; sl_counter_add() costs no locked instruction. A gauge says "now" in its text.
 * Those of the dispatcher, of models, queues and lets are written once a millisecond while something is in flight, and once when
 * nothing is any more.
 *
 * A slot is the control thread's until it hands it on, and again once its users are done. What stands before the counters of a slot
 * is the control thread's all the time, and changes under `seq` (seqlock.h), and so does what a model has behind them; records and
 * spans are the dispatcher's, whole.
 * Readers: any process. This header is installed as <starling/stats.h>, with what it includes: starling-stats(5) says how a page is
 * read.
 */
#pragma once

#include "histogram.h"

#include <stddef.h>

#define SL_STATS_MAGIC         0x54535f474e4c5453ull
#define SL_STATS_VERSION       4
#define SL_STATS_DIRECTORY     "/dev/shm"
#define SL_STATS_LAST          "~last" /* behind a name: its page of before, which crashed. No name of a runtime has a ~ */
#define SL_STATS_BYTES_DEFAULT (30u * 1024u * 1024u)
#define SL_STATS_LABEL_BYTES   32u
#define SL_STATS_NAME_BYTES    64u   /* of a runtime's name, terminated */
#define SL_STATS_MODEL_BYTES   1152u /* of a model's, with its version and its sizes */
#define SL_STATS_WHY_BYTES     128u
#define SL_STATS_CAUSE_BYTES   384u       /* why a want could not be had, whole */
#define SL_STATS_NONE          UINT32_MAX /* where a slot has no other one */

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

/*
 * Each with a histogram. WAKING is the time from the publication of a completion until its client, which had to be woken for it,
 * ran again. There is one value for each wake-up. It counts for the model whose completion came last, when the client shows itself
 * the next time.
 */
#define SL_STAGES_OF_A_REQUEST(X)                                                                                                  \
        X(TOTAL, "total")                                                                                                          \
        X(QUEUED, "queued")                                                                                                        \
        X(BATCHED, "batched")                                                                                                      \
        X(COMPUTING, "computing")                                                                                                  \
        X(COMBINING, "combining")                                                                                                  \
        X(WAKING, "waking")

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
        X(doorbells, "times that a doorbell woke it")                                                                              \
        X(in_flight, "requests of all clients in flight now")                                                                      \
        X(waiting_clients, "queue pairs whose clients wait now")                                                                   \
        X(crowded, "1: more threads want to run now than there are cores")                                                         \
        X(saturated, "1: workers have all that they can take now")                                                                 \
        X(late_ns, "how long it waited for a core of late, when it had work")

/* Writer: the one thread that the slot was added for, or anybody through sl_model_count() when it is shared. */
#define SL_MODEL_SUMS(X)                                                                                                           \
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
        X(overhead_ns, "time of the runtime beside the networks")                                                                  \
        X(lost, "pieces of requests that a worker process had when it ended")

#define SL_MODEL_COUNTERS(X) SL_MODEL_SUMS(X) X(in_flight, "requests accepted and not completed now")

/* Of an ensemble; the same writer. */
#define SL_ENSEMBLE_COUNTERS(X)                                                                                                    \
        X(skipped, "predictions that members were not asked for, as those before had settled a sample")                            \
        X(missed, "predictions of members that were late or failed, where a quorum of the others did")

/* Writer: the dispatcher. */
#define SL_QUEUE_COUNTERS(X)                                                                                                       \
        X(depth, "requests, or segments, that wait now")                                                                           \
        X(samples, "samples in them")                                                                                              \
        X(oldest_ns, "CLOCK_MONOTONIC when the request of the oldest was taken; 0: none waits")                                    \
        X(given_jobs, "of segments: jobs that workers have now")                                                                   \
        X(given_samples, "samples that are not answered now: of requests, those broadcast; of segments, those given")

/* Writer: the dispatcher of the client's queue pairs; a client with several dispatchers has a slot for each. */
#define SL_CLIENT_COUNTERS(X)                                                                                                      \
        X(requests, "entries taken, refused ones included")                                                                        \
        X(completions, "completions published")                                                                                    \
        X(refused, "entries refused")                                                                                              \
        X(in_flight, "requests in flight now")                                                                                     \
        X(arena_bytes, "bytes of all regions now; writer: the control thread")                                                     \
        X(failed, "accepted requests that ended with an error")                                                                    \
        X(samples, "samples accepted")                                                                                             \
        X(wakes, "times that it slept and was woken, as far as it has shown itself since")                                         \
        X(waking_ns, "time that those took, as in the stage of this name")

/* Writer: the dispatcher. */
#define SL_LET_COUNTERS(X)                                                                                                         \
        X(turns, "jobs that were given to workers on it")                                                                          \
        X(samples, "samples in those that are done")                                                                               \
        X(busy_ns, "time of its workers from batch to prediction")                                                                 \
        X(running, "jobs given and not answered now")                                                                              \
        X(background_ns, "of busy_ns, that of jobs in the background")

/* Writer: the thread that runs its jobs, one at a time; of an executor "process" or "inline" the dispatcher. */
#define SL_WORKER_COUNTERS(X)                                                                                                      \
        X(batches, "batches done")                                                                                                 \
        X(samples, "samples in them")                                                                                              \
        X(busy_ns, "time from batch to prediction")                                                                                \
        X(warmup_runs, "runs on zeros while it became warm")                                                                       \
        X(batch_reason, "why its batch_max is what it is: enum sl_batch_reason; writer of this and the next: the control thread")  \
        X(plan_bytes, "its plan file, which all workers of the model share")                                                       \
        X(workspace_bytes, "activations and scratch of its largest batch")                                                         \
        X(pool_bytes, "inputs and outputs of its largest batch, where several requests are gathered")                              \
        X(merged, "batches that a merged plan computed, together with those of other models; written as the first")                \
        X(dynamic_bytes, "of memory_max promised to its data-dependent steps now; written as the first")                           \
        X(dynamic_used_bytes, "the most that one run has used of that; written as the first")                                      \
        X(condition, "of a variant of a task: 1 active, 2 overloaded, 3 interfered with; 0: it is not looked at. The "             \
                     "dispatcher's, as are the next")                                                                              \
        X(peaks, "times that it began to be overloaded")                                                                           \
        X(peak_ends, "times that it ended")                                                                                        \
        X(slowdowns, "times that it began to be interfered with")                                                                  \
        X(recoveries, "times that that ended")                                                                                     \
        X(packed_bytes, "weights that its plan's workers have packed while they serve, once for all; written as the first")

/* Writer: the control thread; of what data-dependent steps have, those that run them, with atomic additions. */
#define SL_MEMORY_COUNTERS(X)                                                                                                      \
        X(bytes, "promised now")                                                                                                   \
        X(most_bytes, "the most that was ever promised")

/* Writer: the control thread. */
#define SL_STEP_COUNTERS(X) X(taken, "times that it was carried out")

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

/*
 *     AVAILABLE, STANDBY <--nobody asks, somebody does--> (the rest)
 *     WAITING --a compiler is free--> LOADING --> READY <--> DEGRADED
 *        |                               |          |
 *        +--> FAILED <-------------------+          +--> DRAINING --> (no slot)
 */
#define SL_STATS_MODEL_STATES(X)                                                                                                   \
        /* id      name        text */                                                                                             \
        X(WAITING, "waiting", "for others to be loaded, or for its members")                                                       \
        X(LOADING, "loading", "is being compiled, or its workers start")                                                           \
        X(READY, "ready", "serves")                                                                                                \
        X(DEGRADED, "degraded", "serves with fewer workers than it should have, or with none; or a member does")                   \
        X(FAILED, "failed", "could not be loaded: `why`")                                                                          \
        X(DRAINING, "draining", "takes no more requests; those in flight are finished")                                            \
        X(AVAILABLE, "available", "is loaded on request, and no request has come yet, or for long")                                \
        X(STANDBY, "standby", "its plan is loaded, and its workers start with the next request")

enum sl_stats_model_state {
#define X(id, name, text) SL_STATS_MODEL_##id,
        SL_STATS_MODEL_STATES(X)
#undef X
                SL_STATS_MODEL_STATE_LIMIT
};

/* What is served under a name. */
#define SL_STATS_MODEL_KINDS(X)                                                                                                    \
        X(PLAIN, "model", "one model")                                                                                             \
        X(ENSEMBLE, "ensemble", "several, and a rule that combines them")                                                          \
        X(OPEN, "open", "a model whose requests say sizes; each is served by a kind of its own:")                                  \
        X(SIZES, "sizes", "a model at sizes that requests have said")

enum sl_stats_model_kind {
#define X(id, name, text) SL_STATS_MODEL_##id,
        SL_STATS_MODEL_KINDS(X)
#undef X
                SL_STATS_MODEL_KIND_LIMIT
};

#define SL_STATS_QUEUE_KINDS(X)                                                                                                    \
        X(REQUESTS, "requests", "accepted requests of a name, a part of which at least waits for its turn")                        \
        X(SEGMENTS, "segments", "segments that had their turn, and wait for a worker of the model")

enum sl_stats_queue_kind {
#define X(id, name, text) SL_STATS_QUEUE_##id,
        SL_STATS_QUEUE_KINDS(X)
#undef X
                SL_STATS_QUEUE_KIND_LIMIT
};

/*
 *     STARTING --> WARM --> SERVING --> LEAVING --> (no slot)
 *        ^                     |
 *        |                     +--its process ends--> ENDED --+--> (the next one in its place) STARTING, restarts + 1
 *        +----------------------------------------------------+--> BACKING_OFF, after several that answered nothing
 */
#define SL_STATS_WORKER_STATES(X)                                                                                                  \
        X(STARTING, "starting", "maps its plan and runs a first sample")                                                           \
        X(WARM, "warm", "has run it, and waits for the others of a model that is being loaded")                                    \
        X(SERVING, "serving", "takes jobs")                                                                                        \
        X(LEAVING, "leaving", "finishes what it has, and takes no more")                                                           \
        X(ENDED, "ended", "its process has ended: `why`; none has taken its place yet")                                            \
        X(BACKING_OFF, "backing off", "its process has ended, as others before it: the next one starts later")

enum sl_stats_worker_state {
#define X(id, name, text) SL_STATS_WORKER_##id,
        SL_STATS_WORKER_STATES(X)
#undef X
                SL_STATS_WORKER_STATE_LIMIT
};

#define SL_STATS_FIELD(name, text)      _Atomic uint64_t name;
#define SL_STATS_LEFT_FIELD(name, text) _Atomic uint64_t left_##name;

/* Every slot begins with this. The control thread changes `used` and the names under `seq` (seqlock.h). */
struct sl_stats_slot {
        _Atomic uint32_t seq;
        uint32_t reserved;
        uint64_t used; /* 0 or 1; all from here on is copied under seq */
};

struct sl_dispatcher_stats {
        alignas(128) struct sl_stats_slot slot;
        int32_t core;      /* it is pinned to; -1: none */
        uint32_t sampling; /* of 2^32 - 1 requests, how many are traced */
        SL_DISPATCHER_COUNTERS(SL_STATS_FIELD)
        _Atomic uint64_t refusals[SL_REFUSAL_LIMIT];
};

/* A name; its counters go on while what is served under it is replaced. */
struct sl_model_stats {
        alignas(128) struct sl_stats_slot slot;
        uint32_t histograms; /* index of its set in the section of histograms; 0 is the common one; SL_STATS_NONE: it is not loaded,
                                and has none */
        uint32_t state;      /* enum sl_stats_model_state */
        uint32_t kind;       /* enum sl_stats_model_kind */
        uint32_t n_members;
        int64_t version;   /* number of the version folder; 0 for an ensemble */
        uint64_t since_ns; /* it is in this state; CLOCK_MONOTONIC */
        uint64_t load_ns;  /* how long its last load took that ended well */
        uint32_t loads;    /* that ended well */
        uint32_t load_failures;
        uint32_t workers_wanted, workers_serving; /* of its own: an ensemble has none */
        uint32_t segment_samples;                 /* N */
        uint32_t samples_max;                     /* of one request */
        uint32_t queue_requests;                  /* accepted and not completed, at most */
        uint32_t reserved;
        char name[SL_STATS_MODEL_BYTES];
        char why[SL_STATS_WHY_BYTES]; /* FAILED, DEGRADED: why; WAITING, LOADING, DRAINING: what it waits for; else "" */
        SL_MODEL_COUNTERS(SL_STATS_FIELD)
        SL_MODEL_SUMS(SL_STATS_LEFT_FIELD) /* of an open model, what its sizes had counted that have left; the control thread's */

        /* What is wanted of the name, and what that waits for: the control thread's, under `seq` as what stands before the
         * counters. */
        uint64_t want;        /* its number; 0: the name is to go */
        uint64_t wanted_ns;   /* since when; CLOCK_MONOTONIC */
        uint64_t want_served; /* the want that is; 0: none is */
        uint64_t want_failed; /* the want that could not be had; 0: none */
        uint64_t awaits_ns;   /* it has waited for `awaits` since; CLOCK_MONOTONIC */
        uint32_t awaits_of;   /* of which name: slot in the section of models; SL_STATS_NONE: of its own, or of several */
        uint32_t want_reserved;
        char origin[24];                  /* who wants it: "repository", "administrator", "request" */
        char awaits[64];                  /* "": nothing */
        char step[16];                    /* what is done when that has come; "": nothing, or it depends */
        char cause[SL_STATS_CAUSE_BYTES]; /* why the last load or want that failed did; "": none has since one that did not */
        SL_ENSEMBLE_COUNTERS(SL_STATS_FIELD)
};
static_assert(sizeof(struct sl_model_stats) == 2176, "seventeen pairs of lines");

struct sl_client_stats {
        alignas(128) struct sl_stats_slot slot;
        uint64_t id;
        uint32_t uid;
        uint32_t pid; /* in the runtime's PID namespace */
        char label[SL_STATS_LABEL_BYTES];
        uint64_t attached_ns; /* CLOCK_MONOTONIC */
        uint32_t n_queues;    /* its queue pairs, and the depth of each */
        uint32_t depth;
        SL_CLIENT_COUNTERS(SL_STATS_FIELD)
};

/* A place of a model's workers: a process that ends is followed by another one in its place, which goes on counting. */
struct sl_worker_stats {
        alignas(128) struct sl_stats_slot slot;
        int32_t core; /* first core of its let; -1: not pinned */
        uint32_t batch_max;
        char model[SL_STATS_MODEL_BYTES];
        char executor[16];   /* "thread"; "process": one of its own; "inline": the dispatcher itself */
        uint32_t state;      /* enum sl_stats_worker_state */
        uint32_t let;        /* index in the section of lets; SL_STATS_NONE: the dispatcher's core */
        uint32_t pid;        /* of its process, in the runtime's PID namespace; 0: it is a thread, or ended */
        uint32_t restarts;   /* processes that have followed one that ended */
        uint32_t histograms; /* index of its set, of the pieces that it has answered; SL_STATS_NONE: it has none */
        uint32_t reserved;
        uint64_t since_ns;            /* it is in this state; CLOCK_MONOTONIC */
        uint64_t ended_unix_ns;       /* when its last process ended; 0: none has */
        char why[SL_STATS_WHY_BYTES]; /* why that ended */
        SL_WORKER_COUNTERS(SL_STATS_FIELD)
};

struct sl_histogram_set {
        alignas(128) struct sl_histogram stages[SL_STAGES];
};

struct sl_queue_stats {
        alignas(128) struct sl_stats_slot slot;
        uint32_t kind; /* enum sl_stats_queue_kind */
        uint32_t reserved;
        char model[SL_STATS_MODEL_BYTES];
        SL_QUEUE_COUNTERS(SL_STATS_FIELD)
};

/* A let: a part of a device on which workers run. */
struct sl_let_stats {
        alignas(128) struct sl_stats_slot slot;
        uint32_t n_cores;
        uint32_t at_once; /* jobs that run at a time without sharing a core */
        uint32_t workers; /* that share it now */
        uint32_t for_one; /* 1: it was made for one worker, which may spin */
        char name[32];    /* "core 3", "worker cores" */
        char cores[64];   /* "0-3,8"; "": any */
        SL_LET_COUNTERS(SL_STATS_FIELD)
};

/* What memory is promised for: control/budget/memory.h has the kinds. */
struct sl_memory_stats {
        alignas(128) struct sl_stats_slot slot;
        char name[24];
        SL_MEMORY_COUNTERS(SL_STATS_FIELD)
};

/* A kind of step from what is wanted of a name to what is there: serve/converge/step.h has the kinds. */
struct sl_step_stats {
        alignas(128) struct sl_stats_slot slot;
        char name[24];
        SL_STEP_COUNTERS(SL_STATS_FIELD)
};

/*
 * Where a request is:
 *
 *     PARKED --> QUEUED --> BROADCAST --> GIVEN --> ENDED
 *                  +------------+-----------+---------^     given up, expired, cancelled
 */
#define SL_FLIGHT_STAGES(X)                                                                                                        \
        X(PARKED, "parked", "waits until its model is compiled for its sizes")                                                     \
        X(QUEUED, "queued", "waits for its turn")                                                                                  \
        X(BROADCAST, "broadcast", "had its turn; no worker has got a part of it yet")                                              \
        X(GIVEN, "given", "workers have got a part of it: `places` says which have not answered")                                  \
        X(ENDED, "ended", "its completion is in the ring")

enum sl_flight_stage {
#define X(id, name, text) SL_FLIGHT_##id,
        SL_FLIGHT_STAGES(X)
#undef X
                SL_FLIGHT_STAGE_LIMIT
};

#define SL_FLIGHT_PLACES  4u
#define SL_FLIGHT_SEVERAL UINT16_MAX

/* A worker that has pieces of a request and has not answered. The last place stands for several where there are not enough. */
struct sl_flight_place {
        uint16_t worker; /* 1 + its slot in the section of workers; 0: unused; SL_FLIGHT_SEVERAL */
        uint16_t pieces;
};

/*
 * The flight recorder: a request, in flight or ended. Those in flight stay, of the others the latest do: a new request takes the
 * record of the one that ended longest ago, and goes without where all are in flight. Here `used` is the number of the request,
 * from 1 in the order of acceptance. Writer: the dispatcher, each change under `seq`; it is left odd by a crash in the middle.
 */
struct sl_flight_record {
        alignas(128) struct sl_stats_slot slot;
        uint64_t client; /* its id */
        uint32_t uid, pid;
        uint32_t model; /* slot in the section of models */
        uint16_t queue; /* pair, of its client */
        uint8_t priority;
        uint8_t sampled; /* 1: its spans are traced */
        uint32_t stage;  /* enum sl_flight_stage */
        int32_t status;  /* ENDED: 0, -errno */
        uint32_t samples;
        uint32_t broadcast; /* samples that had their turn */
        uint32_t index;     /* as the client counts, of its queue pair */
        uint32_t answered;  /* pieces */
        union {
                struct sl_flight_place places[SL_FLIGHT_PLACES];
                uint64_t number; /* in the section of traced ones, where `used` counts those: of the request */
        };
        uint64_t taken_ns, since_ns; /* since_ns: it is in this stage. All are CLOCK_MONOTONIC; 0: it has not come so far */
        uint64_t assigned_ns, started_ns, staged_ns, combined_ns;
};
static_assert(sizeof(struct sl_flight_record) == 128, "two lines");

/*
 * What a worker did for a sampled request, or how long a client took to wake for one. Both rings of the trace, this one and that of
 * records of sampled requests that have ended, are written in turn: number n, counted in `used` from 1, lies at (n - 1) % count.
 */
struct sl_trace_span {
        alignas(64) struct sl_stats_slot slot;
        uint64_t request, client;    /* number of the request; id of its client */
        uint32_t worker;             /* slot in the section of workers; SL_STATS_NONE: the client woke */
        uint32_t samples;            /* computed; or which queue pair of the client */
        uint64_t begun_ns, ended_ns; /* it computed; or slept on, after the completion */
        uint64_t combined_ns;        /* 0: it was not the one that combined */
};
static_assert(sizeof(struct sl_trace_span) == 64, "one line");

/* New ones come last. Whoever defines slots in a header of its own includes it here and adds its rows. */
#define SL_STATS_SECTIONS(X)                                                                                                       \
        /* id        slot                        title */                                                                          \
        X(DISPATCHERS, struct sl_dispatcher_stats, "dispatchers")                                                                  \
        X(MODELS, struct sl_model_stats, "models")                                                                                 \
        X(CLIENTS, struct sl_client_stats, "clients")                                                                              \
        X(WORKERS, struct sl_worker_stats, "workers")                                                                              \
        X(HISTOGRAMS, struct sl_histogram_set, "histograms")                                                                       \
        X(QUEUES, struct sl_queue_stats, "queues")                                                                                 \
        X(LETS, struct sl_let_stats, "lets")                                                                                       \
        X(MEMORY, struct sl_memory_stats, "memory")                                                                                \
        X(RECORDS, struct sl_flight_record, "records")                                                                             \
        X(TRACED, struct sl_flight_record, "traced")                                                                               \
        X(SPANS, struct sl_trace_span, "spans")                                                                                    \
        X(STEPS, struct sl_step_stats, "steps")

enum sl_stats_section {
#define X(id, type, title) SL_STATS_##id,
        SL_STATS_SECTIONS(X)
#undef X
                SL_STATS_SECTIONS_N
};

enum sl_runtime_state { SL_RUNTIME_STARTING, SL_RUNTIME_READY, SL_RUNTIME_STOPPING, SL_RUNTIME_STOPPED };

struct sl_stats_extent {
        uint64_t offset;
        uint32_t stride;
        uint32_t count;
};

struct sl_stats_header {
        alignas(128) _Atomic uint64_t magic; /* stored last: the page is whole */
        uint32_t version;
        uint32_t header_bytes; /* with all sections */
        uint64_t bytes;        /* of the file */
        uint32_t pid;
        _Atomic uint32_t state;                 /* enum sl_runtime_state; still STARTING or READY after a crash */
        uint64_t started_ns;                    /* CLOCK_MONOTONIC */
        uint64_t started_unix_ns;               /* CLOCK_REALTIME */
        _Atomic uint64_t crowded;               /* models (or parts of them) that had to be counted in a common slot */
        char runtime_name[SL_STATS_NAME_BYTES]; /* NUL-terminated */
        char wait_name[32];                     /* "io_uring" or "epoll" */
        _Atomic uint64_t memory_bytes; /* promised, of memory_max (serve/control/budget/memory.h); writer: the control thread */
        _Atomic uint64_t memory_max;   /* UINT64_MAX: no limit */
        char release[24];              /* of Starling */
        uint32_t n_sections;           /* those that the writer knows */
        uint32_t reserved;
        struct sl_stats_extent sections[SL_STATS_SECTIONS_N];
};
