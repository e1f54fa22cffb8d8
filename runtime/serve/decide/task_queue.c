/* SPDX-License-Identifier: Apache-2.0 */
#include "task_queue.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>

/* A place is written before it is read: pages that no task has come to are never touched. */
int sl_task_queue_init(struct sl_task_queue *queue, uint32_t tasks)
{
        uint32_t slots = 1;

        while (slots < tasks)
                slots <<= 1;
        *queue = (struct sl_task_queue){.mask = slots - 1, .tasks = malloc(slots * sizeof(struct sl_task))};
        return queue->tasks ? 0 : -ENOMEM;
}

void sl_task_queue_deinit(struct sl_task_queue *queue)
{
        free(queue->tasks);
        queue->tasks = NULL;
}

void sl_task_queue_push(struct sl_task_queue *queue, const struct sl_task *task)
{
        SL_ASSERT(sl_task_queue_length(queue) <= queue->mask);
        queue->tasks[queue->tail++ & queue->mask] = *task;
        queue->samples += task->samples;
}

bool sl_task_queue_return(struct sl_task_queue *queue, const struct sl_task *task)
{
        uint32_t length = sl_task_queue_length(queue), i;

        if (length > queue->mask)
                return false;
        queue->head--;
        for (i = 0; i < length && sl_task_queue_at(queue, i + 1)->arrival_ns < task->arrival_ns; i++)
                *sl_task_queue_at(queue, i) = *sl_task_queue_at(queue, i + 1);
        *sl_task_queue_at(queue, i) = *task;
        queue->samples += task->samples;
        return true;
}

/* An empty one begins anew: its first tasks are still in a cache, those behind the last one long not. */
static void rewind_empty(struct sl_task_queue *queue)
{
        if (queue->head == queue->tail)
                queue->head = queue->tail = 0;
}

void sl_task_queue_take(struct sl_task_queue *queue, uint32_t samples)
{
        struct sl_task *task = sl_task_queue_at(queue, 0);

        SL_ASSERT(sl_task_queue_length(queue) && samples <= task->samples);
        task->first += samples;
        task->samples -= samples;
        queue->samples -= samples;
        queue->head += task->samples == 0;
        rewind_empty(queue);
}

void sl_task_queue_remove(struct sl_task_queue *queue, uint32_t i)
{
        SL_ASSERT(i < sl_task_queue_length(queue));
        queue->samples -= sl_task_queue_at(queue, i)->samples;
        for (; i > 0; i--)
                *sl_task_queue_at(queue, i) = *sl_task_queue_at(queue, i - 1);
        queue->head++;
        rewind_empty(queue);
}

uint32_t sl_task_queue_drop(struct sl_task_queue *queue, bool (*ends)(void *context, const struct sl_task *task), void *context)
{
        uint32_t length = sl_task_queue_length(queue), kept = 0;

        for (uint32_t i = 0; i < length; i++) {
                const struct sl_task task = *sl_task_queue_at(queue, i);

                if (ends(context, &task))
                        queue->samples -= task.samples;
                else
                        *sl_task_queue_at(queue, kept++) = task;
        }
        queue->tail = queue->head + kept;
        return length - kept;
}
