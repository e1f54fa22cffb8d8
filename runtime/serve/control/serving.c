/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What serves: a model by itself, and the ensembles that it is a member of. Ensembles are handed to the dispatcher and come back
 * when nothing of them is in flight; a model goes when the last ensemble that uses it has gone.
 */
#include "serving.h"

#include "accumulator.h"
#include "base/clock.h"
#include "base/error.h"
#include "crew.h"
#include "ensemble.h"
#include "loader.h"
#include "names.h"
#include "news.h"
#include "plan.h"
#include "registry_state.h"
#include "sizes.h"
#include "standing.h"
#include "stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop_model(struct sl_registry *r, struct sl_model *model)
{
        if (--model->refs == 0)
                sl_names_command(r, SL_COMMAND_REMOVE_MODEL, model, 0);
}

void sl_serving_clear(struct sl_registry *r, struct sl_served *served)
{
        sl_news_flush(r, served);
        sl_plan_free(served->base);
        free(served->served_spec);
        sl_standing_forget(r, served);
        served->state = SL_SERVED_NONE;
        sl_served_publish(r->options.catalogue, served);
        sl_names_report(r, 2, "model-unloaded", served, NULL);
        sl_names_answer(r, served, 0, "unloaded");
        uint32_t index = served->index, generation = served->generation + 1;
        *served = (struct sl_served){.index = index, .generation = generation};
}

void sl_serving_withdraw(struct sl_registry *r, struct sl_served *served)
{
        sl_sizes_withdraw(r, served);
        sl_names_drain(r, served);
}

/* Ensembles come out of the dispatcher when nothing of them is in flight; what they shared goes with the last of them. */
void sl_serving_retired(struct sl_registry *r, struct sl_ensemble *ensemble)
{
        struct sl_served *served = &r->served[ensemble->index];

        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++)
                drop_model(r, ensemble->members[m]);
        sl_stats_model_remove(r->options.stats, &ensemble->counting);
        sl_stats_queue_remove(r->options.stats, ensemble->shown);
        if (served->ensemble == ensemble) {
                const struct sl_served gone = *served;

                served->ensemble = NULL;
                sl_serving_clear(r, served);
                if (gone.is_shape)
                        sl_sizes_gone(r, &gone);
        }
        sl_ensemble_free(ensemble);
}

void sl_serving_unload(struct sl_registry *r, struct sl_model *model)
{
        struct sl_model **link = &r->loaded;

        while (*link != model)
                link = &(*link)->next_loaded;
        *link = model->next_loaded;
        for (struct sl_model *other = r->loaded; other; other = other->next_loaded)
                if (other->crew && model->crew)
                        sl_crew_outlives(other->crew, model->crew);
        sl_stats_queue_remove(r->options.stats, model->shown);
        sl_model_free(model);
}

void sl_serving_fail(struct sl_registry *r, struct sl_served *served, int status, const char *text)
{
        sl_names_report(r, 0, served->ensemble ? "model-not-replaced" : "model-failed", served, text);
        served->load = sl_load_free(served->load);
        served->replace = false;
        served->load_failures++;
        if (served->is_shape && !served->ensemble) {
                sl_sizes_failed(r, served->open, served->sizes, status, status != -ENOMEM, text); /* there may be memory later */
                sl_serving_clear(r, served);
                return;
        }
        snprintf(served->why, sizeof(served->why), "%s", text);
        if (!served->ensemble) {
                served->state = SL_SERVED_FAILED;
                served->resize = false;
        } else {
                served->own.spec.stamp = 0; /* what serves is not what the repository has: the next scan tries again */
        }
        sl_names_publish(r, served);
        sl_names_answer(r, served, status, text);
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

/* Sizes are made of what serves. Where there is no memory for that, of what is wanted. */
static void keep_spec(struct sl_served *served, const struct sl_ensemble *ensemble)
{
        if (!ensemble->open) {
                free(served->served_spec);
                served->served_spec = NULL;
                return;
        }
        if (!served->served_spec)
                served->served_spec = calloc(1, sizeof(*served->served_spec));
        if (served->served_spec)
                sl_own_spec_copy(served->served_spec, &served->own.spec);
}

/* Hands an ensemble to the dispatcher, in the place of what the name had. @event, @answer: as of sl_news_add(). */
static void serve_ensemble(
        struct sl_registry *r, struct sl_served *served, struct sl_ensemble *ensemble, const char *event, const char *answer)
{
        if (served->ensemble && !sl_ensemble_same_ports(served->ensemble, ensemble))
                served->generation++;
        ensemble->index = served->index;
        ensemble->generation = served->generation;
        sl_standing_count(r, served, &ensemble->counting);
        sl_stats_queue_add(r->options.stats, ensemble->name, SL_STATS_QUEUE_REQUESTS, &ensemble->shown);
        for (uint32_t m = 0; m < ensemble->assembly.n_members; m++)
                ensemble->members[m]->refs++;
        ensemble->is_shape = served->is_shape;
        ensemble->open_index = served->open;
        memcpy(ensemble->sizes, served->sizes, sizeof(ensemble->sizes));
        if (served->ensemble)
                sl_sizes_withdraw(r, served);
        keep_spec(served, ensemble);
        served->ensemble = ensemble;
        served->state = SL_SERVED_READY;
        served->replace = false;
        served->why[0] = 0;
        served->loads++;
        sl_names_command(r, SL_COMMAND_SERVE, ensemble, 0);
        sl_news_add(r, served, event, answer);
}

static int build_ensemble(struct sl_registry *r, const struct sl_own_spec *own, struct sl_model *const *members, uint32_t n,
        struct sl_ensemble **ret_ensemble, struct sl_error *error)
{
        const struct sl_model_spec *spec = &own->spec;
        const struct sl_ensemble_options options = {
                .name = spec->name,
                .version = spec->version,
                .is_single = spec->path != NULL,
                .sized = spec->sized,
                .shapes_max = spec->shapes_max,
                .rule = spec->rule,
                .weights = spec->weights,
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

/* Who still serves as an ensemble, as its load as a model has failed, may not. */
static bool may_get_model(const struct sl_served *member)
{
        return member->load || member->replace || member->state == SL_SERVED_WAITING || member->state == SL_SERVED_LOADING;
}

/* Return: 0: all members are there; -EAGAIN: some are still loading; -ENOENT: one is missing or has failed. */
static int find_members(
        struct sl_registry *r, const struct sl_served *served, struct sl_model **ret_members, struct sl_error *error)
{
        for (uint32_t m = 0; m < served->own.spec.n_members; m++) {
                const struct sl_served *member = sl_names_find(r, served->own.members[m]);

                if (!member || member->state == SL_SERVED_FAILED || member->state == SL_SERVED_DRAINING || !member->own.spec.path)
                        return sl_error_set(error, ENOENT, "member \"%s\" %s", served->own.members[m],
                                !member                         ? "is not in the repository"
                                : member->own.spec.path == NULL ? "is an ensemble itself"
                                                                : "is not loaded");
                if (!member->model && !may_get_model(member))
                        return sl_error_set(error, ENOENT, "member \"%s\" is not loaded", served->own.members[m]);
                if (!member->model)
                        return -EAGAIN;
                ret_members[m] = member->model;
        }
        return 0;
}

void sl_serving_build(struct sl_registry *r, struct sl_served *served)
{
        struct sl_model *members[SL_MEMBERS_MAX];
        struct sl_ensemble *ensemble;
        struct sl_error error;
        int result = find_members(r, served, members, &error);

        if (result == -EAGAIN)
                return;
        if (result == 0)
                result = build_ensemble(r, &served->own, members, served->own.spec.n_members, &ensemble, &error);
        if (result < 0) {
                sl_serving_fail(r, served, result, error.text);
                return;
        }
        served->model = NULL; /* of a model that had this name before */
        serve_ensemble(r, served, ensemble, "ensemble-ready", "ready");
}

/* The ensemble serves, and goes over to a new member; or it has failed, and nothing that it needs is missing any more. */
static bool wants_new_member(struct sl_registry *r, const struct sl_served *served, const char *member)
{
        struct sl_model *members[SL_MEMBERS_MAX];

        if (served->state != SL_SERVED_READY && served->state != SL_SERVED_FAILED)
                return false;
        for (uint32_t m = 0; m < served->own.spec.n_members; m++)
                if (strcmp(served->own.members[m], member) == 0)
                        return served->state == SL_SERVED_READY || find_members(r, served, members, NULL) == 0;
        return false;
}

/* A new model takes its place, or that of the old one, in every ensemble: of which news is due, behind that. */
static void rebuild_ensembles(struct sl_registry *r, const char *member)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *ensemble = &r->served[i];

                if (!wants_new_member(r, ensemble, member))
                        continue;
                if (sl_news_is_due(ensemble))
                        ensemble->replace = true;
                else
                        sl_serving_build(r, ensemble);
        }
}

int sl_serving_model(struct sl_registry *r, struct sl_served *served, struct sl_model *model, struct sl_error *error)
{
        bool replaced = served->model != NULL;
        struct sl_ensemble *ensemble;
        int result = build_ensemble(r, &served->own, &model, 1, &ensemble, error);

        if (result < 0)
                return result;
        if (served->load)
                served->took_ns = sl_clock_ns() - served->load_ns;
        served->load = sl_load_free(served->load);
        if (model->refs == 0) {
                model->next_loaded = r->loaded;
                r->loaded = model;
                sl_stats_queue_add(r->options.stats, model->name, SL_STATS_QUEUE_SEGMENTS, &model->shown);
                sl_names_command(r, SL_COMMAND_ADD_MODEL, model, 0);
        }
        served->model = model;
        serve_ensemble(r, served, ensemble, replaced ? "model-replaced" : "model-ready", replaced ? "replaced" : "ready");
        if (served->is_shape)
                sl_sizes_loaded(r, served, model);
        if (ensemble->open)
                sl_sizes_prepare(r, served);
        else
                sl_sizes_closed(r, served);
        rebuild_ensembles(r, served->own.name);
        return 0;
}
