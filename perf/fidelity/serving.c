/* SPDX-License-Identifier: Apache-2.0 */
#include "serving.h"

#include "base/error.h"
#include "costs_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int serving_init(struct serving *serving, const char *costs, const char *device, uint32_t units, struct sl_error *error)
{
        int r;

        *serving = (struct serving){.n_workers = 0};
        r = sl_costs_file_read(costs, &serving->costs, error);
        if (r < 0)
                return r;
        serving->device = sl_costs_find_device(serving->costs, device);
        if (serving->device == SL_COST_NONE) {
                serving_deinit(serving);
                return sl_error_set(error, ENOENT, "%s: no device \"%s\"", costs, device);
        }
        serving->costs->classes[serving->costs->devices[serving->device].class_index].units = units;
        return 0;
}

void serving_deinit(struct serving *serving)
{
        serving->costs = sl_costs_free(serving->costs);
}

static int find_model(const struct serving *serving, const char *name, size_t bytes, uint32_t *ret_model, struct sl_error *error)
{
        char text[SL_COST_NAME_BYTES];

        snprintf(text, sizeof(text), "%.*s", (int)bytes, name);
        *ret_model = sl_costs_find_model(serving->costs, text);
        return *ret_model == SL_COST_NONE ? sl_error_set(error, ENOENT, "the costs have no model \"%s\"", text) : 0;
}

int serving_add_worker(struct serving *serving, const char *text, struct sl_error *error)
{
        struct sl_sim_worker *worker = &serving->workers[serving->n_workers];
        const char *size = strchr(text, '=');
        int r;

        if (!size || serving->n_workers == SERVING_WORKERS_MAX)
                return sl_error_set(error, EINVAL, "--worker %s: MODEL=BATCH, at most %u", text, SERVING_WORKERS_MAX);
        *worker = (struct sl_sim_worker){.let = serving->device, .batch_max = (uint32_t)strtoul(size + 1, NULL, 10)};
        r = find_model(serving, text, (size_t)(size - text), &worker->model, error);
        serving->n_workers += r == 0;
        return r;
}

int serving_add_ensemble(struct serving *serving, const char *text, struct sl_error *error)
{
        struct serving_ensemble *ensemble = &serving->ensembles[serving->n_ensembles];
        const char *at = strchr(text, '=');
        int r = 0;

        if (!at || serving->n_ensembles == SERVING_NAMES_MAX)
                return sl_error_set(error, EINVAL, "--ensemble %s: NAME=MODEL,MODEL, at most %u", text, SERVING_NAMES_MAX);
        *ensemble = (struct serving_ensemble){.name = text};
        while (r == 0 && *at && ensemble->n_members < SL_SIM_MEMBERS_MAX) {
                size_t bytes = strcspn(++at, ",");

                r = find_model(serving, at, bytes, &ensemble->members[ensemble->n_members++], error);
                at += bytes;
        }
        serving->n_ensembles += r == 0;
        return r;
}

int serving_set_own(struct serving *serving, const char *text, struct sl_error *error)
{
        const struct {
                const char *name;
                uint64_t *ns;
        } fields[] = {{"taken=", &serving->own.taken_ns}, {"hop=", &serving->own.hop_ns}, {"job=", &serving->own.job_ns},
                {"wake=", &serving->own.wake_ns}, {"heard=", &serving->own.heard_ns}, {"told=", &serving->own.told_ns}};

        while (*text) {
                size_t i = 0, bytes = strcspn(text, ",");

                while (i < sizeof(fields) / sizeof(fields[0]) && strncmp(text, fields[i].name, strlen(fields[i].name)) != 0)
                        i++;
                if (i == sizeof(fields) / sizeof(fields[0]))
                        return sl_error_set(
                                error, EINVAL, "--own %s: taken=, hop=, job=, wake=, heard= and told= nanoseconds", text);
                *fields[i].ns = strtoull(text + strlen(fields[i].name), NULL, 10);
                text += bytes + (text[bytes] == ',');
        }
        return 0;
}

static bool is_named(const struct serving_ensemble *ensemble, const char *name)
{
        size_t bytes = strcspn(ensemble->name, "=");

        return strlen(name) == bytes && strncmp(ensemble->name, name, bytes) == 0;
}

int serving_find(struct serving *serving, const char *name, struct sl_error *error)
{
        struct serving_ensemble *ensemble = &serving->ensembles[serving->n_ensembles];
        int r;

        for (uint32_t i = 0; i < serving->n_ensembles; i++)
                if (is_named(&serving->ensembles[i], name))
                        return (int)i;
        if (serving->n_ensembles == SERVING_NAMES_MAX)
                return sl_error_set(error, E2BIG, "at most %u names are served", SERVING_NAMES_MAX);
        *ensemble = (struct serving_ensemble){.name = name, .n_members = 1};
        r = find_model(serving, name, strlen(name), &ensemble->members[0], error);
        return r < 0 ? r : (int)serving->n_ensembles++;
}
