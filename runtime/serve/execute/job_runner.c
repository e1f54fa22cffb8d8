/* SPDX-License-Identifier: Apache-2.0 */
#include "job_runner.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "batcher.h"
#include "growth.h"
#include "probe.h"
#include "stats.h"
#include "stop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sl_job_runner {
        struct sl_job_runner_options options;
        const struct sl_plan_info *info;
        bool open_outputs; /* the shape of some output depends on the data */
        bool open_inputs;  /* its plan is of any size */
        bool is_plain;
        struct sl_instance *instance;
        struct sl_batcher *batcher;
        struct sl_open_output *open;       /* [info->n_outputs] of open outputs; NULL */
        struct sl_shape *shapes;           /* [info->n_inputs] of open inputs; NULL */
        struct sl_instance_part *parts;    /* [SL_JOB_ALIKE_MAX] of a plan of any size, with all that they point to; NULL */
        struct sl_growth_share growth;     /* of a plan with data-dependent steps */
        const struct sl_job *job;          /* of a run: which says what room its outputs have, */
        uint32_t piece;                    /* and this piece's are made */
        uint64_t lacked_bytes;             /* of a run: of an output for which there was no memory; 0: there was */
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

static bool some_port_is_open(const struct sl_port *ports, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (sl_port_is_open(&ports[i]))
                        return true;
        return false;
}

/* In one allocation. */
static int make_parts(struct sl_job_runner *runner)
{
        uint32_t n_inputs = runner->info->n_inputs, n_outputs = runner->info->n_outputs;
        size_t each = sizeof(*runner->parts) + (n_inputs + n_outputs) * sizeof(void *) + n_outputs * sizeof(struct sl_open_output);
        struct sl_open_output *open;
        void **pointers;

        runner->parts = calloc(SL_JOB_ALIKE_MAX, each);
        if (!runner->parts)
                return -ENOMEM;
        open = (struct sl_open_output *)(runner->parts + SL_JOB_ALIKE_MAX);
        pointers = (void **)(open + (size_t)SL_JOB_ALIKE_MAX * n_outputs);
        for (uint32_t i = 0; i < SL_JOB_ALIKE_MAX; i++) {
                runner->parts[i].open = open + (size_t)i * n_outputs;
                runner->parts[i].inputs = (const void *const *)pointers;
                runner->parts[i].outputs = pointers + n_inputs;
                pointers += n_inputs + n_outputs;
        }
        return 0;
}

static int make_shapes(struct sl_job_runner *runner)
{
        const struct sl_plan_info *info = runner->info;

        if (runner->open_outputs)
                runner->open = calloc(info->n_outputs, sizeof(*runner->open));
        if (runner->open_inputs)
                runner->shapes = calloc(info->n_inputs, sizeof(*runner->shapes));
        if ((!runner->open && runner->open_outputs) || (!runner->shapes && runner->open_inputs))
                return -ENOMEM;
        return runner->open_inputs && runner->open_outputs ? make_parts(runner) : 0;
}

int sl_job_runner_new(const struct sl_job_runner_options *options, struct sl_job_runner **ret_runner)
{
        struct sl_job_runner *runner = calloc(1, sizeof(*runner));
        int r;

        if (!runner)
                return -ENOMEM;
        runner->options = *options;
        runner->info = sl_plan_info(options->plan);
        runner->open_outputs = some_port_is_open(runner->info->outputs, runner->info->n_outputs);
        runner->open_inputs = some_port_is_open(runner->info->inputs, runner->info->n_inputs);
        runner->is_plain = !options->fake && !runner->open_outputs && !sl_plan_is_dynamic(options->plan);
        sl_growth_share_init(&runner->growth, options->growth, NULL);
        r = sl_instance_new(options->plan, options->batch_max, &runner->instance, NULL);
        if (r == 0)
                r = sl_batcher_new(runner->info, options->batch_max, options->regions, &runner->batcher);
        if (r == 0)
                r = make_shapes(runner);
        if (r == 0 && sl_plan_is_dynamic(options->plan))
                sl_instance_lend(runner->instance, options->growth ? &runner->growth.grant : options->grant);
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
        sl_growth_share_end(&runner->growth);
        free(runner->open);
        free(runner->shapes);
        free(runner->parts);
        free(runner);
        return NULL;
}

/* What it has taken of memory_max. */
static void show(struct sl_job_runner *runner)
{
        struct sl_worker_stats *stats = runner->growth.stats;

        if (runner->growth.grant.bytes)
                sl_growth_share_show(&runner->growth);
        if (stats && runner->open_inputs)
                sl_counter_set(&stats->packed_bytes, sl_plan_packed_bytes(runner->options.plan));
}

void sl_job_runner_show(struct sl_job_runner *runner, struct sl_worker_stats *stats)
{
        runner->growth.stats = stats;
        sl_growth_share_show(&runner->growth);
        show(runner);
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

/* What the requests say of the inputs of a plan of any size: the first one's shapes, with the rows of all. */
static void give_shapes(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n)
{
        struct sl_job_runner *runner = run->runner;
        const struct sl_made_output *given = sl_job_given(run->job);
        int64_t rows = 0;

        for (uint32_t i = 0; i < n; i++)
                rows += run->job->pieces[pieces[i]].rows;
        for (uint32_t i = 0; i < runner->info->n_inputs; i++) {
                runner->shapes[i] = (struct sl_shape){.rank = given[i].rank};
                for (uint32_t k = 0; k < given[i].rank; k++)
                        runner->shapes[i].dims[k] = given[i].dims[k];
                if (rows && given[i].rank)
                        runner->shapes[i].dims[0] = rows;
        }
        sl_instance_give(runner->instance, runner->shapes);
}

/* The client's buffer has room, and so have the outputs here once there is memory for them. */
static bool make_room(struct sl_open_output *open, uint64_t bytes)
{
        struct sl_job_runner *runner = open->context;
        uint32_t output = (uint32_t)(open - runner->open);

        if (bytes > sl_job_made(runner->job, runner->piece)[output].capacity_bytes)
                return false;
        if (!runner->options.make_room(
                    runner->options.room_context, output, sl_job_room(runner->job, runner->piece, output) + bytes)) {
                runner->lacked_bytes = bytes;
                return false;
        }
        open->capacity_bytes = bytes;
        return true;
}

static struct sl_open_output open_output(struct sl_job_runner *runner, const struct sl_made_output *made)
{
        if (!runner->options.make_room)
                return (struct sl_open_output){.capacity_bytes = made->capacity_bytes};
        return (struct sl_open_output){.more = make_room, .context = runner};
}

/* A model without a batch gets one piece at a time: its own, which is a whole request. */
static int run_open(const struct sl_job_run *run, uint32_t piece, const struct sl_batch *batch, struct sl_error *error)
{
        const struct sl_plan_info *info = run->runner->info;
        struct sl_made_output *made = sl_job_made(run->job, piece);
        struct sl_open_output *open = run->runner->open;
        int r;

        run->runner->job = run->job;
        run->runner->piece = piece;
        run->runner->lacked_bytes = 0;
        for (uint32_t i = 0; i < info->n_outputs; i++)
                open[i] = open_output(run->runner, &made[i]);
        r = sl_instance_run_open(run->runner->instance, batch->samples, batch->inputs, batch->outputs, open, error);
        if (r == -EMSGSIZE && run->runner->lacked_bytes)
                return sl_error_set(error, ENOMEM, "there is no memory for an output of %llu bytes in a process of its own",
                        (unsigned long long)run->runner->lacked_bytes);
        if (r == 0 || r == -EMSGSIZE)
                note_made(info, made, open);
        return r;
}

static void fill_part(const struct sl_job_run *run, uint32_t piece, struct sl_instance_part *part)
{
        const struct sl_job_runner *runner = run->runner;
        const struct sl_place *inputs = sl_job_inputs(run->job, piece), *outputs = sl_job_outputs(run->job, piece);
        const void **from = (const void **)(uintptr_t)part->inputs;
        void **to = (void **)(uintptr_t)part->outputs;

        part->rows = run->job->pieces[piece].rows;
        for (uint32_t i = 0; i < runner->info->n_inputs; i++)
                from[i] = sl_regions_at(runner->options.regions, &inputs[i]);
        for (uint32_t i = 0; i < runner->info->n_outputs; i++) {
                to[i] = outputs[i].region == SL_NO_REGION ? NULL : sl_regions_at(runner->options.regions, &outputs[i]);
                part->open[i] = (struct sl_open_output){.capacity_bytes = sl_job_made(run->job, piece)[i].capacity_bytes};
        }
}

/* For the last of them, behind the others. */
static bool make_room_for_parts(const struct sl_job_run *run, uint32_t last)
{
        const struct sl_job_runner_options *options = &run->runner->options;

        for (uint32_t i = 0; i < run->runner->info->n_outputs && options->make_room; i++) {
                uint64_t bytes = sl_job_room(run->job, last, i) + sl_job_made(run->job, last)[i].capacity_bytes;

                if (!options->make_room(options->room_context, i, bytes))
                        return false;
        }
        return true;
}

/* Several requests of a plan of any size, which differ in nothing but their rows. */
static int run_parts(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n, struct sl_error *error)
{
        struct sl_job_runner *runner = run->runner;
        int r;

        if (!make_room_for_parts(run, pieces[n - 1]))
                return sl_error_set(error, ENOMEM, "there is no memory for the outputs of %u requests at once", n);
        for (uint32_t i = 0; i < n; i++)
                fill_part(run, pieces[i], &runner->parts[i]);
        give_shapes(run, pieces, n);
        r = sl_instance_run_parts(runner->instance, runner->info->batches[0], runner->parts, n, error);
        sl_instance_give(runner->instance, NULL);
        for (uint32_t i = 0; i < n && r == 0; i++)
                note_made(runner->info, sl_job_made(run->job, pieces[i]), runner->parts[i].open);
        show(runner);
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

/* @piece: the first. */
static int run_batch(const struct sl_job_run *run, uint32_t piece, const struct sl_batch *batch, struct sl_error *error)
{
        struct sl_job_runner *runner = run->runner;
        int r;

        if (runner->options.fake)
                return predict_zeros(runner->info, batch);
        sl_instance_draw(runner->instance, batch->keys);
        if (runner->open_inputs)
                give_shapes(run, &piece, 1);
        if (runner->open_outputs)
                r = run_open(run, piece, batch, error);
        else
                r = sl_instance_run(runner->instance, batch->samples, batch->inputs, batch->outputs);
        if (runner->open_inputs)
                sl_instance_give(runner->instance, NULL);
        show(runner);
        return r;
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
        stop.way = run->way;
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
                r = run_batch(run, piece, &batch, error);
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

/* Answers those that fit; what is too small for its outputs is run by itself, and told so. Return: how many are left of @pieces. */
static uint32_t answer_parts(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n,
        const struct sl_prediction *prediction, uint32_t *ret_left)
{
        uint32_t done[SL_JOB_ALIKE_MAX], n_done = 0, n_left = 0;

        for (uint32_t i = 0; i < n; i++)
                if (run->runner->parts[i].is_too_small)
                        ret_left[n_left++] = pieces[i];
                else
                        done[n_done++] = pieces[i];
        answer_pieces(run, done, n_done, prediction);
        return n_left;
}

static uint64_t run_pieces(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n, uint64_t begun_ns);

/* Between two steps. */
static void answer_left(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n, uint64_t ns)
{
        answer_pieces(run, pieces, n,
                &(struct sl_prediction){.status = -ETIME, .lost = run->way ? SL_LOST_YIELDED : SL_LOST_LONG, .busy_ns = ns});
}

/* So far. */
static uint64_t paused_ns(const struct sl_job_run *run)
{
        return run->way ? run->way->paused_ns : 0;
}

static uint64_t run_each(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n, uint64_t begun_ns)
{
        for (uint32_t i = 0; i < n; i++)
                begun_ns = run_pieces(run, &pieces[i], 1, begun_ns);
        return begun_ns;
}

/* @n: 2 or more. As run_pieces(), of a plan of any size. */
static uint64_t run_alike(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n, uint64_t begun_ns)
{
        uint32_t left[SL_JOB_ALIKE_MAX], n_left;
        struct sl_error error = {""};
        int status;

        watch_stop(run, pieces, n);
        uint64_t before_ns = paused_ns(run);
        SL_PROBE(batch_started, run->job->pieces[pieces[0]].segment, n, count_samples(run->job, pieces, n));
        status = run_parts(run, pieces, n, &error);
        uint64_t ended_ns = sl_clock_ns(), busy_ns = ended_ns - begun_ns - (paused_ns(run) - before_ns);
        SL_PROBE(batch_ended, run->job->pieces[pieces[0]].segment, n, status, busy_ns);

        if (status == -EAGAIN) {
                answer_left(run, pieces, n, busy_ns);
                return ended_ns;
        }
        if (status < 0)
                return run_each(run, pieces, n, ended_ns);
        n_left = answer_parts(run, pieces, n,
                &(struct sl_prediction){
                        .batches = 1,
                        .started_ns = begun_ns,
                        .staged_ns = ended_ns,
                        .busy_ns = busy_ns,
                        .computing_ns = busy_ns,
                        .job_samples = count_samples(run->job, pieces, n),
                },
                left);
        return run_each(run, left, n_left, ended_ns);
}

/* One sample of a gathered batch with an index out of bounds must not fail the others: each is then run alone. */
static uint64_t run_pieces(const struct sl_job_run *run, const uint32_t *pieces, uint32_t n, uint64_t begun_ns)
{
        struct sl_error error = {""};
        uint32_t batches, samples = count_samples(run->job, pieces, n);

        if (n > 1 && run->runner->parts)
                return run_alike(run, pieces, n, begun_ns);
        sl_batcher_begin(run->runner->batcher, run->job, pieces, n);
        watch_stop(run, pieces, n);
        uint64_t started_ns = n > 1 ? sl_clock_ns() : begun_ns, before_ns = paused_ns(run);
        SL_PROBE(batch_started, run->job->pieces[pieces[0]].segment, n, samples);
        int status = predict(run, pieces[0], &batches, &error);
        uint64_t ended_ns = sl_clock_ns(), computing_ns = ended_ns - started_ns - (paused_ns(run) - before_ns);
        uint64_t busy_ns = started_ns - begun_ns + computing_ns;
        SL_PROBE(batch_ended, run->job->pieces[pieces[0]].segment, n, status, computing_ns);

        if (status == -EAGAIN) {
                answer_left(run, pieces, n, busy_ns);
                return ended_ns;
        }
        if (status < 0 && n > 1)
                return run_each(run, pieces, n, ended_ns);
        bool explained = explain_failure(run, pieces[0], status, &error);
        answer_pieces(run, pieces, n,
                &(struct sl_prediction){
                        .status = status,
                        .explained = explained,
                        .batches = batches,
                        .started_ns = started_ns,
                        .staged_ns = ended_ns,
                        .busy_ns = busy_ns,
                        .computing_ns = computing_ns,
                        .job_samples = samples,
                });
        return ended_ns;
}

uint64_t sl_job_runner_run(struct sl_job_runner *runner, struct sl_job *job, uint64_t begun_ns, sl_answer_fn *answer, void *context)
{
        struct sl_job_run run = {.runner = runner, .job = job, .answer = answer, .context = context};

        return sl_job_run_begin(&run, begun_ns) ? sl_job_run_alone(&run, begun_ns) : begun_ns;
}

bool sl_job_runner_is_any_size(const struct sl_job_runner *runner)
{
        return runner->open_inputs;
}

int sl_job_runner_try(struct sl_job_runner *runner, const struct sl_batch *batch)
{
        int r;

        if (!runner->open_outputs)
                return sl_instance_run(runner->instance, batch->samples, batch->inputs, batch->outputs);
        memset(runner->open, 0, runner->info->n_outputs * sizeof(*runner->open));
        r = sl_instance_run_open(runner->instance, batch->samples, batch->inputs, batch->outputs, runner->open, NULL);
        return r == -EMSGSIZE ? 0 : r;
}

static uint64_t set_size(struct sl_job_runner *runner, uint32_t input, uint32_t size)
{
        const struct sl_port *port = &runner->info->inputs[input];
        struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};

        for (uint32_t k = 0; k < tensor.shape.rank; k++)
                if (tensor.shape.dims[k] == SL_DIM_UNKNOWN)
                        tensor.shape.dims[k] = size;
        runner->shapes[input] = tensor.shape;
        return sl_tensor_bytes(&tensor);
}

/* Of one input: all of them read the same zeros. */
#define MEET_BYTES_MAX (4ull << 20)

void sl_job_runner_meet(struct sl_job_runner *runner, uint32_t size, uint64_t until_ns)
{
        const struct sl_stop stop = {.deadline_ns = until_ns};
        struct sl_instance_part *part = runner->parts;
        uint64_t bytes = 1;
        void *zeros;

        for (uint32_t i = 0; part && i < runner->info->n_inputs; i++) {
                uint64_t own = set_size(runner, i, size);

                bytes = own > bytes ? own : bytes;
        }
        zeros = part && bytes <= MEET_BYTES_MAX ? calloc(1, bytes) : NULL;
        if (!zeros)
                return;
        for (uint32_t i = 0; i < runner->info->n_inputs; i++)
                ((const void **)(uintptr_t)part->inputs)[i] = zeros;
        for (uint32_t i = 0; i < runner->info->n_outputs; i++)
                ((void **)(uintptr_t)part->outputs)[i] = NULL;
        sl_instance_watch(runner->instance, &stop);
        sl_instance_give(runner->instance, runner->shapes);
        sl_instance_meet(runner->instance, true);
        (void)sl_instance_run_open(runner->instance, runner->info->batches[0], part->inputs, part->outputs, part->open, NULL);
        sl_instance_meet(runner->instance, false);
        sl_instance_give(runner->instance, NULL);
        sl_instance_watch(runner->instance, NULL);
        free(zeros);
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
