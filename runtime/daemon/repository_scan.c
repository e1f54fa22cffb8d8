/* SPDX-License-Identifier: Apache-2.0 */
#include "repository_scan.h"

#include "base/clock.h"
#include "base/error.h"
#include "model_stamp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void sl_scan_report(const struct sl_repository_scan *scan, const char *format, ...)
{
        struct sl_error error;
        va_list args;

        if (!scan->report)
                return;
        va_start(args, format);
        sl_error_print(&error, format, args);
        va_end(args);
        scan->report(scan->context, error.text);
}

struct sl_scanned *sl_scanned_free(struct sl_scanned *served)
{
        if (served) {
                free(served->path);
                free(served->cause);
                if (!served->is_copied)
                        free(served->spec);
        }
        free(served);
        return NULL;
}

static struct sl_scanned *served_new(const struct sl_repository_scan *scan, const char *name)
{
        struct sl_scanned *served = calloc(1, sizeof(*served));

        if (!served)
                return NULL;
        served->spec = calloc(1, sizeof(*served->spec));
        if (!served->spec)
                return sl_scanned_free(served);
        served->repository = scan->repository;
        memcpy(served->name, name, strnlen(name, sizeof(served->name) - 1));
        return served;
}

/* Thousands of models have none of their own: they share one copy. NULL: no memory. */
static const struct sl_model_config *keep_config(struct sl_repository_scan *scan, const struct sl_model_config *config)
{
        struct sl_scanned_config *kept = scan->configs;

        if (kept && memcmp(&kept->config, config, sizeof(*config)) == 0)
                return &kept->config;
        kept = malloc(sizeof(*kept));
        if (!kept)
                return NULL;
        memcpy(&kept->config, config, sizeof(*config)); /* with what lies between its fields, so that the same is the same again */
        sl_model_config_hold(&kept->config);
        kept->next = scan->configs;
        scan->configs = kept;
        return &kept->config;
}

static uint32_t bucket_of(const char *name)
{
        uint32_t hash = 0x811c9dc5u; /* FNV-1a (Fowler, Noll, Vo) */

        for (; *name; name++)
                hash = (hash ^ (unsigned char)*name) * 0x01000193u;
        return hash % SL_SCAN_BUCKETS;
}

struct sl_scanned *sl_scan_find(const struct sl_repository_scan *scan, const char *name)
{
        struct sl_scanned *served = scan->by_name[bucket_of(name)];

        while (served && strcmp(served->name, name) != 0)
                served = served->next_named;
        return served;
}

static void note_name(struct sl_repository_scan *scan, struct sl_scanned *served)
{
        struct sl_scanned **link = &scan->by_name[bucket_of(served->name)];

        while (*link)
                link = &(*link)->next_named;
        *link = served;
}

static int append(struct sl_repository_scan *scan, struct sl_scanned *served)
{
        struct sl_scanned **grown = reallocarray(scan->served, scan->n + 1ul, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        scan->served = grown;
        grown[scan->n++] = served;
        note_name(scan, served);
        return 0;
}

/* There is room for all: the configuration was checked. */
static void fill_workers(struct sl_scanned *served)
{
        const struct sl_model_config *config = served->config;
        struct sl_worker_set set = {.n = config->instances};
        struct sl_error error;

        for (uint32_t i = 0; i < config->n_batch_sizes; i++)
                set.wishes[i].batch_size = config->batch_sizes[i];
        if (!config->on_gpu || sl_worker_set_spread(&set, config->gpus, config->n_gpus, &served->spec->workers, &error) < 0)
                served->spec->workers = set;
}

static void fill_spec(struct sl_scanned *served, int64_t version, const struct sl_folder_names *beside)
{
        const struct sl_model_config *config = served->config;

        for (uint32_t i = 0; config->members && i < config->members->n; i++)
                served->members[i] = config->members->names[i];
        *served->spec = (struct sl_model_spec){
                .name = served->name,
                .version = version,
                .path = served->path,
                .stamp = sl_model_stamp(config, served->path, beside),
                .lowering = sl_model_config_lowering(config),
                .batch_bytes_max = config->batch_given ? 0 : config->batch_bytes_max,
                .workers_free = !config->workers_given,
                .worker = config->worker,
                .fuse = (enum sl_sharing)config->fuse,
                .on_gpu = config->on_gpu,
                .shapes_max = config->shapes_max,
                .on_request = config->load >= 1 && !config->is_ensemble,
                .standby = config->load == 2 && !config->is_ensemble,
                .idle_unload_ns = config->idle_unload_s * SL_NS_PER_SECOND,
                .idle_standby_ns = config->idle_standby_s * SL_NS_PER_SECOND,
                .members = config->is_ensemble ? served->members : NULL,
                .n_members = config->members ? config->members->n : 0,
                .rule = config->rule,
                .weights = config->is_ensemble && config->has_weights ? config->weights : NULL,
                .combining = config->combining,
                .segment_samples = config->segment_samples,
                .batching = config->batching,
                .slice_ns = config->slice_ms * SL_NS_PER_MS,
                .samples_max = config->samples_max,
                .queue_requests = config->queue_requests,
        };
        fill_workers(served);
        served->spec->n_prepared = config->n_prepared;
        served->spec->prepared_known = config->prepared_known;
        served->spec->prepared = config->prepared;
}

int sl_scan_append(struct sl_repository_scan *scan, const char *name, const char *path, bool shared, int64_t version,
        const struct sl_model_config *config)
{
        struct sl_scanned *served = served_new(scan, name);
        int result = 0;

        if (!served)
                return -ENOMEM;
        served->config = keep_config(scan, config);
        served->path = path ? strdup(path) : NULL;
        if (!served->config || (path && !served->path))
                result = -ENOMEM;
        if (result == 0) {
                fill_spec(served, version, shared ? &scan->beside : NULL);
                result = append(scan, served);
        }
        if (result < 0)
                sl_scanned_free(served);
        return result;
}

int sl_scan_refuse(struct sl_scanned *served, const char *cause)
{
        char *copy = strdup(cause);

        if (!copy)
                return -ENOMEM;
        free(served->cause);
        served->cause = copy;
        *served->spec = (struct sl_model_spec){.name = served->name, .refused = copy};
        return 0;
}

int sl_scan_leave_out(struct sl_repository_scan *scan, const char *name, const char *format, ...)
{
        static const struct sl_model_config nothing;
        struct sl_scanned *served = served_new(scan, name);
        struct sl_error error;
        va_list args;

        if (!served)
                return -ENOMEM;
        served->config = &nothing;
        va_start(args, format);
        sl_error_print(&error, format, args);
        va_end(args);
        sl_scan_report(scan, "%s", error.text);
        int result = sl_scan_refuse(served, error.text);

        if (result == 0)
                result = append(scan, served);
        if (result < 0)
                sl_scanned_free(served);
        return result;
}

bool sl_scan_wants(const struct sl_repository_query *query, const char *name)
{
        for (uint32_t i = 0; i < query->n_models; i++)
                if (strcmp(query->models[i], name) == 0)
                        return true;
        return query->n_models == 0;
}
