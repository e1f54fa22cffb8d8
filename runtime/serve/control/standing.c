/* SPDX-License-Identifier: Apache-2.0 */
#include "standing.h"

#include "base/clock.h"
#include "base/error.h"
#include "crew.h"
#include "ensemble.h"
#include "model.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"
#include "stats.h"

#include <stdio.h>
#include <string.h>

void sl_standing_count(struct sl_registry *r, struct sl_served *served, struct sl_model_counting *ret_counting)
{
        struct sl_error error;

        if (sl_stats_model_add(r->options.stats, served->own.name, ret_counting, &error) < 0)
                sl_names_report(r, 1, "model-without-histograms", served, error.text);
}

static enum sl_stats_model_kind kind_of(const struct sl_served *served)
{
        if (!served->own.spec.path && served->own.spec.n_members)
                return SL_STATS_MODEL_ENSEMBLE;
        if (served->is_shape)
                return SL_STATS_MODEL_SIZES;
        return served->ensemble && served->ensemble->open ? SL_STATS_MODEL_OPEN : SL_STATS_MODEL_PLAIN;
}

/* What its members lack: a degraded one. Sums of their workers go into @shown. */
static const struct sl_crew *count_workers(const struct sl_ensemble *ensemble, struct sl_model_stats *shown)
{
        const struct sl_crew *short_one = NULL;

        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++) {
                const struct sl_crew *crew = ensemble->members[m]->crew;

                if (!crew)
                        continue;
                shown->workers_wanted += crew->wanted.n;
                shown->workers_serving += sl_crew_serving(crew);
                if (!short_one && sl_crew_is_short(crew))
                        short_one = crew;
        }
        return short_one;
}

static void show_ready(const struct sl_served *served, struct sl_model_stats *shown)
{
        const struct sl_ensemble *ensemble = served->ensemble;
        const struct sl_crew *crew = count_workers(ensemble, shown);

        shown->state = crew ? SL_STATS_MODEL_DEGRADED : SL_STATS_MODEL_READY;
        shown->n_members = served->own.spec.path ? 0 : ensemble->assembly.n_members;
        shown->segment_samples = ensemble->segment_samples;
        shown->samples_max = ensemble->samples_max;
        shown->queue_requests = ensemble->queue_requests;
        if (crew)
                snprintf(shown->why, sizeof(shown->why), "%.40s: %u of %u workers serve; %.60s", crew->options.model->name,
                        sl_crew_serving(crew), crew->wanted.n, crew->why);
        else
                snprintf(shown->why, sizeof(shown->why), "%.*s", (int)sizeof(shown->why) - 1, served->why);
}

static enum sl_stats_model_state state_of(const struct sl_served *served)
{
        switch (served->state) {
        case SL_SERVED_NONE:
        case SL_SERVED_WAITING:
                return SL_STATS_MODEL_WAITING;
        case SL_SERVED_LOADING:
                return SL_STATS_MODEL_LOADING;
        case SL_SERVED_READY:
                return SL_STATS_MODEL_READY;
        case SL_SERVED_FAILED:
                return SL_STATS_MODEL_FAILED;
        case SL_SERVED_DRAINING:
                return SL_STATS_MODEL_DRAINING;
        }
        return SL_STATS_MODEL_WAITING;
}

static void describe(const struct sl_served *served, struct sl_model_stats *shown)
{
        shown->state = state_of(served);
        shown->kind = kind_of(served);
        shown->version = served->ensemble ? served->ensemble->version : served->own.spec.version;
        shown->loads = served->loads;
        shown->load_failures = served->load_failures;
        shown->load_ns = served->took_ns;
        if (served->state == SL_SERVED_READY)
                show_ready(served, shown);
        else if (served->state == SL_SERVED_FAILED)
                snprintf(shown->why, sizeof(shown->why), "%.*s", (int)sizeof(shown->why) - 1, served->why);
}

void sl_standing_show(struct sl_registry *r, struct sl_served *served)
{
        struct sl_model_stats shown = {.since_ns = served->shown.since_ns};
        bool is_new = !served->counting.counters;

        if (served->state == SL_SERVED_NONE || (served->state == SL_SERVED_READY && sl_news_is_due(served)))
                return;
        if (is_new)
                sl_standing_count(r, served, &served->counting);
        describe(served, &shown);
        if (is_new || shown.state != served->shown.state)
                shown.since_ns = sl_clock_ns();
        if (memcmp(&shown, &served->shown, sizeof(shown)) == 0)
                return;
        served->shown = shown;
        sl_stats_model_show(&served->counting, &shown);
}

void sl_standing_forget(struct sl_registry *r, struct sl_served *served)
{
        sl_stats_model_remove(r->options.stats, &served->counting);
}
