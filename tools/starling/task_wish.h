/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a query would get of a task just now, and why each variant is chosen or not: the rule that clients choose by, over the
 * figures of one moment. One thread.
 */
#pragma once

#include "choice.h"
#include "starling.h"

struct sl_error;

#define TASK_WISH_WHY_BYTES  256u
#define TASK_WISH_LIST_BYTES 512u

struct task_wish {
        struct sl_needs needs;
        uint32_t samples; /* of the request */
};

/* "accuracy=0.98,least=0.9,latency_ms=5,cost=3,samples=4,closest", each of them once. Return: 0; -EINVAL with text. */
int task_wish_parse(const char *text, struct task_wish *ret_wish, struct sl_error *error);

struct task_reason {
        bool is_chosen;
        char why[TASK_WISH_WHY_BYTES];
};

/* @ret_reasons: [n]. */
void task_wish_explain(
        const struct task_wish *wish, const struct starling_variant *variants, uint32_t n, struct task_reason *ret_reasons);
