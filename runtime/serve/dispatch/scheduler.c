/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler.h"

#include "bundle.h"
#include "handout.h"
#include "inline_run.h"
#include "model.h"

#include <string.h>

int sl_scheduler_init(struct sl_scheduler *scheduler, uint32_t segments)
{
        *scheduler = (struct sl_scheduler){0};
        for (uint32_t i = 0; i < SL_CLASSES; i++) {
                int r = sl_task_queue_init(&scheduler->queues[i], 2 * segments); /* pieces that come back are tasks of their own */

                if (r < 0) {
                        sl_scheduler_deinit(scheduler);
                        return r;
                }
        }
        return 0;
}

void sl_scheduler_deinit(struct sl_scheduler *scheduler)
{
        for (uint32_t i = 0; i < SL_CLASSES; i++)
                sl_task_queue_deinit(&scheduler->queues[i]);
}

void sl_scheduler_push(struct sl_scheduler *scheduler, const struct sl_task *task, uint32_t priority)
{
        scheduler->classes |= 1u << priority;
        sl_task_queue_push(&scheduler->queues[priority], task);
}

/* Half of the places are for a task of each segment, which is sure to have one. */
uint32_t sl_scheduler_room(const struct sl_scheduler *scheduler, uint32_t priority)
{
        const struct sl_task_queue *queue = &scheduler->queues[priority];
        uint32_t length = sl_task_queue_length(queue), half = (queue->mask + 1) / 2;

        return length < half ? half - length : 1;
}

bool sl_scheduler_return(struct sl_scheduler *scheduler, const struct sl_task *task, uint32_t priority)
{
        scheduler->classes |= 1u << priority;
        return sl_task_queue_return(&scheduler->queues[priority], task);
}

bool sl_scheduler_waits(const struct sl_scheduler *scheduler)
{
        for (uint32_t left = scheduler->classes; left; left &= left - 1)
                if (sl_task_queue_length(&scheduler->queues[__builtin_ctz(left)]))
                        return true;
        return false;
}

uint32_t sl_scheduler_drop(struct sl_scheduler *scheduler, bool (*ends)(void *context, const struct sl_task *task), void *context)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < SL_CLASSES; i++)
                n += sl_task_queue_drop(&scheduler->queues[i], ends, context);
        return n;
}

/* @spares_inline: what the dispatcher may compute itself is left to it. */
static uint32_t run_workers(const struct sl_schedule *schedule, uint32_t priority, bool spares_inline)
{
        uint32_t jobs = 0;

        for (struct sl_model *model = schedule->waiting[priority]; model; model = model->next_waiting[priority]) {
                struct sl_handout handout = sl_handout_of(schedule, model, priority);

                if (!model->bundle && (!spares_inline || !sl_handout_is_inline(&handout)))
                        jobs += sl_handout_run(&handout);
        }
        for (struct sl_bundle *bundle = schedule->bundles; bundle; bundle = bundle->next)
                jobs += sl_bundle_run(schedule, bundle, priority, spares_inline);
        return jobs;
}

/* Where there is no worker nothing can be done for what waits: it holds up nobody. */
static bool class_waits(const struct sl_schedule *schedule, uint32_t priority)
{
        for (const struct sl_model *model = schedule->waiting[priority]; model; model = model->next_waiting[priority])
                if (model->workers.n && sl_task_queue_length(&model->scheduler.queues[priority]))
                        return true;
        return false;
}

/* Workers first, so that they compute meanwhile. What the dispatcher has no time for, or should not take time for, they get as
 * well. */
static uint32_t run_class(const struct sl_schedule *schedule, uint32_t priority, bool more_urgent_waits)
{
        const struct sl_inline_budget *budget = schedule->budget;
        bool computes = budget->left_ns > 0 && !more_urgent_waits;
        bool keeps = budget->kept && (budget->keeps || budget->kept_class == priority);
        uint32_t jobs = run_workers(schedule, priority, computes || keeps);

        if (!computes)
                return jobs;
        jobs += sl_inline_run(schedule, priority);
        if (budget->left_ns == 0 && !budget->kept)
                jobs += run_workers(schedule, priority, false);
        return jobs;
}

static void add_waiting(struct sl_model *model, uint32_t priority, struct sl_model ***end)
{
        model->next_waiting[priority] = NULL;
        **end = model;
        *end = &model->next_waiting[priority];
        if (model->bundle)
                model->bundle->waiting[priority] |= UINT64_C(1) << model->place;
}

/* In each class, as what is busy need not wait: most of it is with workers, and requests are of one class mostly. */
static void find_waiting(struct sl_schedule *schedule)
{
        struct sl_model **ends[SL_CLASSES];

        for (uint32_t i = 0; i < SL_CLASSES; i++) {
                schedule->waiting[i] = NULL;
                ends[i] = &schedule->waiting[i];
        }
        for (struct sl_bundle *bundle = schedule->bundles; bundle; bundle = bundle->next)
                memset(bundle->waiting, 0, sizeof(bundle->waiting));
        for (struct sl_model *model = schedule->models; model; model = model->next_busy)
                for (uint32_t left = model->scheduler.classes; left; left &= left - 1) {
                        uint32_t priority = (uint32_t)__builtin_ctz(left);

                        if (sl_task_queue_length(&model->scheduler.queues[priority]))
                                add_waiting(model, priority, &ends[priority]);
                        else
                                model->scheduler.classes &= ~(1u << priority);
                }
}

uint32_t sl_scheduler_run(struct sl_schedule *schedule)
{
        bool urgent = false;
        uint32_t jobs = 0;

        schedule->budget->jobs = 0;
        schedule->budget->now_ns = schedule->now_ns;
        *schedule->ret_next_ns = UINT64_MAX;
        *schedule->ret_full = false;
        find_waiting(schedule);
        for (uint32_t i = 0; i < SL_CLASSES; i++) {
                if (!schedule->waiting[i])
                        continue;
                jobs += run_class(schedule, i, urgent);
                urgent |= class_waits(schedule, i);
        }
        return jobs;
}
