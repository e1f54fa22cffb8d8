/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be served under one name: a model or an ensemble of models. Plain values; strings and arrays belong to whoever
 * made the spec.
 */
#pragma once

#include "batching.h"
#include "combining.h"
#include "gpu_let.h"
#include "lower_options.h"
#include "rule.h"
#include "worker_options.h"
#include "worker_set.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_PREPARED_MAX 8

enum sl_sharing { SL_SHARING_NEVER, SL_SHARING_AUTO };

struct sl_model_spec {
        const char *name; /* as clients open it: "lenet", "lenet:2", "digits" */
        int64_t version;  /* 0 for an ensemble */

        /* Why it cannot be served as it is now, and then nothing below counts: what serves under this name goes on. NULL: it can.
         */
        const char *refused;

        /* A model: */
        bool on_request;          /* it is loaded when somebody asks for it; else at once */
        bool standby;             /* of those: its plan is loaded at once, and stays: after either time only its workers leave */
        bool plan_first;          /* of those: its plan is loaded once before anybody asks, for its inputs and outputs; it may go */
        uint64_t idle_unload_ns;  /* and unloaded when nobody has for so long; 0: when it has to make room */
        uint64_t idle_standby_ns; /* and without workers when nobody has for so long; 0: as `idle_unload_ns`, unless `standby` */
        const char *path;         /* .../lenet/1/model.onnx; NULL for an ensemble */
        uint64_t stamp;           /* changes when the file or its configuration does: reload compares it */
        struct sl_lower_options lowering;
        uint64_t batch_bytes_max; /* of a worker's workspace and pool: batches are no larger; 0: lowering.batch_max was asked for */
        struct sl_worker_set workers;
        bool workers_free;               /* nobody has said how many: a plan of any size has one for each core (actual/sizes.c) */
        struct sl_worker_options worker; /* more of each of them */
        uint64_t slice_ns;               /* a job takes no longer, unless it is a single sample */
        struct sl_batching batching;     /* which idle worker takes how many samples when */
        enum sl_sharing fuse;            /* whether it shares workers with others of its architecture (dispatch/bundle.h) */
        uint64_t fuse_circle;            /* and with which: those that have the same; 0: any that have that */
        bool on_gpu;                     /* its workers are in processes of GPUs: those that `workers` says */
        uint32_t n_prepared;             /* combinations of sizes that are ready before anybody asks */
        const struct sl_dim_sizes *prepared; /* [n_prepared]; at most SL_PREPARED_MAX */
        bool prepared_known; /* names in them that are no open dimension of the model are mistakes, not other models' */
        uint32_t shapes_max; /* sizes of open dimensions that are served at a time; 1 to SL_SHAPES_MAX */
        bool sized;          /* of sizes that a request asked for: nothing of it is open any more */

        /* An ensemble: */
        const char *const *members; /* names of models */
        uint32_t n_members;
        enum sl_rule rule;
        const float *weights;                 /* n_members, of WEIGHTED_MEAN and rules of boxes; else NULL */
        const struct sl_combining *combining; /* more of the rule; NULL: there is none */

        /* Both: */
        uint32_t segment_samples; /* N; at least the largest batch_max */
        uint32_t samples_max;     /* of one request; SL_SERVED_SAMPLES_MAX at most */
        uint32_t queue_requests;  /* accepted and not completed; beyond: places.h */
};
