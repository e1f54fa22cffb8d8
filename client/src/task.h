/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks the runtime has: starling_task_list() and starling_task_variants(). Any thread. */
#pragma once

#include <stdbool.h>

struct starling_client;

/* Is there a task of this name? */
bool sl_task_is_there(const struct starling_client *client, const char *name);
