/* SPDX-License-Identifier: Apache-2.0 */
#include "packed_store.h"

#include "backend.h"
#include "base/bytes.h"
#include "plan_map.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256

struct weight {
        struct weight *next;
        const void *source;
        const void *data; /* NULL: a thread packs it */
        void *own;        /* freed with it; NULL: the base's */
        uint64_t data_bytes;
        uint32_t form_bytes;
        uint8_t form[];
};

/*
 * All is the lock's, but `bytes`, which anybody may read.
 *
 *     absent --begin--> packed by one thread --settle--> there, until the end
 *       ^                         |
 *       +---------settle----------+   it could not be packed
 */
struct sl_packed_store {
        pthread_mutex_t lock;
        pthread_cond_t settled;
        const struct sl_plan *base; /* NULL: there is none */
        struct sl_packed_lender lender;
        uint64_t bytes_max;
        _Atomic uint64_t bytes;
        struct weight *buckets[BUCKETS];
};

int sl_packed_store_new(const struct sl_plan *base, uint64_t bytes_max, struct sl_packed_store **ret_store)
{
        struct sl_packed_store *store = calloc(1, sizeof(*store));

        if (!store)
                return -ENOMEM;
        pthread_mutex_init(&store->lock, NULL);
        pthread_cond_init(&store->settled, NULL);
        store->base = base;
        store->bytes_max = bytes_max;
        *ret_store = store;
        return 0;
}

static struct weight *weight_free(struct weight *weight)
{
        if (weight)
                free(weight->own);
        free(weight);
        return NULL;
}

static void give(struct sl_packed_store *store, uint64_t bytes)
{
        if (bytes && store->lender.give)
                store->lender.give(store->lender.context, bytes);
        atomic_fetch_sub_explicit(&store->bytes, bytes, memory_order_relaxed);
}

struct sl_packed_store *sl_packed_store_free(struct sl_packed_store *store)
{
        if (!store)
                return NULL;
        for (uint32_t i = 0; i < BUCKETS; i++)
                for (struct weight *weight = store->buckets[i], *next; weight; weight = next) {
                        next = weight->next;
                        weight_free(weight);
                }
        give(store, sl_packed_store_bytes(store));
        pthread_cond_destroy(&store->settled);
        pthread_mutex_destroy(&store->lock);
        free(store);
        return NULL;
}

void sl_packed_store_lend(struct sl_packed_store *store, const struct sl_packed_lender *lender)
{
        store->lender = *lender;
}

uint64_t sl_packed_store_bytes(const struct sl_packed_store *store)
{
        return atomic_load_explicit(&store->bytes, memory_order_relaxed);
}

uint64_t sl_packed_store_bytes_max(const struct sl_packed_store *store)
{
        return store->bytes_max;
}

static bool take(struct sl_packed_store *store, uint64_t bytes)
{
        if (bytes > store->bytes_max - sl_packed_store_bytes(store))
                return false;
        if (store->lender.take && !store->lender.take(store->lender.context, bytes))
                return false;
        atomic_fetch_add_explicit(&store->bytes, bytes, memory_order_relaxed);
        return true;
}

static struct weight **bucket_of(struct sl_packed_store *store, const void *source)
{
        return &store->buckets[((uint64_t)(uintptr_t)source / 64 * 0x9e3779b97f4a7c15u >> 32) % BUCKETS];
}

static bool has_form(const struct weight *weight, const struct sl_packed *packed)
{
        return weight->data_bytes == packed->data_bytes && weight->form_bytes == packed->form_bytes &&
               !memcmp(weight->form, packed->form, packed->form_bytes);
}

static struct weight *find_weight(struct sl_packed_store *store, const struct sl_packed *packed, const void *source)
{
        for (struct weight *weight = *bucket_of(store, source); weight; weight = weight->next)
                if (weight->source == source && has_form(weight, packed))
                        return weight;
        return NULL;
}

/* Room for it is taken. NULL: there is none. */
static struct weight *begin(struct sl_packed_store *store, const struct sl_packed *packed, const void *source)
{
        struct weight *weight = malloc(sizeof(*weight) + packed->form_bytes), **bucket = bucket_of(store, source);

        if (!weight || !take(store, packed->data_bytes)) {
                free(weight);
                return NULL;
        }
        *weight = (struct weight){
                .next = *bucket, .source = source, .data_bytes = packed->data_bytes, .form_bytes = packed->form_bytes};
        memcpy(weight->form, packed->form, packed->form_bytes);
        *bucket = weight;
        return weight;
}

/* Bytes and form are what tells them apart, and are compared in full. NULL: the base has none. */
static const void *find_in_base(const struct sl_plan *base, const struct sl_packed *packed, const void *data)
{
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

/* NULL: it could not be made. */
static void *pack(const struct sl_backend *backend, const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed,
        const void *source)
{
        void *data = aligned_alloc(SL_LINE_BYTES, sl_align_up(packed->data_bytes, SL_LINE_BYTES));

        if (!data)
                return NULL;
        memset(data, 0, packed->data_bytes);
        if (backend->planner->repack(NULL, node, index, packed, source, data) == 0)
                return data;
        free(data);
        return NULL;
}

static const void *settle(struct sl_packed_store *store, struct weight *weight, void *own, const void *data)
{
        struct weight **link = bucket_of(store, weight->source);

        weight->own = own;
        weight->data = data;
        if (!own)
                give(store, weight->data_bytes);
        if (!data) {
                while (*link != weight)
                        link = &(*link)->next;
                *link = weight->next;
                weight_free(weight);
        }
        pthread_cond_broadcast(&store->settled);
        return data;
}

/* Locked, but while it packs. */
static const void *make(struct sl_packed_store *store, const struct sl_backend *backend, const struct sl_node_desc *node,
        uint32_t index, const struct sl_packed *packed, const void *source)
{
        struct weight *weight = begin(store, packed, source);
        const void *shared;
        void *own;

        if (!weight)
                return NULL;
        pthread_mutex_unlock(&store->lock);
        own = pack(backend, node, index, packed, source);
        shared = own ? find_in_base(store->base, packed, own) : NULL;
        if (shared) {
                free(own);
                own = NULL;
        }
        pthread_mutex_lock(&store->lock);
        return settle(store, weight, own, shared ? shared : own);
}

const void *sl_packed_store_find(struct sl_packed_store *store, const struct sl_backend *backend, const struct sl_node_desc *node,
        uint32_t index, const struct sl_packed *packed, const void *source)
{
        const struct weight *weight;
        const void *data;

        pthread_mutex_lock(&store->lock);
        while ((weight = find_weight(store, packed, source)) && !weight->data)
                pthread_cond_wait(&store->settled, &store->lock);
        data = weight ? weight->data : make(store, backend, node, index, packed, source);
        pthread_mutex_unlock(&store->lock);
        return data;
}
