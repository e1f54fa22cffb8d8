/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Team sizes of a command line: "1,2,4", "1..8", "1,2,8..16". Plain values; any thread.
 */
#pragma once

#include "team.h"

#include <stdint.h>

struct sl_error;

struct thread_list {
        uint32_t items[SL_TEAM_MEMBERS_MAX]; /* each once, ascending */
        uint32_t n;
};

/* One more, unless it is there. */
void thread_list_add(struct thread_list *list, uint32_t size);

/* Return: 0, with one or more; -EINVAL with the text. */
int thread_list_parse(struct thread_list *list, const char *text, struct sl_error *error);
