/* SPDX-License-Identifier: Apache-2.0 */
#include "taking.h"

void sl_taking_begin(struct sl_taking *taking, struct sl_task_queue *queue, uint32_t samples, uint32_t batch_max)
{
        *taking = (struct sl_taking){.queue = queue, .first_max = samples, .batch_max = samples < batch_max ? samples : batch_max};
}

/* Samples that may come next; 0: none. */
static uint32_t next_max(const struct sl_taking *taking)
{
        if (!sl_task_queue_length(taking->queue))
                return 0;
        if (!taking->pieces)
                return taking->first_max;
        if (taking->alone || taking->taken >= taking->batch_max || taking->pieces == SL_POLICY_TASKS_MAX)
                return 0;
        return sl_task_queue_at(taking->queue, 0)->reruns ? 0 : taking->batch_max - taking->taken;
}

bool sl_taking_next(struct sl_taking *taking, struct sl_task *ret_piece)
{
        uint32_t most = next_max(taking);

        if (!most)
                return false;
        *ret_piece = *sl_task_queue_at(taking->queue, 0);
        if (ret_piece->samples > most)
                ret_piece->samples = most;
        taking->alone |= ret_piece->reruns;
        taking->taken += ret_piece->samples;
        taking->pieces++;
        sl_task_queue_take(taking->queue, ret_piece->samples);
        return true;
}
