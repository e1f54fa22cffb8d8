/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a runtime as a whole, as if it were a slot.
 */
#pragma once

#include "stats_layout.h"

#define RUNTIME_STATES(X)                                                                                                          \
        X(STARTING, SL_RUNTIME_STARTING)                                                                                           \
        X(READY, SL_RUNTIME_READY)                                                                                                 \
        X(STOPPING, SL_RUNTIME_STOPPING)                                                                                           \
        X(STOPPED, SL_RUNTIME_STOPPED)                                                                                             \
        X(DEAD, SL_RUNTIME_STOPPED + 1) /* it ended in no order */

enum runtime_state {
#define X(name, value) RUNTIME_##name = (value),
        RUNTIME_STATES(X)
#undef X
};

struct runtime_facts {
        struct sl_stats_header header;
        uint64_t up;    /* 1: it lives */
        uint64_t state; /* enum runtime_state */
};
