/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table itself: who is found in it, who gets a place, and what the world hears of one.
 */
#include "names.h"

#include "account.h"
#include "base/error.h"
#include "base/fields.h"
#include "change.h"
#include "crew.h"
#include "loads.h"
#include "model.h"
#include "news.h"
#include "registry_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void sl_names_report_to(struct sl_registry *r, struct sl_account *account, int level, const char *event,
        const struct sl_served *served, const char *text)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", served->own.name);
        sl_fields_add_number(&fields, "version", served->own.spec.version);
        if (text)
                sl_fields_add(&fields, "cause", text);
        sl_account_log(r->options.accounts, account, level, event, fields.text);
}

void sl_names_report(struct sl_registry *r, int level, const char *event, const struct sl_served *served, const char *text)
{
        sl_names_report_to(r, sl_names_account(r, served), level, event, served, text);
}

struct sl_account *sl_names_account(const struct sl_registry *r, const struct sl_served *served)
{
        return served->asked ? sl_account_find(r->options.accounts, served->uid) : NULL;
}

void sl_names_answer(struct sl_registry *r, struct sl_served *served, int status, const char *text)
{
        if (served->asker)
                r->options.answer(r->options.context, served->asker, status, text);
        served->asker = 0;
        served->news.answer = NULL;
}

bool sl_names_is_version(const char *name, const char *plain)
{
        size_t bytes = strlen(plain);

        return strncmp(name, plain, bytes) == 0 && name[bytes] == ':';
}

/* What the dispatcher has not taken yet is published when it has. */
void sl_names_publish(struct sl_registry *r, const struct sl_served *served)
{
        if (served->state != SL_SERVED_READY || !sl_news_is_due(served))
                sl_served_publish(r->options.catalogue, served);
}

void sl_names_command(struct sl_registry *r, enum sl_command_kind kind, void *pointer, uint32_t index)
{
        sl_dispatcher_command(r->options.dispatcher, &(struct sl_command){.kind = kind, .pointer = pointer, .index = index});
}

struct sl_served *sl_names_find(struct sl_registry *r, const char *name)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->served[i].state != SL_SERVED_NONE && strcmp(r->served[i].own.name, name) == 0)
                        return &r->served[i];
        return NULL;
}

static struct sl_served *find_free(struct sl_registry *r)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->served[i].state == SL_SERVED_NONE)
                        return &r->served[i];
        return NULL;
}

/* Nothing has changed, or no more than the number of workers: then that is what was meant, also by who wants it loaded again. */
static bool keeps_loaded(const struct sl_served *served, const struct sl_model_spec *spec, bool again)
{
        return sl_spec_resized(&served->own.spec, spec) || (!again && sl_spec_same(&served->own.spec, spec));
}

static int want(
        struct sl_registry *r, const struct sl_model_spec *spec, bool again, struct sl_served **ret_served, struct sl_error *error)
{
        struct sl_served *served = sl_names_find(r, spec->name);

        if (!served) {
                served = find_free(r);
                if (!served)
                        return sl_error_set(
                                error, ENOSPC, "no room for \"%s\": %u models are the limit", spec->name, SL_CATALOGUE_MODELS);
                served->state = SL_SERVED_WAITING;
        } else if (served->state == SL_SERVED_FAILED || served->state == SL_SERVED_WAITING) {
                served->state = SL_SERVED_WAITING;
        } else if (served->state != SL_SERVED_DRAINING && keeps_loaded(served, spec, again)) {
                served->resize |= sl_spec_resized(&served->own.spec, spec);
                served->own.spec.workers = spec->workers;
                *ret_served = served;
                return 0;
        } else if (served->state != SL_SERVED_DRAINING && sl_loads_give_up(r, served)) {
                if (served->state == SL_SERVED_LOADING)
                        served->state = SL_SERVED_WAITING;
                else
                        served->replace = true;
        } else if (served->state != SL_SERVED_READY || served->load) {
                return sl_error_set(error, EBUSY, "\"%s\" is being loaded or unloaded", spec->name);
        } else {
                served->replace = true;
        }
        sl_own_spec_copy(&served->own, spec);
        sl_names_publish(r, served);
        *ret_served = served;
        return 0;
}

/* A model for a GPU that is served on cores: until it is loaded again. */
static bool has_fallen_back(const struct sl_served *served, const struct sl_model_spec *spec)
{
        const struct sl_crew *crew = served && served->model ? served->model->crew : NULL;

        return crew && crew->options.fell_back && sl_spec_same(&served->own.spec, spec);
}

/* Workers of an allocation for the other kind of device count no more, as the configuration has changed it. */
static bool are_for(const struct sl_worker_set *workers, bool on_gpu)
{
        for (uint32_t i = 0; i < workers->n; i++)
                if ((workers->wishes[i].gpu.name[0] != 0) != on_gpu)
                        return false;
        return true;
}

/* What an allocation says of it, or of another name of the same model: they share its workers. */
static const struct sl_worker_set *find_allotted(const struct sl_registry *r, const struct sl_model_spec *spec)
{
        const struct sl_worker_set *workers = sl_change_workers(r, spec->name);

        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS && !workers; i++) {
                const struct sl_served *other = &r->served[i];

                if (other->state != SL_SERVED_NONE && other->own.spec.path && strcmp(other->own.path, spec->path) == 0 &&
                        other->own.spec.stamp == spec->stamp)
                        workers = sl_change_workers(r, other->own.name);
        }
        return workers;
}

int sl_names_want(
        struct sl_registry *r, const struct sl_model_spec *spec, bool again, struct sl_served **ret_served, struct sl_error *error)
{
        const struct sl_worker_set *workers = spec->path ? find_allotted(r, spec) : NULL;
        struct sl_model_spec allotted;

        if (workers && !are_for(workers, spec->on_gpu && (again || !has_fallen_back(sl_names_find(r, spec->name), spec))))
                workers = NULL;
        if (!workers)
                return want(r, spec, again, ret_served, error);
        allotted = *spec;
        allotted.workers = *workers;
        return want(r, &allotted, again, ret_served, error);
}

int sl_names_refuse(struct sl_registry *r, const struct sl_model_spec *spec)
{
        struct sl_served *served = sl_names_find(r, spec->name);

        if (!served)
                served = find_free(r);
        if (!served)
                return -ENOSPC;
        if (served->state != SL_SERVED_NONE && served->state != SL_SERVED_FAILED)
                return 0;
        served->state = SL_SERVED_FAILED;
        sl_own_spec_copy(&served->own, spec);
        snprintf(served->why, sizeof(served->why), "%s", spec->refused);
        served->own.spec.refused = served->why;
        sl_served_publish(r->options.catalogue, served);
        return 0;
}

void sl_names_drain(struct sl_registry *r, struct sl_served *served)
{
        served->state = SL_SERVED_DRAINING;
        sl_served_publish(r->options.catalogue, served);
        sl_names_command(r, SL_COMMAND_WITHDRAW, NULL, served->index);
}
