/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of one model, of which there may be none for a while: those that take jobs, and behind them those that leave, which
 * finish the jobs that they have and take no more.
 *
 *     (none) --add--> TAKES JOBS --dismiss--> LEAVES --has answered all--> gone (sl_workers_gone, sl_workers_forget)
 *
 * Owner: control until ADD_MODEL and from MODEL_GONE on, the dispatcher in between. The executors are control's to free.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_executor;

#define SL_WORKERS_MAX 64 /* data-parallel instances of a model */

struct sl_workers {
        uint32_t n;         /* [0, n) take jobs */
        uint32_t n_leaving; /* [n, n + n_leaving) leave */
        struct sl_executor *list[SL_WORKERS_MAX];
};

/* All that may have jobs. */
static inline uint32_t sl_workers_all(const struct sl_workers *workers)
{
        return workers->n + workers->n_leaving;
}

/* There is room: control adds no more than SL_WORKERS_MAX, those that leave counted. */
void sl_workers_add(struct sl_workers *workers, struct sl_executor *executor);

/* It takes no more jobs. False: it is none of those that take some. */
bool sl_workers_dismiss(struct sl_workers *workers, const struct sl_executor *executor);

/* Dismisses those that have ended by themselves. */
void sl_workers_dismiss_ended(struct sl_workers *workers);

/* One of those that leave which has answered all that it was given; NULL: there is none. */
struct sl_executor *sl_workers_gone(const struct sl_workers *workers);

/* It is out of the list. Looks at nothing of the executor, which may be freed already. */
void sl_workers_forget(struct sl_workers *workers, const struct sl_executor *executor);
