/* SPDX-License-Identifier: Apache-2.0 */
#include "load_client.h"

#include "base/clock.h"
#include "base/error.h"
#include "bench.h"
#include "load_wait.h"
#include "starling.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAP            64u
#define FREE_SIZE       4096u        /* bytes of an output whose shape only the model knows, at first */
#define PREPARED_BYTES  (64u << 20)  /* of sets that are made beforehand */
#define RINGS_BYTES     (256u << 10) /* of a client, as starling_connect() says */
#define ENTRY_BYTES     64u
#define INTERRUPTION_NS (5 * SL_NS_PER_MS)
#define TENSORS         128u

/* The tensors of one request. */
struct set {
        struct set *next_free;
        uint32_t samples; /* that the inputs are sized for now */
        struct starling_tensor *inputs, *outputs;
        struct starling_tensor tensors[];
};

struct served {
        struct starling_model *handle;
        const struct starling_model_info *info; /* NULL: a no-op */
        uint32_t samples;
        uint64_t set_bytes;
        uint32_t n_sets;
        struct set *free_sets;
        struct set *first; /* the inputs of all others are copies of its */
};

struct sl_load_client {
        struct sl_load_client_options options;
        struct starling_client *client;
        struct starling_queue *queue;
        struct served *served;
        struct {
                struct set *set;
                struct sl_load_request request;
        } * places;
        struct set **sets; /* all that were made */
        size_t n_sets;
        struct sl_random random;
        uint64_t looked_ns; /* for an interruption */
        bool interrupted;
        struct starling_error error;
};

/* ---- tensors ---- */

/* Floats in [0, 1); everything else 0, which is a valid index, token and flag. */
static void fill(struct sl_load_client *client, struct starling_tensor *tensor)
{
        memset(tensor->data, 0, tensor->bytes);
        if (tensor->dtype != STARLING_F32)
                return;
        for (uint64_t i = 0; i < tensor->bytes / sizeof(float); i++)
                ((float *)tensor->data)[i] = (float)(sl_random_next(&client->random) >> 40) / 16777216.0f;
}

static bool has_free_size(const struct starling_port *port)
{
        for (uint32_t i = 0; i < port->rank; i++)
                if (port->dims[i] < 0 && (int32_t)i != port->batch_axis)
                        return true;
        return !port->rank && port->dims[0] < 0;
}

static const struct sl_load_shape *shape_of(const struct sl_load_client *client, const struct starling_port *port)
{
        for (uint32_t i = 0; i < client->options.n_shapes; i++) {
                const struct sl_load_shape *shape = &client->options.shapes[i];

                if (strlen(port->name) == shape->name_bytes && !memcmp(port->name, shape->input, shape->name_bytes))
                        return shape;
        }
        return NULL;
}

static int make_input(struct sl_load_client *client, const struct served *served, const struct starling_port *port,
        struct starling_tensor *ret_tensor)
{
        const struct sl_load_shape *shape = shape_of(client, port);
        uint32_t dims[STARLING_RANK_MAX];

        if (shape)
                return starling_tensor_alloc(client->client, port->dtype, shape->rank, shape->dims, ret_tensor);
        for (uint32_t i = 0; i < port->rank; i++)
                dims[i] = (int32_t)i == port->batch_axis ? served->samples : port->dims[i] < 0 ? 1u : (uint32_t)port->dims[i];
        return starling_tensor_alloc(client->client, port->dtype, port->rank, dims, ret_tensor);
}

static int make_output(struct sl_load_client *client, const struct served *served, const struct starling_port *port,
        struct starling_tensor *ret_tensor)
{
        uint64_t bytes = FREE_SIZE * (uint64_t)served->samples;

        if (!has_free_size(port))
                return make_input(client, served, port, ret_tensor);
        *ret_tensor = (struct starling_tensor){
                .data = starling_alloc(client->client, bytes), .bytes = bytes, .dtype = port->dtype, .rank = port->rank};
        return ret_tensor->data ? 0 : -errno;
}

static void free_tensors(struct sl_load_client *client, struct set *set, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                starling_free(client->client, set->tensors[i].data);
        free(set);
}

static int remember_set(struct sl_load_client *client, struct set *set)
{
        struct set **sets = realloc(client->sets, (client->n_sets + 1) * sizeof(*sets));

        if (!sets)
                return -ENOMEM;
        client->sets = sets;
        sets[client->n_sets++] = set;
        return 0;
}

/* As many as the first has, and with its contents. */
static void fill_inputs(struct sl_load_client *client, struct served *served, struct set *set)
{
        for (uint32_t i = 0; i < served->info->n_inputs; i++) {
                if (served->first)
                        memcpy(set->inputs[i].data, served->first->inputs[i].data, set->inputs[i].bytes);
                else
                        fill(client, &set->inputs[i]);
        }
        if (!served->first)
                served->first = set;
}

static int make_tensors(struct sl_load_client *client, struct served *served, struct set *set, uint32_t *ret_n)
{
        int r = 0;

        *ret_n = 0;
        for (uint32_t i = 0; i < served->info->n_inputs && r == 0; i++, *ret_n += r == 0)
                r = make_input(client, served, &served->info->inputs[i], &set->inputs[i]);
        for (uint32_t i = 0; i < served->info->n_outputs && r == 0; i++, *ret_n += r == 0)
                r = make_output(client, served, &served->info->outputs[i], &set->outputs[i]);
        return r;
}

static int make_set(struct sl_load_client *client, struct served *served)
{
        uint32_t n = served->info->n_inputs + served->info->n_outputs, made;
        struct set *set = calloc(1, sizeof(*set) + n * sizeof(set->tensors[0]));

        if (!set)
                return -ENOMEM;
        set->samples = served->samples;
        set->inputs = set->tensors;
        set->outputs = set->tensors + served->info->n_inputs;
        int r = make_tensors(client, served, set, &made);
        if (r == 0)
                r = remember_set(client, set);
        if (r < 0) {
                free_tensors(client, set, made);
                return r;
        }
        fill_inputs(client, served, set);
        set->next_free = served->free_sets;
        served->free_sets = set;
        served->n_sets++;
        for (uint32_t i = 0; i < n; i++)
                served->set_bytes += served->n_sets == 1 ? set->tensors[i].bytes : 0;
        return 0;
}

/* ---- set-up ---- */

static int refuse(struct starling_error *error, int r, const char *model, const char *what, uint32_t got, uint32_t limit)
{
        struct sl_error text;

        sl_error_set(&text, -r, "model \"%s\": %s: %u, at most %u", model, what, got, limit);
        if (error)
                memcpy(error->text, text.text, sizeof(error->text));
        return r;
}

static int check_model(const struct sl_load_client *client, const struct served *served, struct starling_error *error)
{
        const struct starling_model_info *info = served->info;
        uint32_t most = info->samples_max;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                most = info->inputs[i].batch_axis < 0 && !shape_of(client, &info->inputs[i]) ? 1 : most;
        return served->samples > most ? refuse(error, -EINVAL, info->name, "samples in a request", served->samples, most) : 0;
}

/* The rings are as large as the load needs them: a reader asks first how many tensors a request has. */
static int count_tensors(const struct sl_load_client_options *options, uint32_t *ret_tensors, struct starling_error *error)
{
        const struct starling_options as_reader = {
                .runtime = options->runtime, .role = STARLING_ROLE_READER, .label = "bench-load", .timeout_ns = SL_NS_PER_SECOND};
        struct starling_client *reader;
        int r = starling_connect(&as_reader, &reader, error);

        if (r < 0)
                return r;
        *ret_tensors = 2;
        for (uint32_t i = 0; i < options->n_models && r == 0; i++) {
                struct starling_model *model;

                if (!*options->models[i])
                        continue;
                r = starling_model_open(reader, options->models[i], &model, error);
                if (r == 0) {
                        const struct starling_model_info *info = starling_model_describe(model);
                        uint32_t n = info->n_inputs + info->n_outputs;

                        *ret_tensors = n > *ret_tensors ? n : *ret_tensors;
                }
        }
        starling_close(reader);
        return r;
}

static uint32_t ring_depth(uint32_t in_flight)
{
        uint32_t depth = 2;

        while (depth < in_flight)
                depth *= 2;
        return depth;
}

static int connect_client(struct sl_load_client *client, uint32_t tensors, struct starling_error *error)
{
        const struct starling_options options = {
                .runtime = client->options.runtime,
                .label = "bench-load",
                .queue_pairs = 1,
                .queue_depth = ring_depth(client->options.in_flight),
                .tensors_per_request = tensors,
        };
        uint32_t most = RINGS_BYTES / ENTRY_BYTES / (tensors + 2);

        if (tensors > TENSORS)
                return refuse(error, -E2BIG, client->options.models[0], "tensors of a request", tensors, TENSORS);
        if (options.queue_depth > most)
                return refuse(error, -E2BIG, client->options.models[0], "requests of a thread in flight with so many tensors",
                        client->options.in_flight, most);
        int r = starling_connect(&options, &client->client, error);

        return r == 0 ? starling_queue_open(client->client, &client->queue, error) : r;
}

/* The first set tells how large they are. */
static int prepare_sets(struct sl_load_client *client, struct served *served, struct starling_error *error)
{
        uint32_t wanted = 1;
        int r = 0;

        while (r == 0 && served->n_sets < wanted) {
                r = make_set(client, served);
                if (served->n_sets == 1) {
                        uint64_t room = PREPARED_BYTES / client->options.n_models / (served->set_bytes + 1);

                        wanted = room < client->options.in_flight ? (uint32_t)room : client->options.in_flight;
                }
        }
        if (r < 0 && served->n_sets == 0) {
                struct sl_error text;

                sl_error_set(&text, -r, "model \"%s\": no arena for a request of %u samples: %s", served->info->name,
                        served->samples, starling_strerror(r));
                memcpy(error->text, text.text, sizeof(error->text));
                return r;
        }
        return 0;
}

static int open_model(struct sl_load_client *client, uint32_t number, struct starling_error *error)
{
        struct served *served = &client->served[number];

        served->samples = client->options.samples[number];
        if (!*client->options.models[number])
                return 0;
        int r = starling_model_open(client->client, client->options.models[number], &served->handle, error);
        if (r < 0)
                return r;
        served->info = starling_model_describe(served->handle);
        r = check_model(client, served, error);
        return r < 0 ? r : prepare_sets(client, served, error);
}

static int check_shapes(const struct sl_load_client *client, struct starling_error *error)
{
        for (uint32_t s = 0; s < client->options.n_shapes; s++) {
                const struct sl_load_shape *shape = &client->options.shapes[s];
                bool found = false;

                for (uint32_t m = 0; m < client->options.n_models; m++)
                        for (uint32_t i = 0; client->served[m].info && i < client->served[m].info->n_inputs; i++)
                                found |= shape_of(client, &client->served[m].info->inputs[i]) == shape;
                if (!found) {
                        snprintf(error->text, sizeof(error->text), "no model has the input \"%.*s\" that a shape is given for",
                                (int)shape->name_bytes, shape->input);
                        return -EINVAL;
                }
        }
        return 0;
}

static int attach(struct sl_load_client *client, struct starling_error *error)
{
        uint32_t tensors = 0;
        int r = count_tensors(&client->options, &tensors, error);

        if (r == 0)
                r = connect_client(client, tensors, error);
        for (uint32_t i = 0; i < client->options.n_models && r == 0; i++)
                r = open_model(client, i, error);
        return r < 0 ? r : check_shapes(client, error);
}

int sl_load_client_new(
        const struct sl_load_client_options *options, struct sl_load_client **ret_client, struct starling_error *error)
{
        struct sl_load_client *client = calloc(1, sizeof(*client));
        int r = -ENOMEM;

        if (client) {
                client->options = *options;
                sl_random_seed(&client->random, 1, 0);
                client->served = calloc(options->n_models, sizeof(*client->served));
                client->places = calloc(options->in_flight, sizeof(*client->places));
                if (client->served && client->places)
                        r = attach(client, error);
        }
        if (r < 0) {
                sl_load_client_free(client);
                return r;
        }
        *ret_client = client;
        return 0;
}

struct sl_load_client *sl_load_client_free(struct sl_load_client *client)
{
        if (!client)
                return NULL;
        starling_close(client->client);
        for (size_t i = 0; i < client->n_sets; i++)
                free(client->sets[i]);
        free(client->sets);
        free(client->served);
        free(client->places);
        free(client);
        return NULL;
}

const char *sl_load_client_error(const struct sl_load_client *client)
{
        return client->error.text;
}

/* ---- the target ---- */

static uint64_t target_now(void *of)
{
        (void)of;
        return sl_clock_ns();
}

/* The batch of this request may be smaller than what there is room for. */
static void size_tensors(const struct served *served, struct set *set, uint32_t samples)
{
        if (set->samples == samples)
                return;
        set->samples = samples;
        for (uint32_t i = 0; i < served->info->n_inputs; i++)
                if (served->info->inputs[i].batch_axis >= 0)
                        set->inputs[i].dims[served->info->inputs[i].batch_axis] = samples;
}

static int submit_place(struct sl_load_client *client, uint32_t place)
{
        const struct sl_load_request *load = &client->places[place].request;
        const struct served *served = &client->served[load->model];
        struct set *set = client->places[place].set;
        struct starling_request request = {
                .user_data = place,
                .deadline_ns = client->options.deadline_ns ? load->due_ns + client->options.deadline_ns : 0,
        };

        if (served->info) {
                request.model = served->handle;
                request.inputs = set->inputs;
                request.n_inputs = served->info->n_inputs;
                request.outputs = set->outputs;
                request.n_outputs = served->info->n_outputs;
        } else {
                request.flags = STARLING_NOOP;
        }
        int r = starling_submit(client->queue, &request, NULL);
        if (r < 0 && r != -EAGAIN)
                snprintf(client->error.text, sizeof(client->error.text), "%s", starling_queue_error(client->queue));
        return r;
}

/* Return: 0; -EAGAIN there is none, and others are in flight; -errno. */
static int take_set(struct sl_load_client *client, struct served *served, struct set **ret_set)
{
        int r = 0;

        *ret_set = NULL;
        if (!served->info)
                return 0;
        if (!served->free_sets)
                r = make_set(client, served);
        if (r < 0)
                return starling_queue_in_flight(client->queue) ? -EAGAIN : r;
        *ret_set = served->free_sets;
        served->free_sets = (*ret_set)->next_free;
        return 0;
}

static void give_set(struct sl_load_client *client, uint32_t place)
{
        struct served *served = &client->served[client->places[place].request.model];
        struct set *set = client->places[place].set;

        if (!set)
                return;
        set->next_free = served->free_sets;
        served->free_sets = set;
}

static int target_submit(void *of, const struct sl_load_request *request, uint32_t place)
{
        struct sl_load_client *client = of;
        struct served *served = &client->served[request->model];
        int r = take_set(client, served, &client->places[place].set);

        if (r < 0)
                return r;
        client->places[place].request = *request;
        if (served->info)
                size_tensors(served, client->places[place].set, request->samples);
        r = submit_place(client, place);
        if (r < 0)
                give_set(client, place);
        return r;
}

/* An output was too small: room is made, and the request is sent again, which its latency shows. */
static int enlarge(struct sl_load_client *client, uint32_t place)
{
        const struct served *served = &client->served[client->places[place].request.model];

        for (uint32_t i = 0; i < served->info->n_outputs; i++) {
                struct starling_tensor *tensor = &client->places[place].set->outputs[i];
                uint64_t bytes = 4 * tensor->bytes;
                void *data = starling_alloc(client->client, bytes);

                if (!data)
                        return -errno;
                starling_free(client->client, tensor->data);
                tensor->data = data;
                tensor->bytes = bytes;
        }
        return submit_place(client, place);
}

static void note_failure(struct sl_load_client *client, const struct starling_completion *completion)
{
        if (!client->error.text[0] && completion->status != -EBUSY && completion->status != -ETIME)
                starling_reason_text(completion, client->error.text, sizeof(client->error.text));
}

/* Return: how many are answered for good; -EPIPE. */
static int take_completions(
        struct sl_load_client *client, const struct starling_completion *completions, int n, struct sl_load_answer *ret_answers)
{
        int answered = 0;

        for (int i = 0; i < n; i++) {
                const struct starling_completion *completion = &completions[i];
                uint32_t place = (uint32_t)completion->user_data;

                if (completion->status == -EPIPE)
                        return -EPIPE;
                if (completion->status == -EMSGSIZE && enlarge(client, place) == 0)
                        continue;
                if (completion->status < 0)
                        note_failure(client, completion);
                give_set(client, place);
                ret_answers[answered++] = (struct sl_load_answer){
                        .place = place,
                        .status = completion->status,
                        .queued_ns = completion->queued_ns,
                        .batched_ns = completion->batched_ns,
                        .computing_ns = completion->computing_ns,
                        .combining_ns = completion->combining_ns,
                };
        }
        return answered;
}

/* ---- the rest of the target ---- */

static int target_reap(void *of, struct sl_load_answer *ret_answers, uint32_t max, uint64_t until_ns)
{
        struct sl_load_client *client = of;
        struct starling_completion completions[REAP];
        int n = sl_load_wait(client->queue, client->options.spin, completions, max < REAP ? max : REAP, until_ns);

        return n > 0 ? take_completions(client, completions, n, ret_answers) : n;
}

static bool target_is_interrupted(void *of)
{
        struct sl_load_client *client = of;
        uint64_t now_ns = sl_clock_ns();

        if (now_ns - client->looked_ns >= INTERRUPTION_NS) {
                client->looked_ns = now_ns;
                client->interrupted = sl_bench_interrupted();
        }
        return client->interrupted;
}

struct sl_load_target sl_load_client_target(struct sl_load_client *client)
{
        return (struct sl_load_target){
                .of = client,
                .now_ns = target_now,
                .submit = target_submit,
                .reap = target_reap,
                .is_interrupted = target_is_interrupted,
        };
}
