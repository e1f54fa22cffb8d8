/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/labels.h"
#include "catalogue.h"
#include "query.h"
#include "task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static_assert(STARLING_NAME_BYTES == SL_MODEL_NAME_BYTES && STARLING_NAME_MAX == SL_NAME_MAX, "names fit both ways");
static_assert(STARLING_RANK_MAX == SL_WIRE_RANK_MAX, "shapes fit both ways");
static_assert(
        (int)STARLING_MODEL_LOADING == (int)SL_MODEL_LOADING && (int)STARLING_MODEL_READY == (int)SL_MODEL_READY &&
                (int)STARLING_MODEL_DRAINING == (int)SL_MODEL_DRAINING && (int)STARLING_MODEL_FAILED == (int)SL_MODEL_FAILED &&
                (int)STARLING_MODEL_AVAILABLE == (int)SL_MODEL_AVAILABLE && (int)STARLING_MODEL_STANDBY == (int)SL_MODEL_STANDBY,
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
        for (uint32_t i = 0; i < sl_catalogue_count(catalogue_of(client)); i++) {
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

/* What a request lists that gives none of the optional inputs. */
static uint32_t count_required(const struct starling_model *model, uint32_t flags)
{
        uint32_t n = model->info.n_inputs;

        while (flags & SL_MODEL_SHORTENED && n && model->ports[n - 1].optional)
                n--;
        return n;
}

static bool can_leave_out(const struct starling_model *model)
{
        const struct starling_model_info *info = &model->info;

        for (uint32_t i = 0; i < info->n_outputs; i++) {
                const struct starling_port *port = &info->outputs[i];

                for (uint32_t k = 0; k < port->rank; k++)
                        if (port->dims[k] < 0 && (int32_t)k != port->batch_axis)
                                return false;
                if (!port->rank && port->dims[0] < 0)
                        return false;
        }
        return info->n_outputs > 1;
}

const char *starling_label(const struct starling_port *port, int64_t place)
{
        return place >= 0 && place < port->n_labels ? port->labels[place] : NULL;
}

static const char *labels_text(const struct sl_catalogue_part *part, uint32_t number)
{
        return part->ports[number].labels ? part->texts + part->ports[number].labels : "";
}

/* What one text has, as the ports have it: the ends become terminators. Ports of the same labels share them. */
static void split_labels(struct starling_model *model, uint32_t number, char *text, const char **labels)
{
        struct starling_port *port = &model->ports[number];
        uint32_t at = model->part.ports[number].labels, n = 0;

        for (uint32_t i = 0; i < number && at; i++) {
                if (model->part.ports[i].labels != at)
                        continue;
                port->labels = model->ports[i].labels;
                port->n_labels = model->ports[i].n_labels;
                return;
        }
        for (char *end; at && (end = strchr(text, SL_LABEL_END)); text = end + 1) {
                *end = 0;
                labels[n++] = text;
        }
        port->labels = n ? labels : NULL;
        port->n_labels = n;
}

static uint32_t count_labels(const struct sl_catalogue_part *part, uint32_t n_ports)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < n_ports; i++)
                n += sl_labels_count(labels_text(part, i));
        return n;
}

static int read_labels(struct starling_model *model, uint32_t n_ports)
{
        uint32_t n = count_labels(&model->part, n_ports);
        const char **labels = calloc(n + 1u, sizeof(*labels));
        char *texts = (char *)model->part.texts; /* a copy of our own */

        if (!labels)
                return -ENOMEM;
        model->labels = labels;
        for (uint32_t i = 0; i < n_ports; i++) {
                split_labels(model, i, texts + model->part.ports[i].labels, labels);
                if (model->ports[i].labels == labels)
                        labels += model->ports[i].n_labels;
        }
        return 0;
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
        model->n_required = count_required(model, from->flags);
        model->leaves_out = can_leave_out(model);
}

/* `"lenet", "digits"`: what the caller may have meant, as many as there is room for. */
static void names_of(const struct starling_client *client, char *ret_text, size_t bytes)
{
        struct sl_catalogue_model model;
        char more[] = ", ...";
        size_t used = 0;

        snprintf(ret_text, bytes, "none");
        for (uint32_t i = 0; i < sl_catalogue_count(catalogue_of(client)); i++) {
                if (sl_catalogue_read(catalogue_of(client), i, &model) < 0)
                        continue;
                if (used + strlen(model.name) + strlen(", \"\"") + sizeof(more) > bytes) {
                        strcpy(ret_text + used, used ? more : more + 2);
                        return;
                }
                used += (size_t)sprintf(ret_text + used, "%s\"%s\"", used ? ", " : "", model.name);
        }
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

/* Requests for it are taken, and wait. */
static bool is_resting(const struct sl_catalogue_model *model)
{
        return (model->state == SL_MODEL_AVAILABLE || model->state == SL_MODEL_STANDBY) && model->n_outputs;
}

static int refuse_unready(const struct sl_catalogue_model *model, const char *name, struct sl_error *error)
{
        if (model->state == SL_MODEL_AVAILABLE && model->reason[0])
                return sl_error_set(error, EAGAIN, "%s", model->reason);
        if (model->state == SL_MODEL_AVAILABLE)
                return sl_error_set(error, EAGAIN, "model \"%s\" is not loaded: it is when a client opens it", name);
        if (model->state == SL_MODEL_LOADING)
                return sl_error_set(
                        error, EAGAIN, "model \"%s\" is still loading%s%s", name, model->reason[0] ? ": " : "", model->reason);
        if (model->state != SL_MODEL_FAILED)
                return sl_error_set(error, EIO, "model \"%s\" is being unloaded", name);
        return sl_error_set(error, EIO, "model \"%s\" cannot be served: %s", name, model->reason);
}

static int find_ready(const struct starling_client *client, const char *name, uint32_t *ret_index,
        struct sl_catalogue_model *ret_model, struct sl_catalogue_part *ret_part, struct sl_error *error)
{
        char names[2048];

        int r = open_named(catalogue_of(client), name, ret_index, ret_model, ret_part);

        if (r == -ENOMEM)
                return sl_error_set(error, ENOMEM, "model \"%s\": no memory for its handle", name);
        if (r == -EPROTO)
                return sl_error_set(error, EPROTO, "model \"%s\" has impossible inputs or outputs", name);
        if (r == -EAGAIN)
                return sl_error_set(error, EAGAIN, "model \"%s\": the catalogue is changing", name);
        if (r < 0) {
                names_of(client, names, sizeof(names));
                return sl_error_set(error, ENOENT, "no model \"%s\"; the runtime serves %s", name, names);
        }
        if (ret_model->state == SL_MODEL_READY || is_resting(ret_model))
                return 0;
        free(ret_part->ports);
        return refuse_unready(ret_model, name, error);
}

/* ---- models that are loaded on request ---- */

#define LOOK_FIRST_NS 200000ull   /* from one look at the catalogue to the next, */
#define LOOK_MOST_NS  20000000ull /* which get longer */

/* It has to be loaded before it can be opened, or is being loaded, since somebody has asked. */
static bool is_to_be_asked(const struct sl_catalogue_model *model)
{
        return (model->flags & SL_MODEL_ON_REQUEST) && !model->n_outputs &&
               (model->state == SL_MODEL_AVAILABLE || model->state == SL_MODEL_LOADING);
}

static int look_up(const struct starling_client *client, const char *name, struct sl_catalogue_model *ret_model)
{
        uint32_t index;

        return sl_catalogue_find(catalogue_of(client), name, &index, ret_model);
}

/* Question and answer; the runtime is there as long as it can be asked. */
static int ask_for_load(struct starling_client *client, const char *name, struct sl_error *error)
{
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_OPEN}, answer;
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        int r;

        if (strlen(name) >= sizeof(question.model))
                return 0; /* no model has that name */
        strcpy(question.model, name);
        pthread_mutex_lock(&client->lock);
        r = sl_connection_ask(&client->connection, &question, -1, SL_MESSAGE_DONE, &answer, &fd, error);
        pthread_mutex_unlock(&client->lock);
        return r;
}

/* Sleeps as long as it is being loaded; the runtime ends that in time. Return: 0; -EPIPE; -EINTR. */
static int await_load(struct starling_client *client, const char *name, struct sl_error *error)
{
        struct sl_catalogue_model model;
        uint64_t step_ns = LOOK_FIRST_NS;

        while (look_up(client, name, &model) == 0 && model.state == SL_MODEL_LOADING && (model.flags & SL_MODEL_ON_REQUEST)) {
                if (nanosleep(&(struct timespec){.tv_nsec = (long)step_ns}, NULL) < 0)
                        return sl_error_set(error, EINTR, "model \"%s\" is still loading: a signal came", name);
                step_ns = step_ns * 3 / 2 < LOOK_MOST_NS ? step_ns * 3 / 2 : LOOK_MOST_NS;
                pthread_mutex_lock(&client->lock);
                bool gone = sl_connection_check(&client->connection);
                pthread_mutex_unlock(&client->lock);
                if (gone)
                        return sl_error_set(error, EPIPE, "model \"%s\": %s", name, starling_strerror(-EPIPE));
        }
        return 0;
}

int sl_model_request_load(struct starling_client *client, const char *name, struct sl_error *error)
{
        struct sl_catalogue_model model;
        int r;

        if (client->connection.role != SL_ROLE_CLIENT || look_up(client, name, &model) < 0 || !is_to_be_asked(&model))
                return 0;
        r = ask_for_load(client, name, error);
        return r < 0 ? r : await_load(client, name, error);
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
        free(model->labels);
        free(model->query);
        free(model);
}

static int new_at(struct starling_client *client, uint32_t index, uint32_t changes, const struct sl_catalogue_model *from,
        struct sl_catalogue_part *part, struct starling_model **ret_model, struct sl_error *error)
{
        uint32_t n_ports = from->n_inputs + from->n_outputs;
        struct starling_model *model = calloc(1, sizeof(*model) + n_ports * sizeof(struct starling_port));

        if (!model) {
                free(part->ports);
                return sl_error_set(error, ENOMEM, "model \"%s\": no memory for its handle", from->name);
        }
        model->ports = (struct starling_port *)(model + 1);
        model->part = *part;
        model->client = client;
        model->index = index;
        model->generation = from->generation;
        atomic_init(&model->changes, changes);
        describe(model, from);
        if (read_labels(model, n_ports) < 0) {
                free_model(model);
                return sl_error_set(error, ENOMEM, "model \"%s\": no memory for its labels", from->name);
        }
        link_model(model);
        *ret_model = model;
        return 0;
}

int sl_model_new(struct starling_client *client, uint32_t index, const struct sl_catalogue_model *from,
        struct sl_catalogue_part *part, struct starling_model **ret_model, struct sl_error *error)
{
        return new_at(client, index, 0, from, part, ret_model, error);
}

int starling_model_open(
        struct starling_client *client, const char *name, struct starling_model **ret_model, struct starling_error *error)
{
        struct sl_catalogue_model from;
        struct sl_catalogue_part part;
        uint32_t index, changes;

        if (!name)
                return sl_error_set(sl_error_of(error), EINVAL, "a model without a name");
        if (sl_forked(&client->fork))
                return sl_error_set(sl_error_of(error), ECHILD, "model \"%s\": %s", name, starling_strerror(-ECHILD));
        if (sl_client_gone(client))
                return sl_error_set(sl_error_of(error), EPIPE, "model \"%s\": %s", name, starling_strerror(-EPIPE));

        int r = sl_model_request_load(client, name, sl_error_of(error));

        changes = atomic_load_explicit(&catalogue_of(client)->changes, memory_order_acquire);
        if (r == 0)
                r = find_ready(client, name, &index, &from, &part, sl_error_of(error));
        if (r == -ENOENT && sl_task_is_there(client, name)) /* without needs */
                return starling_query_open(client, name, NULL, ret_model, error);
        if (r < 0)
                return r;
        return new_at(client, index, changes, &from, &part, ret_model, sl_error_of(error));
}

const struct starling_model_info *starling_model_describe(const struct starling_model *model)
{
        return &model->info;
}

/* What was counted before the generation was read can only make the next caller look again. */
int starling_model_changed(struct starling_model *model)
{
        const struct sl_catalogue *catalogue = catalogue_of(model->client);
        uint32_t changes, generation;
        int r;

        if (sl_forked(&model->client->fork) || sl_client_gone(model->client))
                return 0;
        if (model->state < 0)
                return 1;
        if (model->query)
                return sl_query_changed(model);
        changes = atomic_load_explicit(&catalogue->changes, memory_order_acquire);
        if (changes == atomic_load_explicit(&model->changes, memory_order_relaxed))
                return 0;
        r = sl_catalogue_generation(catalogue, model->index, &generation);
        if (r == -EAGAIN)
                return 0;
        if (r < 0 || generation != model->generation)
                return 1;
        atomic_store_explicit(&model->changes, changes, memory_order_relaxed);
        return 0;
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

static bool same_labels(const struct starling_port *port, const char *text)
{
        uint32_t n = 0;

        for (const char *end; (end = strchr(text, SL_LABEL_END)); text = end + 1, n++)
                if (n == port->n_labels || strncmp(port->labels[n], text, (size_t)(end - text)) || port->labels[n][end - text])
                        return false;
        return n == port->n_labels;
}

static bool same_ports(
        const struct starling_model *model, const struct sl_catalogue_model *from, const struct sl_catalogue_part *part)
{
        const struct starling_model_info *info = &model->info;

        if (info->n_inputs != from->n_inputs || info->n_outputs != from->n_outputs)
                return false;
        for (uint32_t i = 0; i < info->n_inputs + info->n_outputs; i++) {
                struct starling_port port = port_of(part, i);

                if (!same_port(&model->ports[i], &port) || !same_labels(&model->ports[i], labels_text(part, i)))
                        return false;
        }
        return info->samples_max == from->samples_max;
}

static void renew(struct starling_model *model)
{
        struct sl_catalogue_model from;
        struct sl_catalogue_part part = {0};

        atomic_store_explicit(&model->changes, atomic_load_explicit(&catalogue_of(model->client)->changes, memory_order_acquire),
                memory_order_relaxed);
        if (model->state == -ESTALE) /* the handle describes a model that was; its user is to open the new one */
                return;
        if (model->query) {
                int r = sl_query_look(model->client, model->info.name, model->query);

                atomic_store_explicit(&model->changes, 1, memory_order_relaxed); /* which no page says */
                model->state = r < 0 ? r : SL_HANDLE_QUERY;
                return;
        }
        model->state = open_named(catalogue_of(model->client), model->info.name, &model->index, &from, &part);
        if (model->state == -EPROTO || (model->state == 0 && !same_ports(model, &from, &part)))
                model->state = -ESTALE;
        if (model->state == 0) {
                model->generation = from.generation;
                model->n_required = count_required(model, from.flags);
        }
        free(part.ports);
}

void sl_models_renew(struct starling_client *client)
{
        for (struct starling_model *model = client->models; model; model = model->next)
                renew(model);
}
