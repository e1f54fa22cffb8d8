/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of `cpu` for nodes whose shapes are known only while a model runs. A node that is much work gets a kernel when it comes
 * with the same shapes and attributes for the second time, so that shapes that never return cost no compilation; what is little
 * work, and what `cpu` does not take, is left to `ref`. The kernel used longest ago goes when there are too many. Weights stay
 * plain: they are packed where shapes are known before. One thread, that of the instance.
 */
#pragma once

#include "ref/dynamic.h"

#include <stdint.h>

struct sl_backend;
struct sl_kernel_cache;

#define SL_KERNEL_CACHE_MAX 256 /* nodes with their shapes; those without a kernel count too */

/* Return: 0, -ENOMEM. */
int sl_kernel_cache_new(const struct sl_backend *backend, struct sl_kernel_cache **ret_cache);
struct sl_kernel_cache *sl_kernel_cache_free(struct sl_kernel_cache *cache);

/* A sl_dynamic_find_fn; @context is the cache. */
bool sl_kernel_cache_find(void *context, const struct sl_node_desc *node, uint64_t work, struct sl_dynamic_kernel *ret_kernel);

/* How many kernels there are, for tests. */
uint32_t sl_kernel_cache_count(const struct sl_kernel_cache *cache);
