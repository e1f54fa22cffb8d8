/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "costs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int indices_check(const char *what, const uint32_t *indices, uint32_t n, uint32_t limit, struct sl_error *error)
{
        for (uint32_t i = 0; i < n; i++)
                if (indices[i] >= limit)
                        return sl_error_set(error, EINVAL, "costs: %s %u of %u", what, indices[i], limit);
        return 0;
}

/* Of each row, how often its device stands before it. NULL: no memory. */
static uint32_t *count_copies(const uint32_t *devices, uint32_t n)
{
        uint32_t *copies = calloc(n, sizeof(*copies));

        for (uint32_t i = 0; copies && i < n; i++)
                for (uint32_t k = 0; k < i; k++)
                        copies[i] += devices[k] == devices[i];
        return copies;
}

/*
 * The row among the new ones whose memory row @at draws on: of the same copy that of its device, or where that is not there the
 * first that would draw on it, too.
 */
static uint32_t new_memory_of(
        const struct sl_costs *costs, const uint32_t *devices, const uint32_t *copies, uint32_t n, uint32_t at)
{
        uint32_t memory_of = costs->devices[devices[at]].memory_of, first = 0;

        for (uint32_t i = 0; i < n; i++)
                if (devices[i] == memory_of && copies[i] == copies[at])
                        return i;
        while (costs->devices[devices[first]].memory_of != memory_of || copies[first] != copies[at])
                first++;
        return first;
}

/* Nobody else among the rows is called, or going to be called, like row @at. */
static bool name_is_free(const struct sl_costs *costs, const uint32_t *devices, uint32_t at, const struct sl_costs *made)
{
        for (uint32_t i = 0; i < made->n_devices; i++)
                if (strcmp(i < at ? made->devices[i].name : costs->devices[devices[i]].name, made->devices[at].name) == 0)
                        return false;
        return true;
}

#define COUNTED (SL_COST_NAME_BYTES - 12) /* bytes of a name that a number follows */

static void device_select(
        const struct sl_costs *costs, const uint32_t *devices, const uint32_t *copies, uint32_t at, struct sl_costs *made)
{
        struct sl_cost_device *device = &made->devices[at];
        uint32_t number = copies[at] + 1;
        const char *name = costs->devices[devices[at]].name;

        *device = costs->devices[devices[at]];
        device->memory_bytes = costs->devices[device->memory_of].memory_bytes;
        device->memory_of = new_memory_of(costs, devices, copies, made->n_devices, at);
        if (number == 1)
                return;
        do
                snprintf(device->name, sizeof(device->name), "%.*s.%u", (int)sl_utf8_head(name, COUNTED), name, number++);
        while (!name_is_free(costs, devices, at, made));
}

static void class_select(const struct sl_costs *costs, uint32_t class_index, const uint32_t *models, const struct sl_costs *made)
{
        for (uint32_t m = 0; m < made->n_models; m++) {
                for (uint32_t size = 0; size <= costs->classes[class_index].n_sizes; size++)
                        memcpy(sl_costs_size_cell(made, class_index, size, m, 0),
                                sl_costs_size_cell(costs, class_index, size, models[m], 0),
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
        r = r < 0 ? r : sl_costs_new_sized(costs->n_classes, n_devices, n_models, costs->n_batches, costs->n_sizes, &made, error);
        if (r < 0)
                return r;
        memcpy(made->classes, costs->classes, costs->n_classes * sizeof(*costs->classes));
        memcpy(made->batches, costs->batches, costs->n_batches * sizeof(*costs->batches));
        for (uint32_t m = 0; m < n_models; m++)
                made->models[m] = costs->models[models[m]];
        for (uint32_t c = 0; c < costs->n_classes; c++)
                class_select(costs, c, models, made);
        SL_CLEANUP(sl_cleanup_free) uint32_t *copies = count_copies(devices, n_devices);
        if (!copies)
                r = sl_error_set(error, ENOMEM, "costs: out of memory");
        for (uint32_t d = 0; d < n_devices && r == 0; d++)
                device_select(costs, devices, copies, d, made);
        r = r < 0 ? r : sl_costs_check(made, error);
        if (r < 0) {
                sl_costs_free(made);
                return r;
        }
        *ret_costs = made;
        return 0;
}
