/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors whose shapes are known only while a model runs, and the bounded memory in which they lie. A block is shared by counting
 * who holds it. One thread.
 */
#pragma once

#include "tensor.h"

#include <stdbool.h>

struct sl_error;

/*
 * What a pool was granted of memory that it shares with others. It is kept from run to run; who lends it counts it. The pool's
 * thread calls more(), and writes the peak.
 */
struct sl_pool_grant {
        uint64_t bytes;      /* granted */
        uint64_t peak_bytes; /* the most that was ever used of it */
        /* @wanted bytes are wanted in all, more than are granted. False: refused, and the next two say how much there was. */
        bool (*more)(struct sl_pool_grant *grant, uint64_t wanted);
        uint64_t left_bytes, max_bytes;
};

enum sl_pool_shortage { SL_POOL_HAS_ALL, SL_POOL_OVER_LIMIT, SL_POOL_NOT_GRANTED, SL_POOL_NO_MEMORY };

struct sl_pool {
        uint64_t limit_bytes; /* what is asked for beyond it fails */
        uint64_t used_bytes;
        uint64_t peak_bytes;
        struct sl_pool_grant *grant; /* NULL: nobody is asked */
        uint64_t wanted_bytes;       /* in all, by what failed last */
        enum sl_pool_shortage shortage;
};

struct sl_pool_block;

/* A tensor, PLAIN but for what kernels that stand behind each other hand on (layouts.h). dtype SL_DTYPE_NONE: absent. */
struct sl_live {
        struct sl_tensor tensor;
        void *data;
        struct sl_pool_block *block; /* NULL: the data are somebody else's */
        bool constant;               /* and they are the same in every run, as long as the kernels of this one are there */
        uint32_t value;              /* of a run that is recorded (dynamic.h): its number there; 0: it has none */
};

/* Makes room for @tensor, whose shape is static; the contents are undefined. Return: 0; -ENOMEM: over the limit, or not granted. */
int sl_live_make(struct sl_pool *pool, const struct sl_tensor *tensor, struct sl_live *ret_live);

/* Why that failed last, with the numbers, for a node whose operator has this name. Return: -ENOMEM. */
int sl_pool_explain(const struct sl_pool *pool, const char *op, struct sl_error *error);

/* A second holder of the same bytes. */
struct sl_live sl_live_share(const struct sl_live *live);

/* Its own bytes, whoever had them before: a copy if they are somebody else's. Return: 0, -ENOMEM. */
int sl_live_own(struct sl_pool *pool, struct sl_live *live);

/* What its block takes of the pool; 0: the data are somebody else's. */
uint64_t sl_live_bytes(const struct sl_live *live);

/* Ends a holder; the tensor is absent afterwards. */
void sl_live_drop(struct sl_pool *pool, struct sl_live *live);
