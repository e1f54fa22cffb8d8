/* SPDX-License-Identifier: Apache-2.0 */
#include "workers.h"

#include "base/assert.h"
#include "executor.h"
#include "let.h"

#include <string.h>

/* How many on the same let, of as large batches, are among the first @n. */
static uint32_t rank_among(const struct sl_workers *workers, uint32_t n, const struct sl_executor *executor)
{
        uint32_t rank = 0;

        for (uint32_t i = 0; i < n; i++)
                rank += workers->list[i]->let == executor->let && workers->list[i]->batch_max == executor->batch_max;
        return rank;
}

/*
 * At the end; but where policies go through the idle ones in order, those on several GPUs take turns there, the largest batches
 * first, so that a second job is for another GPU.
 */
static uint32_t place_of(const struct sl_workers *workers, const struct sl_executor *executor)
{
        uint32_t rank, at = 0;

        if (!executor->let || !executor->let->gpu.name[0])
                return workers->n;
        rank = rank_among(workers, workers->n, executor);
        while (at < workers->n && (workers->list[at]->batch_max > executor->batch_max ||
                                          (workers->list[at]->batch_max == executor->batch_max &&
                                                  rank_among(workers, at, workers->list[at]) <= rank)))
                at++;
        return at;
}

void sl_workers_add(struct sl_workers *workers, struct sl_executor *executor)
{
        uint32_t at = place_of(workers, executor);

        SL_ASSERT(sl_workers_all(workers) < SL_WORKERS_MAX);
        workers->list[sl_workers_all(workers)] = workers->list[workers->n];
        memmove(workers->list + at + 1, workers->list + at, (workers->n - at) * sizeof(*workers->list));
        workers->list[at] = executor;
        workers->n++;
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
