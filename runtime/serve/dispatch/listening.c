/* SPDX-License-Identifier: Apache-2.0 */
#include "listening.h"

#include "dispatcher_state.h"
#include "executor.h"
#include "wait.h"

static uint64_t token_of(const struct sl_executor *worker)
{
        return (uint64_t)(uintptr_t)worker;
}

/* What is not watched is heard when the dispatcher next wakes: it never sleeps without a limit. */
void sl_workers_watch(struct sl_dispatcher *d, const struct sl_executor *worker)
{
        if (worker->wake_fd >= 0)
                (void)sl_wait_watch(d->wait, worker->wake_fd, token_of(worker));
}

void sl_workers_unwatch(struct sl_dispatcher *d, const struct sl_executor *worker)
{
        if (worker->wake_fd >= 0)
                (void)sl_wait_unwatch(d->wait, token_of(worker));
}

void sl_workers_listen(const struct sl_dispatcher *d, bool listening)
{
        for (const struct sl_model *model = d->busy.first; model; model = model->next_busy)
                for (uint32_t i = 0; i < sl_workers_all(&model->workers); i++)
                        sl_executor_listen(model->workers.list[i], listening);
}
