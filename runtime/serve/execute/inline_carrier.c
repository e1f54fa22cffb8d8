/* SPDX-License-Identifier: Apache-2.0 */
#include "inline_carrier.h"

#include "base/clock.h"
#include "inline_executor.h"

#include <errno.h>
#include <stdlib.h>

static void launch(struct sl_carrier *carrier, const struct sl_carrier_launch *launch, struct sl_wait *from)
{
        uint64_t now_ns = sl_clock_ns();

        (void)from;
        for (uint64_t left = launch->lanes; left; left &= left - 1)
                now_ns = sl_inline_executor_run(carrier->lanes[__builtin_ctzll(left)], now_ns);
}

static void stop(struct sl_carrier *carrier)
{
        free(carrier);
}

static const struct sl_carrier_class class = {.name = "inline", .launch = launch, .stop = stop};

int sl_inline_carrier_new(struct sl_carrier **ret_carrier)
{
        struct sl_carrier *carrier = calloc(1, sizeof(*carrier));

        if (!carrier)
                return -ENOMEM;
        carrier->class = &class;
        *ret_carrier = carrier;
        return 0;
}
