/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes blocks (execute/block.h) in the background: kernels of a merged plan, once for each carrier that is to compute with it, in
 * a thread that gives way to whoever serves and ends then. Control thread only, but for that thread, which sees its orders alone.
 */
#pragma once

#include "block.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_bell;
struct sl_block_maker;

/* One block for one carrier. Plans and infos outlive the maker. */
struct sl_block_order {
        struct sl_carrier *carrier;
        struct sl_plan *plan;
        uint32_t n_members, batch_max;
        const struct sl_plan_info *members[SL_CARRIER_LANES_MAX];
        uint32_t lanes[SL_CARRIER_LANES_MAX]; /* of each member; SL_CARRIER_LANES_MAX: it has none here */
        struct sl_block_size sizes[SL_PLAN_BATCHES_MAX];
        void *room; /* NULL: it has a workspace of its own */

        struct sl_block *made; /* when it is over: whose takes it; NULL: it cannot be made */
};

/* As the block's. Good until the order is changed. */
struct sl_block_options sl_block_order_options(const struct sl_block_order *order);

/* @orders: of malloc(), the maker's from here on, also on failure. @bell: rung when it is over. Return: 0; -ENOMEM, -EAGAIN. */
int sl_block_maker_new(struct sl_block_order *orders, uint32_t n, struct sl_bell *bell, struct sl_block_maker **ret_maker);

/* Waits for the block at hand, and frees what has been made and not taken. NULL is fine. Returns NULL. */
struct sl_block_maker *sl_block_maker_free(struct sl_block_maker *maker);

bool sl_block_maker_is_over(const struct sl_block_maker *maker);

/* It is over. @ret_why: of the first that could not be made; "". */
struct sl_block_order *sl_block_maker_orders(struct sl_block_maker *maker, uint32_t *ret_n, const char **ret_why);
