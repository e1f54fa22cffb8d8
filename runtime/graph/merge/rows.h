/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each operator becomes when K nodes of it are merged: the table of section 3.1 of Jeong et al., Accelerating Multi-Model
 * Inference by Merging DNNs of Different Weights, 2020, with every operator that has a form, and the reason of those that stay
 * apart. Operators of the trait ELEMENTWISE have one row together. Pure; any thread.
 */
#pragma once

#include "merge/weave_nodes.h"

/* Along what the paper concatenates: lanes stand in front, or are folded into the channels; or the operator does not care. */
enum sl_merge_dimension { SL_MERGE_BATCH, SL_MERGE_CHANNEL, SL_MERGE_DONT_CARE, SL_MERGE_APART };

struct sl_merge_row {
        enum sl_merge_dimension dimension;
        sl_weave_node *lane, *channel; /* NULL: not in that form */
        const char *becomes;           /* or why it stays apart */
};

/* Of an operator without a row it is the one that stays apart, for nobody has said what becomes of it. */
const struct sl_merge_row *sl_merge_row(uint32_t op);
