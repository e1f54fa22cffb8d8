/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include "account.h"
#include "act.h"
#include "answers.h"
#include "applied.h"
#include "askers.h"
#include "autoscale.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "compilers.h"
#include "crew.h"
#include "draft.h"
#include "ensemble.h"
#include "history_file.h"
#include "lets.h"
#include "listing.h"
#include "loads.h"
#include "merger.h"
#include "mitigation.h"
#include "model.h"
#include "names.h"
#include "news.h"
#include "orders.h"
#include "plan.h"
#include "registry_state.h"
#include "requested.h"
#include "serving.h"
#include "sizes.h"
#include "staffing.h"
#include "standing.h"
#include "tasks.h"
#include "want.h"

#include "cores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORES_LOOK_NS (500 * SL_NS_PER_MS)
#define ORDERS_A_TURN 16u
#define LOG_DEBUG     3            /* as sl_runtime_log_fn counts */
#define ENDS_LOOK_NS  SL_NS_PER_MS /* at workers whose threads end: of that nobody hears */

static int no_memory(struct sl_error *error)
{
        return sl_error_set(error, ENOMEM, "no memory for the table of %u models", SL_CATALOGUE_MODELS);
}

int sl_registry_new(const struct sl_registry_options *options, struct sl_registry **ret_registry, struct sl_error *error)
{
        struct sl_registry *registry = calloc(1, sizeof(*registry));
        int r = 0;

        if (!registry)
                return no_memory(error);
        registry->options = *options;
        registry->due_ns = UINT64_MAX;
        registry->catalogue_room = SL_CATALOGUE_ROOM_FIRST;
        if (sl_lets_new(&options->runtime->worker_cpus, &options->runtime->dispatcher_cpus, options->usable_cores, options->stats,
                    &registry->lets) < 0 ||
                sl_tasks_new(registry, &registry->tasks) < 0 || sl_compilers_new(options->control, &registry->compilers) < 0 ||
                sl_orders_new(options->runtime, options->control, &registry->orders) < 0 ||
                sl_merger_new(registry, &registry->merger) < 0 || sl_mitigation_new(registry, &registry->mitigation) < 0 ||
                sl_autoscale_new(registry, &registry->autoscale) < 0) {
                sl_mitigation_free(registry->mitigation);
                sl_merger_free(registry->merger);
                sl_orders_free(registry->orders);
                sl_compilers_free(registry->compilers);
                sl_tasks_free(registry->tasks);
                sl_lets_free(registry->lets);
                free(registry);
                return no_memory(error);
        }
        if (options->runtime->history)
                r = sl_history_file_new(options->runtime->history, &registry->history, error);
        if (r < 0) {
                sl_registry_free(registry);
                return r;
        }
        sl_act_count(registry);
        *ret_registry = registry;
        return 0;
}

static const struct sl_served *ensemble_with(const struct sl_registry *r, const char *member)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                const struct sl_served *served = sl_awake_at(r, i);

                if (!served->used || !served->want.number || sl_served_state(served) == SL_SERVED_FAILED)
                        continue;
                for (uint32_t m = 0; m < served->want.spec->spec.n_members; m++)
                        if (strcmp(served->want.spec->spec.members[m], member) == 0)
                                return served;
        }
        return NULL;
}

static void relieve_workers(struct sl_registry *r)
{
        uint64_t now_ns = sl_clock_ns();

        r->due_ns = UINT64_MAX;
        for (struct sl_model *model = r->loaded; model; model = model->next_loaded) {
                bool serves = model->crew && model->refs;
                uint64_t due_ns = serves ? sl_crew_relieve(model->crew, now_ns) : UINT64_MAX;

                if (model->crew)
                        (void)sl_crew_bury(model->crew);
                r->due_ns = due_ns < r->due_ns ? due_ns : r->due_ns;
        }
}

static bool has_ending(const struct sl_registry *r)
{
        for (const struct sl_model *model = r->loaded; model; model = model->next_loaded)
                if (model->crew && model->crew->n_gone)
                        return true;
        return r->ending;
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
        sl_fields_add(&fields, "worker_cores_before", sl_cores_text(before, before_text, sizeof(before_text)));
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
        r->cores++;
        report_cores(r, &before);
        for (uint32_t i = 0; i < r->n_awake; i++)
                sl_staffing_again(sl_awake_at(r, i));
}

static void hear_staff(struct sl_registry *r)
{
        for (uint32_t i = 0; i < r->n_awake; i++)
                if (sl_awake_at(r, i)->changing)
                        sl_staffing_hear(r, sl_awake_at(r, i));
}

/* What is wanted of the name has not come, and has not failed either; or a change of its workers is under way. */
static bool is_on_its_way(const struct sl_served *served)
{
        enum sl_served_state state = sl_served_state(served);

        return served->load || sl_served_is_changing(served) || sl_news_is_due(served) || state == SL_SERVED_WAITING ||
               state == SL_SERVED_LOADING;
}

static bool is_busy(const struct sl_registry *r)
{
        for (uint32_t i = 0; i < r->n_awake; i++)
                if (is_on_its_way(sl_awake_at(r, i)))
                        return true;
        return r->group || sl_orders_wait(r->orders);
}

/* What is told may be replaced at once; nobody is answered before that. */
static void act_and_tell(struct sl_registry *r)
{
        bool rests = sl_act(r);

        if (sl_news_tell_ensembles(r))
                rests = sl_act(r);
        if (sl_news_tell_others(r))
                rests = sl_act(r);
        if (rests)
                sl_news_answer(r);
}

/* ---- orders ---- */

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
                if (!member->refused && (!there || sl_served_state(there) == SL_SERVED_FAILED))
                        result = sl_want(r, member, false, SL_WANT_ADMINISTRATOR, &served, error);
                if (result < 0)
                        return result;
        }
        return 0;
}

static int order_sync(struct sl_registry *r, const struct sl_listing *listing)
{
        sl_listing_follow(r, listing, NULL);
        sl_tasks_follow(r->tasks);
        return 0;
}

static int order_load(struct sl_registry *r, const struct sl_order *order, const struct sl_listing *listing, struct sl_error *error)
{
        const struct sl_model_spec *spec = sl_listing_find(listing, order->name);
        struct sl_served *served;
        int result;

        if (!spec && sl_tasks_has(r->tasks, order->name))
                return sl_error_set(error, EINVAL, "\"%s\" is a task: its variants are loaded by their own names", order->name);
        if (!spec)
                return sl_error_set(error, ENOENT, "no model \"%s\" in the repository", order->name);
        if (spec->refused)
                return sl_error_set(error, EINVAL, "\"%s\" cannot be served: %s", order->name, spec->refused);
        result = want_members(r, spec, listing, error);
        if (result == 0)
                result = sl_want(r, spec, order->kind == SL_ORDER_RELOAD, SL_WANT_ADMINISTRATOR, &served, error);
        if (result < 0)
                return result;
        sl_listing_follow(r, listing, order->name);
        if (sl_served_is_ready(served) && served->serves == served->want.number && !sl_served_is_changing(served))
                return sl_error_set(error, EEXIST, "\"%s\" is loaded already, and has not changed", order->name);
        result = sl_askers_add(served, order->asker, false, error);
        if (result == 0 && spec->on_request && !sl_served_is_ready(served))
                result = sl_requested_ask(r, served, SL_ASKED_BY_NOBODY, error);
        return result;
}

static int order_unload(struct sl_registry *r, const struct sl_order *order, struct sl_error *error)
{
        struct sl_served *served = sl_names_find(r, order->name);
        const struct sl_served *user;
        int result;

        if (!served)
                return sl_error_set(error, ENOENT, "no model \"%s\" is loaded", order->name);
        user = ensemble_with(r, order->name);
        if (user)
                return sl_error_set(
                        error, EBUSY, "\"%s\" is a member of ensemble \"%s\": unload that first", order->name, user->name);
        result = sl_askers_add(served, order->asker, true, error);
        if (result == 0)
                sl_want_nothing(r, served, SL_WANT_ADMINISTRATOR, "it was unloaded");
        return result;
}

static int order_configure(
        struct sl_registry *r, const struct sl_order *order, const struct sl_listing *listing, struct sl_error *error)
{
        int result = sl_applied_end(r, order->asker, error);

        if (result == 0)
                sl_listing_follow(r, listing, NULL);
        return result;
}

/* It becomes a want, or is refused. */
static int want_order(struct sl_registry *r, struct sl_order *order, struct sl_error *error)
{
        const struct sl_scan_found *found = sl_orders_found(r->orders);

        if (order->scan && found->status < 0) {
                *error = found->error;
                return found->status;
        }
        switch (order->kind) {
        case SL_ORDER_SYNC:
                return order_sync(r, &found->listing);
        case SL_ORDER_LOAD:
        case SL_ORDER_RELOAD:
                return order_load(r, order, &found->listing, error);
        case SL_ORDER_UNLOAD:
                return order_unload(r, order, error);
        case SL_ORDER_APPLY:
                return sl_applied_begin(r, sl_take(order->draft), order->asker, error);
        case SL_ORDER_CONFIGURE:
                return order_configure(r, order, &found->listing, error);
        }
        return 0;
}

/* Whatever waits for no scan is wanted, a few a turn: what follows from it comes before the next of them, and so do the sockets. */
static void hear_orders(struct sl_registry *r)
{
        struct sl_order order;

        if (sl_orders_hear(r->orders) && sl_orders_found(r->orders)->status == 0)
                sl_listing_count(r, &sl_orders_found(r->orders)->listing);
        for (uint32_t i = 0; i < ORDERS_A_TURN && sl_orders_take(r->orders, &order); i++) {
                struct sl_error error = {""};
                int result = want_order(r, &order, &error);

                if (order.kind == SL_ORDER_SYNC)
                        r->options.synced(r->options.context, result, error.text);
                else if (result < 0)
                        r->options.refuse(r->options.context, order.asker, result, error.text);
        }
        if (sl_orders_are_ready(r->orders))
                r->due_ns = 0;
}

/* Hears what has happened, does what follows from it, shows it, and answers who has asked for it. */
void sl_registry_advance(struct sl_registry *r)
{
        uint64_t due_ns;

        look_at_cores(r);
        relieve_workers(r);
        hear_orders(r);
        sl_serving_bury(r);
        hear_staff(r);
        due_ns = sl_loads_hear(r);
        r->due_ns = due_ns < r->due_ns ? due_ns : r->due_ns;
        due_ns = sl_autoscale_look(r->autoscale);
        r->due_ns = due_ns < r->due_ns ? due_ns : r->due_ns;
        due_ns = sl_mitigation_look(r->mitigation);
        r->due_ns = due_ns < r->due_ns ? due_ns : r->due_ns;
        act_and_tell(r);
        sl_merger_advance(r->merger, is_busy(r));
        sl_news_mark(r);
        for (uint32_t i = 0; i < r->n_awake; i++)
                sl_standing_show(r, sl_awake_at(r, i));
        sl_tasks_show(r->tasks);
        sl_answers_send(r);
        sl_names_let_sleep(r);
        due_ns = has_ending(r) ? sl_clock_ns() + ENDS_LOOK_NS : UINT64_MAX;
        r->due_ns = due_ns < r->due_ns ? due_ns : r->due_ns;
}

bool sl_registry_owns(uint64_t token)
{
        return token & SL_LOADS_TOKEN || sl_merger_owns(token);
}

void sl_registry_compiled(struct sl_registry *r, uint64_t token)
{
        if (!sl_merger_owns(token))
                sl_loads_compiled(r, token);
        sl_registry_advance(r);
}

bool sl_registry_busy(const struct sl_registry *r, uint32_t *ret_failed)
{
        bool busy = is_busy(r);

        *ret_failed = r->n_left_out;
        for (uint32_t i = 0; i < r->n_served && !busy; i++)
                *ret_failed += sl_served_state(&r->served[i]) == SL_SERVED_FAILED;
        return busy;
}

bool sl_registry_has_failed(struct sl_registry *r, const char *name)
{
        const struct sl_served *served = sl_names_find(r, name);

        return served && sl_served_state(served) == SL_SERVED_FAILED;
}

static bool takes_size(const struct sl_served *served, const char *name)
{
        const struct sl_dim_sizes *sizes = &served->spec->spec.lowering.shapes;

        for (uint32_t i = 0; i < sizes->n; i++)
                if (!strcmp(sl_dim_sizes_name(sizes, i), name))
                        return served->model->info->sizes_taken & 1u << i;
        return false;
}

bool sl_registry_takes_size(const struct sl_registry *r, const char *name)
{
        for (uint32_t i = 0; i < r->n_awake; i++)
                if (sl_served_is_ready(sl_awake_at(r, i)) && sl_awake_at(r, i)->model && takes_size(sl_awake_at(r, i), name))
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
                sl_serving_gone(r, event->pointer);
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
        case SL_EVENT_OVERLOADED:
                sl_autoscale_hear(r->autoscale);
                sl_registry_advance(r);
                break;
        case SL_EVENT_SLOWED:
                sl_mitigation_hear(r->mitigation);
                sl_registry_advance(r);
                break;
        case SL_EVENT_SHAPE_WANTED:
                sl_sizes_wanted(r, event->pointer, event->sizes, event->uid);
                sl_registry_advance(r);
                break;
        case SL_EVENT_SHAPE_UNWANTED:
                sl_sizes_unwanted(r, event->pointer);
                sl_registry_advance(r);
                break;
        default:
                break;
        }
}

const cpu_set_t *sl_registry_worker_cores(const struct sl_registry *r)
{
        return &r->lets->allowed;
}

static void log_order(struct sl_registry *r, const struct sl_order *order)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "order", sl_order_name(order->kind));
        if (order->name[0])
                sl_fields_add(&fields, "model", order->name);
        sl_account_log(r->options.accounts, NULL, LOG_DEBUG, "order", fields.text);
}

static int add_order(struct sl_registry *r, struct sl_order *order, const char *name, struct sl_error *error)
{
        int result;

        if (name)
                snprintf(order->name, sizeof(order->name), "%s", name);
        result = sl_orders_add(r->orders, order, error);
        if (result < 0) {
                sl_draft_free(order->draft);
                return result;
        }
        log_order(r, order);
        sl_registry_advance(r);
        return 0;
}

int sl_registry_sync(struct sl_registry *r, struct sl_error *error)
{
        return add_order(r, &(struct sl_order){.kind = SL_ORDER_SYNC}, NULL, error);
}

int sl_registry_load(struct sl_registry *r, const char *name, bool again, uint64_t asker, struct sl_error *error)
{
        return add_order(r, &(struct sl_order){.kind = again ? SL_ORDER_RELOAD : SL_ORDER_LOAD, .asker = asker}, name, error);
}

int sl_registry_unload(struct sl_registry *r, const char *name, uint64_t asker, struct sl_error *error)
{
        return add_order(r, &(struct sl_order){.kind = SL_ORDER_UNLOAD, .asker = asker}, name, error);
}

int sl_registry_apply(struct sl_registry *r, struct sl_draft *draft, uint64_t asker, struct sl_error *error)
{
        return add_order(r, &(struct sl_order){.kind = draft ? SL_ORDER_APPLY : SL_ORDER_CONFIGURE, .asker = asker, .draft = draft},
                NULL, error);
}

int sl_registry_open(struct sl_registry *r, const char *name, uint32_t uid, struct sl_error *error)
{
        struct sl_served *served = sl_names_find(r, name);
        int result;

        if (!served || !served->want.number)
                return sl_error_set(error, ENOENT, "no model \"%s\"", name);
        if (sl_served_is_ready(served) || !served->want.spec->spec.on_request)
                return 0;
        result = sl_requested_ask(r, served, uid, error);
        sl_registry_advance(r);
        return result;
}

struct sl_registry *sl_registry_free(struct sl_registry *r)
{
        if (!r)
                return NULL;
        sl_orders_free(r->orders);
        sl_answers_drop(r);
        r->merger = sl_merger_free(r->merger);
        for (uint32_t i = 0; i < r->n_served; i++) {
                struct sl_served *served = &r->served[i];

                sl_loads_cancel(r, served);
                sl_ensemble_free(served->ensemble);
                sl_plan_free(served->base);
                sl_standby_end(&served->standby);
                sl_own_spec_free(served->want.spec);
                sl_own_spec_free(served->spec);
        }
        sl_serving_free(r);
        sl_compilers_free(r->compilers);
        sl_autoscale_free(r->autoscale);
        sl_mitigation_free(r->mitigation);
        sl_applied_free(r);
        sl_tasks_free(r->tasks);
        sl_lets_free(r->lets);
        sl_history_file_free(r->history);
        free(r);
        return NULL;
}
