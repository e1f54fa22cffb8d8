/* SPDX-License-Identifier: Apache-2.0 */
#include "tasks.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/processor.h"
#include "catalogue.h"
#include "ensemble.h"
#include "model.h"
#include "names.h"
#include "plan.h"
#include "registry_state.h"
#include "task_page.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A task of the repository, and what was said of its variants last. */
struct own_task {
        struct sl_task_spec spec; /* all that it points to lies in `block` */
        void *block;
        bool *differed; /* [spec.n] */
};

struct sl_tasks {
        struct sl_registry *registry;
        struct own_task *tasks;
        uint32_t n;
        uint32_t changes; /* of the catalogue, when the page was written */
        bool is_new;      /* the list is, since then */
        bool watched[SL_CATALOGUE_MODELS];

        /* The page as it is made, and as it was written: [0] and [1] in turns. */
        struct sl_task_head tasks_of[2][SL_TASKS_MAX];
        struct sl_variant_row rows_of[2][SL_VARIANTS_MAX];
        char texts_of[2][SL_TASK_TEXTS_BYTES];
        struct sl_task_content content[2];
        uint32_t turn;
};

int sl_tasks_new(struct sl_registry *registry, struct sl_tasks **ret_tasks)
{
        struct sl_tasks *tasks = calloc(1, sizeof(*tasks));

        if (!tasks)
                return -ENOMEM;
        tasks->registry = registry;
        *ret_tasks = tasks;
        return 0;
}

static void forget_all(struct sl_tasks *tasks)
{
        for (uint32_t i = 0; i < tasks->n; i++)
                free(tasks->tasks[i].block);
        free(tasks->tasks);
        tasks->tasks = NULL;
        tasks->n = 0;
}

struct sl_tasks *sl_tasks_free(struct sl_tasks *tasks)
{
        if (tasks)
                forget_all(tasks);
        free(tasks);
        return NULL;
}

bool sl_tasks_has(const struct sl_tasks *tasks, const char *name)
{
        for (uint32_t i = 0; i < tasks->n; i++)
                if (strcmp(tasks->tasks[i].spec.name, name) == 0)
                        return true;
        return false;
}

static void report(const struct sl_tasks *tasks, const char *event, const char *task, const char *variant, const char *cause)
{
        const struct sl_runtime_options *options = tasks->registry->options.runtime;
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "task", task);
        if (variant)
                sl_fields_add(&fields, "variant", variant);
        sl_fields_add(&fields, "cause", cause);
        if (options->log)
                options->log(options->context, 1, event, fields.text);
}

/* ---- what the repository lists ---- */

static const char *file_of(const struct sl_task_spec *spec, uint32_t i)
{
        return spec->files ? spec->files[i] : "";
}

/* What was measured by another processor or version says nothing here: then jobs show what they take. */
static bool is_from_elsewhere(const struct sl_task_spec *spec, char ret_cause[SL_TASK_REASON_BYTES])
{
        char here[SL_PROCESSOR_BYTES];

        if (!spec->latencies_ms && !spec->batches_ms)
                return false;
        if (spec->version && strcmp(spec->version, STARLING_VERSION) != 0) {
                snprintf(ret_cause, SL_TASK_REASON_BYTES,
                        "its latencies were measured by version %.64s, this is " STARLING_VERSION ": they do not count",
                        spec->version);
                return true;
        }
        if (!spec->processor)
                return false;
        sl_processor_name(here);
        if (strcmp(spec->processor, here) == 0)
                return false;
        snprintf(ret_cause, SL_TASK_REASON_BYTES, "its latencies were measured on %.120s, this is %s: they do not count",
                spec->processor, here);
        return true;
}

/* Copies of its strings are in the same block, behind the arrays. */
static int own(const struct sl_task_spec *from, bool has_latencies, struct own_task *ret_task)
{
        size_t bytes =
                from->n * ((3 + SL_TASK_BATCHES) * sizeof(double) + 2 * sizeof(char *) + sizeof(bool)) + strlen(from->name) + 1;
        double *accuracies, *costs, *latencies_ms, *batches_ms;
        const char **variants, **files;
        char *text;

        for (uint32_t i = 0; i < from->n; i++)
                bytes += strlen(from->variants[i]) + strlen(file_of(from, i)) + 2;
        accuracies = calloc(1, bytes);
        if (!accuracies)
                return -ENOMEM;
        costs = accuracies + from->n;
        latencies_ms = costs + from->n;
        batches_ms = latencies_ms + from->n;
        variants = (const char **)(batches_ms + from->n * SL_TASK_BATCHES);
        files = variants + from->n;
        ret_task->differed = (bool *)(files + from->n);
        text = (char *)(ret_task->differed + from->n);
        ret_task->block = accuracies;
        ret_task->spec = *from;
        ret_task->spec.name = strcpy(text, from->name);
        for (uint32_t i = 0; i < from->n; i++) {
                text += strlen(text) + 1;
                variants[i] = strcpy(text, from->variants[i]);
                text += strlen(text) + 1;
                files[i] = strcpy(text, file_of(from, i));
                accuracies[i] = from->accuracies[i];
                costs[i] = from->costs ? from->costs[i] : 0;
                latencies_ms[i] = from->latencies_ms && has_latencies ? from->latencies_ms[i] : 0;
        }
        if (from->batches_ms && has_latencies)
                memcpy(batches_ms, from->batches_ms, from->n * SL_TASK_BATCHES * sizeof(*batches_ms));
        ret_task->spec.variants = variants;
        ret_task->spec.accuracies = accuracies;
        ret_task->spec.costs = from->costs ? costs : NULL;
        ret_task->spec.latencies_ms = latencies_ms;
        ret_task->spec.batches_ms = batches_ms;
        ret_task->spec.files = files;
        ret_task->spec.processor = ret_task->spec.version = NULL;
        return 0;
}

/* Room for a row's texts whatever they will be. */
static size_t room_of(const struct sl_task_spec *spec)
{
        size_t bytes = strlen(spec->name) + 1;

        for (uint32_t i = 0; i < spec->n; i++)
                bytes += strlen(spec->variants[i]) + 1;
        return bytes;
}

void sl_tasks_follow(struct sl_tasks *tasks)
{
        const struct sl_runtime_options *options = tasks->registry->options.runtime;
        char cause[SL_TASK_REASON_BYTES];
        uint32_t n = 0, rows = 0;
        bool elsewhere;
        size_t texts = 1;
        const struct sl_task_spec *specs = options->tasks ? options->tasks(options->context, &n) : NULL;
        struct sl_error error;

        forget_all(tasks);
        tasks->is_new = true;
        tasks->tasks = n ? calloc(n, sizeof(*tasks->tasks)) : NULL;
        for (uint32_t i = 0; i < n; i++) {
                if (tasks->n == SL_TASKS_MAX || rows + specs[i].n > SL_VARIANTS_MAX ||
                        texts + room_of(&specs[i]) > SL_TASK_TEXTS_BYTES / 2) {
                        sl_error_set(&error, ENOSPC,
                                "a runtime has at most %u tasks, %u variants in all, and %u bytes for their names", SL_TASKS_MAX,
                                SL_VARIANTS_MAX, SL_TASK_TEXTS_BYTES / 2);
                        report(tasks, "task-left-out", specs[i].name, NULL, error.text);
                        continue;
                }
                elsewhere = is_from_elsewhere(&specs[i], cause);
                if (elsewhere)
                        report(tasks, "task-measured-elsewhere", specs[i].name, NULL, cause);
                if (!tasks->tasks || own(&specs[i], !elsewhere, &tasks->tasks[tasks->n]) < 0) {
                        report(tasks, "task-left-out", specs[i].name, NULL, "out of memory");
                        continue;
                }
                rows += specs[i].n;
                texts += room_of(&specs[i]);
                tasks->n++;
        }
}

/* ---- what a variant is now ---- */

/* A variant as it is looked at: its row, and the ports of its model; n_ports 0: it has none. */
struct variant {
        const struct sl_served *served; /* NULL: no such name */
        struct sl_catalogue_model model;
        struct sl_catalogue_part part;
        uint32_t n_ports;
        char reason[SL_TASK_REASON_BYTES];
};

static enum sl_variant_state state_of(struct variant *variant)
{
        switch ((enum sl_model_state)variant->model.state) {
        case SL_MODEL_READY:
                return SL_VARIANT_SERVES;
        case SL_MODEL_AVAILABLE:
                return variant->n_ports ? SL_VARIANT_AVAILABLE : SL_VARIANT_UNLOADED;
        case SL_MODEL_STANDBY:
                return SL_VARIANT_AVAILABLE;
        case SL_MODEL_ABSENT:
        case SL_MODEL_LOADING:
                return SL_VARIANT_LOADING;
        case SL_MODEL_DRAINING:
                snprintf(variant->reason, sizeof(variant->reason), "it is being unloaded");
                return SL_VARIANT_FAILED;
        case SL_MODEL_FAILED:
                break;
        }
        return SL_VARIANT_FAILED;
}

static uint64_t plans_bytes(const struct sl_ensemble *ensemble)
{
        uint64_t bytes = 0;

        for (uint32_t m = 0; ensemble && m < sl_ensemble_models(ensemble); m++)
                bytes += sl_plan_bytes(ensemble->members[m]->plan);
        return bytes;
}

/* The catalogue is asked, so that this page never says what that does not say. */
static void look_at(struct sl_tasks *tasks, const char *name, struct variant *variant)
{
        struct sl_registry *r = tasks->registry;

        *variant = (struct variant){.served = sl_names_find(r, name)};
        if (!variant->served ||
                sl_catalogue_open(r->options.catalogue, variant->served->index, &variant->model, &variant->part) < 0)
                return;
        variant->n_ports = variant->model.n_inputs + variant->model.n_outputs;
        snprintf(variant->reason, sizeof(variant->reason), "%.*s", (int)sizeof(variant->reason) - 1, variant->model.reason);
}

static uint32_t units_of(double ms)
{
        double units = ms * SL_NS_PER_MS / SL_VARIANT_UNIT_NS;

        return units < UINT32_MAX ? (uint32_t)ceil(units) : UINT32_MAX;
}

static void fill_row(const struct sl_task_spec *spec, uint32_t i, struct variant *variant, struct sl_variant_row *row)
{
        *row = (struct sl_variant_row){.state = SL_VARIANT_ABSENT,
                .index = SL_VARIANT_NOWHERE,
                .accuracy = spec->accuracies[i],
                .cost = spec->costs ? spec->costs[i] : 0,
                .service_ns = (uint64_t)(spec->latencies_ms[i] * SL_NS_PER_MS)};
        for (uint32_t k = 0; k < SL_VARIANT_BATCHES; k++)
                row->batch_units[k] = units_of(spec->batches_ms[i * SL_TASK_BATCHES + k + 1]);
        if (!variant->served) {
                snprintf(variant->reason, sizeof(variant->reason), "the repository has no such model");
                return;
        }
        row->state = state_of(variant);
        row->index = variant->served->index;
        row->generation = variant->model.generation;
        row->samples_max = variant->model.samples_max;
        row->memory_bytes = plans_bytes(variant->served->ensemble);
        row->load_ns = variant->served->standby_want ? variant->served->woke_ns : variant->served->took_ns;
}

/* ---- how signatures differ ---- */

static void print_port(const struct sl_catalogue_port *port, char *ret_text, size_t bytes)
{
        size_t used = (size_t)snprintf(ret_text, bytes, "%s [", sl_dtype_name(port->dtype));

        for (uint32_t i = 0; i < port->rank && used < bytes; i++)
                used += (size_t)snprintf(ret_text + used, bytes - used,
                        port->dims[i] >= 0      ? "%s%d"
                        : i == port->batch_axis ? "%sN"
                                                : "%s?",
                        i ? "," : "", port->dims[i]);
        if (used < bytes)
                snprintf(ret_text + used, bytes - used, "]");
}

static bool is_same_port(const struct sl_catalogue_port *a, const struct sl_catalogue_port *b)
{
        return a->dtype == b->dtype && a->rank == b->rank && a->batch_axis == b->batch_axis && a->optional == b->optional &&
               memcmp(a->dims, b->dims, sizeof(a->dims)) == 0;
}

static void explain(const struct variant *reference, const char *name, struct variant *variant)
{
        const struct sl_catalogue_model *a = &variant->model, *b = &reference->model;
        char own_text[96], wanted[96];

        if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs) {
                snprintf(variant->reason, sizeof(variant->reason),
                        "it has %" PRIu32 " inputs and %" PRIu32 " outputs, variant \"%.128s\" has %" PRIu32 " and %" PRIu32,
                        a->n_inputs, a->n_outputs, name, b->n_inputs, b->n_outputs);
                return;
        }
        for (uint32_t i = 0; i < variant->n_ports; i++) {
                if (is_same_port(&variant->part.ports[i], &reference->part.ports[i]))
                        continue;
                print_port(&variant->part.ports[i], own_text, sizeof(own_text));
                print_port(&reference->part.ports[i], wanted, sizeof(wanted));
                snprintf(variant->reason, sizeof(variant->reason), "its %s \"%.64s\" is %s, that of variant \"%.64s\" is %s",
                        i < a->n_inputs ? "input" : "output", variant->part.texts + variant->part.ports[i].name, own_text, name,
                        wanted);
                return;
        }
}

/* The file that was loaded is not the one whose accuracy the task says. */
static bool is_stale(const struct sl_task_spec *spec, uint32_t i, struct variant *variant)
{
        const struct sl_model *model = variant->served ? variant->served->model : NULL;
        char digest[SL_TASK_DIGEST_DIGITS + 1];

        if (!spec->files[i][0] || !model || !(model->content[0] | model->content[1]))
                return false;
        snprintf(digest, sizeof(digest), "%016" PRIx64 "%016" PRIx64, model->content[1], model->content[0]);
        if (strcmp(digest, spec->files[i]) == 0)
                return false;
        snprintf(variant->reason, sizeof(variant->reason),
                "its model file has changed since it was measured for task \"%.128s\": %.8s then, %.8s now; `starling register` "
                "measures it again",
                spec->name, spec->files[i], digest);
        return true;
}

/* ---- the page ---- */

/* Of texts that do not fit the reasons are left out: names have their room (sl_tasks_follow()). */
static uint32_t add_text(struct sl_task_content *content, const char *text, uint32_t room)
{
        uint32_t at = content->texts_bytes;
        size_t bytes = strlen(text) + 1;

        if (bytes == 1 || at + bytes > room)
                return 0;
        memcpy(content->texts + at, text, bytes);
        content->texts_bytes += (uint32_t)bytes;
        return at;
}

static uint64_t signature_of(const struct variant *variant)
{
        return sl_task_signature(variant->part.ports, variant->model.n_inputs, variant->model.n_outputs);
}

/* Its row, checked against the first that has ports: that one is kept in @reference. */
static void add_variant(struct sl_tasks *tasks, struct own_task *own_task, uint32_t i, struct sl_task_head *task,
        struct sl_task_content *content, struct variant *reference)
{
        struct sl_variant_row *row = &content->rows[content->n_rows++];
        const char *name = own_task->spec.variants[i];
        struct variant variant;
        bool differs, stale;

        look_at(tasks, name, &variant);
        fill_row(&own_task->spec, i, &variant, row);
        stale = is_stale(&own_task->spec, i, &variant);
        differs = !stale && variant.n_ports && task->signature && signature_of(&variant) != task->signature;
        if (stale) {
                row->state = SL_VARIANT_DIFFERS;
                if (!own_task->differed[i])
                        report(tasks, "variant-stale", own_task->spec.name, name, variant.reason);
        }
        if (differs) {
                row->state = SL_VARIANT_DIFFERS;
                explain(reference, own_task->spec.variants[task->reference], &variant);
                if (!own_task->differed[i])
                        report(tasks, "variant-differs", own_task->spec.name, name, variant.reason);
        }
        own_task->differed[i] = differs || stale;
        row->name = add_text(content, name, SL_TASK_TEXTS_BYTES);
        row->reason = add_text(content, variant.reason, SL_TASK_TEXTS_BYTES / 2);
        if (variant.n_ports && !task->signature && !stale) {
                task->signature = signature_of(&variant);
                task->reference = i;
                *reference = variant;
                variant.part.ports = NULL;
        }
        free(variant.part.ports);
}

static void add_task(struct sl_tasks *tasks, struct own_task *own_task, struct sl_task_content *content)
{
        struct sl_task_head *task = &content->tasks[content->n_tasks++];
        struct variant reference = {0};

        *task = (struct sl_task_head){.name = add_text(content, own_task->spec.name, SL_TASK_TEXTS_BYTES),
                .first = content->n_rows,
                .n = own_task->spec.n,
                .policy = own_task->spec.policy,
                .has_costs = own_task->spec.costs != NULL};
        for (uint32_t i = 0; i < own_task->spec.n; i++)
                add_variant(tasks, own_task, i, task, content, &reference);
        free(reference.part.ports);
}

static bool is_same(const struct sl_task_content *a, const struct sl_task_content *b)
{
        return a->n_tasks == b->n_tasks && a->n_rows == b->n_rows && a->texts_bytes == b->texts_bytes &&
               memcmp(a->tasks, b->tasks, a->n_tasks * sizeof(*a->tasks)) == 0 &&
               memcmp(a->rows, b->rows, a->n_rows * sizeof(*a->rows)) == 0 && memcmp(a->texts, b->texts, a->texts_bytes) == 0;
}

/* Before a name is loaded, so that the dispatcher has the line when it hears of the model. */
static void watch(struct sl_tasks *tasks, const struct sl_task_content *content)
{
        struct sl_task_page *page = tasks->registry->options.task_page;
        bool wanted[SL_CATALOGUE_MODELS] = {false};

        for (uint32_t i = 0; i < content->n_rows; i++)
                if (content->rows[i].index != SL_VARIANT_NOWHERE)
                        wanted[content->rows[i].index] = true;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                if (wanted[i] != tasks->watched[i])
                        sl_names_command(tasks->registry, SL_COMMAND_WATCH, wanted[i] ? &page->lines[i] : NULL, i);
                tasks->watched[i] = wanted[i];
        }
}

void sl_tasks_show(struct sl_tasks *tasks)
{
        uint32_t changes = atomic_load_explicit(&tasks->registry->options.catalogue->changes, memory_order_relaxed);
        struct sl_task_content *content = &tasks->content[tasks->turn];

        if (!tasks->is_new && (!tasks->n || changes == tasks->changes))
                return;
        tasks->is_new = false;
        tasks->changes = changes;
        *content = (struct sl_task_content){.tasks = tasks->tasks_of[tasks->turn],
                .rows = tasks->rows_of[tasks->turn],
                .texts = tasks->texts_of[tasks->turn],
                .texts_bytes = 1};
        for (uint32_t i = 0; i < tasks->n; i++)
                add_task(tasks, &tasks->tasks[i], content);
        if (is_same(content, &tasks->content[!tasks->turn]))
                return;
        watch(tasks, content);
        sl_task_page_write(tasks->registry->options.task_page, content);
        tasks->turn = !tasks->turn;
}
