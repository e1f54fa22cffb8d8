/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every byte that a client and the runtime share. Offsets, sizes and meanings are the wire: a change of any of them is a new
 * SL_WIRE_VERSION. Shared memory holds offsets and indices, never pointers.
 *
 *     request memfd          client: read-write   runtime: read      sealed SHRINK|GROW|SEAL, at most 256 KiB but for wide
 *     +--------+----------------------------+----------------------------+---
 *     | header | queue pair 0               | queue pair 1               | ...
 *     +--------+----------------------------+----------------------------+---
 *              | head | sleep | cancels | entries[depth] | descriptors[depth][tensors] |
 *     behind all queue pairs, of each: wide descriptors[2][1024]
 *
 *     response memfd         client: read         runtime: read-write   sealed SHRINK|GROW|FUTURE_WRITE|SEAL
 *     +--------+----------------------------+----------------------------+---
 *     | header | queue pair 0               | queue pair 1               | ...
 *     +--------+----------------------------+----------------------------+---
 *              | consumed | tail | completions[depth] | outputs[depth][tensors] |
 *     behind all queue pairs, of each: wide outputs[2][1024]
 *
 *     arena region memfd     client: read-write   runtime: read-write   sealed SHRINK|GROW|SEAL; tensors only
 *     catalogue memfd        client: read         runtime: read-write   sealed SHRINK|GROW|FUTURE_WRITE|SEAL; one for all clients
 *
 * A request in flight is known by its *tag*, a number below the queue's depth that the client takes from its private table
 * and gets back with the completion: descriptors, cancel words and output shapes are found by tag. Entries are found by the
 * free-running submission index. At most `depth` requests of a queue pair are in flight, so the completion ring never fills.
 *
 * Submission (one producer: the client's owner thread of the queue pair; one consumer: its dispatcher)
 *   (S1) client:     fill entry and descriptors, then store-release entry.seq = index + 1.
 *   (S2) dispatcher: load-acquire entry.seq; equal to its own head + 1 means a new entry; copy it once.     pairs with S1
 *   (F1) dispatcher: entry and descriptors copied, then store-release consumed = head.
 *   (F2) client:     load-acquire consumed before reusing a slot.                                           pairs with F1
 * Completion (one producer: the dispatcher; one consumer: the owner thread)
 *   (C1) dispatcher: fill completions and output shapes, then store-release each one's lap, the oldest's last.
 *   (C2) client:     load-acquire the lap of the next slot; as the lap is now, the completion is whole.     pairs with C1
 *   (E1) dispatcher: behind C1, store-release tail: what a client sleeps on. Who is awake never looks at it, so that its line
 *                    stays with the dispatcher, and one line travels for each completion.
 *   (E2) client:     load tail; beyond its own head, the slots up to it are whole; behind it, it is late.   pairs with E1
 *   (D1) client:     completion copied out, then store-release head.
 *   (D2) dispatcher: load-acquire head, clamped to [tail - depth, tail], before reusing a completion slot.  pairs with D1
 * Sleep and wake: see doorbell.h.
 *
 * What the runtime trusts: its own memory only. Everything that it reads from the request memfd is copied once, checked, and
 * bounded; a contradiction is answered with a refusal or ends the channel (-EPROTO). Response memory is never read back.
 */
#pragma once

#include "base/bytes.h"
#include "base/dim_sizes.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SL_WIRE_MAGIC        0x474e494c52415453ull /* "STARLING", little-endian */
#define SL_WIRE_VERSION      14
#define SL_REQUEST_BYTES_MAX (256u * 1024u)
#define SL_QUEUES_MAX        64u   /* queue pairs of a client */
#define SL_QUEUE_DEPTH_MIN   2u    /* a power of two */
#define SL_QUEUE_DEPTH_MAX   1024u /* a power of two */
#define SL_TENSORS_MAX       1024u /* inputs and outputs of one request together */
#define SL_WIDE_SLOTS                                                                                                              \
        2u /* requests of a queue pair with more tensors than it has room for: tags below it; pages that none uses                 \
              take no memory */
#define SL_REGIONS_MAX     64u /* arena regions of a client */
#define SL_DISPATCHERS_MAX 16u
#define SL_WIRE_RANK_MAX   8u
#define SL_NO_BATCH_AXIS   0xffu
#define SL_PRIORITIES      4u /* 0 is served first */
#define SL_BACKGROUND      4u /* behind them: nobody waits for it (SL_FEATURE_BACKGROUND) */
#define SL_CLASSES         5u

/* ---- requests: written by the client, copied once by the dispatcher ------------------------------------------------ */

enum {
        SL_ENTRY_NOOP = 1 << 0, /* answered by the dispatcher itself; model and tensors are ignored */
        SL_ENTRY_FLAGS = (1 << 1) - 1,
};

struct sl_entry {
        alignas(64) _Atomic uint32_t seq; /* submission index + 1 once the entry is whole (S1); 0 at the start */
        uint16_t flags;                   /* SL_ENTRY_*; unknown bits are refused */
        uint8_t priority;                 /* below SL_CLASSES */
        uint8_t reserved0;                /* 0 */
        uint32_t model;                   /* index in the catalogue */
        uint32_t generation;              /* of that model when the client opened it */
        uint64_t deadline_ns;             /* absolute CLOCK_MONOTONIC; 0: none */
        uint64_t user_data;               /* comes back untouched */
        uint64_t session;                 /* sequence id of a stateful model; 0: none */
        uint32_t samples;                 /* length of the batch axis; 1 when there is none */
        uint16_t tag;                     /* below depth, not in flight */
        uint16_t n_inputs;                /* descriptors [0, n_inputs) */
        uint16_t n_outputs;               /* descriptors [n_inputs, n_inputs + n_outputs) */
        uint16_t reserved1[3];            /* 0 */
        uint64_t reserved2;               /* 0 */
};
static_assert(sizeof(struct sl_entry) == 64, "an entry is one line");
static_assert(offsetof(struct sl_entry, seq) == 0, "");
static_assert(offsetof(struct sl_entry, flags) == 4, "");
static_assert(offsetof(struct sl_entry, priority) == 6, "");
static_assert(offsetof(struct sl_entry, model) == 8, "");
static_assert(offsetof(struct sl_entry, generation) == 12, "");
static_assert(offsetof(struct sl_entry, deadline_ns) == 16, "");
static_assert(offsetof(struct sl_entry, user_data) == 24, "");
static_assert(offsetof(struct sl_entry, session) == 32, "");
static_assert(offsetof(struct sl_entry, samples) == 40, "");
static_assert(offsetof(struct sl_entry, tag) == 44, "");
static_assert(offsetof(struct sl_entry, n_inputs) == 46, "");
static_assert(offsetof(struct sl_entry, n_outputs) == 48, "");
static_assert(offsetof(struct sl_entry, reserved2) == 56, "");

/* One tensor of a request: where its bytes lie in the client's arena and what they mean. PLAIN layout, dense. */
struct sl_descriptor {
        alignas(64) uint64_t offset; /* in the region, 64-byte aligned */
        uint64_t bytes;              /* input: exactly the tensor's; output: the capacity */
        uint16_t region;             /* below the number of regions of this client */
        uint8_t dtype;               /* enum sl_dtype */
        uint8_t rank;                /* at most SL_WIRE_RANK_MAX */
        uint8_t batch_axis;          /* or SL_NO_BATCH_AXIS */
        uint8_t reserved0[3];        /* 0 */
        uint32_t dims[SL_WIRE_RANK_MAX];
        uint64_t reserved1; /* 0 */
};
static_assert(sizeof(struct sl_descriptor) == 64, "a descriptor is one line");
static_assert(offsetof(struct sl_descriptor, bytes) == 8, "");
static_assert(offsetof(struct sl_descriptor, region) == 16, "");
static_assert(offsetof(struct sl_descriptor, dtype) == 18, "");
static_assert(offsetof(struct sl_descriptor, rank) == 19, "");
static_assert(offsetof(struct sl_descriptor, batch_axis) == 20, "");
static_assert(offsetof(struct sl_descriptor, dims) == 24, "");
static_assert(offsetof(struct sl_descriptor, reserved1) == 56, "");

/* What a client says about its own sleep, see doorbell.h. */
enum {
        SL_AWAKE = 0,
        SL_ASLEEP_FUTEX = 1, /* waits on completion tail: wake it with a futex */
        SL_ASLEEP_FD = 2,    /* its event loop waits: ring its completion bell */
};

/* Start of a queue pair's part of the request memfd; cancels, entries and descriptors follow at computed offsets. */
struct sl_queue_request {
        alignas(128) _Atomic uint32_t head;  /* (D1) completions that the client has taken; dispatcher reads, clamped */
        alignas(128) _Atomic uint32_t sleep; /* SL_AWAKE, ...: client writes, dispatcher reads; any other value counts as awake */
        uint32_t reserved;
        _Atomic uint64_t awake_ns; /* CLOCK_MONOTONIC: when it last ran again after a sleep; client writes, for the statistics */
        alignas(128) _Atomic uint32_t cancellations; /* counts writes into the cancel words; client writes, dispatcher compares */
};
static_assert(sizeof(struct sl_queue_request) == 384, "three line pairs");
static_assert(offsetof(struct sl_queue_request, awake_ns) == 136, "");

/* ---- responses: written by the dispatcher, only ever read by the client -------------------------------------------- */

enum {
        SL_COMPLETION_MORE = 1 << 0,   /* reserved for streams: another completion of the same tag follows */
        SL_COMPLETION_REASON = 1 << 1, /* why it was refused or failed lies at outputs[tag], see reason.h */
};

struct sl_completion {
        alignas(64) uint64_t user_data;
        int32_t status;        /* 0 or -errno, see starling.h */
        uint16_t tag;          /* of the request */
        uint16_t flags;        /* SL_COMPLETION_* */
        uint64_t queued_ns;    /* taken from the ring -> first segment given to a worker; with -EBUSY: forecast, see starling.h */
        uint64_t batched_ns;   /* -> first batch starts to compute (gather, waiting in the mailbox) */
        uint64_t computing_ns; /* -> last prediction staged */
        uint64_t combining_ns; /* -> combined result stored */
        uint64_t bytes_needed; /* with -EMSGSIZE: capacity that the first output that is too small wants; else 0 */
        uint32_t index;        /* submission index of the request */
        uint16_t n_outputs;    /* shapes at outputs[tag]; 0 unless status is 0 */
        _Atomic uint16_t lap;  /* 1 and 2 in turns once the completion is whole (C1); 0 at the start */
};
static_assert(sizeof(struct sl_completion) == 64, "a completion is one line");
static_assert(offsetof(struct sl_completion, status) == 8, "");
static_assert(offsetof(struct sl_completion, tag) == 12, "");
static_assert(offsetof(struct sl_completion, flags) == 14, "");
static_assert(offsetof(struct sl_completion, queued_ns) == 16, "");
static_assert(offsetof(struct sl_completion, computing_ns) == 32, "");
static_assert(offsetof(struct sl_completion, bytes_needed) == 48, "");
static_assert(offsetof(struct sl_completion, index) == 56, "");
static_assert(offsetof(struct sl_completion, n_outputs) == 60, "");
static_assert(offsetof(struct sl_completion, lap) == 62, "");

/* Actual shape of one output; of a request without outputs, why, see reason.h. The first says what an ensemble has answered by. */
struct sl_output {
        alignas(64) uint64_t bytes;
        uint32_t dims[SL_WIRE_RANK_MAX];
        uint8_t rank;
        uint8_t dtype;
        uint8_t reserved[6];
        uint64_t members_any; /* a bit for each member: it is in the result of some sample. 0: the runtime does not say */
        uint64_t members_all; /* in that of every sample */
};
static_assert(sizeof(struct sl_output) == 64, "an output shape is one line");
static_assert(offsetof(struct sl_output, dims) == 8, "");
static_assert(offsetof(struct sl_output, rank) == 40, "");
static_assert(offsetof(struct sl_output, members_any) == 48, "");

/* Start of a queue pair's part of the response memfd. */
struct sl_queue_response {
        alignas(128) _Atomic uint32_t consumed; /* (F1) entries that the dispatcher has copied */
        alignas(128) _Atomic uint32_t tail;     /* (E1) completions published; the futex word of a sleeping client */
        alignas(128) struct sl_completion completions[];
};
static_assert(offsetof(struct sl_queue_response, tail) == 128, "");
static_assert(offsetof(struct sl_queue_response, completions) == 256, "");

/* Both memfds start with this; the runtime writes it once, before the client gets the fd, and never reads it back. */
struct sl_channel_header {
        alignas(128) uint64_t magic;
        uint32_t version;
        uint32_t n_queues;
        uint32_t depth;   /* of every queue pair */
        uint32_t tensors; /* descriptors (and output shapes) per request */
        uint64_t bytes;   /* of this memfd */
        uint64_t client_id;
        uint32_t dispatcher[SL_QUEUES_MAX / 4]; /* of each queue pair, one byte each */
};
static_assert(sizeof(struct sl_channel_header) == 128, "");

/* ---- where things lie: the same arithmetic on both sides ------------------------------------------------------------ */

struct sl_channel_shape {
        uint32_t n_queues; /* 1 to SL_QUEUES_MAX */
        uint32_t depth;    /* power of two, SL_QUEUE_DEPTH_MIN to SL_QUEUE_DEPTH_MAX */
        uint32_t tensors;  /* 1 to SL_TENSORS_MAX */
};

/* Offsets inside a queue pair's part, and the strides between queue pairs. */
struct sl_channel_offsets {
        uint32_t cancels, entries, descriptors, request_stride;
        uint32_t outputs, response_stride;
        uint32_t wide_descriptors, wide_outputs, wide_stride; /* in the memfds, from a queue pair to the next */
        uint32_t request_bytes, response_bytes;               /* whole memfds, page-aligned */
};

/* Return: 0; -EINVAL: a number out of its range; -E2BIG: the request memfd would exceed SL_REQUEST_BYTES_MAX. */
int sl_channel_offsets(const struct sl_channel_shape *shape, struct sl_channel_offsets *ret_offsets);

/* Pointers into one queue pair's part of the two mappings. */
struct sl_queue_map {
        struct sl_queue_request *request;
        _Atomic uint32_t *cancels; /* [depth]: submission index + 1 of the request with this tag that is to be cancelled; 0: none */
        struct sl_entry *entries;
        struct sl_descriptor *descriptors; /* [depth][tensors] */
        struct sl_queue_response *response;
        struct sl_output *outputs;              /* [depth][tensors] */
        struct sl_descriptor *wide_descriptors; /* [SL_WIDE_SLOTS][SL_TENSORS_MAX] */
        struct sl_output *wide_outputs;
        uint32_t depth, mask, tensors;
};

/* Whether a request with this tag may have @n tensors. */
static inline int sl_tag_has_room(const struct sl_queue_map *map, uint32_t tag, uint32_t n)
{
        return n <= map->tensors || (n <= SL_TENSORS_MAX && tag < SL_WIDE_SLOTS);
}

/* Where they lie, for which there is room. */
static inline struct sl_descriptor *sl_descriptors_of(const struct sl_queue_map *map, uint32_t tag, uint32_t n)
{
        return n <= map->tensors ? &map->descriptors[(size_t)tag * map->tensors]
                                 : &map->wide_descriptors[(size_t)tag * SL_TENSORS_MAX];
}

static inline struct sl_output *sl_outputs_of(const struct sl_queue_map *map, uint32_t tag, uint32_t n)
{
        return n <= map->tensors ? &map->outputs[(size_t)tag * map->tensors] : &map->wide_outputs[(size_t)tag * SL_TENSORS_MAX];
}

/* @queue is below shape->n_queues; the mappings have the sizes that sl_channel_offsets() says. */
void sl_queue_map(struct sl_queue_map *ret_map, const struct sl_channel_shape *shape, const struct sl_channel_offsets *offsets,
        uint32_t queue, void *request, void *response);

/* ---- catalogue: written by the runtime's control thread, read by all clients ----------------------------------------- */

#define SL_CATALOGUE_MODELS       4096u
#define SL_CATALOGUE_NAMES        (2 * SL_CATALOGUE_MODELS) /* slots of the index of names: a power of two */
#define SL_CATALOGUE_PARTS_BYTES  (64u << 20)               /* for the inputs, outputs and texts of all models together */
#define SL_MODEL_NAME_BYTES       1152u                     /* of SL_NAME_MAX, then ":VERSION", then "[SIZES]", terminated */
#define SL_MODEL_TENSORS_MAX      SL_TENSORS_MAX            /* inputs and outputs of a model together */
#define SL_CATALOGUE_REASON_BYTES 384u

enum sl_model_state {
        SL_MODEL_ABSENT,
        SL_MODEL_LOADING,
        SL_MODEL_READY,
        SL_MODEL_DRAINING,
        SL_MODEL_FAILED,
        SL_MODEL_AVAILABLE, /* it is loaded on request; with its inputs and outputs when it has been loaded before, else an OPEN
                               asks */
        SL_MODEL_STANDBY,   /* the same, with its inputs and outputs: its plan is loaded, and its workers start on request */
};

struct sl_catalogue_port {
        uint32_t name; /* where it begins in the texts of the model, terminated there */
        uint8_t dtype, rank, batch_axis;
        uint8_t optional; /* 1: of an input that a request may leave out; its descriptor is then 0. They are the last */
        int32_t dims[SL_WIRE_RANK_MAX]; /* -1 at the batch axis, and what is not known; of rank 0, in the first: nor is the rank */
        uint32_t labels;                /* where they begin in the texts, as one text (base/labels.h); 0: it has none */
        uint32_t reserved;              /* 0 */
};
static_assert(sizeof(struct sl_catalogue_port) == 48, "");

/*
 * One model. A sequence lock, see seqlock.h: @seq is odd while the control thread changes the rest, its part included; clients copy
 * and try again. A part belongs to one model at a time: its inputs, its outputs, then their texts.
 */
struct sl_catalogue_model {
        alignas(128) _Atomic uint32_t seq;
        uint32_t state;           /* enum sl_model_state */
        uint32_t generation;      /* grows when inputs or outputs change: older handles get -ESTALE */
        uint32_t flags;           /* SL_MODEL_ENSEMBLE */
        int64_t version;          /* number of the version folder; 0 for an ensemble */
        uint32_t segment_samples; /* N */
        uint32_t samples_max;     /* of one request */
        uint32_t n_inputs, n_outputs;
        uint32_t part, part_bytes; /* in @parts, multiples of 8 */
        char name[SL_MODEL_NAME_BYTES];
        char reason[SL_CATALOGUE_REASON_BYTES]; /* of FAILED why; of LOADING what it waits for; of AVAILABLE why who asked last
                                                   waited in vain; terminated */
};
static_assert(offsetof(struct sl_catalogue_model, part) == 40, "");
static_assert(offsetof(struct sl_catalogue_model, name) == 48, "");
static_assert(SL_MODEL_NAME_BYTES > SL_NAME_MAX + SL_VERSION_TEXT_MAX + SL_SIZES_TEXT_MAX, "every name that is served fits");
enum {
        SL_MODEL_ENSEMBLE = 1 << 0,
        SL_MODEL_BATCHABLE = 1 << 1,
        SL_MODEL_SHORTENED = 1 << 2,  /* a request that gives none of the optional inputs has no descriptors for them */
        SL_MODEL_ON_REQUEST = 1 << 3, /* it is loaded when somebody opens it, or asks it something */
};

/*
 * What a dispatcher says to all of its clients at once: whether it sleeps, and whether it helps to spin for an answer. Written by
 * the dispatcher alone and only when it changes, so that a client which reads it at every submit has the line in its cache. See
 * doorbell.h.
 */
struct sl_dispatcher_line {
        alignas(128) _Atomic uint32_t sleeping; /* 0 or 1 */
        _Atomic uint32_t cores;                 /* that the threads of the runtime and of its clients share; 0: not known */
        _Atomic uint32_t wanted;                /* threads that would run at once if all clients that wait spun */
        _Atomic uint32_t late_ns;               /* how long the dispatcher waits for a core, of late, when it has work */
        _Atomic uint32_t computing;             /* workers that have jobs, or 1 where one had of late */
        _Atomic uint32_t core;                  /* 1 + the only core that the dispatcher runs on; 0: it has several */
};
static_assert(sizeof(struct sl_dispatcher_line) == 128, "one pair of lines");
static_assert(offsetof(struct sl_dispatcher_line, cores) == 4, "");
static_assert(offsetof(struct sl_dispatcher_line, wanted) == 8, "");
static_assert(offsetof(struct sl_dispatcher_line, late_ns) == 12, "");
static_assert(offsetof(struct sl_dispatcher_line, computing) == 16, "");
static_assert(offsetof(struct sl_dispatcher_line, core) == 20, "");

/*
 * The file is sparse: what no model has ever needed takes no memory. Models lie at the lowest index that is free, and their parts
 * at the lowest place. Whoever walks over them stops at `n_models`: looking at a page of a hole makes it one.
 */
struct sl_catalogue {
        alignas(128) uint64_t magic;
        uint32_t version;
        uint32_t pid;        /* of the runtime, in its own PID namespace */
        uint64_t started_ns; /* CLOCK_MONOTONIC */
        char runtime_name[64];
        alignas(128) _Atomic uint32_t changes; /* counts changes of any model; a hint for listings */
        _Atomic uint32_t n_models;             /* no model has ever been at this index or behind it: nobody touches those pages */
        struct sl_dispatcher_line dispatchers[SL_DISPATCHERS_MAX];
        alignas(128) _Atomic uint32_t names_seq;    /* of the index: odd while one of its slots moves */
        _Atomic uint32_t names[SL_CATALOGUE_NAMES]; /* of each model that is there, by the hash of its name: catalogue.c; 0: free */
        struct sl_catalogue_model models[SL_CATALOGUE_MODELS];
        alignas(128) unsigned char parts[SL_CATALOGUE_PARTS_BYTES];
};
