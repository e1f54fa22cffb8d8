/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling models`: the catalogue. With --verbose also what each worker of a model takes, from the statistics of the same runtime.
 * With --why these alone, of one model: they are there also where nobody answers. What its tasks have to say of it, or of a task's
 * variants, is not.
 */
#include "base/dim_sizes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "command.h"
#include "session.h"
#include "snapshot.h"
#include "task_lines.h"
#include "variant_why.h"
#include "why.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option options[] = {MODELS_OPTIONS(OPTION_GETOPT){0}};

#define SOCKET_SUFFIX ".sock"

static const char *state_name(enum starling_model_state state)
{
        switch (state) {
        case STARLING_MODEL_LOADING:
                return "loading";
        case STARLING_MODEL_READY:
                return "ready";
        case STARLING_MODEL_DRAINING:
                return "draining";
        case STARLING_MODEL_FAILED:
                return "failed";
        case STARLING_MODEL_AVAILABLE:
                return "available";
        case STARLING_MODEL_STANDBY:
                return "standby";
        }
        return "unknown";
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(((const struct starling_model_entry *)a)->name, ((const struct starling_model_entry *)b)->name);
}

static json_t *port_json(const struct starling_port *port)
{
        json_t *shape = json_array();
        char name[SL_NAME_MAX + 1];

        for (uint32_t i = 0; i < port->rank; i++)
                json_array_append_new(shape, port->dims[i] < 0 ? json_null() : json_integer(port->dims[i]));
        return json_pack("{s:s, s:s, s:o, s:b}", "name", sl_utf8_clean(port->name, name, sizeof(name)), "dtype",
                starling_dtype_name(port->dtype), "shape", shape, "optional", port->optional);
}

static json_t *ports_json(const struct starling_port *ports, uint32_t n)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < n; i++)
                json_array_append_new(array, port_json(&ports[i]));
        return array;
}

/* The dispatcher computes what takes it no longer than inline_us; the model's policy is not asked about that. */
static bool is_inline(const struct sl_worker_stats *worker)
{
        return strcmp(worker->executor, "inline") == 0;
}

static const char *reason_of(const struct sl_worker_stats *worker)
{
        return is_inline(worker)
                       ? "what the dispatcher itself computes at once, as threads.inline_us says; batching holds none of it"
                       : sl_batch_reason_text((uint32_t)sl_counter_read(&worker->batch_reason));
}

/* "0-3,8"; "": any. */
static const char *cores_of(const struct snapshot *stats, const struct sl_worker_stats *worker, char *ret_cores, size_t bytes)
{
        const struct sl_let_stats *let = snapshot_let(stats, worker);

        *ret_cores = 0;
        if (let)
                snprintf(ret_cores, bytes, "%.*s", (int)sizeof(let->cores), let->cores);
        else if (worker->core >= 0)
                snprintf(ret_cores, bytes, "%" PRId32, worker->core);
        return ret_cores;
}

/* " on gpu:0/50%", " on core 3", " on cores 0-3,8", " on any core". */
static void print_place(const struct snapshot *stats, const struct sl_worker_stats *worker)
{
        const char *gpu = snapshot_gpu(stats, worker);
        char cores[sizeof(((struct sl_let_stats *)0)->cores) + 1];

        if (gpu)
                printf(" on %s", gpu);
        else if (*cores_of(stats, worker, cores, sizeof(cores)))
                printf(" on core%s %s", strpbrk(cores, "-,") ? "s" : "", cores);
        else
                printf(" on any core");
}

static json_t *worker_json(const struct snapshot *stats, const struct sl_worker_stats *worker)
{
        char cores[sizeof(((struct sl_let_stats *)0)->cores) + 1];

        cores_of(stats, worker, cores, sizeof(cores));
        return json_pack("{s:s?, s:s?, s:b, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "gpu", snapshot_gpu(stats, worker), "cores",
                *cores ? cores : NULL, "inline", is_inline(worker), "batch_max", (json_int_t)worker->batch_max, "batch_reason",
                reason_of(worker), "plan_bytes", (json_int_t)sl_counter_read(&worker->plan_bytes), "workspace_bytes",
                (json_int_t)sl_counter_read(&worker->workspace_bytes), "pool_bytes",
                (json_int_t)sl_counter_read(&worker->pool_bytes), "dynamic_bytes",
                (json_int_t)sl_counter_read(&worker->dynamic_bytes), "dynamic_used_bytes",
                (json_int_t)sl_counter_read(&worker->dynamic_used_bytes), "packed_bytes",
                (json_int_t)sl_counter_read(&worker->packed_bytes));
}

static json_t *workers_json(const struct snapshot *stats, const char *model)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < stats->n_workers; i++)
                if (!strcmp(stats->workers[i].slot.model, model))
                        json_array_append_new(array, worker_json(stats, &stats->workers[i].slot));
        return array;
}

/* @stats NULL: nobody asked for the workers. */
static json_t *entry_json(struct starling_client *client, const struct starling_model_entry *entry, const struct snapshot *stats)
{
        json_t *object = json_pack("{s:s, s:I, s:s, s:b}", "name", entry->name, "version", (json_int_t)entry->version, "state",
                state_name(entry->state), "ensemble", entry->ensemble);
        struct starling_error error = {""};
        struct starling_model *model;
        char reason[sizeof(error.text)];

        if (starling_model_open(client, entry->name, &model, &error) == 0) {
                const struct starling_model_info *info = starling_model_describe(model);

                json_object_set_new(object, "inputs", ports_json(info->inputs, info->n_inputs));
                json_object_set_new(object, "outputs", ports_json(info->outputs, info->n_outputs));
                json_object_set_new(object, "samples_max", json_integer(info->samples_max));
                json_object_set_new(object, "segment_samples", json_integer(info->segment_samples));
                starling_model_close(model);
        } else if (entry->state == STARLING_MODEL_FAILED || entry->state == STARLING_MODEL_LOADING) {
                json_object_set_new(object, "reason", json_string(sl_utf8_clean(error.text, reason, sizeof(reason))));
        }
        if (stats)
                json_object_set_new(object, "workers", workers_json(stats, entry->name));
        return object;
}

static void print_json(
        struct starling_client *client, const struct starling_model_entry *entries, int n, const struct snapshot *stats)
{
        json_t *array = json_array();

        for (int i = 0; i < n; i++)
                json_array_append_new(array, entry_json(client, &entries[i], stats));
        json_dumpf(array, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(array);
}

/* "image float32 [N,1,8,8]" */
static void print_port(const struct starling_port *port)
{
        char name[SL_NAME_MAX + 1];

        printf(" %s %s [%s", sl_utf8_clean(port->name, name, sizeof(name)), starling_dtype_name(port->dtype),
                !port->rank && port->dims[0] < 0 ? "..." : "");
        for (uint32_t i = 0; i < port->rank; i++) {
                const char *comma = i ? "," : "";

                if (port->dims[i] < 0)
                        printf("%s%s", comma, (int32_t)i == port->batch_axis ? "N" : "?");
                else
                        printf("%s%" PRId32, comma, port->dims[i]);
        }
        printf("]%s", port->optional ? " optional" : "");
}

static double mebibytes(const _Atomic uint64_t *bytes)
{
        return (double)sl_counter_read(bytes) / (1 << 20);
}

static void print_workers(const struct snapshot *stats, const char *model)
{
        for (uint32_t i = 0; i < stats->n_workers; i++) {
                const struct sl_worker_stats *worker = &stats->workers[i].slot;

                if (strcmp(worker->model, model) != 0)
                        continue;
                printf("    worker");
                print_place(stats, worker);
                printf(": batch_max %u (%s), plan %.1f MiB, workspace %.1f MiB, pool %.1f MiB, dynamic %.1f MiB (%.1f used), "
                       "packed %.1f MiB\n",
                        worker->batch_max, reason_of(worker), mebibytes(&worker->plan_bytes), mebibytes(&worker->workspace_bytes),
                        mebibytes(&worker->pool_bytes), mebibytes(&worker->dynamic_bytes), mebibytes(&worker->dynamic_used_bytes),
                        mebibytes(&worker->packed_bytes));
        }
}

static void print_text(
        struct starling_client *client, const struct starling_model_entry *entries, int n, const struct snapshot *stats)
{
        for (int i = 0; i < n; i++) {
                struct starling_error error = {""};
                struct starling_model *model;
                char reason[sizeof(error.text)];

                printf("%-24s %-8s", entries[i].name, state_name(entries[i].state));
                if (entries[i].ensemble)
                        printf(" %-10s", "ensemble");
                else
                        printf(" version %-2" PRId64, entries[i].version);
                if (starling_model_open(client, entries[i].name, &model, &error) == 0) {
                        const struct starling_model_info *info = starling_model_describe(model);

                        for (uint32_t k = 0; k < info->n_inputs; k++)
                                print_port(&info->inputs[k]);
                        printf(" ->");
                        for (uint32_t k = 0; k < info->n_outputs; k++)
                                print_port(&info->outputs[k]);
                        starling_model_close(model);
                } else if (entries[i].state == STARLING_MODEL_FAILED || entries[i].state == STARLING_MODEL_LOADING) {
                        printf(" %s", sl_utf8_clean(error.text, reason, sizeof(reason)));
                }
                putchar('\n');
                if (stats)
                        print_workers(stats, entries[i].name);
        }
        tasks_print_lines(client);
}

static int print_models(const char *command, struct starling_client *client, const struct session_arguments *arguments,
        const struct snapshot *stats)
{
        struct starling_model_entry *entries = NULL;
        int n = starling_model_list(client, NULL, 0), n_max = 0;

        while (n > n_max) { /* more may have come meanwhile */
                free(entries);
                n_max = n;
                entries = calloc((size_t)n_max, sizeof(*entries));
                n = entries ? starling_model_list(client, entries, (uint32_t)n_max) : -1;
        }
        if (n > 0)
                qsort(entries, (size_t)n, sizeof(*entries), compare_names);
        if (n >= 0)
                (arguments->json ? print_json : print_text)(client, entries, n, stats);
        free(entries);
        return n < 0 ? complain(STATUS_FAILED, command, "the catalogue cannot be read") : STATUS_OK;
}

/* A stats page is found by the runtime's name, and so is the socket of a path: FOLDER/NAME.sock. */
static const char *name_of_runtime(const char *name, char ret_name[NAME_MAX + 1])
{
        const char *slash = strrchr(name, '/');
        size_t bytes;

        if (!slash)
                return name;
        bytes = strlen(slash + 1);
        if (bytes > strlen(SOCKET_SUFFIX) && !strcmp(slash + 1 + bytes - strlen(SOCKET_SUFFIX), SOCKET_SUFFIX))
                bytes -= strlen(SOCKET_SUFFIX);
        snprintf(ret_name, NAME_MAX + 1, "%.*s", (int)bytes, slash + 1);
        return ret_name;
}

static int take_stats(const char *command, const struct session_arguments *arguments, struct snapshot **ret_stats)
{
        const char *runtime = arguments->name ? arguments->name : "starling";
        struct sl_error error = {""};
        char name[NAME_MAX + 1];
        int result = snapshot_of(name_of_runtime(runtime, name), ret_stats, &error);

        return result == 0 ? STATUS_OK
                           : session_complain(result, command, runtime, error.text[0] ? error.text : strerrordesc_np(-result));
}

static int print_with_workers(const char *command, struct starling_client *client, const struct session_arguments *arguments)
{
        struct snapshot *stats;
        int status = take_stats(command, arguments, &stats);

        if (status != STATUS_OK)
                return status;
        status = print_models(command, client, arguments, stats);
        snapshot_free(stats);
        return status;
}

/* Its variants are known to who answers; NULL: nobody does. */
static struct starling_client *ask_variants(const struct session_arguments *arguments)
{
        const struct starling_options reader = {.runtime = arguments->name, .role = STARLING_ROLE_READER};
        struct starling_client *client;

        return starling_connect(&reader, &client, NULL) == 0 ? client : NULL;
}

static void print_object(json_t *object)
{
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
}

static void print_why_model(
        const struct session_arguments *arguments, const struct snapshot *stats, const struct sl_model_stats *model)
{
        struct starling_client *client;
        json_t *object;

        if (!arguments->json) { /* before it is waited for who answers */
                why_print_text(stats, model);
                (void)fflush(stdout);
        }
        client = ask_variants(arguments);
        if (!arguments->json) {
                if (client)
                        (void)variant_why_print_model(client, arguments->why);
        } else {
                object = why_json(stats, model);
                json_object_set_new(object, "variant_of", client ? variant_why_model_json(client, arguments->why) : json_null());
                print_object(object);
        }
        starling_close(client);
}

/* Return: whether there is one. */
static bool print_why_task(const struct session_arguments *arguments)
{
        struct starling_client *client = ask_variants(arguments);
        json_t *object = NULL;
        bool is_there = false;

        if (client && arguments->json) {
                object = variant_why_task_json(client, arguments->why);
                is_there = object != NULL;
                if (is_there)
                        print_object(object);
        } else if (client) {
                is_there = variant_why_print_task(client, arguments->why);
        }
        starling_close(client);
        return is_there;
}

static int print_why(const char *command, const struct session_arguments *arguments)
{
        const struct model_snapshot *model;
        struct snapshot *stats;
        int status = take_stats(command, arguments, &stats);

        if (status != STATUS_OK)
                return status;
        model = snapshot_model(stats, arguments->why);
        if (model)
                print_why_model(arguments, stats, &model->slot);
        else if (!print_why_task(arguments))
                status = complain(
                        STATUS_FAILED, command, "no model \"%s\" is wanted or served, and no task is of that name", arguments->why);
        snapshot_free(stats);
        return status;
}

int command_models(int argc, char **argv)
{
        struct session_arguments arguments;
        struct starling_client *client;
        int status = session_parse(argc, argv, options, 0, 0, &arguments);

        if (status == STATUS_OK && arguments.why)
                return print_why(argv[0], &arguments);
        if (status == STATUS_OK)
                status = session_open(argv[0], &arguments, STARLING_ROLE_READER, &client);
        if (status != STATUS_OK)
                return status;
        status = arguments.verbose ? print_with_workers(argv[0], client, &arguments)
                                   : print_models(argv[0], client, &arguments, NULL);
        starling_close(client);
        return status;
}
