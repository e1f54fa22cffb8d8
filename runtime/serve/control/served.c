/* SPDX-License-Identifier: Apache-2.0 */
#include "served.h"

#include "catalogue.h"
#include "ensemble.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sl_own_spec_copy(struct sl_own_spec *own, const struct sl_model_spec *spec)
{
        own->spec = *spec;
        snprintf(own->name, sizeof(own->name), "%s", spec->name);
        own->spec.name = own->name;
        if (spec->path) {
                snprintf(own->path, sizeof(own->path), "%s", spec->path);
                own->spec.path = own->path;
        }
        for (uint32_t i = 0; i < spec->n_members; i++) {
                snprintf(own->members[i], sizeof(own->members[i]), "%s", spec->members[i]);
                own->member_names[i] = own->members[i];
        }
        own->spec.members = own->member_names;
        if (spec->weights)
                memcpy(own->weights, spec->weights, spec->n_members * sizeof(float));
        own->spec.weights = spec->weights ? own->weights : NULL;
}

bool sl_spec_same(const struct sl_model_spec *a, const struct sl_model_spec *b)
{
        return a->stamp == b->stamp && a->version == b->version && !a->path == !b->path;
}

bool sl_spec_resized(const struct sl_model_spec *a, const struct sl_model_spec *b)
{
        return sl_spec_same(a, b) && a->path && !sl_worker_set_equal(&a->workers, &b->workers);
}

static enum sl_model_state catalogue_state(const struct sl_served *served)
{
        switch (served->state) {
        case SL_SERVED_NONE:
                return SL_MODEL_ABSENT;
        case SL_SERVED_WAITING:
        case SL_SERVED_LOADING:
                return SL_MODEL_LOADING;
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
        return i < ensemble->n_inputs ? &ensemble->inputs[i] : &ensemble->assembly.outputs[i - ensemble->n_inputs];
}

/* One block, which is freed by its ports. -ENOMEM. */
static int make_part(const struct sl_ensemble *ensemble, struct sl_catalogue_part *ret_part)
{
        uint32_t n = ensemble->n_inputs + ensemble->assembly.n_outputs;
        size_t texts_bytes = 0, used = 0;
        struct sl_catalogue_port *ports;
        char *texts;

        for (uint32_t i = 0; i < n; i++)
                texts_bytes += strlen(port_at(ensemble, i)->port.name) + 1;
        ports = calloc(1, n * sizeof(*ports) + texts_bytes + 1);
        if (!ports)
                return -ENOMEM;
        texts = (char *)(ports + n);
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_served_port *port = port_at(ensemble, i);

                describe_port(&ports[i], port);
                ports[i].name = (uint32_t)used;
                used += strlen(strcpy(texts + used, port->port.name)) + 1;
        }
        *ret_part = (struct sl_catalogue_part){ports, texts, (uint32_t)texts_bytes};
        return 0;
}

static int publish_ports(struct sl_catalogue *catalogue, const struct sl_served *served, struct sl_catalogue_model *model)
{
        const struct sl_ensemble *ensemble = served->ensemble;
        struct sl_catalogue_part part;
        int r = make_part(ensemble, &part);

        if (r < 0)
                return r;
        model->flags |= ensemble->batchable ? SL_MODEL_BATCHABLE : 0;
        model->segment_samples = ensemble->segment_samples;
        model->samples_max = ensemble->samples_max;
        model->n_inputs = ensemble->n_inputs;
        model->n_outputs = ensemble->assembly.n_outputs;
        r = sl_catalogue_write(catalogue, served->index, model, &part);
        free(part.ports);
        return r;
}

/* What clients cannot look at they cannot ask. */
static void publish_without(struct sl_catalogue *catalogue, const struct sl_served *served, struct sl_catalogue_model *model)
{
        if (model->state == SL_MODEL_READY) {
                model->state = SL_MODEL_FAILED;
                snprintf(model->reason, sizeof(model->reason),
                        "the catalogue has no room for its %u inputs and outputs: all models take at most %u bytes there",
                        model->n_inputs + model->n_outputs, SL_CATALOGUE_PARTS_BYTES);
        }
        model->n_inputs = model->n_outputs = 0;
        sl_catalogue_write(catalogue, served->index, model, NULL);
}

void sl_served_publish(struct sl_catalogue *catalogue, const struct sl_served *served)
{
        struct sl_catalogue_model model = {
                .state = catalogue_state(served),
                .generation = served->generation,
                .version = served->ensemble ? served->ensemble->version : served->own.spec.version,
        };

        snprintf(model.name, sizeof(model.name), "%s", served->own.name);
        if (!served->own.spec.path && served->own.spec.n_members)
                model.flags |= SL_MODEL_ENSEMBLE;
        if (served->state == SL_SERVED_FAILED)
                memcpy(model.reason, served->why, sizeof(model.reason));
        if (!served->ensemble || publish_ports(catalogue, served, &model) < 0)
                publish_without(catalogue, served, &model);
}
