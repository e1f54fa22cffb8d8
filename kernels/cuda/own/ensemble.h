/* SPDX-License-Identifier: Apache-2.0 */
/* What an executor launches besides nodes. C, and CUDA C++ for the numbers of the rules. */
#pragma once

#include <stdint.h>

/* How the predictions of members become one: the rules of an ensemble. */
enum sl_own_rule {
        SL_OWN_RULE_MEAN,
        SL_OWN_RULE_WEIGHTED_SUM,
        SL_OWN_RULE_MAXIMUM,
        SL_OWN_RULE_MAJORITY_VOTE,
        SL_OWN_RULE_GEOMETRIC_MEAN,
};
