/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic.h"

#include "base/clock.h"
#include "bench.h"
#include "starling.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAP      64
#define FREE_SIZE 4096u /* bytes of an output whose shape only the model knows, at first */

struct slot {
        struct starling_tensor *inputs, *outputs;
        uint64_t due_ns;
        uint32_t next_free;
};

struct sl_traffic {
        struct sl_traffic_options options;
        struct starling_client *client;
        struct starling_model *model;
        struct starling_queue *queue;
        const struct starling_model_info *info;
        struct slot *slots;
        struct starling_tensor *tensors;
        uint32_t free_head; /* index + 1; 0: none */
        uint32_t in_flight;
        uint64_t random;
        struct sl_traffic_result *result;
        uint64_t measured_from_ns;
        struct starling_error error;
};

static uint64_t next_random(struct sl_traffic *traffic)
{
        traffic->random ^= traffic->random << 13;
        traffic->random ^= traffic->random >> 7;
        traffic->random ^= traffic->random << 17;
        return traffic->random;
}

/* In (0, 1]. */
static double uniform(struct sl_traffic *traffic)
{
        return ((double)(next_random(traffic) >> 11) + 1) / 9007199254740992.0;
}

/* Floats in [0, 1); everything else 0, which is a valid index, token and flag. */
static void fill(struct sl_traffic *traffic, struct starling_tensor *tensor)
{
        memset(tensor->data, 0, tensor->bytes);
        if (tensor->dtype != STARLING_F32)
                return;
        for (uint64_t i = 0; i < tensor->bytes / sizeof(float); i++)
                ((float *)tensor->data)[i] = (float)(next_random(traffic) >> 40) / 16777216.0f;
}

static bool has_free_size(const struct starling_port *port)
{
        for (uint32_t i = 0; i < port->rank; i++)
                if (port->dims[i] < 0 && (int32_t)i != port->batch_axis)
                        return true;
        return !port->rank && port->dims[0] < 0;
}

static const struct sl_traffic_shape *shape_of(const struct sl_traffic *traffic, const struct starling_port *port)
{
        for (uint32_t i = 0; i < traffic->options.n_shapes; i++) {
                const struct sl_traffic_shape *shape = &traffic->options.shapes[i];

                if (strlen(port->name) == shape->name_bytes && !memcmp(port->name, shape->input, shape->name_bytes))
                        return shape;
        }
        return NULL;
}

static int make_tensor(
        struct sl_traffic *traffic, const struct starling_port *port, bool output, struct starling_tensor *ret_tensor)
{
        const struct sl_traffic_shape *shape = output ? NULL : shape_of(traffic, port);
        uint32_t dims[STARLING_RANK_MAX];

        if (shape)
                return starling_tensor_alloc(traffic->client, port->dtype, shape->rank, shape->dims, ret_tensor);
        if (output && has_free_size(port)) {
                uint64_t bytes = FREE_SIZE * (uint64_t)traffic->options.samples;

                *ret_tensor = (struct starling_tensor){
                        .data = starling_alloc(traffic->client, bytes), .bytes = bytes, .dtype = port->dtype, .rank = port->rank};
                return ret_tensor->data ? 0 : -errno;
        }
        for (uint32_t i = 0; i < port->rank; i++)
                dims[i] = (int32_t)i == port->batch_axis ? traffic->options.samples
                          : port->dims[i] < 0            ? 1u
                                                         : (uint32_t)port->dims[i];
        return starling_tensor_alloc(traffic->client, port->dtype, port->rank, dims, ret_tensor);
}

static int make_slot(struct sl_traffic *traffic, struct slot *slot)
{
        int r = 0;

        for (uint32_t i = 0; i < traffic->info->n_inputs && r == 0; i++) {
                r = make_tensor(traffic, &traffic->info->inputs[i], false, &slot->inputs[i]);
                if (r == 0)
                        fill(traffic, &slot->inputs[i]);
        }
        for (uint32_t i = 0; i < traffic->info->n_outputs && r == 0; i++)
                r = make_tensor(traffic, &traffic->info->outputs[i], true, &slot->outputs[i]);
        return r;
}

static int make_slots(struct sl_traffic *traffic)
{
        uint32_t n = traffic->options.concurrency, tensors = traffic->info->n_inputs + traffic->info->n_outputs;
        int r = 0;

        traffic->slots = calloc(n, sizeof(*traffic->slots));
        traffic->tensors = calloc((size_t)n * tensors, sizeof(*traffic->tensors));
        if (!traffic->slots || !traffic->tensors)
                return -ENOMEM;
        for (uint32_t i = 0; i < n && r == 0; i++) {
                struct slot *slot = &traffic->slots[i];

                slot->inputs = &traffic->tensors[(size_t)i * tensors];
                slot->outputs = slot->inputs + traffic->info->n_inputs;
                slot->next_free = traffic->free_head;
                traffic->free_head = i + 1;
                r = make_slot(traffic, slot);
        }
        return r;
}

/* The rings are as large as the load needs them: a reader asks first how many tensors a request has. */
static int count_tensors(const struct sl_traffic_options *options, uint32_t *ret_tensors, struct starling_error *error)
{
        const struct starling_options as_reader = {
                .runtime = options->runtime, .role = STARLING_ROLE_READER, .label = "bench-model"};
        struct starling_client *client;
        struct starling_model *model;
        int r = starling_connect(&as_reader, &client, error);

        if (r < 0)
                return r;
        r = starling_model_open(client, options->model, &model, error);
        if (r == 0) {
                const struct starling_model_info *info = starling_model_describe(model);

                *ret_tensors = info->n_inputs + info->n_outputs;
                if (options->samples > info->samples_max) {
                        snprintf(error->text, sizeof(error->text), "model \"%s\": %u samples in a request, at most %u are allowed",
                                options->model, options->samples, info->samples_max);
                        r = -EINVAL;
                }
        }
        starling_close(client);
        return r;
}

static uint32_t ring_depth(uint32_t concurrency)
{
        uint32_t depth = 2;

        while (depth < concurrency)
                depth *= 2;
        return depth;
}

static int check_shapes(const struct sl_traffic *traffic, struct starling_error *error)
{
        uint32_t found = 0;

        for (uint32_t i = 0; i < traffic->info->n_inputs; i++)
                found += shape_of(traffic, &traffic->info->inputs[i]) != NULL;
        if (found == traffic->options.n_shapes)
                return 0;
        snprintf(error->text, sizeof(error->text), "model \"%s\": %u shapes for inputs, of which it has %u", traffic->info->name,
                traffic->options.n_shapes, found);
        return -EINVAL;
}

static int attach(struct sl_traffic *traffic, uint32_t tensors, struct starling_error *error)
{
        const struct starling_options options = {
                .runtime = traffic->options.runtime,
                .label = "bench-model",
                .queue_pairs = 1,
                .queue_depth = ring_depth(traffic->options.concurrency),
                .tensors_per_request = tensors,
        };
        int r = starling_connect(&options, &traffic->client, error);

        if (r == 0)
                r = starling_model_open(traffic->client, traffic->options.model, &traffic->model, error);
        if (r == 0)
                r = starling_queue_open(traffic->client, &traffic->queue, error);
        if (r == 0) {
                traffic->info = starling_model_describe(traffic->model);
                r = check_shapes(traffic, error);
        }
        if (r == 0) {
                r = make_slots(traffic);
                if (r < 0)
                        snprintf(error->text, sizeof(error->text), "no arena for %u requests: %s", traffic->options.concurrency,
                                starling_strerror(r));
        }
        return r;
}

int sl_traffic_new(const struct sl_traffic_options *options, struct sl_traffic **ret_traffic, struct starling_error *error)
{
        struct sl_traffic *traffic = calloc(1, sizeof(*traffic));
        uint32_t tensors = 0;

        if (!traffic)
                return -ENOMEM;
        traffic->options = *options;
        traffic->random = 0x9e3779b97f4a7c15ull;
        int r = count_tensors(options, &tensors, error);
        if (r == 0)
                r = attach(traffic, tensors, error);
        if (r < 0) {
                sl_traffic_free(traffic);
                return r;
        }
        *ret_traffic = traffic;
        return 0;
}

struct sl_traffic *sl_traffic_free(struct sl_traffic *traffic)
{
        if (!traffic)
                return NULL;
        starling_close(traffic->client);
        free(traffic->slots);
        free(traffic->tensors);
        free(traffic);
        return NULL;
}

static int send(struct sl_traffic *traffic, uint64_t due_ns)
{
        uint32_t index = traffic->free_head - 1;
        struct slot *slot = &traffic->slots[index];
        const struct starling_request request = {
                .model = traffic->model,
                .inputs = slot->inputs,
                .n_inputs = traffic->info->n_inputs,
                .outputs = slot->outputs,
                .n_outputs = traffic->info->n_outputs,
                .user_data = index,
        };
        int r = starling_submit(traffic->queue, &request, NULL);

        if (r < 0) {
                snprintf(traffic->error.text, sizeof(traffic->error.text), "%s", starling_queue_error(traffic->queue));
                return r;
        }
        slot->due_ns = due_ns;
        traffic->free_head = slot->next_free;
        traffic->in_flight++;
        return 0;
}

/* An output was too small: room is made once, and the request is not counted. */
static int enlarge(struct sl_traffic *traffic, struct slot *slot)
{
        for (uint32_t i = 0; i < traffic->info->n_outputs; i++) {
                struct starling_tensor *tensor = &slot->outputs[i];
                uint64_t bytes = 4 * tensor->bytes;
                void *data = starling_alloc(traffic->client, bytes);

                if (!data)
                        return -errno;
                starling_free(traffic->client, tensor->data);
                tensor->data = data;
                tensor->bytes = bytes;
        }
        return 0;
}

static void count(
        struct sl_traffic *traffic, const struct slot *slot, const struct starling_completion *completion, uint64_t now_ns)
{
        struct sl_traffic_result *result = traffic->result;

        if (slot->due_ns < traffic->measured_from_ns)
                return;
        if (completion->status < 0) {
                if (result->failed++ == 0)
                        result->first_failure = completion->status;
                return;
        }
        result->completed++;
        result->queued_ns += completion->queued_ns;
        result->batched_ns += completion->batched_ns;
        result->computing_ns += completion->computing_ns;
        result->combining_ns += completion->combining_ns;
        sl_latencies_add(&result->latencies, now_ns - slot->due_ns);
}

/* Return: completions taken; 0 none in time; -errno. */
static int reap(struct sl_traffic *traffic, uint64_t timeout_ns)
{
        struct starling_completion completions[REAP];
        int n = starling_wait(traffic->queue, completions, REAP, timeout_ns), r;

        if (n == -ETIMEDOUT || n == -ENODATA || n == -EINTR)
                return 0;
        if (n < 0)
                return n;
        uint64_t now_ns = sl_clock_ns();

        for (int i = 0; i < n; i++) {
                struct slot *slot = &traffic->slots[completions[i].user_data];

                traffic->in_flight--;
                slot->next_free = traffic->free_head;
                traffic->free_head = (uint32_t)completions[i].user_data + 1;
                if (completions[i].status == -EPIPE)
                        return -EPIPE;
                if (completions[i].status == -EMSGSIZE) {
                        r = enlarge(traffic, slot);
                        if (r < 0)
                                return r;
                        continue;
                }
                count(traffic, slot, &completions[i], now_ns);
        }
        return n;
}

static int closed_loop(struct sl_traffic *traffic, uint64_t until_ns)
{
        uint64_t now_ns;
        int r = 0;

        while (r >= 0 && (now_ns = sl_clock_ns()) < until_ns && !sl_bench_interrupted()) {
                while (traffic->free_head && r >= 0)
                        r = send(traffic, sl_clock_ns());
                if (r >= 0)
                        r = reap(traffic, until_ns - now_ns);
        }
        return r < 0 ? r : 0;
}

static uint64_t next_gap_ns(struct sl_traffic *traffic)
{
        return (uint64_t)(-log(uniform(traffic)) / traffic->options.rate * (double)SL_NS_PER_SECOND);
}

static void note_lateness(struct sl_traffic *traffic, uint64_t due_ns)
{
        uint64_t late_ns = sl_clock_ns() - due_ns;

        if (due_ns >= traffic->measured_from_ns && late_ns > traffic->result->latest_ns)
                traffic->result->latest_ns = late_ns;
}

static int open_loop(struct sl_traffic *traffic, uint64_t start_ns, uint64_t until_ns)
{
        uint64_t due_ns = start_ns + next_gap_ns(traffic), now_ns;
        int r = 0;

        while (r >= 0 && due_ns < until_ns && !sl_bench_interrupted()) {
                now_ns = sl_clock_ns();
                if (now_ns < due_ns || !traffic->free_head) {
                        /* Sleeps are too coarse for the last 100 us before a request is due. */
                        uint64_t wait_ns = now_ns < due_ns ? due_ns - now_ns : SL_NS_PER_SECOND;

                        r = traffic->in_flight ? reap(traffic, wait_ns > 100000 ? wait_ns - 100000 : 0) : 0;
                        continue;
                }
                r = send(traffic, due_ns);
                note_lateness(traffic, due_ns);
                due_ns += next_gap_ns(traffic);
        }
        return r < 0 ? r : 0;
}

static int drain(struct sl_traffic *traffic)
{
        uint64_t until_ns = sl_clock_ns() + 60 * SL_NS_PER_SECOND;
        int r = 0;

        while (r >= 0 && traffic->in_flight && sl_clock_ns() < until_ns)
                r = reap(traffic, SL_NS_PER_SECOND);
        return r < 0 ? r : traffic->in_flight ? -ETIMEDOUT : 0;
}

int sl_traffic_run(struct sl_traffic *traffic, struct sl_traffic_result *result)
{
        uint64_t start_ns;
        int r = sl_latencies_init(&result->latencies);

        if (r < 0)
                return r;
        start_ns = sl_clock_ns();
        traffic->result = result;
        traffic->measured_from_ns = start_ns + traffic->options.warm_up_ns;
        result->ensemble = traffic->info->ensemble;

        uint64_t until_ns = traffic->measured_from_ns + traffic->options.duration_ns;

        r = traffic->options.rate > 0 ? open_loop(traffic, start_ns, until_ns) : closed_loop(traffic, until_ns);
        if (r == 0)
                r = drain(traffic);
        result->elapsed_ns = sl_clock_ns() - traffic->measured_from_ns;
        return r;
}

const char *sl_traffic_error(const struct sl_traffic *traffic)
{
        return traffic->error.text;
}
