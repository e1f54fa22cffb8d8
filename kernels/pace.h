/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a computation that may take long is ended from outside, and how much it may take: kernels count their elementary steps (op.h)
 * as they go, and after so many of them look whether they shall go on. One thread, that which computes; a pace belongs to a run.
 *
 *      for (int64_t i = 0; i < n && sl_pace_on(binding->pace, steps_of_a_round); i++)
 *              ...
 *
 * A pace that has once said no says nothing else, so that loops around loops come to their ends; who launched the kernel asks for
 * the status. What the kernel has written by then is no result.
 */
#pragma once

#include "draw.h"
#include "stop.h"

#include <stdbool.h>

/* Steps between two looks: on `ref` a fraction of a millisecond. */
#define SL_PACE_GRAIN (1ull << 16)

struct sl_pace {
        struct sl_stop stop;
        uint64_t grain;        /* steps between two looks */
        uint64_t left;         /* until the next */
        uint64_t budget;       /* steps that may be taken behind them */
        int status;            /* 0; what sl_stop_look() said; -E2BIG: the budget is spent */
        struct sl_draws draws; /* what else kernels are told of the run */
};

/* Before a run: @stop is copied; it may take @budget steps. */
void sl_pace_start(struct sl_pace *pace, const struct sl_stop *stop, uint64_t budget);

/* The rare part of sl_pace_on(). */
bool sl_pace_look(struct sl_pace *pace, uint64_t steps);

/* Takes @steps, which are about to be done at once. False: do not. NULL is fine: nobody ends it. */
static inline bool sl_pace_on(struct sl_pace *pace, uint64_t steps)
{
        if (!pace)
                return true;
        if (pace->left <= steps)
                return sl_pace_look(pace, steps);
        pace->left -= steps;
        return true;
}

static inline int sl_pace_status(const struct sl_pace *pace)
{
        return pace ? pace->status : 0;
}
