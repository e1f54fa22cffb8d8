/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `precision: bf16` becomes on processors with and without products of bfloat16.
 */
#include "base/error.h"
#include "cpu/base/isa.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"
#include "plan.h"
#include "precision_cost.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A convolution, lowered; how many of its graph's values are bfloat16. */
static uint32_t count_narrow(uint32_t precision)
{
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_error error;
        struct network net;
        uint32_t x, n = 0;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 16, 8, 8));
        network_output(&net, network_conv(&net, x, 16, 16, 3, 1, 1));
        network_finish(&net);
        sl_lower_options_init(&options);
        options.precision = precision;
        cr_assert_eq(sl_lower_rewrite(net.graph, &options, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < net.graph->n_values; i++)
                n += !net.graph->values[i].dead && net.graph->values[i].tensor.dtype == SL_DTYPE_BF16;
        cr_assert_eq(sl_lowered_new(net.graph, &options, &lowered, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        network_deinit(&net);
        return n;
}

Test(precision, bf16_is_narrow_where_the_processor_multiplies_it_and_fp32_elsewhere)
{
        cr_expect_eq(count_narrow(SL_PRECISION_FP32), 0);
        if (sl_cpu_has_avx512())
                cr_expect_gt(count_narrow(SL_PRECISION_BF16), 0);
        else
                cr_expect_eq(count_narrow(SL_PRECISION_BF16), 0);
}

/* 64 channels of bytes, 3x3, to floats. */
static uint32_t add_quantized_conv(struct network *net, uint32_t x)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_I8, .shape = {4, {64, 64, 3, 3}}};
        uint64_t bytes = sl_tensor_bytes(&tensor);
        int8_t *data = sl_graph_alloc(net->graph, bytes);
        uint32_t weights, scales = network_scales(net, DIMS(64));

        cr_assert_not_null(data);
        memset(data, 1, bytes);
        cr_assert_eq(sl_graph_add_constant(net->graph, "weights", &tensor, data, &weights), 0);
        return network_node(net, SL_OP_QUANTIZED_CONV, VALUES(x, weights, scales),
                ATTRS({SL_ATTR_KERNEL_SHAPE, 2, {3, 3}}, {SL_ATTR_STRIDES, 2, {1, 1}}, {SL_ATTR_PADS, 4, {1, 1, 1, 1}},
                        {SL_ATTR_DILATIONS, 2, {1, 1}}, {SL_ATTR_GROUP, 0, {1}}, {SL_ATTR_TO, 0, {SL_DTYPE_F32}}));
}

/* A convolution by bytes or by floats, as a plan. */
static struct sl_plan *plan_of(bool bytes)
{
        struct sl_plan *plan;
        struct network net;
        struct sl_error error;
        uint32_t x;
        int fd;

        network_init(&net);
        x = network_input(&net, bytes ? SL_DTYPE_U8 : SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 64, 28, 28));
        x = bytes ? add_quantized_conv(&net, x) : network_conv(&net, x, 64, 64, 3, 1, 1);
        network_output(&net, x);
        network_finish(&net);
        fd = network_plan_fd(&net, "cpu", 1);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        network_deinit(&net);
        return plan;
}

static bool is_slower(const struct sl_plan *plan, double flops, double bytes, char *text)
{
        const struct sl_core_figures core = {.flops = flops, .bytes = bytes};
        struct sl_precision_cost cost;

        cr_assert_eq(sl_precision_cost(plan, &core, &cost), 0);
        return sl_precision_is_slower(&cost, text);
}

Test(precision, a_variant_is_called_slower_by_the_figures_of_the_core_alone)
{
        struct sl_plan *plan = plan_of(true);
        char text[SL_PRECISION_TEXT_BYTES] = "";

        cr_expect(is_slower(plan, 100e9, 20e9, text));
        cr_expect(strstr(text, "int8 20, fp32 100 GFLOP/s"), "%s", text);
        cr_expect(strstr(text, "slower than fp32"), "%s", text);
        cr_expect(!is_slower(plan, 100e9, 400e9, text));
        sl_plan_free(plan);
}

/* Float32 has an algorithm for such windows that multiplies less than every product of bytes does. */
Test(precision, a_rate_that_is_higher_by_little_does_not_make_up_for_winograd)
{
        struct sl_plan *plan = plan_of(true);
        char text[SL_PRECISION_TEXT_BYTES];

        if (sl_cpu_has_avx2())
                cr_expect(is_slower(plan, 100e9, 105e9, text));
        sl_plan_free(plan);
}

/* The same convolution in bfloat16, by Winograd's algorithm or without. */
static struct sl_plan *narrow_plan(bool winograd)
{
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_plan *plan;
        struct network net;
        struct sl_error error;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        network_init(&net);
        network_output(
                &net, network_conv(&net, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 64, 28, 28)), 64, 64, 3, 1, 1));
        network_finish(&net);
        sl_lower_options_init(&options);
        options.precision = SL_PRECISION_BF16;
        options.winograd = winograd;
        cr_assert_eq(sl_lower_rewrite(net.graph, &options, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_new_in(net.graph, &options, NULL, fd, &lowered, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        close(fd);
        network_deinit(&net);
        return plan;
}

Test(precision, a_convolution_of_bf16_by_winograd_takes_what_that_does)
{
        struct sl_plan *fewer, *all;
        const struct sl_core_figures core = {.flops = 100e9, .bf16 = 105e9};
        struct sl_precision_cost cost, direct;
        char text[SL_PRECISION_TEXT_BYTES];

        if (!sl_cpu_has_avx512())
                cr_skip_test("products of bfloat16 want AVX-512");
        fewer = narrow_plan(true);
        all = narrow_plan(false);
        cr_assert_eq(sl_precision_cost(fewer, &core, &cost), 0);
        cr_assert_eq(sl_precision_cost(all, &core, &direct), 0);
        cr_expect_eq(cost.products, 1);
        cr_expect_lt(cost.seconds, 0.7 * direct.seconds);
        cr_expect(!sl_precision_is_slower(&cost, text));
        cr_expect(sl_precision_is_slower(&direct, text));
        sl_plan_free(fewer);
        sl_plan_free(all);
}

Test(precision, of_figures_that_are_not_known_and_of_float32_nothing_is_said)
{
        struct sl_plan *bytes = plan_of(true), *floats = plan_of(false);
        char text[SL_PRECISION_TEXT_BYTES];

        cr_expect(!is_slower(bytes, 100e9, 0, text));
        cr_expect(!is_slower(bytes, 0, 1e9, text));
        cr_expect(!is_slower(floats, 100e9, 1e9, text));
        sl_plan_free(bytes);
        sl_plan_free(floats);
}
