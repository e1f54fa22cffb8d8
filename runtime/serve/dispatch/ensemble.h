/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is served under one name of the catalogue: one or more models and the rule that combines their predictions. A single
 * model is an ensemble of one without a rule: it writes into the client's outputs. Immutable once the dispatcher has it, but for
 * the part that is the dispatcher's own; a reload makes a new ensemble, and the old one drains.
 */
#pragma once

#include "arrivals.h"
#include "assembly.h"
#include "base/assert.h"
#include "broadcast_round.h"
#include "layout.h"
#include "port.h"
#include "rule.h"
#include "stats.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct sl_model;
struct sl_places;
struct sl_shapes;

struct sl_ensemble {
        uint32_t index;      /* in the catalogue */
        uint32_t generation; /* of its inputs and outputs */
        int64_t version;
        struct sl_assembly assembly;              /* of what members make: all that workers see of it */
        struct sl_model *members[SL_MEMBERS_MAX]; /* [assembly.n_members], and behind them the combiner, where there is one */
        bool batchable;
        bool open;  /* requests say sizes of its model: it has ports, and nothing is run in its name */
        bool rests; /* of a model that is loaded on request: it has ports and no member, and requests wait in its only slot until
                       another takes its place */
        uint32_t segment_samples, samples_max, queue_requests;
        uint32_t n_inputs, n_optionals; /* those that are computed with, and those that a request may list behind them: then it is
                                           for another ensemble, which serves its slot of `shapes` */
        struct sl_served_port *inputs;  /* [n_inputs + n_optionals]; they and the outputs, names included, are its own */
        bool is_shape;                  /* it serves the open ensemble at open_index, at these sizes */
        uint32_t open_index;
        int64_t sizes[SL_SYMBOLS_MAX];

        /* dispatcher */
        struct sl_broadcast_queue broadcasts;
        struct sl_arrivals arrivals;  /* of those that wait there */
        struct sl_queue_stats *shown; /* what waits, in the stats page; NULL: it has no slot */
        uint64_t in_flight_shown;
        struct sl_places *places;
        struct sl_shapes *shapes; /* of an open ensemble, of one with optional inputs, and of one that rests; else NULL */
        bool attached;            /* requests of the open ensemble come here */
        bool gathers;             /* attached, of any size: what leads all ports is the batch, as the open ensemble has it */
        uint32_t in_flight;       /* requests */
        uint64_t units;           /* of them: the size of those to a plan of any size */
        _Atomic uint64_t idle_ns; /* since when there are none; UINT64_MAX: there are. The dispatcher writes, control reads */
        bool retired;             /* no new requests; told to control when in_flight is 0 */
        struct sl_model_counting counting;
        struct sl_ensemble *next; /* list of the dispatcher */

        char name[SL_MODEL_NAME_BYTES]; /* last: no request looks at it */
};

/* What the members are to be together; read during sl_ensemble_new(). */
struct sl_ensemble_options {
        const char *name;
        int64_t version;
        bool is_single;      /* a model under its own name: @rule does not count */
        bool sized;          /* of the single one: its sizes were asked for, nothing of it is open any more */
        uint32_t shapes_max; /* of the single one that is open: sizes that are served at a time; 1 to SL_SHAPES_MAX */
        enum sl_rule rule;
        const float *weights;                 /* one for each member, of WEIGHTED_MEAN, or of rules of boxes; else NULL */
        const struct sl_combining *combining; /* more of the rule, which it copies; NULL */
        uint32_t segment_samples;
        uint32_t samples_max;    /* of one request */
        uint32_t queue_requests; /* accepted and not completed; beyond: places.h */
        uint32_t clients_max;    /* of the fair queue, and of users */
};

/*
 * @members: of rule STACKING, the last is the combiner.
 *
 * Checks that the members fit together and fills everything but index, generation and the dispatcher's part. Return: 0, -ENOMEM,
 * -EINVAL, -ENOTSUP, -ENAMETOOLONG with a text that names ensemble, member, value.
 */
int sl_ensemble_new(const struct sl_ensemble_options *options, struct sl_model *const *members, uint32_t n_members,
        struct sl_ensemble **ret_ensemble, struct sl_error *error);
struct sl_ensemble *sl_ensemble_free(struct sl_ensemble *ensemble);

/* The ports of @from, for requests that wait: it rests. Return: 0, -ENOMEM with text. */
int sl_ensemble_rest(
        const struct sl_ensemble *from, uint32_t clients_max, struct sl_ensemble **ret_ensemble, struct sl_error *error);

/* One more request in flight, or one less, of so many units. Dispatcher. */
static inline void sl_ensemble_enter(struct sl_ensemble *ensemble, uint64_t units)
{
        ensemble->units += units;
        if (ensemble->in_flight++ == 0)
                atomic_store_explicit(&ensemble->idle_ns, UINT64_MAX, memory_order_relaxed);
}

static inline void sl_ensemble_leave(struct sl_ensemble *ensemble, uint64_t units, uint64_t now_ns)
{
        ensemble->units -= units;
        SL_ASSERT(ensemble->in_flight > 1 || !ensemble->units);
        if (--ensemble->in_flight == 0)
                atomic_store_explicit(&ensemble->idle_ns, now_ns, memory_order_relaxed);
}

/* Requests with so many inputs are for another ensemble, or wait for one (route.h). */
static inline bool sl_ensemble_routes(const struct sl_ensemble *ensemble, uint32_t n_inputs)
{
        return ensemble->open || ensemble->rests ||
               (ensemble->n_optionals && n_inputs == ensemble->n_inputs + ensemble->n_optionals);
}

/* With the combiner. */
static inline uint32_t sl_ensemble_models(const struct sl_ensemble *ensemble)
{
        return ensemble->assembly.n_members + ensemble->assembly.is_stacked;
}

/* The ensemble whose broadcasts these are. */
static inline struct sl_ensemble *sl_ensemble_of(struct sl_broadcast_queue *broadcasts)
{
        return (struct sl_ensemble *)((char *)broadcasts - offsetof(struct sl_ensemble, broadcasts));
}

/* A request with so many inputs gives some of the optional ones. */
static inline bool sl_ensemble_is_given(const struct sl_ensemble *ensemble, uint32_t n_inputs)
{
        return ensemble->n_optionals && n_inputs == ensemble->n_inputs + ensemble->n_optionals;
}

/* True when a client that knows @a can go on with @b: same inputs and outputs, names included, and same limits. */
bool sl_ensemble_same_ports(const struct sl_ensemble *a, const struct sl_ensemble *b);
