/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules by which the members' predictions become one (ensemble paper, section II.C.2). Plain values; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_MEMBERS_MAX 64

#define SL_RULES(X)                                                                                                                \
        X(NONE, "none")                     /* all members' outputs side by side */                                                \
        X(MEAN, "mean")                     /* sum over members / members */                                                       \
        X(WEIGHTED_MEAN, "weighted_mean")   /* sum of weight * prediction / sum of weights */                                      \
        X(MAJORITY_VOTE, "majority_vote")   /* share of the members whose largest class this is */                                 \
        X(GEOMETRIC_MEAN, "geometric_mean") /* of probabilities, normalised to sum 1 */                                            \
        X(MAXIMUM, "maximum")                                                                                                      \
        X(WEIGHTED_BOXES, "weighted_boxes_fusion") /* of detectors: boxes.h */                                                     \
        X(NMS, "nms")                                                                                                              \
        X(SOFT_NMS, "soft_nms")                                                                                                    \
        X(STACKING, "stacking") /* what a model, the combiner, makes of the predictions side by side */

enum sl_rule {
#define X(id, name) SL_RULE_##id,
        SL_RULES(X)
#undef X
                SL_RULE_COUNT,
};

/* Its outputs are boxes with scores, not numbers that are combined one by one. */
static inline bool sl_rule_is_of_boxes(enum sl_rule rule)
{
        return rule == SL_RULE_WEIGHTED_BOXES || rule == SL_RULE_NMS || rule == SL_RULE_SOFT_NMS;
}

/* "mean"; NULL for a number that is no rule. */
const char *sl_rule_name(uint32_t rule);

/* The rule of that name, or -EINVAL. */
int sl_rule_find(const char *name);
