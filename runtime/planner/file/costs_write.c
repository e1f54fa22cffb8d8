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

static void put_classes(FILE *stream, const struct sl_costs *costs)
{
        fputs("classes:\n", stream);
        for (uint32_t i = 0; i < costs->n_classes; i++) {
                const struct sl_cost_class *class = &costs->classes[i];

                put_named(stream, "  - {name: ", class->name);
                fprintf(stream, ", kind: %s, units: %u, copy_engines: %u, beside: %.6g}\n", kinds[class->kind], class->units,
                        class->copy_engines, class->pair_default);
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
static enum sl_cost_source weakest_source(const struct sl_costs *costs, uint32_t class_index, uint32_t model)
{
        enum sl_cost_source weakest = SL_COST_UNKNOWN;

        for (uint32_t b = 0; b < costs->n_batches; b++) {
                const struct sl_cost_cell *cell = sl_costs_cell(costs, class_index, model, b);

                if (cell->latency_ns && cell->source > weakest)
                        weakest = cell->source;
        }
        return weakest;
}

static void put_cells(FILE *stream, const struct sl_costs *costs, uint32_t class_index, uint32_t model)
{
        enum sl_cost_source source = weakest_source(costs, class_index, model);

        if (source == SL_COST_UNKNOWN)
                return;
        put_named(stream, "  - {model: ", costs->models[model].name);
        put_named(stream, ", class: ", costs->classes[class_index].name);
        fprintf(stream, ", source: %s", sources[source]);
        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%" PRIu64, b ? ", " : ", latency_ns: [", sl_costs_cell(costs, class_index, model, b)->latency_ns);
        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%" PRIu64, b ? ", " : "], transfer_ns: [", sl_costs_cell(costs, class_index, model, b)->transfer_ns);
        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%" PRIu64, b ? ", " : "], workspace: [",
                        sl_costs_cell(costs, class_index, model, b)->workspace_bytes);
        fputs("]}\n", stream);
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
        bool put = false;

        for (uint32_t b = 0; b < costs->n_batches; b++)
                fprintf(stream, "%s%u", b ? ", " : "batches: [", costs->batches[b]);
        fputs("]\n", stream);
        put_classes(stream, costs);
        put_devices(stream, costs);
        put_models(stream, costs);
        fputs("costs:\n", stream);
        for (uint32_t class = 0; class < costs->n_classes; class++)
                for (uint32_t m = 0; m < costs->n_models; m++)
                        put_cells(stream, costs, class, m);
        for (uint32_t class = 0; class < costs->n_classes; class++)
                for (uint32_t m = 0; m < costs->n_models; m++)
                        for (uint32_t other = 0; other < costs->n_models; other++)
                                put_pair(stream, costs, class, m, other, &put);
        return fflush(stream) == 0 && !ferror(stream) ? 0 : -EIO;
}
