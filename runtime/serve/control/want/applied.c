/* SPDX-License-Identifier: Apache-2.0 */
#include "applied.h"

#include "account.h"
#include "answers.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "crew.h"
#include "draft.h"
#include "fleet.h"
#include "model.h"
#include "names.h"
#include "registry_state.h"
#include "want.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASKERS_MAX 64u

/* What is under way. */
struct sl_applied_group {
        uint64_t number, begun_ns, cores;
        bool atomic, released;
        bool by_scaler; /* the autoscaler has asked for it */
        struct sl_draft draft; /* what it changes */
        uint32_t n_askers;
        uint64_t askers[ASKERS_MAX];
        int status; /* of the first model that stays as it is */
        struct sl_error why;
};

/* ---- what an allocation may say ---- */

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

static int check_allotment(struct sl_registry *r, struct sl_allotment *allotment, struct sl_error *error)
{
        const struct sl_served *served = sl_names_find(r, allotment->model);
        int result;

        if (!served)
                return sl_error_set(error, EINVAL, "no model \"%s\" is loaded", allotment->model);
        if (sl_served_spec(served)->refused)
                return sl_error_set(error, EINVAL, "model \"%s\": %s", allotment->model, sl_served_spec(served)->refused);
        if (!sl_served_spec(served)->path)
                return sl_error_set(error, EINVAL, "\"%s\" is an ensemble: its members have workers", allotment->model);
        if (!sl_served_is_ready(served) || !served->model || !served->want.number || served->load)
                return sl_error_set(error, EBUSY, "model \"%s\" is being loaded or unloaded, or does not serve", allotment->model);
        if (!served->model->crew)
                return sl_error_set(
                        error, EINVAL, "model \"%s\" has open dimensions, and no workers before they have sizes", allotment->model);
        sl_worker_set_sort(&allotment->set);
        result = fallback_check(served->model->crew, &allotment->set, error);
        if (result == 0)
                result = sl_crew_check(served->model->crew, &allotment->set, error);
        return result < 0 ? sl_error_prefix(error, result, "model \"%s\"", allotment->model) : 0;
}

static int check_draft(struct sl_registry *r, struct sl_draft *draft, struct sl_error *error)
{
        int result = 0;

        for (struct sl_allotment *a = draft->allotments; a && result == 0; a = a->next)
                result = check_allotment(r, a, error);
        return result;
}

/* ---- the group ---- */

bool sl_applied_group(const struct sl_registry *r, struct sl_fleet_group *ret_group)
{
        if (!r->group)
                return false;
        *ret_group =
                (struct sl_fleet_group){.number = r->group->number, .atomic = r->group->atomic, .released = r->group->released};
        return true;
}

bool sl_applied_holds(const struct sl_registry *r, const struct sl_served *served)
{
        return r->group && r->group->atomic && !r->group->released && served->want.group == r->group->number;
}

static void report(struct sl_registry *r, const struct sl_applied_group *group)
{
        struct sl_fields fields = {0};
        uint32_t n_models = 0, n_workers = 0;

        for (const struct sl_allotment *a = group->draft.allotments; a; a = a->next) {
                n_models++;
                n_workers += a->set.n;
        }
        sl_fields_add_number(&fields, "models", n_models);
        sl_fields_add_number(&fields, "workers", n_workers);
        sl_fields_add_number(&fields, "duration_ms", (long long)((sl_clock_ns() - group->begun_ns) / SL_NS_PER_MS));
        if (group->status < 0)
                sl_fields_add(&fields, "cause", group->why.text);
        sl_account_log(r->options.accounts, NULL, group->status < 0 && group->status != -ECANCELED ? 0 : 2,
                group->status < 0 ? "allocation-not-applied" : "allocation-applied", fields.text);
}

static void end_group(struct sl_registry *r, const char *text)
{
        struct sl_applied_group *group = r->group;

        r->group = NULL;
        for (uint32_t i = 0; i < r->n_awake; i++)
                if (sl_awake_at(r, i)->want.group == group->number)
                        sl_awake_at(r, i)->want.group = 0;
        if (group->draft.allotments && group->atomic)
                report(r, group);
        for (uint32_t i = 0; i < group->n_askers; i++)
                sl_answers_add(r, group->askers[i], group->status, group->status < 0 ? group->why.text : text);
        sl_draft_clear(&group->draft);
        free(group);
}

/* One whose new workers are all ready is over with this, and one that the configuration has asked for goes on without its name. */
static int end_other_group(struct sl_registry *r, bool atomic, struct sl_error *error)
{
        if (!r->group || (r->group->atomic == atomic && !r->group->released))
                return 0;
        if (r->group->atomic && !r->group->released)
                return sl_error_set(error, EBUSY, "an allocation is being applied");
        if (!r->group->atomic && r->group->status == 0)
                r->group->status = sl_error_set(&r->group->why, ECANCELED, "another allocation takes its place");
        end_group(r, "applied");
        return 0;
}

/* What the autoscaler has under way gives way to an administrator: as it was, or as it is about to be. */
static void end_scalers_group(struct sl_registry *r)
{
        if (!r->group || !r->group->by_scaler)
                return;
        if (r->group->released) {
                end_group(r, "applied");
                return;
        }
        r->group->status = sl_error_set(&r->group->why, ECANCELED, "an administrator has asked for workers");
        sl_applied_undo(r);
}

/* Of the same kind, which can be undone as a whole: there is one, with a place for one more who waits. */
static int join_group(struct sl_registry *r, bool atomic, struct sl_error *error)
{
        int result = end_other_group(r, atomic, error);

        if (result < 0)
                return result;
        if (!r->group) {
                r->group = calloc(1, sizeof(*r->group));
                if (!r->group)
                        return sl_error_set(error, ENOMEM, "no memory to apply an allocation");
                r->group->begun_ns = sl_clock_ns();
                r->group->cores = r->cores;
                r->group->number = sl_want_number(r);
                r->group->atomic = atomic;
        }
        if (r->group->n_askers == ASKERS_MAX)
                return sl_error_set(
                        error, EBUSY, "%u wait already for the allocation that is being applied, which is the limit", ASKERS_MAX);
        return 0;
}

/* Nothing can fail any more: who asks is answered with the group, and not before. */
static void wait_for_group(struct sl_registry *r, uint64_t asker)
{
        r->group->askers[r->group->n_askers++] = asker;
}

/* One that nobody waits for has just been made. */
static void leave_group(struct sl_registry *r)
{
        if (r->group->n_askers)
                return;
        sl_draft_clear(&r->group->draft);
        free(r->group);
        r->group = NULL;
}

/* All names of the model, which shares its workers, want them; the named one is of the group. */
static void want_workers(struct sl_registry *r, struct sl_served *named, uint64_t group)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                if (served == named || (served->used && served->want.number && served->model && served->model == named->model))
                        sl_want_workers_again(r, served);
        }
        named->want.group = group;
}

/* What was in force before the group is kept until that has settled. */
static int keep_before(struct sl_registry *r, const struct sl_allotment *wanted, struct sl_error *error)
{
        const struct sl_allotment *in_force = sl_draft_find(r->in_force, wanted->model);
        bool is_new = !sl_draft_find(&r->group->draft, wanted->model);
        struct sl_allotment *of_group = sl_draft_add(&r->group->draft, wanted->model);

        if (!of_group)
                return sl_error_set(error, ENOMEM, "model \"%s\": out of memory", wanted->model);
        if (!is_new)
                return 0;
        of_group->had = in_force;
        of_group->was_by_scaler = in_force && in_force->by_scaler;
        of_group->set = in_force ? in_force->set : of_group->set;
        of_group->before = of_group->set;
        return 0;
}

static void put_in_force(struct sl_registry *r, struct sl_allotment *wanted)
{
        sl_draft_find(&r->group->draft, wanted->model)->set = wanted->set;
        sl_draft_put(r->in_force, wanted);
        want_workers(r, sl_names_find(r, wanted->model), r->group->number);
}

/* What the autoscaler may not do. */
static int check_scale(struct sl_registry *r, const struct sl_draft *draft, struct sl_error *error)
{
        if (r->group)
                return sl_error_set(error, EBUSY, "an allocation is being applied");
        for (const struct sl_allotment *a = draft->allotments; a; a = a->next)
                if (sl_applied_is_pinned(r, sl_names_find(r, a->model)))
                        return sl_error_set(error, EPERM, "model \"%s\": an administrator has said which workers it has", a->model);
        return 0;
}

static int begin_draft(struct sl_registry *r, struct sl_draft *draft, bool by_scaler, uint64_t asker, struct sl_error *error)
{
        struct sl_allotment *wanted;
        int result = check_draft(r, draft, error);

        if (result == 0 && by_scaler)
                result = check_scale(r, draft, error);
        else if (result == 0)
                end_scalers_group(r);
        if (result == 0 && !r->in_force) {
                r->in_force = calloc(1, sizeof(*r->in_force));
                result = r->in_force ? 0 : sl_error_set(error, ENOMEM, "no memory to apply an allocation");
        }
        if (result == 0)
                result = join_group(r, true, error);
        if (result < 0)
                return result;
        for (const struct sl_allotment *a = draft->allotments; a && result == 0; a = a->next)
                result = keep_before(r, a, error);
        if (result < 0) {
                leave_group(r);
                return result;
        }
        r->group->by_scaler = by_scaler;
        wait_for_group(r, asker);
        while ((wanted = sl_draft_take(draft))) {
                wanted->by_scaler = by_scaler;
                put_in_force(r, wanted);
        }
        return 0;
}

int sl_applied_begin(struct sl_registry *r, struct sl_draft *draft, uint64_t asker, struct sl_error *error)
{
        int result = begin_draft(r, draft, false, asker, error);

        sl_draft_free(draft);
        return result;
}

int sl_applied_scale(struct sl_registry *r, struct sl_draft *draft, struct sl_error *error)
{
        int result = begin_draft(r, draft, true, 0, error);

        sl_draft_free(draft);
        return result;
}

bool sl_applied_is_pinned(struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_allotment *allotment = sl_want_applied(r, served);

        return allotment && !allotment->by_scaler;
}

int sl_applied_end(struct sl_registry *r, uint64_t asker, struct sl_error *error)
{
        int result;

        end_scalers_group(r);
        result = join_group(r, false, error);
        if (result < 0)
                return result;
        wait_for_group(r, asker);
        r->in_force = sl_draft_free(r->in_force);
        for (uint32_t i = 0; i < r->n_served; i++) {
                struct sl_served *served = &r->served[i];

                if (!served->used || !served->want.number)
                        continue;
                sl_want_workers_again(r, served);
                if (sl_served_is_ready(served) && served->model && !served->is_shape)
                        served->want.group = r->group->number;
        }
        return 0;
}

void sl_applied_note_failure(struct sl_registry *r, const struct sl_served *served, int status, const char *text)
{
        struct sl_applied_group *group = r->group;

        if (!group || served->want.group != group->number || group->status)
                return;
        group->status = status;
        if (group->atomic)
                sl_error_set(&group->why, -status, "model \"%s\": %s", served->name, text);
        else
                sl_error_set(&group->why, -status, "%s", text);
}

void sl_applied_release(struct sl_registry *r)
{
        r->group->released = true;
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                if (served->want.group == r->group->number && served->model && served->model->crew)
                        sl_crew_hold(served->model->crew, false);
        }
}

/* It has the workers again that it had, which is no other want. */
static void undo_workers(struct sl_registry *r, struct sl_served *served)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *other = sl_awake_at(r, i);

                if (other != served && (!other->used || !other->want.number || other->model != served->model))
                        continue;
                sl_want_workers_again(r, other);
                other->has_workers = r->group->cores == r->cores ? other->want.workers_number : 0;
                other->failed_workers = 0;
                other->changing = false;
        }
}

void sl_applied_undo(struct sl_registry *r)
{
        for (const struct sl_allotment *a = r->group->draft.allotments; a; a = a->next) {
                struct sl_served *served = sl_names_find(r, a->model);

                struct sl_allotment *in_force = sl_draft_find(r->in_force, a->model);

                if (a->had) {
                        in_force->set = a->before;
                        in_force->by_scaler = a->was_by_scaler;
                } else {
                        sl_draft_drop(r->in_force, a->model);
                }
                if (!served || served->want.group != r->group->number || !served->model || !served->model->crew)
                        continue;
                sl_crew_undo(served->model->crew);
                undo_workers(r, served);
        }
        end_group(r, "");
}

void sl_applied_settle(struct sl_registry *r)
{
        end_group(r, r->group->atomic ? "applied" : "as configured");
}

void sl_applied_free(struct sl_registry *r)
{
        if (r->group) {
                sl_draft_clear(&r->group->draft);
                free(r->group);
        }
        r->group = NULL;
        r->in_force = sl_draft_free(r->in_force);
}
