/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a merged plan computes for several lanes of a launch is what each lane's own plan makes: whoever has a job, of however many
 * samples, and whatever becomes of the others.
 */
#include "block.h"

#include "accumulator.h"
#include "assembly.h"
#include "backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "bell.h"
#include "executor.h"
#include "inline_carrier.h"
#include "inline_executor.h"
#include "lane_executor.h"
#include "let.h"
#include "lower.h"
#include "merge/merge.h"
#include "network.h"
#include "pass.h"
#include "segment.h"
#include "stats.h"
#include "thread_carrier.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMBERS    5u
#define BLOCKS_MAX 2u
#define BATCH_MAX  4u
#define SAMPLES    16u /* of each member, in the arena */
#define PIXELS     (4u * 8u * 8u)
#define CLASSES    10u
#define ROWS       7u /* of each member's table */
#define SEGMENTS   64u
#define TOLERANCE  1e-5
#define HANG_NS    (120 * SL_NS_PER_SECOND)
#define RUN_NS     1000u /* of one sample of each; nobody measures it here */

struct lane {
        struct network net;
        struct sl_plan *plan;
        struct sl_executor *executor;
        struct sl_worker_stats stats;
        struct sl_place inputs[2], output;
        struct sl_work work;
        float *pixels, *made;
        int64_t *rows;
        float wanted[SAMPLES * CLASSES];
        int32_t status; /* of its last answers: the first that failed */
        char why[SL_FAULT_BYTES];
        uint64_t busy_ns;
        uint32_t given_up; /* pieces of it */
};

struct bench {
        uint32_t n_blocks, ends[BLOCKS_MAX]; /* members of each: [the end before, its end) */
        struct sl_plan *merged[BLOCKS_MAX];
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        struct sl_served_port output; /* the assembly's */
        struct sl_assembly assembly;
        struct sl_mapping arena;
        struct sl_let let;
        struct sl_bell bell;
        struct sl_wait *wait;
        struct sl_carrier *carrier;
        struct sl_block *block;
        struct lane lanes[MEMBERS];
        struct network numbers; /* random ones */
};

static struct bench bench;
static uint64_t bound_ns = HANG_NS; /* of inline lanes */

/* Two convolutions and a product, and a row of a table that the second input names. */
static void build(struct network *net, uint32_t number)
{
        uint32_t x, rows, row;

        network_init(net);
        net->state += (number + 1) * 0x9e3779b97f4a7c15u;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 8, 8));
        rows = network_input(net, SL_DTYPE_I64, DIMS(SL_DIM_BATCH, 1));
        for (uint32_t i = 0; i < 2; i++)
                x = network_apply(net, SL_OP_RELU, network_conv(net, x, 4, 4, 3, 1, 1));
        x = network_node(net, SL_OP_FLATTEN, 1, &x, ATTRS({SL_ATTR_AXIS, 0, {1}}));
        x = network_node(net, SL_OP_GEMM,
                VALUES(x, network_weights(net, DIMS(CLASSES, PIXELS)), network_weights(net, DIMS(CLASSES))),
                ATTRS({SL_ATTR_TRANS_B, 0, {1}}));
        row = network_node(
                net, SL_OP_GATHER, VALUES(network_weights(net, DIMS(ROWS, CLASSES)), rows), ATTRS({SL_ATTR_AXIS, 0, {0}}));
        row = network_node(net, SL_OP_RESHAPE, 1, &row, ATTRS({SL_ATTR_SHAPE, 2, {0, CLASSES}}));
        network_output(net, network_node(net, SL_OP_ADD, VALUES(x, row), 0, NULL));
        network_finish(net);
        cr_assert_eq(sl_passes_run_phase(net->graph, SL_PASS_PORTABLE, &(struct sl_pass_options){0}, NULL), 0);
}

static struct sl_plan *compile(const struct sl_graph *graph)
{
        const struct sl_pass_options passes = {.backend = sl_backend_find("cpu")};
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_graph *copy;
        struct sl_plan *plan;
        struct sl_error error = {""};
        int fd = memfd_create("plan", MFD_CLOEXEC);

        sl_lower_options_init(&options);
        options.batch_max = BATCH_MAX;
        cr_assert_eq(sl_graph_copy(graph, &copy), 0);
        cr_assert_eq(sl_passes_run_phase(copy, SL_PASS_BACKEND, &passes, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_new_in(copy, &options, NULL, fd, &lowered, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        sl_graph_free(copy);
        close(fd);
        return plan;
}

static uint32_t first_of(uint32_t block)
{
        return block ? bench.ends[block - 1] : 0;
}

static void compile_all(void)
{
        const struct sl_graph *graphs[MEMBERS];
        struct sl_merge_report report;
        struct sl_error error = {""};

        for (uint32_t i = 0; i < MEMBERS; i++) {
                build(&bench.lanes[i].net, i);
                graphs[i] = bench.lanes[i].net.graph;
                bench.lanes[i].plan = compile(graphs[i]);
        }
        for (uint32_t b = 0; b < bench.n_blocks; b++) {
                uint32_t first = first_of(b);
                struct sl_graph *merged;

                cr_assert_eq(sl_graph_new(&merged), 0);
                cr_assert_eq(
                        sl_merge(graphs + first, bench.ends[b] - first, &(struct sl_merge_options){0}, merged, &report, &error), 1,
                        "%s", error.text);
                bench.merged[b] = compile(merged);
                sl_graph_free(merged);
        }
}

/* The arena has, for each member, pixels, then rows, then what is made. */
static void place_lane(struct lane *lane, uint32_t number, uint32_t region)
{
        uint64_t pixels = SAMPLES * PIXELS * sizeof(float), rows = SAMPLES * sizeof(int64_t),
                 made = SAMPLES * CLASSES * sizeof(float), at = number * (pixels + rows + made);

        lane->inputs[0] = (struct sl_place){.region = region, .offset = at, .stride = PIXELS * sizeof(float)};
        lane->inputs[1] = (struct sl_place){.region = region, .offset = at + pixels, .stride = sizeof(int64_t)};
        lane->output = (struct sl_place){.region = region, .offset = at + pixels + rows, .stride = CLASSES * sizeof(float)};
        lane->pixels = sl_regions_at(bench.regions, &lane->inputs[0]);
        lane->rows = sl_regions_at(bench.regions, &lane->inputs[1]);
        lane->made = sl_regions_at(bench.regions, &lane->output);
        lane->work = (struct sl_work){
                .assembly = &bench.assembly, .inputs = lane->inputs, .outputs = &lane->output, .segments = SL_NO_SEGMENT};
}

static void fill_lane(struct lane *lane)
{
        for (uint32_t i = 0; i < SAMPLES * PIXELS; i++)
                lane->pixels[i] = network_random(&bench.numbers);
        for (uint32_t i = 0; i < SAMPLES; i++)
                lane->rows[i] = (int64_t)(i % ROWS);
}

/* Sample by sample. */
static void want_lane(struct lane *lane)
{
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(lane->plan, 1, &instance, NULL), 0);
        for (uint32_t i = 0; i < SAMPLES; i++) {
                const void *inputs[] = {lane->pixels + i * PIXELS, lane->rows + i};
                void *output = lane->wanted + i * CLASSES;

                cr_assert_eq(sl_instance_run(instance, 1, inputs, &output), 0);
        }
        sl_instance_free(instance);
}

static void make_memory(void)
{
        int fd, region;

        cr_assert_eq(sl_regions_new(4, &bench.regions), 0);
        cr_assert_eq(sl_accumulator_new(bench.regions, SEGMENTS, 1 << 16, &bench.accumulator), 0);
        cr_assert_eq(sl_wait_new(SL_WAIT_ANY, &bench.wait, NULL), 0);
        bench.bell.wait = bench.wait;
        bench.assembly = (struct sl_assembly){.rule = SL_RULE_NONE,
                .direct = true,
                .n_members = 1,
                .member_outputs = 1,
                .n_outputs = 1,
                .outputs = &bench.output};
        cr_assert_eq(sl_served_port_init(&bench.output, &sl_plan_info(bench.lanes[0].plan)->outputs[0]), 0);
        cr_assert_eq(sl_segment_create("starling-arena", 1 << 20, SL_SEAL_SHARED, &fd, &bench.arena, NULL), 0);
        region = sl_regions_add(bench.regions, bench.arena.base, bench.arena.bytes, fd);
        cr_assert_geq(region, 0);
        close(fd);
        for (uint32_t i = 0; i < MEMBERS; i++) {
                place_lane(&bench.lanes[i], i, (uint32_t)region);
                fill_lane(&bench.lanes[i]);
                want_lane(&bench.lanes[i]);
        }
}

static void start_lane(struct lane *lane)
{
        const struct sl_lane_executor_options options = {
                .prepare = {.plan = lane->plan,
                        .regions = bench.regions,
                        .accumulator = bench.accumulator,
                        .batch_max = BATCH_MAX,
                        .stats = &lane->stats},
                .carrier = bench.carrier,
                .starter = &bench.bell,
                .name = "sl-lane",
        };
        struct sl_error error = {""};

        cr_assert_eq(sl_lane_executor_new(&options, &lane->executor, &error), 0, "%s", error.text);
        while (sl_executor_started(lane->executor) == SL_EXECUTOR_STARTING)
                usleep(100);
        cr_assert_eq(sl_executor_started(lane->executor), SL_EXECUTOR_READY);
}

static void start_inline_lane(struct lane *lane)
{
        const struct sl_job_runner_options options = {.plan = lane->plan,
                .regions = bench.regions,
                .verdicts = sl_accumulator_verdict(bench.accumulator, 0),
                .batch_max = BATCH_MAX};
        struct sl_job_runner *tried;
        struct sl_inline_trial trial;

        cr_assert_eq(sl_job_runner_new(&options, &tried), 0);
        cr_assert_eq(sl_inline_trial_run(&options, tried, HANG_NS, HANG_NS, &trial), 0);
        sl_job_runner_free(tried);
        cr_assert_not_null(trial.runner);
        cr_assert_eq(sl_inline_executor_new(&trial, lane->plan, bound_ns, bench.accumulator, &lane->stats, &lane->executor), 0);
        cr_assert_eq(sl_inline_executor_join(lane->executor, bench.carrier), 0);
}

static void start_carrier(void)
{
        const struct sl_thread_carrier_options options = {
                .accumulator = bench.accumulator,
                .let = &bench.let,
                .room_bytes = sl_job_runner_room_bytes(bench.lanes[0].plan, BATCH_MAX),
                .name = "sl-carrier",
                .dispatcher = &bench.bell,
        };

        cr_assert_eq(sl_thread_carrier_new(&options, &bench.carrier, NULL), 0);
}

static struct sl_block *make_block(uint32_t number, uint32_t least)
{
        const struct sl_plan_info *infos[MEMBERS];
        const struct sl_block_size all[SL_PLAN_BATCHES_MAX] = {{least, RUN_NS}, {least, 2 * RUN_NS}, {least, 4 * RUN_NS}};
        uint32_t first = first_of(number), n = bench.ends[number] - first;
        struct sl_block_options options = {
                .plan = bench.merged[number], .members = infos, .n_members = n, .batch_max = BATCH_MAX, .sizes = all};
        struct sl_error error = {""};
        struct sl_block *block;

        for (uint32_t i = 0; i < n; i++)
                infos[i] = sl_plan_info(bench.lanes[first + i].plan);
        cr_assert_eq(sl_block_new(&options, &block, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < n; i++)
                sl_block_seat(block, i, bench.lanes[first + i].executor->lane);
        return block;
}

static struct sl_block *make_blocks(uint32_t least)
{
        struct sl_block *block = NULL;

        for (uint32_t b = bench.n_blocks; b-- > 0;) {
                struct sl_block *own = make_block(b, least);

                if (block)
                        sl_block_chain(own, block);
                block = own;
        }
        return block;
}

/* The first block has the members below @end, another one the others. */
static void set_up_blocks(bool is_inline, uint32_t least, uint32_t end)
{
        memset(&bench, 0, sizeof(bench));
        bench.n_blocks = end < MEMBERS ? 2 : 1;
        bench.ends[0] = end;
        bench.ends[1] = MEMBERS;
        network_init(&bench.numbers);
        compile_all();
        make_memory();
        if (is_inline)
                cr_assert_eq(sl_inline_carrier_new(&bench.carrier), 0);
        else
                start_carrier();
        for (uint32_t i = 0; i < MEMBERS; i++) {
                if (is_inline)
                        start_inline_lane(&bench.lanes[i]);
                else
                        start_lane(&bench.lanes[i]);
                sl_carrier_knows(bench.carrier, bench.lanes[i].executor->lane);
        }
        bench.block = make_blocks(least);
        sl_carrier_put_blocks(bench.carrier, bench.block);
}

static void set_up(bool is_inline, uint32_t least)
{
        set_up_blocks(is_inline, least, MEMBERS);
}

static void tear_down(void)
{
        sl_carrier_put_blocks_away(bench.carrier);
        sl_block_free(sl_carrier_take_blocks(bench.carrier));
        for (uint32_t i = 0; i < MEMBERS; i++) {
                sl_executor_free(bench.lanes[i].executor);
                sl_plan_free(bench.lanes[i].plan);
                network_deinit(&bench.lanes[i].net);
        }
        sl_carrier_free(bench.carrier);
        for (uint32_t b = 0; b < bench.n_blocks; b++)
                sl_plan_free(bench.merged[b]);
        network_deinit(&bench.numbers);
        sl_mapping_free(&bench.arena);
        sl_accumulator_free(bench.accumulator);
        sl_regions_free(bench.regions);
        sl_wait_free(bench.wait);
}

/* Pieces of so many samples each, from the first sample on. */
static void give(uint32_t number, const uint32_t *samples, uint32_t n)
{
        struct lane *lane = &bench.lanes[number];
        struct sl_job *job = sl_executor_job(lane->executor);
        uint32_t first = 0;

        lane->status = 0;
        lane->why[0] = 0;
        lane->busy_ns = 0;
        memset(lane->made, 0xff, SAMPLES * CLASSES * sizeof(float));
        for (uint32_t i = 0; i < n; i++) {
                int segment = sl_accumulator_open(bench.accumulator, &lane->work, first, samples[i]);

                cr_assert_geq(segment, 0);
                sl_accumulator_add_piece(bench.accumulator, job, (uint32_t)segment, 0, 0, samples[i]);
                first += samples[i];
        }
        sl_executor_give(lane->executor, NULL);
}

static void give_one(uint32_t number, uint32_t samples)
{
        give(number, &samples, 1);
}

static void take_answer(struct sl_executor *executor, const struct sl_job *job, const struct sl_prediction *answer)
{
        struct lane *lane = bench.lanes;

        while (lane->executor != executor)
                lane++;
        if (answer->status < 0 && lane->status == 0) {
                lane->status = answer->status;
                if (answer->explained)
                        memcpy(lane->why, job->faults[answer->piece].text, sizeof(lane->why));
        }
        lane->busy_ns += answer->busy_ns;
        lane->given_up += answer->lost == SL_LOST_LONG;
        sl_accumulator_close(bench.accumulator, job->pieces[answer->piece].segment);
}

static bool poll_any(struct sl_executor **ret_executor, struct sl_job **ret_job, struct sl_prediction *ret_answer)
{
        if (sl_carrier_poll(bench.carrier, ret_executor, ret_job, ret_answer))
                return true;
        for (uint32_t i = 0; i < MEMBERS && !bench.carrier->class->poll; i++) {
                *ret_executor = bench.lanes[i].executor;
                if (sl_executor_poll(*ret_executor, ret_job, ret_answer))
                        return true;
        }
        return false;
}

/* What was given goes, and everything is answered. */
static void launch(void)
{
        uint64_t end_ns = sl_clock_ns() + HANG_NS;
        struct sl_executor *executor;
        struct sl_prediction answer;
        struct sl_job *job;
        uint32_t priority;
        bool over = false;

        cr_assert(sl_carrier_send(bench.carrier, 0, true, NULL));
        while (!over) {
                cr_assert_lt(sl_clock_ns(), end_ns, "an answer is missing");
                if (!poll_any(&executor, &job, &answer))
                        continue;
                take_answer(executor, job, &answer);
                if (sl_executor_answered(executor, answer.slot, answer.piece))
                        over = sl_carrier_answered(bench.carrier, &priority);
        }
}

static void expect_made(uint32_t number, uint32_t first, uint32_t samples)
{
        const struct lane *lane = &bench.lanes[number];

        for (uint32_t i = first * CLASSES; i < (first + samples) * CLASSES; i++)
                cr_assert(
                        fabs((double)lane->made[i] - (double)lane->wanted[i]) <= TOLERANCE * fmax(1, fabs((double)lane->wanted[i])),
                        "lane %u, value %u: %g, not %g", number, i, (double)lane->made[i], (double)lane->wanted[i]);
}

static uint64_t runs(void)
{
        return sl_blocks_count(bench.block).runs;
}

static uint32_t dice(uint32_t sides)
{
        return (uint32_t)((network_random(&bench.numbers) + 1) * 1e6f) % sides;
}

/* Up to three pieces of one sample or two, of a lane here and there. */
static void give_at_random(uint32_t *ret_samples)
{
        for (uint32_t i = 0; i < MEMBERS; i++) {
                const uint32_t samples[] = {1 + dice(2), 1, 1};
                uint32_t n = dice(4);

                n = n == 3 ? 1 + dice(3) : n;
                ret_samples[i] = 0;
                for (uint32_t k = 0; k < n; k++)
                        ret_samples[i] += samples[k];
                if (n)
                        give(i, samples, n);
        }
}

static void try_at_random(void)
{
        for (uint32_t round = 0; round < 300; round++) {
                uint32_t samples[MEMBERS], all = 0;

                give_at_random(samples);
                for (uint32_t i = 0; i < MEMBERS; i++)
                        all += samples[i];
                if (all)
                        launch();
                for (uint32_t i = 0; i < MEMBERS; i++) {
                        if (!samples[i])
                                continue;
                        cr_assert_eq(bench.lanes[i].status, 0);
                        expect_made(i, 0, samples[i]);
                }
        }
        cr_expect_gt(runs(), 50);
}

TestSuite(block, .fini = tear_down, .timeout = 60);

Test(block, merged_lanes_make_what_single_ones_do)
{
        set_up(false, 2);
        try_at_random();
}

Test(block, the_dispatcher_computes_merged_lanes_in_the_same_way)
{
        set_up(true, 2);
        try_at_random();
}

/* Neither the merged plan nor the lanes' own have made anything: all of it is for workers. */
Test(block, a_launch_of_the_dispatcher_that_takes_too_long_is_given_up_once_and_whole)
{
        bound_ns = 1;
        set_up(true, 2);
        for (uint32_t i = 0; i < MEMBERS; i++)
                give(i, (uint32_t[]){1, 1}, 2);
        launch();
        cr_expect_eq(runs(), 0);
        for (uint32_t i = 0; i < MEMBERS; i++) {
                cr_expect_eq(bench.lanes[i].given_up, 2, "lane %u", i);
                cr_expect_eq(sl_counter_read(&bench.lanes[i].stats.batches), 0, "lane %u", i);
        }
}

Test(block, several_blocks_of_one_launch_make_what_single_ones_do)
{
        set_up_blocks(true, 2, 3);
        for (uint32_t i = 0; i < MEMBERS; i++)
                give_one(i, 1);
        launch();
        cr_expect_eq(runs(), 2);
        for (uint32_t i = 0; i < MEMBERS; i++)
                expect_made(i, 0, 1);
        try_at_random();
}

Test(block, too_few_lanes_compute_by_plans_of_their_own)
{
        set_up(false, 3);
        give_one(1, 1);
        give_one(4, 1);
        launch();
        cr_expect_eq(runs(), 0);
        expect_made(1, 0, 1);
        expect_made(4, 0, 1);
        for (uint32_t i = 1; i < MEMBERS; i++)
                give_one(i, 2);
        launch();
        cr_expect_eq(runs(), 1);
        cr_expect_eq(sl_blocks_count(bench.block).jobs, 4);
}

Test(block, who_has_another_number_of_samples_computes_alone)
{
        set_up(false, 2);
        give_one(0, 1);
        give_one(1, 2);
        give_one(2, 3); /* none of the plan's */
        give_one(3, 1);
        launch();
        cr_expect_eq(runs(), 1);
        cr_expect_eq(sl_blocks_count(bench.block).jobs, 2);
        for (uint32_t i = 0; i < 4; i++)
                expect_made(i, 0, i == 1 ? 2 : i == 2 ? 3 : 1);
}

Test(block, an_index_out_of_bounds_fails_nobody_else)
{
        set_up(false, 2);
        bench.lanes[2].rows[0] = 1 << 20;
        for (uint32_t i = 0; i < MEMBERS; i++)
                give_one(i, 1);
        launch();
        cr_expect_eq(runs(), 0);
        for (uint32_t i = 0; i < MEMBERS; i++) {
                cr_expect_eq(bench.lanes[i].status, i == 2 ? -ERANGE : 0);
                if (i != 2)
                        expect_made(i, 0, 1);
        }
        cr_expect(bench.lanes[2].why[0], "its own runner says which node it was");
}

/* A sum with zeros of another lane would make them NaN, too. */
Test(block, not_a_number_of_one_lane_reaches_no_other)
{
        set_up(false, 2);
        for (uint32_t k = 0; k < PIXELS; k++)
                bench.lanes[3].pixels[k] = k % 2 ? NAN : INFINITY;
        for (uint32_t i = 0; i < MEMBERS; i++)
                give_one(i, 1);
        launch();
        cr_expect_eq(runs(), 1);
        cr_expect(isnan(bench.lanes[3].made[0]));
        for (uint32_t i = 0; i < MEMBERS; i++)
                if (i != 3)
                        expect_made(i, 0, 1);
}

/* Nor what it left in pools: a job of several pieces is gathered there. */
Test(block, what_a_lane_left_is_not_computed_again)
{
        const uint32_t ones[] = {1, 1};

        set_up(false, 2);
        bench.lanes[0].rows[1] = ROWS - 1;
        for (uint32_t i = 0; i < 2; i++)
                give(i, ones, 2);
        launch();
        bench.lanes[0].rows[0] = bench.lanes[0].rows[1] = 1 << 20;
        for (uint32_t i = 0; i < 2; i++)
                give(i, ones, 2);
        launch();
        cr_expect_eq(runs(), 1);
        give_one(1, 2);
        give_one(2, 2);
        launch();
        cr_expect_eq(runs(), 2, "lane 0 is computed on zeros, not on what cannot be computed");
        expect_made(1, 0, 2);
}

Test(block, what_is_cancelled_before_is_not_computed_and_its_lane_goes_alone)
{
        const uint32_t ones[] = {1, 1};
        struct sl_work cancelled;
        int segment;
        struct sl_job *job;

        set_up(false, 2);
        for (uint32_t i = 1; i < 4; i++)
                give(i, ones, 2);
        cancelled = bench.lanes[0].work;
        cancelled.segments = SL_NO_SEGMENT;
        job = sl_executor_job(bench.lanes[0].executor);
        segment = sl_accumulator_open(bench.accumulator, &cancelled, 0, 1);
        sl_accumulator_add_piece(bench.accumulator, job, (uint32_t)segment, 0, 0, 1);
        segment = sl_accumulator_open(bench.accumulator, &bench.lanes[0].work, 1, 1);
        sl_accumulator_add_piece(bench.accumulator, job, (uint32_t)segment, 0, 0, 1);
        sl_accumulator_give_up(bench.accumulator, &cancelled, -ECANCELED);
        sl_executor_give(bench.lanes[0].executor, NULL);
        launch();
        cr_expect_eq(bench.lanes[0].status, -ECANCELED);
        expect_made(0, 1, 1);
        for (uint32_t i = 1; i < 4; i++)
                expect_made(i, 0, 2);
        cr_expect_eq(sl_blocks_count(bench.block).jobs, 3);
}

Test(block, all_that_is_cancelled_is_answered)
{
        set_up(false, 1);
        for (uint32_t i = 0; i < MEMBERS; i++) {
                give_one(i, 1);
                sl_accumulator_give_up(bench.accumulator, &bench.lanes[i].work, -ECANCELED);
        }
        launch();
        cr_expect_eq(runs(), 0);
        for (uint32_t i = 0; i < MEMBERS; i++)
                cr_expect_eq(bench.lanes[i].status, -ECANCELED);
}

/* A launch of four says of each that it took a fourth. */
Test(block, the_time_of_a_run_is_shared)
{
        set_up(false, 2);
        for (uint32_t i = 0; i < 4; i++)
                give_one(i, 1);
        launch();
        cr_expect_eq(runs(), 1);
        cr_expect_gt(bench.lanes[0].busy_ns, 0);
        for (uint32_t i = 1; i < 4; i++)
                cr_expect_eq(bench.lanes[i].busy_ns, bench.lanes[0].busy_ns);
        for (uint32_t i = 0; i < 4; i++)
                cr_expect_eq(atomic_load(&bench.lanes[i].stats.batches), 1);
        cr_expect_eq(atomic_load(&bench.lanes[0].stats.merged), 1);
        cr_expect_eq(atomic_load(&bench.lanes[4].stats.merged), 0);
}

/* AddressSanitizer looks on: behind the last answer nobody touches it. */
Test(block, blocks_that_are_put_away_can_be_freed_behind_the_last_answer)
{
        set_up(false, 2);
        for (uint32_t round = 0; round < 30; round++) {
                for (uint32_t i = 0; i < MEMBERS; i++)
                        give_one(i, 1);
                cr_assert(sl_carrier_send(bench.carrier, 0, true, NULL));
                sl_carrier_put_blocks_away(bench.carrier);
                cr_expect_null(sl_carrier_take_blocks(bench.carrier), "a launch names them");
                for (uint32_t i = 0; i < MEMBERS; i++) {
                        struct sl_executor *executor;
                        struct sl_prediction answer;
                        struct sl_job *job;
                        uint32_t priority;

                        while (!sl_carrier_poll(bench.carrier, &executor, &job, &answer))
                                ;
                        take_answer(executor, job, &answer);
                        sl_executor_answered(executor, answer.slot, answer.piece);
                        cr_assert_eq(sl_carrier_answered(bench.carrier, &priority), i == MEMBERS - 1);
                }
                sl_block_free(sl_carrier_take_blocks(bench.carrier));
                bench.block = make_blocks(2);
                sl_carrier_put_blocks(bench.carrier, bench.block);
                for (uint32_t i = 0; i < MEMBERS; i++)
                        expect_made(i, 0, 1);
        }
}

Test(block, a_lane_that_goes_takes_its_blocks_along)
{
        set_up(false, 2);
        cr_expect_not(sl_carrier_forgets(bench.carrier, bench.lanes[1].executor->lane));
        cr_expect_null(bench.carrier->blocks);
        give_one(0, 1);
        give_one(2, 1);
        launch();
        cr_expect_eq(runs(), 0);
        cr_expect_eq(sl_carrier_take_blocks(bench.carrier), bench.block);
        sl_carrier_put_blocks(bench.carrier, bench.block);
        cr_expect_null(bench.carrier->blocks, "a lane of it is not here");
}

/* Two of its sizes are 1 and 4 samples. */
Test(block, it_says_who_goes_together_and_how_long_that_takes)
{
        uint64_t ns = 0, lanes = 0;

        set_up(true, 3);
        for (uint32_t i = 0; i < 3; i++)
                lanes |= UINT64_C(1) << bench.lanes[i].executor->lane;
        uint32_t lane = bench.lanes[1].executor->lane;

        cr_expect_eq(sl_blocks_together(bench.block, lane, lanes | UINT64_C(1) << 63, 1, &ns), lanes, "lane 63 is nobody's");
        cr_expect_eq(ns, RUN_NS);
        cr_expect_eq(sl_blocks_together(bench.block, lane, lanes, 4, &ns), lanes);
        cr_expect_eq(ns, 4 * RUN_NS);
        cr_expect_eq(sl_blocks_together(bench.block, lane, lanes & (lanes - 1), 1, &ns), 0, "too few");
        cr_expect_eq(sl_blocks_together(bench.block, lane, lanes, 3, &ns), 0, "no size of its ladder");
        cr_expect_eq(sl_blocks_together(bench.block, 63, lanes, 1, &ns), 0, "no lane of its");
        cr_expect_eq(sl_blocks_together(NULL, lane, lanes, 1, &ns), 0);
}

Test(block, a_plan_with_other_ports_is_refused)
{
        const struct sl_block_size sizes[SL_PLAN_BATCHES_MAX] = {{2, RUN_NS}};
        const struct sl_plan_info *infos[MEMBERS];
        struct sl_block_options options = {.members = infos, .n_members = MEMBERS - 1, .batch_max = BATCH_MAX, .sizes = sizes};
        struct sl_plan_info other;
        struct sl_port output;
        struct sl_error error = {""};
        struct sl_block *block;

        set_up(false, 2);
        options.plan = bench.merged[0];
        for (uint32_t i = 0; i < MEMBERS; i++)
                infos[i] = sl_plan_info(bench.lanes[i].plan);
        cr_expect_eq(sl_block_new(&options, &block, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "10 inputs"), "%s", error.text);
        options.n_members = MEMBERS;
        other = *infos[3];
        output = other.outputs[0];
        output.shape.dims[1] = 2 * CLASSES;
        other.outputs = &output;
        infos[3] = &other;
        cr_expect_eq(sl_block_new(&options, &block, &error), -EINVAL, "it would write beyond what a client has");
        cr_expect_not_null(strstr(error.text, "member 3"), "%s", error.text);
}
