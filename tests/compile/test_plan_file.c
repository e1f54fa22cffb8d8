/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "format.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"
#include "plan.h"
#include "team.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

struct file {
        uint8_t *bytes;
        uint64_t n_bytes;
};

static int small_plan_fd(const char *backend)
{
        struct network net;
        uint32_t x;
        int fd;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 8, 8));
        x = network_batch_norm(&net, network_conv(&net, x, 4, 8, 3, 1, 1), 8);
        network_output(&net, network_apply(&net, SL_OP_GLOBAL_AVERAGE_POOL, network_apply(&net, SL_OP_RELU, x)));
        network_finish(&net);
        fd = network_plan_fd(&net, backend, 2);
        network_deinit(&net);
        return fd;
}

static struct file read_file(int fd)
{
        struct file file;
        struct stat status;

        cr_assert_eq(fstat(fd, &status), 0);
        file.n_bytes = (uint64_t)status.st_size;
        file.bytes = malloc(file.n_bytes);
        cr_assert_eq(pread(fd, file.bytes, file.n_bytes, 0), (ssize_t)file.n_bytes);
        return file;
}

static void seal_checksum(struct file *file)
{
        struct sl_plan_header *header = (void *)file->bytes;

        header->checksum = XXH3_64bits(file->bytes + SL_PLAN_CHECKED_FROM, file->n_bytes - SL_PLAN_CHECKED_FROM);
}

static int open_sealed(const struct file *file, int seals, struct sl_plan **ret_plan, struct sl_error *error)
{
        int fd = memfd_create("damaged", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;

        cr_assert_eq(write(fd, file->bytes, file->n_bytes), (ssize_t)file->n_bytes);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
        r = sl_plan_open(fd, ret_plan, error);
        close(fd);
        return r;
}

static int open_bytes(const struct file *file, struct sl_plan **ret_plan, struct sl_error *error)
{
        return open_sealed(file, 0, ret_plan, error);
}

Test(plan_file, the_same_model_gives_the_same_bytes)
{
        int first_fd = small_plan_fd("cpu"), second_fd = small_plan_fd("cpu");
        struct file first = read_file(first_fd), second = read_file(second_fd);

        cr_assert_eq(first.n_bytes, second.n_bytes);
        cr_assert_arr_eq(first.bytes, second.bytes, first.n_bytes);
        free(first.bytes);
        free(second.bytes);
        close(first_fd);
        close(second_fd);
}

#define WIDE_CHANNELS 128
#define WIDE_FLOATS   (WIDE_CHANNELS * 6 * 6)

/* Three convolutions, with weights large enough to be made in the file; those of the last two are equal, or not. */
static void wide_network(struct network *net, bool same)
{
        int64_t c = WIDE_CHANNELS;
        uint32_t x, weights[3], biases[3];

        network_init(net);
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, c, 6, 6));
        for (uint32_t i = 0; i < 3; i++) {
                weights[i] = network_weights(net, DIMS(c, c, 3, 3));
                biases[i] = network_weights(net, DIMS(c));
        }
        if (same)
                memcpy((void *)net->graph->values[weights[2]].data, net->graph->values[weights[1]].data,
                        net->graph->values[weights[1]].data_bytes);
        for (uint32_t i = 0; i < 3; i++)
                x = network_node(net, SL_OP_CONV, VALUES(x, weights[i], biases[i]),
                        ATTRS({SL_ATTR_KERNEL_SHAPE, 2, {3, 3}}, {SL_ATTR_STRIDES, 2, {1, 1}}, {SL_ATTR_PADS, 4, {1, 1, 1, 1}},
                                {SL_ATTR_DILATIONS, 2, {1, 1}}, {SL_ATTR_GROUP, 0, {1}}));
        network_output(net, x);
        network_finish(net);
}

/* Packed in the file, or in memory and then written. */
static void write_wide(bool same, bool in_place, int fd)
{
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct network net;

        wide_network(&net, same);
        sl_lower_options_init(&options);
        options.batch_max = 2;
        options.tune = SL_TUNE_OFF;
        cr_assert_eq(sl_lowered_new_in(net.graph, &options, NULL, in_place ? fd : -1, &lowered, NULL), 0);
        cr_assert_eq(sl_lowered_write(lowered, fd, NULL), 0);
        sl_lowered_free(lowered);
        network_deinit(&net);
}

static struct sl_plan *wide_plan(bool same, bool in_place)
{
        struct sl_plan *plan;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        write_wide(same, in_place, fd);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        close(fd);
        return plan;
}

static void run_wide(const struct sl_plan *plan, float *output)
{
        static alignas(64) float input[WIDE_FLOATS];
        const void *inputs = input;
        void *outputs = output;
        struct sl_instance *instance;

        for (uint32_t i = 0; i < WIDE_FLOATS; i++)
                input[i] = (float)(i % 29) / 29.0f - 0.5f;
        cr_assert_eq(sl_instance_new(plan, 2, &instance, NULL), 0);
        cr_assert_eq(sl_instance_run(instance, 1, &inputs, &outputs), 0);
        sl_instance_free(instance);
}

Test(plan_file, constants_made_in_the_file_are_those_that_are_copied_into_it)
{
        static alignas(64) float here[WIDE_FLOATS], copied[WIDE_FLOATS];
        struct sl_plan *first = wide_plan(false, true), *second = wide_plan(false, false);

        run_wide(first, here);
        run_wide(second, copied);
        cr_assert_arr_eq(here, copied, sizeof(here));
        cr_assert_neq(here[0], 0);
        sl_plan_free(first);
        sl_plan_free(second);
}

Test(plan_file, what_a_longer_file_held_before_leaves_nothing_in_it)
{
        int fresh_fd = memfd_create("plan", MFD_CLOEXEC), used_fd = memfd_create("used", MFD_CLOEXEC);
        struct file fresh, used;
        uint8_t *junk;

        write_wide(false, false, fresh_fd);
        fresh = read_file(fresh_fd);
        junk = malloc(2 * fresh.n_bytes);
        memset(junk, 0xa5, 2 * fresh.n_bytes);
        cr_assert_eq(write(used_fd, junk, 2 * fresh.n_bytes), (ssize_t)(2 * fresh.n_bytes));
        write_wide(false, false, used_fd);
        used = read_file(used_fd);
        cr_assert_eq(used.n_bytes, fresh.n_bytes);
        cr_expect(!memcmp(used.bytes, fresh.bytes, fresh.n_bytes));
        free(junk);
        free(fresh.bytes);
        free(used.bytes);
        close(fresh_fd);
        close(used_fd);
}

Test(plan_file, equal_constants_stand_in_it_once)
{
        struct sl_plan *different = wide_plan(false, true), *same = wide_plan(true, true);
        static alignas(64) float here[WIDE_FLOATS], copied[WIDE_FLOATS];
        struct sl_plan *in_memory = wide_plan(true, false);

        cr_assert_lt(sl_plan_info(same)->weights_bytes, sl_plan_info(different)->weights_bytes * 7 / 10);
        run_wide(same, here);
        run_wide(in_memory, copied);
        cr_assert_arr_eq(here, copied, sizeof(here));
        sl_plan_free(different);
        sl_plan_free(same);
        sl_plan_free(in_memory);
}

Test(plan_file, any_flipped_byte_is_noticed)
{
        int fd = small_plan_fd("ref");
        struct file file = read_file(fd);

        for (uint64_t at = 0; at < file.n_bytes; at += 37) {
                struct sl_plan *plan;
                int r;

                file.bytes[at] ^= 0x40;
                r = open_bytes(&file, &plan, NULL);
                cr_assert(r == -EBADMSG || r == -EPROTONOSUPPORT, "byte %lu: %d", at, r);
                file.bytes[at] ^= 0x40;
        }
        free(file.bytes);
        close(fd);
}

Test(plan_file, what_was_sealed_in_memory_is_checked_but_for_the_checksum)
{
        const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
        int fd = small_plan_fd("ref");
        struct file file = read_file(fd);
        struct sl_plan_header *header = (void *)file.bytes;
        struct sl_plan *plan;

        header->checksum ^= 1;
        cr_assert_eq(open_sealed(&file, F_SEAL_SHRINK | F_SEAL_GROW, &plan, NULL), -EBADMSG);
        cr_assert_eq(open_sealed(&file, all, &plan, NULL), 0);
        sl_plan_free(plan);
        header->sections[SL_PLAN_SECTION_STEPS].offset += 1;
        cr_assert_eq(open_sealed(&file, all, &plan, NULL), -EBADMSG);
        free(file.bytes);
        close(fd);
}

Test(plan_file, a_file_cut_short_is_refused)
{
        int fd = small_plan_fd("ref");
        struct file file = read_file(fd);
        uint64_t whole = file.n_bytes;

        for (file.n_bytes = 0; file.n_bytes < whole; file.n_bytes += 97) {
                struct sl_error error = {0};
                struct sl_plan *plan;

                cr_assert_eq(open_bytes(&file, &plan, &error), -EBADMSG);
                cr_assert_neq(error.text[0], 0);
        }
        free(file.bytes);
        close(fd);
}

Test(plan_file, another_version_or_library_is_named)
{
        int fd = small_plan_fd("ref");
        struct file file = read_file(fd);
        struct sl_plan_header *header = (void *)file.bytes;
        struct sl_plan_backend *backend;
        struct sl_error error = {0};
        struct sl_plan *plan;

        header->version++;
        seal_checksum(&file);
        cr_assert_eq(open_bytes(&file, &plan, &error), -EPROTONOSUPPORT);
        cr_assert_not_null(strstr(error.text, "version"));
        header->version--;
        header->key.operators++;
        seal_checksum(&file);
        cr_assert_eq(open_bytes(&file, &plan, &error), -EPROTONOSUPPORT);
        cr_assert_not_null(strstr(error.text, "operators"));
        header->key.operators--;
        backend = (void *)(file.bytes + header->sections[SL_PLAN_SECTION_BACKENDS].offset);
        backend->key[0] ^= 1;
        seal_checksum(&file);
        cr_assert_eq(open_bytes(&file, &plan, &error), -EPROTONOSUPPORT);
        cr_assert_not_null(strstr(error.text, backend->key));
        cr_assert_not_null(strstr(error.text, backend->name));
        free(file.bytes);
        close(fd);
}

/* Samples of several requests are gathered into one batch: a tensor that has no place for more than one would be overrun. */
Test(plan_file, a_model_that_takes_several_samples_has_a_place_for_them_in_every_tensor)
{
        int fd = small_plan_fd("ref");
        struct file file = read_file(fd);
        const struct sl_plan_header *header = (void *)file.bytes;
        const struct sl_plan_description *description = (void *)(file.bytes + header->sections[SL_PLAN_SECTION_INFO].offset);
        struct sl_plan_port *ports = (void *)(file.bytes + header->sections[SL_PLAN_SECTION_PORTS].offset);
        struct sl_error error = {0};
        struct sl_plan *plan;

        cr_assert(description->info.batchable && description->info.n_batches == 2);
        ports[0].port.batch_axis = SL_PORT_NO_BATCH;
        ports[0].port.shape.dims[0] = 1;
        seal_checksum(&file);
        cr_assert_eq(open_bytes(&file, &plan, &error), -EBADMSG);
        cr_expect_not_null(strstr(error.text, "input 0 is described wrongly"), "%s", error.text);
        free(file.bytes);
        close(fd);
}

/* The labels of a port are a text of NAMES, of a length that clients have room for. */
Test(plan_file, labels_lie_in_the_file_and_are_bounded)
{
        int fd = small_plan_fd("ref");
        struct file file = read_file(fd);
        struct sl_plan_header *header = (void *)file.bytes;
        struct sl_plan_port *ports = (void *)(file.bytes + header->sections[SL_PLAN_SECTION_PORTS].offset);
        struct sl_error error = {0};
        struct sl_plan *plan;

        cr_assert_eq(open_bytes(&file, &plan, &error), 0);
        cr_expect_str_eq(sl_plan_info(plan)->inputs[0].labels, "");
        sl_plan_free(plan);
        ports[0].labels = header->sections[SL_PLAN_SECTION_NAMES].count;
        seal_checksum(&file);
        cr_assert_eq(open_bytes(&file, &plan, &error), -EBADMSG);
        cr_expect_not_null(strstr(error.text, "labels of a port"), "%s", error.text);
        free(file.bytes);
        close(fd);
}

/* What one step says of a team, of which the smallest has two members. */
static void expect_split(struct file *file, struct sl_split split, const char *text)
{
        struct sl_plan_header *header = (struct sl_plan_header *)file->bytes;
        struct sl_plan_step *step = (struct sl_plan_step *)(file->bytes + header->sections[SL_PLAN_SECTION_STEPS].offset);
        struct sl_error error = {""};
        struct sl_plan *plan;

        step->splits[0] = split;
        seal_checksum(file);
        cr_assert_eq(open_bytes(file, &plan, &error), -EBADMSG);
        cr_expect_not_null(strstr(error.text, text), "%s", error.text);
}

Test(plan_file, a_step_has_no_more_parts_than_the_team_has_members)
{
        int fd = small_plan_fd("cpu");
        struct file file = read_file(fd);

        expect_split(&file, (struct sl_split){SL_AXIS_ROWS, 3, 0, 0}, "number of a step's parts is 3");
        expect_split(&file, (struct sl_split){SL_AXIS_ROWS, 1, 0, 0}, "number of a step's parts is 1");
        expect_split(&file, (struct sl_split){SL_AXIS_NONE, 2, 0, 0}, "number of a step's parts is 2");
        expect_split(&file, (struct sl_split){SL_AXIS_COUNT, 2, 0, 0}, "axis of a step's parts is 3");
        expect_split(&file, (struct sl_split){SL_AXIS_ROWS, 2, 1, 0}, "first member of a step's parts is 1");
        expect_split(&file, (struct sl_split){SL_AXIS_NONE, 1, 2, 0}, "first member of a step's parts is 2");
        expect_split(&file, (struct sl_split){SL_AXIS_NONE, 0, 1, 0}, "first member of a step's parts is 1");
        expect_split(&file, (struct sl_split){SL_AXIS_NONE, 0, 0, 2}, "mark of a step that waits is 2");
        free(file.bytes);
        close(fd);
}

#define TEAM_EVERY  16u /* plans that are used: threads take longer to come and go than a plan to run */
#define GUARD_BYTES 256u
#define GUARD       0xa5

static void *guarded(uint64_t bytes)
{
        unsigned char *buffer = calloc(bytes + GUARD_BYTES, 1);

        if (buffer)
                memset(buffer + bytes, GUARD, GUARD_BYTES);
        return buffer;
}

static void expect_guard(const unsigned char *buffer, uint64_t bytes)
{
        for (uint32_t i = 0; i < GUARD_BYTES; i++)
                cr_assert_eq(buffer[bytes + i], GUARD, "byte %u behind a tensor was written", i);
}

/* What a serving process would do with the plan: refuse it (false), or compute something with it, within its tensors. */
static bool use_plan(struct sl_plan *plan)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        const void *inputs[SL_PLAN_PORTS_MAX];
        void *outputs[SL_PLAN_PORTS_MAX];
        uint64_t bytes[2 * SL_PLAN_PORTS_MAX];
        static uint32_t uses;
        struct sl_team *team = NULL;
        struct sl_instance *instance;
        bool fits = true;

        if (sl_instance_bytes(plan, 2) > (64ull << 20) || sl_instance_new(plan, 2, &instance, NULL) < 0)
                return false;
        for (uint32_t i = 0; i < info->n_inputs + info->n_outputs; i++) {
                const struct sl_port *port = i < info->n_inputs ? &info->inputs[i] : &info->outputs[i - info->n_inputs];
                struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};
                void *buffer;

                if (port->batch_axis == 0)
                        tensor.shape.dims[0] = info->batches[0];
                bytes[i] = sl_tensor_bytes(&tensor);
                buffer = bytes[i] > (64ull << 20) ? NULL : guarded(bytes[i]);
                fits = fits && buffer;
                if (i < info->n_inputs)
                        inputs[i] = buffer;
                else
                        outputs[i - info->n_inputs] = buffer;
        }
        if (fits && uses++ % TEAM_EVERY == 0 && sl_team_new(&(struct sl_team_options){.size = 3}, &team, NULL) == 0)
                (void)sl_instance_use_team(instance, team, NULL);
        if (fits) {
                int r = sl_instance_run(instance, info->batches[0], inputs, outputs);

                cr_assert(r == 0 || r == -ERANGE || r == -EINVAL, "%d", r);
                for (uint32_t i = 0; i < info->n_outputs; i++)
                        expect_guard(outputs[i], bytes[info->n_inputs + i]);
        }
        for (uint32_t i = 0; i < info->n_inputs; i++)
                free((void *)inputs[i]);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                free(outputs[i]);
        sl_instance_free(instance);
        sl_team_free(team);
        return fits;
}

/* How many files were made, and how many of them could be used all the same. */
struct damage {
        uint32_t n, n_used;
};

/* Bytes @from to @end get a few other values, under a checksum that is right. */
static void damage_range(struct file *file, uint64_t from, uint64_t end, uint64_t step, struct damage *damage)
{
        static const uint8_t flips[] = {0x01, 0x80, 0xff};

        for (uint64_t at = from; at < end; at += step)
                for (uint32_t i = 0; i < 3; i++) {
                        struct sl_plan *plan = NULL;

                        file->bytes[at] ^= flips[i];
                        seal_checksum(file);
                        damage->n++;
                        damage->n_used += open_bytes(file, &plan, NULL) == 0 && use_plan(plan);
                        sl_plan_free(plan);
                        file->bytes[at] ^= flips[i];
                }
}

/* The header, and the sections from @first to before @end. */
static void damage_sections(const char *backend, enum sl_plan_section_id first, enum sl_plan_section_id end, uint64_t step)
{
        int fd = small_plan_fd(backend);
        struct file file = read_file(fd);
        const struct sl_plan_header header = *(struct sl_plan_header *)file.bytes;
        struct damage damage = {0};

        damage_range(&file, sizeof(header.magic), sizeof(header), step, &damage);
        for (uint32_t id = first; id < end; id++)
                damage_range(&file, header.sections[id].offset,
                        header.sections[id].offset + header.sections[id].count * sl_plan_section_bytes(id), step, &damage);
        free(file.bytes);
        close(fd);
        cr_expect_gt(damage.n, damage.n_used, "nothing was refused");
        cr_expect_gt(damage.n, sizeof(header) / step, "no section was touched");
}

Test(plan_file, a_forged_file_harms_nobody)
{
        damage_sections("ref", SL_PLAN_SECTION_INFO, SL_PLAN_SECTION_PROGRAMS, 7);
        damage_sections("ref", SL_PLAN_SECTION_PROGRAMS, SL_PLAN_SECTION_DATA, 1);
}

Test(plan_file, a_forged_file_for_the_processor_harms_nobody)
{
        damage_sections("cpu", SL_PLAN_SECTION_INFO, SL_PLAN_SECTION_FORMS, 13);
}

Test(plan_file, a_forged_form_harms_nobody)
{
        damage_sections("cpu", SL_PLAN_SECTION_FORMS, SL_PLAN_SECTION_DATA, 1);
}
