/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include "base/error.h"
#include "catalogue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(STARLING_NAME_BYTES == SL_MODEL_NAME_BYTES, "names fit both ways");
static_assert(STARLING_RANK_MAX == SL_WIRE_RANK_MAX, "shapes fit both ways");
static_assert((int)STARLING_MODEL_LOADING == (int)SL_MODEL_LOADING && (int)STARLING_MODEL_READY == (int)SL_MODEL_READY &&
                      (int)STARLING_MODEL_DRAINING == (int)SL_MODEL_DRAINING && (int)STARLING_MODEL_FAILED == (int)SL_MODEL_FAILED,
        "the states are the catalogue's");

static const struct sl_catalogue *catalogue_of(const struct starling_client *client)
{
        return client->connection.catalogue.base;
}

/* ---- listing ---- */

static void describe_entry(const struct sl_catalogue_model *model, struct starling_model_entry *ret_entry)
{
        *ret_entry = (struct starling_model_entry){
                .version = model->version,
                .state = (enum starling_model_state)model->state,
                .ensemble = (model->flags & SL_MODEL_ENSEMBLE) != 0,
        };
        memcpy(ret_entry->name, model->name, sizeof(ret_entry->name));
}

int starling_model_list(const struct starling_client *client, struct starling_model_entry *ret_entries, uint32_t max)
{
        struct sl_catalogue_model model;
        uint32_t n = 0;

        if (sl_forked(&client->fork))
                return -ECHILD;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                if (sl_catalogue_read(catalogue_of(client), i, &model) < 0)
                        continue;
                if (n < max)
                        describe_entry(&model, &ret_entries[n]);
                n++;
        }
        return (int)n;
}

/* ---- opening ---- */

static struct starling_port port_of(const struct sl_catalogue_part *part, uint32_t number)
{
        const struct sl_catalogue_port *from = &part->ports[number];
        struct starling_port port = {
                .name = part->texts + from->name,
                .dtype = (enum starling_dtype)from->dtype,
                .rank = from->rank <= STARLING_RANK_MAX ? from->rank : STARLING_RANK_MAX,
                .batch_axis = -1,
                .optional = from->optional == 1,
        };

        if (!port.rank && from->dims[0] < 0)
                port.dims[0] = -1;
        for (uint32_t i = 0; i < port.rank; i++)
                port.dims[i] = from->dims[i] >= 0 ? from->dims[i] : -1;
        if (from->batch_axis < port.rank)
                port.batch_axis = from->batch_axis;
        return port;
}

static void describe(struct starling_model *model, const struct sl_catalogue_model *from)
{
        model->info = (struct starling_model_info){
                .version = from->version,
                .ensemble = (from->flags & SL_MODEL_ENSEMBLE) != 0,
                .samples_max = from->samples_max,
                .segment_samples = from->segment_samples,
                .n_inputs = from->n_inputs,
                .n_outputs = from->n_outputs,
                .inputs = model->ports,
                .outputs = model->ports + from->n_inputs,
        };
        memcpy(model->info.name, from->name, sizeof(model->info.name));
        for (uint32_t i = 0; i < from->n_inputs + from->n_outputs; i++)
                model->ports[i] = port_of(&model->part, i);
}

/* `"lenet", "digits"`: what the caller may have meant. */
static void names_of(const struct starling_client *client, char *ret_text, size_t bytes)
{
        struct sl_catalogue_model model;
        size_t used = 0;

        snprintf(ret_text, bytes, "none");
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS && used < bytes; i++)
                if (sl_catalogue_read(catalogue_of(client), i, &model) == 0)
                        used += (size_t)snprintf(ret_text + used, bytes - used, "%s\"%s\"", used ? ", " : "", model.name);
}

/* By one name, head and part of one moment. Return: as sl_catalogue_open(). */
static int open_named(const struct sl_catalogue *catalogue, const char *name, uint32_t *ret_index,
        struct sl_catalogue_model *ret_model, struct sl_catalogue_part *ret_part)
{
        int r = sl_catalogue_find(catalogue, name, ret_index, NULL);

        if (r == 0)
                r = sl_catalogue_open(catalogue, *ret_index, ret_model, ret_part);
        if (r == 0 && strcmp(ret_model->name, name)) {
                free(ret_part->ports);
                return -EAGAIN;
        }
        return r;
}

static int refuse_unready(const struct sl_catalogue_model *model, const char *name, struct sl_error *error)
{
        if (model->state == SL_MODEL_LOADING)
                return sl_error_set(error, EAGAIN, "model \"%s\" is still loading", name);
        if (model->state != SL_MODEL_FAILED)
                return sl_error_set(error, EIO, "model \"%s\" is being unloaded", name);
        return sl_error_set(error, EIO, "model \"%s\" cannot be served: %s", name, model->reason);
}

static int find_ready(const struct starling_client *client, const char *name, uint32_t *ret_index,
        struct sl_catalogue_model *ret_model, struct sl_catalogue_part *ret_part, struct sl_error *error)
{
        char names[256];

        int r = open_named(catalogue_of(client), name, ret_index, ret_model, ret_part);

        if (r == -ENOMEM)
                return sl_error_set(error, ENOMEM, "model \"%s\": no memory for its handle", name);
        if (r == -EPROTO)
                return sl_error_set(error, EPROTO, "model \"%s\" has impossible inputs or outputs", name);
        if (r == -EAGAIN)
                return sl_error_set(error, EAGAIN, "model \"%.80s\": the catalogue is changing", name);
        if (r < 0) {
                names_of(client, names, sizeof(names));
                return sl_error_set(error, ENOENT, "no model \"%.80s\"; the runtime serves %s", name, names);
        }
        if (ret_model->state == SL_MODEL_READY)
                return 0;
        free(ret_part->ports);
        return refuse_unready(ret_model, name, error);
}

static void link_model(struct starling_model *model)
{
        struct starling_client *client = model->client;

        pthread_mutex_lock(&client->lock);
        model->next = client->models;
        if (model->next)
                model->next->previous = model;
        client->models = model;
        pthread_mutex_unlock(&client->lock);
}

static void unlink_model(struct starling_model *model)
{
        struct starling_client *client = model->client;

        pthread_mutex_lock(&client->lock);
        if (model->next)
                model->next->previous = model->previous;
        if (model->previous)
                model->previous->next = model->next;
        else
                client->models = model->next;
        pthread_mutex_unlock(&client->lock);
}

static void free_model(struct starling_model *model)
{
        free(model->part.ports);
        free(model);
}

int starling_model_open(
        struct starling_client *client, const char *name, struct starling_model **ret_model, struct starling_error *error)
{
        struct sl_catalogue_model from;
        struct sl_catalogue_part part;
        uint32_t index;

        if (!name)
                return sl_error_set(sl_error_of(error), EINVAL, "a model without a name");
        if (sl_forked(&client->fork))
                return sl_error_set(sl_error_of(error), ECHILD, "model \"%.80s\": %s", name, starling_strerror(-ECHILD));
        if (sl_client_gone(client))
                return sl_error_set(sl_error_of(error), EPIPE, "model \"%.80s\": %s", name, starling_strerror(-EPIPE));

        int r = find_ready(client, name, &index, &from, &part, sl_error_of(error));

        if (r < 0)
                return r;

        uint32_t n_ports = from.n_inputs + from.n_outputs;
        struct starling_model *model = calloc(1, sizeof(*model) + n_ports * sizeof(struct starling_port));

        if (!model) {
                free(part.ports);
                return sl_error_set(sl_error_of(error), ENOMEM, "model \"%s\": no memory for its handle", name);
        }
        model->ports = (struct starling_port *)(model + 1);
        model->part = part;
        model->client = client;
        model->index = index;
        model->generation = from.generation;
        describe(model, &from);
        link_model(model);
        *ret_model = model;
        return 0;
}

const struct starling_model_info *starling_model_describe(const struct starling_model *model)
{
        return &model->info;
}

struct starling_model *starling_model_close(struct starling_model *model)
{
        if (!model || sl_forked(&model->client->fork))
                return NULL;
        unlink_model(model);
        free_model(model);
        return NULL;
}

void sl_models_free(struct starling_client *client)
{
        while (client->models) {
                struct starling_model *model = client->models;

                client->models = model->next;
                free_model(model);
        }
}

/* ---- after a reconnect ---- */

static bool same_port(const struct starling_port *a, const struct starling_port *b)
{
        return a->dtype == b->dtype && a->rank == b->rank && a->batch_axis == b->batch_axis && a->optional == b->optional &&
               memcmp(a->dims, b->dims, sizeof(a->dims)) == 0 && strcmp(a->name, b->name) == 0;
}

static bool same_ports(
        const struct starling_model *model, const struct sl_catalogue_model *from, const struct sl_catalogue_part *part)
{
        const struct starling_model_info *info = &model->info;

        if (info->n_inputs != from->n_inputs || info->n_outputs != from->n_outputs)
                return false;
        for (uint32_t i = 0; i < info->n_inputs + info->n_outputs; i++) {
                struct starling_port port = port_of(part, i);

                if (!same_port(&model->ports[i], &port))
                        return false;
        }
        return info->samples_max == from->samples_max;
}

static void renew(struct starling_model *model)
{
        struct sl_catalogue_model from;
        struct sl_catalogue_part part = {0};

        if (model->state == -ESTALE) /* the handle describes a model that was; its user is to open the new one */
                return;
        model->state = open_named(catalogue_of(model->client), model->info.name, &model->index, &from, &part);
        if (model->state == -EPROTO || (model->state == 0 && !same_ports(model, &from, &part)))
                model->state = -ESTALE;
        if (model->state == 0)
                model->generation = from.generation;
        free(part.ports);
}

void sl_models_renew(struct starling_client *client)
{
        for (struct starling_model *model = client->models; model; model = model->next)
                renew(model);
}
