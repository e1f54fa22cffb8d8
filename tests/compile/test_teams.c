/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small networks by teams of 1 to 16 threads, more than there are processors, quick enough for ThreadSanitizer: chains of steps
 * without a barrier in between, along rows and along columns, and branches. Whatever the team, the bits are those of one thread.
 */
#include "base/error.h"
#include "format.h"
#include "network.h"
#include "op.h"
#include "part.h"
#include "plan.h"
#include "team.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#define TEAM_MAX 16
#define RUNS     4
#define FLOATS   16384 /* of inputs and outputs, at most */

typedef void build_network(struct network *network);

/* What becomes of a plan file before it is opened. */
typedef void change_steps(struct sl_plan_step *steps, uint64_t n, struct sl_plan_operand *operands);

struct bench {
        struct network net;
        struct sl_plan *plan;
        struct sl_instance *instance;
        const void *inputs[1];
        void *outputs[1];
        float *input, *output, *expected;
};

static void change_file(int fd, change_steps *change)
{
        off_t n_bytes = lseek(fd, 0, SEEK_END);
        uint8_t *bytes = mmap(NULL, (size_t)n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        struct sl_plan_header *header = (void *)bytes;

        cr_assert_neq(bytes, MAP_FAILED);
        change((void *)(bytes + header->sections[SL_PLAN_SECTION_STEPS].offset), header->sections[SL_PLAN_SECTION_STEPS].count,
                (void *)(bytes + header->sections[SL_PLAN_SECTION_OPERANDS].offset));
        header->checksum = XXH3_64bits(bytes + SL_PLAN_CHECKED_FROM, (size_t)n_bytes - SL_PLAN_CHECKED_FROM);
        munmap(bytes, (size_t)n_bytes);
}

static void bench_init_changed(struct bench *bench, build_network *build, change_steps *change)
{
        struct sl_error error = {""};
        int fd;

        network_init(&bench->net);
        build(&bench->net);
        network_finish(&bench->net);
        fd = network_plan_fd(&bench->net, "cpu", 1);
        if (change)
                change_file(fd, change);
        cr_assert_eq(sl_plan_open(fd, &bench->plan, &error), 0, "%s", error.text);
        close(fd);
        cr_assert_eq(sl_instance_new(bench->plan, 1, &bench->instance, &error), 0, "%s", error.text);
        bench->input = aligned_alloc(64, FLOATS * sizeof(float));
        bench->output = aligned_alloc(64, FLOATS * sizeof(float));
        bench->expected = aligned_alloc(64, FLOATS * sizeof(float));
        cr_assert(bench->input && bench->output && bench->expected);
        for (int i = 0; i < FLOATS; i++)
                bench->input[i] = network_random(&bench->net);
        memset(bench->output, 0, FLOATS * sizeof(float));
        bench->inputs[0] = bench->input;
        bench->outputs[0] = bench->output;
        cr_assert_eq(sl_instance_run(bench->instance, 1, bench->inputs, bench->outputs), 0);
        memcpy(bench->expected, bench->output, FLOATS * sizeof(float));
}

static void bench_init(struct bench *bench, build_network *build)
{
        bench_init_changed(bench, build, NULL);
}

static void bench_deinit(struct bench *bench)
{
        sl_instance_free(bench->instance);
        sl_plan_free(bench->plan);
        network_deinit(&bench->net);
        free(bench->input);
        free(bench->output);
        free(bench->expected);
}

static void run_and_compare(struct bench *bench, uint32_t members)
{
        memset(bench->output, 0, FLOATS * sizeof(float));
        cr_assert_eq(sl_instance_run(bench->instance, 1, bench->inputs, bench->outputs), 0);
        cr_assert(!memcmp(bench->output, bench->expected, FLOATS * sizeof(float)), "a team of %u gives other bits", members);
}

static void compare_changed(build_network *build, change_steps *change)
{
        struct sl_error error = {""};
        struct bench bench;

        bench_init_changed(&bench, build, change);
        for (uint32_t members = 1; members <= TEAM_MAX; members++) {
                const struct sl_team_options options = {.size = members, .spin_ns = SL_TEAM_SPIN_NS};
                struct sl_team *team;

                cr_assert_eq(sl_team_new(&options, &team, &error), 0, "%s", error.text);
                cr_assert_eq(sl_instance_use_team(bench.instance, team, &error), 0, "%s", error.text);
                for (int i = 0; i < RUNS; i++) {
                        run_and_compare(&bench, members);
                        if (i == 1)
                                sl_team_rest(team);
                }
                cr_assert_eq(sl_instance_use_team(bench.instance, NULL, &error), 0);
                sl_team_free(team);
        }
        bench_deinit(&bench);
}

static void compare_teams(build_network *build)
{
        compare_changed(build, NULL);
}

/* Steps that a team of @members cuts, how often it is called for them, and which its owner has no part of. */
struct calls {
        uint32_t cut, calls, beside;
};

static struct calls count_calls(struct bench *bench, uint32_t members)
{
        uint64_t n = sl_plan_steps(bench->plan, 1);
        struct sl_step_split *splits = calloc(n, sizeof(*splits));
        struct calls calls = {0, 0, 0};

        cr_assert_eq(sl_instance_splits(bench->instance, 1, members, splits, NULL), 0);
        for (uint64_t i = 0; i < n; i++) {
                calls.cut += splits[i].members > 1;
                calls.calls += (uint32_t)splits[i].stages;
                calls.beside += splits[i].first > 0;
        }
        free(splits);
        return calls;
}

static uint32_t multiply(struct network *net, uint32_t x, int64_t depth, int64_t columns)
{
        return network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(depth, columns))), 0, NULL);
}

/* Products of rows, and what normalises each of them. */
static void build_rows(struct network *net)
{
        uint32_t x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 48, 64));

        for (int layer = 0; layer < 3; layer++) {
                uint32_t scale = network_scales(net, DIMS(64)), shift = network_weights(net, DIMS(64));

                x = multiply(net, x, 64, 64);
                x = network_node(net, SL_OP_LAYER_NORM, VALUES(x, scale, shift), ATTRS({SL_ATTR_AXIS, 0, {-1}}));
                x = network_apply(net, SL_OP_ERF, x);
        }
        network_output(net, x);
}

/* Channels: a depthwise convolution and a mean read those that they make. */
static void build_columns(struct network *net)
{
        uint32_t x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 16, 12, 12));

        x = network_conv(net, x, 16, 64, 1, 1, 1);
        x = network_apply(net, SL_OP_RELU, x);
        x = network_conv(net, x, 64, 64, 3, 1, 64);
        x = network_apply(net, SL_OP_RELU, x);
        x = network_apply(net, SL_OP_GLOBAL_AVERAGE_POOL, x);
        network_output(net, x);
}

/* Three ways from one value, of different lengths, that meet again. */
static void build_branches(struct network *net)
{
        uint32_t x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 16, 12, 12)), ways[3];

        x = network_conv(net, x, 16, 32, 3, 1, 1);
        ways[0] = network_conv(net, x, 32, 32, 1, 1, 1);
        ways[1] = network_conv(net, network_conv(net, x, 32, 32, 1, 1, 1), 32, 32, 3, 1, 1);
        ways[2] = network_conv(net, network_conv(net, x, 32, 32, 3, 1, 32), 32, 32, 1, 1, 1);
        x = network_node(net, SL_OP_CONCAT, 3, ways, ATTRS({SL_ATTR_AXIS, 0, {1}}));
        network_output(net, network_conv(net, x, 96, 16, 1, 1, 1));
}

Test(teams, of_any_size_give_the_bits_of_one_thread_along_rows)
{
        compare_teams(build_rows);
}

Test(teams, of_any_size_give_the_bits_of_one_thread_along_columns)
{
        compare_teams(build_columns);
}

Test(teams, of_any_size_give_the_bits_of_one_thread_where_ways_part_and_meet)
{
        compare_teams(build_branches);
}

/* One after the other is sent away, and comes back, while the team computes: as one less, in chains of their own. */
static void compare_shrinking(build_network *build)
{
        struct sl_error error = {""};
        struct bench bench;

        bench_init(&bench, build);
        for (uint32_t members = 2; members <= TEAM_MAX; members += members < 5 ? 1 : 4) {
                const struct sl_team_options options = {.size = members, .spin_ns = SL_TEAM_SPIN_NS};
                struct sl_team *team;

                cr_assert_eq(sl_team_new(&options, &team, &error), 0, "%s", error.text);
                cr_assert_eq(sl_instance_use_team(bench.instance, team, &error), 0, "%s", error.text);
                for (uint32_t away = 0; away < members; away++) {
                        sl_team_send_away(team, away);
                        cr_expect_eq(sl_team_present(team), members - (away > 0));
                        run_and_compare(&bench, members);
                        sl_team_send_away(team, 0);
                        run_and_compare(&bench, members);
                }
                cr_assert_eq(sl_instance_use_team(bench.instance, NULL, &error), 0);
                sl_team_free(team);
        }
        bench_deinit(&bench);
}

Test(teams, that_shrink_and_grow_give_the_bits_of_one_thread)
{
        compare_shrinking(build_rows);
        compare_shrinking(build_branches);
}

static void build_uncut(struct network *net)
{
        build_rows(net);
        net->uncut = true;
}

Test(teams, find_nothing_cut_in_a_plan_for_one_thread)
{
        struct bench bench;

        bench_init(&bench, build_uncut);
        cr_expect_eq(count_calls(&bench, 4).cut, 0);
        bench_deinit(&bench);
        compare_teams(build_uncut);
}

Test(teams, that_need_not_wait_are_called_for_several_steps_at_once)
{
        struct bench bench;
        struct calls calls;

        bench_init(&bench, build_rows);
        calls = count_calls(&bench, 2);
        cr_expect_gt(calls.cut, 6);
        cr_expect_leq(calls.calls, calls.cut / 2, "%u calls for %u steps whose rows are each other's", calls.calls, calls.cut);
        calls = count_calls(&bench, 1);
        cr_expect_eq(calls.calls, 0);
        bench_deinit(&bench);
}

/* Four ways from one value, of steps that are too small for a team of sixteen; what is before them takes more memory. */
static void build_wide(struct network *net)
{
        uint32_t x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 16, 32, 32)), ways[4];

        net->team_size = TEAM_MAX;
        net->barrier = 1e-6;
        x = network_conv(net, network_conv(net, x, 16, 32, 3, 1, 1), 32, 32, 3, 4, 1);
        for (int i = 0; i < 4; i++) {
                ways[i] = network_conv(net, x, 32, 32, 3, 1, 1);
                ways[i] = network_conv(net, network_apply(net, SL_OP_RELU, ways[i]), 32, 16, 3, 1, 1);
        }
        x = network_node(net, SL_OP_CONCAT, 4, ways, ATTRS({SL_ATTR_AXIS, 0, {1}}));
        network_output(net, network_conv(net, x, 64, 16, 1, 1, 1));
}

Test(teams, of_any_size_give_the_bits_of_one_thread_where_branches_run_side_by_side)
{
        compare_teams(build_wide);
        compare_shrinking(build_wide);
}

/* What the planner puts side by side can be shown to be right, or nobody would run it so. */
Test(teams, are_called_once_for_branches_side_by_side)
{
        struct bench bench;
        struct calls calls;

        bench_init(&bench, build_wide);
        for (uint32_t members = 4; members <= TEAM_MAX; members *= 2) {
                calls = count_calls(&bench, members);
                cr_expect_geq(calls.beside, 6, "%u of a team of %u", calls.beside, members);
                cr_expect_leq(calls.calls, 5, "%u calls of a team of %u", calls.calls, members);
        }
        bench_deinit(&bench);
}

/* Every step on another member than the one before it, whatever it needs. */
static void scatter(struct sl_plan_step *steps, uint64_t n, struct sl_plan_operand *operands)
{
        (void)operands;
        for (uint64_t s = 0; s < n; s++)
                for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT; i++)
                        steps[s].splits[i] = (struct sl_split){SL_AXIS_NONE, 1, (uint8_t)(s % sl_team_size_at(i)), 0};
}

Test(teams, wait_for_steps_that_a_plan_puts_beside_those_they_need)
{
        struct bench bench;

        compare_changed(build_rows, scatter);
        compare_changed(build_wide, scatter);
        bench_init_changed(&bench, build_rows, scatter);
        cr_expect_eq(count_calls(&bench, 2).calls, 0, "each step needs the one before it");
        bench_deinit(&bench);
}

/* Steps that are cut are so for two members, each on others than the one before it. */
static void scatter_halves(struct sl_plan_step *steps, uint64_t n, struct sl_plan_operand *operands)
{
        (void)operands;
        for (uint64_t s = 0; s < n; s++)
                for (uint32_t i = SL_TEAM_SIZE_4; i < SL_TEAM_SIZE_COUNT; i++)
                        if (steps[s].splits[i].members > 1)
                                steps[s].splits[i] = (struct sl_split){steps[s].splits[i].axis, 2, (uint8_t)(s % 2 * 2), 0};
}

Test(teams, wait_for_parts_that_other_members_need)
{
        struct bench bench;
        struct calls calls;

        compare_changed(build_rows, scatter_halves);
        compare_changed(build_columns, scatter_halves);
        bench_init_changed(&bench, build_rows, scatter_halves);
        calls = count_calls(&bench, 4);
        cr_expect_eq(calls.calls, calls.cut, "each step needs what other members have of the one before it");
        bench_deinit(&bench);
}

static void begin_anew(struct sl_plan_step *steps, uint64_t n, struct sl_plan_operand *operands)
{
        (void)operands;
        for (uint64_t s = 0; s < n; s++)
                for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT; i++)
                        steps[s].splits[i].begins = 1;
}

Test(teams, wait_where_a_plan_says_so)
{
        struct bench bench;
        struct calls calls;

        bench_init_changed(&bench, build_rows, begin_anew);
        calls = count_calls(&bench, 2);
        cr_expect_eq(calls.calls, calls.cut);
        bench_deinit(&bench);
}

/* The first step of the branches. */
static uint64_t head;

/* It and the one beside it, each on a member of its own. @offset: between what they make. */
static void place_side_by_side(struct sl_plan_step *steps, uint64_t n, struct sl_plan_operand *operands, uint64_t offset)
{
        struct sl_plan_operand *results[2];

        for (head = 0; head < n && !steps[head].splits[SL_TEAM_SIZE_16].begins;)
                head++;
        cr_assert_lt(head + 1, n);
        for (uint32_t i = 0; i < 2; i++) {
                struct sl_plan_step *step = &steps[head + i];

                results[i] = &operands[step->first_operand + step->n_inputs];
                cr_assert_eq(results[i]->place, SL_PLACE_WORKSPACE);
                step->splits[SL_TEAM_SIZE_2] = (struct sl_split){SL_AXIS_NONE, 1, (uint8_t)i, 1 - (uint8_t)i};
        }
        results[1]->offset = offset == UINT64_MAX ? results[1]->offset : results[0]->offset + offset;
}

static void leave_apart(struct sl_plan_step *steps, uint64_t n, struct sl_plan_operand *operands)
{
        place_side_by_side(steps, n, operands, UINT64_MAX);
}

static void lay_on_each_other(struct sl_plan_step *steps, uint64_t n, struct sl_plan_operand *operands)
{
        place_side_by_side(steps, n, operands, 64);
}

static struct sl_step_split split_of(struct bench *bench, uint64_t step)
{
        struct sl_step_split splits[64];

        cr_assert_leq(sl_plan_steps(bench->plan, 1), 64);
        cr_assert_eq(sl_instance_splits(bench->instance, 1, 2, splits, NULL), 0);
        return splits[step];
}

Test(teams, wait_for_steps_that_write_the_same_bytes)
{
        struct bench bench;

        bench_init_changed(&bench, build_wide, leave_apart);
        cr_expect(split_of(&bench, head).stages == 1 && split_of(&bench, head + 1).stages == 0);
        cr_expect_eq(split_of(&bench, head + 1).first, 1);
        bench_deinit(&bench);
        bench_init_changed(&bench, build_wide, lay_on_each_other);
        cr_expect_eq(split_of(&bench, head).members, 0, "the owner computes it before anybody begins the other one");
        bench_deinit(&bench);
}

/* The bytes of a part, one by one. */
static bool reaches(const struct sl_reach *reach, int64_t at, int64_t byte)
{
        for (int64_t run = 0; run < reach->runs; run++) {
                int64_t first = at + reach->first + run * reach->pitch;

                if (byte >= first && byte < first + reach->bytes)
                        return true;
        }
        return false;
}

static struct sl_reach random_reach(struct network *net, int64_t pitch)
{
        int64_t first = (int64_t)(8 + 8 * network_random(net)), bytes = (int64_t)(3 + 3 * network_random(net));

        return (struct sl_reach){
                .first = first, .bytes = bytes, .pitch = pitch, .runs = 1 + (int64_t)(2 + 2 * network_random(net))};
}

Test(reaches, that_share_a_byte_meet_and_neighbours_in_each_row_do_not)
{
        const struct sl_reach left = {.first = 0, .bytes = 6, .pitch = 10, .runs = 4},
                              right = {.first = 6, .bytes = 4, .pitch = 10, .runs = 4};
        struct network net = {.state = 7};
        uint32_t met = 0, apart = 0;

        cr_expect_not(sl_reaches_meet(&left, 0, &right, 0));
        cr_expect_not(sl_reaches_meet(&right, 100, &left, 100));
        cr_expect(sl_reaches_meet(&left, 0, &right, 1) && sl_reaches_meet(&left, 1, &right, 0));
        for (int i = 0; i < 20000; i++) {
                struct sl_reach a = random_reach(&net, 7), b = random_reach(&net, i % 2 ? 7 : 9);
                int64_t at = i % 5;
                bool shared = false;

                for (int64_t byte = 0; byte < 80 && !shared; byte++)
                        shared = reaches(&a, 0, byte) && reaches(&b, at, byte);
                met += shared;
                apart += !sl_reaches_meet(&a, 0, &b, at);
                cr_assert(!shared || sl_reaches_meet(&a, 0, &b, at), "reaches with a byte in common do not meet");
        }
        cr_expect(met > 1000 && apart > 1000, "%u met, %u apart", met, apart);
}
