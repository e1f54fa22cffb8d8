/* SPDX-License-Identifier: Apache-2.0 */
#include "standby.h"

#include "crew.h"
#include "executor.h"
#include "model.h"
#include "plan.h"
#include "stats.h"

static bool has_computed(const struct sl_crew *crew)
{
        for (uint32_t i = 0; i < crew->n; i++)
                if (crew->workers[i].seat && sl_counter_read(&crew->workers[i].seat->samples))
                        return true;
        return false;
}

/* Those that run a sample in the runtime's threads: a process has its own mapping of the plan. */
static uint64_t first_ns_of(const struct sl_crew *crew)
{
        for (uint32_t i = 0; i < crew->n && !crew->options.own_process; i++) {
                const struct sl_executor *executor = crew->workers[i].executor;

                if (executor && sl_executor_started(executor) == SL_EXECUTOR_READY && executor->first_ns)
                        return executor->first_ns;
        }
        return 0;
}

struct sl_standby sl_standby_of(const struct sl_model *model)
{
        struct sl_standby standby = {.plan = sl_plan_hold(model->plan), .begun = model->begun};

        if (model->crew) {
                standby.file = model->crew->options.file;
                standby.fell_back = model->crew->options.fell_back;
                standby.first_ns = has_computed(model->crew) ? first_ns_of(model->crew) : 0;
        }
        return standby;
}

struct sl_standby sl_standby_hold(const struct sl_standby *standby)
{
        sl_plan_hold(standby->plan);
        return *standby;
}

void sl_standby_end(struct sl_standby *standby)
{
        sl_plan_free(standby->plan);
        *standby = (struct sl_standby){.plan = NULL};
}
