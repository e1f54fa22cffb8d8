#include "command.h"
#include "session.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODELS_MAX 1024

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

        for (uint32_t i = 0; i < port->rank; i++)
                json_array_append_new(shape, port->dims[i] < 0 ? json_null() : json_integer(port->dims[i]));
        return json_pack("{s:s, s:s, s:o}", "name", port->name, "dtype", starling_dtype_name(port->dtype), "shape", shape);
}

static json_t *ports_json(const struct starling_port *ports, uint32_t n)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < n; i++)
                json_array_append_new(array, port_json(&ports[i]));
        return array;
}

static json_t *entry_json(struct starling_client *client, const struct starling_model_entry *entry)
{
        json_t *object = json_pack("{s:s, s:I, s:s, s:b}", "name", entry->name, "version", (json_int_t)entry->version, "state",
                state_name(entry->state), "ensemble", entry->ensemble);
        struct starling_model *model;

        if (starling_model_open(client, entry->name, &model, NULL) == 0) {
                const struct starling_model_info *info = starling_model_describe(model);

                json_object_set_new(object, "inputs", ports_json(info->inputs, info->n_inputs));
                json_object_set_new(object, "outputs", ports_json(info->outputs, info->n_outputs));
                json_object_set_new(object, "samples_max", json_integer(info->samples_max));
                json_object_set_new(object, "segment_samples", json_integer(info->segment_samples));
                starling_model_close(model);
        }
        return object;
}

static void print_json(struct starling_client *client, const struct starling_model_entry *entries, int n)
{
        json_t *array = json_array();

        for (int i = 0; i < n; i++)
                json_array_append_new(array, entry_json(client, &entries[i]));
        json_dumpf(array, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(array);
}

/* "image float32 [N,1,8,8]" */
static void print_port(const struct starling_port *port)
{
        printf(" %s %s [", port->name, starling_dtype_name(port->dtype));
        for (uint32_t i = 0; i < port->rank; i++) {
                const char *comma = i ? "," : "";

                if (port->dims[i] < 0)
                        printf("%s%s", comma, (int32_t)i == port->batch_axis ? "N" : "?");
                else
                        printf("%s%" PRId32, comma, port->dims[i]);
        }
        printf("]");
}

static void print_text(struct starling_client *client, const struct starling_model_entry *entries, int n)
{
        for (int i = 0; i < n; i++) {
                struct starling_model *model;

                printf("%-24s %-8s", entries[i].name, state_name(entries[i].state));
                if (entries[i].ensemble)
                        printf(" %-10s", "ensemble");
                else
                        printf(" version %-2" PRId64, entries[i].version);
                if (starling_model_open(client, entries[i].name, &model, NULL) == 0) {
                        const struct starling_model_info *info = starling_model_describe(model);

                        for (uint32_t k = 0; k < info->n_inputs; k++)
                                print_port(&info->inputs[k]);
                        printf(" ->");
                        for (uint32_t k = 0; k < info->n_outputs; k++)
                                print_port(&info->outputs[k]);
                        starling_model_close(model);
                }
                putchar('\n');
        }
}

int command_models(int argc, char **argv)
{
        struct session_arguments arguments;
        struct starling_client *client;
        int status = session_parse(argc, argv, true, 0, 0, &arguments);

        if (status == STATUS_OK)
                status = session_open(argv[0], &arguments, STARLING_ROLE_READER, &client);
        if (status != STATUS_OK)
                return status;
        struct starling_model_entry *entries = calloc(MODELS_MAX, sizeof(*entries));
        int n = entries ? starling_model_list(client, entries, MODELS_MAX) : -1;
        if (n > MODELS_MAX)
                n = MODELS_MAX;
        if (n < 0) {
                status = complain(STATUS_FAILED, argv[0], "the catalogue cannot be read");
        } else {
                qsort(entries, (size_t)n, sizeof(*entries), compare_names);
                (arguments.json ? print_json : print_text)(client, entries, n);
        }
        free(entries);
        starling_close(client);
        return status;
}
