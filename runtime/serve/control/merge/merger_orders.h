/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the members of a bundle and their merged plans to the blocks that its carriers are to have: which lanes, from how many on,
 * up to which batch, in whose room. Control thread only; nothing waits.
 */
#pragma once

#include "carrier.h"
#include "layout.h"

#include <stdint.h>

struct sl_block_order;
struct sl_bundle;
struct sl_fuse_result;
struct sl_model;
struct sl_own_spec;
struct sl_plan;

struct sl_merger_members {
        uint32_t n;
        struct sl_model *models[SL_CARRIER_LANES_MAX];
        struct sl_own_spec *specs[SL_CARRIER_LANES_MAX]; /* held as the plans are */
        struct sl_plan *plans[SL_CARRIER_LANES_MAX];     /* held, from sl_merger_members_hold() on */
        char name[SL_MODEL_NAME_BYTES];                  /* of the first */
        uint32_t n_others;                               /* that are not merged with these, as their options are others: */
        const struct sl_model *others[SL_CARRIER_LANES_MAX];
};

/* Those stay whose options most have; the others are told apart. */
void sl_merger_members_part(struct sl_merger_members *members);

/* As sl_fuse_order() has it. */
void sl_merger_members_sort(struct sl_merger_members *members);

void sl_merger_members_hold(struct sl_merger_members *members);
void sl_merger_members_release(struct sl_merger_members *members);

/* That one is held no more. */
void sl_merger_members_leave_out(struct sl_merger_members *members, uint32_t index);

/*
 * Those of one carrier one behind the other. A block that pays nowhere, or of which fewer than two members have a lane, is none;
 * nor is it one of the dispatcher's where a run takes longer than that may be away. @ret_orders: of malloc(). Return: 0, -ENOMEM.
 */
int sl_merger_orders_new(const struct sl_bundle *bundle, const struct sl_merger_members *members,
        const struct sl_fuse_result *result, struct sl_block_order **ret_orders, uint32_t *ret_n);

/* Memory beside the plan and the carrier's room. */
uint64_t sl_merger_order_bytes(const struct sl_block_order *order);
