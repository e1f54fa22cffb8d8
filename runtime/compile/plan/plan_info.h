/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plan says of its model and of itself. Texts and ports belong to the plan, or to who called sl_plan_info_init(); in a file
 * they are in sections of their own (format.h), and all other fields are as in memory.
 */
#pragma once

#include "base/dim_sizes.h"
#include "tensor.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_PLAN_PORTS_MAX   1024 /* inputs and outputs of a model together; of a merged plan each */
#define SL_PLAN_LANES_MAX   64
#define SL_PLAN_BATCHES_MAX 16 /* sizes in the ladder */
#define SL_PORT_NO_BATCH    0xff
#define SL_PORT_NO_SYMBOL   0xff

#define SL_PORT_FALLBACK_ELSEWHERE UINT32_MAX

/* An input or an output of the model. */
struct sl_port {
        const char *name;             /* of any length */
        const char *labels;           /* base/labels.h: words of its elements, or of its last dimension; NULL or "": none */
        uint32_t dtype;               /* enum sl_dtype */
        uint32_t batch_axis;          /* 0, or SL_PORT_NO_BATCH when the tensor has none */
        uint32_t indexes;             /* an indexing kernel consumes this input: copy it out of client memory first */
        uint32_t fallback;            /* of an input that a request may leave out: 1 and the constant that it is then, or
                                         SL_PORT_FALLBACK_ELSEWHERE in a signature; they come last. 0: it is always given */
        struct sl_shape shape;        /* SL_DIM_BATCH stands at batch_axis; SL_DIM_UNKNOWN in a signature, and in open outputs */
        uint8_t symbols[SL_RANK_MAX]; /* which symbol an open dimension is, else SL_PORT_NO_SYMBOL. Of an output, any one: it
                                         follows the symbols; behind its rank: its rank does */
};

/*
 * What the model takes and gives. A model with open dimensions beside the batch has a *signature* first: a plan with symbols and
 * without batches, which cannot be run. `batchable` is false, and no port has a batch axis, when the file fixes the batch, when any
 * port but an input with a fallback does not lead with it, or when the samples are not computed apart from each other: such a
 * request is one segment, run whole at the one size of the ladder, 1. If the leading dimension is open nevertheless, it is a symbol
 * like any other: the plan has both, symbols and that one size, and its ports have the sizes at which it runs.
 */
struct sl_plan_info {
        const char *name; /* of the graph in the file */
        char backend[16];
        uint32_t n_inputs, n_outputs, n_batches, batchable;
        uint32_t n_optionals;                          /* inputs that this plan has as constants, and another could take */
        struct sl_port *inputs, *outputs;              /* [n_inputs], then those; [n_outputs] */
        uint32_t batches[SL_PLAN_BATCHES_MAX];         /* ascending; the first is 1 if batchable */
        uint64_t weights_bytes;                        /* in the file */
        uint64_t shared_bytes;                         /* in its base */
        uint64_t member_bytes;                         /* of a merged plan: in those of its members */
        uint64_t workspace_bytes[SL_PLAN_BATCHES_MAX]; /* activations and scratch of an instance at that batch */
        uint64_t multiply_adds;                        /* of one sample (or of the one request if not batchable) */
        uint64_t parameters;
        uint64_t architecture[2]; /* equal for models that differ in the values of weights alone; 0: not known */
        uint64_t family[2];       /* equal also where sizes differ, as those of heads do */
        uint32_t n_symbols;
        uint32_t n_lanes;                    /* of a merged plan: models in it, whose ports follow each other; else 0 */
        uint32_t n_common;                   /* of a merged plan: nodes that all lanes have, after the portable passes; */
        uint32_t n_merged;                   /* of those, nodes that are one for all */
        uint64_t stacked_bytes;              /* of a merged plan: constants that are laid together */
        const char *symbols[SL_SYMBOLS_MAX]; /* "sequence", "height" */
        uint32_t sizes_taken;                /* of the option shapes: bit i, some input has the dimension that its item i names */
        uint32_t draws;                      /* 1: some node draws random numbers, by the keys of samples (kernels/draw.h) */
};

/*
 * Room for so many ports, all zero; no name is set yet. Texts are copied when they are set, in place of what was there. Who inits
 * deinits; zeros may be deinited, too. Return: 0; -ENOMEM.
 */
int sl_plan_info_init(struct sl_plan_info *ret_info, uint32_t n_inputs, uint32_t n_optionals, uint32_t n_outputs);
int sl_plan_info_set(const char **text, const char *value);
int sl_plan_info_add_symbol(struct sl_plan_info *info, const char *name);
int sl_plan_info_copy(const struct sl_plan_info *from, struct sl_plan_info *ret_info);
void sl_plan_info_drop_symbols(struct sl_plan_info *info);
void sl_plan_info_deinit(struct sl_plan_info *info);

static inline uint32_t sl_plan_info_ports(const struct sl_plan_info *info)
{
        return info->n_inputs + info->n_optionals + info->n_outputs;
}

/* Requests do not share a batch: each brings inputs that are the same for all of its samples. */
static inline bool sl_plan_info_is_alone(const struct sl_plan_info *info)
{
        return info->batchable && info->n_inputs && info->inputs[info->n_inputs - 1].fallback;
}

/* An output of a plan that can be run whose shape is data-dependent: see sl_instance_run_open(). */
static inline bool sl_port_is_open(const struct sl_port *port)
{
        for (uint32_t i = 0; i < port->shape.rank && i < SL_RANK_MAX; i++)
                if (port->shape.dims[i] == SL_DIM_UNKNOWN)
                        return true;
        return false;
}

/* An output whose rank follows the sizes of open dimensions. */
static inline bool sl_port_has_open_rank(const struct sl_port *port)
{
        return port->shape.rank < SL_RANK_MAX && port->symbols[port->shape.rank] != SL_PORT_NO_SYMBOL;
}

/* What tells one plan file from another: its checksum and its size. */
struct sl_plan_identity {
        uint64_t checksum, bytes;
};
