/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks, as `starling tasks` and the list of models show them. One thread. */
#pragma once

#include "starling.h"

#include <stdint.h>

/* "serves"; "": nothing is known of the condition. */
const char *task_variant_state_name(enum starling_variant_state state);
const char *task_condition_name(uint32_t condition);

/* A line for each, behind the models. */
void tasks_print_lines(const struct starling_client *client);
