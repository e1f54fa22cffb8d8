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

static void note_taken(struct sl_taking *taking, const struct sl_task *task, uint64_t end_ns)
{
        taking->rows += task->rows;
        taking->units += task->units;
        if (task->deadline_ns >= end_ns && (!taking->deadline_ns || task->deadline_ns < taking->deadline_ns))
                taking->deadline_ns = task->deadline_ns;
}

/* When a job of what is taken and @task would end; 0: that is not known. */
static uint64_t end_with(const struct sl_taking *taking, const struct sl_alike *alike, const struct sl_task *task)
{
        uint64_t ns = sl_size_line_ns(alike->line, taking->units + task->units);

        return ns && ns <= alike->ns_max ? alike->now_ns + ns : 0;
}

static bool fits(const struct sl_taking *taking, const struct sl_alike *alike, const struct sl_task *task)
{
        uint64_t end_ns = end_with(taking, alike, task);

        return end_ns && taking->rows + task->rows <= alike->rows_max && !(taking->deadline_ns && end_ns > taking->deadline_ns);
}

bool sl_taking_next_alike(
        struct sl_taking *taking, const struct sl_alike *alike, const struct sl_task *first, struct sl_task *ret_piece)
{
        uint32_t length = sl_task_queue_length(taking->queue);

        if (!first->kind || first->reruns || taking->pieces >= alike->pieces_max || length <= alike->spared)
                return false;
        if (taking->pieces == 1 && !taking->rows)
                note_taken(taking, first, end_with(taking, alike, first));
        for (; taking->passed < length && taking->passed < SL_ALIKE_LOOKED_AT; taking->passed++) {
                const struct sl_task *task = sl_task_queue_at(taking->queue, taking->passed);

                if (task->kind == first->kind && !task->reruns && fits(taking, alike, task) &&
                        alike->goes_along(alike->context, first, task)) {
                        *ret_piece = *task;
                        note_taken(taking, task, end_with(taking, alike, task));
                        taking->taken += task->samples;
                        taking->pieces++;
                        sl_task_queue_remove(taking->queue, taking->passed);
                        return true;
                }
                if (alike->in_order)
                        return false;
        }
        return false;
}
