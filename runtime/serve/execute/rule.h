/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules by which the members' predictions become one (ensemble paper, section II.C.2). Plain values; any thread.
 */
#pragma once

#include <stdint.h>

#define SL_MEMBERS_MAX 64

#define SL_RULES(X)                                                                                                                \
        X(NONE, "none")                     /* all members' outputs side by side */                                                \
        X(MEAN, "mean")                     /* sum over members / members */                                                       \
        X(WEIGHTED_MEAN, "weighted_mean")   /* sum of weight * prediction / sum of weights */                                      \
        X(MAJORITY_VOTE, "majority_vote")   /* share of the members whose largest class this is */                                 \
        X(GEOMETRIC_MEAN, "geometric_mean") /* of probabilities, normalised to sum 1 */                                            \
        X(MAXIMUM, "maximum")

enum sl_rule {
#define X(id, name) SL_RULE_##id,
        SL_RULES(X)
#undef X
                SL_RULE_COUNT,
};

/* "mean"; NULL for a number that is no rule. */
const char *sl_rule_name(uint32_t rule);

/* The rule of that name, or -EINVAL. */
int sl_rule_find(const char *name);
