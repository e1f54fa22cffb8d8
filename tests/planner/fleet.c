/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"
#include "base/error.h"
#include "costs.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t draw(uint64_t *seed, uint32_t n)
{
        *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)((*seed >> 32) % n);
}

static struct sl_costs *fleet_new(uint32_t n_classes, uint32_t n_devices, uint32_t n_models, uint32_t n_batches)
{
        struct sl_costs *costs;

        if (sl_costs_new(n_classes, n_devices, n_models, n_batches, &costs, NULL) < 0)
                abort();
        return costs;
}

static void plain_class(struct sl_costs *costs, uint32_t class_index, enum sl_device_kind kind, uint64_t sample_ns)
{
        costs->classes[class_index].kind = kind;
        snprintf(costs->classes[class_index].name, SL_COST_NAME_BYTES, "%s", kind == SL_DEVICE_GPU ? "gpu" : "cpu");
        for (uint32_t m = 0; m < costs->n_models; m++)
                for (uint32_t b = 0; b < costs->n_batches; b++)
                        *sl_costs_cell(costs, class_index, m, b) =
                                (struct sl_cost_cell){.latency_ns = sample_ns * costs->batches[b],
                                        .workspace_bytes = 10 * costs->batches[b],
                                        .source = SL_COST_DERIVED};
}

struct sl_costs *plain_fleet(uint32_t n_gpus, uint32_t n_models)
{
        struct sl_costs *costs = fleet_new(2, n_gpus + 1, n_models, 3);

        for (uint32_t b = 0; b < 3; b++)
                costs->batches[b] = 8u << b;
        plain_class(costs, 0, SL_DEVICE_CPU, 1000);
        plain_class(costs, 1, SL_DEVICE_GPU, 100);
        for (uint32_t m = 0; m < n_models; m++) {
                costs->models[m].weights_bytes = 100;
                snprintf(costs->models[m].name, SL_COST_NAME_BYTES, "m%u", m);
        }
        for (uint32_t d = 0; d < n_gpus; d++) {
                costs->devices[d].class_index = 1;
                costs->devices[d].memory_bytes = 1000;
                snprintf(costs->devices[d].name, SL_COST_NAME_BYTES, "gpu%u", d);
        }
        costs->devices[n_gpus].memory_bytes = 10000;
        snprintf(costs->devices[n_gpus].name, SL_COST_NAME_BYTES, "cpu");
        return costs;
}

static void random_class(uint64_t *seed, struct sl_costs *costs, uint32_t i)
{
        struct sl_cost_class *class = &costs->classes[i];

        snprintf(class->name, SL_COST_NAME_BYTES, "class%u", i);
        class->kind = draw(seed, 2) ? SL_DEVICE_GPU : SL_DEVICE_CPU;
        class->copy_engines = draw(seed, 2);
        class->pair_default = draw(seed, 3) ? 2 : 1 + 0.01 * draw(seed, 150);
        class->units = draw(seed, 2) ? 1 + draw(seed, 3) : 0;
        for (uint32_t m = 0; m < costs->n_models; m++) {
                for (uint32_t o = 0; o < costs->n_models; o++)
                        *sl_costs_pair(costs, i, m, o) = draw(seed, 4) ? 0 : 1 + 0.01 * draw(seed, 200);
                for (uint32_t b = 0; b < costs->n_batches; b++)
                        *sl_costs_cell(costs, i, m, b) =
                                (struct sl_cost_cell){.latency_ns = draw(seed, 12) ? 1000 + draw(seed, 100000) : 0,
                                        .transfer_ns = draw(seed, 2) ? draw(seed, 20000) : 0,
                                        .workspace_bytes = draw(seed, 300),
                                        .source = SL_COST_DERIVED};
        }
}

struct sl_costs *random_fleet(uint64_t *seed, uint32_t devices_max, uint32_t models_max)
{
        struct sl_costs *costs =
                fleet_new(1 + draw(seed, 3), 1 + draw(seed, devices_max), 1 + draw(seed, models_max), 1 + draw(seed, 4));

        for (uint32_t b = 0; b < costs->n_batches; b++)
                costs->batches[b] = 8u << b;
        for (uint32_t m = 0; m < costs->n_models; m++) {
                costs->models[m].weights_bytes = draw(seed, 500);
                snprintf(costs->models[m].name, SL_COST_NAME_BYTES, "m%u", m);
        }
        for (uint32_t i = 0; i < costs->n_classes; i++)
                random_class(seed, costs, i);
        for (uint32_t d = 0; d < costs->n_devices; d++) {
                costs->devices[d].class_index = draw(seed, costs->n_classes);
                costs->devices[d].memory_bytes = draw(seed, 8) ? 200 + draw(seed, 3000) : 0;
                costs->devices[d].memory_of = d && !draw(seed, 5) ? costs->devices[d - 1].memory_of : d;
                snprintf(costs->devices[d].name, SL_COST_NAME_BYTES, "d%u", d);
        }
        return costs;
}
