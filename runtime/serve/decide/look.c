/* SPDX-License-Identifier: Apache-2.0 */
#include "look.h"

#include <string.h>

static bool more_urgent_waits(const struct sl_task_queue queues[SL_CLASSES], uint32_t priority)
{
        for (uint32_t i = 0; i < priority; i++)
                if (sl_task_queue_length(&queues[i]))
                        return true;
        return false;
}

void sl_look_begin(struct sl_look *look, struct sl_policy_view *view, const struct sl_task_queue queues[SL_CLASSES],
        uint32_t priority, uint64_t run)
{
        look->view = view;
        look->priority = priority;
        look->run = run;
        view->waiting = &queues[priority];
        view->more_urgent_waits = more_urgent_waits(queues, priority);
        view->at_once = 0;
        view->n_lets = 0;
        view->n_workers = 0;
}

/* What it was shown as last time holds only if the view says so. */
static uint32_t show_let(struct sl_look *look, struct sl_turns *turns)
{
        struct sl_policy_view *view = look->view;

        if (turns->shown < view->n_lets && look->lets[turns->shown] == turns)
                return turns->shown;
        turns->shown = view->n_lets++;
        view->at_once += turns->at_once;
        look->lets[turns->shown] = turns;
        view->starts_max[turns->shown] = sl_turns_left(turns, look->priority, look->run);
        return turns->shown;
}

void sl_look_at(struct sl_look *look, const struct sl_policy_worker *worker, struct sl_turns *turns)
{
        struct sl_policy_worker *shown = &look->view->workers[look->view->n_workers++];

        *shown = *worker;
        shown->let = show_let(look, turns);
}

_Static_assert(SL_POLICY_WORKERS_MAX <= 64, "a bit for each worker");

bool sl_look_lacks_workers(const struct sl_look *look, const struct sl_decision *decisions, uint32_t n)
{
        const struct sl_policy_view *view = look->view;
        uint32_t left[SL_POLICY_WORKERS_MAX];
        uint64_t given = 0;

        if (!sl_task_queue_length(view->waiting))
                return false;
        memcpy(left, view->starts_max, view->n_lets * sizeof(*left));
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_policy_worker *worker = &view->workers[decisions[i].worker];

                given |= UINT64_C(1) << decisions[i].worker;
                left[worker->let] -= left[worker->let] > 0;
        }
        for (uint32_t i = 0; i < view->n_workers; i++)
                if (!view->workers[i].jobs && !(given >> i & 1) && left[view->workers[i].let])
                        return false;
        return true;
}

void sl_look_end(const struct sl_look *look)
{
        if (!sl_task_queue_length(look->view->waiting))
                return;
        for (uint32_t i = 0; i < look->view->n_lets; i++)
                sl_turns_wait(look->lets[i], look->priority, look->run);
}
