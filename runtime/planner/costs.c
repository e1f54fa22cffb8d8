/* SPDX-License-Identifier: Apache-2.0 */
#include "costs.h"
#include "base/bytes.h"
#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count_check(const char *what, uint64_t n, uint64_t limit, struct sl_error *error)
{
        if (!n)
                return sl_error_set(error, EINVAL, "costs: no %s", what);
        if (n > limit)
                return sl_error_set(
                        error, E2BIG, "costs: %llu %s, at most %llu", (unsigned long long)n, what, (unsigned long long)limit);
        return 0;
}

static int counts_check(
        uint32_t n_classes, uint32_t n_devices, uint32_t n_models, uint32_t n_batches, uint32_t n_sizes, struct sl_error *error)
{
        int r = count_check("device classes", n_classes, SL_COST_CLASSES_MAX, error);

        r = r < 0 ? r : count_check("devices", n_devices, SL_COST_DEVICES_MAX, error);
        r = r < 0 ? r : count_check("models", n_models, SL_COST_MODELS_MAX, error);
        r = r < 0 ? r : count_check("batch sizes", n_batches, SL_COST_BATCHES_MAX, error);
        r = r < 0 ? r : count_check("devices x models", (uint64_t)n_devices * n_models, SL_COST_CELLS_MAX, error);
        r = r < 0 ? r
                  : count_check("classes x models x models", (uint64_t)n_classes * n_models * n_models, SL_COST_CELLS_MAX, error);
        r = r < 0 ? r : count_check("sizes of a class", 1 + (uint64_t)n_sizes, 1 + SL_COST_SIZES_MAX, error);
        return r < 0 ? r
                     : count_check("classes x models x batch sizes x sizes",
                               (uint64_t)n_classes * n_models * n_batches * (1 + n_sizes), SL_COST_CELLS_MAX, error);
}

/* Room for @n entries at the end of a block of *@bytes; the offset of the first. */
static size_t block_add(size_t *bytes, size_t n, size_t entry_bytes)
{
        size_t at = *bytes;

        *bytes = (size_t)sl_align_up(at + n * entry_bytes, SL_LINE_BYTES);
        return at;
}

int sl_costs_new(uint32_t n_classes, uint32_t n_devices, uint32_t n_models, uint32_t n_batches, struct sl_costs **ret_costs,
        struct sl_error *error)
{
        return sl_costs_new_sized(n_classes, n_devices, n_models, n_batches, 0, ret_costs, error);
}

int sl_costs_new_sized(uint32_t n_classes, uint32_t n_devices, uint32_t n_models, uint32_t n_batches, uint32_t n_sizes,
        struct sl_costs **ret_costs, struct sl_error *error)
{
        int r = counts_check(n_classes, n_devices, n_models, n_batches, n_sizes, error);
        size_t bytes = 0;

        if (r < 0)
                return r;
        block_add(&bytes, 1, sizeof(struct sl_costs));
        size_t classes = block_add(&bytes, n_classes, sizeof(struct sl_cost_class));
        size_t devices = block_add(&bytes, n_devices, sizeof(struct sl_cost_device));
        size_t models = block_add(&bytes, n_models, sizeof(struct sl_cost_model));
        size_t batches = block_add(&bytes, n_batches, sizeof(uint32_t));
        size_t cells = block_add(&bytes, (size_t)n_classes * n_models * n_batches * (1 + n_sizes), sizeof(struct sl_cost_cell));
        size_t pairs = block_add(&bytes, (size_t)n_classes * n_models * n_models, sizeof(double));
        char *block = calloc(1, bytes);
        if (!block)
                return sl_error_set(error, ENOMEM, "costs: out of memory for %zu bytes", bytes);
        struct sl_costs *costs = (struct sl_costs *)block;
        *costs = (struct sl_costs){n_classes, n_devices, n_models, n_batches, n_sizes, (void *)(block + classes),
                (void *)(block + devices), (void *)(block + models), (void *)(block + batches), (void *)(block + cells),
                (void *)(block + pairs)};
        for (uint32_t i = 0; i < n_classes; i++)
                costs->classes[i].pair_default = 2;
        for (uint32_t i = 0; i < n_devices; i++)
                costs->devices[i].memory_of = i;
        *ret_costs = costs;
        return 0;
}

struct sl_costs *sl_costs_free(struct sl_costs *costs)
{
        free(costs);
        return NULL;
}

struct sl_cost_cell *sl_costs_cell(const struct sl_costs *costs, uint32_t class_index, uint32_t model, uint32_t batch_index)
{
        size_t whole = (size_t)class_index * (1 + costs->n_sizes);

        return &costs->cells[(whole * costs->n_models + model) * costs->n_batches + batch_index];
}

struct sl_cost_cell *sl_costs_size_cell(
        const struct sl_costs *costs, uint32_t class_index, uint32_t size, uint32_t model, uint32_t batch_index)
{
        size_t slot = size == costs->classes[class_index].n_sizes ? 0 : 1 + size;

        slot += (size_t)class_index * (1 + costs->n_sizes);
        return &costs->cells[(slot * costs->n_models + model) * costs->n_batches + batch_index];
}

double *sl_costs_pair(const struct sl_costs *costs, uint32_t class_index, uint32_t model, uint32_t other)
{
        return &costs->pairs[((size_t)class_index * costs->n_models + model) * costs->n_models + other];
}

#define FIND(entries, n, name)                                                                                                     \
        for (uint32_t i = 0; i < (n); i++)                                                                                         \
                if (strcmp((entries)[i].name, (name)) == 0)                                                                        \
                        return i;                                                                                                  \
        return SL_COST_NONE

uint32_t sl_costs_find_class(const struct sl_costs *costs, const char *name)
{
        FIND(costs->classes, costs->n_classes, name);
}

uint32_t sl_costs_find_device(const struct sl_costs *costs, const char *name)
{
        FIND(costs->devices, costs->n_devices, name);
}

uint32_t sl_costs_find_model(const struct sl_costs *costs, const char *name)
{
        FIND(costs->models, costs->n_models, name);
}

uint32_t sl_costs_find_batch(const struct sl_costs *costs, uint32_t batch)
{
        for (uint32_t i = 0; i < costs->n_batches; i++)
                if (costs->batches[i] == batch)
                        return i;
        return SL_COST_NONE;
}

const struct sl_cost_cell *sl_costs_worker(const struct sl_costs *costs, uint32_t device, uint32_t model, uint32_t batch)
{
        uint32_t index = sl_costs_find_batch(costs, batch);

        if (index == SL_COST_NONE)
                return NULL;
        const struct sl_cost_cell *cell = sl_costs_cell(costs, costs->devices[device].class_index, model, index);
        return cell->latency_ns ? cell : NULL;
}

uint64_t sl_costs_period_ns(const struct sl_costs *costs, uint32_t device, const struct sl_cost_cell *cell)
{
        if (!costs->classes[costs->devices[device].class_index].copy_engines)
                return cell->latency_ns + cell->transfer_ns;
        return cell->latency_ns > cell->transfer_ns ? cell->latency_ns : cell->transfer_ns;
}

uint32_t sl_costs_cores(const struct sl_costs *costs, uint32_t class_index)
{
        const struct sl_cost_class *class = &costs->classes[class_index];

        return class->kind == SL_DEVICE_CPU && class->units > 1 ? class->units : 1;
}

double sl_costs_slowdown(const struct sl_costs *costs, uint32_t class_index, uint32_t model, const uint32_t *beside, uint32_t n)
{
        uint32_t cores = sl_costs_cores(costs, class_index);
        double slowdown = 1, pair_default = cores > 1 ? 1 : costs->classes[class_index].pair_default;

        for (uint32_t i = 0; i < n; i++) {
                double pair = *sl_costs_pair(costs, class_index, model, beside[i]);

                slowdown += (pair > 0 ? pair : pair_default) - 1;
        }
        slowdown = slowdown > 1 ? slowdown : 1;
        return cores > 1 && n >= cores ? slowdown * (n + 1) / cores : slowdown;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* @names: what they are the names of, each @stride bytes after the one before. */
static int names_check(const char *what, const char *names, uint32_t n, size_t stride, struct sl_error *error)
{
        const char **sorted = malloc(n * sizeof(*sorted));
        int r = sorted ? 0 : sl_error_set(error, ENOMEM, "costs: out of memory");

        for (uint32_t i = 0; r == 0 && i < n; i++) {
                sorted[i] = names + i * stride;
                if (!sorted[i][0] || !memchr(sorted[i], 0, SL_COST_NAME_BYTES))
                        r = sl_error_set(
                                error, EINVAL, "costs: %s %u has no name of 1 to %d bytes", what, i, SL_COST_NAME_BYTES - 1);
        }
        if (r == 0)
                qsort(sorted, n, sizeof(*sorted), compare_names);
        for (uint32_t i = 1; r == 0 && i < n; i++)
                if (strcmp(sorted[i - 1], sorted[i]) == 0)
                        r = sl_error_set(error, EINVAL, "costs: two %ss are called \"%s\"", what, sorted[i]);
        free(sorted);
        return r;
}

static bool pair_is_good(double pair)
{
        return isfinite(pair) && pair >= 0 && pair <= SL_COST_PAIR_MAX;
}

static int sizes_check(const struct sl_costs *costs, const struct sl_cost_class *class, struct sl_error *error)
{
        if (class->n_sizes > costs->n_sizes)
                return sl_error_set(error, EINVAL, "costs: class \"%s\" has %u sizes, there is room for %u", class->name,
                        class->n_sizes, costs->n_sizes);
        for (uint32_t i = 0; i < class->n_sizes; i++) {
                uint32_t least = i ? class->sizes[i - 1] + 1 : 1;

                if (class->sizes[i] < least || class->sizes[i] >= class->units)
                        return sl_error_set(error, EINVAL,
                                "costs: class \"%s\": size %u, from %u to below its %u units: sizes ascend", class->name,
                                class->sizes[i], least, class->units);
        }
        for (uint32_t i = 0; i < 5; i++)
                if (!(fabs(class->interference[i]) <= SL_COST_PAIR_MAX))
                        return sl_error_set(error, EINVAL,
                                "costs: class \"%s\": a coefficient of interference of %g, from %g to %g", class->name,
                                class->interference[i], -SL_COST_PAIR_MAX, SL_COST_PAIR_MAX);
        return 0;
}

static int class_check(const struct sl_costs *costs, uint32_t i, struct sl_error *error)
{
        const struct sl_cost_class *class = &costs->classes[i];

        if (class->kind != SL_DEVICE_CPU && class->kind != SL_DEVICE_GPU)
                return sl_error_set(error, EINVAL, "costs: class \"%s\" is neither CPU nor GPU", class->name);
        if (!pair_is_good(class->pair_default) || class->pair_default < 1)
                return sl_error_set(error, EINVAL, "costs: class \"%s\": a slow-down by one other worker of %g, from 1 to %g",
                        class->name, class->pair_default, SL_COST_PAIR_MAX);
        for (uint32_t a = 0; a < costs->n_models; a++)
                for (uint32_t b = 0; b < costs->n_models; b++)
                        if (!pair_is_good(*sl_costs_pair(costs, i, a, b)))
                                return sl_error_set(error, EINVAL,
                                        "costs: class \"%s\": \"%s\" beside \"%s\" is slower by %g, from 0 to %g", class->name,
                                        costs->models[a].name, costs->models[b].name, *sl_costs_pair(costs, i, a, b),
                                        SL_COST_PAIR_MAX);
        return sizes_check(costs, class, error);
}

static int device_check(const struct sl_costs *costs, uint32_t i, struct sl_error *error)
{
        const struct sl_cost_device *device = &costs->devices[i];

        if (device->class_index >= costs->n_classes)
                return sl_error_set(error, EINVAL, "costs: device \"%s\" is of class %u of %u", device->name, device->class_index,
                        costs->n_classes);
        if (device->memory_of >= costs->n_devices || costs->devices[device->memory_of].memory_of != device->memory_of)
                return sl_error_set(error, EINVAL, "costs: device \"%s\" draws on the memory of row %u, which has none of its own",
                        device->name, device->memory_of);
        if (device->memory_bytes > SL_COST_BYTES_MAX)
                return sl_error_set(error, EINVAL, "costs: device \"%s\" has %llu bytes, at most %llu", device->name,
                        (unsigned long long)device->memory_bytes, (unsigned long long)SL_COST_BYTES_MAX);
        return 0;
}

static bool use_is_good(double use)
{
        return use >= 0 && use <= 1;
}

static int cell_check(const struct sl_costs *costs, uint32_t class_index, uint32_t size, uint32_t model, uint32_t batch_index,
        struct sl_error *error)
{
        const struct sl_cost_cell *cell = sl_costs_size_cell(costs, class_index, size, model, batch_index);
        bool times = cell->latency_ns <= SL_COST_NS_MAX && cell->transfer_ns <= SL_COST_NS_MAX;

        if (!use_is_good(cell->l2_use) || !use_is_good(cell->memory_use))
                return sl_error_set(error, EINVAL,
                        "costs: \"%s\" on \"%s\", batch %u: it uses %g of the L2 cache and %g of the memory's "
                        "bandwidth, from 0 to 1",
                        costs->models[model].name, costs->classes[class_index].name, costs->batches[batch_index], cell->l2_use,
                        cell->memory_use);
        if (times && cell->workspace_bytes <= SL_COST_BYTES_MAX && cell->source <= SL_COST_DERIVED)
                return 0;
        return sl_error_set(error, EINVAL, "costs: \"%s\" on \"%s\", batch %u: %s %llu, at most %llu", costs->models[model].name,
                costs->classes[class_index].name, costs->batches[batch_index], times ? "workspace bytes" : "nanoseconds",
                (unsigned long long)(!times ? (cell->latency_ns > cell->transfer_ns ? cell->latency_ns : cell->transfer_ns)
                                            : cell->workspace_bytes),
                (unsigned long long)(times ? SL_COST_BYTES_MAX : SL_COST_NS_MAX));
}

static int model_check(const struct sl_costs *costs, uint32_t i, struct sl_error *error)
{
        int r = 0;

        if (costs->models[i].weights_bytes > SL_COST_BYTES_MAX)
                return sl_error_set(error, EINVAL, "costs: model \"%s\" has weights of %llu bytes, at most %llu",
                        costs->models[i].name, (unsigned long long)costs->models[i].weights_bytes,
                        (unsigned long long)SL_COST_BYTES_MAX);
        for (uint32_t c = 0; c < costs->n_classes; c++)
                for (uint32_t size = 0; size <= costs->classes[c].n_sizes; size++)
                        for (uint32_t b = 0; b < costs->n_batches && r == 0; b++)
                                r = cell_check(costs, c, size, i, b, error);
        return r;
}

static int batches_check(const struct sl_costs *costs, struct sl_error *error)
{
        for (uint32_t i = 0; i < costs->n_batches; i++) {
                if (!costs->batches[i] || costs->batches[i] > SL_COST_BATCH_MAX)
                        return sl_error_set(
                                error, EINVAL, "costs: batch size %u, from 1 to %u", costs->batches[i], SL_COST_BATCH_MAX);
                if (i && costs->batches[i] <= costs->batches[i - 1])
                        return sl_error_set(error, EINVAL, "costs: batch size %u behind %u: they ascend", costs->batches[i],
                                costs->batches[i - 1]);
        }
        return 0;
}

int sl_costs_check(const struct sl_costs *costs, struct sl_error *error)
{
        int r = counts_check(costs->n_classes, costs->n_devices, costs->n_models, costs->n_batches, costs->n_sizes, error);

        r = r < 0 ? r : names_check("class", costs->classes->name, costs->n_classes, sizeof(*costs->classes), error);
        r = r < 0 ? r : names_check("device", costs->devices->name, costs->n_devices, sizeof(*costs->devices), error);
        r = r < 0 ? r : names_check("model", costs->models->name, costs->n_models, sizeof(*costs->models), error);
        r = r < 0 ? r : batches_check(costs, error);
        for (uint32_t i = 0; i < costs->n_classes && r == 0; i++)
                r = class_check(costs, i, error);
        for (uint32_t i = 0; i < costs->n_devices && r == 0; i++)
                r = device_check(costs, i, error);
        for (uint32_t i = 0; i < costs->n_models && r == 0; i++)
                r = model_check(costs, i, error);
        return r;
}
