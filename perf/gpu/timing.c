/* SPDX-License-Identifier: Apache-2.0 */
/* How long requests take on a worker of one model: one after another, or several at once. */
#include "commands.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FLYING_MAX 16
#define TIMES_MAX  200000
#define WARM       20 /* requests that are not counted */

struct run {
        struct sl_gpu_worker *worker;
        struct request requests[FLYING_MAX];
        uint64_t given_ns[FLYING_MAX];
        uint32_t n_flying, n_times;
        uint64_t *times_ns; /* from give to the poll that has it */
        uint64_t host_ns;   /* in give(), in the poll behind it, and in the one that had it */
        uint64_t samples;
        uint64_t device_ns; /* of a launch, alone */
};

#define LAUNCHES 50 /* behind each other, for that */

static int by_size(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static struct request *request_of(struct run *run, const struct sl_gpu_job *job)
{
        for (uint32_t i = 0; i < run->n_flying; i++)
                if (&run->requests[i].job == job)
                        return &run->requests[i];
        return NULL;
}

static void note_end(struct run *run, const struct request *request, uint64_t now)
{
        if (run->n_times < TIMES_MAX)
                run->times_ns[run->n_times++] = now - run->given_ns[request - run->requests];
        run->samples += request->samples;
}

static int give(struct run *run, struct request *request)
{
        request_reset(request);
        run->given_ns[request - run->requests] = sl_clock_ns();
        return sl_gpu_worker_give(run->worker, &request->job);
}

/* Keeps all requests on their way, each given again when it has ended. */
static int turn(struct run *run, uint64_t until_ns, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < run->n_flying && r == 0; i++)
                r = give(run, &run->requests[i]);
        while (r == 0) {
                uint64_t start = sl_clock_ns();
                struct sl_gpu_job *job = sl_gpu_worker_poll(run->worker);
                uint64_t now = sl_clock_ns();

                if (!job) {
                        r = sl_gpu_worker_lost(run->worker, error);
                        continue;
                }
                struct request *request = request_of(run, job);

                note_end(run, request, now);
                if (job->status)
                        return job->status;
                if (now >= until_ns)
                        break;
                r = give(run, request);
                (void)sl_gpu_worker_poll(run->worker);
                run->host_ns += now - start + sl_clock_ns() - now;
        }
        while (r == 0 && sl_gpu_worker_jobs(run->worker)) {
                (void)sl_gpu_worker_poll(run->worker);
                r = sl_gpu_worker_lost(run->worker, error);
        }
        return r;
}

/* What was timed before: nodes, candidates, seconds. */
static void print_tuning(const struct ground *ground, char text[128])
{
        struct sl_gpu_choices_facts facts = {.n_timed = 0};
        uint64_t bytes;
        void *data;

        if (ground->chooser && sl_cuda_chooser_write(ground->chooser, &data, &bytes) == 0) {
                (void)sl_gpu_choices_check(data, bytes, &facts, NULL);
                free(data);
        }
        snprintf(text, 128, "\"candidates\":\"%s\",\"timed_nodes\":%u,\"timed\":%u,\"timing_s\":%.2f,",
                ground->chooser ? "timed" : "first", facts.n_timed, facts.n_candidates, (double)facts.timed_ns / 1e9);
}

/* How they come to the device: by itself, or by memory of the driver. */
static const char *inputs_of(const struct request *request)
{
        if (!request->view.base)
                return request->region.reached ? "registered" : "not registered";
        return request->view.reached ? "read-only, registered" : "read-only, not registered";
}

/* What is not the device's own time of a batch, of the time between the ends of two: 0 is a device that is never idle. */
static double idle_us(const struct run *run, uint64_t took_ns)
{
        double each_ns = run->n_times ? (double)took_ns / run->n_times : 0;

        return each_ns > (double)run->device_ns ? (each_ns - (double)run->device_ns) / 1e3 : 0;
}

static void print_times(const struct ground *ground, const struct wish *wish, struct run *run, uint64_t took_ns)
{
        char name[128], assignment[64] = "", tuning[128];
        uint32_t n = run->n_times;

        print_tuning(ground, tuning);
        qsort(run->times_ns, n, sizeof(*run->times_ns), by_size);
        if (wish->percent)
                snprintf(assignment, sizeof(assignment), "\"percent\":%u,", wish->percent);
        printf("{\"model\":\"%s\",\"precision\":\"%s\",\"batch\":%u,\"pieces\":%u,\"at_once\":%u,\"completions\":\"%s\",\"inputs\":"
               "\"%s\",%"
               "s%s\"requests\":%u,"
               "\"median_us\":%.1f,\"p99_us\":%.1f,\"samples_per_s\":%.1f,\"host_us_per_request\":%.2f,\"device_us\":%.1f,"
               "\"idle_us\":%.1f}\n",
                name_of(wish->models[0], name),
                wish->options.precision == SL_PRECISION_BF16 ? "bf16"
                : wish->options.tf32                         ? "tf32"
                                                             : "fp32",
                wish->batch, wish->n_pieces, wish->n_flying, wish->words ? "words" : "events", inputs_of(&run->requests[0]),
                assignment, tuning, n, n ? (double)run->times_ns[n / 2] / 1e3 : 0,
                n ? (double)run->times_ns[(uint64_t)n * 99 / 100] / 1e3 : 0, (double)run->samples * 1e9 / (double)(took_ns + 1),
                n ? (double)run->host_ns / n / 1e3 : 0, (double)run->device_ns / 1e3, idle_us(run, took_ns));
}

static int measure(struct run *run, const struct ground *ground, const struct wish *wish, struct sl_error *error)
{
        uint64_t start, took_ns;
        int r = 0;

        for (uint32_t i = 0; i < WARM && r == 0; i++)
                r = turn(run, 0, error);
        run->n_times = 0;
        run->samples = run->host_ns = 0;
        start = sl_clock_ns();
        if (r == 0)
                r = turn(run, start + (uint64_t)(wish->seconds * 1e9), error);
        took_ns = sl_clock_ns() - start;
        if (r == 0)
                r = sl_gpu_worker_time(run->worker, wish->batch, LAUNCHES, &run->device_ns, error);
        if (r == 0)
                print_times(ground, wish, run, took_ns);
        return r;
}

static int make_worker(struct ground *ground, const struct wish *wish, const struct sl_plan *plan, struct sl_gpu_program **program,
        struct sl_green **green, struct sl_gpu_worker **worker, struct sl_error *error)
{
        const struct sl_gpu_program_options options = {.gpu = &ground->gpu, .plan = plan};
        int r = wish->tune_seconds > 0 ? ground_tune(ground, plan, wish->tune_seconds, error) : 0;

        if (r == 0)
                r = sl_gpu_program_new(&options, program, error);

        if (r == 0)
                r = sl_gpu_program_need_pool(*program, (wish->n_flying + 1) * wish->batch, 8ull << 30, error);
        if (r == 0 && wish->percent && wish->percent < 100)
                r = ground->can_cut ? sl_green_new(&ground->greens, wish->percent, green, error)
                                    : sl_error_set(error, ENOTSUP, "the device cannot be cut into lets");
        if (r == 0)
                r = sl_gpu_worker_new(&(struct sl_gpu_worker_options){.program = *program,
                                              .greens = &ground->greens,
                                              .green = *green,
                                              .chooser = ground->chooser,
                                              .batch_max = wish->batch,
                                              .n_slots = wish->n_flying < 2 ? 2 : wish->n_flying,
                                              .writes_done = wish->words},
                        worker, error);
        return r;
}

static int make_requests(struct run *run, struct ground *ground, const struct wish *wish, const struct sl_plan *plan)
{
        int r = 0;

        for (uint32_t i = 0; i < wish->n_flying && r == 0; i++, run->n_flying++)
                r = request_init(&run->requests[i], ground, plan, wish->batch, wish->n_pieces);
        run->times_ns = malloc(TIMES_MAX * sizeof(*run->times_ns));
        return r < 0 || !run->times_ns ? -ENOMEM : 0;
}

int command_time(struct ground *ground, const struct wish *wish, struct sl_error *error)
{
        struct sl_plan *plan = wish->n_models ? ground_plan(wish->models[0], &wish->options, error) : NULL;
        struct sl_gpu_program *program = NULL;
        struct sl_green *green = NULL;
        struct run run = {NULL};
        int r;

        if (!plan)
                return error->text[0] ? -ENOTSUP : sl_error_set(error, EINVAL, "time wants a model");
        r = make_worker(ground, wish, plan, &program, &green, &run.worker, error);
        if (r == 0)
                r = make_requests(&run, ground, wish, plan);
        if (r == 0)
                r = measure(&run, ground, wish, error);
        sl_gpu_worker_free(run.worker);
        for (uint32_t i = 0; i < run.n_flying; i++)
                request_deinit(&run.requests[i]);
        free(run.times_ns);
        sl_green_drop(green);
        sl_gpu_program_free(program);
        sl_plan_free(plan);
        return r;
}
