/* SPDX-License-Identifier: Apache-2.0 */
#include "merger_orders.h"

#include "block_maker.h"
#include "bundles.h"
#include "crew.h"
#include "fuse.h"
#include "fuse_order.h"
#include "inline_rule.h"
#include "model.h"
#include "own_spec.h"
#include "thread_carrier.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool have_same_options(const struct sl_own_spec *one, const struct sl_own_spec *other)
{
        return memcmp(&one->spec.lowering, &other->spec.lowering, sizeof(one->spec.lowering)) == 0;
}

void sl_merger_members_part(struct sl_merger_members *members)
{
        uint32_t group_of[SL_CARRIER_LANES_MAX], first[SL_CARRIER_LANES_MAX], size[SL_CARRIER_LANES_MAX] = {0};
        uint32_t n_groups = 0, largest = 0, n = 0;

        for (uint32_t i = 0; i < members->n; i++) {
                uint32_t group = 0;

                while (group < n_groups && !have_same_options(members->specs[first[group]], members->specs[i]))
                        group++;
                if (group == n_groups)
                        first[n_groups++] = i;
                group_of[i] = group;
                size[group]++;
        }
        for (uint32_t group = 1; group < n_groups; group++)
                largest = size[group] > size[largest] ? group : largest;
        members->n_others = 0;
        for (uint32_t i = 0; i < members->n; i++) {
                if (group_of[i] != largest) {
                        members->others[members->n_others++] = members->models[i];
                        continue;
                }
                members->models[n] = members->models[i];
                members->specs[n++] = members->specs[i];
        }
        members->n = n;
}

void sl_merger_members_sort(struct sl_merger_members *members)
{
        const struct sl_merger_members before = *members;
        const struct sl_plan_info *infos[SL_CARRIER_LANES_MAX] = {NULL};
        uint32_t order[SL_CARRIER_LANES_MAX];

        for (uint32_t i = 0; i < before.n; i++)
                infos[i] = before.models[i]->info;
        sl_fuse_order(infos, before.n, order);
        for (uint32_t i = 0; i < before.n; i++) {
                members->models[i] = before.models[order[i]];
                members->specs[i] = before.specs[order[i]];
        }
}

void sl_merger_members_hold(struct sl_merger_members *members)
{
        snprintf(members->name, sizeof(members->name), "%s", members->models[0]->name);
        for (uint32_t i = 0; i < members->n; i++) {
                members->plans[i] = sl_plan_hold(members->models[i]->plan);
                members->specs[i] = sl_own_spec_hold(members->specs[i]);
        }
}

void sl_merger_members_release(struct sl_merger_members *members)
{
        for (uint32_t i = 0; i < members->n; i++) {
                sl_plan_free(members->plans[i]);
                sl_own_spec_free(members->specs[i]);
        }
        members->n = 0;
}

void sl_merger_members_leave_out(struct sl_merger_members *members, uint32_t index)
{
        sl_plan_free(members->plans[index]);
        sl_own_spec_free(members->specs[index]);
        members->n--;
        for (uint32_t i = index; i < members->n; i++) {
                members->models[i] = members->models[i + 1];
                members->specs[i] = members->specs[i + 1];
                members->plans[i] = members->plans[i + 1];
        }
}

/* SL_CARRIER_LANES_MAX: it has none. */
static uint32_t lane_of(const struct sl_model *model, const struct sl_carrier *carrier)
{
        if (model->inliner && model->inliner->carrier == carrier)
                return model->inliner->lane;
        for (uint32_t i = 0; i < model->crew->n; i++)
                if (model->crew->workers[i].executor->carrier == carrier)
                        return model->crew->workers[i].executor->lane;
        return SL_CARRIER_LANES_MAX;
}

static uint32_t seat_members(struct sl_block_order *order, const struct sl_merger_members *members, const struct sl_fused *fused)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < fused->n_lanes; i++) {
                order->members[i] = sl_plan_info(members->plans[fused->first + i]);
                order->lanes[i] = lane_of(members->models[fused->first + i], order->carrier);
                n += order->lanes[i] < SL_CARRIER_LANES_MAX;
        }
        order->n_members = fused->n_lanes;
        return n;
}

/* Where the dispatcher computes it: sizes whose run a pass has time for. Return: the largest size that pays; 0: none does. */
static uint32_t find_sizes(struct sl_block_order *order, const struct sl_fused *fused, bool is_inline)
{
        double limit_s = is_inline ? SL_INLINE_PASS_NS * 1e-9 : 1e9;
        uint32_t fewest = is_inline ? sl_fuse_fewest_inline(fused->n_lanes) : 0;
        const struct sl_plan_info *info = sl_plan_info(fused->plan);
        uint32_t largest = 0;

        for (uint32_t i = 0; i < info->n_batches; i++) {
                uint32_t least = sl_fuse_least_lanes(&fused->table, info->batches[i]);
                double seconds = sl_fuse_merged_seconds(&fused->table, fused->n_lanes, info->batches[i]);

                if (least == SL_FUSE_NEVER || seconds > limit_s)
                        continue;
                order->sizes[i] = (struct sl_block_size){.least = least > fewest ? least : fewest, .ns = (uint64_t)(1e9 * seconds)};
                largest = info->batches[i];
        }
        return largest;
}

/* Return: whether it is worth making. */
static bool fill_order(struct sl_block_order *order, const struct sl_bundle *bundle, struct sl_carrier *carrier,
        const struct sl_merger_members *members, const struct sl_fused *fused)
{
        bool is_inline = sl_bundle_is_inliner(bundle, carrier);

        *order = (struct sl_block_order){.carrier = carrier, .plan = fused->plan};
        if (seat_members(order, members, fused) < 2)
                return false;
        order->batch_max = find_sizes(order, fused, is_inline);
        if (!order->batch_max)
                return false;
        if (!is_inline) {
                const struct sl_block_options options = sl_block_order_options(order);

                order->room = sl_thread_carrier_room(carrier, sl_block_room_bytes(&options));
        }
        return true;
}

int sl_merger_orders_new(const struct sl_bundle *bundle, const struct sl_merger_members *members,
        const struct sl_fuse_result *result, struct sl_block_order **ret_orders, uint32_t *ret_n)
{
        struct sl_block_order *orders;
        struct sl_carrier *carrier;
        uint32_t n_carriers = 0, n = 0;

        while (sl_bundle_carrier(bundle, n_carriers))
                n_carriers++;
        orders = malloc((n_carriers * result->n_blocks + 1) * sizeof(*orders));
        if (!orders)
                return -ENOMEM;
        for (uint32_t i = 0; (carrier = sl_bundle_carrier(bundle, i)); i++)
                for (uint32_t k = 0; k < result->n_blocks; k++)
                        n += fill_order(&orders[n], bundle, carrier, members, &result->blocks[k]);
        if (n == 0)
                free(orders);
        *ret_orders = orders;
        *ret_n = n;
        return 0;
}

uint64_t sl_merger_order_bytes(const struct sl_block_order *order)
{
        const struct sl_block_options options = sl_block_order_options(order);
        uint64_t bytes = sl_block_bytes(&options);

        return order->room && bytes != UINT64_MAX ? bytes - sl_block_room_bytes(&options) : bytes;
}
