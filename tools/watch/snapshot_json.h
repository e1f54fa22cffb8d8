/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as JSON: what `starling stats --json` prints, and what the exporter answers. Pure.
 */
#pragma once

#include "snapshot.h"

#include <jansson.h>

/* The caller's; NULL, or with parts missing: no memory. */
json_t *snapshot_json(const struct snapshot *snapshot);

/* What is wanted of a model, and what that waits for. A new reference. */
json_t *snapshot_want_json(const struct snapshot *snapshot, const struct sl_model_stats *model);
