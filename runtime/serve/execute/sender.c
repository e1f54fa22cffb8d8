/* SPDX-License-Identifier: Apache-2.0 */
#include "sender.h"

#include "base/clock.h"

void sl_sender_send(struct sl_mailbox *outbox, struct sl_segment *segment, struct sl_prediction *message)
{
        int last;

        message->staged_ns = sl_clock_ns();
        last = sl_accumulator_deliver(segment, message->status);
        if (last)
                message->combined_ns = sl_clock_ns();
        if (last < 0 && message->status == 0)
                message->status = last;
        sl_mailbox_put(outbox, message);
}

void sl_sender_say(struct sl_mailbox *outbox, int32_t special, int32_t status, uint64_t sample_ns)
{
        sl_mailbox_put(
                outbox, &(struct sl_prediction){.segment = special, .status = status, .computing_ns = sample_ns, .job_samples = 1});
}
