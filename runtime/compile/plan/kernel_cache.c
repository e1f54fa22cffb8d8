/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_cache.h"

#include "backend.h"
#include "base/cleanup.h"
#include "op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Elementary steps below which `ref` is done before its shapes are looked up. */
#define WORK_MIN 1024

/* Everything that decides what a node computes, without what it does not use. */
#define KEY_BYTES_MAX                                                                                                              \
        (sizeof(uint32_t) * 4 + sizeof(struct sl_epilogue) + sizeof(struct sl_attrs) +                                             \
                SL_NODE_INPUTS_MAX * sizeof(struct sl_tensor))

struct entry {
        uint64_t hash, used; /* when, in look-ups */
        uint8_t *key;        /* NULL: the entry is free */
        size_t key_bytes;
        bool tried;
        struct sl_kernel *kernel; /* NULL: not yet, or the backend does not take it */
};

struct sl_kernel_cache {
        const struct sl_backend *backend;
        uint64_t now;
        struct sl_packed none[SL_NODE_INPUTS_MAX];
        const void *no_constants[SL_NODE_INPUTS_MAX];
        struct entry entries[SL_KERNEL_CACHE_MAX];
        uint8_t key[KEY_BYTES_MAX];
        size_t key_bytes;
};

int sl_kernel_cache_new(const struct sl_backend *backend, struct sl_kernel_cache **ret_cache)
{
        struct sl_kernel_cache *cache = calloc(1, sizeof(*cache));

        if (!cache)
                return -ENOMEM;
        cache->backend = backend;
        *ret_cache = cache;
        return 0;
}

static void entry_clear(const struct sl_kernel_cache *cache, struct entry *entry)
{
        cache->backend->runner->kernel_free(entry->kernel);
        free(entry->key);
        *entry = (struct entry){.hash = 0};
}

struct sl_kernel_cache *sl_kernel_cache_free(struct sl_kernel_cache *cache)
{
        if (!cache)
                return NULL;
        for (uint32_t i = 0; i < SL_KERNEL_CACHE_MAX; i++)
                entry_clear(cache, &cache->entries[i]);
        free(cache);
        return NULL;
}

static void put(struct sl_kernel_cache *cache, const void *bytes, size_t n_bytes)
{
        memcpy(cache->key + cache->key_bytes, bytes, n_bytes);
        cache->key_bytes += n_bytes;
}

static void put_attr(struct sl_kernel_cache *cache, const struct sl_attr *attr)
{
        bool list = attr->type == SL_ATTR_TYPE_INTS || attr->type == SL_ATTR_TYPE_FLOATS;
        const uint32_t head[] = {attr->id, attr->type, attr->count};

        put(cache, head, sizeof(head));
        put(cache, attr->ints, (list ? attr->count : 1) * sizeof(attr->ints[0]));
}

static void put_tensor(struct sl_kernel_cache *cache, const struct sl_tensor *tensor)
{
        const uint32_t head[] = {tensor->dtype, tensor->layout, tensor->shape.rank};

        put(cache, head, sizeof(head));
        put(cache, tensor->shape.dims, tensor->shape.rank * sizeof(tensor->shape.dims[0]));
}

static void write_key(struct sl_kernel_cache *cache, const struct sl_node_desc *node)
{
        const uint32_t head[] = {node->op, node->n_inputs, node->n_outputs, node->attrs.count};

        cache->key_bytes = 0;
        put(cache, head, sizeof(head));
        put(cache, &node->epilogue, sizeof(node->epilogue));
        for (uint32_t i = 0; i < node->attrs.count; i++)
                put_attr(cache, &node->attrs.items[i]);
        for (uint32_t i = 0; i < node->n_inputs; i++)
                put_tensor(cache, &node->inputs[i]);
}

/* The entry of the key at hand; else the one that has been used longest ago, for it. */
static struct entry *find_entry(struct sl_kernel_cache *cache, uint64_t hash, bool *ret_known)
{
        struct entry *oldest = &cache->entries[0];

        for (uint32_t i = 0; i < SL_KERNEL_CACHE_MAX; i++) {
                struct entry *entry = &cache->entries[i];

                *ret_known = entry->key && entry->hash == hash && entry->key_bytes == cache->key_bytes &&
                             !memcmp(entry->key, cache->key, cache->key_bytes);
                if (*ret_known)
                        return entry;
                if (entry->used < oldest->used)
                        oldest = entry;
        }
        return oldest;
}

static void note(struct sl_kernel_cache *cache, struct entry *entry, uint64_t hash)
{
        entry_clear(cache, entry);
        entry->key = malloc(cache->key_bytes);
        if (!entry->key)
                return;
        memcpy(entry->key, cache->key, cache->key_bytes);
        entry->key_bytes = cache->key_bytes;
        entry->hash = hash;
        entry->used = cache->now;
}

/* Products of bytes read their scales while they are compiled, and here no input is known then. */
static bool may_be_compiled(const struct sl_node_desc *node)
{
        return !(sl_op_traits(node->op) & (SL_OP_COUNTS | SL_OP_CONTROL)) && node->op != SL_OP_QUANTIZED_CONV &&
               node->op != SL_OP_QUANTIZED_MATMUL;
}

static void compile(struct sl_kernel_cache *cache, const struct sl_node_desc *node, struct entry *entry)
{
        entry->tried = true;
        if (cache->backend->planner->supports(NULL, node) &&
                cache->backend->runner->compile(NULL,
                        &(struct sl_kernel_source){.node = node, .packed = cache->none, .constants = cache->no_constants},
                        &entry->kernel, NULL) < 0)
                entry->kernel = NULL;
}

bool sl_kernel_cache_find(void *context, const struct sl_node_desc *node, uint64_t work, struct sl_dynamic_kernel *ret_kernel)
{
        struct sl_kernel_cache *cache = context;
        struct entry *entry;
        uint64_t hash;
        bool known;

        if (work < WORK_MIN || !may_be_compiled(node))
                return false;
        write_key(cache, node);
        hash = XXH3_64bits(cache->key, cache->key_bytes);
        entry = find_entry(cache, hash, &known);
        cache->now++;
        if (!known) {
                note(cache, entry, hash);
                return false;
        }
        entry->used = cache->now;
        if (!entry->tried)
                compile(cache, node, entry);
        *ret_kernel = (struct sl_dynamic_kernel){.backend = cache->backend, .kernel = entry->kernel};
        return entry->kernel != NULL;
}

uint32_t sl_kernel_cache_count(const struct sl_kernel_cache *cache)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < SL_KERNEL_CACHE_MAX; i++)
                n += cache->entries[i].kernel != NULL;
        return n;
}
