/* SPDX-License-Identifier: Apache-2.0 */
#include "job_runner.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "batcher.h"
#include "probe.h"
#include "stop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sl_job_runner {
        struct sl_job_runner_options options;
        const struct sl_plan_info *info;
        bool open_outputs; /* the shape of some output depends on the data */
        bool is_plain;
        struct sl_instance *instance;
        struct sl_batcher *batcher;
};

uint32_t sl_job_runner_batch_max(const struct sl_plan_info *info, uint32_t batch_max)
{
        uint32_t top = info->batches[0];

        for (uint32_t i = 0; i < info->n_batches; i++)
                if (info->batches[i] <= batch_max)
                        top = info->batches[i];
        return top;
}

uint64_t sl_job_runner_bytes(const struct sl_plan *plan, uint32_t batch_max)
{
        uint64_t bytes = sl_instance_bytes(plan, batch_max);

        return sl_add_overflows(bytes, sl_batcher_bytes(sl_plan_info(plan), batch_max), &bytes) ? UINT64_MAX : bytes;
}

static uint64_t pool_offset(const struct sl_plan *plan, uint32_t batch_max)
{
        return sl_align_up(sl_plan_workspace_bytes(plan, batch_max), SL_LINE_BYTES);
}

uint64_t sl_job_runner_room_bytes(const struct sl_plan *plan, uint32_t batch_max)
{
        uint64_t bytes = pool_offset(plan, batch_max);

        return sl_add_overflows(bytes, sl_batcher_pool_bytes(sl_plan_info(plan), batch_max), &bytes) ? UINT64_MAX : bytes;
}

uint64_t sl_job_runner_moved_bytes(const struct sl_plan *plan, uint32_t batch_max)
{
        return sl_plan_workspace_bytes(plan, batch_max) + sl_batcher_bytes(sl_plan_info(plan), batch_max);
}

void sl_job_runner_move(struct sl_job_runner *runner, void *room)
{
        sl_instance_move(runner->instance, room);
        sl_batcher_move(runner->batcher, (unsigned char *)room + pool_offset(runner->options.plan, runner->options.batch_max));
}

static bool has_open_outputs(const struct sl_plan_info *info)
{
        for (uint32_t i = 0; i < info->n_outputs; i++)
                if (sl_port_is_open(&info->outputs[i]))
                        return true;
        return false;
}

int sl_job_runner_new(const struct sl_job_runner_options *options, struct sl_job_runner **ret_runner)
{
        struct sl_job_runner *runner = calloc(1, sizeof(*runner));
        int r;

        if (!runner)
                return -ENOMEM;
        runner->options = *options;
        runner->info = sl_plan_info(options->plan);
        runner->open_outputs = has_open_outputs(runner->info);
        runner->is_plain = !options->fake && !runner->open_outputs && !sl_plan_is_dynamic(options->plan);
        r = sl_instance_new(options->plan, options->batch_max, &runner->instance, NULL);
        if (r == 0)
                r = sl_batcher_new(runner->info, options->batch_max, options->regions, &runner->batcher);
        if (r < 0) {
                sl_job_runner_free(runner);
                return r;
        }
        *ret_runner = runner;
        return 0;
}

struct sl_job_runner *sl_job_runner_free(struct sl_job_runner *runner)
{
        if (!runner)
                return NULL;
        sl_batcher_free(runner->batcher);
        sl_instance_free(runner->instance);
        free(runner);
        return NULL;
}

struct sl_instance *sl_job_runner_instance(struct sl_job_runner *runner)
{
        return runner->instance;
}

struct sl_batcher *sl_job_runner_batcher(struct sl_job_runner *runner)
{
        return runner->batcher;
}

/* What ends the work on a piece: looked at before it begins, and while it runs. */
static struct sl_stop stop_of(const struct sl_job_run *run, uint32_t piece)
{
        const struct sl_piece *p = &run->job->pieces[piece];

        return (struct sl_stop){.verdict = &run->runner->options.verdicts[p->segment], .deadline_ns = p->deadline_ns};
}

static int given_up(const struct sl_job_run *run, uint32_t piece)
{
        struct sl_stop stop = stop_of(run, piece);

        return sl_stop_look(&stop);
}

/* Where each output that says only afterwards how large it is tells it to. */
static void note_made(const struct sl_plan_info *info, struct sl_made_output *made, const struct sl_open_output *open)
{
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                struct sl_tensor tensor = {.dtype = info->outputs[i].dtype, .shape = open[i].shape};

                if (!sl_port_is_open(&info->outputs[i]))
                        continue;
                made[i].bytes = sl_tensor_bytes(&tensor);
                made[i].rank = tensor.shape.rank;
                for (uint32_t k = 0; k < tensor.shape.rank; k++)
                        made[i].dims[k] = (uint32_t)tensor.shape.dims[k];
        }
}

/* A model without a batch gets one piece at a time: its own, which is a whole request. */
static int run_open(const struct sl_job_run *run, const struct sl_batch *batch, struct sl_error *error)
{
        const struct sl_plan_info *info = run->runner->info;
        struct sl_made_output *made = run->job->made;
        struct sl_open_output open[SL_PLAN_PORTS_MAX];
        int r;

        for (uint32_t i = 0; i < info->n_outputs; i++)
                open[i] = (struct sl_open_output){.capacity_bytes = made[i].capacity_bytes};
        r = sl_instance_run_open(run->runner->instance, batch->samples, batch->inputs, batch->outputs, open, error);
        if (r == 0 || r == -EMSGSIZE)
                note_made(info, made, open);
        return r;
}

/* What is left when no network runs is the system's own. Sources: Pochelu et al. 2022, section IV.A. */
static int predict_zeros(const struct sl_plan_info *info, const struct sl_batch *batch)
{
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                struct sl_tensor output = {.dtype = info->outputs[i].dtype, .shape = info->outputs[i].shape};

                if (info->outputs[i].batch_axis != SL_PORT_NO_BATCH)
                        output.shape.dims[info->outputs[i].batch_axis] = batch->samples;
                memset(batch->outputs[i], 0, sl_tensor_bytes(&output));
        }
        return 0;
}

static int run_batch(const struct sl_job_run *run, const struct sl_batch *batch, struct sl_error *error)
{
        struct sl_job_runner *runner = run->runner;

        if (runner->options.fake)
                return predict_zeros(runner->info, batch);
        sl_instance_draw(runner->instance, batch->keys);
        if (runner->open_outputs)
                return run_open(run, batch, error);
        return sl_instance_run(runner->instance, batch->samples, batch->inputs, batch->outputs);
}

/*
 * What ends a request ends a batch that is its own; of several that were gathered, none may end the others. The end of the time
 * that the thread has ends any.
 */
static void watch_stop(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n)
{
        struct sl_stop stop = {0};

        if (n == 1)
                stop = stop_of(run, pieces[0]);
        stop.own = run->own;
        sl_instance_watch(run->runner->instance, &stop);
}

static bool tells_client(const struct sl_job_run *run, uint32_t piece, int r)
{
        return r == 0 || r == -ERANGE || r == -EMSGSIZE || r == -ENOMEM || r == -E2BIG || r == given_up(run, piece);
}

/* The text of @error says why it failed. -EAGAIN: it takes too long. @piece: the first. */
static int predict(const struct sl_job_run *run, uint32_t piece, uint32_t *ret_batches, struct sl_error *error)
{
        struct sl_job_runner *runner = run->runner;
        struct sl_batch batch;
        uint32_t batches = 0;
        int r = 0;

        while (r == 0 && sl_batcher_next(runner->batcher, runner->instance, &batch)) {
                r = run_batch(run, &batch, error);
                batches++;
        }
        *ret_batches = batches;
        if (r == -EAGAIN)
                return r;
        if (r == 0)
                sl_batcher_scatter(runner->batcher);
        else
                sl_instance_explain(runner->instance, r, error);
        return tells_client(run, piece, r) ? r : -EIO;
}

/* A verdict needs no words. */
static bool explain_failure(const struct sl_job_run *run, uint32_t piece, int status, const struct sl_error *error)
{
        struct sl_fault *fault = &run->job->faults[piece];

        if (status == 0 || status == -ETIME || status == -ECANCELED || !error->text[0])
                return false;
        sl_fault_clear(fault);
        sl_fault_tell(fault, error->text);
        return true;
}

static uint32_t count_samples(const struct sl_job *job, const uint32_t *pieces, uint32_t n)
{
        uint32_t samples = 0;

        for (uint32_t i = 0; i < n; i++)
                samples += job->pieces[pieces[i]].samples;
        return samples;
}

/* The first of them accounts for all. Behind the last one the job is the giver's again. */
static void answer_pieces(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n, const struct sl_prediction *prediction)
{
        for (uint32_t i = 0; i < n; i++) {
                struct sl_prediction own = *prediction;

                own.piece = pieces[i];
                own.samples = run->job->pieces[pieces[i]].samples;
                if (i > 0)
                        own.busy_ns = own.computing_ns = own.batches = own.job_samples = 0;
                run->answer(run->context, run->job, &own);
        }
}

/* One sample of a gathered batch with an index out of bounds must not fail the others: each is then run alone. */
static uint64_t run_pieces(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n, uint64_t begun_ns)
{
        struct sl_error error = {""};
        uint32_t batches, samples = count_samples(run->job, pieces, n);

        sl_batcher_begin(run->runner->batcher, run->job, pieces, n);
        watch_stop(run, pieces, n);
        uint64_t started_ns = n > 1 ? sl_clock_ns() : begun_ns;
        SL_PROBE(batch_started, run->job->pieces[pieces[0]].segment, n, samples);
        int status = predict(run, pieces[0], &batches, &error);
        uint64_t ended_ns = sl_clock_ns();
        SL_PROBE(batch_ended, run->job->pieces[pieces[0]].segment, n, status, ended_ns - started_ns);

        if (status == -EAGAIN) {
                answer_pieces(run, pieces, n,
                        &(struct sl_prediction){.status = -ETIME, .lost = SL_LOST_LONG, .busy_ns = ended_ns - begun_ns});
                return ended_ns;
        }
        if (status < 0 && n > 1) {
                for (uint32_t i = 0; i < n; i++)
                        ended_ns = run_pieces(run, &pieces[i], 1, ended_ns);
                return ended_ns;
        }
        bool explained = explain_failure(run, pieces[0], status, &error);
        answer_pieces(run, pieces, n,
                &(struct sl_prediction){
                        .status = status,
                        .explained = explained,
                        .batches = batches,
                        .started_ns = started_ns,
                        .staged_ns = ended_ns,
                        .busy_ns = ended_ns - begun_ns,
                        .computing_ns = ended_ns - started_ns,
                        .job_samples = samples,
                });
        return ended_ns;
}

uint64_t sl_job_runner_run(struct sl_job_runner *runner, struct sl_job *job, uint64_t begun_ns, sl_answer_fn *answer, void *context)
{
        struct sl_job_run run = {.runner = runner, .job = job, .answer = answer, .context = context};

        return sl_job_run_begin(&run, begun_ns) ? sl_job_run_alone(&run, begun_ns) : begun_ns;
}

/* ---- in steps ---- */

bool sl_job_runner_is_plain(const struct sl_job_runner *runner)
{
        return runner->is_plain;
}

uint32_t sl_job_run_batch(const struct sl_job_run *run)
{
        uint32_t samples = 0;

        for (uint32_t i = 0; i < run->job->n_pieces; i++)
                samples += run->job->pieces[i].samples;
        return run->runner->info->batchable ? samples : 1;
}

bool sl_job_run_begin(struct sl_job_run *run, uint64_t now_ns)
{
        struct sl_job *job = run->job;
        uint32_t n_pieces = job->n_pieces; /* with its last answer the job is gone */

        run->n = 0;
        run->samples = 0;
        for (uint32_t i = 0; i < n_pieces; i++) {
                int status = given_up(run, i);

                if (status < 0) {
                        run->answer(run->context, job, &(struct sl_prediction){.piece = i, .status = status, .staged_ns = now_ns});
                        continue;
                }
                run->samples += job->pieces[i].samples;
                run->pieces[run->n++] = i;
        }
        return run->n > 0;
}

uint64_t sl_job_run_alone(struct sl_job_run *run, uint64_t begun_ns)
{
        return run_pieces(run, run->pieces, run->n, begun_ns);
}

void sl_job_run_lend(struct sl_job_run *run, void *pool, uint32_t samples, struct sl_batch *ret_batch)
{
        struct sl_batcher *batcher = run->runner->batcher;

        SL_PROBE(batch_started, run->job->pieces[run->pieces[0]].segment, run->n, run->samples);
        sl_batcher_lend(batcher, pool, samples);
        sl_batcher_begin(batcher, run->job, run->pieces, run->n);
        sl_batcher_whole(batcher, ret_batch);
}

void sl_job_run_return(struct sl_job_run *run, bool is_done)
{
        if (is_done)
                sl_batcher_scatter(run->runner->batcher);
        sl_batcher_return(run->runner->batcher);
}

void sl_job_run_done(const struct sl_job_run *run, const struct sl_job_share *share)
{
        SL_PROBE(batch_ended, run->job->pieces[run->pieces[0]].segment, run->n, 0, share->computing_ns);
        answer_pieces(run, run->pieces, run->n,
                &(struct sl_prediction){
                        .batches = 1,
                        .started_ns = share->started_ns,
                        .staged_ns = share->ended_ns,
                        .busy_ns = share->busy_ns,
                        .computing_ns = share->computing_ns,
                        .job_samples = run->samples,
                });
}
