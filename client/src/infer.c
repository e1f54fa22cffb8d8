/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request that is waited for, among others of the same queue pair whose completions are put aside meanwhile. The owner thread
 * of the queue pair.
 */
#include "queue.h"

#include "model.h"

#include <errno.h>

/* The ring's completions go aside, but @id's, if it is there. */
static bool reap_own(struct starling_queue *queue, uint64_t id, struct starling_completion *ret_completion)
{
        sl_queue_stash(queue);
        return sl_flights_unstash_one(&queue->flights, id, ret_completion);
}

static void explain_failure(
        struct starling_queue *queue, const struct starling_request *request, const struct starling_completion *failed)
{
        char text[STARLING_TEXT_BYTES];

        starling_reason_text(failed, text, sizeof(text));
        if (request->flags & STARLING_NOOP) /* which names no model */
                sl_error_set(&queue->error, -failed->status, "%s", text);
        else
                sl_error_set(&queue->error, -failed->status, "model \"%s\": %s", request->model->info.name, text);
}

int starling_infer(struct starling_queue *queue, const struct starling_request *request, struct starling_completion *ret_completion)
{
        struct starling_completion completion;
        uint64_t id;
        int r = starling_submit(queue, request, &id);

        if (r < 0)
                return r;
        sl_queue_disarm(queue);
        for (;;) {
                r = sl_queue_wait(queue, STARLING_FOREVER);
                if (r == -EPIPE || sl_client_gone(queue->client))
                        sl_queue_bury(queue);
                if (reap_own(queue, id, &completion))
                        break;
        }
        if (completion.status < 0)
                explain_failure(queue, request, &completion);
        if (ret_completion)
                *ret_completion = completion;
        return completion.status;
}
