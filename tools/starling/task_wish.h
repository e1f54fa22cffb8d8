/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a query would get of a task just now, and why each variant is chosen or not: the rule that clients choose by, over the
 * figures of one moment. One thread.
 */
#pragma once

#include "needs_text.h"
#include "starling.h"

#define TASK_WISH_WHY_BYTES 256u

struct task_wish {
        struct sl_needs needs;
        uint32_t samples; /* of the request */
};

struct task_reason {
        bool is_chosen;
        char why[TASK_WISH_WHY_BYTES];
};

/* Of queries that ask for an accuracy alone: those that ask for more than `above` and at most `up_to` choose it. */
struct task_reach {
        bool is_chosen, by_default; /* by some of those; by queries that ask for nothing */
        double above, up_to;
};

/* @ret_reasons: [n]. */
void task_wish_explain(
        const struct task_wish *wish, const struct starling_variant *variants, uint32_t n, struct task_reason *ret_reasons);

/* @ret_reaches: [n]. @ret_reasons: [n]; of each, what becomes of it for an accuracy of its own. */
void task_wish_reach(
        const struct starling_variant *variants, uint32_t n, struct task_reach *ret_reaches, struct task_reason *ret_reasons);
