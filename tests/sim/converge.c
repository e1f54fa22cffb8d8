/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sl_converge() in random histories: for a while this and that is wanted, then no more, and it has to come to rest. Whatever
 * happens meanwhile is looked at by control_watch.h. More histories: STARLING_CONVERGE_HISTORIES=N; from another seed:
 * STARLING_CONVERGE_SEED=N, where one that failed can be run alone, which prints its steps.
 */
#include "control.h"
#include "control_watch.h"
#include "rounds.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND  1000000000ull
#define IDLE_NS 4000000000ull /* before a model is unloaded that is loaded on request, or its workers leave */

/*
 * Once nothing more is wanted: each name may wait for an old load, the rate of its user, its plan and its own load, one after
 * another where one load is allowed at a time; phases, a drain, workers and news come on top. An ensemble follows each of its
 * members. Somebody may have asked for a load, use it and leave it alone.
 */
#define REST_STEPS(n) (24u * (n) + 8u)
#define LOAD_NS       (SL_SIM_PHASES * SL_SIM_PHASE_NS)
#define REST_NS(n)                                                                                                                 \
        ((n) * (3 * LOAD_NS + SL_SIM_RATE_NS + SL_SIM_BASE_NS) + 4 * (SL_SIM_DRAIN_NS + SL_SIM_START_NS + SL_SIM_LEAVE_NS) +       \
                16 * SL_SIM_TOLD_NS + SL_SIM_ASK_NS + SL_SIM_USE_NS + IDLE_NS + SL_SIM_KILL_NS)

/* A fleet and what happens to it. */
struct history {
        struct sl_sim_control control;
        struct sl_control_watch watch;
        struct sl_sim_dice dice; /* of what is wanted, apart from those of the world */
        uint64_t due_ns;         /* as converge said */
        uint32_t n_acts, acts;
        uint64_t end_ns; /* of the last act */
        bool failing;
};

static bool is_traced;
static uint32_t longest_steps;
static uint64_t longest_ns;

/* ---- what is wanted ---- */

/* Of 16 names some are sizes of name 0 or 1, and the last ones ensembles: which follows from their place. */
static bool is_sizes(const struct history *h, uint32_t i)
{
        return h->control.options.n_names >= 4 && i >= 2 && i % 3 == 2;
}

static bool is_ensemble(const struct history *h, uint32_t i)
{
        return h->control.options.n_names >= 3 && i + 1 + h->control.options.n_names / 6 >= h->control.options.n_names;
}

static void want_ensemble(struct history *h, uint32_t i)
{
        uint32_t members[SL_SIM_MEMBERS], n = 1 + sl_sim_roll(&h->dice, SL_SIM_MEMBERS);

        for (uint32_t m = 0; m < n; m++) {
                members[m] = sl_sim_roll(&h->dice, h->control.options.n_names);
                if (sl_sim_one_in(&h->dice, 40))
                        members[m] = SL_FLEET_NONE;
        }
        sl_sim_control_want_ensemble(&h->control, i, members, n);
}

static uint64_t idle_ns(struct history *h)
{
        return sl_sim_one_in(&h->dice, 2) ? UINT64_MAX : sl_sim_roll(&h->dice, (uint32_t)IDLE_NS);
}

/* A model comes from the repository, or a user has asked for it. */
static void want_model(struct history *h, uint32_t i, uint64_t file)
{
        sl_sim_control_want(&h->control, i, file, i < 2);
        if (sl_sim_one_in(&h->dice, 4))
                sl_sim_control_want_anew(&h->control, i);
        sl_sim_control_load_when(&h->control, i,
                &(struct sl_sim_control_when){
                        .on_request = sl_sim_one_in(&h->dice, 2),
                        .wants_plan = sl_sim_one_in(&h->dice, 2),
                        .idle_unload_ns = idle_ns(h),
                        .idle_standby_ns = idle_ns(h),
                });
        if (sl_sim_one_in(&h->dice, 3))
                h->control.names[i].user = sl_sim_roll(&h->dice, SL_SIM_USERS);
}

static void want(struct history *h, uint32_t i)
{
        const struct sl_sim_control_name *name = &h->control.names[i];
        bool strange = sl_sim_one_in(&h->dice, 30); /* a name that gets another kind */

        if (is_sizes(h, i) && !(strange && i > 3)) {
                uint32_t open = i % 2;
                const struct sl_sim_control_name *of = &h->control.names[open];

                if ((of->used && of->serves && !of->drains && of->want) || sl_sim_one_in(&h->dice, 8))
                        sl_sim_control_want_sizes(&h->control, i, open, sl_sim_one_in(&h->dice, 6), !sl_sim_one_in(&h->dice, 4),
                                sl_sim_one_in(&h->dice, 4) ? SL_SIM_NONE : sl_sim_roll(&h->dice, SL_SIM_USERS),
                                sl_sim_one_in(&h->dice, 2));
        } else if (i > 1 && is_ensemble(h, i) != strange) {
                want_ensemble(h, i);
        } else if (name->used && name->want && name->kind == SL_FLEET_MODEL && sl_sim_one_in(&h->dice, 2)) {
                want_model(h, i, name->file); /* once more */
        } else {
                want_model(h, i, i < 2 ? 1 + sl_sim_roll(&h->dice, 2) + 10 * i : 1 + sl_sim_roll(&h->dice, 4));
        }
}

static void act(struct history *h)
{
        uint32_t i = sl_sim_roll(&h->dice, h->control.options.n_names), what = sl_sim_roll(&h->dice, 100);
        const struct sl_sim_control_name *name = &h->control.names[i];

        if (sl_sim_one_in(&h->dice, 3))
                sl_sim_control_ask(&h->control, i, h->control.now_ns + sl_sim_roll(&h->dice, (uint32_t)SL_SIM_USE_NS));
        else if (what < 45)
                want(h, i);
        else if (what < 60 && name->used)
                sl_sim_control_want_nothing(&h->control, i);
        else if (what < 65 && name->used)
                sl_sim_control_want_back(&h->control, i);
        else if (what < 78 && name->used && name->kind != SL_FLEET_ENSEMBLE)
                sl_sim_control_want_workers(
                        &h->control, i, (struct sl_sim_set){1 + sl_sim_roll(&h->dice, 3), 1 + sl_sim_roll(&h->dice, 4)});
        else if (what < 93)
                sl_sim_control_apply(&h->control, sl_sim_roll(&h->dice, UINT32_MAX), sl_sim_roll(&h->dice, 3));
        else if (what < 95)
                sl_sim_control_change_cores(&h->control);
        else
                for (uint32_t k = 0; k < 8; k++)
                        sl_sim_control_kill_worker(&h->control);
}

/* ---- steps ---- */

static bool has_step(const struct sl_step *steps, uint32_t n, const struct sl_step *step)
{
        for (uint32_t k = 0; k < n; k++)
                if (steps[k].kind == step->kind && steps[k].name == step->name && steps[k].from == step->from)
                        return true;
        return false;
}

/* A step that is not wide leaves the next one as it is. */
static void check_next(struct history *h, const struct sl_step *next)
{
        struct sl_step steps[SL_STEPS_MAX];
        struct sl_sim_view view;
        uint64_t due_ns;

        sl_sim_control_view(&h->control, &view);
        if (!has_step(steps, sl_converge(&view.fleet, steps, NULL, &due_ns), next) && !h->watch.broken)
                h->watch.broken = "a step that is not wide leaves the next one as it is";
}

/* The same fleet, the same steps; and nothing is written to it. */
static void check_pure(struct history *h, const struct sl_sim_view *view, const struct sl_step *steps, uint32_t n)
{
        struct sl_step again[SL_STEPS_MAX];
        struct sl_sim_view before = *view;
        uint64_t due_ns;
        uint32_t m = sl_converge(&view->fleet, again, NULL, &due_ns);
        bool same = m == n && due_ns == h->due_ns;

        for (uint32_t k = 0; k < n && same; k++)
                same = has_step(again + k, 1, &steps[k]);
        if ((!same || memcmp(before.names, view->names, sizeof(before.names)) != 0) && !h->watch.broken)
                h->watch.broken = "equal fleets give equal steps";
}

static void trace_step(const struct history *h, const struct sl_step *step)
{
        if (is_traced)
                printf("%8lu ms  %-8s name %d want %lu from %lu\n", h->control.now_ns / 1000000, sl_step_name(step->kind),
                        (int)step->name, step->want, step->from);
}

static void settle(struct history *h)
{
        static struct sl_sim_view view; /* what is behind its names stays zero */
        struct sl_step steps[SL_STEPS_MAX];
        enum sl_await awaits[SL_SIM_NAMES];
        uint32_t n, rounds = 0;

        do {
                sl_sim_control_view(&h->control, &view);
                n = sl_converge(&view.fleet, steps, awaits, &h->due_ns);
                check_pure(h, &view, steps, n);
                for (uint32_t k = 0; k < n && !h->watch.broken; k++) {
                        trace_step(h, &steps[k]);
                        sl_control_watch_step(&h->watch, &h->control, &steps[k], awaits);
                        if (h->watch.broken)
                                return;
                        sl_sim_control_act(&h->control, &steps[k]);
                        sl_control_watch_moment(&h->watch, &h->control);
                        if (sl_step_is_wide(&steps[k]))
                                break;
                        if (k + 1 < n)
                                check_next(h, &steps[k + 1]);
                }
                sl_sim_control_pass(&h->control, h->control.now_ns);
                sl_control_watch_moment(&h->watch, &h->control);
                if (++rounds == 1000 && !h->watch.broken)
                        h->watch.broken = "it comes to rest";
        } while (n && !h->watch.broken);
        if (!h->watch.broken)
                sl_control_watch_quiet(&h->watch, &h->control, awaits, h->due_ns);
}

/* ---- histories ---- */

static void begin(struct history *h, uint64_t seed)
{
        struct sl_sim_dice *dice = &h->dice;
        struct sl_sim_control_options options;

        memset(h, 0, sizeof(*h));
        dice->state = seed * 0xd1342543de82ef95ull + 7;
        sl_sim_roll(dice, 2);
        h->failing = sl_sim_one_in(dice, 2);
        options = (struct sl_sim_control_options){
                .n_names = 1 + sl_sim_roll(dice, SL_SIM_NAMES),
                .loads_max = 1 + sl_sim_roll(dice, 3),
                .memory_bytes = sl_sim_one_in(dice, 2) ? 1000000 : 150 + sl_sim_roll(dice, 1000),
                .models_max = sl_sim_one_in(dice, 2) ? 0 : 1 + sl_sim_roll(dice, 5),
                .load_fails_in = h->failing ? 4 : 0,
                .worker_fails_in = h->failing ? 8 : 0,
                .compose_fails_in = h->failing && sl_sim_one_in(dice, 2) ? 4 : 0,
        };
        sl_sim_control_init(&h->control, &options, seed);
        h->n_acts = 2 + sl_sim_roll(dice, 3 * options.n_names + 4);
}

/* Many at once now and then, and now and then after a long while. */
static uint64_t next_act_ns(struct history *h)
{
        switch (sl_sim_roll(&h->dice, 4)) {
        case 0:
                return 0;
        case 1:
                return sl_sim_roll(&h->dice, (uint32_t)SL_SIM_TOLD_NS);
        case 2:
                return sl_sim_roll(&h->dice, (uint32_t)SECOND);
        default:
                return sl_sim_roll(&h->dice, 4) * SECOND;
        }
}

static void run(struct history *h, uint64_t seed)
{
        uint64_t act_ns, next_ns;
        uint32_t steps_at_end = 0;

        begin(h, seed);
        act_ns = h->control.now_ns;
        do {
                while (h->acts < h->n_acts && act_ns <= h->control.now_ns) {
                        act(h);
                        h->acts++;
                        act_ns += next_act_ns(h);
                        h->end_ns = h->control.now_ns;
                        steps_at_end = h->watch.n_steps;
                }
                sl_sim_control_pass(&h->control, h->control.now_ns);
                sl_control_watch_moment(&h->watch, &h->control);
                settle(h);
                next_ns = sl_sim_control_due_ns(&h->control);
                if (h->due_ns < next_ns)
                        next_ns = h->due_ns;
                if (h->acts < h->n_acts && act_ns < next_ns)
                        next_ns = act_ns;
                if (next_ns == UINT64_MAX)
                        break;
                sl_sim_control_pass(&h->control, next_ns);
        } while (!h->watch.broken);
        if (h->watch.broken)
                return;
        sl_control_watch_end(&h->watch, &h->control);
        if (h->watch.n_steps - steps_at_end > longest_steps)
                longest_steps = h->watch.n_steps - steps_at_end;
        if (h->control.now_ns - h->end_ns > longest_ns)
                longest_ns = h->control.now_ns - h->end_ns;
        if (h->watch.n_steps - steps_at_end > REST_STEPS(h->control.options.n_names) && !h->watch.broken)
                h->watch.broken = "it comes to rest within so many steps";
        if (h->control.now_ns - h->end_ns > REST_NS(h->control.options.n_names) && !h->watch.broken)
                h->watch.broken = "it comes to rest within such a time";
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
        const char *text = getenv(name);

        return text ? strtoull(text, NULL, 10) : otherwise;
}

Test(converge, whatever_is_wanted_it_comes_to_rest_and_breaks_no_rule_meanwhile)
{
        static struct history h, again;
        uint64_t first = from_environment("STARLING_CONVERGE_SEED", 1);
        uint64_t n = from_environment("STARLING_CONVERGE_HISTORIES", SL_ROUNDS(20000));
        uint64_t count[SL_STEP_KIND_COUNT] = {0}, awaited[SL_AWAIT_COUNT] = {0};

        is_traced = n == 1;
        for (uint64_t seed = first; seed < first + n; seed++) {
                run(&h, seed);
                cr_assert(!h.watch.broken, "seed %lu, name %d, %lu ms: %s", seed, (int)h.watch.broken_name,
                        h.control.now_ns / 1000000, h.watch.broken);
                for (uint32_t k = 0; k < SL_STEP_KIND_COUNT; k++)
                        count[k] += h.watch.count[k];
                for (uint32_t k = 0; k < SL_AWAIT_COUNT; k++)
                        awaited[k] += h.watch.awaited[k];
                if (seed % 64)
                        continue;
                run(&again, seed);
                cr_assert_eq(again.watch.log, h.watch.log, "seed %lu: another history", seed);
        }
        for (uint32_t k = 0; k < SL_STEP_KIND_COUNT; k++) {
                cr_expect(count[k] || n < 5000, "no step \"%s\"", sl_step_name(k));
                printf("%-10s %lu\n", sl_step_name(k), count[k]);
        }
        for (uint32_t k = 0; k < SL_AWAIT_COUNT; k++) {
                cr_expect(awaited[k] || n < 5000, "nothing awaits %s", sl_await_text(k));
                printf("%-10lu %s\n", awaited[k], sl_await_text(k));
        }
        printf("at rest after %u steps and %lu ms at most\n", longest_steps, longest_ns / 1000000);
}
