/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What serves: a model by itself, and the ensembles that it is a member of. Ensembles are handed to the dispatcher and come back
 * when nothing of them is in flight; a model goes when the last ensemble that uses it has gone.
 */
#include "serving.h"

#include "accumulator.h"
#include "askers.h"
#include "base/clock.h"
#include "base/error.h"
#include "crew.h"
#include "ensemble.h"
#include "files.h"
#include "loader.h"
#include "names.h"
#include "news.h"
#include "plan.h"
#include "registry_state.h"
#include "requested.h"
#include "shape_spec.h"
#include "sizes.h"
#include "standing.h"
#include "stats.h"
#include "want.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop_model(struct sl_registry *r, struct sl_model *model)
{
        if (--model->refs == 0)
                sl_names_command(r, SL_COMMAND_REMOVE_MODEL, model, 0);
}

static void drop_standby(struct sl_served *served)
{
        sl_standby_end(&served->standby);
        served->standby_want = 0;
}

/* What serves from now on is what is wanted. */
static void take_spec(struct sl_registry *r, struct sl_served *served)
{
        sl_files_note(r, served, served->want.spec, served->want.spec);
        sl_own_spec_free(served->spec);
        served->spec = sl_own_spec_hold(served->want.spec);
}

/* What has served is no more. */
static void clear_served(struct sl_registry *r, struct sl_served *served)
{
        sl_news_flush(r, served);
        drop_standby(served);
        served->base = sl_plan_free(served->base);
        sl_files_note(r, served, served->want.spec, NULL);
        served->spec = sl_own_spec_free(served->spec);
        served->ensemble = NULL;
        served->model = NULL;
        served->serves = served->composition = served->has_workers = 0;
        served->drains = served->changing = served->rests = false;
}

void sl_serving_forget(struct sl_registry *r, struct sl_served *served)
{
        clear_served(r, served);
        sl_standing_forget(r, served);
        sl_names_report(r, 2, "model-unloaded", served, NULL);
        sl_askers_answer(r, served, true, 0, "unloaded");
        sl_names_drop(r, served);
        sl_served_publish(r, served);
}

void sl_serving_withdraw(struct sl_registry *r, struct sl_served *served)
{
        sl_sizes_withdraw(r, served);
        sl_names_drain(r, served);
}

/* It is wanted again, by those who have come meanwhile: clients that knew it look at it anew. */
static void serve_no_more(struct sl_registry *r, struct sl_served *served)
{
        sl_names_wake(r, served);
        clear_served(r, served);
        if (!served->want.number) /* the next step frees the name */
                return;
        sl_names_report(r, 2, "model-unloaded", served, NULL);
        served->generation++;
        sl_news_publish(r, served);
}

/* Ensembles come out of the dispatcher when nothing of them is in flight; what they shared goes with the last of them. */
void sl_serving_retired(struct sl_registry *r, struct sl_ensemble *ensemble)
{
        struct sl_served *served = &r->served[ensemble->index];

        for (uint32_t m = 0; m < sl_ensemble_models(ensemble); m++)
                drop_model(r, ensemble->members[m]);
        sl_stats_model_remove(r->options.stats, &ensemble->counting);
        sl_stats_queue_remove(r->options.stats, ensemble->shown);
        if (served->ensemble == ensemble)
                serve_no_more(r, served);
        sl_ensemble_free(ensemble);
}

static void bury_model(struct sl_registry *r, struct sl_model *model)
{
        for (struct sl_model *other = r->loaded; other; other = other->next_loaded)
                if (other->crew && model->crew)
                        sl_crew_outlives(other->crew, model->crew);
        sl_stats_queue_remove(r->options.stats, model->shown);
        sl_model_free(model);
        r->gone++;
}

void sl_serving_gone(struct sl_registry *r, struct sl_model *model)
{
        struct sl_model **link = &r->loaded;

        while (*link != model)
                link = &(*link)->next_loaded;
        *link = model->next_loaded;
        sl_serving_end(r, model);
}

void sl_serving_end(struct sl_registry *r, struct sl_model *model)
{
        model->next_loaded = r->ending;
        r->ending = model;
        if (model->crew)
                (void)sl_crew_leave(model->crew);
}

void sl_serving_bury(struct sl_registry *r)
{
        for (struct sl_model **link = &r->ending; *link;) {
                struct sl_model *model = *link;

                if (model->crew && !sl_crew_leave(model->crew)) {
                        link = &model->next_loaded;
                        continue;
                }
                *link = model->next_loaded;
                bury_model(r, model);
        }
}

void sl_serving_free(struct sl_registry *r)
{
        while (r->loaded)
                sl_serving_gone(r, r->loaded);
        while (r->ending) {
                struct sl_model *model = r->ending;

                r->ending = model->next_loaded;
                bury_model(r, model);
        }
}

void sl_serving_fail(struct sl_registry *r, struct sl_served *served, int status, const char *text)
{
        bool is_asked = served->want.request.is_asked;

        if (served->is_shape && sl_shape_is_any(served->sizes)) { /* each size has a plan of its own then */
                sl_names_report(r, status == -ENOMEM ? 1 : 3, "any-size-not-loaded", served, text);
                served->failed = served->want.number;
                sl_want_nothing(r, served, SL_WANT_REQUEST, "each size is compiled");
                return;
        }
        sl_names_report(r, 0, sl_served_is_ready(served) ? "model-not-replaced" : "model-failed", served, text);
        served->load_failures++;
        if (is_asked || served->rests)
                sl_requested_refuse(r, served, status, text);
        if (is_asked && status == -ENOMEM) /* there may be memory for a later request */
                return;
        served->failed = served->want.number;
        if (served->is_shape && !served->ensemble) {
                sl_sizes_failed(r, served->open, served->sizes, status, status != -ENOMEM, text); /* there may be memory later */
                sl_want_nothing(r, served, SL_WANT_REQUEST, "it could not be loaded");
                return;
        }
        sl_error_fit(text, served->why, sizeof(served->why));
        sl_news_publish(r, served);
        sl_askers_answer(r, served, false, status, text);
}

static int check_staging(const struct sl_registry *r, const struct sl_ensemble *ensemble, struct sl_error *error)
{
        uint64_t bytes = sl_accumulator_staging_bytes(&ensemble->assembly, ensemble->segment_samples);

        if (bytes <= r->options.runtime->staging_bytes)
                return 0;
        return sl_error_set(error, ENOMEM,
                "\"%s\": under rule %s a segment of %u samples needs %llu bytes of staging, limits.staging_bytes is %llu: raise "
                "it, or "
                "lower segment_samples",
                ensemble->name, sl_rule_name(ensemble->assembly.rule), ensemble->segment_samples, (unsigned long long)bytes,
                (unsigned long long)r->options.runtime->staging_bytes);
}

/* Hands an ensemble to the dispatcher, in the place of what the name had. @event: as of sl_news_add(); @answer: to those who have
 * asked. */
static void serve_ensemble(
        struct sl_registry *r, struct sl_served *served, struct sl_ensemble *ensemble, const char *event, const char *answer)
{
        if (served->ensemble && !sl_ensemble_same_ports(served->ensemble, ensemble))
                served->generation++;
        ensemble->index = served->index;
        ensemble->generation = served->generation;
        sl_standing_count(r, served, true, &ensemble->counting);
        sl_stats_queue_add(r->options.stats, ensemble->name, SL_STATS_QUEUE_REQUESTS, &ensemble->shown);
        for (uint32_t m = 0; m < sl_ensemble_models(ensemble); m++)
                ensemble->members[m]->refs++;
        ensemble->is_shape = served->is_shape;
        ensemble->open_index = served->open;
        memcpy(ensemble->sizes, served->sizes, sizeof(ensemble->sizes));
        if (served->ensemble)
                sl_sizes_withdraw(r, served);
        take_spec(r, served);
        served->rests = false;
        drop_standby(served);
        sl_requested_end(served);
        atomic_store_explicit(&ensemble->idle_ns, sl_clock_ns(), memory_order_relaxed);
        served->serves = served->want.number;
        served->ensemble = ensemble;
        served->why[0] = 0;
        served->loads++;
        served->answer = answer;
        sl_names_command(r, SL_COMMAND_SERVE, ensemble, 0);
        sl_news_add(r, served, event);
}

/* Hands @ensemble, which rests, to the dispatcher in the place of what the name had. */
static void serve_resting(struct sl_registry *r, struct sl_served *served, struct sl_ensemble *ensemble, const char *event)
{
        sl_standing_count(r, served, false, &ensemble->counting);
        if (served->ensemble)
                sl_sizes_withdraw(r, served);
        served->ensemble = ensemble;
        served->model = NULL;
        served->rests = true;
        served->changing = false;
        served->has_workers = served->composition = 0;
        sl_names_command(r, SL_COMMAND_SERVE, ensemble, 0);
        sl_news_add(r, served, event);
}

static void lose_standby(struct sl_registry *r, struct sl_served *served)
{
        drop_standby(served);
        r->gone++;
        sl_names_report(r, 2, "standby-ended", served, NULL);
        sl_news_publish(r, served);
}

void sl_serving_rest(struct sl_registry *r, struct sl_served *served)
{
        struct sl_ensemble *ensemble;
        struct sl_error error;

        if (served->rests) {
                lose_standby(r, served);
                return;
        }
        if (sl_ensemble_rest(served->ensemble, r->options.runtime->clients_max, &ensemble, &error) < 0) {
                sl_names_report(r, 1, "model-not-unloaded", served, error.text);
                atomic_store_explicit(&served->ensemble->idle_ns, sl_clock_ns(), memory_order_relaxed); /* until later */
                return;
        }
        serve_resting(r, served, ensemble, "model-unloaded-idle");
}

static int build_ensemble(struct sl_registry *r, const struct sl_served *served, struct sl_model *const *members, uint32_t n,
        struct sl_ensemble **ret_ensemble, struct sl_error *error)
{
        const struct sl_model_spec *spec = &served->want.spec->spec;
        const struct sl_ensemble_options options = {
                .name = spec->name,
                .version = spec->version,
                .is_single = spec->path != NULL,
                .sized = spec->sized,
                .shapes_max = spec->shapes_max,
                .rule = spec->rule,
                .weights = spec->weights,
                .combining = spec->combining,
                .segment_samples = spec->segment_samples,
                .samples_max = spec->samples_max,
                .queue_requests = spec->queue_requests,
                .clients_max = r->options.runtime->clients_max,
        };
        struct sl_ensemble *ensemble;
        int result = sl_ensemble_new(&options, members, n, &ensemble, error);

        if (result < 0)
                return result;
        result = check_staging(r, ensemble, error);
        if (result < 0) {
                sl_ensemble_free(ensemble);
                return result;
        }
        *ret_ensemble = ensemble;
        return 0;
}

/* The ports of @plan under this name: what rests until it has workers. */
static int build_resting(struct sl_registry *r, const struct sl_served *served, struct sl_plan *plan,
        struct sl_ensemble **ret_ensemble, struct sl_error *error)
{
        struct sl_model model = {.plan = plan, .info = sl_plan_info(plan)};
        struct sl_ensemble *whole;
        int result;

        snprintf(model.name, sizeof(model.name), "%s", served->name);
        result = build_ensemble(r, served, &(struct sl_model *){&model}, 1, &whole, error);
        if (result < 0)
                return result;
        whole->index = served->index;
        whole->generation = served->generation + (served->ensemble && !sl_ensemble_same_ports(served->ensemble, whole));
        result = sl_ensemble_rest(whole, r->options.runtime->clients_max, ret_ensemble, error);
        sl_ensemble_free(whole);
        return result;
}

void sl_serving_stand_by(struct sl_registry *r, struct sl_served *served, struct sl_standby *standby)
{
        struct sl_ensemble *ensemble;
        struct sl_error error;
        int result = build_resting(r, served, standby->plan, &ensemble, &error);

        if (result < 0) {
                sl_standby_end(standby);
                sl_serving_fail(r, served, result, error.text);
                return;
        }
        drop_standby(served);
        served->standby = *standby;
        served->standby_want = served->want.number;
        served->used_ns = served->model ? served->model->seen.idle_ns : sl_clock_ns();
        served->generation = ensemble->generation;
        take_spec(r, served);
        served->serves = served->want.number;
        served->why[0] = 0;
        serve_resting(r, served, ensemble, "model-standby");
}

/* Return: 0: all members are there; -ENOENT: one is missing or has failed. */
static int find_members(
        struct sl_registry *r, const struct sl_served *served, struct sl_model **ret_members, struct sl_error *error)
{
        const struct sl_model_spec *spec = &served->want.spec->spec;

        for (uint32_t m = 0; m < spec->n_members; m++) {
                const struct sl_served *member = sl_names_find(r, spec->members[m]);
                bool is_ensemble = member && member->want.number && sl_served_spec(member)->n_members;

                if (!member || is_ensemble || !member->model || member->drains)
                        return sl_error_set(error, ENOENT, "member \"%s\" %s", spec->members[m],
                                !member       ? "is not in the repository"
                                : is_ensemble ? "is an ensemble itself"
                                              : "is not loaded");
                ret_members[m] = member->model;
        }
        return 0;
}

void sl_serving_lacks_member(struct sl_registry *r, struct sl_served *served)
{
        struct sl_model *members[SL_MEMBERS_MAX];
        struct sl_error error = {""};
        int result = find_members(r, served, members, &error);

        served->composition = 0;
        sl_serving_fail(r, served, result < 0 ? result : -ENOENT, result < 0 ? error.text : "its members are not loaded");
}

void sl_serving_compose(struct sl_registry *r, struct sl_served *served, uint64_t composition)
{
        struct sl_model *members[SL_MEMBERS_MAX];
        struct sl_ensemble *ensemble;
        struct sl_error error;
        int result = find_members(r, served, members, &error);

        served->composition = composition;
        if (result == 0)
                result = build_ensemble(r, served, members, served->want.spec->spec.n_members, &ensemble, &error);
        if (result < 0) {
                sl_serving_fail(r, served, result, error.text);
                return;
        }
        served->model = NULL; /* of a model that had this name before, with its workers */
        served->changing = false;
        served->has_workers = 0;
        serve_ensemble(r, served, ensemble, "ensemble-ready", "ready");
}

static void add_model(struct sl_registry *r, struct sl_model *model)
{
        model->serial = ++r->models;
        model->next_loaded = r->loaded;
        r->loaded = model;
        sl_stats_queue_add(r->options.stats, model->name, SL_STATS_QUEUE_SEGMENTS, &model->shown);
        sl_names_command(r, SL_COMMAND_ADD_MODEL, model, 0);
}

int sl_serving_model(
        struct sl_registry *r, struct sl_served *served, struct sl_model *model, uint64_t workers, struct sl_error *error)
{
        bool replaced = served->model != NULL;
        struct sl_ensemble *ensemble;
        int result = build_ensemble(r, served, &model, 1, &ensemble, error);

        if (result < 0)
                return result;
        if (model->refs == 0)
                add_model(r, model);
        served->model = model;
        served->has_workers = workers;
        served->changing = false;
        served->want.group = 0; /* its new workers are all there */
        serve_ensemble(r, served, ensemble, replaced ? "model-replaced" : "model-ready", replaced ? "replaced" : "ready");
        if (served->is_shape)
                sl_sizes_loaded(r, served, model);
        if (ensemble->open)
                sl_sizes_prepare(r, served);
        else
                sl_sizes_closed(r, served);
        return 0;
}

void sl_serving_share(struct sl_registry *r, struct sl_served *served, const struct sl_served *twin)
{
        bool alike =
                sl_worker_set_equal(&twin->want.workers, &served->want.workers) && twin->has_workers == twin->want.workers_number;
        struct sl_error error;
        int result = sl_serving_model(r, served, twin->model, alike ? served->want.workers_number : 0, &error);

        if (result < 0)
                sl_serving_fail(r, served, result, error.text);
}
