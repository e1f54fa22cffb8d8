/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_costs.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "costs.h"
#include "device_let.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_costs *, sl_costs_free)

struct source {
        const struct sl_profile_list *list;
        bool plain; /* a name does without the precision */
};

/* Names and sizes, each once. */
struct axes {
        char (*devices)[SL_COST_NAME_BYTES], (*models)[SL_COST_NAME_BYTES];
        uint32_t batches[SL_COST_BATCHES_MAX];
        uint32_t n_devices, n_models, n_batches;
};

static void axes_deinit(struct axes *axes)
{
        free(axes->devices);
        free(axes->models);
}

static_assert(
        sizeof(((struct sl_worker_profile *)0)->model) + sizeof(((struct sl_worker_profile *)0)->precision) <= SL_COST_NAME_BYTES,
        "both fit, with a blank between them");

static void name_model(const struct source *source, const char *model, const char *precision, char ret_name[SL_COST_NAME_BYTES])
{
        bool plain = source->plain || strcmp(precision, "fp32") == 0 || !*precision;

        snprintf(ret_name, SL_COST_NAME_BYTES, "%s%s%s", model, plain ? "" : " ", plain ? "" : precision);
}

static uint32_t find_name(char (*names)[SL_COST_NAME_BYTES], uint32_t n, const char *name)
{
        uint32_t i = 0;

        while (i < n && strcmp(names[i], name) != 0)
                i++;
        return i;
}

static void add_name(char (*names)[SL_COST_NAME_BYTES], uint32_t *n, const char *name)
{
        if (find_name(names, *n, name) == *n)
                snprintf(names[(*n)++], SL_COST_NAME_BYTES, "%s", name);
}

static int add_batch(struct axes *axes, uint64_t batch, struct sl_error *error)
{
        uint32_t at = axes->n_batches;

        for (uint32_t i = 0; i < axes->n_batches; i++)
                if (axes->batches[i] == batch)
                        return 0;
        if (axes->n_batches == SL_COST_BATCHES_MAX || batch > SL_COST_BATCH_MAX)
                return sl_error_set(error, E2BIG, "batch %llu: at most %u batch sizes up to %u", (unsigned long long)batch,
                        SL_COST_BATCHES_MAX, SL_COST_BATCH_MAX);
        for (; at && axes->batches[at - 1] > batch; at--)
                axes->batches[at] = axes->batches[at - 1];
        axes->batches[at] = (uint32_t)batch;
        axes->n_batches++;
        return 0;
}

static int find_axes(const struct source *source, struct axes *axes, struct sl_error *error)
{
        const struct sl_profile_list *list = source->list;
        int r = 0;

        axes->devices = calloc(list->n + 1, sizeof(*axes->devices));
        axes->models = calloc(list->n + 1, sizeof(*axes->models));
        if (!axes->devices || !axes->models)
                return sl_error_set(error, ENOMEM, "no memory for %zu profiles", list->n);
        for (size_t i = 0; i < list->n && r == 0; i++) {
                const struct sl_worker_profile *profile = &list->items[i];
                char model[SL_COST_NAME_BYTES];

                name_model(source, profile->model, profile->precision, model);
                add_name(axes->devices, &axes->n_devices, profile->device);
                add_name(axes->models, &axes->n_models, model);
                r = add_batch(axes, profile->batch, error);
        }
        return r;
}

static size_t kind_bytes(const char *device)
{
        return strcspn(device, ":");
}

static bool same_kind(const char *a, const char *b)
{
        return kind_bytes(a) == kind_bytes(b) && strncmp(a, b, kind_bytes(a)) == 0;
}

static void fill_axes(const struct axes *axes, uint64_t memory_bytes, struct sl_costs *costs)
{
        memcpy(costs->batches, axes->batches, axes->n_batches * sizeof(*costs->batches));
        for (uint32_t i = 0; i < axes->n_models; i++)
                strcpy(costs->models[i].name, axes->models[i]);
        for (uint32_t i = 0; i < axes->n_devices; i++) {
                struct sl_cost_device *device = &costs->devices[i];
                uint32_t first = 0;

                while (!same_kind(axes->devices[first], axes->devices[i]))
                        first++;
                strcpy(costs->classes[i].name, axes->devices[i]);
                strcpy(device->name, axes->devices[i]);
                costs->classes[i].kind = same_kind(device->name, "cpu") ? SL_DEVICE_CPU : SL_DEVICE_GPU;
                device->class_index = i;
                device->memory_of = first;
                device->memory_bytes = memory_bytes;
        }
}

static enum sl_cost_source source_of(const struct sl_worker_profile *profile)
{
        char origin[SL_PROFILE_TEXT_BYTES];

        sl_profile_origin(profile, sl_profile_field_find("latency_p50_ns"), origin);
        return strncmp(origin, "measured", 8) == 0    ? SL_COST_MEASURED
               : strncmp(origin, "published", 9) == 0 ? SL_COST_PUBLISHED
               : strncmp(origin, "derived", 7) == 0   ? SL_COST_DERIVED
                                                      : SL_COST_UNKNOWN;
}

static uint64_t whole(double figure)
{
        return isnan(figure) ? 0 : (uint64_t)ceil(figure);
}

static void fill_cell(struct sl_costs *costs, uint32_t device, uint32_t model, const struct sl_worker_profile *profile)
{
        uint64_t weights = whole(profile->weights_bytes);

        *sl_costs_cell(costs, device, model, sl_costs_find_batch(costs, (uint32_t)profile->batch)) =
                (struct sl_cost_cell){.latency_ns = whole(profile->latency_p50_ns),
                        .transfer_ns = whole(profile->transfer_ns),
                        .workspace_bytes = whole(profile->workspace_bytes),
                        .source = source_of(profile)};
        if (weights > costs->models[model].weights_bytes)
                costs->models[model].weights_bytes = weights;
}

/* "MODEL PRECISION BATCH", and nothing behind it. @largest: the batch of what stands in the pair. */
static void fill_pair(const struct source *source, struct sl_costs *costs, uint32_t device, uint32_t model,
        const struct sl_worker_profile *profile, uint64_t *largest)
{
        char other[sizeof(profile->model)], precision[16], name[SL_COST_NAME_BYTES];
        uint32_t index;

        if (strchr(profile->beside, '+') || isnan(profile->slowdown) ||
                sscanf(profile->beside, "%1151s %15s", other, precision) != 2)
                return;
        name_model(source, other, precision, name);
        index = sl_costs_find_model(costs, name);
        if (index == SL_COST_NONE || profile->batch < largest[index])
                return;
        largest[index] = profile->batch;
        *sl_costs_pair(costs, device, model, index) = fmax(profile->slowdown, 1e-3);
}

/* Is there one like it that has fewer threads? */
static bool has_smaller(const struct sl_profile_list *list, const struct sl_worker_profile *profile)
{
        for (size_t i = 0; i < list->n; i++) {
                const struct sl_worker_profile *other = &list->items[i];

                if (other->threads < profile->threads && other->batch == profile->batch &&
                        strcmp(other->device, profile->device) == 0 && strcmp(other->model, profile->model) == 0 &&
                        strcmp(other->precision, profile->precision) == 0 && strcmp(other->beside, profile->beside) == 0)
                        return true;
        }
        return false;
}

/* Of one device and model: profiles that agree in these and differ in the rest. */
static int fill_model(const struct source *source, struct sl_costs *costs, uint32_t device, uint32_t model, struct sl_error *error)
{
        const struct sl_profile_list *list = source->list;
        SL_CLEANUP(sl_cleanup_free) uint64_t *largest = calloc(costs->n_models, sizeof(*largest));

        if (!largest)
                return sl_error_set(error, ENOMEM, "no memory for pairs of %u models", costs->n_models);
        for (size_t i = 0; i < list->n; i++) {
                const struct sl_worker_profile *profile = &list->items[i];
                char name[SL_COST_NAME_BYTES];

                if (strcmp(profile->device, costs->devices[device].name) != 0)
                        continue;
                name_model(source, profile->model, profile->precision, name);
                if (strcmp(name, costs->models[model].name) != 0 || has_smaller(list, profile))
                        continue;
                if (profile->beside[0])
                        fill_pair(source, costs, device, model, profile, largest);
                else
                        fill_cell(costs, device, model, profile);
        }
        return 0;
}

/* The cores of a let, by its name: of another host, which has cores that this one may not use, as well. 0: it says none. */
static uint32_t cores_of(const char *device)
{
        struct sl_device_let let;
        cpu_set_t all;

        memset(&all, 0xff, sizeof(all));
        return strchr(device, ':') && sl_device_let_parse(device, &all, &let, NULL) == 0 ? let.n_cores : 0;
}

/* As many workers compute at once as there are cores for their teams. */
static void fill_units(const struct source *source, struct sl_costs *costs, uint32_t device)
{
        const struct sl_profile_list *list = source->list;
        uint32_t cores = costs->classes[device].kind == SL_DEVICE_CPU ? cores_of(costs->devices[device].name) : 0;
        uint64_t threads = 1;

        for (size_t i = 0; i < list->n; i++)
                if (strcmp(list->items[i].device, costs->devices[device].name) == 0 && !list->items[i].beside[0] &&
                        list->items[i].threads > threads && !has_smaller(list, &list->items[i]))
                        threads = list->items[i].threads;
        costs->classes[device].units = (uint32_t)(cores / threads);
}

static int make_costs(const struct source *source, const struct axes *axes, uint64_t memory_bytes, struct sl_costs **ret_costs,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *costs = NULL;
        int r = sl_costs_new(axes->n_devices, axes->n_devices, axes->n_models, axes->n_batches, &costs, error);

        if (r < 0)
                return r;
        fill_axes(axes, memory_bytes, costs);
        for (uint32_t device = 0; device < axes->n_devices && r == 0; device++)
                fill_units(source, costs, device);
        for (uint32_t device = 0; device < axes->n_devices && r == 0; device++)
                for (uint32_t model = 0; model < axes->n_models && r == 0; model++)
                        r = fill_model(source, costs, device, model, error);
        if (r == 0)
                r = sl_costs_check(costs, error);
        if (r == 0)
                *ret_costs = sl_take(costs);
        return r;
}

int sl_profile_costs(
        const struct sl_profile_list *list, bool plain, uint64_t memory_bytes, struct sl_costs **ret_costs, struct sl_error *error)
{
        const struct source source = {list, plain};
        struct axes axes = {.n_devices = 0};
        int r = find_axes(&source, &axes, error);

        if (r == 0)
                r = make_costs(&source, &axes, memory_bytes, ret_costs, error);
        axes_deinit(&axes);
        return r;
}
