/* SPDX-License-Identifier: Apache-2.0 */
#include "workers.h"

#include "base/assert.h"
#include "executor.h"

#include <string.h>

void sl_workers_add(struct sl_workers *workers, struct sl_executor *executor)
{
        SL_ASSERT(sl_workers_all(workers) < SL_WORKERS_MAX);
        workers->list[sl_workers_all(workers)] = workers->list[workers->n];
        workers->list[workers->n++] = executor;
}

/* The others keep their order. */
static void worker_to_the_end(struct sl_workers *workers, uint32_t i)
{
        struct sl_executor *executor = workers->list[i];
        uint32_t last = sl_workers_all(workers) - 1;

        memmove(workers->list + i, workers->list + i + 1, (last - i) * sizeof(*workers->list));
        workers->list[last] = executor;
}

static void dismiss_at(struct sl_workers *workers, uint32_t i)
{
        worker_to_the_end(workers, i);
        workers->n--;
        workers->n_leaving++;
}

bool sl_workers_dismiss(struct sl_workers *workers, const struct sl_executor *executor)
{
        for (uint32_t i = 0; i < workers->n; i++)
                if (workers->list[i] == executor) {
                        dismiss_at(workers, i);
                        return true;
                }
        return false;
}

void sl_workers_dismiss_ended(struct sl_workers *workers)
{
        for (uint32_t i = workers->n; i-- > 0;)
                if (workers->list[i]->ended)
                        dismiss_at(workers, i);
}

struct sl_executor *sl_workers_gone(const struct sl_workers *workers)
{
        for (uint32_t i = workers->n; i < sl_workers_all(workers); i++)
                if (sl_executor_jobs(workers->list[i]) == 0)
                        return workers->list[i];
        return NULL;
}

void sl_workers_forget(struct sl_workers *workers, const struct sl_executor *executor)
{
        for (uint32_t i = workers->n; i < sl_workers_all(workers); i++)
                if (workers->list[i] == executor) {
                        worker_to_the_end(workers, i);
                        workers->n_leaving--;
                        return;
                }
}
