/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of `cpu` for nodes whose shapes are known only while a model runs. A node that is much work gets a kernel when it comes
 * with the same shapes and attributes for the second time, so that shapes that never return cost no compilation; what is little
 * work, and what `cpu` does not take, is left to `ref`. The kernel used longest ago goes when there are too many, or when they take
 * too many bytes.
 *
 * An eager cache is that of a plan of any size, of which a run may be a whole network, of sizes that never come again. A node gets
 * a kernel when `ref` has taken as long for it as a kernel takes to compile. Constant weights are packed (packed_store.h), for
 * own loops where there are some, which are made in microseconds; elsewhere weights stay plain. One thread, that of the instance.
 */
#pragma once

#include "ref/dynamic.h"

#include <stdint.h>

struct sl_backend;
struct sl_kernel_cache;
struct sl_packed_store;
struct sl_target;

#define SL_KERNEL_CACHE_MAX       256 /* nodes with their shapes; those without a kernel count too */
#define SL_KERNEL_CACHE_EAGER_MAX 1024
#define SL_KERNEL_CACHE_BYTES_MAX (32u << 20) /* of all kernels, by sl_runner.kernel_bytes, and of what is kept to know them */

/*
 * @target: for which kernels are planned; NULL: what is typical. @store: of an eager one, where it has constants packed; NULL: it
 * is not eager. Both outlive the cache. Return: 0, -ENOMEM.
 */
int sl_kernel_cache_new(const struct sl_backend *backend, const struct sl_target *target, struct sl_packed_store *store,
        struct sl_kernel_cache **ret_cache);
struct sl_kernel_cache *sl_kernel_cache_free(struct sl_kernel_cache *cache);

/* What a kernel may take to be made in a cache that makes quick ones alone: less than a node that is worth one takes. */
#define SL_KERNEL_CACHE_QUICK_NS 20000

/* As long as @meets it makes a kernel of each node that comes, so that it knows what those of its operator cost. Of an eager one.
 */
void sl_kernel_cache_meet(struct sl_kernel_cache *cache, bool meets);

/*
 * From now on it makes kernels of those operators only of which it has made some, none of them in longer than that: who runs has no
 * time to wait for others.
 */
void sl_kernel_cache_be_quick(struct sl_kernel_cache *cache);

/* A sl_dynamic_find_fn; @context is the cache. */
bool sl_kernel_cache_find(void *context, const struct sl_dynamic_wish *wish, struct sl_dynamic_kernel *ret_kernel);

/* Of what was found (sl_dynamic_kernel): it stays until it is dropped, whatever becomes of the cache. NULL may be dropped. */
void sl_kept_kernel_hold(struct sl_kept_kernel *kept);
void sl_kept_kernel_drop(struct sl_kept_kernel *kept);

/* What it takes as long as anybody holds on to it. */
uint64_t sl_kept_kernel_bytes(const struct sl_kept_kernel *kept);

/* How many kernels there are, and what they take, for tests. */
uint32_t sl_kernel_cache_count(const struct sl_kernel_cache *cache);
uint64_t sl_kernel_cache_bytes(const struct sl_kernel_cache *cache);
