/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last stage of a worker: delivers each segment's prediction to the accumulator (which combines when it is the last) and
 * puts the message {segment, model, prediction} into the outbox. Worker thread only.
 */
#pragma once

#include "accumulator.h"
#include "job.h"
#include "mailbox.h"

/* @message: everything but staged_ns and combined_ns, which are filled here. The outbox always has room. */
void sl_sender_send(struct sl_mailbox *outbox, struct sl_segment *segment, struct sl_prediction *message);

/* The special messages: SL_PREDICTION_READY, with what its first sample took (0: none was run); SL_PREDICTION_NO_MEMORY. */
void sl_sender_say(struct sl_mailbox *outbox, int32_t special, int32_t status, uint64_t sample_ns);
