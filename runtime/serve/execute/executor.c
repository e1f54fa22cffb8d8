/* SPDX-License-Identifier: Apache-2.0 */
#include "executor.h"

#include "base/assert.h"

#include <stddef.h>
#include <string.h>

void sl_executor_init(struct sl_executor *executor, void *jobs, uint32_t jobs_max, uint32_t n_inputs, uint32_t n_outputs)
{
        unsigned char *memory = jobs;

        SL_ASSERT(jobs_max <= SL_EXECUTOR_SLOTS_MAX);
        executor->jobs_max = jobs_max;
        executor->cores = 1;
        executor->samples_max = UINT32_MAX;
        executor->room_bytes = UINT64_MAX;
        executor->wake_fd = -1;
        for (uint32_t i = 0; i < jobs_max; i++) {
                struct sl_job *job = (struct sl_job *)(memory + i * sl_job_bytes(n_inputs, n_outputs));

                job->n_inputs = n_inputs;
                job->n_outputs = n_outputs;
                executor->slots[i].job = job;
        }
}

void sl_executor_say(struct sl_executor *executor, int32_t state, uint64_t first_ns)
{
        executor->first_ns = first_ns;
        atomic_store_explicit(&executor->state, state, memory_order_release); /* S1 */
}

int32_t sl_executor_started(const struct sl_executor *executor)
{
        return atomic_load_explicit(&executor->state, memory_order_acquire); /* S2 */
}

bool sl_executor_leave(struct sl_executor *executor)
{
        return !executor->class->leave || executor->class->leave(executor);
}

struct sl_executor *sl_executor_free(struct sl_executor *executor)
{
        if (executor)
                executor->class->stop(executor);
        return NULL;
}

/* Behind the last one that is given, where jobs end in order. Before: there is one. */
static uint32_t free_slot(const struct sl_executor *executor)
{
        uint32_t slot = executor->oldest;

        while (executor->slots[slot].unanswered)
                slot = (slot + 1) % executor->jobs_max;
        return slot;
}

struct sl_job *sl_executor_job(struct sl_executor *executor)
{
        if (executor->n_given == executor->jobs_max)
                return NULL;
        struct sl_job *job = executor->slots[free_slot(executor)].job;

        job->n_pieces = 0;
        job->is_light = false;
        return job;
}

void sl_executor_give(struct sl_executor *executor, struct sl_wait *from)
{
        uint32_t slot = free_slot(executor);
        struct sl_given_job *given = &executor->slots[slot];

        SL_ASSERT(executor->n_given < executor->jobs_max && given->job->n_pieces > 0);
        given->unanswered = given->job->n_pieces;
        memset(given->answered, 0, sizeof(given->answered));
        executor->n_given++;
        executor->n_background += given->job->priority == SL_BACKGROUND;
        executor->class->give(executor, slot, from);
}

bool sl_executor_poll(struct sl_executor *executor, struct sl_job **ret_job, struct sl_prediction *ret_prediction)
{
        if (!executor->class->poll(executor, ret_prediction))
                return false;
        if (!executor->class->names_the_job)
                ret_prediction->slot = (uint8_t)executor->oldest;
        *ret_job = executor->slots[ret_prediction->slot].job;
        return true;
}

/* To the next one that is given, if any is. */
static void move_oldest(struct sl_executor *executor)
{
        do
                executor->oldest = (executor->oldest + 1) % executor->jobs_max;
        while (executor->n_given && !executor->slots[executor->oldest].unanswered);
}

bool sl_executor_answered(struct sl_executor *executor, uint32_t slot, uint32_t piece)
{
        struct sl_given_job *given = &executor->slots[slot];

        SL_ASSERT(executor->n_given > 0 && piece < given->job->n_pieces && !(given->answered[piece / 64] >> piece % 64 & 1));
        given->answered[piece / 64] |= 1ull << piece % 64;
        if (--given->unanswered)
                return false;
        executor->n_given--;
        executor->n_background -= given->job->priority == SL_BACKGROUND;
        if (slot == executor->oldest)
                move_oldest(executor);
        return true;
}
