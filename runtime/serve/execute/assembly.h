/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the client's outputs come about: the outputs that each member makes, and the rule that combines them. Immutable while
 * anything is computed by it; any thread.
 */
#pragma once

#include "combining.h"
#include "layout.h"
#include "port.h"
#include "rule.h"

#include <stdbool.h>

#define SL_NO_OUTPUT UINT32_MAX

struct sl_assembly {
        enum sl_rule rule;
        float weights[SL_MEMBERS_MAX]; /* of WEIGHTED_MEAN: they sum to 1; of WEIGHTED_BOXES: to n_members; of NMS, SOFT_NMS: the
                                          largest is 1 */
        uint32_t n_members;
        uint32_t member_outputs;        /* outputs of each member; n_outputs = n_members times this for rule NONE */
        uint32_t n_outputs;             /* of the client */
        bool direct;                    /* members write into the client's outputs: nothing is combined */
        bool open_outputs;              /* the shape of some output depends on the data */
        bool open_inputs;               /* the one member has a plan of any size: a request says those of some inputs */
        struct sl_served_port *outputs; /* [n_outputs] */
        struct sl_served_port *staged;  /* [n_members][member_outputs], where members differ; NULL: all are as `outputs` */
        uint64_t scratch_bytes;         /* that the rule works in, of each segment */
        bool on_host;                   /* no device combines so */
        bool is_stacked;                /* behind the members comes a combiner, as member n_members, which makes `outputs` */
        uint64_t stacked_bytes; /* of a sample, of its one input: the predictions side by side. 0: it has an input for each of them
                                 */
        bool is_partial;        /* members may be missing from the result of a sample: */
        uint32_t n_first;       /* of those: asked at once, the others one by one while samples want them */
        uint32_t agree, quorum; /* as in combining.h; quorum: n_members where all have to answer */
        float margin;
        const float *class_weights; /* of WEIGHTED_MEAN, of each class with a sum of 1; NULL: `weights` are those of all */
        const struct sl_combining *combining;      /* of rules of boxes */
        uint32_t box_outputs[SL_BOX_OUTPUT_COUNT]; /* which ones they are; SL_NO_OUTPUT */
};
