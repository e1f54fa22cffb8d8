/* SPDX-License-Identifier: Apache-2.0 */
#include "offline_run.h"

#include "base/clock.h"
#include "offline_model.h"
#include "offline_output.h"
#include "offline_rule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS_MAX  16u
#define TRIES_MAX  3u /* of a range, which the model fails */
#define LOOK_NS    (100 * SL_NS_PER_MS)
#define RETRY_NS   (200 * SL_NS_PER_MS)
#define CONNECT_NS (1 * SL_NS_PER_SECOND)
#define RATE_NS    SL_NS_PER_SECOND

/* A request in flight. */
struct slot {
        struct starling_tensor in, out;
        uint64_t range, id;
        bool flies;
};

struct run {
        struct offline_job *job;
        struct offline_data data;
        struct starling_client *client; /* NULL: none is there */
        struct starling_queue *queue;
        struct starling_model *model;
        struct slot slots[SLOTS_MAX];
        uint32_t n_slots, n_flying, tries;
        struct offline_rule *rule;
        struct offline_output output;
        uint64_t next; /* no range before it is left to be begun */
        uint64_t looked_ns, not_before_ns, rated_ns, rated_samples;
        struct sl_error error;
};

static uint32_t range_samples(const struct run *run, uint64_t range)
{
        const struct offline_description *d = &run->job->description;
        uint64_t left = d->samples - range * d->range_samples;

        return left < d->range_samples ? (uint32_t)left : d->range_samples;
}

static bool range_is_done(const struct run *run, uint64_t range)
{
        return atomic_load_explicit(&run->job->progress->done[range], memory_order_acquire); /* D2 */
}

static int keep_range(struct run *run, const struct slot *slot)
{
        struct offline_progress *progress = run->job->progress;
        uint32_t samples = range_samples(run, slot->range);
        int r = offline_output_write(
                &run->output, slot->range * run->job->description.range_samples, samples, slot->out.data, &run->error);

        if (r < 0)
                return r;
        atomic_store_explicit(&progress->done[slot->range], 1, memory_order_release); /* D1 */
        atomic_store_explicit(&progress->done_samples, progress->done_samples + samples, memory_order_relaxed);
        return 0;
}

/* ---- the connection ---- */

static void disconnect(struct run *run)
{
        run->client = starling_close(run->client);
        memset(run->slots, 0, sizeof(run->slots));
        run->n_flying = run->n_slots = 0;
        run->next = 0;
        if (run->rule)
                offline_rule_end(run->rule);
}

/* Of the last thing that lacked: the job waits, and says so. */
static void wait_for_runtime(struct run *run, const char *text)
{
        offline_job_say(run->job, OFFLINE_WAITING, text);
        disconnect(run);
        run->not_before_ns = sl_clock_ns() + RETRY_NS;
}

/* What another moment may bring. */
static bool may_pass(int status)
{
        switch (-status) {
        case ENOENT:
        case ECONNREFUSED:
        case ETIMEDOUT:
        case EPIPE:
        case EAGAIN:
        case EBUSY:
        case EDQUOT:
        case ENOMEM:
        case EINTR:
        case ECANCELED:
        case ESTALE:
        case ETIME:
                return true;
        default:
                return false;
        }
}

static int alloc_slots(struct run *run)
{
        const struct starling_model_info *info = starling_model_describe(run->model);
        uint32_t in[STARLING_RANK_MAX], out[STARLING_RANK_MAX], n = 2 * run->rule->n_cores;
        int r = 0;

        for (uint32_t i = 0; i < STARLING_RANK_MAX; i++) {
                in[i] = (uint32_t)run->data.shape.dims[i];
                out[i] = i < info->outputs->rank ? (uint32_t)info->outputs->dims[i] : 0;
        }
        in[0] = out[0] = run->job->description.range_samples;
        for (n = n > SLOTS_MAX ? SLOTS_MAX : n; r == 0 && run->n_slots < n; run->n_slots += r == 0) {
                struct slot *slot = &run->slots[run->n_slots];

                r = starling_tensor_alloc(run->client, run->data.shape.dtype, run->data.shape.rank, in, &slot->in);
                if (r == 0)
                        r = starling_tensor_alloc(run->client, info->outputs->dtype, info->outputs->rank, out, &slot->out);
        }
        return run->n_slots ? 0 : r;
}

/* Return: 0, also where it has to be tried again; -errno: it is of no use. */
static int connect_run(struct run *run)
{
        const struct offline_description *d = &run->job->description;
        struct starling_options options = {
                .runtime = d->runtime[0] ? d->runtime : NULL, .label = "offline", .timeout_ns = CONNECT_NS};
        struct starling_error why = {""};
        struct offline_shape shape;
        int r = starling_connect(&options, &run->client, &why);

        if (r == 0)
                r = offline_model_open(run->client, d, &run->model, &why);
        if (r == 0)
                r = starling_queue_open(run->client, &run->queue, &why);
        if (r < 0 && may_pass(r)) {
                wait_for_runtime(run, why.text);
                return 0;
        }
        if (r < 0)
                return sl_error_set(&run->error, -r, "%s", why.text);
        r = offline_model_check(run->model, d, &run->data, &shape, &run->error);
        if (r == 0 && (shape.dtype != run->output.shape.dtype || offline_sample_bytes(&shape) != run->output.row_bytes))
                r = sl_error_set(&run->error, ESTALE, "model \"%s\": its output has another shape or type by now", d->model);
        if (r < 0)
                return r;
        offline_rule_begin(
                run->rule, offline_rule_named(d->rule), d->runtime[0] && !strchr(d->runtime, '/') ? d->runtime : "starling");
        if (alloc_slots(run) < 0)
                wait_for_runtime(run, "there is no memory for a range of samples");
        else
                offline_job_say(run->job, OFFLINE_RUNNING, "");
        return 0;
}

/* ---- requests ---- */

static bool flies(const struct run *run, uint64_t range)
{
        for (uint32_t i = 0; i < run->n_slots; i++)
                if (run->slots[i].flies && run->slots[i].range == range)
                        return true;
        return false;
}

/* The next range that is to be begun; UINT64_MAX: there is none. */
static uint64_t next_range(struct run *run)
{
        while (run->next < run->job->progress->n_ranges && (range_is_done(run, run->next) || flies(run, run->next)))
                run->next++;
        return run->next < run->job->progress->n_ranges ? run->next : UINT64_MAX;
}

static int submit(struct run *run, struct slot *slot, uint64_t range)
{
        uint32_t samples = range_samples(run, range);
        int r = offline_data_read(&run->data, range * run->job->description.range_samples, samples, slot->in.data, &run->error);

        if (r < 0)
                return r;
        slot->in.dims[0] = slot->out.dims[0] = samples;
        slot->in.bytes = samples * run->data.sample_bytes;
        slot->range = range;
        const struct starling_request request = {.model = run->model,
                .inputs = &slot->in,
                .outputs = &slot->out,
                .n_inputs = 1,
                .n_outputs = 1,
                .priority = STARLING_BACKGROUND,
                .user_data = (uint64_t)(slot - run->slots)};
        r = starling_submit(run->queue, &request, &slot->id);
        if (r < 0 && may_pass(r)) {
                if (r == -EPIPE || r == -ESTALE || r == -ENOENT)
                        wait_for_runtime(run, starling_queue_error(run->queue));
                run->not_before_ns = sl_clock_ns() + RETRY_NS / 10;
                return 0;
        }
        if (r < 0)
                return sl_error_set(&run->error, -r, "%s", starling_queue_error(run->queue));
        slot->flies = true;
        run->n_flying++;
        return 0;
}

static int fill(struct run *run)
{
        int r = 0;

        for (uint32_t i = 0; i < run->n_slots && r == 0 && run->client && sl_clock_ns() >= run->not_before_ns; i++) {
                uint64_t range = run->slots[i].flies ? UINT64_MAX : next_range(run);

                if (range != UINT64_MAX)
                        r = submit(run, &run->slots[i], range);
        }
        return r;
}

static int take(struct run *run, const struct starling_completion *completion)
{
        struct slot *slot = &run->slots[completion->user_data];
        char why[STARLING_TEXT_BYTES];

        slot->flies = false;
        run->n_flying--;
        if (completion->status == 0) {
                run->tries = 0;
                return keep_range(run, slot);
        }
        run->next = slot->range < run->next ? slot->range : run->next;
        run->not_before_ns = sl_clock_ns() + RETRY_NS / 10;
        if (may_pass(completion->status) || ++run->tries < TRIES_MAX)
                return 0;
        return sl_error_set(&run->error, -completion->status, "samples from %" PRIu64 " on: %s",
                slot->range * run->job->description.range_samples, starling_reason_text(completion, why, sizeof(why)));
}

/* What has completed, by then at the latest. */
static int reap(struct run *run)
{
        struct starling_completion completions[SLOTS_MAX];
        int n = run->n_flying ? starling_wait(run->queue, completions, SLOTS_MAX, LOOK_NS / 2) : 0, r = 0;

        for (int i = 0; i < n && r == 0; i++)
                r = take(run, &completions[i]);
        if (r == 0 && (n == -EPIPE || (n > 0 && starling_model_changed(run->model)))) {
                if (n == -EPIPE || !run->n_flying)
                        wait_for_runtime(run, "the runtime is gone, or the model has changed");
        }
        if (!run->n_flying)
                usleep(20000);
        return r;
}

static void cancel_flying(struct run *run)
{
        for (uint32_t i = 0; i < run->n_slots; i++)
                if (run->slots[i].flies)
                        (void)starling_cancel(run->queue, run->slots[i].id);
}

static void rate(struct run *run, uint64_t now_ns)
{
        uint64_t done = run->job->progress->done_samples;

        if (now_ns - run->rated_ns < RATE_NS)
                return;
        if (run->rated_ns)
                atomic_store_explicit(&run->job->progress->rate,
                        (uint32_t)((double)(done - run->rated_samples) * SL_NS_PER_SECOND / (double)(now_ns - run->rated_ns)),
                        memory_order_relaxed);
        run->rated_ns = now_ns;
        run->rated_samples = done;
}

/* ---- all of it ---- */

/* True: the user wants it no more, or not now, or has removed its folder. */
static bool is_ended_by_wish(struct run *run, uint64_t now_ns)
{
        char wish[16];

        if (now_ns - run->looked_ns < LOOK_NS)
                return false;
        run->looked_ns = now_ns;
        rate(run, now_ns);
        if (offline_job_is_gone(run->job)) {
                if (access(run->job->folder, F_OK) < 0) /* nor has another job its number and its output by now */
                        offline_output_remove(run->job);
                return true;
        }
        offline_job_wish(run->job, wish);
        if (strcmp(wish, "cancel") == 0)
                offline_job_say(run->job, OFFLINE_CANCELLED, "");
        else if (strcmp(wish, "pause") == 0)
                offline_job_say(run->job, OFFLINE_PAUSED, "");
        else
                return false;
        return true;
}

/* Return: 1 it goes on; 0 it is done; -errno. */
static int go_on(struct run *run, uint64_t now_ns)
{
        int r = 0;

        if (run->job->progress->done_samples == run->job->progress->samples)
                return offline_output_publish(run->job, &run->output, &run->error);
        if (!run->client && now_ns < run->not_before_ns)
                usleep(20000);
        else if (!run->client)
                r = connect_run(run);
        if (r == 0 && run->client) {
                if (offline_rule_look(run->rule, now_ns))
                        r = fill(run);
                else
                        cancel_flying(run);
        }
        if (r == 0 && run->client)
                r = reap(run);
        return r < 0 ? r : 1;
}

static int open_run(struct run *run)
{
        const struct offline_description *d = &run->job->description;
        int r = offline_output_open(run->job, &run->output, &run->error);

        if (r == 0)
                r = offline_data_open(d->input, d->rank, &run->data, &run->error);
        if (r == 0 && run->data.stamp != d->stamp)
                r = sl_error_set(&run->error, ESTALE, "%s: it has changed since the job was submitted", d->input);
        return r;
}

static int run_all(struct run *run)
{
        int r = open_run(run);

        if (r == 0)
                offline_job_say(run->job, OFFLINE_RUNNING, "");
        for (r = r == 0 ? 1 : r; r > 0;) {
                uint64_t now_ns = sl_clock_ns();

                if (is_ended_by_wish(run, now_ns))
                        return 0;
                r = go_on(run, now_ns);
        }
        if (r == 0)
                offline_job_say(run->job, OFFLINE_DONE, "");
        return r;
}

/* Counted anew: who died may have written a range and not its number. */
static void count_done(struct offline_job *job)
{
        struct run run = {.job = job};
        uint64_t done = 0;

        for (uint64_t i = 0; i < job->progress->n_ranges; i++)
                done += range_is_done(&run, i) ? range_samples(&run, i) : 0;
        atomic_store_explicit(&job->progress->done_samples, done, memory_order_relaxed);
}

int offline_run(struct offline_job *job)
{
        struct run run = {.job = job, .output.fd = -1, .rule = calloc(1, sizeof(*run.rule))};
        int r = 0;

        count_done(job);
        atomic_store_explicit(&job->progress->process, (uint64_t)getpid(), memory_order_relaxed);
        if (!run.rule)
                r = sl_error_set(&run.error, ENOMEM, "no memory for a job");
        else if (job->progress->done_samples == job->progress->samples && offline_output_is_published(job))
                offline_job_say(job, OFFLINE_DONE, "");
        else
                r = run_all(&run);
        if (r < 0)
                offline_job_say(job, OFFLINE_FAILED, run.error.text);
        disconnect(&run);
        free(run.rule);
        offline_output_close(&run.output);
        offline_data_close(&run.data);
        return r;
}
