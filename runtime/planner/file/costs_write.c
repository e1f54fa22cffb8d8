/* SPDX-License-Identifier: Apache-2.0 */
#include "costs.h"
#include "costs_file.h"
#include "yaml_text.h"

#include <errno.h>
#include <inttypes.h>

static const char *const kinds[] = {[SL_DEVICE_CPU] = "cpu", [SL_DEVICE_GPU] = "gpu"};
static const char *const sources[] = {
        [SL_COST_MEASURED] = "measured", [SL_COST_PUBLISHED] = "published", [SL_COST_DERIVED] = "derived"};

static void put_named(FILE *stream, const char *key, const char *name)
{
        fputs(key, stream);
        sl_yaml_put_text(stream, name);
}

/* Without coefficients there is nothing to write. */
static bool interferes(const struct sl_cost_class *class)
{
        for (uint32_t k = 0; k < 5; k++)
                if (class->interference[k] < 0 || class->interference[k] > 0)
                        return true;
        return false;
}

static void put_classes(FILE *stream, const struct sl_costs *costs)
{
        fputs("classes:\n", stream);
        for (uint32_t i = 0; i < costs->n_classes; i++) {
                const struct sl_cost_class *class = &costs->classes[i];

                put_named(stream, "  - {name: ", class->name);
                fprintf(stream, ", kind: %s, units: %u, copy_engines: %u, beside: %.6g", kinds[class->kind], class->units,
                        class->copy_engines, class->pair_default);
                for (uint32_t k = 0; k < class->n_sizes; k++)
                        fprintf(stream, "%s%u%s", k ? ", " : ", sizes: [", class->sizes[k], k + 1 < class->n_sizes ? "" : "]");
                for (uint32_t k = 0; k < 5 && interferes(class); k++)
                        fprintf(stream, "%s%.17g%s", k ? ", " : ", interference: [", class->interference[k], k < 4 ? "" : "]");
                fputs("}\n", stream);
        }
}

static void put_devices(FILE *stream, const struct sl_costs *costs)
{
        fputs("devices:\n", stream);
        for (uint32_t i = 0; i < costs->n_devices; i++) {
                const struct sl_cost_device *device = &costs->devices[i];

                put_named(stream, "  - {name: ", device->name);
                put_named(stream, ", class: ", costs->classes[device->class_index].name);
                if (device->memory_of == i)
                        fprintf(stream, ", memory: %" PRIu64 "}\n", device->memory_bytes);
                else {
                        put_named(stream, ", memory_of: ", costs->devices[device->memory_of].name);
                        fputs("}\n", stream);
                }
        }
}

static void put_models(FILE *stream, const struct sl_costs *costs)
{
        fputs("models:\n", stream);
        for (uint32_t i = 0; i < costs->n_models; i++) {
                put_named(stream, "  - {name: ", costs->models[i].name);
                fprintf(stream, ", weights: %" PRIu64 "}\n", costs->models[i].weights_bytes);
        }
}

/* One word for all batch sizes of a class and a model: that of the figure that is known least well. */
static enum sl_cost_source weakest_source(const struct sl_costs *costs, uint32_t class_index, uint32_t size, uint32_t model)
{
        enum sl_cost_source weakest = SL_COST_UNKNOWN;

        for (uint32_t b = 0; b < costs->n_batches; b++) {
                const struct sl_cost_cell *cell = sl_costs_size_cell(costs, class_index, size, model, b);

                if (cell->latency_ns && cell->source > weakest)
                        weakest = cell->source;
        }
        return weakest;
}

static void put_cells(FILE *stream, const struct sl_costs *costs, uint32_t class_index, uint32_t size, uint32_t model)
{
        enum sl_cost_source source = weakest_source(costs, class_index, size, model);
        const struct sl_cost_cell *cells = sl_costs_size_cell(costs, class_index, size, model, 0);

        if (source == SL_COST_UNKNOWN)
                return;
        put_named(stream, "  - {model: ", costs->models[model].name);
        put_named(stream, ", class: ", costs->classes[class_index].name);
        if (size < costs->classes[class_index].n_sizes)
                fprintf(stream, ", size: %u", costs->classes[class_index].sizes[size]);
        fprintf(stream, ", source: %s", sources[source]);
        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%" PRIu64, b ? ", " : ", latency_ns: [", cells[b].latency_ns);
        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%" PRIu64, b ? ", " : "], transfer_ns: [", cells[b].transfer_ns);
        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%" PRIu64, b ? ", " : "], workspace: [", cells[b].workspace_bytes);
        fputs("]}\n", stream);
}

static void put_uses(FILE *stream, const struct sl_costs *costs, uint32_t class_index, uint32_t model, bool *put)
{
        const struct sl_cost_cell *cells = sl_costs_cell(costs, class_index, model, 0);
        double most = 0;

        for (uint32_t b = 0; b < costs->n_batches; b++)
                most = cells[b].l2_use + cells[b].memory_use > most ? cells[b].l2_use + cells[b].memory_use : most;
        if (most <= 0)
                return;
        put_named(stream, *put ? "  - {model: " : "uses:\n  - {model: ", costs->models[model].name);
        put_named(stream, ", class: ", costs->classes[class_index].name);
        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%.17g", b ? ", " : ", l2: [", cells[b].l2_use);
        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%.17g", b ? ", " : "], memory: [", cells[b].memory_use);
        fputs("]}\n", stream);
        *put = true;
}

static void put_pair(FILE *stream, const struct sl_costs *costs, uint32_t class_index, uint32_t model, uint32_t other, bool *put)
{
        double slowdown = *sl_costs_pair(costs, class_index, model, other);

        if (slowdown <= 0)
                return;
        put_named(stream, *put ? "  - {model: " : "pairs:\n  - {model: ", costs->models[model].name);
        put_named(stream, ", beside: ", costs->models[other].name);
        put_named(stream, ", class: ", costs->classes[class_index].name);
        fprintf(stream, ", slowdown: %.9g}\n", slowdown);
        *put = true;
}

int sl_costs_file_write(FILE *stream, const struct sl_costs *costs)
{
        bool put = false, uses = false;

        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%u", b ? ", " : "batches: [", costs->batches[b]);
        fputs("]\n", stream);
        put_classes(stream, costs);
        put_devices(stream, costs);
        put_models(stream, costs);
        fputs("costs:\n", stream);
        for (uint32_t class = 0; class < costs->n_classes; class++)
                for (uint32_t size = 0; size <= costs->classes[class].n_sizes; size++)
                        for (uint32_t m = 0; m < costs->n_models; m++)
                                put_cells(stream, costs, class, size, m);
        for (uint32_t class = 0; class < costs->n_classes; class++)
                for (uint32_t m = 0; m < costs->n_models; m++)
                        put_uses(stream, costs, class, m, &uses);
        for (uint32_t class = 0; class < costs->n_classes; class++)
                for (uint32_t m = 0; m < costs->n_models; m++)
                        for (uint32_t other = 0; other < costs->n_models; other++)
                                put_pair(stream, costs, class, m, other, &put);
        return fflush(stream) == 0 && !ferror(stream) ? 0 : -EIO;
}
