/* SPDX-License-Identifier: Apache-2.0 */
#include "decisions.h"

#include "executor.h"
#include "let.h"
#include "request.h"

static void write_worker(const struct sl_executor *worker, struct sl_logged_worker *ret_logged)
{
        *ret_logged = (struct sl_logged_worker){.let = worker->let,
                .batch_max = worker->batch_max,
                .at_once = worker->let->turns.at_once,
                .for_one = worker->let->turns.for_one};
}

void sl_decisions_write_model(struct sl_decision_log *log, const struct sl_model *model)
{
        struct sl_logged_model *logged = sl_decision_log_model(log);

        if (!logged)
                return;
        *logged = (struct sl_logged_model){.is = model,
                .batching = model->batching,
                .service_time = model->service_time,
                .slice_ns = model->slice_ns,
                .slice_samples = model->slice_samples,
                .whole = !model->info->batchable,
                .n_workers = model->workers.n};
        for (uint32_t i = 0; i < model->workers.n; i++)
                write_worker(model->workers.list[i], &logged->workers[i]);
}

void sl_decisions_write_ensemble(struct sl_decision_log *log, const struct sl_ensemble *ensemble)
{
        struct sl_logged_ensemble *logged = sl_decision_log_ensemble(log);

        if (!logged)
                return;
        *logged = (struct sl_logged_ensemble){
                .is = ensemble, .segment_samples = ensemble->segment_samples, .n_members = ensemble->assembly.n_members};
        for (uint32_t i = 0; i < logged->n_members; i++)
                logged->members[i] = sl_decision_log_find_model(log, ensemble->members[i]);
}

/* A simulated server has no background. */
void sl_decisions_write_arrival(struct sl_decision_log *log, const struct sl_request *request)
{
        log->has_changed |= request->priority == SL_BACKGROUND;
        sl_decision_log_enter(log, &(struct sl_logged){.kind = SL_LOGGED_ARRIVAL,
                                           .request = &request->turn,
                                           .of = sl_decision_log_find_ensemble(log, request->ensemble),
                                           .worker = request->turn.client,
                                           .samples = request->samples,
                                           .priority = request->priority,
                                           .at_ns = request->taken_ns,
                                           .ns = request->work.deadline_ns});
}

void sl_decisions_write_given_up(struct sl_decision_log *log, const struct sl_request *request, int32_t status)
{
        sl_decision_log_enter(log, &(struct sl_logged){.kind = SL_LOGGED_GIVEN_UP, .status = status, .request = &request->turn});
}

static uint32_t number_of(const struct sl_workers *workers, const struct sl_executor *worker)
{
        for (uint32_t i = 0; i < workers->n; i++)
                if (workers->list[i] == worker)
                        return i;
        return SL_LOGGED_NONE;
}

/* What a process has lost goes to others, which is not written down. */
void sl_decisions_write_answer(struct sl_decision_log *log, const struct sl_model *model, const struct sl_executor *worker,
        const struct sl_prediction *prediction)
{
        uint32_t number = number_of(&model->workers, worker);

        if (number == SL_LOGGED_NONE || prediction->lost)
                log->has_changed = true;
        sl_decision_log_enter(log, &(struct sl_logged){.kind = SL_LOGGED_ANSWER,
                                           .status = prediction->status,
                                           .is_doubted = model->service_time.is_doubted,
                                           .of = sl_decision_log_find_model(log, model),
                                           .worker = number,
                                           .samples = prediction->job_samples,
                                           .extra = prediction->piece,
                                           .ns = prediction->busy_ns});
}
