/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads under way. Each is watched by its fd, under a token of its own for each stage, so that an event of an earlier one that
 * comes late is known; behind that it is the bell of the control thread that tells of its workers.
 */
#include "loads.h"

#include "base/clock.h"
#include "base/error.h"
#include "loader.h"
#include "names.h"
#include "registry_state.h"
#include "serving.h"
#include "sizes.h"
#include "tried_sizes.h"

#include <errno.h>
#include <string.h>

/* A process that hangs while it starts, or a file that takes long to read, is waited for by its own model alone. */
#define ASIDE_NS SL_NS_PER_SECOND

/* Another name for the same file, as "lenet" and "lenet:2" are: the model is loaded once and serves under both. */
static const struct sl_served *find_twin(const struct sl_registry *r, const struct sl_served *served)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_served *other = &r->served[i];

                if (other == served || !other->own.spec.path || strcmp(other->own.path, served->own.path) != 0 ||
                        other->own.spec.stamp != served->own.spec.stamp)
                        continue;
                if (other->load || (other->state == SL_SERVED_READY && !other->replace))
                        return other;
        }
        return NULL;
}

/* NULL when there is none but one that serves just what is to be replaced: the model has to be loaded. */
static const struct sl_served *find_leader(const struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_served *twin = find_twin(r, served);

        return twin && (twin->load || twin->model != served->model) ? twin : NULL;
}

bool sl_loads_has_twin(const struct sl_registry *r, const struct sl_served *served)
{
        return find_leader(r, served);
}

bool sl_loads_follow(struct sl_registry *r, struct sl_served *served)
{
        const struct sl_served *twin = find_leader(r, served);
        struct sl_error error;
        int result = 0;

        if (!twin)
                return false;
        if (!twin->load)
                result = sl_serving_model(r, served, twin->model, &error);
        if (result < 0)
                sl_serving_fail(r, served, result, error.text);
        return true;
}

static uint64_t token_of(const struct sl_served *served)
{
        return SL_LOADS_TOKEN | (uint64_t)served->load_number << 16 | served->index;
}

/* What needs no watch has been compiled. */
static int watch_load(struct sl_registry *r, struct sl_served *served, struct sl_error *error)
{
        int result;

        served->compiled = sl_load_fd(served->load) < 0;
        if (served->compiled)
                return 0;
        served->load_number = ++r->load_numbers;
        result = sl_wait_watch(r->options.wait, sl_load_fd(served->load), token_of(served));
        served->compiled = result < 0;
        return result < 0 ? sl_error_set(error, -result, "its load cannot be watched: %s", strerror(-result)) : 0;
}

static bool something_serves(const struct sl_registry *r)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->served[i].ensemble)
                        return true;
        return false;
}

void sl_loads_start(struct sl_registry *r, struct sl_served *served)
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
                .dispatcher = r->options.dispatcher,
                .replaced = &served->model,
                .background = something_serves(r),
                .sized = served->is_shape,
                .base = sl_sizes_base(r, served),
                .is_base = sl_sizes_is_base(r, served),
                .tried = &tried,
                .asked = served->asked,
                .uid = served->uid,
        };
        struct sl_error error;
        int result = sl_load_new(&served->own.spec, &options, &served->load, &error);

        if (result == 0)
                result = watch_load(r, served, &error);
        if (result < 0) {
                sl_serving_fail(r, served, result, error.text);
                return;
        }
        served->load_ns = sl_clock_ns();
        r->loads++;
        if (served->state == SL_SERVED_WAITING)
                served->state = SL_SERVED_LOADING;
}

/* The rate is that of compilations: what the cache had does not count. */
static void count_again(const struct sl_registry *r, const struct sl_served *served)
{
        struct sl_account *account = sl_names_account(r, served);

        if (account && !sl_load_compiled(served->load))
                sl_share_rate_back(&account->compile_due_ns, r->options.runtime->uid_shapes);
}

static void model_ready(struct sl_registry *r, struct sl_served *served)
{
        struct sl_model *model = sl_load_take(served->load);
        struct sl_error error;

        int result = sl_serving_model(r, served, model, &error);

        if (result == 0)
                return;
        sl_model_free(model);
        sl_serving_fail(r, served, result, error.text);
}

/* How many compile at once is promised; who has stepped aside before that comes back when there is room. */
static bool may_go_on(struct sl_registry *r, struct sl_served *served)
{
        if (!sl_loads_wants_turn(served))
                return true;
        if (r->loads >= r->options.runtime->compile_jobs)
                return false;
        served->aside = false;
        r->loads++;
        return true;
}

static void end_turn(struct sl_registry *r, struct sl_served *served)
{
        if (!served->aside)
                r->loads--;
        served->aside = false;
}

void sl_loads_advance(struct sl_registry *r, struct sl_served *served)
{
        struct sl_error error;
        int result = -EIO;

        if (!may_go_on(r, served))
                return;
        switch (sl_load_advance(served->load, &error)) {
        case SL_LOAD_ASKING:
        case SL_LOAD_SEARCHING:
        case SL_LOAD_COMPILING:
        case SL_LOAD_OPENING:
                result = watch_load(r, served, &error);
                if (result == 0)
                        return;
                break;
        case SL_LOAD_STARTING:
                return;
        case SL_LOAD_READY:
                end_turn(r, served);
                count_again(r, served);
                model_ready(r, served);
                return;
        case SL_LOAD_FAILED:
                result = sl_load_status(served->load);
                break;
        }
        end_turn(r, served);
        sl_serving_fail(r, served, result, error.text);
}

void sl_loads_cancel(struct sl_registry *r, struct sl_served *served)
{
        if (!served->load)
                return;
        if (!served->compiled)
                sl_wait_unwatch(r->options.wait, token_of(served));
        end_turn(r, served);
        served->load = sl_load_free(served->load);
}

bool sl_loads_give_up(struct sl_registry *r, struct sl_served *served)
{
        if (!served->load || !sl_load_may_be_given_up(served->load))
                return false;
        sl_loads_cancel(r, served);
        return true;
}

void sl_loads_compiled(struct sl_registry *r, uint64_t token)
{
        struct sl_served *served = &r->served[(uint16_t)token % SL_CATALOGUE_MODELS];

        if (!served->load || token != token_of(served)) /* an event of an earlier load comes late */
                return;
        sl_wait_unwatch(r->options.wait, token);
        served->compiled = true;
        sl_loads_advance(r, served);
}

static uint64_t aside_due_ns(const struct sl_served *served)
{
        uint64_t since_ns = served->aside ? UINT64_MAX : sl_load_waits_since(served->load);

        return since_ns == UINT64_MAX ? UINT64_MAX : since_ns + ASIDE_NS;
}

void sl_loads_step_aside(struct sl_registry *r, struct sl_served *served, uint64_t now_ns)
{
        if (!served->load || aside_due_ns(served) > now_ns)
                return;
        served->aside = true;
        r->loads--;
}

bool sl_loads_wants_turn(const struct sl_served *served)
{
        return served->load && served->aside && served->compiled && sl_load_has_no_plan(served->load);
}

uint64_t sl_loads_look(struct sl_registry *r, struct sl_served *served, uint64_t now_ns)
{
        uint64_t due_ns, aside_ns;

        if (served->load && !served->compiled && sl_load_due_ns(served->load) <= now_ns)
                sl_loads_compiled(r, token_of(served));
        if (!served->load || sl_loads_wants_turn(served))
                return UINT64_MAX;
        due_ns = sl_load_due_ns(served->load);
        aside_ns = aside_due_ns(served);
        return due_ns < aside_ns ? due_ns : aside_ns;
}
