/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of workers (planner/scale/condition.h) of models that are variants of a task, from the end of each of their jobs: in
 * the worker's slot of the stats page, and for a variant in its line of the page of tasks. Of other models nothing is learned. What
 * is common to all workers is looked at every DRIFT_NS. Control hears when a worker is interfered with (SL_EVENT_SLOWED),
 * and when one becomes overloaded (SL_EVENT_OVERLOADED).
 * Dispatcher only; relaxed stores, as nothing is read behind them.
 */
#pragma once

#include "condition.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_dispatcher;
struct sl_ensemble;
struct sl_executor;
struct sl_model;
struct sl_prediction;

/* A job of the worker has ended well, all of it, as @prediction says. */
void sl_conditions_learn(struct sl_dispatcher *dispatcher, struct sl_model *model, struct sl_executor *worker,
        const struct sl_prediction *prediction);

/* Workers without a job rest. @sleeps: nothing is looked at until something comes. */
void sl_conditions_look(struct sl_dispatcher *dispatcher, bool sleeps);

/* Of a name: the busiest member's, of what computes it. */
enum sl_condition sl_conditions_of(const struct sl_ensemble *ensemble);
