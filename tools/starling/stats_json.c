/* SPDX-License-Identifier: Apache-2.0 */
#include "interval.h"
#include "json_value.h"
#include "snapshot_json.h"
#include "stats_print.h"

#include <stdio.h>
#include <time.h>

/* ---- everything once ------------------------------------------------------------------------------------------------- */

void stats_print_json(const struct snapshot *s)
{
        json_t *object = snapshot_json(s);

        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
}

/* ---- an interval a line ---------------------------------------------------------------------------------------------- */

static json_t *rates_json(const struct model_interval *model)
{
        const struct model_rates *rates = &model->per_second;
        const struct stage_times *total = &model->stages[SL_STAGE_TOTAL];
        json_t *object = json_object();

        json_set(object, "requests_per_second", json_real(rates->requests));
        json_set(object, "samples_per_second", json_real(rates->samples));
        json_set(object, "completed_per_second", json_real(rates->completed));
        json_set(object, "failed_per_second", json_real(rates->failed));
        json_set(object, "expired_per_second", json_real(rates->expired));
        json_set(object, "cancelled_per_second", json_real(rates->cancelled));
        json_set(object, "refused_per_second", json_real(rates->refused));
        json_set(object, "batch_samples", json_real(model->batch_samples));
        json_set(object, "busy_workers", json_real(model->busy));
        json_set(object, "in_flight", json_number(model->in_flight));
        json_set(object, "waiting_requests", json_number(model->waiting.requests));
        json_set(object, "waiting_segments", json_number(model->waiting.segments));
        json_set(object, "waiting_samples", json_number(model->waiting.samples));
        json_set(object, "oldest_age_ns", json_number(model->waiting.oldest_age_ns));
        json_set(object, "p50_ns", json_number(total->p50_ns));
        json_set(object, "p99_ns", json_number(total->p99_ns));
        json_set(object, "p999_ns", json_number(total->p999_ns));
        json_set(object, "max_ns", json_number(total->max_ns));
        return object;
}

static json_t *named_rates_json(const struct model_interval *model)
{
        json_t *object = rates_json(model);

        json_set(object, "name", json_text(model->now->slot.name));
        json_set(object, "state", json_string(sl_stats_model_state_name(model->now->slot.state)));
        return object;
}

static uint64_t unix_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void stats_print_line_json(const struct interval *interval, const struct model_interval *shown)
{
        const struct snapshot *now = interval->now;
        json_t *object = rates_json(shown);

        json_set(object, "unix_ns", json_number(unix_ns()));
        json_set(object, "seconds", json_real(interval->seconds));
        json_set(object, "runtime", json_text(now->header.runtime_name));
        json_set(object, "pid", json_number(now->header.pid));
        json_set(object, "state", json_string(snapshot_state(now)));
        json_set(object, "live", json_boolean(now->live));
        json_set(object, "clients", json_number(now->n_clients));
        if (shown == &interval->all)
                json_set(object, "models", JSON_ARRAY(interval->models, now->n_models, named_rates_json));
        else
                json_set(object, "model", json_text(shown->now->slot.name));
        json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(object);
}
