/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What whoever computes is given, and what it answers: the work of a request, jobs of segments of it, predictions. Nothing here
 * says whose request it is, why it is computed now, or what is done with it afterwards.
 *
 * Owner: whoever gives out work (the dispatcher). It fills all of it before the first job that names it, and leaves it and what it
 * points to alone until the last answer. In between, what `made` and `fault` point to is the worker's, and one word changes:
 *
 *   (V1) who gives it out: store-release the verdict, at any time, once.
 *   (V2) who computes:     load-acquire it before it computes, between steps, and before it combines.    pairs with V1
 */
#pragma once

#include "layout.h"

#include <stdatomic.h>
#include <stdint.h>

struct sl_assembly;
struct sl_fault;

/*
 * An output whose shape hangs on the data. The capacity is there before the first job; the worker that makes the output writes
 * the rest before its message.
 */
struct sl_made_output {
        uint64_t capacity_bytes, bytes;
        uint32_t dims[SL_WIRE_RANK_MAX];
        uint32_t rank;
};

/* A request as it looks to those who compute it. */
struct sl_work {
        const struct sl_assembly *assembly;
        void **inputs, **outputs;    /* where they lie, in the runtime's mapping of the client's arena */
        struct sl_made_output *made; /* of each output */
        struct sl_fault *fault;      /* where the words go when it fails */
        uint64_t deadline_ns;        /* CLOCK_MONOTONIC; 0: none */
        _Atomic int32_t verdict;     /* 0, or the -errno that ends it early: a hint to skip work */
};

/* V2. */
static inline int32_t sl_work_verdict(const struct sl_work *work)
{
        return atomic_load_explicit(&work->verdict, memory_order_acquire);
}

/*
 * Dispatcher -> worker: segments of one model to predict. Several segments fit one batch together, one may take several batches;
 * the whole is expected to fit the model's slice of time, unless it is a single sample.
 */
#define SL_JOB_SEGMENTS_MAX 31

enum sl_job_kind { SL_JOB_PREDICT, SL_JOB_SHUT_DOWN };

struct sl_job {
        uint32_t kind; /* enum sl_job_kind */
        uint32_t n_segments;
        struct {
                uint32_t segment; /* id in the accumulator, which has its work, its first sample, and how many */
                uint32_t member;  /* which member of that segment's ensemble the model is */
        } items[SL_JOB_SEGMENTS_MAX];
};
_Static_assert(sizeof(struct sl_job) == 256, "four lines");

/*
 * Worker -> dispatcher: {segment, model, prediction} of the ensemble paper, section II.C.2. The prediction itself lies in
 * the segment's staging. Negative segments are the paper's special messages.
 */
enum { SL_PREDICTION_NO_MEMORY = -1, SL_PREDICTION_READY = -2 };

struct sl_prediction {
        int32_t segment; /* id, or a special message */
        uint32_t member;
        int32_t status;        /* 0; -ETIME, -ECANCELED: not computed; -EIO, -ERANGE, -E2BIG: the model failed */
        uint32_t batches;      /* launches that this message accounts for */
        uint64_t started_ns;   /* the batch began to compute; 0 if it never did */
        uint64_t staged_ns;    /* this member's prediction was in its place */
        uint64_t combined_ns;  /* the combined result was stored; 0 unless this member came last */
        uint64_t busy_ns;      /* the worker's time for this message's share of the job */
        uint64_t computing_ns; /* of it, inside the network */
        uint32_t samples;
        uint32_t job_samples; /* of the whole job, which took busy_ns; 0 unless this message accounts for it */
};
_Static_assert(sizeof(struct sl_prediction) == 64, "one line");
