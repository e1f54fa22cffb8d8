/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the random numbers of a run depend on, beside the node that draws them. A sample brings its key, so that what is drawn for
 * it is the same in any batch, in any place of it, by any worker and by any team. Plain values.
 *
 *     {origin of the request, index of the sample in it} --starling.SampleKeys--> keys, an operand like any other --> nodes that
 * draw
 *
 * A node that draws is thereby a function of its inputs: who folds, merges, cuts or checks nodes needs to know nothing more. Only
 * starling.SampleKeys reads what is no operand, and is never folded. Each of its launches in a run counts, so that the rounds of a
 * loop draw anew.
 *
 * The bits are those of a counter: no generator has a state.
 */
#pragma once

#include <stdint.h>

/* Words of a key as an operand: the origin; the index of the sample, and above it the launch. */
#define SL_DRAW_KEY_WORDS  2
#define SL_DRAW_INDEX_BITS 32

struct sl_draw_key {
        uint64_t origin; /* of the request: another one for each */
        uint32_t index;  /* of the sample in its request */
};

/* Of a run. The keys are those of its samples; NULL: origin 0, and the places in the batch. */
struct sl_draws {
        const struct sl_draw_key *keys;
        uint32_t launches; /* of starling.SampleKeys so far, of which at most one is under way */
};
