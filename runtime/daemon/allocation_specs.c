/* SPDX-License-Identifier: Apache-2.0 */
#include "allocation_specs.h"
#include "allocation_file.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sl_model_spec *spec_find(struct sl_model_spec *specs, uint32_t n, const char *name)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(specs[i].name, name) == 0)
                        return &specs[i];
        return NULL;
}

/* The wish of a worker on each device. */
static int devices_parse(
        const struct sl_allocation *allocation, const cpu_set_t *worker_cores, struct sl_worker_wish *places, struct sl_error *error)
{
        for (uint32_t d = 0; d < allocation->n_devices; d++) {
                int r = sl_worker_wish_place(&places[d], allocation->devices[d], CPU_COUNT(worker_cores) ? worker_cores : NULL, error);

                if (r < 0)
                        return sl_error_prefix(error, r, "allocation");
        }
        return 0;
}

static int set_of(const struct sl_allocation *allocation, uint32_t model, const struct sl_worker_wish *places,
        struct sl_worker_set *ret_set, struct sl_error *error)
{
        struct sl_worker_set set = {.n = 0};

        for (uint32_t i = 0; i < allocation->n_workers; i++) {
                const struct sl_allocation_worker *worker = &allocation->workers[i];

                if (worker->model != model)
                        continue;
                if (set.n == SL_WORKERS_MAX)
                        return sl_error_set(error, EINVAL, "allocation: model \"%s\" has more than %u workers",
                                allocation->models[model], SL_WORKERS_MAX);
                set.wishes[set.n] = places[worker->device];
                set.wishes[set.n++].batch_size = worker->batch;
        }
        sl_worker_set_sort(&set);
        *ret_set = set;
        return set.n ? 0
                     : sl_error_set(
                               error, EINVAL, "allocation: model \"%s\" has no workers on any device", allocation->models[model]);
}

static int check_model(const char *name, const struct sl_model_spec *spec, struct sl_error *error)
{
        if (!spec)
                return sl_error_set(error, EINVAL, "allocation: model \"%s\" is in no repository", name);
        if (!spec->refused && !spec->path)
                return sl_error_set(error, EINVAL, "allocation: \"%s\" is an ensemble: its members have workers", name);
        return 0;
}

/* A model has a plan for one kind of device: its own. */
static int check_devices(const struct sl_allocation *allocation, uint32_t model, const struct sl_worker_wish *places,
        const struct sl_model_spec *spec, struct sl_error *error)
{
        for (uint32_t i = 0; i < allocation->n_workers; i++) {
                const struct sl_allocation_worker *worker = &allocation->workers[i];

                if (worker->model == model && !spec->refused && (places[worker->device].gpu.name[0] != 0) != spec->on_gpu)
                        return sl_error_set(error, EINVAL, "allocation: model \"%s\": a worker on \"%s\", its device is %s", spec->name,
                                allocation->devices[worker->device], spec->on_gpu ? "a GPU" : "cpu");
        }
        return 0;
}

/* Also under the names of versions. */
static void give_workers(struct sl_model_spec *specs, uint32_t n, const struct sl_model_spec *spec, const struct sl_worker_set *set)
{
        for (uint32_t i = 0; i < n; i++)
                if (&specs[i] == spec || (spec->path && specs[i].path && strcmp(specs[i].path, spec->path) == 0))
                        specs[i].workers = *set;
}

int sl_allocation_specs(const struct sl_allocation *allocation, const cpu_set_t *worker_cores, struct sl_model_spec *specs,
        uint32_t n, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_worker_wish *places = calloc(allocation->n_devices, sizeof(*places));
        SL_CLEANUP(sl_cleanup_free) struct sl_worker_set *sets = calloc(allocation->n_models, sizeof(*sets));
        int r = places && sets ? devices_parse(allocation, worker_cores, places, error)
                               : sl_error_set(error, ENOMEM, "allocation: out of memory");

        for (uint32_t m = 0; m < allocation->n_models && r == 0; m++) {
                const struct sl_model_spec *spec = spec_find(specs, n, allocation->models[m]);

                r = check_model(allocation->models[m], spec, error);
                r = r < 0 ? r : check_devices(allocation, m, places, spec, error);
                r = r < 0 ? r : set_of(allocation, m, places, &sets[m], error);
        }
        for (uint32_t m = 0; m < allocation->n_models && r == 0; m++)
                give_workers(specs, n, spec_find(specs, n, allocation->models[m]), &sets[m]);
        return r;
}
