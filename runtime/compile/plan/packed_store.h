/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of a plan of any size in the forms that kernels want, which are made while it runs. Sizes come with requests, and so do
 * the algorithms: each constant is packed once for each form that some size has asked for, whichever instance runs it. Where the
 * base of the plan has the same bytes in the same form, those are used. What is packed stays until the plan ends.
 *
 * Bytes are bounded, and taken from a lender before they are made.
 *
 * Threads: any, but for new, lend and free. One packs a constant, outside of the lock; who wants the same one waits for it, and
 * others do not.
 */
#pragma once

#include "kernel_source.h"

struct sl_backend;
struct sl_packed_store;
struct sl_plan;

/* Called with the store locked: neither waits, or calls the store. */
struct sl_packed_lender {
        bool (*take)(void *context, uint64_t bytes); /* false: there are not as many */
        void (*give)(void *context, uint64_t bytes);
        void *context;
};

/* @base: NULL: there is none; it outlives the store. At most @bytes_max are packed. Return: 0, -ENOMEM. */
int sl_packed_store_new(const struct sl_plan *base, uint64_t bytes_max, struct sl_packed_store **ret_store);

/* Gives all back to the lender. NULL is fine. */
struct sl_packed_store *sl_packed_store_free(struct sl_packed_store *store);

/* Before anything is packed. Without a lender nobody is asked. */
void sl_packed_store_lend(struct sl_packed_store *store, const struct sl_packed_lender *lender);

/* Constant @source, input @index of @node, in the form @packed of @backend; NULL: there is no room for it, or no such form. */
const void *sl_packed_store_find(struct sl_packed_store *store, const struct sl_backend *backend, const struct sl_node_desc *node,
        uint32_t index, const struct sl_packed *packed, const void *source);

/* What is packed here, and not the base's; and the most that may be. */
uint64_t sl_packed_store_bytes(const struct sl_packed_store *store);
uint64_t sl_packed_store_bytes_max(const struct sl_packed_store *store);
