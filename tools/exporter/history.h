/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last ten minutes of one runtime, for the exporter's page: a point for each step of five seconds, with the rates, percentiles,
 * queues and busy shares of that step (interval.h), and percentiles of about all ten minutes together.
 *
 * What it takes is bounded: so many models, workers and lets, whoever comes first; others are counted as left out. A series that
 * had no value for ten minutes makes room. One thread.
 */
#pragma once

#include "snapshot.h"
#include "text.h"

#define HISTORY_STEP_SECONDS 5u
#define HISTORY_POINTS       120u
#define HISTORY_MODELS_MAX   256u /* of all runtimes together */
#define HISTORY_WORKERS_MAX  256u /* of each */
#define HISTORY_LETS_MAX     64u

struct history;

/* @models_max: of this runtime. NULL: no memory. */
struct history *history_new(uint32_t models_max);
struct history *history_free(struct history *history);

/*
 * The next point. @view: of the runtime, which lives; NULL: it does not, and the point is empty. Where memory is short a point
 * lacks something.
 */
void history_step(struct history *history, const struct sl_stats_view *view);

/* As a JSON object, from the oldest point to the latest; null where a series has no value. */
void history_write(const struct history *history, const char *name, struct text *out);
