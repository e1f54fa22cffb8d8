/* SPDX-License-Identifier: Apache-2.0 */
#include "block_maker.h"

#include "base/background.h"
#include "base/error.h"
#include "base/thread.h"
#include "bell.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

struct sl_block_maker {
        struct sl_block_order *orders;
        uint32_t n;
        struct sl_bell *bell;
        struct sl_error why;
        pthread_t thread;
        bool running;

        /*
         *   (M1) its thread: orders filled, then store-release `over`.
         *   (M2) control:    load-acquire `over`, then read them.       pairs with M1
         */
        _Atomic bool over;
        _Atomic bool quits; /* control asks it to end, relaxed: nothing is read behind it */
};

struct sl_block_options sl_block_order_options(const struct sl_block_order *order)
{
        return (struct sl_block_options){
                .plan = order->plan,
                .members = order->members,
                .n_members = order->n_members,
                .batch_max = order->batch_max,
                .sizes = order->sizes,
        };
}

static void make_block(struct sl_block_maker *maker, struct sl_block_order *order)
{
        const struct sl_block_options options = sl_block_order_options(order);
        struct sl_error error = {""};
        struct sl_block *block;

        if (sl_block_new(&options, &block, &error) < 0) {
                if (!maker->why.text[0])
                        maker->why = error;
                return;
        }
        for (uint32_t i = 0; i < order->n_members; i++)
                if (order->lanes[i] < SL_CARRIER_LANES_MAX)
                        sl_block_seat(block, i, order->lanes[i]);
        if (order->room)
                sl_block_move(block, order->room);
        order->made = block;
}

static void *block_maker_main(void *argument)
{
        struct sl_block_maker *maker = argument;

        sl_background_thread(true);
        for (uint32_t i = 0; i < maker->n && !atomic_load_explicit(&maker->quits, memory_order_relaxed); i++)
                make_block(maker, &maker->orders[i]);
        atomic_store_explicit(&maker->over, true, memory_order_release);
        sl_bell_ring(maker->bell, NULL);
        return NULL;
}

int sl_block_maker_new(struct sl_block_order *orders, uint32_t n, struct sl_bell *bell, struct sl_block_maker **ret_maker)
{
        struct sl_block_maker *maker = calloc(1, sizeof(*maker));
        int r;

        if (!maker) {
                free(orders);
                return -ENOMEM;
        }
        maker->orders = orders;
        maker->n = n;
        maker->bell = bell;
        r = sl_thread_start_aside(NULL, "sl-merge", block_maker_main, maker, &maker->thread);
        maker->running = r == 0;
        if (r < 0) {
                sl_block_maker_free(maker);
                return r;
        }
        *ret_maker = maker;
        return 0;
}

struct sl_block_maker *sl_block_maker_free(struct sl_block_maker *maker)
{
        if (!maker)
                return NULL;
        atomic_store_explicit(&maker->quits, true, memory_order_relaxed);
        if (maker->running)
                pthread_join(maker->thread, NULL);
        for (uint32_t i = 0; i < maker->n; i++)
                sl_block_free(maker->orders[i].made);
        free(maker->orders);
        free(maker);
        return NULL;
}

bool sl_block_maker_is_over(const struct sl_block_maker *maker)
{
        return atomic_load_explicit(&maker->over, memory_order_acquire);
}

struct sl_block_order *sl_block_maker_orders(struct sl_block_maker *maker, uint32_t *ret_n, const char **ret_why)
{
        *ret_n = maker->n;
        *ret_why = maker->why.text;
        return maker->orders;
}
