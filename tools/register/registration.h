/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling register` knows of a task: its networks, and the candidates that are made of them. Plain values; one owner.
 */
#pragma once

#include "adapter.h"
#include "lower_options.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define REGISTER_NETWORKS_MAX 64u
#define REGISTER_KINDS_MAX    8u
#define REGISTER_CANDIDATES   (REGISTER_NETWORKS_MAX * REGISTER_KINDS_MAX)
#define REGISTER_POINTS_MAX   64u /* batches by sizes of teams */
#define REGISTER_NAME_BYTES   256u
#define REGISTER_HASH_BYTES   33u
#define REGISTER_REASON_BYTES 512u
#define REGISTER_SAMPLES_MAX  (1u << 20)

/* What is made of each network: fp32, int8, bf16, or float32 with weights in halves. */
struct registered_kind {
        char name[16]; /* "int8" */
        enum sl_precision precision;
        enum sl_weights weights;
};

/* One measured batch of one worker. */
struct registered_point {
        uint32_t batch, threads;
        double latency_ns, samples_per_second;
};

enum registered_state {
        REGISTERED_NOT_YET, /* the budget was over before it was made */
        REGISTERED_MADE,    /* its accuracy is known */
        REGISTERED_USELESS, /* it would be another candidate's equal, or cannot be made: `reason` */
};

struct registered {
        char name[REGISTER_NAME_BYTES]; /* in the repository: NETWORK-KIND */
        uint32_t network, kind;
        enum registered_state state;
        char reason[REGISTER_REASON_BYTES]; /* why it is no variant, "" if it is one */
        char key[REGISTER_HASH_BYTES];      /* of all that its accuracy follows from */
        char hash[REGISTER_HASH_BYTES];     /* of its file */
        char adapter[SL_ADAPTER_TEXT];
        char origin[16]; /* measured, agreement, derived */
        uint64_t samples, right;
        double accuracy, low, high; /* and the 95 % interval */
        double weights_bytes;
        uint32_t n_points;
        struct registered_point points[REGISTER_POINTS_MAX];
};

struct registered_network {
        char name[REGISTER_NAME_BYTES], path[PATH_MAX];
        char hash[REGISTER_HASH_BYTES];
        bool external; /* it may have external data */
        const float *scale, *offset;
        uint32_t n_scale, n_offset;
        double published; /* 0: no accuracy of it was published */
        int32_t *classes; /* what it says in float32 of each sample; NULL: not known yet; owned */
};

struct registration {
        const char *task;
        char repository[PATH_MAX], work[PATH_MAX]; /* its folder, and that in which things are made */
        uint32_t n_networks, n_kinds, n;
        struct registered_network *networks;
        struct registered_kind kinds[REGISTER_KINDS_MAX];
        struct registered *candidates; /* [n], kind by kind, in each the networks */
        uint64_t calibration;          /* samples that are not measured on, the first ones */
        uint64_t count;                /* of all */
        char data_hash[REGISTER_HASH_BYTES], labels_hash[REGISTER_HASH_BYTES]; /* "": no labels */
        uint32_t reference; /* the network that is agreed with where there are none */
};

static inline const struct registered_point *registered_point_of(
        const struct registered *candidate, uint32_t batch, uint32_t threads)
{
        for (uint32_t i = 0; i < candidate->n_points; i++)
                if (candidate->points[i].batch == batch && candidate->points[i].threads == threads)
                        return &candidate->points[i];
        return (const struct registered_point *)0;
}
