/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a bundle become merged plans: in a child, with the table of what they take, kept in the cache.
 */
#include "base/clock.h"
#include "base/error.h"
#include "compile.h"
#include "export.h"
#include "fuse.h"
#include "fuse_order.h"
#include "lower_options.h"
#include "network.h"
#include "plan.h"
#include "plan_cache.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LANES    4
#define CHANNELS 4
#define PATH     96

struct fuse_bench {
        char folder[64], paths[LANES][PATH];
        struct sl_fuse_member members[LANES];
        struct sl_lower_options lowering;
        struct sl_fuse_options options;
        uint32_t n_tried, n_compiled, n_refused;
        struct sl_fuse_table table; /* of the last that was merged */
        char cause[SL_ERROR_TEXT_BYTES], notes[SL_COMPILE_NOTES_BYTES];
};

static void tried(void *context, const struct sl_fuse_trial *trial)
{
        struct fuse_bench *b = context;

        b->n_tried++;
        b->n_compiled += trial->compiled;
        b->n_refused += trial->status < 0;
        if (trial->table)
                b->table = *trial->table;
        snprintf(b->cause, sizeof(b->cause), "%s", trial->cause);
        snprintf(b->notes, sizeof(b->notes), "%s", trial->notes);
}

static void write_network(struct network *net, const char *path)
{
        struct sl_error error = {""};
        uint8_t *file;
        size_t bytes;
        FILE *to = fopen(path, "w");

        cr_assert_eq(sl_export_onnx(net->graph, NULL, 0, &file, &bytes, &error), 0, "%s", error.text);
        cr_assert_eq(fwrite(file, 1, bytes, to), bytes);
        fclose(to);
        free(file);
        network_deinit(net);
}

/* Two convolutions; with another @last it is no longer whole alike. */
static void write_model(const char *path, uint64_t seed, uint32_t last)
{
        struct network net;
        uint32_t x;

        network_init(&net);
        net.state += seed * 0x9e3779b97f4a7c15u;
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, CHANNELS, 8, 8));
        for (uint32_t i = 0; i < 2; i++)
                x = network_conv(&net, x, CHANNELS, CHANNELS, 3, 1, 1);
        network_output(&net, network_apply(&net, last, x));
        network_finish(&net);
        write_network(&net, path);
}

static struct sl_plan *compile_single(const char *path, const struct sl_lower_options *lowering)
{
        const struct sl_compile_options options = {.program = CHILD, .model_path = path, .lowering = lowering};
        struct sl_error error = {""};
        struct sl_plan *plan;
        int fd;

        cr_assert_eq(sl_compile(&options, &fd, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        return plan;
}

static void set_member(struct fuse_bench *b, uint32_t i, uint64_t seed, uint32_t last)
{
        char path[PATH];

        snprintf(path, sizeof(path), "%s/%u/model.onnx", b->folder, i);
        memcpy(b->paths[i], path, sizeof(path));
        write_model(b->paths[i], seed, last);
        sl_plan_free(b->members[i].plan);
        b->members[i] = (struct sl_fuse_member){.path = b->paths[i], .plan = compile_single(b->paths[i], &b->lowering)};
}

/* Nothing is timed that decides anything: Algorithm 1 merges, and what it makes is kept. */
static void fuse_bench_init(struct fuse_bench *b)
{
        char folder[PATH];

        *b = (struct fuse_bench){.folder = "/tmp/starling-fuse-XXXXXX"};
        cr_assert_not_null(mkdtemp(b->folder));
        sl_lower_options_init(&b->lowering);
        b->lowering.batch_max = 2;
        b->lowering.merge_seconds = 0;
        for (uint32_t i = 0; i < LANES; i++) {
                snprintf(folder, sizeof(folder), "%s/%u", b->folder, i);
                cr_assert_eq(mkdir(folder, 0700), 0);
                set_member(b, i, i, SL_OP_RELU);
        }
        b->options = (struct sl_fuse_options){.members = b->members,
                .n_members = LANES,
                .lowering = &b->lowering,
                .compile_program = CHILD,
                .lanes = LANES,
                .always = true,
                .measure_ns = 60 * SL_NS_PER_SECOND,
                .tried = tried,
                .context = b};
}

static void fuse_bench_deinit(struct fuse_bench *b)
{
        char command[PATH];

        for (uint32_t i = 0; i < LANES; i++)
                sl_plan_free(b->members[i].plan);
        snprintf(command, sizeof(command), "rm -rf %s", b->folder);
        cr_assert_eq(system(command), 0);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}

static struct sl_fuse_result run(struct fuse_bench *b)
{
        struct sl_error error = {""};
        struct sl_fuse_result result;
        struct sl_fuse *fuse;

        b->n_tried = b->n_compiled = b->n_refused = 0;
        cr_assert_eq(sl_fuse_begin(&b->options, &fuse, &error), 0, "%s", error.text);
        do {
                struct pollfd one = {.fd = sl_fuse_fd(fuse), .events = POLLIN};

                cr_assert_eq(poll(&one, 1, 60000), 1);
        } while (!sl_fuse_advance(fuse));
        sl_fuse_take(fuse, &result);
        sl_fuse_free(fuse);
        return result;
}

Test(fuse, members_become_a_checked_plan_with_its_table)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;
        const struct sl_plan_info *info;

        fuse_bench_init(&b);
        result = run(&b);
        cr_assert_eq(result.n_blocks, 1, "%s", result.error.text);
        cr_expect_eq(result.blocks[0].first, 0);
        cr_expect_eq(result.blocks[0].n_lanes, LANES);
        cr_expect(sl_fuse_table_is_sound(&result.blocks[0].table));
        info = sl_plan_info(result.blocks[0].plan);
        cr_expect_eq(info->n_inputs, LANES);
        cr_expect_eq(info->n_lanes, LANES);
        cr_expect_eq(info->n_merged, 2, "%u of %u", info->n_merged, info->n_common);
        cr_expect_gt(info->stacked_bytes, 0);
        cr_expect_not_null(strstr(b.notes, "2 nodes are common, 2 of them merged"), "%s", b.notes);
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

/* Where it pays at all, which is measured. */
Test(fuse, convolutions_with_lanes_as_neighbours_are_tried_as_a_whole)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        b.lowering.merge_seconds = 0.5;
        result = run(&b);
        if (result.n_blocks) {
                cr_expect_not_null(strstr(b.notes, "whole plans: "), "%s", b.notes);
                cr_expect_eq(sl_plan_info(result.blocks[0].plan)->n_lanes, LANES);
        }
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

Test(fuse, the_last_block_has_what_is_left)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        b.options.lanes = 3;
        result = run(&b);
        cr_assert_eq(result.n_blocks, 1, "one model is left, which stays alone: %s", result.error.text);
        sl_fuse_result_deinit(&result);
        b.options.lanes = 2;
        result = run(&b);
        cr_assert_eq(result.n_blocks, 2, "%s", result.error.text);
        cr_expect_eq(result.blocks[1].first, 2);
        cr_expect_eq(result.blocks[1].table.rows[0].merged[0], result.blocks[0].table.rows[0].merged[0],
                "blocks that are merged alike have one table");
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

Test(fuse, a_block_that_is_merged_otherwise_has_a_table_of_its_own)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        set_member(&b, 3, 3, SL_OP_SIGMOID); /* so that of these two only the first convolution is merged */
        b.options.lanes = 2;
        result = run(&b);
        cr_assert_eq(result.n_blocks, 2, "%s", result.error.text);
        cr_expect_neq(memcmp(result.blocks[0].table.rows, result.blocks[1].table.rows, sizeof(result.blocks[0].table.rows)), 0);
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

Test(fuse, a_number_of_lanes_is_chosen)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        b.options.lanes = 0;
        result = run(&b);
        cr_assert_geq(result.n_blocks, 1, "%s", result.error.text);
        cr_expect(result.blocks[0].n_lanes == 2 || result.blocks[0].n_lanes == 4);
        cr_expect_eq(result.n_blocks, LANES / result.blocks[0].n_lanes);
        cr_expect_geq(b.n_tried, 2, "2 and 4 lanes are tried");
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

Test(fuse, what_is_in_the_cache_is_not_compiled_again)
{
        static struct fuse_bench b;
        char folder[PATH];
        struct sl_fuse_result result;
        struct sl_fuse_table table;

        fuse_bench_init(&b);
        snprintf(folder, sizeof(folder), "%s/cache", b.folder);
        cr_assert_eq(sl_plan_cache_new(folder, 1u << 26, &b.options.cache, NULL), 0);
        result = run(&b);
        cr_assert_eq(b.n_compiled, 1, "%s", result.error.text);
        table = b.table;
        sl_fuse_result_deinit(&result);
        cr_assert_eq(sl_plan_cache_wait(b.options.cache, NULL), 0);
        result = run(&b);
        cr_assert_eq(result.n_blocks, 1, "%s", result.error.text);
        cr_expect_eq(b.n_compiled, 0);
        cr_expect_eq(table.rows[0].merged[0], b.table.rows[0].merged[0], "the table was kept");
        cr_expect_not_null(strstr(b.notes, "2 of them merged"), "%s", b.notes);
        sl_fuse_result_deinit(&result);
        b.options.batch_max = 1;
        result = run(&b);
        cr_expect_eq(b.n_compiled, 0);
        cr_expect_eq(b.table.n_rows, 1, "it was measured for other batches, and is measured again");
        sl_fuse_result_deinit(&result);
        set_member(&b, 1, 99, SL_OP_RELU);
        result = run(&b);
        cr_expect_eq(b.n_compiled, 1, "a member has other weights");
        sl_fuse_result_deinit(&result);
        sl_plan_cache_free(b.options.cache);
        fuse_bench_deinit(&b);
}

static void spoil(const char *path)
{
        FILE *to = fopen(path, "w");

        fputs("this is no model", to);
        fclose(to);
}

Test(fuse, a_bad_member_ends_its_own_block_alone)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        spoil(b.paths[1]);
        b.options.lanes = 2;
        result = run(&b);
        cr_assert_eq(result.n_blocks, 1);
        cr_expect_eq(result.blocks[0].first, 2);
        cr_expect_eq(b.n_refused, 1);
        cr_expect_not_null(strstr(result.error.text, b.paths[1]), "%s", result.error.text);
        cr_expect_not_null(strstr(result.error.text, "models 0 to 1"), "%s", result.error.text);
        cr_expect_null(strchr(result.error.text, '\n'));
        sl_fuse_result_deinit(&result);
        b.options.lanes = 0;
        result = run(&b);
        cr_assert_eq(result.n_blocks, 1, "the next members are tried: %s", result.error.text);
        cr_expect_eq(result.blocks[0].first, 2);
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

Test(fuse, a_compiler_that_crashes_is_one_line)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        b.members[0].path = "crash"; /* see compile_child.c */
        b.options.lanes = 2;
        result = run(&b);
        cr_assert_eq(result.n_blocks, 1);
        cr_expect_eq(result.blocks[0].first, 2);
        cr_expect_not_null(
                strstr(result.error.text, "models 0 to 1: compiler's process: killed by signal 11"), "%s", result.error.text);
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

Test(fuse, what_cannot_be_measured_in_time_is_remembered_until_there_is_more)
{
        static struct fuse_bench b;
        char folder[PATH];
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        snprintf(folder, sizeof(folder), "%s/cache", b.folder);
        cr_assert_eq(sl_plan_cache_new(folder, 1u << 26, &b.options.cache, NULL), 0);
        b.options.measure_ns = 1;
        for (uint32_t i = 0; i < 2; i++) {
                result = run(&b);
                cr_expect_eq(result.n_blocks, 0);
                cr_expect_eq(b.n_compiled, 1 - i, "the second time it is known");
                cr_expect_not_null(strstr(b.cause, "cannot be timed"), "%s", b.cause);
        }
        b.options.measure_ns = 60 * SL_NS_PER_SECOND;
        result = run(&b);
        cr_expect_eq(result.n_blocks, 1, "%s", result.error.text);
        sl_fuse_result_deinit(&result);
        sl_plan_cache_free(b.options.cache);
        fuse_bench_deinit(&b);
}

Test(fuse, a_member_whose_file_has_changed_is_refused_by_its_answers)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        write_model(b.paths[1], 77, SL_OP_RELU);
        result = run(&b);
        cr_assert_eq(result.n_blocks, 0);
        cr_expect_not_null(strstr(result.error.text, "off the single plan's"), "%s", result.error.text);
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

static void identify_members(struct fuse_bench *b)
{
        int64_t changed;

        for (uint32_t i = 0; i < LANES; i++) {
                cr_assert_eq(sl_model_identify(b->paths[i], false, &b->members[i].file.digest, &changed), 0);
                b->members[i].file.known = true;
        }
}

/* It may differ where no check looks: that is no reason to compile it, and what came of it is not what comes of the others. */
Test(fuse, a_member_whose_file_is_not_the_one_that_was_loaded_is_not_merged)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;
        struct sl_error error;
        char directory[PATH];

        fuse_bench_init(&b);
        snprintf(directory, sizeof(directory), "%s/cache", b.folder);
        cr_assert_eq(mkdir(directory, 0700), 0);
        cr_assert_eq(sl_plan_cache_new(directory, 1 << 30, &b.options.cache, &error), 0, "%s", error.text);
        identify_members(&b);
        write_model(b.paths[1], 77, SL_OP_RELU);
        result = run(&b);
        cr_expect_eq(result.n_blocks, 0);
        cr_expect_eq(b.n_compiled, 0);
        cr_expect(strstr(result.error.text, "/1/model.onnx\" has changed since it was loaded"), "%s", result.error.text);
        sl_fuse_result_deinit(&result);
        set_member(&b, 1, 77, SL_OP_RELU);
        identify_members(&b);
        result = run(&b);
        cr_expect_eq(result.n_blocks, 1, "nothing is kept of the first time: %s", result.error.text);
        sl_fuse_result_deinit(&result);
        sl_plan_cache_free(b.options.cache);
        fuse_bench_deinit(&b);
}

Test(fuse, what_is_alike_is_merged_with_its_like)
{
        static const uint64_t architectures[] = {7, 3, 3, 9, 3, 7};
        static const uint32_t wanted[] = {1, 2, 4, 0, 5, 3};
        struct sl_plan_info *infos = calloc(6, sizeof(*infos));
        const struct sl_plan_info *of[6];
        uint32_t order[6];

        for (uint32_t i = 0; i < 6; i++) {
                infos[i].architecture[0] = architectures[i];
                of[i] = &infos[i];
        }
        sl_fuse_order(of, 6, order);
        cr_expect_arr_eq(order, wanted, sizeof(wanted));
        free(infos);
}

Test(fuse, what_ends_in_the_middle_leaves_nothing)
{
        static struct fuse_bench b;
        struct sl_fuse *fuse;

        fuse_bench_init(&b);
        for (uint32_t polls = 0; polls < 3; polls++) {
                cr_assert_eq(sl_fuse_begin(&b.options, &fuse, NULL), 0);
                for (uint32_t i = 0, over = 0; i < polls && !over; i++) { /* as it may be, where others have the cores */
                        struct pollfd one = {.fd = sl_fuse_fd(fuse), .events = POLLIN};

                        cr_assert_eq(poll(&one, 1, 60000), 1);
                        over = sl_fuse_advance(fuse);
                }
                sl_fuse_free(fuse);
        }
        fuse_bench_deinit(&b);
}

/* Until a child is wanted, or it is over. */
static bool come_to_order(struct sl_fuse *fuse, struct sl_compile_options *ret_options)
{
        while (!sl_fuse_wants(fuse, ret_options)) {
                struct pollfd one = {.fd = sl_fuse_fd(fuse), .events = POLLIN};

                cr_assert_eq(poll(&one, 1, 60000), 1);
                if (sl_fuse_advance(fuse))
                        return false;
        }
        cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child was started here");
        return true;
}

Test(fuse, whoever_orders_its_children_starts_them)
{
        static struct fuse_bench b;
        struct sl_compilation *compilation;
        struct sl_compile_options options;
        struct sl_fuse_result result;
        struct sl_error error = {""};
        struct sl_fuse *fuse;
        uint32_t started = 0;

        fuse_bench_init(&b);
        b.options.orders = true;
        cr_assert_eq(sl_fuse_begin(&b.options, &fuse, &error), 0, "%s", error.text);
        while (come_to_order(fuse, &options)) {
                struct pollfd one = {.events = POLLIN};

                cr_expect_not(sl_fuse_advance(fuse), "it waits for what it has ordered");
                cr_assert_eq(sl_compile_start(&options, &compilation, &error), 0, "%s", error.text);
                one.fd = sl_compile_fd(compilation);
                sl_fuse_give(fuse, 0, compilation, NULL);
                started++;
                cr_assert_eq(poll(&one, 1, 60000), 1);
                if (sl_fuse_advance(fuse))
                        break;
        }
        sl_fuse_take(fuse, &result);
        sl_fuse_free(fuse);
        cr_expect_eq(started, 1);
        cr_assert_eq(result.n_blocks, 1, "%s", result.error.text);
        cr_expect_eq(result.blocks[0].n_lanes, LANES);
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

Test(fuse, a_child_that_cannot_be_started_leaves_its_block_unmerged_and_one_that_nobody_starts_nothing)
{
        static struct fuse_bench b;
        struct sl_error error = {"no process is left"};
        struct sl_compile_options options;
        struct sl_fuse_result result;
        struct sl_fuse *fuse;

        fuse_bench_init(&b);
        b.options.orders = true;
        cr_assert_eq(sl_fuse_begin(&b.options, &fuse, NULL), 0);
        cr_assert(come_to_order(fuse, &options));
        sl_fuse_give(fuse, -EAGAIN, NULL, &error);
        cr_expect(sl_fuse_advance(fuse));
        sl_fuse_take(fuse, &result);
        sl_fuse_free(fuse);
        cr_expect_eq(result.n_blocks, 0);
        cr_expect_eq(result.status, -EAGAIN);
        cr_expect(strstr(result.error.text, "no process is left"), "%s", result.error.text);
        sl_fuse_result_deinit(&result);
        cr_assert_eq(sl_fuse_begin(&b.options, &fuse, NULL), 0);
        cr_assert(come_to_order(fuse, &options));
        sl_fuse_free(fuse);
        fuse_bench_deinit(&b);
}

static void make_unlike(struct fuse_bench *b, uint32_t lane)
{
        struct network net;

        network_init(&net);
        network_output(&net, network_apply(&net, SL_OP_TANH, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 5))));
        network_finish(&net);
        write_network(&net, b->paths[lane]);
        sl_plan_free(b->members[lane].plan);
        b->members[lane].plan = compile_single(b->paths[lane], &b->lowering);
}

Test(fuse, where_the_common_part_ends_is_said)
{
        static struct fuse_bench b;
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        set_member(&b, 2, 2, SL_OP_SIGMOID); /* which a pass fuses into the last convolution */
        result = run(&b);
        cr_expect_eq(result.n_blocks, 1, "%s", result.error.text);
        cr_expect_not_null(strstr(b.notes, "1 nodes are common"), "%s", b.notes);
        cr_expect_not_null(strstr(b.notes, "graph 2 differs: epilogue"), "%s", b.notes);
        sl_fuse_result_deinit(&result);
        fuse_bench_deinit(&b);
}

Test(fuse, what_is_not_worth_it_is_remembered)
{
        static struct fuse_bench b;
        char folder[PATH];
        struct sl_fuse_result result;

        fuse_bench_init(&b);
        snprintf(folder, sizeof(folder), "%s/cache", b.folder);
        cr_assert_eq(sl_plan_cache_new(folder, 1u << 26, &b.options.cache, NULL), 0);
        make_unlike(&b, 1);
        for (uint32_t i = 0; i < 2; i++) {
                result = run(&b);
                cr_expect_eq(result.n_blocks, 0);
                cr_expect_eq(b.n_refused, 1);
                cr_expect_eq(b.n_compiled, 1 - i, "the second time it is known");
                cr_expect_not_null(strstr(b.cause, "nothing in common"), "%s", b.cause);
        }
        sl_plan_cache_free(b.options.cache);
        fuse_bench_deinit(&b);
}
