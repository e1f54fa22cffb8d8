/* SPDX-License-Identifier: Apache-2.0 */
#include "act.h"

#include "account.h"
#include "applied.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "fleet_view.h"
#include "history_file.h"
#include "loader.h"
#include "loads.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"
#include "requested.h"
#include "serving.h"
#include "staffing.h"
#include "stats.h"
#include "step.h"
#include "want.h"

#include <errno.h>

#define LOG_WARNING 1 /* as sl_runtime_log_fn counts */
#define LOG_DEBUG   3

/* So many a turn, so that the control thread hears its sockets whatever is wanted. */
#define STEPS_A_TURN 1024u

/* Of a name with whose want it follows, and how old that is. */
static void log_step(struct sl_registry *r, const struct sl_step *step)
{
        const struct sl_served *served = step->name == SL_FLEET_NONE ? NULL : &r->served[step->name];
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "step", sl_step_name(step->kind));
        if (served)
                sl_fields_add(&fields, "model", served->name);
        sl_fields_add_number(&fields, "want", (long long)step->want);
        if (served) {
                sl_fields_add(&fields, "origin", sl_want_origin_name(served->want.origin));
                sl_fields_add_number(&fields, "age_ms", (long long)((sl_clock_ns() - served->want.since_ns) / SL_NS_PER_MS));
        }
        sl_fields_add(&fields, "cause", sl_step_cause(step));
        sl_account_log(r->options.accounts, NULL, LOG_DEBUG, "step", fields.text);
}

/* What nobody has asked for yet, and for whose plan there is no memory, is loaded when somebody does. */
static void fail_load(struct sl_registry *r, struct sl_served *served, bool is_plan, int status, const char *text)
{
        if (!is_plan || status != -ENOMEM) {
                sl_serving_fail(r, served, status, text);
                return;
        }
        served->no_standby = served->want.number;
        sl_names_report(r, 1, "model-not-on-standby", served, text);
}

static void begin_load(struct sl_registry *r, struct sl_served *served, enum sl_load_part part)
{
        struct sl_error error;
        int result = sl_loads_start(r, served, part, &error);

        if (result < 0)
                fail_load(r, served, part == SL_LOAD_PART_PLAN, result, error.text);
}

static void stand_by(struct sl_registry *r, struct sl_served *served, uint64_t twin)
{
        const struct sl_served *of = twin == SL_FLEET_NONE ? served : &r->served[twin];
        struct sl_standby standby;

        if (served->load)
                standby = sl_loads_take_plan(r, served);
        else
                standby = of->model ? sl_standby_of(of->model) : sl_standby_hold(&of->standby);
        sl_serving_stand_by(r, served, &standby);
}

static void drop_load(struct sl_registry *r, struct sl_served *served, enum sl_cancel_cause cause)
{
        const char *why = served->want.number ? "another version or configuration of it is wanted" : served->want.why;

        if (cause == SL_CANCEL_UNWANTED)
                sl_names_report(r, 2, "load-cancelled", served, why);
        sl_loads_cancel(r, served);
}

static void serve_loaded(struct sl_registry *r, struct sl_served *served)
{
        /* Of other cores than there are now they are looked at again. */
        uint64_t workers = served->load_cores == r->cores ? served->load_workers : 0;
        struct sl_model *model = sl_loads_take(r, served);
        struct sl_error error;
        int result = sl_serving_model(r, served, model, workers, &error);

        if (result == 0)
                return;
        sl_model_free(model);
        sl_serving_fail(r, served, result, error.text);
}

/* A load, or an ensemble one of whose members is missing. */
static void fail(struct sl_registry *r, struct sl_served *served)
{
        struct sl_error error;
        int result;

        if (!served->load) {
                sl_serving_lacks_member(r, served);
                return;
        }
        bool is_plan = served->load_is_plan;
        result = sl_loads_explain(served, &error);
        sl_loads_cancel(r, served);
        fail_load(r, served, is_plan, result, error.text);
}

/* Those that are too many leave, now that all new ones are ready. */
static void release(struct sl_registry *r, uint64_t group)
{
        sl_applied_release(r);
        for (uint32_t i = 0; i < r->n_awake; i++)
                if (sl_awake_at(r, i)->want.group == group && sl_awake_at(r, i)->changing)
                        sl_staffing_hear(r, sl_awake_at(r, i));
}

/* Who has asked is told; what is to be loaded without that has failed. */
static void refuse(struct sl_registry *r, struct sl_served *served, enum sl_refusal_cause cause)
{
        const struct sl_runtime_options *options = r->options.runtime;
        struct sl_error error;

        if (cause == SL_REFUSED_LATE)
                sl_error_set(&error, EBUSY,
                        "model \"%s\" is not loaded yet: its load takes longer than limits.load_wait_s, %llu, and goes on; it "
                        "waits for %s",
                        served->name, (unsigned long long)(options->load_wait_ns / SL_NS_PER_SECOND),
                        sl_await_text(served->awaits));
        else
                sl_error_set(&error, EBUSY,
                        "model \"%s\" is not loaded: limits.models_max_loaded is %u, so many are loaded or being loaded, and "
                        "none of them is loaded on request and idle",
                        served->name, options->models_max);
        sl_names_report(r, 1, "model-not-loaded", served, error.text);
        if (served->want.request.is_asked)
                sl_requested_refuse(r, served, -EBUSY, error.text);
        else
                sl_serving_fail(r, served, -EBUSY, error.text);
}

static void act_on_group(struct sl_registry *r, const struct sl_step *step)
{
        if (step->from == SL_SETTLE_RELEASE)
                release(r, step->want);
        else if (step->from == SL_SETTLE_UNDO)
                sl_applied_undo(r);
        else
                sl_applied_settle(r);
}

static void act_on_name(struct sl_registry *r, struct sl_served *served, const struct sl_step *step)
{
        switch (step->kind) {
        case SL_STEP_LOAD:
                begin_load(r, served, (enum sl_load_part)step->from);
                break;
        case SL_STEP_STANDBY:
                stand_by(r, served, step->from);
                break;
        case SL_STEP_CANCEL:
                drop_load(r, served, (enum sl_cancel_cause)step->from);
                break;
        case SL_STEP_REST:
                sl_serving_rest(r, served);
                break;
        case SL_STEP_REFUSE:
                refuse(r, served, (enum sl_refusal_cause)step->from);
                break;
        case SL_STEP_TURN:
                if (step->from == SL_TURN_ASIDE)
                        sl_loads_step_aside(r, served);
                else
                        sl_loads_resume(r, served);
                break;
        case SL_STEP_SERVE:
                serve_loaded(r, served);
                break;
        case SL_STEP_SHARE:
                sl_serving_share(r, served, &r->served[step->from]);
                break;
        case SL_STEP_COMPOSE:
                sl_serving_compose(r, served, step->composition);
                break;
        case SL_STEP_FAIL:
                fail(r, served);
                break;
        case SL_STEP_WORKERS:
                sl_staffing_begin(r, served);
                break;
        case SL_STEP_WITHDRAW:
                sl_serving_withdraw(r, served);
                break;
        case SL_STEP_FORGET:
                sl_serving_forget(r, served);
                break;
        default:
                break;
        }
}

void sl_act_count(struct sl_registry *r)
{
        for (uint32_t kind = 0; kind < SL_STEP_KIND_COUNT; kind++)
                sl_stats_step_add(r->options.stats, sl_step_name(kind), &r->taken[kind]);
}

static void act(struct sl_registry *r, const struct sl_step *step)
{
        log_step(r, step);
        sl_counter_add(&r->taken[step->kind]->taken, 1);
        if (step->name == SL_FLEET_NONE)
                act_on_group(r, step);
        else
                act_on_name(r, &r->served[step->name], step);
}

/* What everybody waits for, as converge has just said. Whether a model is available or about to be loaded follows from that, and
 * clients see it. */
static void note_awaits(struct sl_registry *r)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                if (served->used && sl_served_await(served, r->awaits[i]) && (!served->ensemble || served->rests))
                        sl_news_publish(r, served);
        }
}

/* What cannot be written ends the history, and nothing else. */
static void write_history(
        struct sl_registry *r, const struct sl_fleet *fleet, const struct sl_step *steps, uint32_t n, uint64_t due_ns)
{
        struct sl_fields fields = {0};
        struct sl_error error;

        if (!r->history || sl_history_file_write(r->history, fleet, steps, n, due_ns, &error) == 0)
                return;
        sl_fields_add(&fields, "cause", error.text);
        sl_account_log(r->options.accounts, NULL, LOG_WARNING, "history-ended", fields.text);
        r->history = sl_history_file_free(r->history);
}

bool sl_act(struct sl_registry *r)
{
        struct sl_step steps[SL_STEPS_MAX];
        struct sl_fleet_group group;
        struct sl_fleet fleet;
        uint64_t due_ns;
        uint32_t acted = 0, n;

        do {
                sl_loads_hear_gone(r);
                sl_fleet_view(r, &group, &fleet);
                n = sl_converge(&fleet, steps, r->awaits, &due_ns);
                write_history(r, &fleet, steps, n, due_ns);
                sl_fleet_name_steps(r, steps, n);
                for (uint32_t i = 0; i < n; i++) {
                        act(r, &steps[i]);
                        acted++;
                        if (sl_step_is_wide(&steps[i]))
                                break; /* those behind it may be others now */
                }
        } while (n && acted < STEPS_A_TURN);
        if (n)
                due_ns = 0;
        else
                note_awaits(r);
        r->due_ns = due_ns < r->due_ns ? due_ns : r->due_ns;
        return !n;
}
