/* SPDX-License-Identifier: Apache-2.0 */
#include "packed_weights.h"

#include "backend.h"
#include "plan_map.h"
#include "ref/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Forms follow from channels and windows, of which a model has few. */
#define FORMS_MAX 1024

struct weight {
        const void *source; /* NULL: the place is free */
        uint32_t form;
        struct sl_live live;
};

struct sl_packed_weights {
        const struct sl_backend *backend;
        const struct sl_plan *base; /* NULL: there is none */
        struct sl_pool *pool;       /* of the run; NULL before the first */
        struct sl_packed **forms;   /* number 1 is the first */
        uint32_t n_forms;
        struct weight *weights; /* a hash table, at most half full */
        uint32_t n_weights, room;
        uint64_t bytes; /* with what the pool adds */
};

int sl_packed_weights_new(const struct sl_backend *backend, struct sl_packed_weights **ret_weights)
{
        struct sl_packed_weights *weights = calloc(1, sizeof(*weights));

        if (!weights)
                return -ENOMEM;
        weights->backend = backend;
        *ret_weights = weights;
        return 0;
}

struct sl_packed_weights *sl_packed_weights_free(struct sl_packed_weights *weights)
{
        struct sl_pool nobody = {.used_bytes = UINT64_MAX};

        if (!weights)
                return NULL;
        for (uint32_t i = 0; i < weights->room; i++)
                sl_live_drop(&nobody, &weights->weights[i].live);
        for (uint32_t i = 0; i < weights->n_forms; i++)
                free(weights->forms[i]);
        free(weights->forms);
        free(weights->weights);
        free(weights);
        return NULL;
}

void sl_packed_weights_share(struct sl_packed_weights *weights, const struct sl_plan *base)
{
        weights->base = base;
}

void sl_packed_weights_begin(struct sl_packed_weights *weights, struct sl_pool *pool)
{
        weights->pool = pool;
        pool->used_bytes = weights->bytes;
}

static bool is_same(const struct sl_packed *a, const struct sl_packed *b)
{
        return a->data_bytes == b->data_bytes && a->form_bytes == b->form_bytes && !memcmp(a->form, b->form, a->form_bytes);
}

uint32_t sl_packed_weights_form(struct sl_packed_weights *weights, const struct sl_packed *packed)
{
        struct sl_packed **forms, *copy;

        for (uint32_t i = 0; i < weights->n_forms; i++)
                if (is_same(weights->forms[i], packed))
                        return i + 1;
        if (weights->n_forms == FORMS_MAX)
                return 0;
        forms = reallocarray(weights->forms, weights->n_forms + 1, sizeof(*forms));
        if (!forms)
                return 0;
        weights->forms = forms;
        copy = malloc(sizeof(*copy));
        if (!copy)
                return 0;
        *copy = *packed;
        forms[weights->n_forms++] = copy;
        return weights->n_forms;
}

const struct sl_packed *sl_packed_weights_form_at(const struct sl_packed_weights *weights, uint32_t form)
{
        return weights->forms[form - 1];
}

/* Its place, or the free one where it would go. */
static struct weight *find_place(const struct sl_packed_weights *weights, const void *source, uint32_t form)
{
        uint64_t hash = ((uint64_t)(uintptr_t)source / 64 + form) * 0x9e3779b97f4a7c15u;

        for (uint32_t i = (uint32_t)(hash >> 32);; i++) {
                struct weight *weight = &weights->weights[i & (weights->room - 1)];

                if (!weight->source || (weight->source == source && weight->form == form))
                        return weight;
        }
}

static int grow(struct sl_packed_weights *weights)
{
        struct sl_packed_weights grown = *weights;

        if (weights->room && weights->n_weights < weights->room / 2)
                return 0;
        grown.room = weights->room ? 2 * weights->room : 64;
        grown.weights = calloc(grown.room, sizeof(*grown.weights));
        if (!grown.weights)
                return -ENOMEM;
        for (uint32_t i = 0; i < weights->room; i++)
                if (weights->weights[i].source)
                        *find_place(&grown, weights->weights[i].source, weights->weights[i].form) = weights->weights[i];
        free(weights->weights);
        *weights = grown;
        return 0;
}

/* Bytes and form are what tells them apart, and are compared in full. NULL: the base has none. */
static const void *find_in_base(const struct sl_packed_weights *weights, const struct sl_packed *packed, const void *data)
{
        const struct sl_plan *base = weights->base;

        for (uint64_t i = 0; base && i < base->header->sections[SL_PLAN_SECTION_CONSTANTS].count; i++) {
                const struct sl_plan_constant *constant = &base->constants[i];
                const uint8_t *there;

                if (!constant->packed || constant->bytes != packed->data_bytes || constant->form_bytes != packed->form_bytes ||
                        memcmp(base->forms + constant->form_offset, packed->form, packed->form_bytes) != 0)
                        continue;
                there = sl_plan_constant_data(base, constant);
                if (!memcmp(there, data, packed->data_bytes))
                        return there;
        }
        return NULL;
}

static const void *pack(struct sl_packed_weights *weights, const struct sl_node_desc *node, uint32_t index, const void *source,
        uint32_t form, struct weight *ret_weight)
{
        const struct sl_packed *packed = sl_packed_weights_form_at(weights, form);
        const struct sl_tensor room = {.dtype = SL_DTYPE_U8, .shape = {.rank = 1, .dims = {(int64_t)packed->data_bytes}}};
        uint64_t before = weights->pool->used_bytes;
        const void *shared;
        struct sl_live live;

        if (weights->bytes + packed->data_bytes > weights->pool->limit_bytes / 2 || sl_live_make(weights->pool, &room, &live) < 0)
                return NULL;
        memset(live.data, 0, packed->data_bytes);
        if (weights->backend->planner->repack(NULL, node, index, packed, source, live.data) < 0) {
                sl_live_drop(weights->pool, &live);
                return NULL;
        }
        weights->n_weights++;
        shared = find_in_base(weights, packed, live.data);
        if (shared) {
                sl_live_drop(weights->pool, &live);
                *ret_weight = (struct weight){.source = source, .form = form, .live = {.data = (void *)(uintptr_t)shared}};
                return shared;
        }
        weights->bytes += weights->pool->used_bytes - before;
        *ret_weight = (struct weight){.source = source, .form = form, .live = live};
        return live.data;
}

const void *sl_packed_weights_find(
        struct sl_packed_weights *weights, const struct sl_node_desc *node, uint32_t index, const void *source, uint32_t form)
{
        struct weight *weight;

        if (!weights->pool || grow(weights) < 0)
                return NULL;
        weight = find_place(weights, source, form);
        return weight->source ? weight->live.data : pack(weights, node, index, source, form, weight);
}

uint64_t sl_packed_weights_bytes(const struct sl_packed_weights *weights)
{
        return weights->bytes;
}
