/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests whose segments go through stages: where members are asked until they agree, or a quorum of them will do
 * (execute/assembly.h, is_partial), and where a combiner comes behind them (is_stacked).
 *
 *     segment:  ASKED --all answered, samples want another member--> ASKED, of the next one
 *                     --all answered, none does--> ended
 *                     --all members have answered, their predictions are stacked--> ASKED, of the combiner
 *     request:  on time --its deadline, or a worker's word of that, sl_partial_close()--> late: what waits is dropped, workers are
 *               stopped, and each segment ends with those who have answered; fewer than the quorum: -ETIME
 *
 * Dispatcher only.
 */
#pragma once

#include "assembly.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_dispatcher;
struct sl_piece;
struct sl_request;
struct sl_task;

/* The segment is not over when all that was asked for is answered. */
static inline bool sl_partial_has_stages(const struct sl_assembly *assembly)
{
        return assembly->is_partial || assembly->is_stacked;
}

/* All that was asked for of the segment is answered. True: another member is asked, or the combiner; false: it has ended. */
bool sl_partial_goes_on(struct sl_dispatcher *dispatcher, struct sl_request *request, uint32_t segment);

/* A piece has failed with @status. True: the request bears it, as far as is known. */
bool sl_partial_bears(struct sl_dispatcher *dispatcher, struct sl_request *request, uint32_t samples, int status);

/* The deadline has passed. False: no quorum is asked for, or not all of it is broadcast. */
bool sl_partial_close(struct sl_dispatcher *dispatcher, struct sl_request *request);
