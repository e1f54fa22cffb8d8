/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of a plan in the forms that kernels want, which are made while it runs: where sizes come with requests, so do the
 * algorithms, and each constant is packed once for each form that some size has asked for. Where the base of the plan has the same
 * bytes in the same form, those are used. What they take counts as memory of the run that packs them, and of each run after it, up
 * to half of what a run may have. One thread, that of the instance.
 */
#pragma once

#include "kernel_source.h"

struct sl_backend;
struct sl_packed_weights;
struct sl_plan;
struct sl_pool;

/* Return: 0, -ENOMEM. */
int sl_packed_weights_new(const struct sl_backend *backend, struct sl_packed_weights **ret_weights);
struct sl_packed_weights *sl_packed_weights_free(struct sl_packed_weights *weights);

/*
 * What @base has packed alike is read there, and takes no memory here. It outlives the weights. Before the first run.
 */
void sl_packed_weights_share(struct sl_packed_weights *weights, const struct sl_plan *base);

/* Before the first node of a run. @pool: that of the run, which has nothing in use yet. */
void sl_packed_weights_begin(struct sl_packed_weights *weights, struct sl_pool *pool);

/* A number for the form; 0: there are too many, or no memory. The same form has the same number. */
uint32_t sl_packed_weights_form(struct sl_packed_weights *weights, const struct sl_packed *packed);
const struct sl_packed *sl_packed_weights_form_at(const struct sl_packed_weights *weights, uint32_t form);

/* Constant @source, input @index of @node, in that form; NULL: there is no room for it. */
const void *sl_packed_weights_find(
        struct sl_packed_weights *weights, const struct sl_node_desc *node, uint32_t index, const void *source, uint32_t form);

/* What is packed and not the base's, for tests. */
uint64_t sl_packed_weights_bytes(const struct sl_packed_weights *weights);
