/* SPDX-License-Identifier: Apache-2.0 */
#include "query_load.h"

#include "base/clock.h"
#include "bench.h"
#include "generator.h"
#include "load_wait.h"
#include "runtime_account.h"
#include "starling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REAP       64u
#define FIRST_ASKS 32u /* of each variant: then the runtime knows what it takes */
#define LEAD_NS    (20 * SL_NS_PER_MS)
#define GIVE_UP_NS (10 * SL_NS_PER_SECOND)
#define CHOICE     UINT32_MAX
#define NO_VARIANT UINT32_MAX
#define PORTS_MAX  128u

struct place {
        uint32_t wish;
        uint64_t due_ns;
        bool is_query; /* the runtime says who answered */
        struct starling_tensor *outputs;
};

struct sl_query_load {
        struct sl_query_load_options options;
        struct starling_client *client;
        struct starling_queue *queue;
        const struct starling_model_info *info; /* of the task: all variants have its inputs and outputs */
        struct starling_model *task;            /* opened without a wish */
        struct sl_query_variant variants[SL_QUERY_VARIANTS_MAX];
        struct starling_model *models[SL_QUERY_VARIANTS_MAX];
        uint32_t n_variants;
        struct starling_tensor inputs[PORTS_MAX]; /* of all requests: nobody writes them */
        struct place *places;

        /* Of a run. */
        uint32_t variant;
        struct starling_model *queries[SL_QUERY_WISHES_MAX];
        struct sl_query_result *result;
        uint64_t start_ns;
};

const char *sl_query_end_name(enum sl_query_end end)
{
        static const char *const names[] = {
#define X(id, name) [SL_QUERY_##id] = name,
                SL_QUERY_ENDS(X)
#undef X
        };

        return names[end];
}

const struct sl_query_variant *sl_query_load_variants(const struct sl_query_load *load, uint32_t *ret_n)
{
        *ret_n = load->n_variants;
        return load->variants;
}

/* ---- tensors ---- */

static int make_tensor(
        struct sl_query_load *load, const struct starling_port *port, uint32_t samples, struct starling_tensor *ret_tensor)
{
        uint32_t dims[STARLING_RANK_MAX];

        for (uint32_t i = 0; i < port->rank; i++)
                dims[i] = (int32_t)i == port->batch_axis ? samples : port->dims[i] < 0 ? 1u : (uint32_t)port->dims[i];
        return starling_tensor_alloc(load->client, port->dtype, port->rank, dims, ret_tensor);
}

static int make_tensors(struct sl_query_load *load, struct starling_error *error)
{
        uint32_t samples = 1;
        int r = 0;

        for (uint32_t i = 0; i < load->options.n_wishes; i++)
                samples = load->options.samples[i] > samples ? load->options.samples[i] : samples;
        if (load->info->n_inputs > PORTS_MAX || load->info->n_outputs > PORTS_MAX)
                return snprintf(error->text, sizeof(error->text), "task \"%s\": %u inputs and %u outputs, at most %u of either",
                               load->options.task, load->info->n_inputs, load->info->n_outputs, PORTS_MAX),
                       -E2BIG;
        for (uint32_t i = 0; i < load->info->n_inputs && r == 0; i++) {
                r = make_tensor(load, &load->info->inputs[i], samples, &load->inputs[i]);
                if (r == 0)
                        memset(load->inputs[i].data, 0, load->inputs[i].bytes);
        }
        for (uint32_t p = 0; p < load->options.in_flight && r == 0; p++) {
                load->places[p].outputs = calloc(load->info->n_outputs + 1u, sizeof(*load->places[p].outputs));
                r = load->places[p].outputs ? 0 : -ENOMEM;
                for (uint32_t i = 0; i < load->info->n_outputs && r == 0; i++)
                        r = make_tensor(load, &load->info->outputs[i], samples, &load->places[p].outputs[i]);
        }
        if (r < 0)
                snprintf(error->text, sizeof(error->text), "task \"%s\": no arena for %u requests in flight of %u samples: %s",
                        load->options.task, load->options.in_flight, samples, starling_strerror(r));
        return r;
}

static void size_tensors(const struct starling_port *ports, struct starling_tensor *tensors, uint32_t n, uint32_t samples)
{
        for (uint32_t i = 0; i < n; i++)
                if (ports[i].batch_axis >= 0)
                        tensors[i].dims[ports[i].batch_axis] = samples;
}

static int submit(struct sl_query_load *load, struct starling_model *model, uint32_t place, uint32_t samples, uint64_t deadline_ns)
{
        struct starling_tensor inputs[PORTS_MAX];
        struct starling_request request = {.model = model,
                .inputs = inputs,
                .n_inputs = load->info->n_inputs,
                .outputs = load->places[place].outputs,
                .n_outputs = load->info->n_outputs,
                .user_data = place,
                .deadline_ns = deadline_ns};

        memcpy(inputs, load->inputs, load->info->n_inputs * sizeof(*inputs));
        size_tensors(load->info->inputs, inputs, load->info->n_inputs, samples);
        size_tensors(load->info->outputs, load->places[place].outputs, load->info->n_outputs, samples);
        return starling_submit(load->queue, &request, NULL);
}

/* ---- what becomes of a request ---- */

static void note_error(struct sl_query_load *load, const char *text)
{
        if (!load->result->first_error[0])
                snprintf(load->result->first_error, sizeof(load->result->first_error), "%s", text);
}

static uint32_t variant_named(const struct sl_query_load *load, const char *name)
{
        for (uint32_t i = 0; i < load->n_variants; i++)
                if (strcmp(load->variants[i].name, name) == 0)
                        return i;
        return NO_VARIANT;
}

static enum sl_query_end end_of(const struct sl_needs *needs, int status, double accuracy, uint64_t latency_ns)
{
        if (status == -ETIME)
                return SL_QUERY_LATE;
        if (status == -EBUSY || status == -EDQUOT || status == -EDOM)
                return SL_QUERY_REFUSED;
        if (status < 0)
                return SL_QUERY_FAILED;
        if (needs->latency_ns && latency_ns > needs->latency_ns)
                return SL_QUERY_LATE;
        if (accuracy >= needs->accuracy)
                return SL_QUERY_RIGHT;
        return needs->accuracy_least > 0 && accuracy >= needs->accuracy_least ? SL_QUERY_DEGRADED : SL_QUERY_POOR;
}

static void count_in(struct sl_query_counts *counts, enum sl_query_end end, bool is_answered, double accuracy, uint64_t latency_ns)
{
        counts->due++;
        counts->ends[end]++;
        if (!is_answered)
                return;
        counts->answered++;
        counts->accuracy += accuracy;
        sl_histogram_record(&counts->latencies, latency_ns);
}

static void count(struct sl_query_load *load, const struct sl_load_request *request, int status, uint32_t variant, uint64_t now_ns)
{
        const struct sl_needs *needs = &load->options.wishes[request->model];
        uint64_t latency_ns = now_ns > request->due_ns ? now_ns - request->due_ns : 0;
        uint64_t step = (request->due_ns - load->start_ns) / load->options.step_ns;
        double accuracy = variant < load->n_variants ? load->variants[variant].accuracy : 0;
        enum sl_query_end end = end_of(needs, status, accuracy, latency_ns);

        count_in(&load->result->wishes[request->model], end, status == 0, accuracy, latency_ns);
        count_in(&load->result->steps[step < load->options.n_steps ? step : load->options.n_steps - 1], end, status == 0, accuracy,
                latency_ns);
        if (status == 0 && variant < load->n_variants)
                load->result->answered_by[variant]++;
}

/* ---- the target of the loop ---- */

static uint64_t target_now(void *of)
{
        (void)of;
        return sl_clock_ns();
}

/* One that can never be met is refused when it is opened. What that is changes with what serves: the next request asks again. */
static int handle_of(struct sl_query_load *load, uint32_t wish, struct starling_model **ret_model)
{
        const struct sl_needs *needs = &load->options.wishes[wish];
        const struct starling_query query = {.accuracy = needs->accuracy,
                .accuracy_least = needs->accuracy_least,
                .cost = needs->cost,
                .latency_ns = needs->latency_ns,
                .flags = needs->closest ? STARLING_QUERY_CLOSEST : 0};
        struct starling_error error = {""};
        int r = 0;

        if (load->variant != CHOICE) {
                *ret_model = load->models[load->variant];
                return 0;
        }
        if (!load->queries[wish])
                r = starling_query_open(load->client, load->options.task, &query, &load->queries[wish], &error);
        if (r < 0) {
                load->queries[wish] = NULL;
                note_error(load, error.text);
        }
        *ret_model = load->queries[wish];
        return r;
}

static int target_submit(void *of, const struct sl_load_request *request, uint32_t place)
{
        struct sl_query_load *load = of;
        const struct sl_needs *needs = &load->options.wishes[request->model];
        uint64_t deadline_ns = load->options.deadlines && needs->latency_ns ? request->due_ns + needs->latency_ns : 0;
        struct starling_model *model;
        int r = handle_of(load, request->model, &model);

        load->places[place].wish = request->model;
        load->places[place].due_ns = request->due_ns;
        load->places[place].is_query = load->variant == CHOICE;
        if (r == 0) {
                r = submit(load, model, place, request->samples, deadline_ns);
                if (r < 0 && r != -EAGAIN)
                        note_error(load, starling_queue_error(load->queue));
        }
        if (r < 0 && r != -EAGAIN && r != -EPIPE)
                count(load, request, r, NO_VARIANT, sl_clock_ns());
        return r;
}

static uint32_t who_answered(struct sl_query_load *load, const struct starling_completion *completion)
{
        struct starling_answer answer;

        if (!load->places[completion->user_data].is_query)
                return load->variant;
        return starling_completion_variant(load->queue, completion, &answer) == 0 ? variant_named(load, answer.variant)
                                                                                  : NO_VARIANT;
}

static int target_reap(void *of, struct sl_load_answer *ret_answers, uint32_t max, uint64_t until_ns)
{
        struct sl_query_load *load = of;
        struct starling_completion completions[REAP];
        int n = sl_load_wait(load->queue, false, completions, max < REAP ? max : REAP, until_ns);
        uint64_t now_ns = sl_clock_ns();

        for (int i = 0; i < n; i++) {
                const struct starling_completion *completion = &completions[i];
                const struct place *place = &load->places[completion->user_data];
                const struct sl_load_request request = {.due_ns = place->due_ns, .model = place->wish};

                if (completion->status == -EPIPE)
                        return -EPIPE;
                if (completion->status < 0) {
                        char text[STARLING_TEXT_BYTES];

                        starling_reason_text(completion, text, sizeof(text));
                        note_error(load, text);
                }
                count(load, &request, completion->status, completion->status ? NO_VARIANT : who_answered(load, completion), now_ns);
                ret_answers[i] = (struct sl_load_answer){.place = (uint32_t)completion->user_data, .status = completion->status};
        }
        return n;
}

static bool target_is_interrupted(void *of)
{
        (void)of;
        return sl_bench_interrupted();
}

/* ---- a run ---- */

/* Those that were due and were not sent. */
static void count_unsent(struct sl_query_load *load)
{
        const struct sl_trace *trace = load->options.trace;
        uint64_t counted = 0;

        for (uint32_t i = 0; i < load->options.n_wishes; i++)
                counted += load->result->wishes[i].due;
        for (size_t i = counted; i < trace->n_requests; i++) { /* they are sent in their order */
                struct sl_load_request request = trace->requests[i];

                request.due_ns += load->start_ns;
                count(load, &request, -ETIME, NO_VARIANT, request.due_ns);
        }
}

static int generate(struct sl_query_load *load)
{
        const struct sl_generator_options options = {
                .schedule = {.trace = load->options.trace},
                .in_flight = load->options.in_flight,
                .start_ns = load->start_ns,
                .until_ns = UINT64_MAX,
                .give_up_ns = load->start_ns + load->options.n_steps * load->options.step_ns + GIVE_UP_NS,
                .requests = load->options.trace->n_requests,
        };
        const struct sl_load_target target = {.of = load,
                .now_ns = target_now,
                .submit = target_submit,
                .reap = target_reap,
                .is_interrupted = target_is_interrupted};
        const struct sl_tally_options counted = {.until_ns = UINT64_MAX, .n_models = load->options.n_wishes};
        struct sl_tally tally;
        int r = sl_tally_init(&tally, &counted);

        if (r == 0)
                r = sl_generator_run(&options, &target, &tally);
        sl_tally_deinit(&tally);
        return r;
}

static void begin_result(struct sl_query_load *load, uint32_t variant, uint64_t start_ns, struct sl_query_result *result)
{
        struct timespec now;

        memset(result, 0, sizeof(*result));
        clock_gettime(CLOCK_REALTIME, &now);
        result->begun_unix_ns = now.tv_sec * (int64_t)SL_NS_PER_SECOND + now.tv_nsec + (int64_t)(start_ns - sl_clock_ns());
        load->result = result;
        load->variant = variant;
        load->start_ns = start_ns;
}

/* @r: what the load ended with. Return: the same. */
static int end_result(struct sl_query_load *load, const struct sl_runtime_account *before, int r, struct starling_error *error)
{
        struct sl_runtime_account after = sl_runtime_account_take(load->options.runtime);
        uint64_t now_ns = sl_clock_ns();

        load->result->computed_s = (double)(after.busy_ns - before->busy_ns) / 1e9;
        load->result->seconds = now_ns > load->start_ns ? (double)(now_ns - load->start_ns) / 1e9 : 0;
        for (uint32_t i = 0; i < SL_QUERY_WISHES_MAX; i++) {
                starling_model_close(load->queries[i]);
                load->queries[i] = NULL;
        }
        if (r < 0)
                snprintf(error->text, sizeof(error->text), "task \"%s\": the load ended: %s", load->options.task,
                        starling_strerror(r));
        return r;
}

int sl_query_load_run(
        struct sl_query_load *load, uint32_t variant, struct sl_query_result *ret_result, struct starling_error *error)
{
        struct sl_runtime_account before = sl_runtime_account_take(load->options.runtime);
        int r;

        begin_result(load, variant, sl_clock_ns() + LEAD_NS, ret_result);
        r = generate(load);
        if (r == 0)
                count_unsent(load);
        return end_result(load, &before, r, error);
}

/* Those that may be sent are at the end of @free_places. Return: 0; -errno. */
static int send_all(struct sl_query_load *load, uint32_t *free_places, uint32_t *n_free)
{
        struct sl_load_request request = {.samples = load->options.samples[0]};
        int r = 0;

        while (*n_free && r == 0) {
                request.due_ns = sl_clock_ns();
                r = target_submit(load, &request, free_places[*n_free - 1]);
                *n_free -= r == 0;
        }
        return r == -EAGAIN ? 0 : r;
}

static int loop(struct sl_query_load *load, uint64_t until_ns, uint32_t *free_places)
{
        uint32_t n_free = load->options.in_flight;
        struct sl_load_answer answers[REAP];
        int r = 0;

        for (uint32_t i = 0; i < n_free; i++)
                free_places[i] = i;
        while (r == 0 && (n_free < load->options.in_flight || sl_clock_ns() < until_ns)) {
                int n = 0;

                if (sl_clock_ns() < until_ns)
                        r = send_all(load, free_places, &n_free);
                if (r == 0 && n_free < load->options.in_flight)
                        r = n = target_reap(load, answers, REAP, sl_clock_ns() + SL_NS_PER_SECOND);
                for (int i = 0; i < n; i++)
                        free_places[n_free++] = answers[i].place;
                r = r < 0 ? r : sl_bench_interrupted() ? -EINTR : 0;
        }
        return r;
}

int sl_query_load_close(struct sl_query_load *load, uint32_t variant, uint64_t for_ns, struct sl_query_result *ret_result,
        struct starling_error *error)
{
        struct sl_runtime_account before = sl_runtime_account_take(load->options.runtime);
        uint32_t *free_places = calloc(load->options.in_flight, sizeof(*free_places));
        int r = free_places ? 0 : -ENOMEM;

        begin_result(load, variant, sl_clock_ns(), ret_result);
        if (r == 0)
                r = loop(load, load->start_ns + for_ns, free_places);
        free(free_places);
        return end_result(load, &before, r, error);
}

/* ---- set-up ---- */

static int look_at_variants(struct sl_query_load *load, struct starling_error *error)
{
        struct starling_variant *variants = calloc(SL_QUERY_VARIANTS_MAX, sizeof(*variants));
        int n = variants ? starling_task_variants(load->client, load->options.task, variants, SL_QUERY_VARIANTS_MAX) : -ENOMEM;

        if (n < 0)
                snprintf(error->text, sizeof(error->text), "task \"%s\": %s", load->options.task, starling_strerror(n));
        load->n_variants = n < 0 ? 0 : n < (int)SL_QUERY_VARIANTS_MAX ? (uint32_t)n : SL_QUERY_VARIANTS_MAX;
        for (uint32_t i = 0; i < load->n_variants; i++) {
                load->variants[i].accuracy = variants[i].accuracy;
                load->variants[i].cost = variants[i].cost;
                load->variants[i].serves = variants[i].state == STARLING_VARIANT_SERVES;
                snprintf(load->variants[i].name, sizeof(load->variants[i].name), "%s", variants[i].name);
        }
        free(variants);
        return n < 0 ? n : 0;
}

static int ask_once(struct sl_query_load *load, struct starling_model *model, struct starling_error *error)
{
        struct starling_completion completion;
        int r = submit(load, model, 0, 1, 0), n = 0;

        while (r == 0 && (n = sl_load_wait(load->queue, false, &completion, 1, sl_clock_ns() + SL_NS_PER_SECOND)) == 0)
                r = sl_bench_interrupted() ? -EINTR : 0;
        r = r < 0 ? r : n < 0 ? n : completion.status;
        if (r < 0)
                snprintf(error->text, sizeof(error->text), "task \"%s\": %s", load->options.task, starling_strerror(r));
        return r;
}

/* What costs nothing by itself is asked anyway: costs may be what was measured. */
static int ask_first(struct sl_query_load *load, struct starling_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < load->n_variants && r == 0; i++) {
                if (!load->variants[i].serves)
                        continue;
                r = starling_model_open(load->client, load->variants[i].name, &load->models[i], error);
                for (uint32_t k = 0; k < FIRST_ASKS && r == 0; k++)
                        r = ask_once(load, load->models[i], error);
        }
        return r < 0 ? r : look_at_variants(load, error);
}

static int attach(struct sl_query_load *load, struct starling_error *error)
{
        struct starling_options options = {
                .runtime = load->options.runtime, .label = "bench-query", .queue_pairs = 1, .queue_depth = 2};
        int r;

        while (options.queue_depth < load->options.in_flight)
                options.queue_depth *= 2;
        r = starling_connect(&options, &load->client, error);
        if (r == 0)
                r = starling_queue_open(load->client, &load->queue, error);
        if (r == 0)
                r = starling_query_open(load->client, load->options.task, NULL, &load->task, error);
        if (r < 0)
                return r;
        load->info = starling_model_describe(load->task);
        r = make_tensors(load, error);
        if (r == 0)
                r = look_at_variants(load, error);
        return r < 0 ? r : ask_first(load, error);
}

int sl_query_load_new(const struct sl_query_load_options *options, struct sl_query_load **ret_load, struct starling_error *error)
{
        struct sl_query_load *load = calloc(1, sizeof(*load));
        int r = -ENOMEM;

        *ret_load = NULL;
        if (load) {
                load->options = *options;
                load->places = calloc(options->in_flight, sizeof(*load->places));
                r = load->places ? attach(load, error) : -ENOMEM;
        }
        if (r < 0)
                sl_query_load_free(load);
        else
                *ret_load = load;
        return r;
}

struct sl_query_load *sl_query_load_free(struct sl_query_load *load)
{
        if (!load)
                return NULL;
        for (uint32_t i = 0; load->places && i < load->options.in_flight; i++)
                free(load->places[i].outputs);
        free(load->places);
        for (uint32_t i = 0; i < load->n_variants; i++)
                starling_model_close(load->models[i]);
        starling_model_close(load->task);
        starling_close(load->client);
        free(load);
        return NULL;
}
