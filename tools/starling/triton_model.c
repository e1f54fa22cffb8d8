/* SPDX-License-Identifier: Apache-2.0 */
#include "triton_model.h"

#include "base/error.h"
#include "base/value.h"
#include "model_config.h"
#include "pbtxt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_SAMPLES 128ul  /* the default of segment_samples, which is never below batch_max */
#define BATCH_MAX       1024ul /* most that batch_max takes */
#define INSTANCES_MAX   64ul
#define QUEUE_MAX       (1ul << 20) /* most that queue_requests takes */

struct translation {
        const char *path, *name;
        FILE *yaml, *notes;
        const struct pbtxt_field *fields, *noted; /* the last one of which there is a note */
        struct sl_error *error;
};

/* Once for all elements of a list. */
static void note(struct translation *t, const struct pbtxt_field *field, const char *why)
{
        if (t->noted && t->noted->line == field->line && strcmp(t->noted->name, field->name) == 0)
                return;
        t->noted = field;
        fprintf(t->notes, "%u: %s: %s\n", field->line, field->name, why);
}

static int refuse(const struct translation *t, const struct pbtxt_field *field, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static int refuse(const struct translation *t, const struct pbtxt_field *field, const char *format, ...)
{
        struct sl_error text;
        va_list args;

        va_start(args, format);
        sl_error_print(&text, format, args);
        va_end(args);
        return sl_error_set(t->error, ENOTSUP, "%s:%u: %s", t->path, field->line, text.text);
}

/* A whole number, or @absent. Messages and words count as 0. */
static unsigned long number_of(const struct pbtxt_field *fields, const char *name, unsigned long absent)
{
        const struct pbtxt_field *field = pbtxt_find(fields, name);

        return field && field->value && field->value[0] != '-' ? strtoul(field->value, NULL, 10) : absent;
}

static const char *text_of(const struct pbtxt_field *fields, const char *name)
{
        const struct pbtxt_field *field = pbtxt_find(fields, name);

        return field && field->value ? field->value : "";
}

/* ---- what has a counterpart ---- */

static int take_name(struct translation *t, const struct pbtxt_field *field)
{
        if (strcmp(text_of(field, field->name), t->name) != 0)
                note(t, field, "the folder's name is the model's");
        return 0;
}

static int take_platform(struct translation *t, const struct pbtxt_field *field)
{
        const char *value = field->value ? field->value : "";

        if (!strcmp(value, "onnxruntime_onnx") || !strcmp(value, "onnxruntime") || !strcmp(value, "ensemble") || !*value)
                return 0;
        return refuse(t, field, "%s \"%s\": only ONNX files are served", field->name, value);
}

static int take_filename(struct translation *t, const struct pbtxt_field *field)
{
        if (strcmp(field->value ? field->value : "", "model.onnx") != 0)
                note(t, field, "the file of a version is called model.onnx: rename it, or make a link");
        return 0;
}

static int take_batch(struct translation *t, const struct pbtxt_field *field)
{
        unsigned long max = number_of(field, field->name, 0);

        if (max > BATCH_MAX) {
                note(t, field, "batch_max is at most 1024");
                max = BATCH_MAX;
        }
        fprintf(t->yaml, "batch_max: %lu\n", max ? max : 1);
        if (max > SEGMENT_SAMPLES)
                fprintf(t->yaml, "segment_samples: %lu\n", max);
        return 0;
}

/* Dimensions and types are the file's. What else is said of a tensor is noted. */
static int take_port(struct translation *t, const struct pbtxt_field *port)
{
        static const char *const known[] = {"name", "data_type", "dims"};

        for (const struct pbtxt_field *field = port->first; field; field = field->next) {
                size_t i = 0;

                while (i < 3 && strcmp(field->name, known[i]) != 0)
                        i++;
                if (i == 3)
                        note(t, field, "of a tensor: the ONNX file alone says what its tensors are");
        }
        return 0;
}

static void take_latest(struct translation *t, const struct pbtxt_field *latest)
{
        unsigned long n = number_of(latest->first, "num_versions", pbtxt_find(latest->first, "num_versions") ? 0 : 1);

        if (n < 1 || n > SL_LATEST_MAX)
                note(t, latest, "version_policy.latest is 1 to 64");
        fprintf(t->yaml, "version_policy: {latest: %lu}\n", n < 1 ? 1 : n > SL_LATEST_MAX ? SL_LATEST_MAX : n);
}

static int take_specific(struct translation *t, const struct pbtxt_field *specific)
{
        char wish[SL_WISH_BYTES];
        unsigned int n = 0;
        uint64_t number;

        fprintf(t->yaml, "version_policy: {specific: [");
        for (const struct pbtxt_field *v = specific->first; (v = pbtxt_find(v, "versions")); v = v->next, n++) {
                const char *version = v->value ? v->value : "";

                if (sl_value_number(version, 1, INT64_MAX, &number, wish) < 0)
                        return refuse(t, v, "versions: \"%s\" is %s", version, wish);
                fprintf(t->yaml, "%s%" PRIu64, n ? ", " : "", number);
        }
        fprintf(t->yaml, "]}\n");
        if (n < 1 || n > SL_SPECIFIC_MAX)
                return refuse(t, specific, "specific: %u versions, wanted 1 to %u", n, SL_SPECIFIC_MAX);
        return 0;
}

static int take_versions(struct translation *t, const struct pbtxt_field *policy)
{
        const struct pbtxt_field *latest = pbtxt_find(policy->first, "latest"), *specific = pbtxt_find(policy->first, "specific");

        if (pbtxt_find(policy->first, "all"))
                fprintf(t->yaml, "version_policy: {all: true}\n");
        else if (latest)
                take_latest(t, latest);
        else if (specific)
                return take_specific(t, specific);
        return 0;
}

static void note_instances(struct translation *t, const struct pbtxt_field *group)
{
        for (const struct pbtxt_field *field = group->first; field; field = field->next)
                if (!strcmp(field->name, "kind") && !strcmp(field->value ? field->value : "", "KIND_GPU"))
                        note(t, field, "workers run on CPU cores, unless device in config.yaml names a GPU");
                else if (!strcmp(field->name, "gpus"))
                        note(t, field, "device: [gpu:N, ...] names GPUs");
                else if (strcmp(field->name, "count") != 0 && strcmp(field->name, "kind") != 0 && strcmp(field->name, "name") != 0)
                        note(t, field, "of an instance group: no counterpart");
}

/* All groups are one number of workers. Called for the first of them. */
static int take_instances(struct translation *t, const struct pbtxt_field *group)
{
        unsigned long count = 0;

        if (group != pbtxt_find(t->fields, group->name))
                return 0;
        for (const struct pbtxt_field *g = group; (g = pbtxt_find(g, group->name)); g = g->next) {
                unsigned long more = number_of(g->first, "count", 1);

                count += more > INSTANCES_MAX ? INSTANCES_MAX + 1 : more;
                note_instances(t, g);
        }
        if (count > INSTANCES_MAX) {
                note(t, group, "instances are at most 64");
                count = INSTANCES_MAX;
        }
        fprintf(t->yaml, "instances: %lu\n", count ? count : 1);
        return 0;
}

static void take_queue_size(struct translation *t, const struct pbtxt_field *field)
{
        unsigned long size = number_of(field, field->name, 0);

        if (size > QUEUE_MAX) {
                note(t, field, "queue_requests is at most 1048576");
                size = QUEUE_MAX;
        }
        if (size)
                fprintf(t->yaml, "queue_requests: %lu\n", size);
}

static void take_queue_policy(struct translation *t, const struct pbtxt_field *policy)
{
        for (const struct pbtxt_field *field = policy->first; field; field = field->next)
                if (strcmp(field->name, "max_queue_size") == 0)
                        take_queue_size(t, field);
                else
                        note(t, field, "a deadline goes with each request");
}

static int take_batching(struct translation *t, const struct pbtxt_field *batching)
{
        for (const struct pbtxt_field *field = batching->first; field; field = field->next) {
                if (!strcmp(field->name, "default_queue_policy"))
                        take_queue_policy(t, field);
                else if (strstr(field->name, "priority"))
                        note(t, field, "a priority, 0 to 3, goes with each request");
                else if (!strcmp(field->name, "preserve_ordering"))
                        note(t, field,
                                "requests of one queue pair complete as they are done; each carries its user_data. Triton's: "
                                "batching: triton, batching_in_order: yes");
                else if (!strcmp(field->name, "max_queue_delay_microseconds"))
                        note(t, field,
                                "no worker waits for more while it could compute. Triton's: batching: triton, batching_delay_us");
                else
                        note(t, field,
                                "a free worker takes what waits, up to batch_max. Triton's: batching: triton, batching_sizes");
        }
        return 0;
}

/* ---- ensembles ---- */

static bool is_port(const struct translation *t, const char *direction, const char *name)
{
        for (const struct pbtxt_field *port = t->fields; (port = pbtxt_find(port, direction)); port = port->next)
                if (strcmp(text_of(port->first, "name"), name) == 0)
                        return true;
        return false;
}

/* What @step reads is the ensemble's inputs, and what it writes the ensemble's outputs: nothing comes from another step. */
static const char *inner_tensor(const struct translation *t, const struct pbtxt_field *step)
{
        for (const struct pbtxt_field *field = step->first; field; field = field->next) {
                bool reads = !strcmp(field->name, "input_map");

                if ((reads || !strcmp(field->name, "output_map")) &&
                        !is_port(t, reads ? "input" : "output", text_of(field->first, "value")))
                        return text_of(field->first, "value");
        }
        return NULL;
}

static int take_step(struct translation *t, const struct pbtxt_field *step, const char *comma)
{
        const char *inner = inner_tensor(t, step), *version = text_of(step->first, "model_version");
        const char *name = text_of(step->first, "model_name");
        char wish[SL_WISH_BYTES];
        uint64_t number;

        if (sl_value_model_name(name, wish) < 0)
                return refuse(t, step, "model_name \"%s\" is %s", name, wish);
        if (*version && strcmp(version, "-1") != 0 && sl_value_number(version, 1, INT64_MAX, &number, wish) < 0)
                return refuse(t, step, "model_version \"%s\" is %s", version, wish);
        if (inner)
                return refuse(t, step, "a pipeline: \"%s\" goes from step to step; members of an ensemble run side by side", inner);
        fprintf(t->yaml, "%s\"%s", comma, name);
        if (*version && *version != '-')
                fprintf(t->yaml, ":%s", version);
        fprintf(t->yaml, "\"");
        return 0;
}

static int take_ensemble(struct translation *t, const struct pbtxt_field *scheduling)
{
        const char *comma = "";
        int result = 0;

        fprintf(t->yaml, "ensemble:\n  members: [");
        for (const struct pbtxt_field *step = scheduling->first; result == 0 && (step = pbtxt_find(step, "step"));
                step = step->next) {
                result = take_step(t, step, comma);
                comma = ", ";
        }
        fprintf(t->yaml, "]\n  rule: none\n");
        note(t, scheduling, "inputs and outputs are named as the first member's and the members' are");
        return result;
}

/* ---- the table ---- */

#define NO_COUNTERPART(X)                                                                                                          \
        X("sequence_batching", "requests of a sequence are not kept together")                                                     \
        X("optimization", "how a model is compiled is said by tune, precision and their neighbours")                               \
        X("parameters", "the backend's own parameters")                                                                            \
        X("model_warmup", "a model is ready after it has run; prepared_shapes names sizes that are compiled before that")          \
        X("response_cache", "answers are not cached")                                                                              \
        X("model_transaction_policy", "a request has one answer")                                                                  \
        X("model_operations", "operators come with the runtime")                                                                   \
        X("cc_model_filenames", "the file of a version is called model.onnx")                                                      \
        X("metric_tags", "`starling stats` names models by their names")                                                           \
        X("model_metrics", "`starling stats` has histograms of each model")                                                        \
        X("model_repository_agents", "files are served as they are")                                                               \
        X("runtime", "the backend is the runtime's")                                                                               \
        X("batch_input", "made by the backend")                                                                                    \
        X("batch_output", "made by the backend")

static const struct {
        const char *name;
        int (*take)(struct translation *t, const struct pbtxt_field *field);
} taken[] = {
        {"name", take_name},
        {"platform", take_platform},
        {"backend", take_platform},
        {"default_model_filename", take_filename},
        {"max_batch_size", take_batch},
        {"input", take_port},
        {"output", take_port},
        {"version_policy", take_versions},
        {"instance_group", take_instances},
        {"dynamic_batching", take_batching},
        {"ensemble_scheduling", take_ensemble},
};

static int take_field(struct translation *t, const struct pbtxt_field *field)
{
        for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
                if (strcmp(field->name, taken[i].name) == 0)
                        return taken[i].take(t, field);
#define X(name_of_field, why)                                                                                                      \
        if (strcmp(field->name, name_of_field) == 0) {                                                                             \
                note(t, field, "no counterpart: " why);                                                                            \
                return 0;                                                                                                          \
        }
        NO_COUNTERPART(X)
#undef X
        note(t, field, "not known");
        return 0;
}

static int translate(struct translation *t)
{
        int result = 0;

        for (const struct pbtxt_field *field = t->fields; field && result == 0; field = field->next)
                result = take_field(t, field);
        return result;
}

int triton_model_translate(const char *path, const char *name, struct triton_model *ret_model, struct sl_error *error)
{
        struct triton_model model = {NULL, NULL};
        size_t yaml_bytes, notes_bytes;
        struct pbtxt *file = NULL;
        int result = pbtxt_read(path, &file, error);

        if (result < 0)
                return result;
        struct translation t = {.path = path,
                .name = name,
                .yaml = open_memstream(&model.yaml, &yaml_bytes),
                .notes = open_memstream(&model.notes, &notes_bytes),
                .fields = pbtxt_first(file),
                .error = error};
        result = t.yaml && t.notes ? translate(&t) : sl_error_set(error, ENOMEM, "%s: out of memory", path);
        if (t.yaml && fclose(t.yaml) != 0 && result == 0)
                result = sl_error_set(error, ENOMEM, "%s: out of memory", path);
        if (t.notes && fclose(t.notes) != 0 && result == 0)
                result = sl_error_set(error, ENOMEM, "%s: out of memory", path);
        pbtxt_free(file);
        if (result < 0)
                triton_model_deinit(&model);
        else
                *ret_model = model;
        return result;
}

void triton_model_deinit(struct triton_model *model)
{
        free(model->yaml);
        free(model->notes);
        *model = (struct triton_model){NULL, NULL};
}
