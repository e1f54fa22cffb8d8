/* SPDX-License-Identifier: Apache-2.0 */
#include "inline_carrier.h"

#include "base/clock.h"
#include "block.h"
#include "inline_executor.h"
#include "own_time.h"

#include <errno.h>
#include <stdlib.h>

static void launch(struct sl_carrier *carrier, const struct sl_carrier_launch *launch, struct sl_wait *from)
{
        struct sl_job_run runs[SL_CARRIER_LANES_MAX];
        uint64_t now_ns = sl_clock_ns(), lanes = launch->lanes;
        struct sl_own_time own;

        (void)from;
        for (uint64_t left = lanes; left; left &= left - 1)
                sl_inline_executor_begin(carrier->lanes[__builtin_ctzll(left)], &own, &runs[__builtin_ctzll(left)]);
        sl_own_time_begin(&own, sl_inline_executor_bound_ns(carrier->lanes[__builtin_ctzll(lanes)]), now_ns);
        if (launch->blocks && lanes & (lanes - 1))
                lanes &= ~sl_blocks_run(launch->blocks, lanes, runs, &now_ns);
        for (; lanes; lanes &= lanes - 1) {
                struct sl_job_run *run = &runs[__builtin_ctzll(lanes)];

                if (sl_job_run_begin(run, now_ns))
                        now_ns = sl_job_run_alone(run, now_ns);
        }
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
