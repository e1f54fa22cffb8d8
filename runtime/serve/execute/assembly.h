/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the client's outputs come about: the outputs that each member makes, and the rule that combines them. Immutable while
 * anything is computed by it; any thread.
 */
#pragma once

#include "layout.h"
#include "port.h"
#include "rule.h"

#include <stdbool.h>

struct sl_assembly {
        enum sl_rule rule;
        float weights[SL_MEMBERS_MAX]; /* of WEIGHTED_MEAN; normalised to sum 1 */
        uint32_t n_members;
        uint32_t member_outputs; /* outputs of each member; n_outputs = n_members times this for rule NONE */
        uint32_t n_outputs;      /* of the client */
        bool direct;             /* members write into the client's outputs: nothing is combined */
        bool open_outputs;       /* the shape of some output depends on the data */
        struct sl_served_port outputs[SL_MODEL_OUTPUTS_MAX];
};
