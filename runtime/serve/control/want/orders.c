/* SPDX-License-Identifier: Apache-2.0 */
#include "orders.h"

#include "base/assert.h"
#include "draft.h"

#include <errno.h>
#include <stdlib.h>

struct sl_orders {
        struct sl_scanner *scanner;
        struct sl_scan_found found; /* by the last scan that has ended */
        uint64_t begun, ended;      /* scans: begun is ended, or one more */
        uint32_t first, n;
        struct sl_order ring[SL_ORDERS_MAX];
};

const char *sl_order_name(enum sl_order_kind kind)
{
        static const char *const names[] = {
#define X(id, name) [SL_ORDER_##id] = name,
                SL_ORDER_KINDS(X)
#undef X
        };

        return names[kind];
}

int sl_orders_new(const struct sl_runtime_options *runtime, struct sl_bell *owner, struct sl_orders **ret_orders)
{
        struct sl_orders *orders = calloc(1, sizeof(*orders));
        int r = orders ? sl_scanner_new(runtime, owner, &orders->scanner) : -ENOMEM;

        if (r < 0)
                free(orders);
        else
                *ret_orders = orders;
        return r;
}

static struct sl_order *order_at(struct sl_orders *orders, uint32_t i)
{
        return &orders->ring[(orders->first + i) % SL_ORDERS_MAX];
}

struct sl_orders *sl_orders_free(struct sl_orders *orders)
{
        if (!orders)
                return NULL;
        sl_scanner_free(orders->scanner);
        for (uint32_t i = 0; i < orders->n; i++)
                sl_draft_free(order_at(orders, i)->draft);
        free(orders);
        return NULL;
}

static bool follows_repository(const struct sl_order *order)
{
        return order->kind != SL_ORDER_UNLOAD && order->kind != SL_ORDER_APPLY;
}

static bool is_there(struct sl_orders *orders, const struct sl_order *order)
{
        for (uint32_t i = 0; order->kind == SL_ORDER_SYNC && i < orders->n; i++)
                if (order_at(orders, i)->kind == SL_ORDER_SYNC && order_at(orders, i)->scan == order->scan)
                        return true;
        return false;
}

/* While orders are left that have waited for the last scan they want what that has found. */
static void begin_scan(struct sl_orders *orders)
{
        if (orders->begun != orders->ended || !orders->n || sl_orders_are_ready(orders))
                return;
        orders->begun++;
        SL_ASSERT(order_at(orders, 0)->scan == orders->begun);
        sl_scanner_begin(orders->scanner);
}

int sl_orders_add(struct sl_orders *orders, const struct sl_order *order, struct sl_error *error)
{
        struct sl_order added = *order;

        added.scan = follows_repository(order) ? orders->begun + 1 : 0;
        if (is_there(orders, &added))
                return 0;
        if (orders->n == SL_ORDERS_MAX)
                return sl_error_set(error, EBUSY, "%u orders wait already, which is the limit", SL_ORDERS_MAX);
        *order_at(orders, orders->n++) = added;
        begin_scan(orders);
        return 0;
}

bool sl_orders_hear(struct sl_orders *orders)
{
        if (orders->begun == orders->ended || !sl_scanner_take(orders->scanner, &orders->found))
                return false;
        orders->ended = orders->begun;
        return true;
}

const struct sl_scan_found *sl_orders_found(const struct sl_orders *orders)
{
        return &orders->found;
}

bool sl_orders_take(struct sl_orders *orders, struct sl_order *ret_order)
{
        if (!sl_orders_are_ready(orders)) {
                begin_scan(orders);
                return false;
        }
        *ret_order = *order_at(orders, 0);
        orders->first = (orders->first + 1) % SL_ORDERS_MAX;
        orders->n--;
        return true;
}

bool sl_orders_wait(const struct sl_orders *orders)
{
        return orders->n;
}

bool sl_orders_are_ready(const struct sl_orders *orders)
{
        return orders->n && orders->ring[orders->first].scan <= orders->ended;
}
