/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combination rules: the arithmetic of the accumulator (ensemble paper, section II.C.2), applied to one segment when the
 * predictions of all members are there. Always in model order, so that the result is the same to the bit whatever the order
 * of arrival. float32 only. Pure; any thread.
 */
#pragma once

#include "rule.h"

#include <stdbool.h>
#include <stddef.h>

struct sl_combination {
        enum sl_rule rule; /* not NONE, STACKING, nor one of boxes */
        uint32_t n_members;
        const float *weights;              /* WEIGHTED_MEAN: n_members, sum 1; or, instead: */
        const float *const *class_weights; /* n_members, each [classes], of each class with a sum of 1; else NULL */
        bool is_part;                      /* not all members of the ensemble: the weights are divided by their sum; where that is 0
                                              all count alike */
        const float *const *predictions;   /* n_members, each [samples, classes] */
        size_t samples;
        size_t classes; /* elements of the last axis: what a vote and a normalisation run over */
        float *output;  /* [samples, classes] */
};

void sl_combine(const struct sl_combination *combination);
