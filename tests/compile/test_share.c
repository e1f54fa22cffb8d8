/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A merged plan leaves constants where its members' plans have them: the same answers, the weights once, and nothing outside of
 * what the members have is ever read.
 */
#include "base/error.h"
#include "format.h"
#include "lower.h"
#include "lower_options.h"
#include "merged_lanes.h"
#include "plan.h"
#include "share.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define LANES MERGED_LANES
#define WIDTH 64 /* a product's weights are 16 KiB, whole pages */

static struct merged_lanes merged;
static struct sl_error error;

static void build_products(struct network *net)
{
        uint32_t x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, WIDTH));

        for (uint32_t i = 0; i < 3; i++)
                x = network_node(net, SL_OP_GEMM,
                        VALUES(x, network_weights(net, DIMS(WIDTH, WIDTH)), network_weights(net, DIMS(WIDTH))), 0, NULL);
        network_output(net, x);
}

static void build_convolutions(struct network *net)
{
        uint32_t x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 8, 8));

        network_output(net, network_conv(net, x, 4, 4, 3, 1, 1));
}

/* Its file, and the plan of that. */
static int share(struct sl_plan **ret_plan)
{
        int fd;

        cr_assert_eq(sl_plan_share(merged.plan, merged.singles, LANES, &fd, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_open_merged(fd, merged.singles, LANES, false, ret_plan, &error), 0, "%s", error.text);
        return fd;
}

static uint64_t own_bytes(const struct sl_plan *plan)
{
        return sl_plan_info(plan)->weights_bytes;
}

static uint64_t bytes_of_singles(void)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < LANES; i++)
                bytes += own_bytes(merged.singles[i]);
        return bytes;
}

/* Return: whether idle lanes are left out. */
static bool run_idle(const struct sl_plan *plan, uint32_t batch, uint64_t idle, float outputs[LANES][MERGED_BATCH_MAX * WIDTH])
{
        static float inputs[LANES][MERGED_BATCH_MAX * WIDTH];
        const void *from[LANES];
        void *to[LANES];
        struct sl_instance *instance;
        bool skips;

        for (uint32_t i = 0; i < LANES; i++) {
                for (uint32_t k = 0; k < MERGED_BATCH_MAX * WIDTH; k++)
                        inputs[i][k] = (float)((i * 31 + k * 17) % 101) / 50 - 1;
                from[i] = inputs[i];
                to[i] = outputs[i];
        }
        cr_assert_eq(sl_instance_new(plan, MERGED_BATCH_MAX, &instance, &error), 0, "%s", error.text);
        skips = sl_instance_idle(instance, idle);
        cr_assert_eq(sl_instance_run(instance, batch, from, to), 0);
        sl_instance_free(instance);
        return skips;
}

static void run(const struct sl_plan *plan, uint32_t batch, float outputs[LANES][MERGED_BATCH_MAX * WIDTH])
{
        cr_assert_not(run_idle(plan, batch, 0, outputs));
}

static void expect_same_answers(const struct sl_plan *plan)
{
        static float wanted[LANES][MERGED_BATCH_MAX * WIDTH], got[LANES][MERGED_BATCH_MAX * WIDTH];

        for (uint32_t batch = 1; batch <= MERGED_BATCH_MAX; batch *= 2) {
                run(merged.plan, batch, wanted);
                run(plan, batch, got);
                cr_expect_arr_eq(got, wanted, sizeof(wanted), "batch %u", batch);
        }
}

Test(share, weights_are_there_once_and_answers_have_the_same_bits)
{
        struct sl_plan *plan;
        uint64_t singles;
        int fd;

        merged_lanes_init(&merged, build_products);
        fd = share(&plan);
        singles = bytes_of_singles();
        cr_expect_leq(10 * own_bytes(plan), singles, "%llu bytes of its own beside %llu", (unsigned long long)own_bytes(plan),
                (unsigned long long)singles);
        cr_expect_geq(sl_plan_info(plan)->member_bytes, LANES * 3 * WIDTH * WIDTH * sizeof(float));
        cr_expect_eq(sl_plan_info(merged.plan)->member_bytes, 0);
        expect_same_answers(plan);
        sl_plan_free(plan);
        close(fd);
        merged_lanes_deinit(&merged);
}

Test(share, the_members_live_as_long_as_it_does)
{
        static float wanted[LANES][MERGED_BATCH_MAX * WIDTH], got[LANES][MERGED_BATCH_MAX * WIDTH];
        struct sl_plan *plan;
        int fd;

        merged_lanes_init(&merged, build_products);
        fd = share(&plan);
        run(merged.plan, 1, wanted);
        merged_lanes_deinit(&merged);
        run(plan, 1, got);
        for (uint32_t i = 0; i < LANES; i++)
                cr_expect_arr_eq(got[i], wanted[i], WIDTH * sizeof(float));
        sl_plan_free(plan);
        close(fd);
}

/* Lane 2 of the merged plan is nobody's, so each constant that has such a lane stays whole. */
Test(share, what_no_member_has_stays_its_own)
{
        struct sl_plan *plan, *other;
        int fd;

        merged_lanes_init(&merged, build_products);
        other = merged.singles[2];
        merged.singles[2] = merged.singles[3];
        cr_expect_eq(sl_plan_share(merged.plan, merged.singles, LANES, &fd, &error), -ENODATA, "%s", error.text);
        merged.singles[2] = other;
        merged_lanes_deinit(&merged);
        merged_lanes_init(&merged, build_convolutions);
        cr_expect_eq(sl_plan_share(merged.plan, merged.singles, LANES, &fd, &error), -ENODATA, "filters that lie together");
        cr_expect_eq(sl_plan_open_merged(sl_plan_fd(merged.plan), merged.singles, LANES, false, &plan, &error), 0,
                "one that has nothing of its members may be opened beside them: %s", error.text);
        sl_plan_free(plan);
        merged_lanes_deinit(&merged);
}

Test(share, without_its_members_or_with_others_it_is_not_opened_but_read)
{
        struct sl_plan *plan, *first;
        struct sl_plan_info info;
        int fd;

        merged_lanes_init(&merged, build_products);
        fd = share(&plan);
        sl_plan_free(plan);
        cr_expect_eq(sl_plan_open(fd, &plan, &error), -ESTALE);
        cr_expect_not_null(strstr(error.text, "8 members' plans, here are 0"), "%s", error.text);
        cr_expect_eq(sl_plan_open_merged(fd, merged.singles, LANES - 1, false, &plan, &error), -ESTALE);
        first = merged.singles[0];
        merged.singles[0] = merged.singles[1];
        cr_expect_eq(sl_plan_open_merged(fd, merged.singles, LANES, false, &plan, &error), -ESTALE);
        cr_expect_not_null(strstr(error.text, "member 0"), "%s", error.text);
        merged.singles[0] = first;
        cr_expect_eq(sl_plan_read_info(fd, &info, &error), 0, "%s", error.text);
        cr_expect_gt(info.member_bytes, 0);
        sl_plan_info_deinit(&info);
        close(fd);
        merged_lanes_deinit(&merged);
}

/* What was there before is still there, so that it is seen that they were not computed. */
Test(share, idle_lanes_are_left_out_and_the_others_have_the_same_bits)
{
        static float wanted[LANES][MERGED_BATCH_MAX * WIDTH], got[LANES][MERGED_BATCH_MAX * WIDTH];
        const uint64_t masks[] = {0x01, 0x80, 0x7f, 0xaa, 0x3c, 0xff};
        struct sl_plan *plan;
        int fd;

        merged_lanes_init(&merged, build_products);
        fd = share(&plan);
        for (uint32_t batch = 1; batch <= MERGED_BATCH_MAX; batch *= 2)
                for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
                        run(merged.plan, batch, wanted);
                        memset(got, 0xff, sizeof(got));
                        cr_expect(run_idle(plan, batch, masks[m], got));
                        for (uint32_t i = 0; i < LANES; i++) {
                                if (masks[m] >> i & 1)
                                        memset(wanted[i], 0xff, batch * WIDTH * sizeof(float));
                                cr_expect_arr_eq(got[i], wanted[i], batch * WIDTH * sizeof(float), "batch %u, idle %llx, lane %u",
                                        batch, (unsigned long long)masks[m], i);
                        }
                }
        cr_expect(run_idle(merged.plan, 1, 1, got), "whose the constants are does not matter");
        sl_plan_free(plan);
        close(fd);
        merged_lanes_deinit(&merged);
}

/* The algorithm of the first step that has a choice. */
static const char *algorithm_of(const char *core, bool laned)
{
        static char text[32];
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_step_info info;
        struct network net;
        struct sl_plan *plan;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        network_init(&net);
        build_products(&net);
        network_finish(&net);
        sl_lower_options_init(&options);
        options.laned = laned;
        cr_assert_eq(sl_lower_options_parse(&options, core, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_new(net.graph, &options, &lowered, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_step_info(plan, 1, 0, &info), 0);
        snprintf(text, sizeof(text), "%s", info.algorithm);
        sl_plan_free(plan);
        close(fd);
        network_deinit(&net);
        return text;
}

/* By these figures oneDNN's products are a little faster, and then twice as fast. */
Test(share, a_product_that_may_be_merged_is_packed_for_it_unless_that_costs_much)
{
        static const char a_little[] = "core=product=0.52,onednn_call=1e-9", much[] = "core=product=0.3,onednn_call=1e-9";

        cr_expect_str_eq(algorithm_of(a_little, false), "direct");
        cr_expect_str_eq(algorithm_of(a_little, true), "blocked");
        cr_expect_str_eq(algorithm_of(much, true), "direct");
}

/* ---- a forged file ---- */

struct file {
        uint8_t *bytes;
        uint64_t n_bytes;
        struct sl_plan_header *header;
        struct sl_plan_constant *gathered; /* the first of several pieces */
        struct sl_plan_piece *piece;       /* its first */
};

static struct file file_read(int fd)
{
        struct file file = {0};
        struct sl_plan_constant *constants;
        struct stat status;

        cr_assert_eq(fstat(fd, &status), 0);
        file.n_bytes = (uint64_t)status.st_size;
        file.bytes = malloc(file.n_bytes);
        cr_assert_eq(pread(fd, file.bytes, file.n_bytes, 0), (ssize_t)file.n_bytes);
        file.header = (void *)file.bytes;
        constants = (void *)(file.bytes + file.header->sections[SL_PLAN_SECTION_CONSTANTS].offset);
        for (uint64_t i = file.header->sections[SL_PLAN_SECTION_CONSTANTS].count; i-- > 0;)
                if (constants[i].n_pieces > 1)
                        file.gathered = &constants[i];
        cr_assert_not_null(file.gathered);
        file.piece = (struct sl_plan_piece *)(file.bytes + file.header->sections[SL_PLAN_SECTION_PIECES].offset) +
                     file.gathered->first_piece;
        return file;
}

static int file_open(struct file *file, struct sl_plan **ret_plan)
{
        int fd = memfd_create("forged", MFD_CLOEXEC), r;

        file->header->checksum = XXH3_64bits(file->bytes + SL_PLAN_CHECKED_FROM, file->n_bytes - SL_PLAN_CHECKED_FROM);
        cr_assert_eq(write(fd, file->bytes, file->n_bytes), (ssize_t)file->n_bytes);
        r = sl_plan_open_merged(fd, merged.singles, LANES, false, ret_plan, &error);
        close(fd);
        return r;
}

#define FORGE(field, value, cause)                                                                                                 \
        do {                                                                                                                       \
                __auto_type kept = (field);                                                                                        \
                struct sl_plan *refused;                                                                                           \
                                                                                                                                   \
                (field) = (value);                                                                                                 \
                cr_expect_eq(file_open(&file, &refused), -EBADMSG, "%s", cause);                                                   \
                cr_expect_not_null(strstr(error.text, cause), "wanted \"%s\", got \"%s\"", cause, error.text);                     \
                (field) = kept;                                                                                                    \
        } while (0)

Test(share, a_forged_piece_is_refused)
{
        struct sl_plan *plan;
        struct file file;
        int fd;

        merged_lanes_init(&merged, build_products);
        fd = share(&plan);
        sl_plan_free(plan);
        file = file_read(fd);
        FORGE(file.piece->member, LANES, "number of a member");
        FORGE(file.piece->index, 1u << 30, "number of a member's constant");
        FORGE(file.piece->offset, 32, "end of a piece");
        FORGE(file.piece->offset, UINT64_MAX - 63, "end of a piece");
        FORGE(file.piece->bytes, 0, "end of a piece");
        FORGE(file.piece->bytes, UINT64_MAX - 4095, "end of a piece");
        FORGE(file.piece->bytes, file.piece->bytes - 64, "not whole pages");
        FORGE(file.piece->bytes, file.piece->bytes - 4096, "size of a constant's pieces");
        FORGE(file.gathered->bytes, file.gathered->bytes + 1, "size of a constant's pieces");
        FORGE(file.gathered->first_piece, UINT64_MAX, "end of a constant's pieces");
        FORGE(file.gathered->n_pieces, 0, "end of a constant's pieces");
        FORGE(file.gathered->offset, 64, "offset of a constant that is pieces");
        FORGE(file.gathered->in_base, SL_PLAN_OWN, "pieces of a constant that has none");
        FORGE(file.gathered->in_base, SL_PLAN_SHARING_COUNT, "place of a constant");
        FORGE(file.header->sections[SL_PLAN_SECTION_MEMBERS].count, 0, "number of a member");
        cr_assert_eq(file_open(&file, &plan), 0, "%s", error.text);
        expect_same_answers(plan);
        sl_plan_free(plan);
        free(file.bytes);
        close(fd);
        merged_lanes_deinit(&merged);
}

/* Every byte of the tables that say where constants are gets other values, under a checksum that is right. */
Test(share, a_forged_file_reaches_no_byte_outside_its_members, .timeout = 60)
{
        static const uint8_t flips[] = {0x01, 0x10, 0x80, 0xff};
        static float outputs[LANES][MERGED_BATCH_MAX * WIDTH];
        struct sl_plan *plan;
        struct file file;
        uint64_t first, end;
        int fd;

        merged_lanes_init(&merged, build_products);
        fd = share(&plan);
        sl_plan_free(plan);
        file = file_read(fd);
        first = file.header->sections[SL_PLAN_SECTION_CONSTANTS].offset;
        end = file.header->sections[SL_PLAN_SECTION_FORMS].offset;
        for (uint64_t at = first; at < end; at++)
                for (size_t k = 0; k < sizeof(flips); k++) {
                        file.bytes[at] ^= flips[k];
                        if (file_open(&file, &plan) == 0) {
                                struct sl_instance *instance;

                                if (sl_instance_new(plan, 1, &instance, &error) == 0) {
                                        sl_instance_free(instance);
                                        run(plan, 1, outputs);
                                }
                                sl_plan_free(plan);
                        }
                        file.bytes[at] ^= flips[k];
                }
        free(file.bytes);
        close(fd);
        merged_lanes_deinit(&merged);
}
