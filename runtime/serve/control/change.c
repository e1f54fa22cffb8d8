/* SPDX-License-Identifier: Apache-2.0 */
#include "change.h"

#include "account.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "crew.h"
#include "lets.h"
#include "model.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sl_change {
        struct sl_allotment *allotments;
        uint32_t n_models, n_workers;
        uint64_t asker, begun_ns;
        uint64_t mark; /* of the last command; 0: not all is done */
        bool ready;    /* all new workers are */
};

struct sl_change *sl_change_free(struct sl_change *change)
{
        while (change && change->allotments) {
                struct sl_allotment *allotment = change->allotments;

                change->allotments = allotment->next;
                free(allotment);
        }
        free(change);
        return NULL;
}

static struct sl_allotment *allotment_of(const struct sl_change *change, const char *model)
{
        for (struct sl_allotment *a = change ? change->allotments : NULL; a; a = a->next)
                if (strcmp(a->model, model) == 0)
                        return a;
        return NULL;
}

static struct sl_allotment *allotment_add(struct sl_change *change, const char *model)
{
        struct sl_allotment *allotment = calloc(1, sizeof(*allotment));

        if (!allotment)
                return NULL;
        snprintf(allotment->model, sizeof(allotment->model), "%s", model);
        allotment->next = change->allotments;
        change->allotments = allotment;
        change->n_models++;
        return allotment;
}

int sl_change_allot(struct sl_change **draft, const cpu_set_t *worker_cores, const char *model, const char *device, uint32_t batch,
        struct sl_error *error)
{
        struct sl_allotment *allotment;
        struct sl_worker_wish wish = {.batch_size = batch};
        int r = sl_worker_wish_place(&wish, device, worker_cores, error);

        if (r < 0)
                return sl_error_prefix(error, r, "model \"%s\"", model);
        if (!*model || !batch)
                return sl_error_set(error, EINVAL, "model \"%s\": a worker of batch %u", model, batch);
        if (!*draft)
                *draft = calloc(1, sizeof(**draft));
        allotment = *draft ? allotment_of(*draft, model) : NULL;
        if (*draft && !allotment)
                allotment = allotment_add(*draft, model);
        if (!allotment)
                return sl_error_set(error, ENOMEM, "model \"%s\": out of memory", model);
        if (allotment->set.n == SL_WORKERS_MAX || (*draft)->n_workers == SL_CHANGE_WORKERS_MAX)
                return sl_error_set(error, E2BIG, "model \"%s\": more than %u workers of a model, or %u in all", model,
                        SL_WORKERS_MAX, SL_CHANGE_WORKERS_MAX);
        allotment->set.wishes[allotment->set.n++] = wish;
        (*draft)->n_workers++;
        return 0;
}

const struct sl_worker_set *sl_change_workers(const struct sl_registry *r, const char *model)
{
        const struct sl_allotment *allotment = allotment_of(r->change, model);

        if (!allotment)
                allotment = allotment_of(r->in_force, model);
        return allotment ? &allotment->set : NULL;
}

bool sl_change_is_under_way(const struct sl_registry *r)
{
        return r->change;
}

/* By this name or another one of its file: one of them may have got another model since the change began. */
static bool is_served_by(const struct sl_served *served, const struct sl_allotment *a)
{
        bool is_named = served->state != SL_SERVED_NONE && served->own.spec.path &&
                        (strcmp(served->own.name, a->model) == 0 || strcmp(served->own.path, a->path) == 0);

        return is_named && served->model && served->model->crew && served->model->crew == a->crew;
}

/* NULL once nobody is served by the crew that the change began with. */
static struct sl_crew *crew_of(const struct sl_registry *r, const struct sl_allotment *allotment)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (is_served_by(&r->served[i], allotment))
                        return allotment->crew;
        return NULL;
}

/* Of all names for the same model, whose next reload would change it otherwise. */
static void note_workers(struct sl_registry *r, const struct sl_allotment *allotment, const struct sl_worker_set *set)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (is_served_by(&r->served[i], allotment)) {
                        r->served[i].own.spec.workers = *set;
                        if (r->served[i].served_spec)
                                r->served[i].served_spec->spec.workers = *set;
                }
}

/* What its configuration says of GPUs does not count where it fell back; what somebody asks for now must not be passed over. */
static int fallback_check(const struct sl_crew *crew, const struct sl_worker_set *set, struct sl_error *error)
{
        for (uint32_t i = 0; crew->options.fell_back && i < set->n; i++)
                if (set->wishes[i].gpu.name[0])
                        return sl_error_set(error, EINVAL,
                                "a worker on %s: it fell back to the CPU (gpu_fallback), for which its plan was made",
                                set->wishes[i].gpu.name);
        return 0;
}

static int allotment_check(struct sl_registry *r, struct sl_allotment *allotment, struct sl_error *error)
{
        const struct sl_served *served = sl_names_find(r, allotment->model);

        if (!served)
                return sl_error_set(error, EINVAL, "no model \"%s\" is loaded", allotment->model);
        if (served->own.spec.refused)
                return sl_error_set(error, EINVAL, "model \"%s\": %s", allotment->model, served->own.spec.refused);
        if (!served->own.spec.path)
                return sl_error_set(error, EINVAL, "\"%s\" is an ensemble: its members have workers", allotment->model);
        if (served->state != SL_SERVED_READY || served->load || served->resize)
                return sl_error_set(error, EBUSY, "model \"%s\" is being loaded or changed, or does not serve", allotment->model);
        if (!served->model->crew)
                return sl_error_set(
                        error, EINVAL, "model \"%s\" has open dimensions, and no workers before they have sizes", allotment->model);
        if (sl_crew_is_changing(served->model->crew))
                return sl_error_set(error, EBUSY, "workers of model \"%s\" start or leave", allotment->model);
        allotment->crew = served->model->crew;
        snprintf(allotment->path, sizeof(allotment->path), "%s", served->own.path);
        allotment->before = served->own.spec.workers;
        sl_worker_set_sort(&allotment->set);
        int result = fallback_check(allotment->crew, &allotment->set, error);

        if (result == 0)
                result = sl_crew_check(allotment->crew, &allotment->set, error);
        return result < 0 ? sl_error_prefix(error, result, "model \"%s\"", allotment->model) : 0;
}

/* Of those up to @end, which has not changed. */
static void undo(struct sl_registry *r, struct sl_change *change, const struct sl_allotment *end)
{
        for (struct sl_allotment *a = change->allotments; a != end; a = a->next) {
                struct sl_crew *crew = crew_of(r, a);

                if (!crew)
                        continue;
                sl_crew_undo(crew);
                note_workers(r, a, &a->before);
        }
}

static int start_all(struct sl_registry *r, struct sl_change *change, struct sl_error *error)
{
        for (struct sl_allotment *a = change->allotments; a; a = a->next) {
                int result;

                sl_crew_hold(a->crew, true);
                result = sl_crew_resize(a->crew, &a->set, error);
                if (result < 0) {
                        sl_crew_hold(a->crew, false);
                        undo(r, change, a);
                        return sl_error_prefix(error, result, "model \"%s\"", a->model);
                }
                note_workers(r, a, &a->set);
        }
        return 0;
}

/* What the configuration said last is what the next reload brings. Whoever asks hears when the workers are there. */
static int configured_again(struct sl_registry *r, uint64_t asker, struct sl_error *error)
{
        struct sl_change *in_force = r->in_force;
        int result;

        r->in_force = NULL;
        r->configured = (struct sl_configured){.asker = asker};
        result = sl_registry_sync(r, error);
        if (result < 0) {
                r->in_force = in_force;
                r->configured.asker = 0;
                return result;
        }
        sl_change_free(in_force);
        return 0;
}

void sl_change_note_failure(struct sl_registry *r, int status, const char *text)
{
        if (!r->configured.asker || r->configured.status)
                return;
        r->configured.status = status;
        snprintf(r->configured.why.text, sizeof(r->configured.why.text), "%s", text);
}

/* All models have the workers that the configuration says, or stay as they are. */
static void advance_configured(struct sl_registry *r)
{
        uint64_t asker = r->configured.asker;

        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS && asker; i++)
                if (r->served[i].resize)
                        return;
        if (!asker)
                return;
        if (!r->configured.mark)
                r->configured.mark = sl_news_mark(r);
        if (!sl_news_is_taken(r, r->configured.mark))
                return;
        r->configured.asker = 0;
        r->options.answer(
                r->options.context, asker, r->configured.status, r->configured.status ? r->configured.why.text : "as configured");
}

int sl_change_begin(struct sl_registry *r, struct sl_change *draft, uint64_t asker, struct sl_error *error)
{
        int result = 0;

        if (r->change || r->configured.asker) {
                sl_change_free(draft);
                return sl_error_set(error, EBUSY, "another allocation is being applied");
        }
        if (!draft)
                return configured_again(r, asker, error);
        for (struct sl_allotment *a = draft->allotments; a && result == 0; a = a->next)
                result = allotment_check(r, a, error);
        if (result == 0)
                result = start_all(r, draft, error);
        if (result < 0) {
                sl_change_free(draft);
                return result;
        }
        draft->asker = asker;
        draft->begun_ns = sl_clock_ns();
        r->change = draft;
        sl_change_advance(r);
        return 0;
}

static void report(struct sl_registry *r, const struct sl_change *change, int level, const char *event, const char *cause)
{
        struct sl_fields fields = {0};

        sl_fields_add_number(&fields, "models", change->n_models);
        sl_fields_add_number(&fields, "workers", change->n_workers);
        sl_fields_add_number(&fields, "ms", (long long)((sl_clock_ns() - change->begun_ns) / SL_NS_PER_MS));
        if (cause)
                sl_fields_add(&fields, "cause", cause);
        sl_account_log(r->options.accounts, NULL, level, event, fields.text);
}

/* What was applied to models that the new one does not name holds on. */
static void carry_over(struct sl_change *in_force, struct sl_change *change)
{
        struct sl_allotment **link = in_force ? &in_force->allotments : NULL;

        while (link && *link) {
                struct sl_allotment *a = *link;

                if (allotment_of(change, a->model)) {
                        link = &a->next;
                        continue;
                }
                *link = a->next;
                a->next = change->allotments;
                change->allotments = a;
        }
}

static void end_change(struct sl_registry *r, int status, const char *text)
{
        struct sl_change *change = r->change;

        r->change = NULL;
        report(r, change, status < 0 ? 0 : 2, status < 0 ? "allocation-not-applied" : "allocation-applied",
                status < 0 ? text : NULL);
        r->options.answer(r->options.context, change->asker, status, text);
        if (status == 0) {
                carry_over(r->in_force, change);
                sl_change_free(r->in_force);
                r->in_force = change;
        } else {
                sl_change_free(change);
        }
}

/* Return: how many start or leave still; -errno: one cannot start. */
static int advance_all(struct sl_registry *r, const struct sl_change *change, bool *ret_starting, struct sl_error *error)
{
        int n = 0;

        *ret_starting = false;
        for (const struct sl_allotment *a = change->allotments; a; a = a->next) {
                struct sl_crew *crew = crew_of(r, a);
                int result = crew ? sl_crew_advance(crew, error) : 0;

                if (result < 0)
                        return sl_error_prefix(error, result, "model \"%s\"", a->model);
                *ret_starting |= crew && sl_crew_is_starting(crew);
                n += result;
        }
        return n;
}

void sl_change_advance(struct sl_registry *r)
{
        struct sl_change *change = r->change;
        struct sl_error error = {""};
        bool starting;
        int n = change ? advance_all(r, change, &starting, &error) : 1;

        advance_configured(r);
        if (n < 0) {
                undo(r, change, NULL);
                end_change(r, n, error.text);
                return;
        }
        if (!change || starting)
                return;
        if (!change->ready) {
                change->ready = true;
                for (struct sl_allotment *a = change->allotments; a; a = a->next)
                        if (crew_of(r, a))
                                sl_crew_hold(a->crew, false);
                n = advance_all(r, change, &starting, &error);
        }
        if (n == 0 && !change->mark)
                change->mark = sl_news_mark(r);
        if (n == 0 && sl_news_is_taken(r, change->mark))
                end_change(r, 0, "applied");
}
