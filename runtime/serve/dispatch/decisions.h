/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher writes into a log of decisions (decide/decision_log.h) when it is made with one; for tests, which replay it.
 * Without one each of these is a look at a pointer. Dispatcher only.
 */
#pragma once

#include "dispatcher_state.h"

#include "decision_log.h"

struct sl_executor;
struct sl_prediction;
struct sl_request;

void sl_decisions_write_model(struct sl_decision_log *log, const struct sl_model *model);
void sl_decisions_write_ensemble(struct sl_decision_log *log, const struct sl_ensemble *ensemble);
void sl_decisions_write_arrival(struct sl_decision_log *log, const struct sl_request *request);
void sl_decisions_write_given_up(struct sl_decision_log *log, const struct sl_request *request, int32_t status);
void sl_decisions_write_answer(struct sl_decision_log *log, const struct sl_model *model, const struct sl_executor *worker,
        const struct sl_prediction *prediction);

static inline void sl_decisions_model(const struct sl_dispatcher *d, const struct sl_model *model)
{
        if (d->options.decisions)
                sl_decisions_write_model(d->options.decisions, model);
}

static inline void sl_decisions_ensemble(const struct sl_dispatcher *d, const struct sl_ensemble *ensemble)
{
        if (d->options.decisions)
                sl_decisions_write_ensemble(d->options.decisions, ensemble);
}

/* Workers come and go: what follows cannot be replayed. */
static inline void sl_decisions_end(const struct sl_dispatcher *d)
{
        if (d->options.decisions)
                d->options.decisions->has_changed = true;
}

static inline void sl_decisions_arrival(const struct sl_dispatcher *d, const struct sl_request *request)
{
        if (d->options.decisions)
                sl_decisions_write_arrival(d->options.decisions, request);
}

static inline void sl_decisions_given_up(const struct sl_dispatcher *d, const struct sl_request *request, int32_t status)
{
        if (d->options.decisions)
                sl_decisions_write_given_up(d->options.decisions, request, status);
}

static inline void sl_decisions_answer(const struct sl_dispatcher *d, const struct sl_model *model,
        const struct sl_executor *worker, const struct sl_prediction *prediction)
{
        if (d->options.decisions)
                sl_decisions_write_answer(d->options.decisions, model, worker, prediction);
}
