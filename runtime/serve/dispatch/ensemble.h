/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is served under one name of the catalogue: one or more models and the rule that combines their predictions. A single
 * model is an ensemble of one without a rule: it writes into the client's outputs. Immutable once the dispatcher has it, but for
 * the part that is the dispatcher's own; a reload makes a new ensemble, and the old one drains.
 */
#pragma once

#include "arrivals.h"
#include "assembly.h"
#include "broadcast_round.h"
#include "layout.h"
#include "port.h"
#include "rule.h"
#include "stats.h"

#include <stdbool.h>
#include <stddef.h>

struct sl_model;
struct sl_places;
struct sl_shapes;

struct sl_ensemble {
        char name[64];
        uint32_t index;      /* in the catalogue */
        uint32_t generation; /* of its inputs and outputs */
        int64_t version;
        struct sl_assembly assembly;              /* of what members make: all that workers see of it */
        struct sl_model *members[SL_MEMBERS_MAX]; /* [assembly.n_members] */
        bool batchable;
        bool open; /* requests say sizes of its model: it has ports, and nothing is run in its name */
        uint32_t segment_samples, samples_max, queue_requests;
        uint32_t n_inputs;
        struct sl_served_port inputs[SL_PLAN_PORTS_MAX]; /* their names, and those of the outputs, are its own */
        bool is_shape;                                   /* it serves the open ensemble at open_index, at these sizes */
        uint32_t open_index;
        int64_t sizes[SL_SYMBOLS_MAX];

        /* dispatcher */
        struct sl_broadcast_queue broadcasts;
        struct sl_arrivals arrivals;  /* of those that wait there */
        struct sl_queue_stats *shown; /* what waits, in the stats page; NULL: it has no slot */
        uint64_t in_flight_shown;
        struct sl_places *places;
        struct sl_shapes *shapes; /* of an open ensemble, else NULL */
        bool attached;            /* requests of the open ensemble come here */
        uint32_t in_flight;       /* requests */
        bool retired;             /* no new requests; told to control when in_flight is 0 */
        struct sl_model_counting counting;
        struct sl_ensemble *next; /* list of the dispatcher */
};

/* What the members are to be together; read during sl_ensemble_new(). */
struct sl_ensemble_options {
        const char *name;
        int64_t version;
        bool is_single;      /* a model under its own name: @rule does not count */
        bool sized;          /* of the single one: its sizes were asked for, nothing of it is open any more */
        uint32_t shapes_max; /* of the single one that is open: sizes that are served at a time; 1 to SL_SHAPES_MAX */
        enum sl_rule rule;
        const float *weights; /* one for each member, for WEIGHTED_MEAN; else NULL */
        uint32_t segment_samples;
        uint32_t samples_max;    /* of one request */
        uint32_t queue_requests; /* accepted and not completed; beyond: places.h */
        uint32_t clients_max;    /* of the fair queue, and of users */
};

/*
 * Checks that the members fit together and fills everything but index, generation and the dispatcher's part. Return: 0, -ENOMEM,
 * -EINVAL, -ENOTSUP, -ENAMETOOLONG with a text that names ensemble, member, value.
 */
int sl_ensemble_new(const struct sl_ensemble_options *options, struct sl_model *const *members, uint32_t n_members,
        struct sl_ensemble **ret_ensemble, struct sl_error *error);
struct sl_ensemble *sl_ensemble_free(struct sl_ensemble *ensemble);

/* The ensemble whose broadcasts these are. */
static inline struct sl_ensemble *sl_ensemble_of(struct sl_broadcast_queue *broadcasts)
{
        return (struct sl_ensemble *)((char *)broadcasts - offsetof(struct sl_ensemble, broadcasts));
}

/* True when a client that knows @a can go on with @b: same inputs and outputs, names included, and same limits. */
bool sl_ensemble_same_ports(const struct sl_ensemble *a, const struct sl_ensemble *b);
