/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of sl_converge() costs in a large fleet, counted in basic blocks: the compiler calls __sanitizer_cov_trace_pc() at
 * each one (CMakeLists.txt). As many names cost as much more, whatever is wanted.
 */
#include "fleet.h"
#include "step.h"

#include <criterion/criterion.h>

#define FEW  512u
#define MANY SL_FLEET_NAMES_MAX

void __sanitizer_cov_trace_pc(void);

static uint64_t blocks;

void __sanitizer_cov_trace_pc(void)
{
        blocks++;
}

struct bed {
        struct sl_fleet fleet;
        struct sl_fleet_name names[MANY];
        struct sl_fleet_group group;
        uint32_t members[64];
};

typedef void (*fill_fn)(struct bed *bed, uint32_t i);

static uint64_t cost(fill_fn fill, uint32_t n)
{
        static struct bed bed;
        static enum sl_await awaits[MANY];
        struct sl_step steps[SL_STEPS_MAX];
        uint64_t due_ns;

        bed = (struct bed){.fleet = {.now_ns = 100, .n = n, .names = bed.names, .loads = 1, .loads_max = 1, .base_ns = 10000}};
        for (uint32_t i = 0; i < n; i++) {
                bed.names[i] = (struct sl_fleet_name){.used = true,
                        .want = n + i + 1,
                        .file = i + 1,
                        .workers = 1,
                        .has_workers = 1,
                        .is_told = true,
                        .waits_ns = UINT64_MAX};
                fill(&bed, i);
        }
        blocks = 0;
        sl_converge(&bed.fleet, steps, awaits, &due_ns);
        return blocks;
}

static void check_cost(fill_fn fill)
{
        uint64_t few = cost(fill, FEW), many = cost(fill, MANY);

        cr_expect_geq(many, MANY, "they are looked at");
        cr_expect_leq(many, 10 * few, "%u names: %lu basic blocks, %u: %lu", FEW, few, MANY, many);
        cr_expect_leq(many, 1000 * MANY, "%u names: %lu basic blocks", MANY, many);
}

static void serve(struct sl_fleet_name *name, uint64_t want, uint64_t model)
{
        name->serves = want;
        name->model = model;
}

static void load(struct sl_fleet_name *name, uint32_t i)
{
        name->load = SL_FLEET_LOAD_BOUND;
        name->load_want = name->want;
        name->load_file = name->file;
        name->load_since_ns = i;
        name->aside = true;
}

static void nothing_there(struct bed *bed, uint32_t i)
{
        (void)bed, (void)i;
}

static void all_serve(struct bed *bed, uint32_t i)
{
        serve(&bed->names[i], bed->names[i].want, i + 1);
}

static void one_model(struct bed *bed, uint32_t i)
{
        bed->names[i].file = 1;
        serve(&bed->names[i], i % 2 ? bed->names[i].want : 1, 1);
}

static void one_file(struct bed *bed, uint32_t i)
{
        bed->names[i].file = 1;
        serve(&bed->names[i], i % 2 ? bed->names[i].want : 1, i + 1);
}

static void half_load(struct bed *bed, uint32_t i)
{
        if (i % 2)
                load(&bed->names[i], i);
}

static void other_workers(struct bed *bed, uint32_t i)
{
        serve(&bed->names[i], i % 2 ? bed->names[i].want : 1, 1 + i / 4);
        bed->names[i].failed = bed->names[i].want;
        bed->names[i].workers = 2;
        bed->names[i].is_told = false;
}

/* Half of them serve and are idle, and there is no place for the others, which are asked for. */
static void on_request(struct bed *bed, uint32_t i)
{
        bed->fleet.models = bed->fleet.models_max = bed->fleet.n / 2;
        bed->names[i].on_request = true;
        bed->names[i].idle_unload_ns = UINT64_MAX;
        bed->names[i].asked = i % 2;
        bed->names[i].ask_due_ns = UINT64_MAX;
        bed->names[i].idle_ns = MANY - i;
        bed->names[i].has_place = i % 2 == 0;
        if (i % 2 == 0)
                all_serve(bed, i);
}

/* None of them is idle. */
static void all_in_use(struct bed *bed, uint32_t i)
{
        on_request(bed, i);
        bed->names[i].idle_ns = UINT64_MAX;
}

static void sizes(struct bed *bed, uint32_t i)
{
        if (i == 0) {
                all_serve(bed, 0);
                return;
        }
        bed->names[i].kind = SL_FLEET_SIZES;
        bed->names[i].needs_base = true;
        half_load(bed, i);
}

static void ensembles(struct bed *bed, uint32_t i)
{
        if (i < 64) {
                bed->members[i] = i;
                all_serve(bed, i);
                return;
        }
        bed->names[i].kind = SL_FLEET_ENSEMBLE;
        bed->names[i].members = bed->members;
        bed->names[i].n_members = 64;
        bed->names[i].is_told = false;
}

static void one_group(struct bed *bed, uint32_t i)
{
        all_serve(bed, i);
        bed->names[i].group = 1;
        bed->names[i].workers_start = true;
        bed->group = (struct sl_fleet_group){.number = 1, .atomic = true};
        bed->fleet.groups = &bed->group;
        bed->fleet.n_groups = 1;
}

Test(converge_cost, a_name_costs_as_much_in_a_large_fleet_as_in_a_small_one)
{
        check_cost(nothing_there);
        check_cost(all_serve);
        check_cost(one_model);
        check_cost(one_file);
        check_cost(half_load);
        check_cost(other_workers);
        check_cost(sizes);
        check_cost(ensembles);
        check_cost(on_request);
        check_cost(all_in_use);
        check_cost(one_group);
}

/* What does not fit is for the next call: no step is written behind the last place. */
Test(converge_cost, steps_that_do_not_fit_come_with_the_next_call)
{
        static struct bed bed;
        struct sl_step steps[SL_STEPS_MAX + 1] = {[SL_STEPS_MAX] = {.kind = SL_STEP_KIND_COUNT}};
        uint64_t due_ns;

        bed.fleet = (struct sl_fleet){.n = MANY, .names = bed.names, .loads_max = 1};
        for (uint32_t i = 0; i < MANY; i++)
                bed.names[i].used = true;
        cr_expect_eq(sl_converge(&bed.fleet, steps, NULL, &due_ns), SL_STEPS_MAX);
        cr_expect_eq(steps[SL_STEPS_MAX].kind, SL_STEP_KIND_COUNT);
        cr_expect_eq(due_ns, UINT64_MAX);
}
