/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "costs.h"

#include <stdio.h>
#include <string.h>

static int indices_check(const char *what, const uint32_t *indices, uint32_t n, uint32_t limit, struct sl_error *error)
{
        for (uint32_t i = 0; i < n; i++)
                if (indices[i] >= limit)
                        return sl_error_set(error, EINVAL, "costs: %s %u of %u", what, indices[i], limit);
        return 0;
}

static uint32_t times_before(const uint32_t *indices, uint32_t at)
{
        uint32_t times = 0;

        for (uint32_t i = 0; i < at; i++)
                times += indices[i] == indices[at];
        return times;
}

/* Its row among the new ones, for the same copy of the device; @at itself where it is not there. */
static uint32_t new_memory_of(const uint32_t *devices, uint32_t n, uint32_t memory_of, uint32_t at)
{
        uint32_t before = times_before(devices, at);

        for (uint32_t i = 0; i < n; i++)
                if (devices[i] == memory_of && before-- == 0)
                        return i;
        return at;
}

/* Nobody else among the rows is called, or going to be called, like row @at. */
static bool name_is_free(const struct sl_costs *costs, const uint32_t *devices, uint32_t at, const struct sl_costs *made)
{
        for (uint32_t i = 0; i < made->n_devices; i++)
                if (strcmp(i < at ? made->devices[i].name : costs->devices[devices[i]].name, made->devices[at].name) == 0)
                        return false;
        return true;
}

static int device_select(
        const struct sl_costs *costs, const uint32_t *devices, uint32_t at, struct sl_costs *made, struct sl_error *error)
{
        struct sl_cost_device *device = &made->devices[at];
        uint32_t number = times_before(devices, at) + 1;
        const char *name = costs->devices[devices[at]].name;

        *device = costs->devices[devices[at]];
        device->memory_of = new_memory_of(devices, made->n_devices, device->memory_of, at);
        if (number == 1)
                return 0;
        if (strlen(name) > 50)
                return sl_error_set(error, EINVAL, "costs: device \"%s\" again: its name has more than 50 bytes", name);
        do
                snprintf(device->name, sizeof(device->name), "%.50s.%u", name, number++);
        while (!name_is_free(costs, devices, at, made));
        return 0;
}

static void class_select(const struct sl_costs *costs, uint32_t class_index, const uint32_t *models, const struct sl_costs *made)
{
        for (uint32_t m = 0; m < made->n_models; m++) {
                memcpy(sl_costs_cell(made, class_index, m, 0), sl_costs_cell(costs, class_index, models[m], 0),
                        costs->n_batches * sizeof(struct sl_cost_cell));
                for (uint32_t o = 0; o < made->n_models; o++)
                        *sl_costs_pair(made, class_index, m, o) = *sl_costs_pair(costs, class_index, models[m], models[o]);
        }
}

int sl_costs_select(const struct sl_costs *costs, const uint32_t *devices, uint32_t n_devices, const uint32_t *models,
        uint32_t n_models, struct sl_costs **ret_costs, struct sl_error *error)
{
        struct sl_costs *made = NULL;
        int r = indices_check("device", devices, n_devices, costs->n_devices, error);

        r = r < 0 ? r : indices_check("model", models, n_models, costs->n_models, error);
        r = r < 0 ? r : sl_costs_new(costs->n_classes, n_devices, n_models, costs->n_batches, &made, error);
        if (r < 0)
                return r;
        memcpy(made->classes, costs->classes, costs->n_classes * sizeof(*costs->classes));
        memcpy(made->batches, costs->batches, costs->n_batches * sizeof(*costs->batches));
        for (uint32_t m = 0; m < n_models; m++)
                made->models[m] = costs->models[models[m]];
        for (uint32_t c = 0; c < costs->n_classes; c++)
                class_select(costs, c, models, made);
        for (uint32_t d = 0; d < n_devices && r == 0; d++)
                r = device_select(costs, devices, d, made, error);
        r = r < 0 ? r : sl_costs_check(made, error);
        if (r < 0) {
                sl_costs_free(made);
                return r;
        }
        *ret_costs = made;
        return 0;
}
