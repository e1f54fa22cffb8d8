/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wanted of a model, what serves, what it waits for, and why the last try failed; from the stats page. Functions without
 * state.
 */
#pragma once

#include "snapshot.h"

#include <jansson.h>

void why_print_text(const struct snapshot *snapshot, const struct sl_model_stats *model);
json_t *why_json(const struct snapshot *snapshot, const struct sl_model_stats *model);
