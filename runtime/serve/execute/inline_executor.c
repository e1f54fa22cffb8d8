/* SPDX-License-Identifier: Apache-2.0 */
#include "inline_executor.h"

#include "accumulator.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "batcher.h"
#include "carrier.h"
#include "own_time.h"
#include "sender.h"
#include "stop.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX  (4ull << 20) /* what takes microseconds touches less */
#define TRIALS     4u           /* the fastest counts */
#define HOPELESS   2u           /* a run that takes so many times the limit goes on no further, and is not tried as often */
#define SLOWER_MAX 100u         /* times, with denormal numbers, where processors are */
#define MET_SIZE   32u          /* of what is open, at which nodes are worth kernels */
#define DENORMAL   0x000116c2u  /* 1e-40f */

struct inline_executor {
        struct sl_executor common;
        struct sl_job_runner *runner;
        struct sl_accumulator *accumulator;
        uint64_t bound_ns, sample_ns;
        void *memory; /* of the jobs */
        uint32_t head, tail;
        struct sl_prediction answers[SL_JOB_PIECES_MAX]; /* of the one job that it has */
};

static struct inline_executor *inline_of(struct sl_executor *executor)
{
        return (struct inline_executor *)((char *)executor - offsetof(struct inline_executor, common));
}

/* ---- trial ---- */

static void fill_inputs(struct sl_batch *batch, const struct sl_plan_info *info, uint32_t bits)
{
        for (uint32_t i = 0; i < info->n_inputs; i++) {
                struct sl_tensor sample = {.dtype = info->inputs[i].dtype, .shape = info->inputs[i].shape};
                uint32_t *words = (uint32_t *)(uintptr_t)batch->inputs[i];

                if (info->inputs[i].batch_axis != SL_PORT_NO_BATCH)
                        sample.shape.dims[info->inputs[i].batch_axis] = 1;
                for (uint32_t k = 0; k < sample.shape.rank; k++)
                        if (sample.shape.dims[k] == SL_DIM_UNKNOWN)
                                sample.shape.dims[k] = 1;
                if (sample.dtype != SL_DTYPE_F32)
                        continue;
                for (uint64_t k = 0; k < sl_tensor_bytes(&sample) / sizeof(*words); k++)
                        words[k] = bits;
        }
}

/*
 * Own nanoseconds of one run, which ends early where there is no hope left, and where others have the CPU for too long: then it is
 * as if it had just missed being hopeless. UINT64_MAX: it cannot be run.
 */
static uint64_t time_run(struct sl_job_runner *runner, const struct sl_batch *batch, uint64_t limit_ns)
{
        const struct sl_stop stop = {.deadline_ns = sl_clock_ns() + HOPELESS * limit_ns};
        uint64_t begun_ns = sl_own_ns(), ns;
        int r;

        sl_instance_watch(sl_job_runner_instance(runner), &stop);
        r = sl_job_runner_try(runner, batch);
        sl_instance_watch(sl_job_runner_instance(runner), NULL);
        ns = sl_own_ns() - begun_ns;
        if (r < 0 && r != -ETIME)
                return UINT64_MAX;
        return r == -ETIME && ns < HOPELESS * limit_ns ? HOPELESS * limit_ns : ns;
}

/* What one sample of such inputs takes; UINT64_MAX: it cannot be run. @whether: only whether it keeps the limit is asked. */
static uint64_t time_sample(
        struct sl_job_runner *runner, const struct sl_plan_info *info, uint32_t bits, uint64_t limit_ns, bool whether)
{
        uint64_t best_ns = UINT64_MAX;
        bool goes_on = true;
        struct sl_batch batch;

        sl_batcher_pool(sl_job_runner_batcher(runner), info->batches[0], &batch);
        fill_inputs(&batch, info, bits);
        for (uint32_t i = 0; i < TRIALS && goes_on; i++) {
                uint64_t ns = time_run(runner, &batch, limit_ns);

                best_ns = ns < best_ns ? ns : best_ns;
                goes_on = best_ns <= HOPELESS * limit_ns && !(whether && best_ns <= limit_ns);
        }
        fill_inputs(&batch, info, 0);
        return best_ns;
}

static uint32_t samples_in(uint64_t bound_ns, uint64_t sample_ns, uint32_t most)
{
        uint64_t samples = sample_ns ? bound_ns / sample_ns : most;

        return samples < most ? (uint32_t)samples : most;
}

/* Each of its jobs has an end, however large it turns out to be. */
static bool is_any_size(const struct sl_plan_info *info)
{
        for (uint32_t i = 0; i < info->n_inputs; i++)
                if (sl_port_is_open(&info->inputs[i]))
                        return true;
        return false;
}

/* 0: even the smallest takes too much memory, or is too much the data's. */
static uint32_t choose_batch(const struct sl_job_runner_options *options)
{
        const struct sl_plan_info *info = sl_plan_info(options->plan);
        uint32_t chosen = 0;

        for (uint32_t i = 0; i < info->n_batches && info->batches[i] <= SL_INLINE_SAMPLES_MAX; i++)
                if (info->batches[i] <= options->batch_max && sl_job_runner_bytes(options->plan, info->batches[i]) <= BYTES_MAX &&
                        (is_any_size(info) || sl_plan_data_work(options->plan, info->batches[i]) <= SL_INLINE_DATA_STEPS))
                        chosen = info->batches[i];
        return chosen;
}

/* It has computed a sample: what it touches is there. Return: 0, with or without a runner; -ENOMEM. */
static int make_runner(const struct sl_job_runner_options *options, struct sl_job_runner **ret_runner)
{
        const struct sl_plan_info *info = sl_plan_info(options->plan);
        struct sl_job_runner *runner;
        struct sl_batch batch;
        int r = sl_job_runner_new(options, &runner);

        if (r < 0)
                return r;
        sl_batcher_pool(sl_job_runner_batcher(runner), info->batches[0], &batch);
        if (time_run(runner, &batch, SL_NS_PER_SECOND) == UINT64_MAX)
                runner = sl_job_runner_free(runner);
        if (runner && sl_job_runner_is_any_size(runner)) {
                sl_job_runner_meet(runner, MET_SIZE, sl_clock_ns() + SL_NS_PER_SECOND / 10);
                sl_instance_be_quick(sl_job_runner_instance(runner));
        }
        *ret_runner = runner;
        return 0;
}

int sl_inline_trial_run(const struct sl_job_runner_options *options, struct sl_job_runner *tried, uint64_t limit_ns,
        uint64_t bound_ns, struct sl_inline_trial *ret_trial)
{
        const struct sl_plan_info *info = sl_plan_info(options->plan);
        struct sl_job_runner_options own = *options;
        struct sl_job_runner *runner = NULL;
        uint64_t easy_ns, hard_ns;
        int r;

        *ret_trial = (struct sl_inline_trial){0};
        own.batch_max = choose_batch(options);
        easy_ns = own.batch_max ? time_sample(tried, info, 0, limit_ns, true) : UINT64_MAX;
        if (easy_ns > limit_ns)
                return 0;
        hard_ns = time_sample(tried, info, DENORMAL, bound_ns, false);
        if (hard_ns > bound_ns)
                return 0;
        r = make_runner(&own, &runner);
        if (r < 0 || !runner)
                return r;
        *ret_trial = (struct sl_inline_trial){
                .runner = runner,
                .samples = samples_in(bound_ns, hard_ns, own.batch_max),
                .bytes = sl_job_runner_bytes(options->plan, own.batch_max),
                .sample_ns = easy_ns < hard_ns ? easy_ns : hard_ns,
        };
        return 0;
}

/* ---- executor ---- */

static void answer(void *context, const struct sl_job *job, struct sl_prediction *prediction)
{
        struct inline_executor *self = context;

        if (!prediction->lost)
                sl_sender_deliver(self->accumulator, job, self->common.stats, prediction);
        self->answers[self->tail++] = *prediction;
}

void sl_inline_executor_begin(struct sl_executor *executor, struct sl_own_time *own, struct sl_job_run *ret_run)
{
        struct inline_executor *self = inline_of(executor);

        SL_ASSERT(self->head == self->tail);
        self->head = self->tail = 0;
        ret_run->runner = self->runner;
        ret_run->job = executor->slots[executor->oldest].job;
        ret_run->answer = answer;
        ret_run->context = self;
        ret_run->stats = executor->stats;
        ret_run->own = own;
        ret_run->way = NULL;
}

uint64_t sl_inline_executor_bound_ns(struct sl_executor *executor)
{
        return inline_of(executor)->bound_ns;
}

bool sl_inline_executor_is_short(struct sl_executor *executor)
{
        const struct inline_executor *self = inline_of(executor);
        const struct sl_job *job = executor->slots[executor->oldest].job;
        uint64_t samples = 0;

        if (sl_job_runner_is_any_size(inline_of(executor)->runner))
                return false;
        for (uint32_t i = 0; i < job->n_pieces; i++)
                samples += job->pieces[i].samples;
        return samples * self->sample_ns * SLOWER_MAX <= self->bound_ns;
}

static void compute(struct sl_executor *executor)
{
        uint64_t now_ns = sl_clock_ns();
        struct sl_own_time own;
        struct sl_job_run run;

        sl_own_time_begin(&own, sl_inline_executor_bound_ns(executor), now_ns);
        sl_inline_executor_begin(executor, sl_inline_executor_is_short(executor) ? NULL : &own, &run);
        if (sl_job_run_begin(&run, now_ns))
                sl_job_run_alone(&run, now_ns);
}

static void inline_give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        (void)slot;
        (void)from;
        if (executor->carrier)
                sl_carrier_fill(executor->carrier, executor->lane);
        else
                compute(executor);
}

int sl_inline_executor_join(struct sl_executor *executor, struct sl_carrier *carrier)
{
        int lane = sl_carrier_seat(carrier, executor);

        if (lane < 0)
                return lane;
        executor->carrier = carrier;
        executor->lane = (uint32_t)lane;
        return 0;
}

static bool inline_waiting(struct sl_executor *executor)
{
        return inline_of(executor)->head != inline_of(executor)->tail;
}

static bool inline_poll(struct sl_executor *executor, struct sl_prediction *ret_prediction)
{
        if (!inline_waiting(executor))
                return false;
        *ret_prediction = inline_of(executor)->answers[inline_of(executor)->head++];
        return true;
}

static void inline_stop(struct sl_executor *executor)
{
        struct inline_executor *self = inline_of(executor);

        if (executor->carrier)
                sl_carrier_leave(executor->carrier, executor);
        sl_job_runner_free(self->runner);
        free(self->memory);
        free(self);
}

static const struct sl_executor_class class = {.name = "inline",
        .is_immediate = true,
        .give = inline_give,
        .poll = inline_poll,
        .waiting = inline_waiting,
        .stop = inline_stop};

int sl_inline_executor_new(const struct sl_inline_trial *trial, const struct sl_plan *plan, uint64_t bound_ns,
        struct sl_accumulator *accumulator, struct sl_worker_stats *stats, struct sl_executor **ret_executor)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        struct inline_executor *self = calloc(1, sizeof(*self));
        void *memory = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(info->n_inputs, info->n_outputs));

        if (!self || !memory) {
                sl_job_runner_free(trial->runner);
                free(self);
                free(memory);
                return -ENOMEM;
        }
        self->common.class = &class;
        self->common.batch_max = trial->samples;
        self->common.stats = stats;
        self->memory = memory;
        self->runner = trial->runner;
        sl_job_runner_show(self->runner, stats);
        self->accumulator = accumulator;
        self->bound_ns = bound_ns;
        self->sample_ns = trial->sample_ns;
        sl_executor_init(&self->common, memory, SL_EXECUTOR_JOBS_MAX, info->n_inputs, info->n_outputs);
        sl_executor_say(&self->common, SL_EXECUTOR_READY, 0);
        *ret_executor = &self->common;
        return 0;
}
