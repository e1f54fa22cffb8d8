/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one instance knows of the packed constants of its plan (packed_store.h): where those lie that it has asked for, so that it
 * finds them again without a lock. One thread, that of the instance.
 */
#pragma once

#include "kernel_source.h"

struct sl_backend;
struct sl_packed_store;
struct sl_packed_weights;

/* @store outlives it. Return: 0, -ENOMEM. */
int sl_packed_weights_new(const struct sl_backend *backend, struct sl_packed_store *store, struct sl_packed_weights **ret_weights);
struct sl_packed_weights *sl_packed_weights_free(struct sl_packed_weights *weights);

/* A number for the form; 0: there are too many, or no memory. The same form has the same number. */
uint32_t sl_packed_weights_form(struct sl_packed_weights *weights, const struct sl_packed *packed);

/* Constant @source, input @index of @node, in that form; NULL: there is no room for it. */
const void *sl_packed_weights_find(
        struct sl_packed_weights *weights, const struct sl_node_desc *node, uint32_t index, const void *source, uint32_t form);
