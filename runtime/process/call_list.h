/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of a process: what every process makes that compiles or computes, what its build needs beside that
 * (sandbox_additions.h), and rows of its own. A value; pure.
 */
#pragma once

#include "call_filter.h"

#include <stdbool.h>

#define SL_CALL_LIST_MAX 96

struct sl_call_list {
        size_t n;
        struct sl_call_rule rules[SL_CALL_LIST_MAX];
};

/* Memory, plan files that are open, what libraries ask about the machine, the end of the calling process. */
void sl_call_list_init(struct sl_call_list *list);

/* Before: there is room for @n more. */
void sl_call_list_add(struct sl_call_list *list, const struct sl_call_rule *rules, size_t n);

/* Is there a row for it, with whatever arguments? */
bool sl_call_list_has(const struct sl_call_list *list, int call);
