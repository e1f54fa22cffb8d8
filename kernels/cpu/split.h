/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How teams of each size should compute a loop: along which axis it is cut, and into how many parts, by estimates of how long its
 * largest part takes, what all parts bring from memory together, what it costs to call a team, and nothing else. A pure function of
 * loop, node and target; where parts have been timed, what they took is what the estimates of parts and of the whole are scaled to.
 */
#pragma once

#include "cpu/base/operator.h"

/* Is a call of oneDNN so long that parts of it pay, and their making? */
bool sl_cpu_call_pays(const struct sl_kernel_source *source);

/* Fills splits and seconds. */
void sl_cpu_choose_splits(const struct sl_cpu_loop *loop, const void *state, const struct sl_kernel_source *source,
        struct sl_provision *ret_provision);
