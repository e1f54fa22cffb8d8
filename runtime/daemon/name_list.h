/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of models that a configuration gives, of any length. One block, which configurations that are copied share: it lives as
 * long as one of them holds it. It never changes. Threads: one at a time.
 */
#pragma once

#include <stdint.h>

struct sl_name_list {
        uint32_t holders;
        uint32_t n;
        const char *names[]; /* of its own */
};

/* Held once. Return: 0, -ENOMEM. */
int sl_name_list_new(const char *const *names, uint32_t n, struct sl_name_list **ret_list);

/* NULL is fine. hold returns @list, release NULL. */
struct sl_name_list *sl_name_list_hold(struct sl_name_list *list);
struct sl_name_list *sl_name_list_release(struct sl_name_list *list);
