/* SPDX-License-Identifier: Apache-2.0 */
#include "own_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int copy_members(struct sl_own_spec *own, const struct sl_model_spec *spec)
{
        size_t bytes = 1, used = 0;

        for (uint32_t i = 0; i < spec->n_members; i++)
                bytes += strlen(spec->members[i]) + 1;
        own->members = malloc(bytes);
        for (uint32_t i = 0; own->members && i < spec->n_members; i++) {
                own->member_names[i] = strcpy(own->members + used, spec->members[i]);
                used += strlen(spec->members[i]) + 1;
        }
        own->spec.members = own->member_names;
        return own->members ? 0 : -ENOMEM;
}

static int copy_prepared(struct sl_own_spec *own, const struct sl_model_spec *spec)
{
        size_t bytes = spec->n_prepared * sizeof(*spec->prepared);

        own->spec.prepared = NULL;
        if (!bytes)
                return 0;
        own->prepared = malloc(bytes);
        if (own->prepared)
                own->spec.prepared = memcpy(own->prepared, spec->prepared, bytes);
        return own->prepared ? 0 : -ENOMEM;
}

static int copy_path(struct sl_own_spec *own, const struct sl_model_spec *spec)
{
        own->path = spec->path ? strdup(spec->path) : NULL;
        own->spec.path = own->path;
        return spec->path && !own->path ? -ENOMEM : 0;
}

static int copy_combining(struct sl_own_spec *own, const struct sl_model_spec *spec)
{
        own->combining = sl_combining_copy(spec->combining);
        own->spec.combining = own->combining;
        return spec->combining && !own->combining ? -ENOMEM : 0;
}

int sl_own_spec_new(const struct sl_model_spec *spec, struct sl_own_spec **ret_own)
{
        struct sl_own_spec *own = calloc(1, sizeof(*own));

        if (!own)
                return -ENOMEM;
        own->refs = 1;
        own->spec = *spec;
        if (copy_members(own, spec) < 0 || copy_path(own, spec) < 0 || copy_prepared(own, spec) < 0 ||
                copy_combining(own, spec) < 0) {
                sl_own_spec_free(own);
                return -ENOMEM;
        }
        snprintf(own->name, sizeof(own->name), "%s", spec->name);
        own->spec.name = own->name;
        if (spec->weights)
                memcpy(own->weights, spec->weights, spec->n_members * sizeof(float));
        own->spec.weights = spec->weights ? own->weights : NULL;
        *ret_own = own;
        return 0;
}

struct sl_own_spec *sl_own_spec_hold(struct sl_own_spec *own)
{
        if (own)
                own->refs++;
        return own;
}

struct sl_own_spec *sl_own_spec_free(struct sl_own_spec *own)
{
        if (!own || --own->refs)
                return NULL;
        free(own->members);
        free(own->path);
        free(own->prepared);
        sl_combining_release(own->combining);
        free(own);
        return NULL;
}

bool sl_spec_same(const struct sl_model_spec *a, const struct sl_model_spec *b)
{
        return a->stamp == b->stamp && a->version == b->version && !a->path == !b->path;
}
