/* SPDX-License-Identifier: Apache-2.0 */
#include "served.h"

#include "catalogue.h"
#include "ensemble.h"

#include <stdio.h>
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

static void publish_port(struct sl_catalogue_port *to, const struct sl_served_port *from)
{
        snprintf(to->name, sizeof(to->name), "%s", from->port.name);
        to->dtype = (uint8_t)from->port.dtype;
        to->rank = (uint8_t)from->port.shape.rank;
        to->batch_axis = (uint8_t)from->port.batch_axis;
        to->optional = from->port.fallback != 0;
        if (!from->port.shape.rank && from->port.shape.dims[0] == SL_DIM_UNKNOWN)
                to->dims[0] = -1; /* the rank is not known either */
        for (uint32_t i = 0; i < from->port.shape.rank; i++)
                to->dims[i] = from->port.shape.dims[i] < 0 ? -1 : (int32_t)from->port.shape.dims[i];
}

void sl_served_publish(struct sl_catalogue *catalogue, const struct sl_served *served)
{
        struct sl_catalogue_model model = {
                .state = catalogue_state(served),
                .generation = served->generation,
                .version = served->ensemble ? served->ensemble->version : served->own.spec.version,
        };
        const struct sl_ensemble *ensemble = served->ensemble;

        snprintf(model.name, sizeof(model.name), "%s", served->own.name);
        if (!served->own.spec.path && served->own.spec.n_members)
                model.flags |= SL_MODEL_ENSEMBLE;
        if (served->state == SL_SERVED_FAILED)
                memcpy(model.reason, served->why, sizeof(model.reason));
        if (ensemble) {
                model.flags |= ensemble->batchable ? SL_MODEL_BATCHABLE : 0;
                model.segment_samples = ensemble->segment_samples;
                model.samples_max = ensemble->samples_max;
                model.n_inputs = ensemble->n_inputs;
                model.n_outputs = ensemble->assembly.n_outputs;
                for (uint32_t i = 0; i < ensemble->n_inputs; i++)
                        publish_port(&model.inputs[i], &ensemble->inputs[i]);
                for (uint32_t i = 0; i < ensemble->assembly.n_outputs; i++)
                        publish_port(&model.outputs[i], &ensemble->assembly.outputs[i]);
        }
        sl_catalogue_write(catalogue, served->index, &model);
}
