/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads under way. Each is watched by its fd, under a token of its own for each stage, so that an event of an earlier one that
 * comes late is known; behind that it is the bell of the control thread that tells of its workers.
 */
#include "loads.h"

#include "base/clock.h"
#include "base/error.h"
#include "compilers.h"
#include "loader.h"
#include "memory.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"
#include "serving.h"
#include "sizes.h"
#include "tried_sizes.h"

#include <errno.h>
#include <string.h>

static uint64_t token_of(const struct sl_served *served)
{
        return SL_LOADS_TOKEN | (uint64_t)served->load_number << 16 | served->index;
}

static bool is_over(const struct sl_served *served)
{
        return sl_load_state(served->load) >= SL_LOAD_READY;
}

/* What needs no watch has been compiled. */
static int watch_load(struct sl_registry *r, struct sl_served *served, struct sl_error *error)
{
        int result;

        served->compiled = is_over(served) || sl_load_fd(served->load) < 0;
        if (served->compiled)
                return 0;
        served->load_number = ++r->load_numbers;
        result = sl_wait_watch(r->options.wait, sl_load_fd(served->load), token_of(served));
        served->compiled = result < 0;
        return result < 0 ? sl_error_set(error, -result, "its load cannot be watched: %s", strerror(-result)) : 0;
}

static bool something_serves(const struct sl_registry *r)
{
        for (uint32_t i = 0; i < r->n_awake; i++)
                if (sl_awake_at(r, i)->ensemble)
                        return true;
        return false;
}

/* Users take turns (../../converge), at the rate that they have. */
static void count_load(struct sl_registry *r, const struct sl_served *served)
{
        struct sl_account *account = sl_names_account(r, served);

        if (!account)
                return;
        account->load_turn = ++r->load_turn;
        sl_share_rate(&account->compile_due_ns, r->options.runtime->uid_shapes, sl_clock_ns());
}

int sl_loads_start(struct sl_registry *r, struct sl_served *served, enum sl_load_part part, struct sl_error *error)
{
        struct sl_tried_sizes tried = sl_sizes_to_try(r, served);
        struct sl_load_options options = {
                .runtime = r->options.runtime,
                .regions = r->options.regions,
                .accumulator = r->options.accumulator,
                .stats = r->options.stats,
                .accounts = r->options.accounts,
                .memory = r->options.memory,
                .segments = r->options.segments,
                .control = r->options.control,
                .supervisor = r->options.supervisor,
                .lets = r->lets,
                .bundles = &r->bundles,
                .compilers = r->compilers,
                .dispatcher = r->options.dispatcher,
                .replaced = &served->model,
                .background = something_serves(r),
                .sized = sl_sizes_share(served),
                .base = sl_sizes_base(r, served),
                .is_base = sl_sizes_is_base(r, served),
                .tried = &tried,
                .standby = part == SL_LOAD_PART_WORKERS ? &served->standby : NULL,
                .plan_only = part == SL_LOAD_PART_PLAN,
                .asked = served->asked,
                .uid = served->uid,
        };
        struct sl_model_spec spec = served->want.spec->spec;
        int result;

        spec.workers = served->want.workers;
        count_load(r, served);
        result = sl_load_new(&spec, &options, &served->load, error);
        if (result == 0)
                result = watch_load(r, served, error);
        if (result < 0) {
                served->load = sl_load_free(served->load);
                return result;
        }
        served->load_ns = sl_clock_ns();
        served->load_want = served->want.number;
        served->load_workers = served->want.workers_number;
        served->load_file = served->want.spec->file;
        served->load_cores = r->cores;
        served->load_gone = r->gone;
        served->load_begun = part == SL_LOAD_PART_WORKERS ? served->standby.begun : r->wants;
        served->load_is_plan = part == SL_LOAD_PART_PLAN;
        served->aside = part == SL_LOAD_PART_WORKERS;
        r->loads += !served->aside && !is_over(served);
        sl_news_publish(r, served);
        return 0;
}

/* The rate is that of compilations: what the cache had does not count. */
static void count_again(const struct sl_registry *r, const struct sl_served *served)
{
        struct sl_account *account = sl_names_account(r, served);

        if (account && !sl_load_compiled(served->load))
                sl_share_rate_back(&account->compile_due_ns, r->options.runtime->uid_shapes);
}

static void end_turn(struct sl_registry *r, struct sl_served *served)
{
        if (!served->aside)
                r->loads--;
        served->aside = false;
}

static void advance(struct sl_registry *r, struct sl_served *served)
{
        struct sl_error error;

        if (sl_load_advance(served->load) < SL_LOAD_STARTING && watch_load(r, served, &error) < 0)
                sl_load_fail(served->load, -EIO, error.text);
        if (!is_over(served))
                return;
        end_turn(r, served);
        if (sl_load_state(served->load) == SL_LOAD_READY)
                count_again(r, served);
}

void sl_loads_compiled(struct sl_registry *r, uint64_t token)
{
        struct sl_served *served = &r->served[(uint16_t)token % SL_CATALOGUE_MODELS];

        if (!served->load || token != token_of(served)) /* an event of an earlier load comes late */
                return;
        sl_wait_unwatch(r->options.wait, token);
        served->compiled = true;
}

/* Return: when it is due the next time. */
static uint64_t hear(struct sl_registry *r, struct sl_served *served, uint64_t now_ns)
{
        if (!served->compiled && sl_load_due_ns(served->load) <= now_ns)
                sl_loads_compiled(r, token_of(served));
        if (served->compiled && !sl_loads_wants_turn(served))
                advance(r, served);
        return is_over(served) || sl_loads_wants_turn(served) ? UINT64_MAX : sl_load_due_ns(served->load);
}

uint64_t sl_loads_hear(struct sl_registry *r)
{
        uint64_t now_ns = sl_clock_ns(), due_ns = UINT64_MAX;

        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);
                uint64_t its_ns = served->load && !is_over(served) ? hear(r, served, now_ns) : UINT64_MAX;

                due_ns = its_ns < due_ns ? its_ns : due_ns;
        }
        return due_ns;
}

enum sl_fleet_load sl_loads_stage(const struct sl_served *served)
{
        if (!served->load)
                return SL_FLEET_LOAD_NONE;
        if (is_over(served))
                return sl_load_state(served->load) == SL_LOAD_READY ? SL_FLEET_LOAD_LOADED : SL_FLEET_LOAD_FAILED;
        return sl_load_may_be_given_up(served->load) ? SL_FLEET_LOAD_SOON : SL_FLEET_LOAD_BOUND;
}

uint64_t sl_loads_waits_since(const struct sl_served *served)
{
        return served->aside || is_over(served) ? UINT64_MAX : sl_load_waits_since(served->load);
}

void sl_loads_step_aside(struct sl_registry *r, struct sl_served *served)
{
        served->aside = true;
        r->loads--;
}

void sl_loads_resume(struct sl_registry *r, struct sl_served *served)
{
        served->aside = false;
        r->loads++;
        advance(r, served);
}

bool sl_loads_wants_turn(const struct sl_served *served)
{
        return served->aside && served->compiled && sl_load_has_no_plan(served->load);
}

struct sl_model *sl_loads_take(struct sl_registry *r, struct sl_served *served)
{
        struct sl_model *model = sl_load_take(served->load);

        model->begun = served->load_begun;
        served->took_ns = sl_clock_ns() - served->load_ns;
        if (served->standby_want)
                served->woke_ns = served->took_ns;
        sl_loads_cancel(r, served);
        return model;
}

struct sl_standby sl_loads_take_plan(struct sl_registry *r, struct sl_served *served)
{
        struct sl_standby standby = sl_load_standby(served->load);

        standby.begun = served->load_begun;
        served->took_ns = sl_clock_ns() - served->load_ns;
        sl_loads_cancel(r, served);
        return standby;
}

int sl_loads_explain(const struct sl_served *served, struct sl_error *error)
{
        return sl_load_why(served->load, error);
}

void sl_loads_hear_gone(struct sl_registry *r)
{
        uint64_t bytes;

        r->gone += sl_compilers_hear(r->compilers, &bytes);
        sl_memory_give(r->options.memory, SL_MEMORY_COMPILERS, bytes);
}

void sl_loads_cancel(struct sl_registry *r, struct sl_served *served)
{
        if (!served->load)
                return;
        if (!served->compiled)
                sl_wait_unwatch(r->options.wait, token_of(served));
        if (!is_over(served))
                end_turn(r, served);
        if (sl_load_has_workers(served->load))
                sl_serving_end(r, sl_load_take(served->load));
        served->load = sl_load_free(served->load);
        served->load_is_plan = false;
}
