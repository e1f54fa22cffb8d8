/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ensembles and channels without a runtime around them: what the dispatcher's stages need to be tested one by one.
 */
#pragma once

#include "accumulator.h"
#include "channel.h"
#include "ensemble.h"
#include "executor.h"
#include "model.h"

#define FIXTURE_SEGMENTS 64u

/* An ensemble of @n_members with a worker in name: float32 [N, inputs] -> float32 [N, classes]. Freed with fixture_free(). */
struct fixture {
        struct sl_stats *stats;
        struct sl_ensemble *ensemble;
        struct sl_model models[SL_MEMBERS_MAX];
        struct sl_executor worker; /* of each model, for the window: it gets nothing */
        struct sl_plan_info info;
        struct sl_port ports[2]; /* its */
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        struct sl_channel *channel;
        int request_fd, response_fd;
        float *inputs, *outputs; /* an arena region of the channel, @samples_max of each */
};

struct fixture *fixture_new(uint32_t n_members, enum sl_rule rule, uint32_t inputs, uint32_t classes, uint32_t segment_samples);
void fixture_free(struct fixture *fixture);

/* A request with this tag for @samples, ready to be enqueued. Client slot 0. */
struct sl_request *fixture_request(struct fixture *fixture, uint16_t tag, uint32_t samples);
