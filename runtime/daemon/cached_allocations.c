/* SPDX-License-Identifier: Apache-2.0 */
#include "cached_allocations.h"

#include "allocation_cache.h"
#include "allocation_file.h"
#include "allocation_specs.h"
#include "base/error.h"
#include "base/fields.h"
#include "log.h"
#include "spec.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void log_use(const struct sl_cached_allocations *cached, const char *served, const char *origin, const char *cause)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "served", served);
        if (*origin)
                sl_fields_add(&fields, "origin", origin);
        if (cause)
                sl_fields_add(&fields, "cause", cause);
        sl_log_event(
                cached->log, cause ? SL_LOG_WARNING : SL_LOG_INFO, cause ? "allocation-not-used" : "allocation-used", fields.text);
}

static struct sl_cached_allocation *find_item(const struct sl_cached_allocations *cached, const char *name)
{
        for (uint32_t i = 0; i < cached->n; i++)
                if (strcmp(cached->items[i].name, name) == 0)
                        return &cached->items[i];
        return NULL;
}

/* What there is no memory for is used, and not given up. */
static void add_item(struct sl_cached_allocations *cached, const char *name)
{
        struct sl_cached_allocation *items = reallocarray(cached->items, cached->n + 1ul, sizeof(*items));

        if (!items)
                return;
        cached->items = items;
        items[cached->n].given_up = false;
        strcpy(items[cached->n++].name, name);
}

/* What the scan before this one has used. */
static void forget_used(struct sl_cached_allocations *cached)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < cached->n; i++)
                if (cached->items[i].given_up)
                        cached->items[n++] = cached->items[i];
        cached->n = n;
}

static void place(struct sl_cached_allocations *cached, const char *directory, const cpu_set_t *worker_cores,
        struct sl_model_spec *specs, uint32_t n, const struct sl_model_spec *spec)
{
        char name[SL_CACHE_NAME_BYTES], origin[SL_ALLOCATION_ORIGIN_BYTES] = "";
        struct sl_allocation *allocation = NULL;
        struct sl_error error = {""};
        int r;

        sl_allocation_cache_name(cached->processor, specs, n, spec, name);
        if (find_item(cached, name))
                return;
        r = sl_allocation_cache_find(directory, name, &allocation, origin, &error);
        if (r < 0 && !error.text[0])
                return;
        r = r < 0 ? r : sl_allocation_specs(allocation, worker_cores, specs, n, &error);
        if (r == 0)
                add_item(cached, name);
        sl_allocation_free(allocation);
        log_use(cached, spec->name, origin, r < 0 ? error.text : NULL);
}

/* It, or a member of it. */
static bool is_placed(const struct sl_model_spec *specs, uint32_t n, const struct sl_model_spec *spec)
{
        bool placed = sl_worker_set_unplaced(&spec->workers) < spec->workers.n;

        for (uint32_t m = 0; m < spec->n_members; m++)
                for (uint32_t i = 0; i < n; i++)
                        placed |= strcmp(specs[i].name, spec->members[m]) == 0 && is_placed(specs, n, &specs[i]);
        return placed;
}

/* Who has optimized and finds nothing has another folder, or other options of these models. */
static void mention_none(struct sl_cached_allocations *cached, const char *directory)
{
        struct sl_fields fields = {0};
        char folder[PATH_MAX];

        cached->told = true;
        if (!directory && sl_cache_folder_default(folder, NULL) < 0)
                return;
        sl_fields_add(&fields, "folder", directory ? directory : folder);
        sl_log_event(cached->log, SL_LOG_INFO, "no-allocation-kept", fields.text);
}

void sl_cached_allocations_place(struct sl_cached_allocations *cached, const char *directory, const cpu_set_t *worker_cores,
        struct sl_model_spec *specs, uint32_t n)
{
        if (!cached->processor[0])
                sl_processor_name(cached->processor);
        forget_used(cached);
        for (int models = 0; models < 2; models++)
                for (uint32_t i = 0; i < n; i++)
                        if (!specs[i].refused && !specs[i].path == !models && !is_placed(specs, n, &specs[i]))
                                place(cached, directory, worker_cores, specs, n, &specs[i]);
        if (n && !cached->n && !cached->told)
                mention_none(cached, directory);
}

/* A model of it that has failed; NULL: all have loaded. */
static const char *find_failed(
        const struct sl_model_spec *spec, bool (*has_failed)(void *context, const char *model), void *context)
{
        if (spec->path)
                return has_failed(context, spec->name) ? spec->name : NULL;
        for (uint32_t m = 0; m < spec->n_members; m++)
                if (has_failed(context, spec->members[m]))
                        return spec->members[m];
        return NULL;
}

/* What was used for @spec, of which a model has failed; NULL: there is nothing of the kind. */
static struct sl_cached_allocation *find_item_of_failed(const struct sl_cached_allocations *cached,
        const struct sl_model_spec *specs, uint32_t n, const struct sl_model_spec *spec, const char *failed)
{
        char name[SL_CACHE_NAME_BYTES];

        if (!failed)
                return NULL;
        sl_allocation_cache_name(cached->processor, specs, n, spec, name);
        return find_item(cached, name);
}

uint32_t sl_cached_allocations_give_up(struct sl_cached_allocations *cached, const struct sl_model_spec *specs, uint32_t n,
        bool (*has_failed)(void *context, const char *model), void *context)
{
        uint32_t given_up = 0;

        for (uint32_t i = 0; i < n && cached->n; i++) {
                const char *failed = specs[i].refused ? NULL : find_failed(&specs[i], has_failed, context);
                struct sl_cached_allocation *item = find_item_of_failed(cached, specs, n, &specs[i], failed);
                struct sl_error cause;

                if (!item || item->given_up)
                        continue;
                item->given_up = true;
                given_up++;
                sl_error_set(&cause, EIO, "model \"%s\" does not load under it", failed);
                log_use(cached, specs[i].name, "", cause.text);
        }
        return given_up;
}

bool sl_cached_allocations_misses(const struct sl_cached_allocations *cached, const struct sl_model_spec *specs, uint32_t n,
        bool (*has_failed)(void *context, const char *model), void *context)
{
        for (uint32_t i = 0; i < n; i++) {
                const char *failed = specs[i].refused ? NULL : find_failed(&specs[i], has_failed, context);
                const struct sl_cached_allocation *item = find_item_of_failed(cached, specs, n, &specs[i], failed);

                if (item && item->given_up)
                        return true;
        }
        return false;
}

void sl_cached_allocations_deinit(struct sl_cached_allocations *cached)
{
        free(cached->items);
        *cached = (struct sl_cached_allocations){.log = cached->log};
}
