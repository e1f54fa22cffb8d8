/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What whoever computes is given, and what it answers: jobs of pieces of segments, predictions. Nothing here says whose request it
 * is, why it is computed now, or what is done with it afterwards; and nothing here is an address, so that a job can lie in memory
 * that another process maps.
 *
 * Owner: whoever gives out work (the dispatcher). It fills all of a job before it gives it, and leaves it alone until the last
 * answer. In between, sl_job_made() and `faults` are those of who computes, and one word of each piece changes, which lies outside
 * of the job, with its segment:
 *
 *   (V1) who gives it out: store-release the verdict, at any time, once.
 *   (V2) who computes:     load-acquire it before it computes, between steps, and before it combines.    pairs with V1
 */
#pragma once

#include "base/bytes.h"
#include "fault.h"
#include "layout.h"
#include "regions.h"

#include <stdbool.h>
#include <stdint.h>

/* At most so many requests share a batch. */
#define SL_JOB_PIECES_MAX 128

/* And so many the batch of a plan whose outputs say only afterwards how large they are. */
#define SL_JOB_ALIKE_MAX 32

/* Consecutive samples of a segment, for one of its members. */
struct sl_piece {
        uint32_t segment;     /* id in the accumulator */
        uint32_t member;      /* which member of the segment's ensemble the model is */
        uint32_t first;       /* of the segment's samples */
        uint32_t samples;     /* 1 or more */
        uint32_t start;       /* its first sample, of the request */
        uint64_t origin;      /* of the request's random numbers (kernels/draw.h) */
        uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
        uint32_t reruns;      /* processes that have died while they computed it */
        uint32_t losses;      /* and all that have had it */
        uint32_t rows;        /* of a plan of any size: the size of the leading dimension, by which pieces are gathered; 0: they are
                                 not */
        uint64_t units;       /* of its size, by which service times are learned; 0: they are by samples */
};

/*
 * An output whose shape depends on the data. The capacity is there before the job is given; who makes the output writes the rest
 * before its answer. Or an input of a model of any size, with the shape that the request says. Such a job has one piece, or
 * SL_JOB_ALIKE_MAX of one shape but for their rows.
 */
struct sl_made_output {
        uint64_t capacity_bytes, bytes;
        uint32_t dims[SL_WIRE_RANK_MAX];
        uint32_t rank;
};

/*
 * Pieces of segments of one model. Several pieces fit one batch together, one may take several batches; the whole is expected to
 * fit the model's slice of time, unless it is a single sample.
 */
struct sl_job {
        uint32_t n_pieces;
        uint32_t n_inputs, n_outputs; /* of the model */
        uint32_t priority;
        bool is_light; /* expected to take no longer than a thread takes to wake: ready_queue.h */
        struct sl_piece pieces[SL_JOB_PIECES_MAX];
        struct sl_fault faults[SL_JOB_PIECES_MAX]; /* why a piece failed, where its answer says so */
        struct sl_place places[]; /* [piece][inputs, then outputs]: of the piece's first sample; then sl_job_given(),
                                     sl_job_made() */
};

/* Of a model with so many inputs and outputs. */
static inline size_t sl_job_bytes(uint32_t n_inputs, uint32_t n_outputs)
{
        return sizeof(struct sl_job) + (size_t)SL_JOB_PIECES_MAX * (n_inputs + n_outputs) * sizeof(struct sl_place) +
               ((size_t)SL_JOB_ALIKE_MAX * n_outputs + n_inputs) * sizeof(struct sl_made_output);
}

static inline struct sl_place *sl_job_inputs(struct sl_job *job, uint32_t piece)
{
        return job->places + (size_t)piece * (job->n_inputs + job->n_outputs);
}

static inline struct sl_place *sl_job_outputs(struct sl_job *job, uint32_t piece)
{
        return sl_job_inputs(job, piece) + job->n_inputs;
}

/* [inputs], of the first piece. */
static inline struct sl_made_output *sl_job_given(const struct sl_job *job)
{
        return (struct sl_made_output *)(job->places + (size_t)SL_JOB_PIECES_MAX * (job->n_inputs + job->n_outputs));
}

/* [outputs], of one of the first SL_JOB_ALIKE_MAX pieces. */
static inline struct sl_made_output *sl_job_made(const struct sl_job *job, uint32_t piece)
{
        return sl_job_given(job) + job->n_inputs + (size_t)piece * job->n_outputs;
}

/* Where room for the piece's output @output begins, when all pieces have as much as they say, one behind the other. */
static inline uint64_t sl_job_room(const struct sl_job *job, uint32_t piece, uint32_t output)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < piece; i++)
                bytes += sl_align_up(sl_job_made(job, i)[output].capacity_bytes, SL_LINE_BYTES);
        return bytes;
}

/* Not begun; begun; given up by the dispatcher, since it takes longer than the dispatcher may be away; given up in the background,
 * for a job of those who wait. */
enum { SL_LOST_WAITING = 1, SL_LOST_COMPUTING, SL_LOST_LONG, SL_LOST_YIELDED };

/*
 * The answer to one piece: {segment, model, prediction} of the ensemble paper, section II.C.2. The prediction itself lies in its
 * place.
 */
struct sl_prediction {
        uint32_t piece;        /* of its job */
        int32_t status;        /* 0; -ETIME, -ECANCELED: not computed; -EIO, -ERANGE, -E2BIG: the model failed */
        uint8_t explained : 1; /* the job has words for why it failed */
        uint8_t combined : 1;  /* with those of the other members, where they were computed: member 0's place has the result, theirs
                                  have nothing */
        uint8_t lost;          /* SL_LOST_*: who had it has no result, as its process is gone, and has not delivered it; else 0 */
        uint8_t lane;          /* of a carrier: whose it is (carrier.h) */
        uint8_t slot;          /* of its job: the oldest one's, but of executors whose jobs end in any order */
        uint32_t batches;      /* launches that this answer accounts for */
        uint64_t started_ns;   /* the batch began to compute; 0 if it never did */
        uint64_t staged_ns;    /* the prediction was in its place */
        uint64_t combined_ns;  /* the combined result was stored; 0 unless this piece came last */
        uint64_t busy_ns;      /* the time for this answer's share of the job */
        uint64_t computing_ns; /* of it, inside the network */
        uint32_t samples;      /* computed */
        uint32_t job_samples;  /* of the whole job, which took busy_ns; 0 unless this answer accounts for it */
};
_Static_assert(sizeof(struct sl_prediction) == 64, "one line");
