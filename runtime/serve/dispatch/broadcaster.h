/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broadcaster (ensemble paper, section II.C.1): splits requests into segments of at most N samples and pushes each segment's id
 * to the scheduler of every member of the ensemble: 300 samples with N = 128 are segments of 128, 128 and 44, and with
 * two members six messages. A segment is shorter where N samples would take a member longer than its slice of time
 * (service_time.h). Requests take turns (fair.h) of one segment; what is in flight is bounded by time, so that a turn comes soon,
 * and by the accumulator's staging, so that memory does not grow with the size of a request. broadcast_round.h decides, this tells
 * it of windows and does what it decides. Dispatcher only.
 */
#pragma once

#include "inline_rule.h"

#include <stdint.h>

struct sl_accumulator;
struct sl_broadcast_ring;
struct sl_busy;
struct sl_ensemble;
struct sl_request;

/* FREE -> WAITING: behind the requests of the same client and priority. */
void sl_broadcaster_enqueue(struct sl_ensemble *ensemble, struct sl_request *request);

/* Samples that are given out, or go before those of a new request of this client and priority. */
uint64_t sl_broadcaster_ahead(const struct sl_ensemble *ensemble, uint32_t client, uint32_t priority);

/* WAITING, given up: nothing more of it is broadcast. */
void sl_broadcaster_withdraw(struct sl_request *request);

/* What a round is run with. */
struct sl_broadcast {
        struct sl_accumulator *accumulator;
        struct sl_busy *busy;         /* where models are that get segments */
        struct sl_inline_limit limit; /* of what the dispatcher computes itself */
        uint64_t now_ns;
};

/* A round (broadcast_round.h) of all that wait: as many segments as windows and staging allow. Return: how many were broadcast. */
uint32_t sl_broadcaster_run(struct sl_broadcast_ring *ring, const struct sl_broadcast *broadcast);
