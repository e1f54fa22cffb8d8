/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What travels through the mailboxes between the runtime's threads.
 */
#pragma once

#include "base/dim_sizes.h"
#include "fault.h"

#include <stdint.h>

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
                uint32_t segment; /* id in the accumulator */
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

/* Control <-> dispatcher. */
enum sl_command_kind {
        SL_COMMAND_ADD_CHANNEL,    /* pointer: struct sl_channel */
        SL_COMMAND_REMOVE_CHANNEL, /* ends its requests; answered by CHANNEL_GONE */
        SL_COMMAND_SERVE,          /* pointer: struct sl_ensemble, in the place of its index; the old one retires */
        SL_COMMAND_WITHDRAW,       /* index: what is served there retires */
        SL_COMMAND_ADD_MODEL,      /* pointer: struct sl_model, whose workers are ready */
        SL_COMMAND_REMOVE_MODEL,   /* no ensemble uses it; answered by MODEL_GONE */
        SL_COMMAND_SHAPE_FAILED,   /* index: of the open ensemble; its sizes cannot be served, status says why */
        SL_COMMAND_CLOSE,          /* refuse all new requests; answered by DRAINED when none is in flight */
        SL_COMMAND_CANCEL_ALL,     /* end what is in flight as cancelled */
        SL_COMMAND_PROBE,          /* answered by ALIVE */
        SL_COMMAND_QUIT,           /* the dispatcher thread returns */
};

struct sl_command {
        uint32_t kind; /* enum sl_command_kind */
        uint32_t index;
        void *pointer;
        int32_t status;
        uint32_t keep; /* of SHAPE_FAILED: the next request for these sizes ends so too */
        int64_t sizes[SL_SYMBOLS_MAX];
        char why[SL_FAULT_BYTES]; /* of SHAPE_FAILED */
};

enum sl_event_kind {
        SL_EVENT_CHANNEL_GONE,     /* nothing of it is in use any more */
        SL_EVENT_CHANNEL_BROKEN,   /* it broke the protocol: status and text say how; remove it */
        SL_EVENT_ENSEMBLE_RETIRED, /* nothing of it is in flight any more */
        SL_EVENT_MODEL_GONE,
        SL_EVENT_SHAPE_WANTED,   /* pointer: struct sl_ensemble, open; answered by SERVE or SHAPE_FAILED */
        SL_EVENT_SHAPE_UNWANTED, /* pointer: struct sl_ensemble, of these sizes, which made room for others */
        SL_EVENT_DRAINED,
        SL_EVENT_ALIVE, /* the dispatcher has seen a PROBE */
};

struct sl_event {
        uint32_t kind;
        int32_t status;
        void *pointer;
        uint32_t uid; /* of SHAPE_WANTED: whose request it was */
        char text[112];
        int64_t sizes[SL_SYMBOLS_MAX];
};
