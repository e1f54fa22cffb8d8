/* SPDX-License-Identifier: Apache-2.0 */
#include "bell.h"
#include "cancel.h"
#include "dispatcher_state.h"
#include "fixture.h"
#include "intake.h"

#include <criterion/criterion.h>
#include <errno.h>

/* A queue pair whose requests are all in flight: not one more entry can be taken. */
static struct sl_queue *full_queue(struct fixture *f)
{
        struct sl_queue *queue = &f->channel->queues[0];

        for (uint16_t tag = 0; tag < queue->map.depth; tag++) {
                struct sl_request *request = fixture_request(f, tag, 1);

                request->state = SL_REQUEST_RUNNING;
                request->broadcast = 1;
                request->index = tag;
        }
        queue->head = queue->in_flight = queue->map.depth;
        return queue;
}

Test(intake, a_dispatcher_does_not_fall_asleep_over_a_cancellation_in_a_full_queue_pair)
{
        struct fixture *f = fixture_new(1, SL_RULE_NONE, 4, 10, 16);
        struct sl_queue *queue = full_queue(f);

        cr_assert_not(sl_intake_room(queue));
        cr_assert_not(sl_intake_waiting(queue));
        atomic_store(&queue->map.cancels[3], 3 + 1);
        atomic_store(&queue->map.request->cancellations, 1);
        cr_assert(sl_intake_waiting(queue), "the client rings only for a dispatcher that sleeps already");
        fixture_free(f);
}

Test(intake, a_cancellation_ends_the_request_that_it_names_and_no_other)
{
        struct fixture *f = fixture_new(1, SL_RULE_NONE, 4, 10, 16);
        struct sl_queue *queue = full_queue(f);
        struct sl_dispatcher d = {.options.accumulator = f->accumulator, .in_flight = queue->in_flight};

        queue->requests[2].index = UINT32_MAX; /* submission indices run freely: its word would be 0, as that of all others is */
        atomic_store(&queue->map.cancels[3], 3 + 1);
        atomic_store(&queue->map.cancels[4], 4 + 1 - queue->map.depth);
        atomic_store(&queue->map.request->cancellations, 1);
        cr_assert_eq(sl_give_up_cancelled(&d, queue), 1);
        for (uint16_t tag = 0; tag < queue->map.depth; tag++)
                cr_expect_eq(queue->requests[tag].verdict, tag == 3 ? -ECANCELED : 0, "tag %u", tag);
        fixture_free(f);
}
