#include "scheduler.h"

#include "accumulator.h"
#include "base/bytes.h"
#include "message.h"
#include "model.h"
#include "request.h"
#include "worker.h"

#include <errno.h>
#include <stdlib.h>

int sl_scheduler_init(struct sl_scheduler *scheduler, uint32_t segments)
{
        uint32_t slots = 1;

        while (slots < segments)
                slots <<= 1;
        *scheduler = (struct sl_scheduler){.mask = slots - 1};
        scheduler->tasks = calloc(slots, sizeof(*scheduler->tasks));
        return scheduler->tasks ? 0 : -ENOMEM;
}

void sl_scheduler_deinit(struct sl_scheduler *scheduler)
{
        free(scheduler->tasks);
        scheduler->tasks = NULL;
}

void sl_scheduler_push(struct sl_scheduler *scheduler, uint32_t segment, uint32_t member)
{
        scheduler->tasks[scheduler->tail++ & scheduler->mask] = (struct sl_task){.segment = segment, .member = member};
}

static uint32_t waiting(const struct sl_scheduler *scheduler)
{
        return scheduler->tail - scheduler->head;
}

static uint32_t count_idle(const struct sl_model *model)
{
        uint32_t idle = 0;

        for (uint32_t i = 0; i < model->n_workers; i++)
                idle += sl_worker_jobs(model->workers[i]) == 0;
        return idle;
}

/*
 * Fills a job from the queue: the first segment whatever its size, more as long as all fit one batch and no idle worker
 * goes without. Models without a batch take one segment at a time.
 */
static void fill_job(
        struct sl_model *model, struct sl_accumulator *accumulator, uint32_t share, uint64_t now_ns, struct sl_job *job)
{
        struct sl_scheduler *scheduler = &model->scheduler;
        uint32_t most = model->info->batchable ? share : 1;
        uint32_t samples = 0;

        *job = (struct sl_job){.kind = SL_JOB_PREDICT};
        while (waiting(scheduler) && job->n_segments < most && job->n_segments < SL_JOB_SEGMENTS_MAX) {
                struct sl_task task = scheduler->tasks[scheduler->head & scheduler->mask];
                struct sl_segment *segment = sl_accumulator_segment(accumulator, task.segment);

                if (job->n_segments && samples + segment->samples > model->workers[0]->batch_max)
                        break;
                samples += segment->samples;
                scheduler->head++;
                job->items[job->n_segments].segment = task.segment;
                job->items[job->n_segments++].member = task.member;
                if (!segment->request->assigned_ns)
                        segment->request->assigned_ns = now_ns;
        }
}

static void give(struct sl_model *model, struct sl_worker *worker, struct sl_accumulator *accumulator, uint32_t share,
        struct sl_wait *from, uint64_t now_ns)
{
        struct sl_job job;

        fill_job(model, accumulator, share, now_ns, &job);
        sl_worker_give(worker, &job, from);
}

/* Enough waits to fill a batch: what comes later could not have been gathered with it. */
static bool batch_waits(const struct sl_model *model, struct sl_accumulator *accumulator)
{
        const struct sl_scheduler *scheduler = &model->scheduler;
        uint32_t samples = 0;

        for (uint32_t i = scheduler->head; i != scheduler->tail; i++) {
                samples += sl_accumulator_segment(accumulator, scheduler->tasks[i & scheduler->mask].segment)->samples;
                if (samples >= model->workers[0]->batch_max)
                        return true;
        }
        return false;
}

/*
 * An only worker gets its next job while it computes, so that it need not wait for the dispatcher. Of several workers each gets
 * work when it is idle: which of them will be idle first is not known before.
 */
static uint32_t give_ahead(struct sl_model *model, struct sl_accumulator *accumulator, struct sl_wait *from, uint64_t now_ns)
{
        struct sl_worker *worker = model->workers[0];

        if (model->n_workers != 1 || sl_worker_jobs(worker) == SL_WORKER_JOBS_MAX || !batch_waits(model, accumulator))
                return 0;
        give(model, worker, accumulator, UINT32_MAX, from, now_ns);
        return 1;
}

uint32_t sl_scheduler_run(struct sl_model *model, struct sl_accumulator *accumulator, struct sl_wait *from, uint64_t now_ns)
{
        uint32_t idle, jobs = 0;

        if (!waiting(&model->scheduler))
                return 0;
        idle = count_idle(model);
        for (uint32_t i = 0; i < model->n_workers && idle && waiting(&model->scheduler); i++) {
                if (sl_worker_jobs(model->workers[i]))
                        continue;
                give(model, model->workers[i], accumulator, (waiting(&model->scheduler) + idle - 1) / idle, from, now_ns);
                idle--;
                jobs++;
        }
        return jobs + give_ahead(model, accumulator, from, now_ns);
}
