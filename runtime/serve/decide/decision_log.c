/* SPDX-License-Identifier: Apache-2.0 */
#include "decision_log.h"

#include <stddef.h>

struct sl_logged_model *sl_decision_log_model(struct sl_decision_log *log)
{
        if (log->n_models < SL_LOGGED_MODELS_MAX)
                return &log->models[log->n_models++];
        log->has_changed = true;
        return NULL;
}

struct sl_logged_ensemble *sl_decision_log_ensemble(struct sl_decision_log *log)
{
        if (log->n_ensembles < SL_LOGGED_ENSEMBLES_MAX)
                return &log->ensembles[log->n_ensembles++];
        log->has_changed = true;
        return NULL;
}

uint32_t sl_decision_log_find_model(const struct sl_decision_log *log, const void *is)
{
        for (uint32_t i = 0; i < log->n_models; i++)
                if (log->models[i].is == is)
                        return i;
        return SL_LOGGED_NONE;
}

uint32_t sl_decision_log_find_ensemble(const struct sl_decision_log *log, const void *is)
{
        for (uint32_t i = 0; i < log->n_ensembles; i++)
                if (log->ensembles[i].is == is)
                        return i;
        return SL_LOGGED_NONE;
}

static void append(struct sl_decision_log *log, const struct sl_logged *entry)
{
        if (log->has_changed)
                return;
        if (log->n < log->room)
                log->entries[log->n++] = *entry;
        else
                log->lost++;
}

void sl_decision_log_enter(struct sl_decision_log *log, const struct sl_logged *entry)
{
        log->has_entered = true;
        append(log, entry);
}

static void write_pass(struct sl_decision_log *log)
{
        append(log, &(struct sl_logged){.kind = SL_LOGGED_PASS, .at_ns = log->now_ns});
        log->passed = true;
        log->has_entered = false;
}

void sl_decision_log_pass(struct sl_decision_log *log, uint64_t now_ns)
{
        log->now_ns = now_ns;
        log->passed = false;
        if (log->has_entered)
                write_pass(log);
}

void sl_decision_log_decide(struct sl_decision_log *log, const struct sl_logged *entry)
{
        if (!log->passed)
                write_pass(log);
        append(log, entry);
}
