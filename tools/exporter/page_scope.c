/* SPDX-License-Identifier: Apache-2.0 */
#include "page_scope.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NO_HISTOGRAMS UINT32_MAX

/* ---- what is read ---- */

/* Nobody has ever asked for it: of thousands that are loaded on request those have series that somebody has used. */
static bool is_untouched(const struct sl_model_stats *model)
{
        return model->state == SL_STATS_MODEL_AVAILABLE && !model->loads && !model->load_failures &&
               !sl_counter_read(&model->requests) && !sl_counter_read(&model->refused);
}

/* The common slot says nothing while every model has its own; the common histograms are those of this slot alone. */
static int show_model(const struct page *page, uint32_t index, struct sl_model_stats *model)
{
        if (index == 0)
                return sl_counter_read(&page->facts.header.crowded) == 0 ? -ENOENT : 0;
        if (model->histograms == 0)
                model->histograms = NO_HISTOGRAMS;
        return is_untouched(model) ? -ENOENT : 0;
}

/* ---- what it is called ---- */

static void add_label(struct text *labels, const char *name, const char *value, size_t bytes)
{
        text_add_format(labels, "%s%s=\"", labels->used ? "," : "", name);
        text_add_label_value(labels, value, bytes);
        text_add(labels, "\"");
}

#define ADD_LABEL(labels, name, value) add_label((labels), (name), (value), sizeof(value))

static void label_nothing(const union page_slot *slot, uint32_t index, struct text *labels)
{
        (void)slot;
        (void)index;
        (void)labels;
}

static void label_exporter(const union page_slot *slot, uint32_t index, struct text *labels)
{
        (void)slot;
        (void)index;
        text_add(labels, "version=\"" STARLING_EXPORTER_VERSION "\"");
}

static void label_build(const union page_slot *slot, uint32_t index, struct text *labels)
{
        (void)index;
        ADD_LABEL(labels, "version", slot->facts.header.release);
        ADD_LABEL(labels, "wait", slot->facts.header.wait_name);
        text_add_format(labels, ",stats_version=\"%u\"", slot->facts.header.version);
}

static void label_dispatcher(const union page_slot *slot, uint32_t index, struct text *labels)
{
        (void)slot;
        text_add_format(labels, "dispatcher=\"%u\"", index);
}

static void label_model(const union page_slot *slot, uint32_t index, struct text *labels)
{
        (void)index;
        ADD_LABEL(labels, "model", slot->model.name);
}

static void label_model_info(const union page_slot *slot, uint32_t index, struct text *labels)
{
        const char *kind = sl_stats_model_kind_name(slot->model.kind);

        label_model(slot, index, labels);
        add_label(labels, "kind", kind, strlen(kind));
        text_add_format(labels, ",version=\"%" PRId64 "\"", slot->model.version);
}

static void label_queue(const union page_slot *slot, uint32_t index, struct text *labels)
{
        const char *kind = sl_stats_queue_kind_name(slot->queue.kind);

        (void)index;
        ADD_LABEL(labels, "model", slot->queue.model);
        add_label(labels, "queue", kind, strlen(kind));
}

static void label_let(const union page_slot *slot, uint32_t index, struct text *labels)
{
        text_add_format(labels, "let=\"%u\"", index);
        ADD_LABEL(labels, "cores", slot->let.cores);
        ADD_LABEL(labels, "name", slot->let.name);
}

static void label_memory(const union page_slot *slot, uint32_t index, struct text *labels)
{
        (void)index;
        ADD_LABEL(labels, "kind", slot->memory.name);
}

static void label_step(const union page_slot *slot, uint32_t index, struct text *labels)
{
        (void)index;
        ADD_LABEL(labels, "step", slot->step.name);
}

static void label_crew(const union page_slot *slot, uint32_t index, struct text *labels)
{
        (void)index;
        ADD_LABEL(labels, "model", slot->worker.model);
}

/* Where it is, from here on. */
#define PLACE ",core="

static void label_worker(const union page_slot *slot, uint32_t index, struct text *labels)
{
        label_crew(slot, index, labels);
        text_add_format(labels, ",worker=\"%u\"", index);
        ADD_LABEL(labels, "executor", slot->worker.executor);
        if (slot->worker.core < 0)
                text_add(labels, PLACE "\"\"");
        else
                text_add_format(labels, PLACE "\"%d\"", slot->worker.core);
        if (slot->worker.let == SL_STATS_NONE)
                text_add(labels, ",let=\"\"");
        else
                text_add_format(labels, ",let=\"%u\"", slot->worker.let);
}

static void label_user(const union page_slot *slot, uint32_t index, struct text *labels)
{
        (void)index;
        text_add_format(labels, "uid=\"%u\"", slot->client.uid);
}

/* ---- scopes ---- */

#define NO_SECTION SL_STATS_SECTIONS_N /* one slot, of facts */

static const struct scope {
        enum sl_stats_section section;
        void (*label)(const union page_slot *slot, uint32_t index, struct text *labels);
} scopes[METRIC_SCOPES] = {
        [SCOPE_EXPORTER] = {NO_SECTION, label_exporter},
        [SCOPE_UP] = {NO_SECTION, label_nothing},
        [SCOPE_RUNTIME] = {NO_SECTION, label_nothing},
        [SCOPE_BUILD] = {NO_SECTION, label_build},
        [SCOPE_MEMORY] = {SL_STATS_MEMORY, label_memory},
        [SCOPE_STEP] = {SL_STATS_STEPS, label_step},
        [SCOPE_DISPATCHER] = {SL_STATS_DISPATCHERS, label_dispatcher},
        [SCOPE_MODEL] = {SL_STATS_MODELS, label_model},
        [SCOPE_MODEL_INFO] = {SL_STATS_MODELS, label_model_info},
        [SCOPE_QUEUE] = {SL_STATS_QUEUES, label_queue},
        [SCOPE_CREW] = {SL_STATS_WORKERS, label_crew},
        [SCOPE_WORKER] = {SL_STATS_WORKERS, label_worker},
        [SCOPE_LET] = {SL_STATS_LETS, label_let},
        [SCOPE_USER] = {SL_STATS_CLIENTS, label_user},
};

uint32_t page_slots(const struct page *page, enum metric_scope scope)
{
        uint32_t n;

        if (!page->view)
                return scope == SCOPE_UP || scope == SCOPE_EXPORTER;
        if (scopes[scope].section == NO_SECTION)
                return 1;
        n = sl_stats_count(page->view, scopes[scope].section);
        return n < PAGE_SLOTS_MAX ? n : PAGE_SLOTS_MAX;
}

int page_read(const struct page *page, enum metric_scope scope, uint32_t index, union page_slot *ret_slot, struct text *labels)
{
        enum sl_stats_section section = scopes[scope].section;
        int r = 0;

        if (section == NO_SECTION)
                ret_slot->facts = page->facts;
        else
                r = sl_stats_read_slot(page->view, section, index, &ret_slot->any);
        if (r == 0 && section == SL_STATS_MODELS)
                r = show_model(page, index, &ret_slot->model);
        if (r == 0)
                scopes[scope].label(ret_slot, index, labels);
        return r;
}

size_t page_owner_bytes(enum metric_scope scope, const char *labels)
{
        const char *place = NULL;

        for (const char *at = labels; scope == SCOPE_WORKER && (at = strstr(at, PLACE)); at++)
                place = at; /* the last one: a name may look like it */
        return place ? (size_t)(place - labels) : 0;
}

bool page_whole(enum metric_scope scope, const union page_slot *slot, struct text *labels)
{
        char name[SL_STATS_MODEL_BYTES];

        if (scope != SCOPE_MODEL || !sl_stats_sizes_of(&slot->model, name))
                return false;
        ADD_LABEL(labels, "model", name);
        return true;
}

/* ---- values ---- */

static void read_histogram(const struct page *page, const struct metric *metric, const union page_slot *slot, uint64_t *ret_values)
{
        struct sl_histogram histogram;

        memset(ret_values, 0, metric_width(metric) * sizeof(*ret_values));
        if (sl_stats_read_histogram(page->view, slot->model.histograms, (enum sl_stage)metric->offset, &histogram) < 0)
                return;
        buckets_fold(&histogram, ret_values);
        ret_values[BUCKETS] = sl_counter_read(&histogram.sum_ns);
}

static uint64_t read_field(const struct page *page, const struct metric *metric, const union page_slot *slot)
{
        uint64_t value = 0;

        memcpy(&value, (const char *)slot + metric->offset, metric->bytes); /* little-endian: a short one is the lower half */
        if (metric->unit == METRIC_AGE)
                return value && value < page->now_ns ? page->now_ns - value : 0;
        return metric->compares ? value == metric->equals : value;
}

void page_values(const struct page *page, const struct metric *metric, const union page_slot *slot, uint64_t *ret_values)
{
        if (metric->type == METRIC_HISTOGRAM)
                read_histogram(page, metric, slot, ret_values);
        else
                *ret_values = metric->type == METRIC_INFO ? 1 : read_field(page, metric, slot);
}
