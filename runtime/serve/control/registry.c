/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include "account.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "change.h"
#include "crew.h"
#include "ensemble.h"
#include "lets.h"
#include "listing.h"
#include "loads.h"
#include "merger.h"
#include "model.h"
#include "names.h"
#include "news.h"
#include "plan.h"
#include "registry_state.h"
#include "resize.h"
#include "serving.h"
#include "sizes.h"
#include "standing.h"

#include "cores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORES_LOOK_NS (500 * SL_NS_PER_MS)

int sl_registry_new(const struct sl_registry_options *options, struct sl_registry **ret_registry)
{
        struct sl_registry *registry = calloc(1, sizeof(*registry));

        if (!registry)
                return -ENOMEM;
        registry->options = *options;
        registry->due_ns = UINT64_MAX;
        if (sl_lets_new(&options->runtime->worker_cpus, &options->runtime->dispatcher_cpus, options->usable_cores, options->stats,
                    &registry->lets) < 0 ||
                sl_merger_new(registry, &registry->merger) < 0) {
                sl_lets_free(registry->lets);
                free(registry);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                registry->served[i].index = i;
        *ret_registry = registry;
        return 0;
}

static const struct sl_served *ensemble_with(const struct sl_registry *r, const char *member)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_served *served = &r->served[i];

                if (served->state == SL_SERVED_NONE || served->state == SL_SERVED_DRAINING || served->state == SL_SERVED_FAILED)
                        continue;
                for (uint32_t m = 0; m < served->own.spec.n_members; m++)
                        if (strcmp(served->own.members[m], member) == 0)
                                return served;
        }
        return NULL;
}

static bool needs_load(const struct sl_served *served)
{
        return served->own.spec.path && !served->load && !sl_news_is_due(served) &&
               (served->state == SL_SERVED_WAITING || (served->state == SL_SERVED_READY && served->replace));
}

static bool needs_build(const struct sl_served *served)
{
        return !served->own.spec.path && !sl_news_is_due(served) &&
               (served->state == SL_SERVED_WAITING || (served->state == SL_SERVED_READY && served->replace));
}

/* What no user has asked for goes first, then users take turns. */
static uint64_t load_turn(const struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_account *account = sl_names_account(r, served);

        return account ? account->load_turn : 0;
}

/* What is beyond the rate of its user waits. */
static bool is_due(const struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_account *account = sl_names_account(r, served);
        uint64_t due_ns = account ? account->compile_due_ns : 0;

        return !account || sl_share_rate(&due_ns, r->options.runtime->uid_shapes, sl_clock_ns());
}

/* Whose file another name has loaded gets that model, which may take names out of the table. */
static void follow_twins(struct sl_registry *r)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (needs_load(&r->served[i]))
                        (void)sl_loads_follow(r, &r->served[i]);
}

static struct sl_served *next_to_load(struct sl_registry *r)
{
        struct sl_served *next = NULL;

        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *served = &r->served[i];

                if (needs_load(served) && is_due(r, served) && !sl_sizes_base_comes(r, served) && !sl_loads_has_twin(r, served) &&
                        (!next || load_turn(r, served) < load_turn(r, next)))
                        next = served;
        }
        return next;
}

/* Who waits for a process that starts lets others go ahead, and has its turn again before anybody new. */
static void take_turns(struct sl_registry *r)
{
        uint64_t now_ns = sl_clock_ns();

        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                sl_loads_step_aside(r, &r->served[i], now_ns);
                if (sl_loads_wants_turn(&r->served[i]))
                        sl_loads_advance(r, &r->served[i]);
        }
}

static void start_loads(struct sl_registry *r)
{
        take_turns(r);
        while (r->loads < r->options.runtime->compile_jobs) {
                struct sl_served *served;
                struct sl_account *account;

                follow_twins(r);
                served = next_to_load(r);
                if (!served)
                        return;
                account = sl_names_account(r, served);
                if (account) {
                        account->load_turn = ++r->load_turn;
                        sl_share_rate(&account->compile_due_ns, r->options.runtime->uid_shapes, sl_clock_ns());
                }
                sl_loads_start(r, served);
        }
}

static void relieve_workers(struct sl_registry *r)
{
        uint64_t now_ns = sl_clock_ns();

        r->due_ns = UINT64_MAX;
        for (struct sl_model *model = r->loaded; model; model = model->next_loaded) {
                bool serves = model->crew && model->refs;
                uint64_t due_ns = serves ? sl_crew_relieve(model->crew, now_ns) : UINT64_MAX;

                r->due_ns = due_ns < r->due_ns ? due_ns : r->due_ns;
        }
}

/* Behind relieve_workers(), which says when workers are to be looked at. */
static void look_at_loads(struct sl_registry *r)
{
        uint64_t now_ns = sl_clock_ns();

        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                uint64_t due_ns = sl_loads_look(r, &r->served[i], now_ns);

                r->due_ns = due_ns < r->due_ns ? due_ns : r->due_ns;
        }
}

void sl_registry_kill_workers(struct sl_registry *r)
{
        for (struct sl_model *model = r->loaded; model; model = model->next_loaded)
                if (model->crew)
                        sl_crew_kill(model->crew);
}

uint64_t sl_registry_due_ns(const struct sl_registry *r)
{
        return r->due_ns;
}

static void report_cores(struct sl_registry *r, const cpu_set_t *before)
{
        struct sl_fields fields = {0};
        char now_text[128], before_text[128];

        sl_fields_add(&fields, "worker_cores", sl_cores_text(&r->lets->allowed, now_text, sizeof(now_text)));
        sl_fields_add(&fields, "before", sl_cores_text(before, before_text, sizeof(before_text)));
        sl_account_log(r->options.accounts, NULL, 1, "cores-changed", fields.text);
}

/* Whoever manages the host takes cores away while something serves, or gives them back: workers move to those that there are. */
static void look_at_cores(struct sl_registry *r)
{
        cpu_set_t usable, before = r->lets->allowed;
        uint64_t now_ns = sl_clock_ns();

        if (now_ns - r->looked_ns < CORES_LOOK_NS)
                return;
        r->looked_ns = now_ns;
        if (sched_getaffinity(0, sizeof(usable), &usable) < 0 || !sl_lets_update(r->lets, &usable))
                return;
        report_cores(r, &before);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                r->served[i].resize |= r->served[i].state == SL_SERVED_READY && r->served[i].own.spec.path;
}

void sl_registry_advance(struct sl_registry *r)
{
        look_at_cores(r);
        relieve_workers(r);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->served[i].load && r->served[i].compiled)
                        sl_loads_advance(r, &r->served[i]);
        start_loads(r);
        look_at_loads(r);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (sl_resize_needed(&r->served[i]))
                        sl_resize_advance(r, &r->served[i]);
        sl_change_advance(r);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (needs_build(&r->served[i]))
                        sl_serving_build(r, &r->served[i]);
        sl_merger_advance(r->merger);
        sl_news_advance(r);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                sl_standing_show(r, &r->served[i]);
        if (sl_listing_is_behind(r)) {
                sl_listing_catch_up(r);
                sl_registry_advance(r);
        }
}

bool sl_registry_owns(uint64_t token)
{
        return token & SL_LOADS_TOKEN || token == SL_MERGER_TOKEN;
}

void sl_registry_compiled(struct sl_registry *r, uint64_t token)
{
        if (token != SL_MERGER_TOKEN)
                sl_loads_compiled(r, token);
        sl_registry_advance(r);
}

bool sl_registry_busy(const struct sl_registry *r, uint32_t *ret_failed)
{
        bool busy = false;

        *ret_failed = r->n_left_out;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_served *served = &r->served[i];

                busy |= served->load || served->resize || sl_news_is_due(served) || served->state == SL_SERVED_WAITING ||
                        served->state == SL_SERVED_LOADING;
                *ret_failed += served->state == SL_SERVED_FAILED;
        }
        return busy;
}

bool sl_registry_has_failed(struct sl_registry *r, const char *name)
{
        const struct sl_served *served = sl_names_find(r, name);

        return served && served->state == SL_SERVED_FAILED;
}

static bool takes_size(const struct sl_served *served, const char *name)
{
        const struct sl_dim_sizes *sizes = &served->own.spec.lowering.shapes;

        for (uint32_t i = 0; i < sizes->n; i++)
                if (!strcmp(sl_dim_sizes_name(sizes, i), name))
                        return served->model->info->sizes_taken & 1u << i;
        return false;
}

bool sl_registry_takes_size(const struct sl_registry *r, const char *name)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->served[i].state == SL_SERVED_READY && r->served[i].model && takes_size(&r->served[i], name))
                        return true;
        return false;
}

void sl_registry_event(struct sl_registry *r, const struct sl_event *event)
{
        switch ((enum sl_event_kind)event->kind) {
        case SL_EVENT_ENSEMBLE_RETIRED:
                sl_serving_retired(r, event->pointer);
                sl_registry_advance(r);
                break;
        case SL_EVENT_MODEL_GONE:
                sl_serving_unload(r, event->pointer);
                break;
        case SL_EVENT_WORKER_GONE:
                relieve_workers(r); /* which may not have heard yet that it has ended */
                sl_crew_gone(((struct sl_model *)event->pointer)->crew, event->worker);
                sl_registry_advance(r);
                break;
        case SL_EVENT_BLOCKS_GONE:
                sl_merger_blocks_gone(r->merger, event->pointer);
                sl_registry_advance(r);
                break;
        case SL_EVENT_MARKED:
                sl_news_marked(r);
                sl_registry_advance(r);
                break;
        case SL_EVENT_SHAPE_WANTED:
                sl_sizes_wanted(r, event->pointer, event->sizes, event->uid);
                sl_registry_advance(r);
                break;
        case SL_EVENT_SHAPE_UNWANTED:
                sl_sizes_unwanted(r, event->pointer);
                break;
        default:
                break;
        }
}

const cpu_set_t *sl_registry_worker_cores(const struct sl_registry *r)
{
        return &r->lets->allowed;
}

int sl_registry_sync(struct sl_registry *r, struct sl_error *error)
{
        struct sl_listing listing;
        int result = sl_listing_read(r, &listing, error);

        if (result < 0)
                return result;
        sl_listing_follow(r, &listing, NULL);
        sl_registry_advance(r);
        return 0;
}

static int want_members(
        struct sl_registry *r, const struct sl_model_spec *spec, const struct sl_listing *listing, struct sl_error *error)
{
        for (uint32_t m = 0; m < spec->n_members; m++) {
                const struct sl_model_spec *member = sl_listing_find(listing, spec->members[m]);
                const struct sl_served *there = sl_names_find(r, spec->members[m]);
                struct sl_served *served;
                int result = 0;

                if (!member)
                        return sl_error_set(error, ENOENT, "ensemble \"%s\": member \"%s\" is not in the repository", spec->name,
                                spec->members[m]);
                if (!member->refused && (!there || there->state == SL_SERVED_FAILED))
                        result = sl_names_want(r, member, false, &served, error);
                if (result < 0)
                        return result;
        }
        return 0;
}

/* Everybody who asks gets an answer: one at a time may wait for it. */
static int check_asker(struct sl_registry *r, const char *name, struct sl_error *error)
{
        const struct sl_served *served = sl_names_find(r, name);

        return served && served->asker ? sl_error_set(error, EBUSY, "\"%s\" is being loaded or unloaded", name) : 0;
}

int sl_registry_load(struct sl_registry *r, const char *name, bool again, uint64_t asker, struct sl_error *error)
{
        const struct sl_model_spec *spec;
        struct sl_listing listing;
        struct sl_served *served;
        int result = sl_listing_read(r, &listing, error);

        if (result < 0)
                return result;
        spec = sl_listing_find(&listing, name);
        if (!spec)
                return sl_error_set(error, ENOENT, "no model \"%s\" in the repository", name);
        if (spec->refused)
                return sl_error_set(error, EINVAL, "\"%s\" cannot be served: %s", name, spec->refused);
        result = check_asker(r, name, error);
        if (result < 0)
                return result;
        result = want_members(r, spec, &listing, error);
        if (result == 0)
                result = sl_names_want(r, spec, again, &served, error);
        if (result < 0)
                return result;
        sl_listing_follow(r, &listing, name);
        if (served->state == SL_SERVED_READY && !served->replace && !served->resize)
                return sl_error_set(error, EEXIST, "\"%s\" is loaded already, and has not changed", name);
        served->asker = asker;
        sl_registry_advance(r);
        return 0;
}

int sl_registry_unload(struct sl_registry *r, const char *name, uint64_t asker, struct sl_error *error)
{
        struct sl_served *served = sl_names_find(r, name);
        const struct sl_served *user;

        if (!served)
                return sl_error_set(error, ENOENT, "no model \"%s\" is loaded", name);
        user = ensemble_with(r, name);
        if (user)
                return sl_error_set(error, EBUSY, "\"%s\" is a member of ensemble \"%s\": unload that first", name, user->own.name);
        if (sl_loads_give_up(r, served))
                sl_serving_fail(r, served, -ECANCELED, "it was unloaded while it was being loaded");
        if (served->asker || (served->state != SL_SERVED_FAILED && (served->state != SL_SERVED_READY || served->load)))
                return sl_error_set(error, EBUSY, "\"%s\" is being loaded or unloaded", name);
        served->asker = asker;
        if (served->state == SL_SERVED_FAILED)
                sl_serving_clear(r, served);
        else
                sl_serving_withdraw(r, served);
        return 0;
}

struct sl_registry *sl_registry_free(struct sl_registry *r)
{
        if (!r)
                return NULL;
        r->merger = sl_merger_free(r->merger);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *served = &r->served[i];

                sl_loads_cancel(r, served);
                sl_ensemble_free(served->ensemble);
                sl_plan_free(served->base);
                free(served->served_spec);
        }
        while (r->loaded)
                sl_serving_unload(r, r->loaded);
        sl_change_free(r->change);
        sl_change_free(r->in_force);
        sl_lets_free(r->lets);
        free(r);
        return NULL;
}
