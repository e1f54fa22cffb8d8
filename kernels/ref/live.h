/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors whose shapes are known only while a model runs, and the bounded memory in which they lie. A block is shared by counting
 * who holds it. One thread.
 */
#pragma once

#include "tensor.h"

struct sl_pool {
        uint64_t limit_bytes; /* what is asked for beyond it fails */
        uint64_t used_bytes;
        uint64_t peak_bytes;
};

struct sl_pool_block;

/* A tensor, PLAIN. dtype SL_DTYPE_NONE: absent. */
struct sl_live {
        struct sl_tensor tensor;
        void *data;
        struct sl_pool_block *block; /* NULL: the data are somebody else's */
};

/* Makes room for @tensor, whose shape is static; the contents are undefined. Return: 0; -ENOMEM: over the limit. */
int sl_live_make(struct sl_pool *pool, const struct sl_tensor *tensor, struct sl_live *ret_live);

/* A second holder of the same bytes. */
struct sl_live sl_live_share(const struct sl_live *live);

/* Its own bytes, whoever had them before: a copy if they are somebody else's. Return: 0, -ENOMEM. */
int sl_live_own(struct sl_pool *pool, struct sl_live *live);

/* Ends a holder; the tensor is absent afterwards. */
void sl_live_drop(struct sl_pool *pool, struct sl_live *live);
