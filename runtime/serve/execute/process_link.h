/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off
 *
 * What the runtime and a worker process share. Two segments, each with one writer: the *order*, which the worker maps read-only, and
 * the *reply*, of which the runtime believes nothing that it has not checked. Neither holds an address.
 *
 *   (X1) runtime: job filled, then store-seq_cst given.
 *   (X2) worker:  load-acquire given, then read the job.                                    pairs with X1
 *   (Y1) worker:  predictions, faults and the answer written, then store-seq_cst answered.
 *   (Y2) runtime: load-acquire answered, then copy all of it.                               pairs with Y1
 *   (Z1) worker:  packets taken from the socket, then store-seq_cst heard.
 *   (Z2) runtime: load-acquire heard, then try to send what found no room.                  pairs with Z1
 *
 *   (A1) worker:  wanted_bytes written, then store-seq_cst asks; sleeps on asks_answered.
 *   (A2) runtime: load-seq_cst asks, then read wanted_bytes.                                pairs with A1
 *   (B1) runtime: granted_bytes and left_bytes written, then store-release asks_answered; wakes it.
 *   (B2) worker:  load-acquire asks_answered, then read them.                               pairs with B1
 *
 * While it computes a job a worker asks in this way for the memory that data-dependent steps lack (growth.h).
 *
 * A job lies in a slot, which is used again when all of its pieces have been answered; jobs on a GPU are in any order. A ring says
 * in which slots the jobs that are given lie, and the ring of answers has room for those of all jobs, so that neither side ever
 * waits for room. Who has nothing to do sleeps (shm/doorbell.h has the same protocol):
 *
 *   worker:   load rung; store-seq_cst sleeping = 1; packets; load-seq_cst given; futex wait on rung.
 *   runtime, behind X1 and packets that found no room: load-seq_cst sleeping; add 1 to rung; futex wake.
 *
 *   runtime:  store-seq_cst listening = 1; load-seq_cst answered, heard, resting, asks; wait for the descriptor.
 *   worker, behind Y1, Z1, A1 and resting: load-seq_cst listening; write to it.
 *
 * Beside them goes a socket of packets: the runtime says which regions to map, with a descriptor to read from, and which to forget;
 * the worker says once that it is ready, or why it cannot be. With the first packet to a worker on a GPU may come what is known of
 * its plan there (gpu_choices.h), and before it says that it is ready it may hand over what it has found out. A job says how many
 * regions have been sent before it, and is looked at
 * when as many have come. A packet that finds no room waits, and the job with it, and nobody else. The end of the
 * socket is the end of either process.
 *
 * All workers on one GPU are in one process (gpu_host.h). It has a socket of its own, by which each worker's descriptors come to it;
 * what goes between a worker and the runtime is as above, and the end of a worker's socket is the end of that worker.
 */
/* clang-format on */
#pragma once

#include "executor.h"
#include "gpu_figures.h"
#include "gpu_part.h"
#include "gpu_tuning.h"
#include "job.h"

#include <sched.h>
#include <stdalign.h>

/* The worker's descriptors. */
#define SL_PROCESS_COMMAND     "worker" /* the first argument of its program */
#define SL_PROCESS_SOCKET_FD   3
#define SL_PROCESS_ORDER_FD    4
#define SL_PROCESS_REPLY_FD    5
#define SL_PROCESS_VERDICTS_FD 6
#define SL_PROCESS_WAKE_FD     7 /* eventfd, to write to */
#define SL_PROCESS_PLAN_FD     8
#define SL_PROCESS_BASE_FD     9 /* where the plan has a base */

/* The process of a GPU, whose number is the second argument: its descriptor, by which such a packet brings each worker's. */
#define SL_PROCESS_GPU_COMMAND "gpu"
#define SL_PROCESS_GPU_FD      3

enum { SL_ATTACH_SOCKET, SL_ATTACH_ORDER, SL_ATTACH_REPLY, SL_ATTACH_VERDICTS, SL_ATTACH_WAKE, SL_ATTACH_PLAN, SL_ATTACH_BASE };
#define SL_ATTACH_FDS_MAX 7 /* without a base: one less; the socket alone: to be told whether the GPU can be used */

struct sl_process_attach {
        uint32_t n_fds;
};

#define SL_PROCESS_ANSWERS (SL_EXECUTOR_SLOTS_MAX * SL_JOB_PIECES_MAX)
_Static_assert((SL_PROCESS_ANSWERS & (SL_PROCESS_ANSWERS - 1)) == 0, "indices wrap with the ring");

/*
 * Of a piece whose segment may be combined where it is computed (runtime/cuda/gpu_accumulator.h): every member of its ensemble has
 * its workers in this process, and nothing of the segment has been answered.
 */
struct sl_process_gather {
        uint32_t segment_samples; /* 0: it may not */
        uint16_t n_members;
        uint16_t rule; /* enum sl_rule */
        float weight;  /* of the piece's member, for WEIGHTED_MEAN */
};

struct sl_process_job {
        uint32_t maps; /* MAP packets sent before it */
        struct sl_process_gather gathers[SL_JOB_PIECES_MAX];
        struct sl_job job;
};

struct sl_process_order {
        alignas(SL_LINE_PAIR_BYTES) _Atomic uint32_t given; /* jobs, ever */
        _Atomic uint32_t rung;                              /* the futex word */
        _Atomic int32_t called;                             /* J1 of warm_up.h */
        uint8_t slots[SL_EXECUTOR_SLOTS_MAX];               /* of the jobs given, in this order, as a ring */
        alignas(SL_LINE_PAIR_BYTES) _Atomic uint32_t listening;
        alignas(SL_LINE_PAIR_BYTES) _Atomic uint32_t asks_answered; /* futex word */
        _Atomic uint64_t granted_bytes, left_bytes, max_bytes;
        alignas(SL_LINE_PAIR_BYTES) unsigned char jobs[]; /* [jobs_max of the executor], each of sl_process_job_bytes() */
};

struct sl_process_reply {
        alignas(SL_LINE_PAIR_BYTES) _Atomic uint32_t sleeping;
        _Atomic uint32_t begun;   /* jobs, ever, that it has looked at */
        _Atomic uint32_t heard;   /* packets, ever */
        _Atomic uint32_t resting; /* jobs that are computed and wait for other members; a hint, which orders nothing */
        _Atomic uint32_t asks;    /* ever */
        _Atomic uint64_t wanted_bytes, used_bytes;
        alignas(SL_LINE_PAIR_BYTES) _Atomic uint32_t answered; /* pieces, ever */
        alignas(SL_LINE_BYTES) struct sl_prediction answers[SL_PROCESS_ANSWERS];
        struct sl_fault faults[SL_EXECUTOR_SLOTS_MAX][SL_JOB_PIECES_MAX];
        alignas(SL_LINE_PAIR_BYTES) unsigned char parts[]; /* sl_process_reply_made(); then the staging (process_staging.h) */
};

/* [outputs], of one of the first SL_JOB_ALIKE_MAX pieces of the slot's job: what it has made of those of unknown size. */
static inline struct sl_made_output *sl_process_reply_made(
        struct sl_process_reply *reply, uint32_t n_outputs, uint32_t slot, uint32_t piece)
{
        return (struct sl_made_output *)reply->parts + ((size_t)slot * SL_JOB_ALIKE_MAX + piece) * n_outputs;
}

static inline uint64_t sl_process_job_bytes(uint32_t n_inputs, uint32_t n_outputs)
{
        return sl_align_up(offsetof(struct sl_process_job, job) + sl_job_bytes(n_inputs, n_outputs), SL_LINE_PAIR_BYTES);
}

static inline struct sl_process_job *sl_process_order_job(
        const struct sl_process_order *order, const struct sl_job *like, uint32_t slot)
{
        return (struct sl_process_job *)(order->jobs + slot * sl_process_job_bytes(like->n_inputs, like->n_outputs));
}

enum sl_process_packet_kind {
        SL_PROCESS_START,  /* to the worker, once and first: struct sl_process_start */
        SL_PROCESS_MAP,    /* to the worker, with a descriptor: the region has these bytes */
        SL_PROCESS_FORGET, /* to the worker: nothing will name the region any more */
        SL_PROCESS_READY,  /* to the runtime, once: status, and what the first sample took */
        SL_PROCESS_LOST,   /* to the runtime, once and last: its GPU is lost, the text says how */
        /*
         * To the runtime, once, before READY, of a worker on a GPU: what it has found out about its plan, as a sealed memory file;
         * without a descriptor nothing. The text says why what it was handed was of no use; "" else.
         */
        SL_PROCESS_CHOICES,
};

struct sl_process_packet {
        uint32_t kind; /* enum sl_process_packet_kind */
        uint32_t region;
        uint64_t bytes;
        uint64_t first_ns;
        int32_t status;
        uint32_t writable;          /* of MAP: predictions may be written there */
        uint32_t lacks_sandbox;     /* of READY: the host has not all that it closes with; the text says what */
        uint32_t n_gpus;            /* of READY, to who asked whether a GPU can be used: there are so many; 0: that is not known */
        struct sl_cuda_figures gpu; /* the same: what it is; zeros: that is not known */
        char text[SL_FAULT_BYTES];
};

/* Both are one build of one program: it is asked for by /proc/self/exe. */
struct sl_process_start {
        uint32_t kind;
        uint32_t batch_max;
        uint32_t n_regions;              /* numbers; that of the staging is the next one */
        uint32_t has_base;               /* there is a base plan */
        uint32_t background;             /* something is served meanwhile: the start gives way to it */
        uint32_t fake;                   /* predictions are zeros: job_runner.h */
        uint32_t gpu_words;              /* on a GPU: the end of a launch is written by the device */
        struct sl_gpu_tuning gpu_tuning; /* the same: what is timed */
        int32_t parent;                  /* process id of the runtime */
        struct sl_gpu_part gpu_part;     /* on a GPU: what of it */
        uint64_t order_bytes, reply_bytes, verdicts_bytes;
        uint64_t memory_bytes; /* that its instance and its pool take */
        uint64_t spin_ns, warmup_ns;
        cpu_set_t cpus; /* empty: not pinned */
};
