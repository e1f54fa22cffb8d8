/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan without workers, as it is held while nobody asks its model anything: a load that begins with it has nothing to search,
 * compile, read or map. Its memory stays promised as long as it is held (../budget/memory.h). Control thread only.
 */
#pragma once

#include "model_digest.h"

#include <stdbool.h>

struct sl_model;
struct sl_plan;

struct sl_standby {
        struct sl_plan *plan;          /* held; NULL: there is none */
        struct sl_model_identity file; /* of which it was made */
        bool fell_back;                /* it was to be for a GPU, and is for the CPU */
        uint64_t begun;                /* as of the model (dispatch/model.h) */
        uint64_t first_ns; /* what the first sample took of workers that it had; 0: none was run, or no request has been computed by
                              them */
};

/* Of a model that serves: its plan, once more held. */
struct sl_standby sl_standby_of(const struct sl_model *model);

/* The same, once more held. */
struct sl_standby sl_standby_hold(const struct sl_standby *standby);

/* Held no longer; it has no plan any more. */
void sl_standby_end(struct sl_standby *standby);
