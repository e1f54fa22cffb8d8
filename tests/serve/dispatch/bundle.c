/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for models that share carriers is launched together, in shares and in turns. The carriers here compute nothing: a
 * launch is over when the test says so.
 */
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

/* Models 0 to n - 1, each with a lane of each of @n_carriers carriers. */
static void set_up(uint32_t n_models, uint32_t n_carriers)
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
                for (uint32_t c = 0; c < n_carriers; c++) {
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
                        sl_workers_add(&model->workers, lane);
                        sl_bundle_add_worker(&bundle, lane);
                }
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

static uint32_t run(void)
{
        return sl_scheduler_run(&(struct sl_schedule){.models = &f->models[0],
                .bundles = &bundle,
                .run = ++runs,
                .budget = &budget,
                .accumulator = f->accumulator,
                .now_ns = 1,
                .ret_next_ns = &next_ns});
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
        for (uint32_t m = 0; m < 6; m++) {
                f->models[m].service_time = (struct sl_service_time){0};
                sl_model_learn(&f->models[m], 1, 5000);
        }
        for (uint16_t m = 0; m < 6; m++)
                wait_for(m, m, 1, 0);
        cr_expect_eq(run(), 6);
        cr_expect_eq(launched(0, 0), 0x3f);
        cr_expect(carriers[0].launches[0].is_light);
        cr_expect_eq(carriers[1].n_launches, 0);
}

/* Ten samples fit a slice: two jobs of eight are more. */
Test(bundle, a_launch_takes_less_than_two_slices_and_who_went_without_is_first_in_the_next)
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
        cr_expect_eq(launched(0, 2), 0x3);
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
