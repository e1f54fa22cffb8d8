/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that are derived from a plan of other sizes: what they share, and what becomes of them without it.
 */
#include "base/error.h"
#include "base_plan.h"
#include "format.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define CHANNELS      128
#define FLOATS_MAX    (CHANNELS * 12 * 12)
#define OUTPUT_FLOATS (16 * 8 * 8)
#define NAME_BYTES    2000

/* A convolution of large weights, one of small ones, and a constant that is added as it is; @size by @size pixels. */
static void build(struct network *net, int64_t size, bool other_weights)
{
        uint32_t x;

        network_init(net);
        net->state += other_weights;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, CHANNELS, size, size));
        x = network_apply(net, SL_OP_RELU, network_conv(net, x, CHANNELS, CHANNELS, 3, 1, 1));
        x = network_conv(net, x, CHANNELS, 16, 1, 1, 1);
        x = network_node(net, SL_OP_ADD, VALUES(x, network_weights(net, DIMS(1, 16, 1, 1))), 0, NULL);
        network_output(net, network_apply(net, SL_OP_SIGMOID, x));
        for (uint32_t i = 0; i < net->graph->n_nodes; i++) {
                char *name = sl_graph_alloc(net->graph, NAME_BYTES);

                snprintf(name, NAME_BYTES, "%0*u", NAME_BYTES - 1, i); /* they differ in their ends */
                net->graph->nodes[i].name = name;
        }
        network_finish(net);
}

static int compile(int64_t size, bool other_weights, int base_fd)
{
        struct sl_base_plan *base = NULL;
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_error error;
        struct network net;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        build(&net, size, other_weights);
        sl_lower_options_init(&options);
        options.batch_max = 2;
        if (base_fd >= 0)
                cr_assert_eq(sl_base_plan_open(base_fd, &base, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_new_in(net.graph, &options, base, fd, &lowered, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        sl_base_plan_free(base);
        network_deinit(&net);
        return fd;
}

struct pair {
        int base_fd, fd;
        struct sl_plan *base;
};

static struct pair pair_new(void)
{
        struct pair pair = {.base_fd = compile(12, false, -1)};

        pair.fd = compile(8, false, pair.base_fd);
        cr_assert_eq(sl_plan_open(pair.base_fd, &pair.base, NULL), 0);
        return pair;
}

static void pair_free(struct pair *pair)
{
        sl_plan_free(pair->base);
        close(pair->base_fd);
        close(pair->fd);
}

static void run(const struct sl_plan *plan, float *output)
{
        static alignas(64) float input[FLOATS_MAX];
        const void *inputs = input;
        void *outputs = output;
        struct sl_instance *instance;
        struct sl_error error;

        for (uint32_t i = 0; i < FLOATS_MAX; i++)
                input[i] = (float)(i % 29) / 29.0f - 0.5f;
        cr_assert_eq(sl_instance_new(plan, 2, &instance, &error), 0, "%s", error.text);
        cr_assert_eq(sl_instance_run(instance, 1, &inputs, &outputs), 0);
        sl_instance_free(instance);
}

Test(derived, equal_constants_are_those_of_the_base)
{
        struct pair pair = pair_new();
        struct sl_plan *plan;

        cr_assert_eq(sl_plan_open_on(pair.fd, pair.base, &plan, NULL), 0);
        cr_assert_gt(sl_plan_info(plan)->shared_bytes, CHANNELS * CHANNELS * 9 * sizeof(float));
        cr_assert_lt(sl_plan_info(plan)->weights_bytes, sl_plan_info(pair.base)->weights_bytes / 50);
        cr_assert_eq(sl_plan_info(pair.base)->shared_bytes, 0);
        cr_assert_eq(sl_plan_base(plan), pair.base);
        sl_plan_free(plan);
        pair_free(&pair);
}

/* Each once, whatever the number of batch sizes. */
Test(derived, steps_have_the_whole_names_of_their_nodes)
{
        struct pair pair = pair_new();
        struct sl_step_info info;
        struct stat status;
        uint32_t seen = 0;

        for (uint32_t batch = 1; batch <= 2; batch++)
                for (uint64_t i = 0; i < sl_plan_steps(pair.base, batch); i++) {
                        cr_assert_eq(sl_plan_step_info(pair.base, batch, i, &info), 0);
                        cr_assert(info.name[0] != '0' || strlen(info.name) == NAME_BYTES - 1, "%s", info.name);
                        seen |= info.name[0] == '0' ? 1u << strtoul(info.name, NULL, 10) : 0;
                }
        cr_expect_gt(__builtin_popcount(seen), 2, "%#x", seen);
        cr_assert_eq(fstat(pair.fd, &status), 0);
        cr_expect_lt(status.st_size, 64 << 10, "%lld bytes", (long long)status.st_size);
        pair_free(&pair);
}

/* Alone, other algorithms may be the fastest for its sizes. */
static void expect_same(const float derived[OUTPUT_FLOATS], const float alone[OUTPUT_FLOATS])
{
        for (uint32_t i = 0; i < OUTPUT_FLOATS; i++)
                cr_assert_float_eq(
                        derived[i], alone[i], 1e-5, "element %u: %.9g, alone %.9g", i, (double)derived[i], (double)alone[i]);
}

Test(derived, it_computes_what_one_that_stands_alone_computes)
{
        static alignas(64) float derived[OUTPUT_FLOATS], alone[OUTPUT_FLOATS];
        struct pair pair = pair_new();
        struct sl_plan *plan, *other;
        int fd = compile(8, false, -1);

        cr_assert_eq(sl_plan_open_on(pair.fd, pair.base, &plan, NULL), 0);
        cr_assert_eq(sl_plan_open(fd, &other, NULL), 0);
        run(plan, derived);
        run(other, alone);
        expect_same(derived, alone);
        cr_assert_neq(alone[0], alone[1]);
        sl_plan_free(plan);
        sl_plan_free(other);
        close(fd);
        pair_free(&pair);
}

Test(derived, it_keeps_its_base_as_long_as_it_lives)
{
        static alignas(64) float before[OUTPUT_FLOATS], after[OUTPUT_FLOATS];
        struct pair pair = pair_new();
        struct sl_plan *plan;

        cr_assert_eq(sl_plan_open_on(pair.fd, pair.base, &plan, NULL), 0);
        run(plan, before);
        pair.base = sl_plan_free(pair.base);
        run(plan, after);
        cr_assert_arr_eq(before, after, sizeof(after));
        sl_plan_free(plan);
        pair_free(&pair);
}

Test(derived, without_its_base_it_is_refused)
{
        struct pair pair = pair_new();
        struct sl_plan *plan, *other;
        struct sl_error error = {""};
        int other_fd = compile(12, true, -1);

        cr_assert_eq(sl_plan_open(pair.fd, &plan, &error), -ESTALE);
        cr_expect_not_null(strstr(error.text, "derived from plan"), "%s", error.text);
        cr_assert_eq(sl_plan_open(other_fd, &other, NULL), 0);
        cr_assert_eq(sl_plan_open_on(pair.fd, other, &plan, &error), -ESTALE);
        sl_plan_free(other);
        close(other_fd);
        pair_free(&pair);
}

Test(derived, it_is_nobodys_base)
{
        struct pair pair = pair_new();
        struct sl_base_plan *base;
        struct sl_plan *plan, *next;
        struct sl_error error;

        cr_assert_eq(sl_plan_open_on(pair.fd, pair.base, &plan, NULL), 0);
        cr_assert_eq(sl_plan_open_on(pair.fd, plan, &next, NULL), -EINVAL);
        cr_assert_eq(sl_base_plan_open(pair.fd, &base, &error), -EINVAL);
        sl_plan_free(plan);
        pair_free(&pair);
}

Test(derived, a_plan_that_stands_alone_takes_nothing_from_a_base)
{
        struct pair pair = pair_new();
        int fd = compile(8, false, -1);
        struct sl_plan *plan;

        cr_assert_eq(sl_plan_open_on(fd, pair.base, &plan, NULL), 0);
        cr_assert_null(sl_plan_base(plan));
        sl_plan_free(plan);
        close(fd);
        pair_free(&pair);
}

Test(derived, other_weights_are_its_own)
{
        static alignas(64) float derived[OUTPUT_FLOATS], alone[OUTPUT_FLOATS];
        int base_fd = compile(12, false, -1), fd = compile(8, true, base_fd), alone_fd = compile(8, true, -1);
        struct sl_plan *base, *plan, *other;

        cr_assert_eq(sl_plan_open(base_fd, &base, NULL), 0);
        cr_assert_eq(sl_plan_open_on(fd, base, &plan, NULL), 0);
        cr_assert_eq(sl_plan_open(alone_fd, &other, NULL), 0);
        cr_assert_gt(sl_plan_info(plan)->weights_bytes, CHANNELS * CHANNELS * 9 * sizeof(float));
        run(plan, derived);
        run(other, alone);
        expect_same(derived, alone);
        sl_plan_free(plan);
        sl_plan_free(other);
        sl_plan_free(base);
        close(fd);
        close(base_fd);
        close(alone_fd);
}

struct file {
        uint8_t *bytes;
        uint64_t n_bytes;
        struct sl_plan_header *header;
        struct sl_plan_constant *constants, *shared; /* the first packed one that lies in the base */
        uint64_t n_constants;
};

static struct file file_read(int fd)
{
        struct file file = {0};
        struct stat status;

        cr_assert_eq(fstat(fd, &status), 0);
        file.n_bytes = (uint64_t)status.st_size;
        file.bytes = malloc(file.n_bytes);
        cr_assert_eq(pread(fd, file.bytes, file.n_bytes, 0), (ssize_t)file.n_bytes);
        file.header = (void *)file.bytes;
        file.constants = (void *)(file.bytes + file.header->sections[SL_PLAN_SECTION_CONSTANTS].offset);
        file.n_constants = file.header->sections[SL_PLAN_SECTION_CONSTANTS].count;
        for (uint64_t i = file.n_constants; i-- > 0;)
                if (file.constants[i].in_base && file.constants[i].packed && file.constants[i].form_bytes)
                        file.shared = &file.constants[i];
        cr_assert_not_null(file.shared);
        return file;
}

static int file_open(struct file *file, struct sl_plan *base, struct sl_plan **ret_plan, struct sl_error *error)
{
        int fd = memfd_create("forged", MFD_CLOEXEC), r;

        file->header->checksum = XXH3_64bits(file->bytes + SL_PLAN_CHECKED_FROM, file->n_bytes - SL_PLAN_CHECKED_FROM);
        cr_assert_eq(write(fd, file->bytes, file->n_bytes), (ssize_t)file->n_bytes);
        r = sl_plan_open_on(fd, base, ret_plan, error);
        close(fd);
        return r;
}

static void expect_refused(struct file *file, struct sl_plan *base, const char *cause)
{
        struct sl_error error = {""};
        struct sl_plan *plan;

        cr_assert_eq(file_open(file, base, &plan, &error), -EBADMSG, "%s", cause);
        cr_expect_not_null(strstr(error.text, cause), "wanted \"%s\", got \"%s\"", cause, error.text);
}

#define FORGE(file, base, field, value, cause)                                                                                     \
        do {                                                                                                                       \
                __auto_type kept = (field);                                                                                        \
                (field) = (value);                                                                                                 \
                expect_refused(file, base, cause);                                                                                 \
                (field) = kept;                                                                                                    \
        } while (0)

Test(derived, a_forged_reference_is_refused)
{
        struct pair pair = pair_new();
        struct file file = file_read(pair.fd);
        struct sl_plan_constant *c = file.shared;
        uint8_t *form = file.bytes + file.header->sections[SL_PLAN_SECTION_FORMS].offset + c->form_offset;
        struct sl_plan *plan;

        FORGE(&file, pair.base, c->base_index, 1u << 30, "number of a constant in the base");
        FORGE(&file, pair.base, c->bytes, c->bytes + 64, "size of a constant in the base");
        FORGE(&file, pair.base, c->offset, 64, "size of a constant in the base");
        FORGE(&file, pair.base, c->hash, c->hash + 1, "digest of a constant in the base");
        FORGE(&file, pair.base, *form, *form ^ 1, "has another form");
        FORGE(&file, pair.base, c->packed, 0, "has another form");
        FORGE(&file, pair.base, c->base_offset, 64, "size of a constant in the base");
        FORGE(&file, pair.base, c->in_base, SL_PLAN_SHARING_COUNT, "place of a constant");
        FORGE(&file, pair.base, c->in_base, SL_PLAN_PIECES, "end of a constant's pieces");
        c->in_base = SL_PLAN_PART;
        FORGE(&file, pair.base, c->base_offset, 64, "end of a part of a constant in the base");
        FORGE(&file, pair.base, c->bytes, c->bytes + 1, "end of a part of a constant in the base");
        FORGE(&file, pair.base, c->base_offset, UINT64_MAX - 63, "end of a part of a constant in the base");
        c->in_base = SL_PLAN_WHOLE;
        FORGE(&file, pair.base, c->in_base, 0, "a constant");
        FORGE(&file, pair.base, file.header->base, (struct sl_plan_identity){0}, "number of a constant in the base");
        cr_assert_eq(file_open(&file, pair.base, &plan, NULL), 0);
        sl_plan_free(plan);
        free(file.bytes);
        pair_free(&pair);
}

/* Who says that it was made on another base, and is believed, finds there what is there. */
Test(derived, a_forged_identity_reaches_no_byte_outside_the_base)
{
        struct pair pair = pair_new();
        struct file file = file_read(pair.fd);
        int other_fd = compile(4, true, -1);
        struct sl_plan *other;

        cr_assert_eq(sl_plan_open(other_fd, &other, NULL), 0);
        file.header->base = sl_plan_identity(other);
        expect_refused(&file, other, "in the base");
        sl_plan_free(other);
        close(other_fd);
        free(file.bytes);
        pair_free(&pair);
}

/* Every byte of header, tables and forms that says something of the base gets other values, under a checksum that is right. */
Test(derived, a_forged_file_harms_nobody)
{
        static alignas(64) float output[16 * 8 * 8 * 4];
        static const uint8_t flips[] = {0x01, 0x80, 0xff};
        struct pair pair = pair_new();
        struct file file = file_read(pair.fd);
        uint8_t *end = (uint8_t *)(file.constants + file.n_constants);

        for (uint8_t *at = (uint8_t *)file.constants; at < end; at++) {
                for (uint32_t i = 0; i < sizeof(flips); i++) {
                        struct sl_plan *plan = NULL;
                        struct sl_instance *instance = NULL;

                        *at ^= flips[i];
                        if (file_open(&file, pair.base, &plan, NULL) == 0 && sl_instance_new(plan, 2, &instance, NULL) == 0)
                                run(plan, output);
                        sl_instance_free(instance);
                        sl_plan_free(plan);
                        *at ^= flips[i];
                }
        }
        free(file.bytes);
        pair_free(&pair);
}
