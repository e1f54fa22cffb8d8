/* SPDX-License-Identifier: Apache-2.0 */
#include "executor.h"

#include "base/assert.h"

#include <stddef.h>
#include <string.h>

void sl_executor_init(struct sl_executor *executor, void *jobs, uint32_t n_inputs, uint32_t n_outputs)
{
        unsigned char *memory = jobs;

        executor->cores = 1;
        executor->samples_max = UINT32_MAX;
        executor->wake_fd = -1;
        for (uint32_t i = 0; i < SL_EXECUTOR_JOBS_MAX; i++) {
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

struct sl_executor *sl_executor_free(struct sl_executor *executor)
{
        if (executor)
                executor->class->stop(executor);
        return NULL;
}

static uint32_t slot_after(const struct sl_executor *executor, uint32_t jobs)
{
        return (executor->oldest + jobs) % SL_EXECUTOR_JOBS_MAX;
}

struct sl_job *sl_executor_job(struct sl_executor *executor)
{
        if (executor->n_given == SL_EXECUTOR_JOBS_MAX)
                return NULL;
        struct sl_job *job = executor->slots[slot_after(executor, executor->n_given)].job;

        job->n_pieces = 0;
        job->is_light = false;
        return job;
}

void sl_executor_give(struct sl_executor *executor, struct sl_wait *from)
{
        uint32_t slot = slot_after(executor, executor->n_given);
        struct sl_given_job *given = &executor->slots[slot];

        SL_ASSERT(executor->n_given < SL_EXECUTOR_JOBS_MAX && given->job->n_pieces > 0);
        given->unanswered = given->job->n_pieces;
        memset(given->answered, 0, sizeof(given->answered));
        executor->n_given++;
        executor->class->give(executor, slot, from);
}

bool sl_executor_poll(struct sl_executor *executor, struct sl_job **ret_job, struct sl_prediction *ret_prediction)
{
        if (!executor->class->poll(executor, ret_prediction))
                return false;
        *ret_job = executor->slots[executor->oldest].job;
        return true;
}

bool sl_executor_answered(struct sl_executor *executor, uint32_t piece)
{
        struct sl_given_job *given = &executor->slots[executor->oldest];

        SL_ASSERT(executor->n_given > 0 && piece < given->job->n_pieces && !(given->answered[piece / 64] >> piece % 64 & 1));
        given->answered[piece / 64] |= 1ull << piece % 64;
        if (--given->unanswered)
                return false;
        executor->oldest = slot_after(executor, 1);
        executor->n_given--;
        return true;
}
