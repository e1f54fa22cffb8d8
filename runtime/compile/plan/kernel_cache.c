/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_cache.h"

#include "backend.h"
#include "base/cleanup.h"
#include "op.h"
#include "own_time.h"
#include "packed_weights.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Elementary steps below which `ref` is done before its shapes are looked up. */
#define WORK_MIN 1024

/* An eager cache is looked through in part: a node is in the set that its hash says. The other is one set. */
#define WAYS 16
#define SETS (SL_KERNEL_CACHE_EAGER_MAX / WAYS)

/* Everything that decides what a node computes, without what it does not use. */
#define KEY_BYTES_MAX                                                                                                              \
        (sizeof(uint32_t) * 5 + sizeof(uint64_t) + sizeof(struct sl_epilogue) + sizeof(struct sl_attrs) +                          \
                SL_NODE_INPUTS_MAX * (sizeof(struct sl_tensor) + sizeof(const void *)))

/* Of an entry, and of whoever holds on to it beyond that. */
struct sl_kept_kernel {
        const struct sl_backend *backend;
        struct sl_kernel *kernel;
        uint64_t bytes;
        uint32_t holders;
};

struct entry {
        uint64_t hash, used; /* when, in look-ups */
        uint8_t *key;        /* NULL: the entry is free */
        size_t key_bytes;
        bool tried;
        uint64_t work, spent_ns;               /* elementary steps of it that `ref` has done, and the time that those took */
        struct sl_kept_kernel *kept;           /* NULL: not yet, or the backend does not take it */
        uint32_t forms[SL_DYNAMIC_PACKED_MAX]; /* of constant inputs, in packed_weights.h; 0: plain */
};

struct sl_kernel_cache {
        const struct sl_backend *backend;
        const struct sl_target *target;
        bool eager, quick, meets;
        struct sl_packed_weights *weights; /* NULL: it packs none */
        uint64_t now;
        uint64_t bytes;                              /* of all entries */
        uint64_t slowest_ns[SL_OP_COUNT];            /* of all of them */
        uint64_t compile_ns[SL_OP_COUNT];            /* what the last kernel of an operator took; 0: there was none */
        struct sl_packed packed[SL_NODE_INPUTS_MAX]; /* of the node that is compiled; zeros in between */
        const void *no_constants[SL_NODE_INPUTS_MAX];
        struct sl_node_desc node; /* the same with an algorithm */
        uint8_t key[KEY_BYTES_MAX];
        size_t key_bytes;
        uint32_t n_entries;
        struct entry entries[];
};

int sl_kernel_cache_new(const struct sl_backend *backend, const struct sl_target *target, struct sl_packed_store *store,
        struct sl_kernel_cache **ret_cache)
{
        bool eager = store != NULL;
        uint32_t n_entries = eager ? SL_KERNEL_CACHE_EAGER_MAX : SL_KERNEL_CACHE_MAX;
        struct sl_kernel_cache *cache = calloc(1, sizeof(*cache) + n_entries * sizeof(cache->entries[0]));

        if (!cache)
                return -ENOMEM;
        if (eager && sl_packed_weights_new(backend, store, &cache->weights) < 0) {
                free(cache);
                return -ENOMEM;
        }
        cache->n_entries = n_entries;
        cache->backend = backend;
        cache->target = target;
        cache->eager = eager;
        *ret_cache = cache;
        return 0;
}

void sl_kept_kernel_hold(struct sl_kept_kernel *kept)
{
        kept->holders++;
}

void sl_kept_kernel_drop(struct sl_kept_kernel *kept)
{
        if (!kept || --kept->holders)
                return;
        kept->backend->runner->kernel_free(kept->kernel);
        free(kept);
}

/* A kernel that is not kept any more is no kernel of the entry. Return: NULL, too: there is no memory. */
static struct sl_kept_kernel *keep(const struct sl_backend *backend, struct sl_kernel *kernel)
{
        struct sl_kept_kernel *kept = malloc(sizeof(*kept));

        if (!kept) {
                backend->runner->kernel_free(kernel);
                return NULL;
        }
        *kept = (struct sl_kept_kernel){.backend = backend, .kernel = kernel, .bytes = sizeof(*kept), .holders = 1};
        if (backend->runner->kernel_bytes)
                kept->bytes += backend->runner->kernel_bytes(kernel);
        return kept;
}

uint64_t sl_kept_kernel_bytes(const struct sl_kept_kernel *kept)
{
        return kept->bytes;
}

static uint64_t entry_bytes(const struct entry *entry)
{
        return entry->key_bytes + (entry->kept ? entry->kept->bytes : 0);
}

static void entry_clear(struct sl_kernel_cache *cache, struct entry *entry)
{
        cache->bytes -= entry_bytes(entry);
        sl_kept_kernel_drop(entry->kept);
        free(entry->key);
        *entry = (struct entry){.hash = 0};
}

struct sl_kernel_cache *sl_kernel_cache_free(struct sl_kernel_cache *cache)
{
        if (!cache)
                return NULL;
        for (uint32_t i = 0; i < cache->n_entries; i++)
                entry_clear(cache, &cache->entries[i]);
        sl_packed_weights_free(cache->weights);
        free(cache);
        return NULL;
}

void sl_kernel_cache_meet(struct sl_kernel_cache *cache, bool meets)
{
        cache->meets = meets;
}

void sl_kernel_cache_be_quick(struct sl_kernel_cache *cache)
{
        cache->quick = true;
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

/* Products of bytes read their scales while they are compiled. */
static bool reads_constants(uint32_t op)
{
        return op == SL_OP_QUANTIZED_CONV || op == SL_OP_QUANTIZED_MATMUL;
}

static const void *constant_of(const struct sl_dynamic_wish *wish, uint32_t input)
{
        return wish->constants ? wish->constants[input] : NULL;
}

/* Which inputs are constant; which constants those are only where the kernel depends on their values. */
static void put_constants(struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish)
{
        uint64_t mask = 0;

        for (uint32_t i = 0; i < wish->node->n_inputs; i++) {
                const void *constant = constant_of(wish, i);

                mask |= constant ? 1ull << i : 0;
                if (reads_constants(wish->node->op))
                        put(cache, &constant, sizeof(constant));
        }
        put(cache, &mask, sizeof(mask));
}
static_assert(SL_NODE_INPUTS_MAX <= 64, "a bit for each input");

static void write_key(struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish)
{
        const struct sl_node_desc *node = wish->node;
        const uint32_t head[] = {node->op, node->n_inputs, node->n_outputs, node->attrs.count};

        cache->key_bytes = 0;
        put(cache, head, sizeof(head));
        put(cache, &node->epilogue, sizeof(node->epilogue));
        for (uint32_t i = 0; i < node->attrs.count; i++)
                put_attr(cache, &node->attrs.items[i]);
        for (uint32_t i = 0; i < node->n_inputs; i++)
                put_tensor(cache, &node->inputs[i]);
        put(cache, &node->outputs[0].layout, sizeof(node->outputs[0].layout));
        if (cache->weights)
                put_constants(cache, wish);
}

/* The entry of the key at hand; else the one that has been used longest ago, for it. */
static struct entry *find_entry(struct sl_kernel_cache *cache, uint64_t hash, bool *ret_known)
{
        struct entry *set = cache->eager ? &cache->entries[hash % SETS * WAYS] : cache->entries, *oldest = set;

        for (uint32_t i = 0; i < (cache->eager ? WAYS : cache->n_entries); i++) {
                struct entry *entry = &set[i];

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
        cache->bytes += entry->key_bytes;
        entry->hash = hash;
        entry->used = cache->now;
}

/* A block is one kernel where that is better than its parts are at this size. */
static bool gains(const struct sl_kernel_cache *cache, const struct sl_node_desc *node)
{
        const struct sl_planner *planner = cache->backend->planner;

        return planner->gains && planner->gains(cache->target, node);
}

/* How long the output of a node that counts may be is no part of the key, but of NonMaxSuppression shapes and attributes say it. */
static bool may_be_compiled(const struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish)
{
        uint32_t op = wish->node->op, traits = op == SL_OP_NON_MAX_SUPPRESSION ? 0 : sl_op_traits(op);

        return !(traits & (SL_OP_COUNTS | SL_OP_CONTROL)) && (cache->weights || !reads_constants(op)) &&
               (op != SL_OP_MBCONV || gains(cache, wish->node));
}

/* Form and data of a constant, where the backend wants another than the plain one. */
static int pack_input(struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish, uint32_t input, struct entry *entry)
{
        struct sl_packed *packed = &cache->packed[input];
        int r = cache->backend->planner->pack(cache->target, &cache->node, input, packed);

        if (r < 0 || !packed->data_bytes)
                return r;
        entry->forms[input] = sl_packed_weights_form(cache->weights, packed);
        if (!entry->forms[input])
                return -ENOMEM;
        return sl_packed_weights_find(cache->weights, &cache->node, input, constant_of(wish, input), entry->forms[input]) ? 0
                                                                                                                          : -ENOMEM;
}

static void forget_packed(struct sl_kernel_cache *cache)
{
        for (uint32_t i = 0; i < SL_DYNAMIC_PACKED_MAX; i++)
                cache->packed[i].data_bytes = cache->packed[i].form_bytes = 0;
}

/* cache->node, over packed constants or over plain ones. */
static int compile_node(struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish, bool packs, struct entry *entry)
{
        const struct sl_kernel_source source = {.node = &cache->node,
                .target = cache->target,
                .packed = cache->packed,
                .constants = reads_constants(cache->node.op) ? wish->constants : cache->no_constants};
        struct sl_kernel *kernel = NULL;
        uint64_t begun_ns;
        int r = 0;

        for (uint32_t i = 0; i < cache->node.n_inputs && i < SL_DYNAMIC_PACKED_MAX && packs && r == 0; i++)
                if (constant_of(wish, i))
                        r = pack_input(cache, wish, i, entry);
        begun_ns = sl_own_ns();
        if (r == 0)
                r = cache->backend->runner->compile(NULL, &source, &kernel, NULL);
        cache->compile_ns[cache->node.op] = sl_own_ns() - begun_ns;
        if (r == 0) {
                entry->kept = keep(cache->backend, kernel);
                r = entry->kept ? 0 : -ENOMEM;
        }
        if (r < 0) {
                memset(entry->forms, 0, sizeof(entry->forms));
                forget_packed(cache);
        }
        return r;
}

static bool has_weights(const struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish)
{
        return cache->weights && wish->node->n_inputs > 1 && constant_of(wish, 1);
}

/*
 * An own loop for constant weights, whatever oneDNN would gain: that generates code for each size, for tens of times as long as a
 * loop takes to be planned. Of convolutions the one that should be fastest at this size.
 */
static uint32_t choose_algorithm(const struct sl_kernel_cache *cache, const struct sl_node_desc *node)
{
        uint32_t algorithms[SL_ALGORITHM_COUNT], n;

        if (node->op != SL_OP_CONV)
                return SL_ALGORITHM_BLOCKED;
        n = cache->backend->planner->algorithms(cache->target, node, algorithms, NULL);
        for (uint32_t i = 0; i < n; i++)
                if (algorithms[i] != SL_ALGORITHM_DIRECT)
                        return algorithms[i];
        return SL_ALGORITHM_BLOCKED;
}

static bool compile_own(struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish, struct entry *entry)
{
        if (sl_attrs_set_int(&cache->node.attrs, SL_ATTR_ALGORITHM, choose_algorithm(cache, wish->node)) < 0)
                return false;
        return cache->backend->planner->supports(cache->target, &cache->node) && compile_node(cache, wish, true, entry) == 0;
}

static void note_slowest(struct sl_kernel_cache *cache, uint32_t op)
{
        if (cache->compile_ns[op] > cache->slowest_ns[op])
                cache->slowest_ns[op] = cache->compile_ns[op];
}

/* That is known to be so. */
static bool is_quick(const struct sl_kernel_cache *cache, uint32_t op)
{
        return cache->slowest_ns[op] && cache->slowest_ns[op] <= SL_KERNEL_CACHE_QUICK_NS;
}

/* But not @entry, which was asked for. */
static struct entry *find_oldest(struct sl_kernel_cache *cache, const struct entry *entry)
{
        struct entry *oldest = NULL;

        for (uint32_t i = 0; i < cache->n_entries; i++) {
                struct entry *other = &cache->entries[i];

                if (other != entry && other->kept && (!oldest || other->used < oldest->used))
                        oldest = other;
        }
        return oldest;
}

/* @entry has a kernel now, for which others may have to go. */
static void count_kernel(struct sl_kernel_cache *cache, struct entry *entry)
{
        struct entry *oldest;

        if (!entry->kept)
                return;
        cache->bytes += entry->kept->bytes;
        while (cache->bytes > SL_KERNEL_CACHE_BYTES_MAX && (oldest = find_oldest(cache, entry)))
                entry_clear(cache, oldest);
}

static void compile(struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish, struct entry *entry)
{
        uint64_t begun_ns = sl_own_ns();
        bool packs = has_weights(cache, wish);

        entry->tried = true;
        cache->node = *wish->node;
        if (packs && compile_own(cache, wish, entry)) {
                forget_packed(cache);
                note_slowest(cache, wish->node->op);
                return;
        }
        cache->node = *wish->node;
        if (cache->backend->planner->supports(cache->target, &cache->node) &&
                (!packs || compile_node(cache, wish, true, entry) < 0))
                (void)compile_node(cache, wish, false, entry);
        forget_packed(cache);
        cache->compile_ns[wish->node->op] = sl_own_ns() - begun_ns;
        note_slowest(cache, wish->node->op);
}

/*
 * `ref` has taken as long for it as a kernel takes to compile, or would by now: whether it comes again is not known, and so neither
 * costs more than twice what the better would have. Both times are those of this machine, and the thread's own, whoever has the
 * processor meanwhile; the first kernel of an operator tells.
 */
static bool is_worth_a_kernel(
        const struct sl_kernel_cache *cache, const struct sl_node_desc *node, const struct entry *entry, uint64_t work)
{
        double each_ns = entry->work ? (double)entry->spent_ns / (double)entry->work : 1;

        return (double)entry->spent_ns + each_ns * (double)work >= (double)cache->compile_ns[node->op];
}

static bool is_wanted(const struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish, const struct entry *entry)
{
        return cache->meets || (wish->returns && is_quick(cache, wish->node->op)) ||
               is_worth_a_kernel(cache, wish->node, entry, wish->work);
}

/* What is little work is done before it is looked up, but where a look-up is for many runs. */
static bool is_worth_a_look(const struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish)
{
        return wish->work >= WORK_MIN || wish->at_once || cache->meets || (wish->returns && is_quick(cache, wish->node->op));
}

/* Where a constant does not get the form any more that the kernel reads, there is no kernel for it. */
static bool find_packed(struct sl_kernel_cache *cache, const struct sl_dynamic_wish *wish, const struct entry *entry,
        struct sl_dynamic_kernel *ret_kernel)
{
        for (uint32_t i = 0; i < SL_DYNAMIC_PACKED_MAX; i++) {
                ret_kernel->packed[i] = NULL;
                if (!entry->forms[i])
                        continue;
                ret_kernel->packed[i] =
                        sl_packed_weights_find(cache->weights, wish->node, i, constant_of(wish, i), entry->forms[i]);
                if (!ret_kernel->packed[i])
                        return false;
        }
        return true;
}

bool sl_kernel_cache_find(void *context, const struct sl_dynamic_wish *wish, struct sl_dynamic_kernel *ret_kernel)
{
        struct sl_kernel_cache *cache = context;
        struct entry *entry;
        uint64_t hash;
        bool known;

        if (!is_worth_a_look(cache, wish) || !may_be_compiled(cache, wish))
                return false;
        write_key(cache, wish);
        hash = XXH3_64bits(cache->key, cache->key_bytes);
        entry = find_entry(cache, hash, &known);
        cache->now++;
        if (!known) {
                note(cache, entry, hash);
                if (!cache->eager || !entry->key)
                        return false;
        }
        entry->used = cache->now;
        if (cache->eager && !wish->at_once && !entry->tried && !is_wanted(cache, wish, entry)) {
                entry->work += wish->work;
                ret_kernel->spent_ns = &entry->spent_ns;
                return false;
        }
        if (!entry->tried && cache->quick && !is_quick(cache, wish->node->op))
                return false;
        if (!entry->tried) {
                compile(cache, wish, entry);
                count_kernel(cache, entry);
        }
        if (!entry->kept || !find_packed(cache, wish, entry, ret_kernel))
                return false;
        ret_kernel->backend = cache->backend;
        ret_kernel->kernel = entry->kept->kernel;
        ret_kernel->kept = entry->kept;
        return true;
}

uint32_t sl_kernel_cache_count(const struct sl_kernel_cache *cache)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < cache->n_entries; i++)
                n += cache->entries[i].kept != NULL;
        return n;
}

uint64_t sl_kernel_cache_bytes(const struct sl_kernel_cache *cache)
{
        return cache->bytes;
}
