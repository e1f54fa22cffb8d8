/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model with open dimensions: its signature, and its plan once they have sizes.
 */
#include "base/error.h"
#include "builder.h"
#include "compile.h"
#include "lower_options.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* x [N, M, 3] + z [M, 1]. */
static void write_model(char *path)
{
        struct builder *b = builder_new(13);
        size_t n_bytes;
        const uint8_t *bytes;
        int fd = mkstemp(path);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2, 3));
        builder_input(b, "z", SL_DTYPE_F32, DIMS(-2, 1));
        builder_node(b, "Add", "x,z", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2, 3));
        bytes = builder_pack(b, &n_bytes);
        cr_assert(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
        close(fd);
        builder_free(b);
}

static struct sl_plan *plan_with(const char *option, struct sl_error *error)
{
        char path[] = "/tmp/starling-signature-XXXXXX";
        struct sl_lower_options options;
        struct sl_plan *plan = NULL;
        int fd = memfd_create("plan", MFD_CLOEXEC), r;

        write_model(path);
        sl_lower_options_init(&options);
        cr_assert_eq(option ? sl_lower_options_parse(&options, option, error) : 0, 0, "%s", error->text);
        r = sl_compile_here(path, &options, -1, fd, error);
        unlink(path);
        if (r == 0)
                cr_assert_eq(sl_plan_open(fd, &plan, error), 0, "%s", error->text);
        close(fd);
        return plan;
}

Test(signature, says_which_dimensions_are_open)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_with(NULL, &error);

        cr_assert(plan, "%s", error.text);
        const struct sl_plan_info *info = sl_plan_info(plan);

        cr_assert_eq(info->n_symbols, 1);
        cr_assert_str_eq(info->symbols[0], "M");
        cr_assert_eq(info->n_batches, 0);
        cr_assert_eq(info->inputs[0].batch_axis, 0);
        cr_assert_eq(info->inputs[0].shape.dims[1], SL_DIM_UNKNOWN);
        cr_assert_eq(info->inputs[0].symbols[1], 0);
        cr_assert_eq(info->inputs[0].symbols[2], SL_PORT_NO_SYMBOL);
        cr_assert_eq(info->inputs[1].batch_axis, SL_PORT_NO_BATCH);
        cr_assert_eq(info->inputs[1].symbols[0], 0);
        sl_plan_free(plan);
}

Test(signature, cannot_be_run)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_with(NULL, &error);
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, 32, &instance, &error), -EINVAL);
        cr_assert(strstr(error.text, "M"), "%s", error.text);
        sl_plan_free(plan);
}

Test(signature, becomes_a_plan_when_every_open_dimension_has_a_size)
{
        struct sl_error error = {""};
        struct sl_plan *plan = plan_with("shapes=M=5", &error);
        float x[15], z[5], y[15];
        struct sl_instance *instance;

        cr_assert(plan, "%s", error.text);
        cr_assert_eq(sl_plan_info(plan)->n_symbols, 0);
        cr_assert_eq(sl_plan_info(plan)->inputs[0].shape.dims[1], 5);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, &error), 0, "%s", error.text);
        fill_random(x, 15, 1);
        fill_random(z, 5, 2);
        cr_assert_eq(sl_instance_run(instance, 1, (const void *[]){x, z}, (void *[]){y}), 0);
        for (int i = 0; i < 15; i++)
                cr_assert_eq(y[i], x[i] + z[i / 3]);
        sl_instance_free(instance);
        sl_plan_free(plan);
}
