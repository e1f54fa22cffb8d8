/* SPDX-License-Identifier: Apache-2.0 */
#include "served.h"

#include "base/clock.h"
#include "catalogue.h"
#include "ensemble.h"
#include "memory.h"
#include "registry_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum sl_served_state sl_served_state(const struct sl_served *served)
{
        if (!served->used)
                return SL_SERVED_NONE;
        if (served->drains)
                return SL_SERVED_DRAINING;
        if (sl_served_is_ready(served))
                return SL_SERVED_READY;
        if (served->load)
                return SL_SERVED_LOADING;
        if (served->want.number && served->failed == served->want.number)
                return SL_SERVED_FAILED;
        if (served->awaits != SL_AWAIT_REQUEST || served->want.request.is_asked)
                return SL_SERVED_WAITING;
        return served->standby_want ? SL_SERVED_STANDBY : SL_SERVED_AVAILABLE;
}

bool sl_served_await(struct sl_served *served, enum sl_await await)
{
        if (served->awaits == await && served->awaits_want == served->want.number)
                return false;
        served->awaits = await;
        served->awaits_want = served->want.number;
        served->awaits_ns = sl_clock_ns();
        return true;
}

/* Whoever asked for it waits no longer, while it is still being loaded. */
static bool has_given_up(const struct sl_served *served)
{
        return sl_served_spec(served)->on_request && !served->want.request.is_asked && served->why[0];
}

static enum sl_model_state resting_state(const struct sl_served *served)
{
        return served->standby_want ? SL_MODEL_STANDBY : SL_MODEL_AVAILABLE;
}

/* Of what rests requests are taken, whether it is being loaded or not. */
static enum sl_model_state catalogue_state(const struct sl_served *served)
{
        switch (sl_served_state(served)) {
        case SL_SERVED_NONE:
                return SL_MODEL_ABSENT;
        case SL_SERVED_AVAILABLE:
        case SL_SERVED_STANDBY:
                return resting_state(served);
        case SL_SERVED_WAITING:
        case SL_SERVED_LOADING:
                return served->rests || has_given_up(served) ? resting_state(served) : SL_MODEL_LOADING;
        case SL_SERVED_READY:
                return SL_MODEL_READY;
        case SL_SERVED_FAILED:
                return SL_MODEL_FAILED;
        case SL_SERVED_DRAINING:
                return SL_MODEL_DRAINING;
        }
        return SL_MODEL_ABSENT;
}

static void describe_port(struct sl_catalogue_port *to, const struct sl_served_port *from)
{
        to->dtype = (uint8_t)from->port.dtype;
        to->rank = (uint8_t)from->port.shape.rank;
        to->batch_axis = (uint8_t)from->port.batch_axis;
        to->optional = from->port.fallback != 0;
        if (!from->port.shape.rank && from->port.shape.dims[0] == SL_DIM_UNKNOWN)
                to->dims[0] = -1; /* the rank is not known either */
        for (uint32_t i = 0; i < from->port.shape.rank; i++)
                to->dims[i] = from->port.shape.dims[i] < 0 ? -1 : (int32_t)from->port.shape.dims[i];
}

/* Inputs, then outputs. */
static const struct sl_served_port *port_at(const struct sl_ensemble *ensemble, uint32_t i)
{
        uint32_t n_inputs = ensemble->n_inputs + ensemble->n_optionals;

        return i < n_inputs ? &ensemble->inputs[i] : &ensemble->assembly.outputs[i - n_inputs];
}

/* The first port that has the labels of port @i, which is @i itself where no other has; UINT32_MAX: it has none. */
static uint32_t owner_of_labels(const struct sl_ensemble *ensemble, uint32_t i)
{
        const char *labels = port_at(ensemble, i)->port.labels;
        uint32_t owner = 0;

        if (!labels || !*labels)
                return UINT32_MAX;
        while (!port_at(ensemble, owner)->port.labels || strcmp(port_at(ensemble, owner)->port.labels, labels))
                owner++;
        return owner;
}

static size_t labels_bytes(const struct sl_ensemble *ensemble, uint32_t i)
{
        return owner_of_labels(ensemble, i) == i ? strlen(port_at(ensemble, i)->port.labels) + 1 : 0;
}

/* Behind the name, so that they never begin at 0. */
static void place_labels(const struct sl_ensemble *ensemble, uint32_t i, struct sl_catalogue_port *ports, char *texts, size_t *used)
{
        uint32_t owner = owner_of_labels(ensemble, i);

        if (owner == UINT32_MAX)
                return;
        if (owner < i) {
                ports[i].labels = ports[owner].labels;
                return;
        }
        ports[i].labels = (uint32_t)*used;
        *used += strlen(strcpy(texts + *used, port_at(ensemble, i)->port.labels)) + 1;
}

/* One block, which is freed by its ports. -ENOMEM. */
static int make_part(const struct sl_ensemble *ensemble, struct sl_catalogue_part *ret_part)
{
        uint32_t n = ensemble->n_inputs + ensemble->n_optionals + ensemble->assembly.n_outputs;
        size_t texts_bytes = 0, used = 0;
        struct sl_catalogue_port *ports;
        char *texts;

        for (uint32_t i = 0; i < n; i++)
                texts_bytes += strlen(port_at(ensemble, i)->port.name) + 1 + labels_bytes(ensemble, i);
        ports = calloc(1, n * sizeof(*ports) + texts_bytes + 1);
        if (!ports)
                return -ENOMEM;
        texts = (char *)(ports + n);
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_served_port *port = port_at(ensemble, i);

                describe_port(&ports[i], port);
                ports[i].name = (uint32_t)used;
                used += strlen(strcpy(texts + used, port->port.name)) + 1;
                place_labels(ensemble, i, ports, texts, &used);
        }
        *ret_part = (struct sl_catalogue_part){ports, texts, (uint32_t)texts_bytes};
        return 0;
}

/* Beside the places of all names, a part of so many bytes, which lies at the lowest place: at worst behind all others. -ENOMEM. */
static int promise_part(struct sl_registry *r, uint64_t bytes)
{
        uint64_t end = r->catalogue_end + bytes, more;
        int result;

        if (end > SL_CATALOGUE_PARTS_BYTES)
                end = SL_CATALOGUE_PARTS_BYTES;
        end += r->n_served * sizeof(struct sl_catalogue_model);
        if (end <= r->catalogue_room)
                return 0;
        more = sl_align_up(end - r->catalogue_room, SL_CATALOGUE_ROOM_STEP);
        result = sl_memory_take(r->options.memory, SL_MEMORY_CATALOGUE, more, NULL);
        r->catalogue_room += result == 0 ? more : 0;
        return result;
}

static int publish_ports(struct sl_registry *r, const struct sl_served *served, struct sl_catalogue_model *model)
{
        struct sl_catalogue *catalogue = r->options.catalogue;
        const struct sl_ensemble *ensemble = served->ensemble;
        const struct sl_catalogue_model *there = &catalogue->models[served->index];
        struct sl_catalogue_part part;
        int result = make_part(ensemble, &part);

        if (result < 0)
                return result;
        model->flags |= ensemble->batchable ? SL_MODEL_BATCHABLE : 0;
        model->segment_samples = ensemble->segment_samples;
        model->samples_max = ensemble->samples_max;
        model->flags |= ensemble->n_optionals ? SL_MODEL_SHORTENED : 0;
        model->n_inputs = ensemble->n_inputs + ensemble->n_optionals;
        model->n_outputs = ensemble->assembly.n_outputs;
        result = promise_part(r, (model->n_inputs + model->n_outputs) * sizeof(*part.ports) + sl_align_up(part.texts_bytes, 8));
        if (result == 0)
                result = sl_catalogue_write(catalogue, served->index, model, &part);
        if (result == 0 && there->part + there->part_bytes > r->catalogue_end)
                r->catalogue_end = there->part + there->part_bytes;
        free(part.ports);
        return result;
}

/* What clients cannot look at they cannot ask. */
static void publish_without(struct sl_registry *r, const struct sl_served *served, struct sl_catalogue_model *model, int why)
{
        if (model->state == SL_MODEL_READY) {
                model->state = SL_MODEL_FAILED;
                if (why == -ENOMEM)
                        snprintf(model->reason, sizeof(model->reason),
                                "no memory is left below memory_max for its %u inputs and outputs in the catalogue",
                                model->n_inputs + model->n_outputs);
                else
                        snprintf(model->reason, sizeof(model->reason),
                                "the catalogue has no room for its %u inputs and outputs: all models take at most %u bytes there",
                                model->n_inputs + model->n_outputs, SL_CATALOGUE_PARTS_BYTES);
        }
        model->n_inputs = model->n_outputs = 0;
        sl_catalogue_write(r->options.catalogue, served->index, model, NULL);
}

void sl_served_publish(struct sl_registry *r, const struct sl_served *served)
{
        struct sl_catalogue_model model = {
                .state = catalogue_state(served),
                .generation = served->generation,
                .version = served->ensemble ? served->ensemble->version
                           : served->used   ? sl_served_spec(served)->version
                                            : 0,
        };

        snprintf(model.name, sizeof(model.name), "%s", served->name);
        if (served->used && !sl_served_spec(served)->path && sl_served_spec(served)->n_members)
                model.flags |= SL_MODEL_ENSEMBLE;
        if (served->used && sl_served_spec(served)->on_request)
                model.flags |= SL_MODEL_ON_REQUEST;
        if (model.state == SL_MODEL_FAILED || model.state == SL_MODEL_AVAILABLE || model.state == SL_MODEL_STANDBY)
                memcpy(model.reason, served->why, sizeof(model.reason));
        else if (model.state == SL_MODEL_LOADING && served->awaits != SL_AWAIT_NOTHING)
                snprintf(model.reason, sizeof(model.reason), "it waits for %s", sl_await_text(served->awaits));
        int result = served->ensemble ? publish_ports(r, served, &model) : -ENOENT;
        if (!served->ensemble)
                (void)promise_part(r, 0); /* its place is small: it has it in any case */
        if (result < 0)
                publish_without(r, served, &model, result);
}
