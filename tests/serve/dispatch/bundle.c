/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for models that share carriers is launched together, in shares and in turns. The carriers here compute nothing: a
 * launch is over when the test says so.
 */
#include "base/clock.h"
#include "bundle.h"
#include "fixture.h"
#include "let.h"
#include "scheduler.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define MODELS    8u
#define CARRIERS  2u
#define BATCH_MAX 8u
#define SAMPLE_NS 1000000ull /* far from light */

struct idle_carrier {
        struct sl_carrier common;
        uint32_t n_launches;
        struct sl_carrier_launch launches[64];
};

static void launch(struct sl_carrier *carrier, const struct sl_carrier_launch *launch, struct sl_wait *from)
{
        struct idle_carrier *idle = (struct idle_carrier *)carrier;

        (void)from;
        cr_assert_lt(idle->n_launches, 64);
        idle->launches[idle->n_launches++] = *launch;
}

static const struct sl_carrier_class carrier_class = {.name = "idle", .launch = launch};

static void give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        (void)slot;
        (void)from;
        sl_carrier_fill(executor->carrier, executor->lane);
}

static const struct sl_executor_class lane_class = {.name = "lane", .give = give};

static struct fixture *f;
static struct sl_let let;
static struct idle_carrier carriers[CARRIERS];
static struct sl_executor lanes[CARRIERS][MODELS];
static void *memory[CARRIERS][MODELS];
static struct sl_bundle bundle;
static struct sl_inline_budget budget;
static uint64_t next_ns, runs;
static bool full;

static void add_lane(uint32_t m, uint32_t c)
{
        struct sl_executor *lane = &lanes[c][m];

        memory[c][m] = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(1, 1));
        sl_executor_init(lane, memory[c][m], SL_EXECUTOR_JOBS_MAX, 1, 1);
        lane->class = &lane_class;
        lane->batch_max = BATCH_MAX;
        lane->let = &let;
        lane->carrier = &carriers[c].common;
        lane->carrier->class = &carrier_class;
        lane->carrier->let = &let;
        lane->lane = (uint32_t)sl_carrier_seat(lane->carrier, lane);
        sl_workers_add(&f->models[m].workers, lane);
        sl_bundle_add_worker(&bundle, lane);
}

/* Models 0 to n - 1, each with a lane of those of @n_carriers carriers that are in its bits. */
static void set_up_lanes(uint32_t n_models, uint32_t n_carriers, const uint32_t *carriers_of)
{
        f = fixture_new(MODELS, SL_RULE_NONE, 4, 10, 16);
        let = (struct sl_let){.turns.at_once = n_carriers};
        memset(carriers, 0, sizeof(carriers));
        memset(lanes, 0, sizeof(lanes));
        bundle = (struct sl_bundle){0};
        for (uint32_t m = 0; m < n_models; m++) {
                struct sl_model *model = &f->models[m];

                model->workers = (struct sl_workers){0};
                model->next_busy = m + 1 < n_models ? &f->models[m + 1] : NULL;
                model->bundle = &bundle;
                model->slice_ns = 10 * SAMPLE_NS;
                sl_model_learn(model, 1, SAMPLE_NS);
                sl_bundle_add(&bundle, model);
                for (uint32_t c = 0; c < n_carriers; c++)
                        if (carriers_of[m] >> c & 1)
                                add_lane(m, c);
        }
}

static void set_up(uint32_t n_models, uint32_t n_carriers)
{
        uint32_t carriers_of[MODELS];

        memset(carriers_of, 0xff, sizeof(carriers_of));
        set_up_lanes(n_models, n_carriers, carriers_of);
}

/* So little that it goes to one carrier. */
static void make_light(uint32_t n_models)
{
        for (uint32_t m = 0; m < n_models; m++) {
                f->models[m].service_time = (struct sl_service_time){0};
                sl_model_learn(&f->models[m], 1, 5000);
        }
}

static void tear_down(void)
{
        for (uint32_t c = 0; c < CARRIERS; c++)
                for (uint32_t m = 0; m < MODELS; m++) {
                        free(memory[c][m]);
                        memory[c][m] = NULL;
                }
        fixture_free(f);
}

TestSuite(bundle, .fini = tear_down);

static void wait_for(uint32_t model, uint16_t tag, uint32_t samples, uint32_t priority)
{
        struct sl_request *request = fixture_request(f, tag, samples);
        int id = sl_accumulator_open(f->accumulator, &request->work, 0, samples);

        cr_assert_geq(id, 0);
        sl_scheduler_push(&f->models[model].scheduler, &(struct sl_task){.segment = (uint32_t)id, .samples = samples}, priority);
}

static uint32_t run_at(uint64_t now_ns)
{
        return sl_scheduler_run(&(struct sl_schedule){.models = &f->models[0],
                .bundles = &bundle,
                .run = ++runs,
                .budget = &budget,
                .accumulator = f->accumulator,
                .now_ns = now_ns,
                .ret_next_ns = &next_ns,
                .ret_full = &full});
}

static uint32_t run(void)
{
        return run_at(1);
}

/* Lanes, as bits, of launch @i of a carrier; 0: there was none. */
static uint64_t launched(uint32_t carrier, uint32_t i)
{
        return i < carriers[carrier].n_launches ? carriers[carrier].launches[i].lanes : 0;
}

/* Everything of the carrier's oldest launch, which is launch @i, is answered. */
static void end_launch(uint32_t carrier, uint32_t i)
{
        uint32_t priority = 0;
        bool over = false;

        for (uint64_t left = launched(carrier, i); left; left &= left - 1) {
                struct sl_executor *lane = &lanes[carrier][__builtin_ctzll(left)];
                uint32_t n = lane->slots[lane->oldest].job->n_pieces;

                for (uint32_t piece = 0; piece < n; piece++)
                        sl_executor_answered(lane, lane->oldest, piece);
                cr_assert_not(over);
                over = sl_carrier_answered(&carriers[carrier].common, &priority);
        }
        cr_assert(over);
        let.turns.running[priority]--;
}

Test(bundle, what_waits_for_any_of_them_goes_together)
{
        set_up(5, 1);
        wait_for(0, 0, 1, 0);
        wait_for(2, 1, 2, 0);
        wait_for(4, 2, 1, 0);
        cr_expect_eq(run(), 3);
        cr_expect_eq(launched(0, 0), 0x15);
        cr_expect_eq(carriers[0].n_launches, 1);
        cr_expect_eq(let.turns.running[0], 1, "a launch is one job on its let");
        end_launch(0, 0);
        cr_expect_eq(let.turns.running[0], 0);
}

Test(bundle, requests_of_one_model_share_its_batch)
{
        set_up(2, 1);
        for (uint16_t i = 0; i < 4; i++)
                wait_for(1, i, 2, 0);
        cr_expect_eq(run(), 1);
        cr_expect_eq(lanes[0][1].slots[0].job->n_pieces, 4);
}

Test(bundle, what_comes_while_a_carrier_computes_waits_and_goes_together_then)
{
        set_up(4, 1);
        wait_for(0, 0, 1, 0);
        run();
        for (uint16_t m = 1; m < 4; m++) {
                wait_for(m, m, 1, 0);
                cr_expect_eq(run(), 0);
        }
        end_launch(0, 0);
        cr_expect_eq(run(), 3);
        cr_expect_eq(launched(0, 1), 0xe);
}

Test(bundle, carriers_get_equal_shares)
{
        set_up(6, 2);
        for (uint16_t m = 0; m < 5; m++)
                wait_for(m, m, 1, 0);
        cr_expect_eq(run(), 5);
        cr_expect_eq(__builtin_popcountll(launched(0, 0)), 3);
        cr_expect_eq(__builtin_popcountll(launched(1, 0)), 2);
        cr_expect_eq(launched(0, 0) & launched(1, 0), 0);
        cr_expect_eq(launched(0, 0) | launched(1, 0), 0x1f);
}

Test(bundle, carriers_get_the_same_of_what_divides_evenly)
{
        set_up(6, 2);
        for (uint16_t m = 0; m < 4; m++)
                wait_for(m, m, 1, 0);
        cr_expect_eq(run(), 4);
        cr_expect_eq(__builtin_popcountll(launched(0, 0)), 2);
        cr_expect_eq(launched(0, 0) | launched(1, 0), 0xf);
}

Test(bundle, one_carrier_gets_all_that_takes_no_longer_than_a_thread_takes_to_wake)
{
        set_up(6, 2);
        make_light(6);
        for (uint16_t m = 0; m < 6; m++)
                wait_for(m, m, 1, 0);
        cr_expect_eq(run(), 6);
        cr_expect_eq(launched(0, 0), 0x3f);
        cr_expect(carriers[0].launches[0].is_light);
        cr_expect_eq(carriers[1].n_launches, 0);
}

/* As an allocation places them: the first idle carrier is of no use to who has no lane there. */
Test(bundle, what_is_light_goes_to_a_carrier_that_has_lanes_of_it)
{
        set_up_lanes(3, 2, (uint32_t[]){1, 2, 2});
        make_light(3);
        wait_for(1, 0, 1, 0);
        wait_for(2, 1, 1, 0);
        cr_expect_eq(run(), 2);
        cr_expect_eq(carriers[0].n_launches, 0);
        cr_expect_eq(__builtin_popcountll(launched(1, 0)), 2);
        wait_for(0, 2, 1, 0);
        cr_expect_eq(run(), 1, "the other carrier is idle");
        cr_expect_eq(__builtin_popcountll(launched(0, 0)), 1);
}

Test(bundle, what_is_light_goes_to_several_where_none_has_lanes_of_all)
{
        set_up_lanes(2, 2, (uint32_t[]){1, 2});
        make_light(2);
        wait_for(0, 0, 1, 0);
        wait_for(1, 1, 1, 0);
        cr_expect_eq(run(), 2);
        cr_expect_eq(carriers[0].n_launches, 1);
        cr_expect_eq(carriers[1].n_launches, 1);
}

Test(bundle, a_carrier_gets_at_once_what_no_other_one_can_have)
{
        set_up_lanes(4, 2, (uint32_t[]){1, 1, 1, 3});
        for (uint16_t m = 0; m < 4; m++)
                wait_for(m, m, 1, 0);
        cr_expect_eq(run(), 4);
        cr_expect_eq(__builtin_popcountll(launched(0, 0)), 3);
        cr_expect_eq(__builtin_popcountll(launched(1, 0)), 1);
}

/* Ten samples fit a slice: two jobs of eight are more. */
Test(bundle, a_launch_takes_less_than_two_slices_and_all_have_a_turn_before_any_has_two)
{
        set_up(4, 1);
        for (uint16_t m = 0; m < 4; m++) {
                wait_for(m, m, 8, 0);
                wait_for(m, (uint16_t)(4 + m), 8, 0);
        }
        cr_expect_eq(run(), 2);
        cr_expect_eq(launched(0, 0), 0x3);
        end_launch(0, 0);
        cr_expect_eq(run(), 2);
        cr_expect_eq(launched(0, 1), 0xc, "models that have got something go behind those that have not");
        end_launch(0, 1);
        cr_expect_eq(run(), 2);
        cr_expect_eq(launched(0, 2), 0xc, "the next round goes backwards");
        wait_for(3, 8, 8, 0);
        end_launch(0, 2);
        cr_expect_eq(run(), 2);
        cr_expect_eq(launched(0, 3), 0x3, "who comes again meanwhile waits for the next round");
}

/* Most runs are such. */
Test(bundle, a_run_that_gives_nothing_begins_no_round)
{
        uint64_t had = 0;

        set_up(8, 1);
        for (uint16_t tag = 0; tag < 32; tag++) /* all have something at any time */
                wait_for(tag % 8, tag, 8, 0);
        for (uint32_t i = 0; i < 4; i++) {
                for (uint32_t k = 0; k < 3; k++)
                        run();
                cr_expect_eq(launched(0, i) & had, 0, "launch %u: %llx have had a turn", i, (unsigned long long)had);
                had |= launched(0, i);
                end_launch(0, i);
        }
        cr_expect_eq(had, 0xff);
}

Test(bundle, every_other_launch_is_computed_backwards)
{
        set_up(2, 1);
        for (uint16_t i = 0; i < 4; i++) {
                wait_for(0, (uint16_t)(2 * i), 1, 0);
                wait_for(1, (uint16_t)(2 * i + 1), 1, 0);
                cr_expect_eq(run(), 2);
                cr_expect_eq(carriers[0].launches[i].backwards, i % 2 == 1);
                end_launch(0, i);
        }
}

Test(bundle, who_has_its_turn_still_has_it_when_another_leaves)
{
        set_up(4, 1);
        for (uint16_t m = 0; m < 4; m++)
                wait_for(m, m, 8, 0);
        run();
        end_launch(0, 0);
        cr_expect_eq(launched(0, 0), 0x3);
        sl_bundle_remove(&bundle, &f->models[0]);
        wait_for(1, 4, 8, 0);
        cr_expect_eq(run(), 2);
        cr_expect_eq(launched(0, 1), 0xc);
}

Test(bundle, a_more_urgent_class_has_a_launch_of_its_own_first)
{
        set_up(3, 1);
        wait_for(0, 0, 1, 2);
        wait_for(1, 1, 1, 0);
        wait_for(2, 2, 1, 2);
        cr_expect_eq(run(), 1);
        cr_expect_eq(launched(0, 0), 0x2);
        end_launch(0, 0);
        cr_expect_eq(run(), 2);
        cr_expect_eq(launched(0, 1), 0x5);
}

Test(bundle, who_leaves_is_launched_no_more_and_the_turn_goes_on)
{
        set_up(4, 1);
        for (uint16_t m = 0; m < 4; m++)
                wait_for(m, m, 1, 0);
        run();
        end_launch(0, 0);
        sl_bundle_remove(&bundle, &f->models[3]);
        f->models[2].next = NULL;
        for (uint16_t m = 0; m < 3; m++)
                wait_for(m, (uint16_t)(4 + m), 1, 0);
        cr_expect_eq(run(), 3);
        cr_expect_eq(launched(0, 1), 0x7);
}

/* ---- what the dispatcher computes itself ---- */

#define LIMIT_NS 20000u

static struct idle_carrier inliner;
static struct sl_executor inliners[MODELS];
static void *inliner_memory[MODELS];

/* What each merged plan takes; 0: there is none. Of consecutive lanes; 0: of all. */
static uint64_t merged_ns;
static uint32_t merged_lanes;
static struct sl_block *const some_block = (struct sl_block *)&merged_ns;

uint64_t __wrap_sl_blocks_together(
        const struct sl_block *blocks, uint32_t lane, uint64_t waiting, uint32_t samples, uint64_t *ret_ns);

uint64_t __wrap_sl_blocks_together(
        const struct sl_block *blocks, uint32_t lane, uint64_t waiting, uint32_t samples, uint64_t *ret_ns)
{
        cr_expect(blocks == some_block && samples == 1 && waiting >> lane & 1);
        *ret_ns = merged_ns;
        if (merged_lanes)
                waiting &= ((UINT64_C(1) << merged_lanes) - 1) << lane / merged_lanes * merged_lanes;
        return merged_ns ? waiting : 0;
}

/* Model m takes @ns[m] for a sample, of which one waits. */
static void set_up_inline(uint32_t n_models, const uint64_t *ns, uint64_t left_ns)
{
        set_up(n_models, 1);
        memset(&inliner, 0, sizeof(inliner));
        memset(inliners, 0, sizeof(inliners));
        inliner.common.class = &carrier_class;
        bundle.inliner = &inliner.common;
        for (uint16_t m = 0; m < n_models; m++) {
                inliner_memory[m] = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(1, 1));
                sl_executor_init(&inliners[m], inliner_memory[m], SL_EXECUTOR_JOBS_MAX, 1, 1);
                inliners[m].class = &lane_class;
                inliners[m].batch_max = 1;
                inliners[m].carrier = &inliner.common;
                inliners[m].lane = (uint32_t)sl_carrier_seat(&inliner.common, &inliners[m]);
                inliners[m].model = &f->models[m];
                f->models[m].inliner = &inliners[m];
                sl_inline_gauge_init(&f->models[m].gauge, ns[m]);
                wait_for(m, m, 1, 0);
                sl_task_queue_at(&f->models[m].scheduler.queues[0], 0)->is_inline = true;
        }
        budget = (struct sl_inline_budget){.limit_ns = LIMIT_NS, .left_ns = left_ns, .keeps = true};
}

static void end_inline(uint32_t n_models)
{
        for (uint32_t m = 0; m < n_models; m++)
                free(inliner_memory[m]);
        budget = (struct sl_inline_budget){0};
        merged_ns = merged_lanes = 0;
}

Test(bundle, the_dispatcher_computes_the_shortest_first_and_no_more_than_one_job_may_take)
{
        set_up_inline(5, (const uint64_t[]){9000, 7000, 30000, 6000, 8000}, 50000);
        run();
        cr_assert_eq(inliner.n_launches, 1);
        cr_expect_eq(inliner.launches[0].lanes, 0xa, "6 and 7 us, and not 8 more");
        end_inline(5);
}

/* Their answers are harvested before the next one. */
Test(bundle, the_dispatcher_has_no_more_launches_under_way_than_a_carrier_holds)
{
        static const uint64_t ns[] = {60000000, 60000000, 60000000, 60000000, 60000000};

        set_up_inline(5, ns, 1000000000);
        budget.limit_ns = 100000000;
        run_at(sl_clock_ns());
        cr_assert_eq(inliner.n_launches, SL_EXECUTOR_JOBS_MAX);
        cr_expect_eq(inliner.common.n_launches, SL_EXECUTOR_JOBS_MAX);
        end_inline(5);
}

/* Each has two more samples: three of 6 us do not fit the limit. */
Test(bundle, what_a_job_gathers_counts_in_what_a_launch_may_take)
{
        set_up_inline(3, (const uint64_t[]){6000, 6000, 6000}, 50000);
        for (uint16_t m = 0; m < 3; m++) {
                inliners[m].batch_max = 3;
                for (uint16_t i = 0; i < 2; i++) {
                        wait_for(m, (uint16_t)(3 + 2 * m + i), 1, 0);
                        sl_task_queue_at(&f->models[m].scheduler.queues[0], 1u + i)->is_inline = true;
                }
        }
        budget.limit_ns = LIMIT_NS;
        run();
        cr_assert_geq(inliner.n_launches, 1);
        cr_expect_eq(__builtin_popcountll(inliner.launches[0].lanes), 1);
        end_inline(3);
}

Test(bundle, what_a_merged_plan_computes_together_may_take_what_the_pass_has_left)
{
        set_up_inline(5, (const uint64_t[]){9000, 9000, 9000, 9000, 9000}, 50000);
        inliner.common.blocks = some_block;
        merged_ns = 2 * LIMIT_NS;
        run();
        cr_assert_eq(inliner.n_launches, 1);
        cr_expect_eq(inliner.launches[0].lanes, 0x1f);
        cr_expect_eq(inliner.launches[0].blocks, some_block);
        end_inline(5);
}

Test(bundle, what_several_merged_plans_compute_goes_with_one_launch_as_far_as_the_time_goes)
{
        static const uint64_t ns[] = {9000, 8000, 7000, 6000, 5000, 4000};

        set_up_inline(6, ns, 50000);
        inliner.common.blocks = some_block;
        merged_lanes = 2;
        merged_ns = LIMIT_NS / 3;
        run_at(sl_clock_ns());
        cr_assert_geq(inliner.n_launches, 1);
        cr_expect_eq(inliner.launches[0].lanes, 0x3f);
        end_inline(6);

        tear_down();
        set_up_inline(6, ns, 50000);
        inliner.common.blocks = some_block;
        merged_lanes = 2;
        merged_ns = LIMIT_NS / 2;
        run_at(sl_clock_ns());
        cr_assert_geq(inliner.n_launches, 1);
        cr_expect_eq(inliner.launches[0].lanes, 0x3c, "a third would take more than a job may, and the shortest go first");
        end_inline(6);
}

Test(bundle, what_a_merged_plan_computes_waits_for_a_pass_that_has_so_much_left)
{
        set_up_inline(5, (const uint64_t[]){9000, 9000, 9000, 9000, 9000}, 2 * LIMIT_NS - 1);
        inliner.common.blocks = some_block;
        merged_ns = 2 * LIMIT_NS;
        run();
        cr_expect_eq(inliner.n_launches, 0);
        cr_expect(budget.left_ns == 0 && budget.kept, "the next pass goes on");
        budget = (struct sl_inline_budget){.limit_ns = LIMIT_NS, .left_ns = 2 * LIMIT_NS - 1, .keeps = true};
        run();
        cr_assert_eq(inliner.n_launches, 1, "but not for ever, where something else is always first");
        cr_expect_eq(inliner.launches[0].lanes, 0x3);
        end_inline(5);
}

Test(bundle, too_few_for_a_merged_plan_are_computed_one_by_one)
{
        set_up_inline(2, (const uint64_t[]){9000, 9000}, 50000);
        inliner.common.blocks = some_block;
        run();
        cr_assert_eq(inliner.n_launches, 1);
        cr_expect_eq(inliner.launches[0].lanes, 0x3);
        end_inline(2);
}
