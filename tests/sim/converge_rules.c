/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of converge that random histories (converge.c) seldom meet: one fleet each, and what is done next. */
#include "step.h"

#include <criterion/criterion.h>

#define NOW_NS  1000000000ull
#define IDLE_NS 80000000ull

struct rule {
        struct sl_fleet_name names[4];
        struct sl_fleet fleet;
        struct sl_step steps[SL_STEPS_MAX];
        enum sl_await awaits[4];
        uint32_t n;
        uint64_t due_ns;
};

static void init(struct rule *r, uint32_t n)
{
        *r = (struct rule){.fleet = {.now_ns = NOW_NS, .n = n, .names = r->names, .loads_max = 2}};
        for (uint32_t i = 0; i < n; i++)
                r->names[i] = (struct sl_fleet_name){
                        .used = true,
                        .want = 10 + i,
                        .file = 20 + i,
                        .is_told = true,
                        .waits_ns = UINT64_MAX,
                        .idle_unload_ns = UINT64_MAX,
                        .idle_standby_ns = UINT64_MAX,
                        .ask_due_ns = UINT64_MAX,
                };
}

/* On request, serving, and used last at @idle_ns. */
static void serve(struct sl_fleet_name *name, uint64_t model, uint64_t idle_ns)
{
        name->on_request = true;
        name->serves = name->want;
        name->model = model;
        name->idle_ns = idle_ns;
}

static void stand_by(struct sl_fleet_name *name)
{
        name->on_request = name->rests = true;
        name->serves = name->standby = name->want;
}

static void fail_for_memory(struct sl_fleet_name *name)
{
        name->load = SL_FLEET_LOAD_FAILED;
        name->load_want = name->want;
        name->lacks_memory = true;
}

static void converge(struct rule *r)
{
        r->n = sl_converge(&r->fleet, r->steps, r->awaits, &r->due_ns);
}

static void expect_step(const struct rule *r, enum sl_step_kind kind, uint32_t name)
{
        cr_assert_eq(r->n, 1, "%u steps", r->n);
        cr_expect_eq(r->steps[0].kind, kind, "%s", sl_step_name(r->steps[0].kind));
        cr_expect_eq(r->steps[0].name, name);
}

Test(converge_rules, a_model_that_leaves_has_its_place_until_it_is_gone)
{
        struct rule r;

        init(&r, 1);
        r.fleet.models_max = r.fleet.leaving = 1;
        r.names[0].on_request = r.names[0].asked = true;
        converge(&r);
        cr_expect_eq(r.n, 0);
        cr_expect_eq(r.awaits[0], SL_AWAIT_ROOM);
        r.fleet.leaving = 0;
        converge(&r);
        expect_step(&r, SL_STEP_LOAD, 0);
}

/* It is the one used longest ago. */
Test(converge_rules, what_sizes_are_of_makes_no_room_for_them)
{
        struct rule r;

        init(&r, 4);
        serve(&r.names[0], 1, 10);
        r.names[3].kind = SL_FLEET_SIZES;
        r.names[3].open = 0;
        fail_for_memory(&r.names[3]);
        r.names[1].used = r.names[2].used = false;
        converge(&r);
        expect_step(&r, SL_STEP_FAIL, 3);
        r.names[1].used = r.names[2].used = true;
        serve(&r.names[1], 2, 30);
        serve(&r.names[2], 3, 20);
        converge(&r);
        expect_step(&r, SL_STEP_REST, 2);
        cr_expect_eq(r.awaits[3], SL_AWAIT_ROOM);
}

/* When its last request ends nobody is told. */
Test(converge_rules, what_is_in_use_is_looked_at_again_within_an_eighth_of_its_time)
{
        struct rule r;

        init(&r, 1);
        serve(&r.names[0], 1, UINT64_MAX);
        r.names[0].idle_unload_ns = 2 * IDLE_NS;
        converge(&r);
        cr_expect_eq(r.n, 0);
        cr_expect_gt(r.due_ns, NOW_NS);
        cr_expect_leq(r.due_ns, NOW_NS + IDLE_NS / 4);
}

Test(converge_rules, who_wakes_a_plan_on_standby_has_no_rate)
{
        struct rule r;

        init(&r, 1);
        stand_by(&r.names[0]);
        r.names[0].asked = r.names[0].is_late = true;
        converge(&r);
        expect_step(&r, SL_STEP_LOAD, 0);
        cr_expect_eq(r.steps[0].from, SL_LOAD_PART_WORKERS);
}

Test(converge_rules, a_plan_on_standby_whose_want_has_failed_goes)
{
        struct rule r;

        init(&r, 1);
        stand_by(&r.names[0]);
        r.names[0].wants_plan = true;
        r.names[0].failed = r.names[0].want;
        converge(&r);
        expect_step(&r, SL_STEP_REST, 0);
}

Test(converge_rules, a_plan_whose_name_drains_makes_no_room)
{
        struct rule r;

        init(&r, 2);
        stand_by(&r.names[0]);
        fail_for_memory(&r.names[1]);
        r.names[0].drains = true;
        converge(&r);
        expect_step(&r, SL_STEP_FAIL, 1);
        r.names[0].drains = false;
        converge(&r);
        expect_step(&r, SL_STEP_REST, 0);
}
