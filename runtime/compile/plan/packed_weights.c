/* SPDX-License-Identifier: Apache-2.0 */
#include "packed_weights.h"

#include "packed_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Forms follow from channels and windows, of which a model has few. */
#define FORMS_MAX 1024

struct weight {
        const void *source; /* NULL: the place is free */
        const void *data;
        uint32_t form;
};

struct sl_packed_weights {
        const struct sl_backend *backend;
        struct sl_packed_store *store;
        struct sl_packed **forms; /* number 1 is the first */
        uint32_t n_forms;
        struct weight *weights; /* a hash table, at most half full */
        uint32_t n_weights, room;
};

int sl_packed_weights_new(const struct sl_backend *backend, struct sl_packed_store *store, struct sl_packed_weights **ret_weights)
{
        struct sl_packed_weights *weights = calloc(1, sizeof(*weights));

        if (!weights)
                return -ENOMEM;
        weights->backend = backend;
        weights->store = store;
        *ret_weights = weights;
        return 0;
}

struct sl_packed_weights *sl_packed_weights_free(struct sl_packed_weights *weights)
{
        if (!weights)
                return NULL;
        for (uint32_t i = 0; i < weights->n_forms; i++)
                free(weights->forms[i]);
        free(weights->forms);
        free(weights->weights);
        free(weights);
        return NULL;
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

const void *sl_packed_weights_find(
        struct sl_packed_weights *weights, const struct sl_node_desc *node, uint32_t index, const void *source, uint32_t form)
{
        struct weight *weight;
        const void *data;

        if (grow(weights) < 0)
                return NULL;
        weight = find_place(weights, source, form);
        if (weight->source)
                return weight->data;
        data = sl_packed_store_find(weights->store, weights->backend, node, index, weights->forms[form - 1], source);
        if (data) {
                *weight = (struct weight){.source = source, .data = data, .form = form};
                weights->n_weights++;
        }
        return data;
}
