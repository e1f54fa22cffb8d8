/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include "accumulator.h"
#include "assembly.h"
#include "base/background.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"
#include "batcher.h"
#include "fault.h"
#include "sender.h"
#include "stats.h"
#include "stop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Every sleep has a limit as an insurance against a wake-up that is lost in the kernel. */
#define SLEEP_LIMIT_NS (1000 * SL_NS_PER_MS)

static bool spin_for_job(struct sl_worker *worker, struct sl_job *ret_job)
{
        uint64_t until = worker->options.spin_ns ? sl_clock_ns() + worker->options.spin_ns : 0;

        do {
                for (int i = 0; i < 64; i++) {
                        if (sl_mailbox_take(worker->inbox, ret_job))
                                return true;
                        sl_relax();
                }
        } while (until && sl_clock_ns() < until);
        return false;
}

static void wait_for_job(struct sl_worker *worker, struct sl_job *ret_job)
{
        while (!spin_for_job(worker, ret_job)) {
                struct sl_wait_event event;

                if (sl_warm_up_next(&worker->warm_up))
                        continue;
                sl_bell_sleep(&worker->bell);
                if (!sl_mailbox_waiting(worker->inbox))
                        sl_wait_for(worker->wait, &event, 1, SLEEP_LIMIT_NS);
                sl_bell_awake(&worker->bell);
        }
}

/* What ends the work on a segment: looked at before it begins, and while it runs. */
static struct sl_stop stop_of(const struct sl_segment *segment)
{
        return (struct sl_stop){.verdict = &segment->work->verdict, .deadline_ns = segment->work->deadline_ns};
}

static int given_up(const struct sl_segment *segment)
{
        struct sl_stop stop = stop_of(segment);

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

/* A model without a batch gets one segment at a time: its own, which is a whole request. */
static int run_open(struct sl_worker *worker, const struct sl_segment *segment, uint32_t member, const struct sl_batch *batch,
        struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(worker->options.plan);
        struct sl_made_output *made = segment->work->made + member * info->n_outputs;
        struct sl_open_output open[SL_PLAN_PORTS_MAX] = {0};
        int r;

        for (uint32_t i = 0; i < info->n_outputs; i++)
                open[i].capacity_bytes = made[i].capacity_bytes;
        r = sl_instance_run_open(worker->instance, batch->samples, batch->inputs, batch->outputs, open, error);
        if (r == 0 || r == -EMSGSIZE)
                note_made(info, made, open);
        return r;
}

/* What ends a request ends a batch that is its own; of several that were gathered, none may end the others. */
static void watch(struct sl_worker *worker, struct sl_segment *const *segments, uint32_t n)
{
        struct sl_stop stop = stop_of(segments[0]);

        sl_instance_watch(worker->instance, n == 1 ? &stop : NULL);
}

static bool tells_client(const struct sl_segment *segment, int r)
{
        return r == 0 || r == -ERANGE || r == -EMSGSIZE || r == -ENOMEM || r == -E2BIG || r == given_up(segment);
}

/* The text of @error says why it failed. */
static int predict(
        struct sl_worker *worker, const struct sl_segment *segment, uint32_t member, uint32_t *ret_batches, struct sl_error *error)
{
        struct sl_batch batch;
        uint32_t batches = 0;
        int r = 0;

        while (r == 0 && sl_batcher_next(worker->batcher, worker->instance, &batch)) {
                r = segment->work->assembly->open_outputs
                            ? run_open(worker, segment, member, &batch, error)
                            : sl_instance_run(worker->instance, batch.samples, batch.inputs, batch.outputs);
                batches++;
        }
        if (r == 0)
                sl_batcher_scatter(worker->batcher);
        else
                sl_instance_explain(worker->instance, r, error);
        *ret_batches = batches;
        return tells_client(segment, r) ? r : -EIO;
}

static void count(struct sl_worker *worker, uint32_t samples, uint32_t batches, uint64_t busy_ns)
{
        sl_counter_add(&worker->options.stats->samples, samples);
        sl_counter_add(&worker->options.stats->batches, batches);
        sl_counter_add(&worker->options.stats->busy_ns, busy_ns);
}

/* One sample of a gathered batch with an index out of bounds must not fail the others: each is then run alone. */
static void run_segments(struct sl_worker *worker, struct sl_segment *const *segments, const uint32_t *members, const uint32_t *ids,
        uint32_t n, uint64_t begun_ns)
{
        struct sl_error error;
        uint32_t batches;

        error.text[0] = 0;
        sl_batcher_begin(worker->batcher, segments, members, n);
        watch(worker, segments, n);
        uint64_t started = sl_clock_ns();
        int status = predict(worker, segments[0], members[0], &batches, &error);
        uint64_t ended = sl_clock_ns();

        if (status < 0 && n > 1) {
                for (uint32_t i = 0; i < n; i++)
                        run_segments(worker, &segments[i], &members[i], &ids[i], 1, sl_clock_ns());
                return;
        }
        if (status < 0 && status != -ETIME && status != -ECANCELED && error.text[0])
                sl_fault_tell(segments[0]->work->fault, error.text);
        uint32_t samples = 0;
        for (uint32_t i = 0; i < n; i++)
                samples += segments[i]->samples;
        count(worker, samples, batches, ended - begun_ns);
        for (uint32_t i = 0; i < n; i++)
                sl_sender_send(worker->outbox, segments[i],
                        &(struct sl_prediction){
                                .segment = (int32_t)ids[i],
                                .member = members[i],
                                .status = status,
                                .batches = i == 0 ? batches : 0,
                                .started_ns = started,
                                .busy_ns = i == 0 ? ended - begun_ns : 0,
                                .computing_ns = i == 0 ? ended - started : 0,
                                .samples = segments[i]->samples,
                                .job_samples = i == 0 ? samples : 0,
                        });
}

static void run_job(struct sl_worker *worker, const struct sl_job *job)
{
        struct sl_segment *segments[SL_JOB_SEGMENTS_MAX];
        uint32_t members[SL_JOB_SEGMENTS_MAX], ids[SL_JOB_SEGMENTS_MAX];
        uint64_t now = sl_clock_ns();
        uint32_t n = 0;

        for (uint32_t i = 0; i < job->n_segments; i++) {
                struct sl_segment *segment = sl_accumulator_segment(worker->options.accumulator, job->items[i].segment);
                int status = given_up(segment);

                if (status < 0) {
                        sl_sender_send(worker->outbox, segment,
                                &(struct sl_prediction){.segment = (int32_t)job->items[i].segment,
                                        .member = job->items[i].member,
                                        .status = status});
                        continue;
                }
                segments[n] = segment;
                members[n] = job->items[i].member;
                ids[n++] = job->items[i].segment;
        }
        if (n)
                run_segments(worker, segments, members, ids, n, now);
        sl_bell_ring(worker->options.dispatcher, worker->wait);
}

/* All that takes time: kernels, memory, and the first run. */
static int prepare(struct sl_worker *worker)
{
        const struct sl_plan_info *info = sl_plan_info(worker->options.plan);
        uint64_t until_ns = sl_clock_ns() + worker->options.warmup_ns;
        int r = sl_instance_new(worker->options.plan, worker->batch_max, &worker->instance, NULL);

        if (r == 0)
                r = sl_batcher_new(info, worker->batch_max, &worker->batcher);
        if (r < 0)
                return r;
        worker->warm_up = (struct sl_warm_up){
                .instance = worker->instance,
                .batcher = worker->batcher,
                .stats = worker->options.stats,
                .info = info,
                .dynamic = sl_plan_is_dynamic(worker->options.plan),
                .batch_max = worker->batch_max,
                .until_ns = until_ns,
        };
        return sl_warm_up_first(&worker->warm_up);
}

/* Where the worker may run nothing to become warm, faulting its memory would disturb others as well: it is done before "ready". */
static int prepare_in_background(struct sl_worker *worker)
{
        int r;

        sl_background_thread(true);
        r = prepare(worker);
        while (r == 0 && !worker->options.warmup_ns && sl_warm_up_next(&worker->warm_up))
                ;
        sl_background_thread(false);
        return r;
}

static int start(struct sl_worker *worker)
{
        int r = sl_wait_new(worker->options.wait, &worker->wait, NULL);

        if (r < 0)
                return r;
        worker->bell.wait = worker->wait;
        return worker->options.background ? prepare_in_background(worker) : prepare(worker);
}

static void *worker_main(void *argument)
{
        struct sl_worker *worker = argument;
        struct sl_job job;
        int r = start(worker);

        sl_sender_say(worker->outbox, r < 0 ? SL_PREDICTION_NO_MEMORY : SL_PREDICTION_READY, r, worker->warm_up.first_ns);
        sl_bell_ring(worker->options.starter, worker->wait);
        if (r < 0)
                return NULL;
        for (;;) {
                wait_for_job(worker, &job);
                if (job.kind == SL_JOB_SHUT_DOWN)
                        return NULL;
                run_job(worker, &job);
        }
}

static int start_thread(struct sl_worker *worker)
{
        pthread_attr_t attributes;
        int r = pthread_attr_init(&attributes);

        if (r)
                return -r;
        if (CPU_COUNT(&worker->options.cpus))
                pthread_attr_setaffinity_np(&attributes, sizeof(worker->options.cpus), &worker->options.cpus);
        r = pthread_create(&worker->thread, &attributes, worker_main, worker);
        pthread_attr_destroy(&attributes);
        if (r)
                return -r;
        worker->running = true;
        pthread_setname_np(worker->thread, worker->options.name);
        return 0;
}

uint32_t sl_worker_batch_max(const struct sl_plan_info *info, uint32_t batch_max)
{
        uint32_t top = info->batches[0];

        for (uint32_t i = 0; i < info->n_batches; i++)
                if (info->batches[i] <= batch_max)
                        top = info->batches[i];
        return top;
}

int sl_worker_new(const struct sl_worker_options *options, struct sl_worker **ret_worker, struct sl_error *error)
{
        struct sl_worker *worker = aligned_alloc(128, sl_align_up(sizeof(*worker), 128));

        if (!worker)
                return sl_error_set(error, ENOMEM, "no memory for a worker");
        memset(worker, 0, sizeof(*worker));
        worker->options = *options;
        worker->batch_max = sl_worker_batch_max(sl_plan_info(options->plan), options->batch_max);
        /* Jobs and the shut-down message; an answer to each segment, and "ready". */
        int r = sl_mailbox_new(SL_WORKER_JOBS_MAX + 1, sizeof(struct sl_job), &worker->inbox);
        if (r == 0)
                r = sl_mailbox_new(SL_WORKER_JOBS_MAX * SL_JOB_SEGMENTS_MAX + 1, sizeof(struct sl_prediction), &worker->outbox);
        if (r == 0)
                r = start_thread(worker);
        if (r < 0) {
                sl_worker_free(worker);
                return sl_error_set(error, -r, "cannot start worker thread %s: %s", options->name, strerror(-r));
        }
        *ret_worker = worker;
        return 0;
}

struct sl_worker *sl_worker_free(struct sl_worker *worker)
{
        if (!worker)
                return NULL;
        if (worker->running) {
                sl_mailbox_put(worker->inbox, &(struct sl_job){.kind = SL_JOB_SHUT_DOWN});
                sl_bell_ring(&worker->bell, NULL);
                pthread_join(worker->thread, NULL);
        }
        sl_batcher_free(worker->batcher);
        sl_instance_free(worker->instance);
        sl_wait_free(worker->wait);
        sl_mailbox_free(worker->inbox);
        sl_mailbox_free(worker->outbox);
        free(worker);
        return NULL;
}

uint32_t sl_worker_jobs(const struct sl_worker *worker)
{
        return (worker->jobs[0].segments > 0) + (worker->jobs[1].segments > 0);
}

void sl_worker_give(struct sl_worker *worker, const struct sl_job *job, uint32_t priority, struct sl_wait *from)
{
        worker->jobs[sl_worker_jobs(worker)] = (struct sl_given_job){.segments = job->n_segments, .priority = priority};
        sl_warm_up_call(&worker->warm_up);
        sl_mailbox_put(worker->inbox, job);
        sl_bell_ring(&worker->bell, from);
}

/* Jobs are done in the order in which they were given. */
bool sl_worker_answered(struct sl_worker *worker)
{
        if (--worker->jobs[0].segments)
                return false;
        worker->jobs[0] = worker->jobs[1];
        worker->jobs[1] = (struct sl_given_job){0};
        return true;
}
