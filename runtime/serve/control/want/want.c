/* SPDX-License-Identifier: Apache-2.0 */
#include "want.h"

#include "askers.h"
#include "base/clock.h"
#include "base/error.h"
#include "crew.h"
#include "draft.h"
#include "files.h"
#include "model.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"
#include "requested.h"

#include <errno.h>

uint64_t sl_want_number(struct sl_registry *r)
{
        return ++r->wants;
}

const char *sl_want_origin_name(enum sl_want_origin origin)
{
        static const char *const names[] = {
#define X(id, name) [SL_WANT_##id] = name,
                SL_WANT_ORIGINS(X)
#undef X
        };

        return names[origin];
}

/* ---- workers ---- */

void sl_want_workers(struct sl_registry *r, struct sl_served *served, const struct sl_worker_set *workers)
{
        struct sl_want *want = &served->want;
        bool has_failed = want->workers_number && served->failed_workers == want->workers_number;

        if (want->workers_number && !has_failed && sl_worker_set_equal(&want->workers, workers))
                return;
        want->workers = *workers;
        want->workers_number = sl_want_number(r);
}

/* A model for a GPU that is served on cores: until it is loaded again. */
static bool has_fallen_back(const struct sl_served *served)
{
        const struct sl_crew *crew = served->model ? served->model->crew : NULL;

        return crew && crew->options.fell_back && served->want.number == served->serves;
}

/* Workers of an allocation for the other kind of device count no more, as the configuration has changed it. */
static bool are_for(const struct sl_worker_set *workers, bool on_gpu)
{
        for (uint32_t i = 0; i < workers->n; i++)
                if ((workers->wishes[i].gpu.name[0] != 0) != on_gpu)
                        return false;
        return true;
}

const struct sl_allotment *sl_want_applied(struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_allotment *allotment = sl_draft_find(r->in_force, served->name);

        for (const struct sl_served *other = NULL; r->in_force && !allotment;) {
                other = sl_files_next(r, served->want.spec, other);
                if (!other)
                        break;
                allotment = sl_draft_find(r->in_force, other->name);
        }
        return allotment;
}

/* What the configuration says of all names of the file: the most workers, of those the first name's. */
static const struct sl_worker_set *find_configured(struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_model_spec *spec = &served->want.spec->spec;
        const struct sl_worker_set *most = NULL;

        for (const struct sl_served *other = NULL; (other = sl_files_next(r, served->want.spec, other));) {
                const struct sl_model_spec *its = &other->want.spec->spec;

                if (its->on_gpu == spec->on_gpu && (!most || its->workers.n > most->n))
                        most = &its->workers;
        }
        return most ? most : &spec->workers;
}

void sl_want_workers_again(struct sl_registry *r, struct sl_served *served)
{
        const struct sl_model_spec *spec = &served->want.spec->spec;
        const struct sl_allotment *allotment = spec->path ? sl_want_applied(r, served) : NULL;
        const struct sl_worker_set *applied = allotment ? &allotment->set : NULL;

        if (!spec->path)
                return;
        if (applied && !are_for(applied, spec->on_gpu && !has_fallen_back(served)))
                applied = NULL;
        sl_want_workers(r, served, applied ? applied : find_configured(r, served));
}

/* The name has come to its file, that of @spec, or has left it: the others of the file may want other workers. */
static void want_workers_of_file(struct sl_registry *r, const struct sl_served *served, const struct sl_own_spec *spec)
{
        for (struct sl_served *other = NULL; (other = sl_files_next(r, spec, other));)
                if (other != served && other->failed_workers != other->want.workers_number)
                        sl_want_workers_again(r, other);
}

/* ---- what is to be served ---- */

/* Models of one file and stamp are one model under several names. */
static uint64_t file_of(struct sl_registry *r, const struct sl_model_spec *spec)
{
        uint64_t file = spec->path ? sl_files_find(r, spec) : 0;

        return file || !spec->path ? file : ++r->files;
}

/* The workers that the configuration says are those of the last time that it was read. */
static int want_spec(struct sl_registry *r, struct sl_served *served, const struct sl_model_spec *spec, struct sl_error *error)
{
        uint64_t file = file_of(r, spec);
        struct sl_own_spec *own;

        if (sl_own_spec_new(spec, &own) < 0)
                return sl_error_set(error, ENOMEM, "model \"%s\": no memory for what is wanted of it", spec->name);
        own->file = file;
        sl_names_wake(r, served);
        sl_files_note(r, served, own, served->spec);
        sl_own_spec_free(served->want.spec);
        served->want.spec = own;
        return 0;
}

/* Nothing more to load: it is on its way, which whoever wants it again joins, or serves, and no more than its workers differs. */
static bool is_wanted_already(const struct sl_served *served, const struct sl_model_spec *spec, bool again)
{
        const struct sl_want *want = &served->want;
        bool resized;

        if (!want->number || served->failed == want->number || !sl_spec_same(&want->spec->spec, spec))
                return false;
        resized = spec->path && !sl_worker_set_equal(&want->spec->spec.workers, &spec->workers);
        return resized || !again || want->number != served->serves;
}

/* What serves is what is wanted once more: a file that was replaced by a broken one, and has come back. */
static bool serves_that(const struct sl_served *served, const struct sl_model_spec *spec)
{
        return sl_served_is_ready(served) && !served->is_shape && sl_spec_same(&served->spec->spec, spec);
}

/* Its old workers wait no longer for those of others. */
static void leave_group(struct sl_served *served)
{
        if (served->want.group && served->model && served->model->crew)
                sl_crew_hold(served->model->crew, false);
        served->want.group = 0;
}

static void note_want(struct sl_registry *r, struct sl_served *served, uint64_t number, enum sl_want_origin origin)
{
        served->want.number = number;
        served->want.origin = origin;
        served->want.since_ns = sl_clock_ns();
        leave_group(served);
        sl_askers_answer(r, served, true, -ECANCELED, "it is wanted again");
}

int sl_want(struct sl_registry *r, const struct sl_model_spec *spec, bool again, enum sl_want_origin origin,
        struct sl_served **ret_served, struct sl_error *error)
{
        struct sl_served *served = sl_names_find(r, spec->name);
        bool is_new = !served;

        if (is_new)
                served = sl_names_take(r, spec->name);
        if (!served)
                return sl_error_set(error, ENOSPC, "no room for \"%s\": %u models are the limit", spec->name, SL_CATALOGUE_MODELS);
        bool is_same = !is_new && is_wanted_already(served, spec, again);
        bool is_back = !is_new && !is_same && !again && serves_that(served, spec);
        bool is_resized = is_same && !sl_worker_set_equal(&served->want.spec->spec.workers, &spec->workers);
        bool is_freed = is_same && spec->path && served->want.spec->spec.workers_free != spec->workers_free;
        struct sl_own_spec *before = sl_own_spec_hold(served->want.spec);
        int result = want_spec(r, served, spec, error);
        if (result < 0) {
                if (is_new)
                        sl_names_drop(r, served);
                sl_own_spec_free(before);
                return result;
        }
        if (!is_same) {
                note_want(r, served, is_back ? served->serves : sl_want_number(r), origin);
                served->want.anew = again;
        }
        if (is_back)
                served->why[0] = 0;
        sl_want_workers_again(r, served);
        if (is_freed) /* its own are as many as before, those of its sizes may not be */
                served->want.workers_number = sl_want_number(r);
        if (!is_same || is_resized)
                want_workers_of_file(r, served, served->want.spec);
        if (before && before->file != served->want.spec->file)
                want_workers_of_file(r, served, before);
        sl_own_spec_free(before);
        sl_news_publish(r, served);
        *ret_served = served;
        return 0;
}

int sl_want_refused(struct sl_registry *r, const struct sl_model_spec *spec)
{
        struct sl_served *served = sl_names_find(r, spec->name);
        struct sl_error error;

        if (!served)
                served = sl_names_take(r, spec->name);
        if (!served)
                return -ENOSPC;
        if (served->ensemble || served->load || (served->want.number && served->failed != served->want.number))
                return 0;
        if (want_spec(r, served, spec, &error) < 0)
                return -ENOMEM;
        note_want(r, served, sl_want_number(r), SL_WANT_REPOSITORY);
        served->failed = served->want.number;
        sl_error_fit(spec->refused, served->why, sizeof(served->why));
        served->want.spec->spec.refused = served->why;
        sl_news_publish(r, served);
        return 0;
}

void sl_want_nothing(struct sl_registry *r, struct sl_served *served, enum sl_want_origin origin, const char *why)
{
        sl_names_wake(r, served);
        served->want.number = 0;
        served->want.origin = origin;
        served->want.since_ns = sl_clock_ns();
        served->want.why = why;
        sl_requested_end(served);
        leave_group(served);
        want_workers_of_file(r, served, served->want.spec);
        sl_askers_answer(r, served, false, -ECANCELED, why);
}
