/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off
 *
 * A worker of a model on a GPU: a stream on a let, a workspace, and a captured graph for each batch size up to its largest. Jobs
 * are cut into launches, of which several are on their way at once:
 *
 *     pool's stream      | copy samples to slots |
 *     worker's stream              | wait | graph: slots -> steps -> results | record |
 *     stream of results                                              | wait | copy to the client | done word | record |
 *
 * Results go straight to where the job says, memory of the device (gpu_accumulator.h) or of the host, if the device reaches that memory (host_region.h), else by way of pinned memory of the
 * worker. A stream waits only for events of other streams, never for anything that a client can write. The host sees a launch end
 * by its event, or by a word that the device writes behind its copies (D1, D2), with a look at the event now and then: a stream
 * that has failed writes nothing.
 *
 *   (D1) device: results copied, then the number of the launch written to its slot's word, in the order of the stream.
 *   (D2) host:   load-acquire the word, then read the results.                                    pairs with D1
 *
 * One thread, with the device's context.
 */
/* clang-format on */
#pragma once

#include "gpu_program.h"
#include "green.h"
#include "job_cuts.h"

#include <stdbool.h>

struct sl_gpu_worker;

struct sl_gpu_worker_options {
        struct sl_gpu_program *program; /* which it holds */
        const struct sl_greens *greens;
        struct sl_green *green; /* the let; NULL: the whole device. Ends after it */
        uint32_t priority;      /* 0: the lowest */
        struct sl_cuda_chooser *chooser; /* by which its kernels are made; NULL: each is the first candidate */
        uint32_t batch_max;     /* a size of the plan's ladder */
        uint32_t n_slots;       /* launches on their way, 2 or more: flight.h has the bound */
        bool writes_done;       /* completions by the device, where it says that it can: else by events */
};

/* Load time. Return: 0; -ENOMEM one line; -EINVAL; what the backend and sl_cuda_errno() say. */
int sl_gpu_worker_new(const struct sl_gpu_worker_options *options, struct sl_gpu_worker **ret_worker, struct sl_error *error);

/* Waits for what is on its way. NULL is fine. Returns NULL. */
struct sl_gpu_worker *sl_gpu_worker_free(struct sl_gpu_worker *worker);

/* Device memory that it has for itself. */
uint64_t sl_gpu_worker_bytes(const struct sl_gpu_worker *worker);

/* Where samples of one request, or of a part of it, lie one behind the other. */
struct sl_gpu_piece {
        const void *const *inputs; /* [n_inputs] */
        void *const *outputs;      /* [n_outputs] */
        bool reached;              /* the device reaches its outputs: host_region.h */
        bool stays;                /* its outputs are memory of the device */
};

/* What it points to stays until it has ended. */
struct sl_gpu_job {
        const struct sl_gpu_piece *pieces;
        const uint32_t *samples; /* of each piece; of a model without a batch: 1 */
        int32_t *statuses;       /* of each piece, for the worker to fill: 0; -ERANGE an index in it is out of bounds */
        uint32_t n_pieces;

        /* the worker's */
        uint32_t total, launched, ended; /* samples */
        struct sl_job_walk walk;         /* to the first that is not launched */
        uint64_t first_ns;               /* CLOCK_MONOTONIC: its first launch; 0: none yet */
        uint32_t launches;
        bool found, alone; /* some index is out of bounds: each piece is computed once more, by itself */
        int status;        /* 0; -EIO */
};

/* A job more, behind those that it has. Return: 0; -EAGAIN it has as many as it has slots; -EIO it is lost. */
int sl_gpu_worker_give(struct sl_gpu_worker *worker, struct sl_gpu_job *job);

/*
 * Goes on: launches what there is room for, and looks what has ended. Return: a job that has ended, with its status, in whatever
 * order they do; NULL: none now.
 */
struct sl_gpu_job *sl_gpu_worker_poll(struct sl_gpu_worker *worker);

/* Jobs that it has. */
uint32_t sl_gpu_worker_jobs(const struct sl_gpu_worker *worker);

/* 0; -EIO: the device, or this process's use of it, is lost; the text says how. */
int sl_gpu_worker_lost(const struct sl_gpu_worker *worker, struct sl_error *error);

/*
 * What the device takes for a launch of @batch, a size that it has, by its own clock: the mean of @n behind each other. For
 * measurements: it has no jobs. Waits. Return: 0; -EINVAL it has no such size; -EBUSY it has jobs; what sl_cuda_errno() says.
 */
int sl_gpu_worker_time(struct sl_gpu_worker *worker, uint32_t batch, uint32_t n, uint64_t *ret_ns, struct sl_error *error);
