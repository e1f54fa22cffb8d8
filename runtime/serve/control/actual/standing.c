/* SPDX-License-Identifier: Apache-2.0 */
#include "standing.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/utf8.h"
#include "crew.h"
#include "ensemble.h"
#include "model.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"
#include "stats.h"
#include "want.h"

#include <stdio.h>
#include <string.h>

void sl_standing_count(struct sl_registry *r, struct sl_served *served, bool records, struct sl_model_counting *ret_counting)
{
        struct sl_stats *stats = r->options.stats;
        struct sl_error error;

        if ((records ? sl_stats_model_add : sl_stats_model_add_shown)(stats, served->name, ret_counting, &error) < 0)
                sl_names_report(r, 1, "model-without-histograms", served, error.text);
}

static enum sl_stats_model_kind kind_of(const struct sl_served *served)
{
        if (!sl_served_spec(served)->path && sl_served_spec(served)->n_members)
                return SL_STATS_MODEL_ENSEMBLE;
        if (served->is_shape)
                return SL_STATS_MODEL_SIZES;
        return served->ensemble && served->ensemble->open ? SL_STATS_MODEL_OPEN : SL_STATS_MODEL_PLAIN;
}

/* What its members lack: a degraded one. Sums of their workers go into @shown. */
static const struct sl_crew *count_workers(const struct sl_ensemble *ensemble, struct sl_model_stats *shown)
{
        const struct sl_crew *short_one = NULL;

        for (uint32_t m = 0; m < sl_ensemble_models(ensemble); m++) {
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
        char name[41], why[61];

        shown->state = crew ? SL_STATS_MODEL_DEGRADED : SL_STATS_MODEL_READY;
        shown->n_members = sl_served_spec(served)->path ? 0 : ensemble->assembly.n_members;
        shown->segment_samples = ensemble->segment_samples;
        shown->samples_max = ensemble->samples_max;
        shown->queue_requests = ensemble->queue_requests;
        if (crew)
                snprintf(shown->why, sizeof(shown->why), "%s: %u of %u workers serve; %s",
                        sl_utf8_fit(crew->options.model->name, name, sizeof(name)), sl_crew_serving(crew), crew->wanted.n,
                        sl_error_fit(crew->why, why, sizeof(why)));
        else
                sl_error_fit(served->why, shown->why, sizeof(shown->why));
}

static enum sl_stats_model_state state_of(const struct sl_served *served)
{
        switch (sl_served_state(served)) {
        case SL_SERVED_AVAILABLE:
                return SL_STATS_MODEL_AVAILABLE;
        case SL_SERVED_STANDBY:
                return SL_STATS_MODEL_STANDBY;
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

/* What it lacks, of one that does not serve yet or any more. */
static void show_await(const struct sl_served *served, struct sl_model_stats *shown)
{
        if (served->awaits != SL_AWAIT_NOTHING)
                snprintf(shown->why, sizeof(shown->why), "waits for %s", sl_await_text(served->awaits));
}

static const struct sl_served *find_twin(const struct sl_registry *r, const struct sl_served *served)
{
        for (uint32_t i = 0; i < r->n_awake; i++)
                if (sl_awake_at(r, i)->load && sl_awake_at(r, i)->load_file == served->want.spec->file)
                        return sl_awake_at(r, i);
        return NULL;
}

static const struct sl_served *find_missing_member(const struct sl_registry *r, const struct sl_served *served)
{
        for (uint32_t m = 0; m < served->want.spec->spec.n_members; m++) {
                const struct sl_served *member = served->members[m] == SL_FLEET_NONE ? NULL : &r->served[served->members[m]];

                if (member && !sl_served_is_ready(member))
                        return member;
        }
        return NULL;
}

/* The other name that it waits for; NULL: none, or several. */
static const struct sl_served *awaited(const struct sl_registry *r, const struct sl_served *served)
{
        switch (served->awaits) {
        case SL_AWAIT_TWIN:
                return find_twin(r, served);
        case SL_AWAIT_MEMBERS:
                return find_missing_member(r, served);
        case SL_AWAIT_BASE:
        case SL_AWAIT_OPEN:
                return &r->served[served->open];
        default:
                return NULL;
        }
}

static void describe_await(const struct sl_registry *r, const struct sl_served *served, struct sl_model_stats *shown)
{
        const struct sl_served *of = awaited(r, served);
        enum sl_step_kind step = sl_await_step(served->awaits);

        if (served->awaits == SL_AWAIT_NOTHING)
                return;
        shown->awaits_ns = served->awaits_ns;
        if (of && of->counting.counters && !of->counting.shared_counters)
                shown->awaits_of = of->counting.number;
        snprintf(shown->awaits, sizeof(shown->awaits), "%s", sl_await_text(served->awaits));
        if (step < SL_STEP_KIND_COUNT)
                snprintf(shown->step, sizeof(shown->step), "%s", sl_step_name(step));
}

static void describe_want(const struct sl_registry *r, const struct sl_served *served, struct sl_model_stats *shown)
{
        shown->want = served->want.number;
        shown->wanted_ns = served->want.since_ns;
        shown->want_served = served->serves;
        shown->want_failed = served->failed;
        shown->awaits_of = SL_STATS_NONE;
        snprintf(shown->origin, sizeof(shown->origin), "%s", sl_want_origin_name(served->want.origin));
        describe_await(r, served, shown);
        sl_error_fit(served->why, shown->cause, sizeof(shown->cause));
}

static void describe(const struct sl_registry *r, const struct sl_served *served, struct sl_model_stats *shown)
{
        describe_want(r, served, shown);
        shown->state = state_of(served);
        shown->kind = kind_of(served);
        shown->version = served->ensemble ? served->ensemble->version : sl_served_spec(served)->version;
        shown->loads = served->loads;
        shown->load_failures = served->load_failures;
        shown->load_ns = served->took_ns;
        if (sl_served_is_ready(served))
                show_ready(served, shown);
        else if (shown->state == SL_STATS_MODEL_FAILED)
                sl_error_fit(served->why, shown->why, sizeof(shown->why));
        else if (shown->state != SL_STATS_MODEL_AVAILABLE && shown->state != SL_STATS_MODEL_STANDBY)
                show_await(served, shown);
        else
                sl_error_fit(served->why, shown->why, sizeof(shown->why));
}

void sl_standing_show(struct sl_registry *r, struct sl_served *served)
{
        struct sl_model_stats shown = {.since_ns = served->shown.since_ns};
        bool is_new = !served->counting.counters;

        if (!served->used || (sl_served_is_ready(served) && sl_news_is_due(served)))
                return;
        if (is_new)
                sl_standing_count(r, served, false, &served->counting);
        describe(r, served, &shown);
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
