/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The own convolution kernels against `ref`, each asked for by its algorithm (2 own, 3 and 4 Winograd's): channels and filters
 * around the width of a vector, borders, batches, epilogues; and what a kernel promises beside the values.
 */
#include "case.h"

#include "base/error.h"
#include "cpu/base/isa.h"
#include "cpu/base/threads.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const winograds[] = {
        "Conv 1x16x8x8 16x16x3x3 16 pads=1,1,1,1",
        "Conv 1x1x3x3 1x1x3x3",
        "Conv 1x1x1x1 1x1x3x3 1 pads=1,1,1,1",
        "Conv 1x3x9x10 5x3x3x3 pads=0,0,0,0",
        "Conv 2x17x9x7 33x17x3x3 33 pads=1,1,1,1 +relu",
        "Conv 3x40x14x14 48x40x3x3 48 pads=1,1,1,1 +residual +relu",
        "Conv 1x64x7x7 100x64x3x3 100 pads=1,1,1,1 +residual",
        /* The clip bounds the largest value, but not the error. */
        "Conv 1x20x5x5 80x20x3x3 80 pads=2,2,2,2 +clip loose:4e-5",
        "Conv 2x8x4x4 144x8x3x3 144 pads=1,1,1,1 +swish",
        "Conv 1x8x13x21 24x8x3x3 24 pads=0,1,2,1 +hardswish",
        "Conv 1x8x13x21 24x8x3x3 pads=2,0,1,2 +residual +tanh",
        "Conv 1x8x6x6 24x8x3x3 24 pads=1,1,1,1 +sigmoid",
        "Conv 1x8x6x6 24x8x3x3 24 pads=1,1,1,1 +leaky",
        "Conv 1x8x6x6 24x8x3x3 24 pads=1,1,1,1 +elu",
        "Conv 2x256x14x14 64x256x3x3 64 pads=1,1,1,1",
        "Conv 1x96x30x31 65x96x3x3 65 pads=1,1,1,1 +relu",
        "Conv 9x64x16x16 32x64x3x3 32 pads=1,1,1,1 +relu",
};

/* Windows that only the larger tiles have. */
static const char *const wide_winograds[] = {
        "Conv 1x16x17x17 32x16x1x7 32 pads=0,3,0,3 +relu",
        "Conv 2x24x9x10 40x24x7x1 40 pads=3,0,3,0 +swish",
        "Conv 1x33x8x8 20x33x1x3 20 pads=0,1,0,1 +residual +relu",
        "Conv 3x20x9x7 70x20x3x1 pads=1,0,1,0",
        "Conv 2x48x13x14 64x48x5x5 64 pads=2,2,2,2 +relu",
        "Conv 1x6x14x14 16x6x5x5 16 +hardswish",
        "Conv 1x5x1x20 8x5x1x7 8 pads=0,6,0,5",
        "Conv 1x5x7x1 8x5x7x1 8",
        "Conv 1x5x2x2 8x5x5x5 8 pads=4,3,2,4 +residual",
};

static const char *const strided_winograds[] = {
        "Conv 1x16x8x8 32x16x3x3 32 pads=1,1,1,1 strides=2,2 +relu",
        "Conv 2x24x17x35 70x24x3x3 70 strides=2,2 +swish",
        "Conv 3x33x14x9 20x33x3x3 pads=0,0,1,1 strides=2,2 +residual",
        "Conv 1x128x28x28 64x128x3x3 64 pads=1,1,1,1 strides=2,2",
        "Conv 1x5x3x3 8x5x3x3 8 strides=2,2",
        "Conv 1x5x2x1 8x5x3x3 8 pads=2,2,2,2 strides=2,2 +residual",
};

static void check_with(const char *const *lines, size_t n_lines, uint32_t algorithm, const char *layouts)
{
        sl_cpu_use_one_thread();
        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (size_t i = 0; i < n_lines; i++) {
                char line[256];

                if (!case_is_for_this_set(i))
                        continue;
                snprintf(line, sizeof(line), "%s %s packed algorithm=%u", lines[i], layouts, algorithm);
                case_check(line);
        }
}

static void check_all(const char *const *lines, size_t n_lines, uint32_t algorithm)
{
        check_with(lines, n_lines, algorithm, "nhwc");
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(cpu_convolutions, by_tiles_of_two_they_give_what_the_reference_gives)
{
        check_all(winograds, COUNT(winograds), SL_ALGORITHM_WINOGRAD_2);
}

Test(cpu_convolutions, by_tiles_of_four_they_give_what_the_reference_gives)
{
        check_all(winograds, COUNT(winograds), SL_ALGORITHM_WINOGRAD_4);
}

Test(cpu_convolutions, by_tiles_two_pixels_apart_they_give_what_the_reference_gives)
{
        check_all(strided_winograds, COUNT(strided_winograds), SL_ALGORITHM_WINOGRAD_2);
}

Test(cpu_convolutions, by_tiles_of_wide_windows_they_give_what_the_reference_gives)
{
        check_all(wide_winograds, COUNT(wide_winograds), SL_ALGORITHM_WINOGRAD_4);
}

static const char *const depthwises[] = {
        "Conv 2x24x10x10 24x1x3x3 24 group=24 pads=1,1,1,1 +clip",
        "Conv 1x32x9x9 32x1x3x3 group=32 pads=1,1,1,1",
        "Conv 1x1x2x4 1x1x3x3 1 group=1 pads=1,1,1,1",
        "Conv 1x17x7x7 17x1x3x3 17 group=17 pads=1,1,1,1 strides=2,2 +hardswish",
        "Conv 1x40x14x15 40x1x3x3 40 group=40 pads=0,0,1,1 strides=2,2 +residual",
        "Conv 1x300x8x8 300x1x3x3 300 group=300 pads=1,1,1,1 +swish",
        "Conv 2x24x10x10 24x1x5x5 24 group=24 pads=2,2,2,2 +residual +swish",
        "Conv 1x33x12x11 33x1x5x5 33 group=33 pads=2,2,2,2 strides=2,2 +gelu",
        "Conv 1x16x8x8 16x1x5x5 16 group=16",
        "Conv 2x24x10x10 24x1x7x7 24 group=24 pads=3,3,3,3 +residual +swish",
        "Conv 1x33x12x11 33x1x7x7 33 group=33 pads=3,3,3,3 strides=2,2 +gelu",
        "Conv 1x300x9x8 300x1x7x7 300 group=300 pads=3,3,3,3",
        "Conv 1x16x4x5 16x1x7x7 16 group=16 pads=6,6,6,6 +relu",
        "Conv 2x24x10x10 48x1x3x3 48 group=24 pads=1,1,1,1 +clip",
        "Conv 1x17x7x7 34x1x3x3 34 group=17 pads=1,1,1,1 strides=2,2 +hardswish",
        "Conv 1x300x8x8 600x1x3x3 600 group=300 pads=1,1,1,1 +residual +swish",
        "Conv 1x5x12x11 40x1x5x5 40 group=5 pads=2,2,2,2 strides=2,2 +gelu",
        "Conv 1x9x9x9 36x1x5x5 group=9 pads=2,2,2,2",
        "Conv 1x33x12x11 66x1x7x7 66 group=33 pads=3,3,3,3 strides=2,2 +relu",
        "Conv 2x20x10x9 40x1x7x7 40 group=20 pads=3,3,3,3",
        "Conv 1x16x3x5 16x1x5x5 16 group=16 pads=4,4,4,4 +relu",
        "Conv 1x280x5x90 280x1x3x3 280 group=280 pads=1,1,1,1 +residual +relu",
};

Test(cpu_convolutions, depthwise_they_give_what_the_reference_gives)
{
        check_all(depthwises, COUNT(depthwises), SL_ALGORITHM_BLOCKED);
}

static const char *const grouped[] = {
        "Conv 2x32x10x10 32x4x3x3 32 group=8 pads=1,1,1,1 +relu",
        "Conv 1x32x9x9 32x4x3x3 32 group=8 pads=1,1,1,1 strides=2,2 +residual +relu",
        "Conv 1x24x7x7 24x8x3x3 24 group=3 pads=1,1,1,1",
        "Conv 1x40x8x6 40x2x3x3 40 group=20 pads=1,1,1,1 +swish",
        "Conv 1x48x8x9 48x8x3x3 group=6 pads=1,1,1,1 strides=2,2",
        "Conv 1x12x6x6 12x4x3x3 12 group=3",
        "Conv 2x512x6x7 512x8x3x3 512 group=64 pads=1,1,1,1 +clip",
};

Test(cpu_convolutions, with_few_channels_a_group_they_give_what_the_reference_gives)
{
        check_all(grouped, COUNT(grouped), SL_ALGORITHM_BLOCKED);
}

static const char *const laned[] = {
        "LanedConv 1x16x8x8 64x1x3x3 64 group=16 pads=1,1,1,1 +relu",
        "LanedConv 2x64x8x8 96x4x3x3 96 group=16 pads=1,1,1,1 +residual +relu",
        "LanedConv 1x96x7x15 160x3x3x3 160 group=32 pads=1,1,1,1 strides=2,2 +swish",
        "LanedConv 3x96x5x4 144x2x1x1 group=48 +residual +clip",
        "LanedConv 1x64x9x9 112x4x5x5 112 group=16 pads=2,2,2,2 +gelu",
        "LanedConv 2x40x6x7 24x5x3x3 24 group=8 pads=1,1,1,1 +relu",
        "LanedConv 1x56x5x5 40x7x1x1 40 group=8 +residual",
        "LanedConv 1x8x9x11 32x1x3x3 32 group=8 strides=2,1 pads=0,1,1,0 +hardswish",
        "LanedConv 2x12x6x6 20x3x3x3 20 group=4 pads=1,1,1,1 +residual +relu",
        "LanedConv 1x6x6x3 14x3x2x3 14 group=2 pads=3,4,1,5 +tanh",
        "LanedConv 1x32x1x1 16x2x3x3 16 group=16 pads=1,1,1,1",
        "LanedConv 1x16x3x9 32x1x7x1 32 group=16 pads=6,0,6,0 +relu",
};

Test(cpu_convolutions, with_interleaved_lanes_they_give_what_the_reference_gives)
{
        check_all(laned, COUNT(laned), SL_ALGORITHM_BLOCKED);
}

static const char *const laned_winograds[] = {
        "LanedConv 1x16x8x8 64x1x3x3 64 group=16 pads=1,1,1,1 +relu",
        "LanedConv 2x64x8x8 96x4x3x3 96 group=16 pads=1,1,1,1 +residual +relu",
        "LanedConv 1x160x14x15 160x5x3x3 160 group=32 pads=1,1,1,1 +swish",
        "LanedConv 3x96x5x4 144x2x3x3 group=48 +clip",
        "LanedConv 1x1024x9x9 1024x64x3x3 1024 group=16 pads=1,1,1,1 +gelu",
        "LanedConv 2x40x6x7 24x5x3x3 24 group=8 pads=2,0,1,2 +relu",
        "LanedConv 2x12x6x6 20x3x3x3 20 group=4 pads=1,1,1,1 +residual +relu",
        "LanedConv 1x6x4x3 14x3x3x3 14 group=2 pads=0,1,2,1 +tanh",
        "LanedConv 1x32x1x1 16x2x3x3 16 group=16 pads=1,1,1,1",
};

Test(cpu_convolutions, with_interleaved_lanes_by_tiles_of_two_they_give_what_the_reference_gives)
{
        check_all(laned_winograds, COUNT(laned_winograds), SL_ALGORITHM_WINOGRAD_2);
}

static const char *const products[] = {
        "Conv 1x64x7x7 100x64x1x1 100 +relu",
        "Conv 2x24x15x13 144x24x1x1 144 +residual +swish",
        "Conv 3x33x4x5 24x33x1x1 +clip",
        "Conv 2x40x9x8 50x40x1x1 50 strides=2,2 +residual +relu",
        "Conv 1x1x28x28 6x1x5x5 6 pads=2,2,2,2 +relu",
        "Conv 1x6x14x14 16x6x5x5 16 +gelu",
        "Conv 1x3x33x31 32x3x7x7 32 pads=3,3,3,3 strides=2,2 +relu",
        "Conv 2x20x9x9 40x20x3x3 40 pads=1,1,1,1 strides=2,2 +hardswish",
        "Conv 1x20x9x9 40x20x3x3 40 pads=2,2,2,2 dilations=2,2",
        "Conv 1x20x9x12 40x20x1x7 40 pads=0,3,0,3 +relu",
        "Conv 2x256x12x12 64x256x3x3 64 pads=0,1,2,1 strides=2,1",
        "Conv 1x17x5x5 33x17x4x2 33 pads=5,3,4,2",
        "Conv 1x1100x30x30 16x1100x3x3 pads=1,1,1,1 loose:2e-5",
};

Test(cpu_convolutions, as_products_they_give_what_the_reference_gives)
{
        check_all(products, COUNT(products), SL_ALGORITHM_BLOCKED);
}

/* Over one pixel: products of one row for each sample. */
static const char *const single_pixels[] = {
        "Conv 1x64x1x1 100x64x1x1 100 weights:f16 packed +relu",
        "Conv 2x240x1x1 64x240x1x1 64 weights:bf16 packed +swish",
        "Conv 3x33x1x1 96x33x1x1 weights:f16 packed +residual",
        "Conv 1x17x1x1 64x17x1x1 64 weights:bf16 packed +sigmoid",
        "Conv 1x17x1x1 64x17x1x1 64 strides=2,2 weights:f16 infloats packed",
        "Conv 2x17x1x1 64x17x1x1 64 pads=1,1,1,1 weights:bf16 infloats packed +relu",
};

Test(cpu_convolutions, over_one_pixel_their_filters_may_lie_in_halves)
{
        check_all(single_pixels, COUNT(single_pixels), SL_ALGORITHM_BLOCKED);
}

/* Rows that lie in the input, or in a frame of zeros around it. */
static const char *const line_products[] = {
        "Conv 1x16x40 24x16x5 24 pads=2,2 +relu",
        "Conv 2x16x40 24x16x5 24 +residual +relu",
        "Conv 3x1x400 20x1x64 20 strides=16",
        "Conv 1x1x300 1x1x40 strides=2 pads=19,19",
        "Conv 2x33x57 70x33x3 70 strides=2 +gelu",
        "Conv 2x40x90 33x40x3 33 pads=8,8 dilations=8 +relu",
        "Conv 1x24x31x1 40x24x5x1 40 pads=2,0,2,0 +swish",
        "Conv 3x24x31x1 40x24x4x1 strides=3,1 +residual",
        "Conv 2x24x1x31 40x24x1x4 40 pads=0,3,0,1 strides=1,3 +residual +relu",
        "Conv 2x9x11x17 21x9x3x5 21 pads=1,2,1,2 +hardswish",
        "Conv 3x20x13x15 40x20x3x3 40 strides=2,2 +relu",
        "Conv 2x8x20x40 16x8x3x39 16 pads=1,19,1,19 +relu",
        "Conv 1x32x9x200 16x32x1x21 16 pads=0,10,0,10 strides=2,3",
        "Conv 1x48x20x20 70x48x5x5 70 pads=4,1,0,3 dilations=2,1 +tanh loose:4e-5",
        "Conv 2x64x7x9 96x64x3x3 96 pads=1,1,1,1 +residual",
        "Conv 1x256x12x300 8x256x3x3 8 pads=1,1,1,1 loose:2e-5",
        "Conv 2x48x49 96x24x128 96 group=2 pads=64,64 +gelu loose:2e-5",
        "Conv 1x32x5 32x16x20 32 group=2 pads=18,19",
        "Conv 1x16x3 8x16x16 8 pads=40,40",
        "Conv 1x8x300 12x8x31 12 pads=15,15 strides=3 +residual +relu",
        "Conv 2x60x17x15 48x20x3x3 48 group=3 pads=1,1,1,1 strides=1,2 +residual +swish",
        "Conv 2x72x20x24 72x24x3x3 72 group=3 +clip",
};

Test(cpu_convolutions, over_lines_they_give_what_the_reference_gives)
{
        check_all(line_products, COUNT(line_products), SL_ALGORITHM_BLOCKED);
}

static const char *const first_ones[] = {
        "Conv 1x3x33x31 32x3x7x7 32 pads=3,3,3,3 strides=2,2 +relu",
        "Conv 2x3x70x64 24x3x3x3 24 pads=1,1,1,1 strides=2,2 +clip",
        "Conv 1x3x29x35 70x3x3x3 70 strides=2,2 +swish",
        "Conv 3x3x15x17 16x3x3x3 pads=1,1,1,1 strides=2,2 +hardswish",
        "Conv 1x3x40x40 33x3x11x11 33 pads=2,2,2,2 strides=4,4 +relu",
        "Conv 2x4x12x9 64x4x3x3 64 pads=1,1,1,1 +gelu",
        "Conv 2x2x1x1 5x2x3x3 5 pads=1,1,1,1",
        "Conv 1x3x9x300 8x3x2x5 8 pads=0,1,2,7 strides=3,1 dilations=2,3",
        "Conv 1x5x8x8 20x5x2x2 20 pads=20,20,20,20",
        "Conv 1x3x7x7 40x3x7x7 40 +tanh",
        "Conv 3x1x28x28 6x1x5x5 6 pads=2,2,2,2 +relu",
};

Test(cpu_convolutions, from_planes_to_channels_last_they_give_what_the_reference_gives)
{
        check_with(first_ones, COUNT(first_ones), SL_ALGORITHM_BLOCKED, "tonhwc");
}

/* What an algorithm declines, and what AUTO never takes. */
static const char *const not_for_winograd[] = {
        "Conv 1x16x8x8 16x16x3x3 16 pads=1,1,1,1 strides=2,1",
        "Conv 1x16x8x8 16x16x3x3 16 pads=1,1,1,1 strides=3,3",
        "Conv 1x16x9x9 16x16x5x5 16 pads=1,1,1,1 strides=2,2",
        "Conv 1x16x8x8 16x16x3x3 16 pads=2,2,2,2 dilations=2,2",
        "Conv 1x16x8x8 16x8x3x3 16 pads=1,1,1,1 group=2",
        "Conv 1x16x8x8 16x16x1x1 16",
        "Conv 1x16x8x8 16x16x1x5 16",
        "Conv 1x16x8x8 16x16x3x7 16",
        "Conv 1x16x8x8 16x16x3x3 16 pads=3,1,1,1",
        "Conv 1x16x8 16x16x5 16 pads=2,2",
};

static void parse_for(const char *line, uint32_t algorithm, struct sl_node_desc *ret_node)
{
        struct test_case test;

        case_parse(line, &test);
        test.nhwc_inputs = test.nhwc_outputs = true;
        *ret_node = case_cpu_node(&test);
        if (algorithm)
                sl_attrs_set_int(&ret_node->attrs, SL_ATTR_ALGORITHM, algorithm);
}

Test(cpu_convolutions, an_algorithm_declines_what_it_cannot_compute)
{
        for (size_t i = 0; i < COUNT(not_for_winograd); i++)
                for (uint32_t algorithm = SL_ALGORITHM_WINOGRAD_2; algorithm <= SL_ALGORITHM_WINOGRAD_4; algorithm++) {
                        struct sl_node_desc node;

                        parse_for(not_for_winograd[i], algorithm, &node);
                        cr_expect_not(sl_backend_cpu.planner->supports(NULL, &node), "%s", not_for_winograd[i]);
                }
}

Test(cpu_convolutions, each_algorithm_that_is_named_is_supported_and_auto_is_exact)
{
        static const char *const lines[] = {"Conv 1x64x56x56 64x64x3x3 64 pads=1,1,1,1", "Conv 8x512x7x7 512x512x3x3 pads=1,1,1,1",
                "Conv 1x32x10x10 32x1x3x3 32 group=32 pads=1,1,1,1", "Conv 1x64x10x10 64x4x3x3 64 group=16 pads=1,1,1,1",
                "Conv 1x24x56x56 144x24x1x1 144"};

        for (size_t i = 0; i < COUNT(lines); i++) {
                uint32_t algorithms[SL_ALGORITHM_COUNT], n;
                struct sl_packed chosen, automatic = {0};
                struct sl_node_desc node;
                bool exact = false;

                parse_for(lines[i], 0, &node);
                n = sl_backend_cpu.planner->algorithms(NULL, &node, algorithms, NULL);
                cr_assert_eq(sl_backend_cpu.planner->pack(NULL, &node, 1, &automatic), 0);
                for (uint32_t a = 0; a < n; a++) {
                        cr_expect(algorithms[a] > SL_ALGORITHM_AUTO && algorithms[a] < SL_ALGORITHM_COUNT);
                        parse_for(lines[i], algorithms[a], &node);
                        cr_expect(sl_backend_cpu.planner->supports(NULL, &node), "%s, algorithm %u", lines[i], algorithms[a]);
                        cr_assert_eq(sl_backend_cpu.planner->pack(NULL, &node, 1, &chosen), 0);
                        if (chosen.form_bytes == automatic.form_bytes && !memcmp(chosen.form, automatic.form, chosen.form_bytes))
                                exact = algorithms[a] < SL_ALGORITHM_WINOGRAD_2;
                }
                cr_expect(!n || exact, "%s", lines[i]);
        }
}

Test(cpu_convolutions, what_should_be_fastest_is_named_first_with_its_estimate)
{
        static const char *const lines[] = {"Conv 1x64x56x56 64x64x3x3 64 pads=1,1,1,1", "Conv 8x512x7x7 512x512x3x3 pads=1,1,1,1",
                "Conv 1x128x28x28 128x128x3x3 128 pads=1,1,1,1", "Conv 4x256x14x14 256x256x3x3 pads=1,1,1,1"};

        for (size_t i = 0; i < COUNT(lines); i++) {
                uint32_t algorithms[SL_ALGORITHM_COUNT], n;
                double seconds[SL_ALGORITHM_COUNT];
                struct sl_node_desc node;

                parse_for(lines[i], 0, &node);
                n = sl_backend_cpu.planner->algorithms(NULL, &node, algorithms, seconds);
                cr_expect(!n || seconds[0] > 0, "%s", lines[i]);
                for (uint32_t a = 1; a < n; a++) { /* estimates: no machine's load changes them */
                        double ratio = seconds[a] / seconds[a - 1];

                        cr_expect(ratio >= 1 && ratio < 1e3, "%s: %g s behind %g s", lines[i], seconds[a], seconds[a - 1]);
                }
        }
}

/* Where an algorithm stands on such a core; SL_ALGORITHM_COUNT: nowhere. */
static uint32_t place_of(uint32_t algorithm, const char *line, const struct sl_core_figures *core)
{
        uint32_t algorithms[SL_ALGORITHM_COUNT], n;
        struct sl_node_desc node;

        parse_for(line, 0, &node);
        if (strstr(line, " tonhwc"))
                node.inputs[0].layout = SL_LAYOUT_PLAIN;
        n = sl_backend_cpu.planner->algorithms(&(struct sl_target){.core = *core}, &node, algorithms, NULL);
        for (uint32_t i = 0; i < n; i++)
                if (algorithms[i] == algorithm)
                        return i;
        return SL_ALGORITHM_COUNT;
}

Test(cpu_convolutions, many_weights_are_guessed_to_pay_where_memory_is_fast_and_only_there)
{
        static const char line[] = "Conv 1x512x14x14 512x512x3x3 512 pads=1,1,1,1";
        struct sl_core_figures slow = sl_target_typical.core, fast = sl_target_typical.core;

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        slow.weights = 1e9;
        fast.weights = 1e12;
        cr_expect_gt(place_of(SL_ALGORITHM_WINOGRAD_4, line, &slow), place_of(SL_ALGORITHM_BLOCKED, line, &slow));
        cr_expect_lt(place_of(SL_ALGORITHM_WINOGRAD_4, line, &fast), place_of(SL_ALGORITHM_BLOCKED, line, &fast));
}

Test(cpu_convolutions, what_a_team_can_cut_goes_before_a_call_that_is_hardly_faster)
{
        static const char line[] = "Conv 1x3x224x224 64x3x3x3 64 strides=2,2 tonhwc";
        struct sl_core_figures core = sl_target_typical.core;

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        core.store = 0; /* both by their products alone */
        core.near = core.far = 1e15;
        core.onednn_first = 1.05 * core.first;
        cr_expect_lt(place_of(SL_ALGORITHM_BLOCKED, line, &core), place_of(SL_ALGORITHM_DIRECT, line, &core));
        core.onednn_first = 1.3 * core.first;
        cr_expect_lt(place_of(SL_ALGORITHM_DIRECT, line, &core), place_of(SL_ALGORITHM_BLOCKED, line, &core));
}

Test(cpu_convolutions, figures_that_are_all_so_many_times_as_large_change_no_order)
{
        static const char line[] = "Conv 1x256x56x56 256x256x3x3 256 pads=1,1,1,1";
        struct sl_core_figures twice = sl_target_typical.core;

        twice.flops *= 2;
        twice.weights *= 2;
        twice.stream *= 2;
        twice.far *= 2;
        twice.near *= 2;
        for (uint32_t algorithm = SL_ALGORITHM_DIRECT; algorithm < SL_ALGORITHM_COUNT; algorithm++)
                cr_expect_eq(place_of(algorithm, line, &twice), place_of(algorithm, line, &sl_target_typical.core));
}

Test(cpu_convolutions, what_a_core_reaches_has_three_digits_at_most)
{
        struct sl_target target;
        int r = sl_backend_cpu.planner->measure(&target);

        if (r == -ENOTSUP)
                cr_skip_test("this processor has no AVX2");
        cr_assert_eq(r, 0);
        for (uint32_t i = 0; i < SL_CORE_FIGURE_COUNT; i++) {
                double figure = *sl_core_figure(&target.core, i);
                const char *name = sl_core_figure_info(i).name;
                char text[32];

                cr_expect(figure > 0 && figure < 1e15, "%s: %g", name, figure);
                snprintf(text, sizeof(text), "%.2e", figure);
                cr_expect_float_eq(figure / strtod(text, NULL), 1, 1e-12, "%s: %.17g", name, figure);
        }
}

/* Half a core needs twice as many operations for what it does beside products, and its calls last twice as long. */
Test(cpu_convolutions, an_estimate_follows_from_the_figures_alone)
{
        static const char line[] = "Conv 1x64x28x28 64x64x3x3 64 pads=1,1,1,1";
        struct sl_target half = sl_target_typical;
        double seconds[SL_ALGORITHM_COUNT], slow[SL_ALGORITHM_COUNT];
        uint32_t algorithms[SL_ALGORITHM_COUNT], n;
        struct sl_node_desc node;

        parse_for(line, SL_ALGORITHM_AUTO, &node);
        n = sl_backend_cpu.planner->algorithms(NULL, &node, algorithms, seconds);
        if (!n)
                cr_skip_test("this processor has one algorithm");
        half.core.flops /= 2;
        half.core.weights /= 2;
        half.core.stream /= 2;
        half.core.far /= 2;
        half.core.near /= 2;
        half.core.onednn_call *= 2;
        cr_assert_eq(sl_backend_cpu.planner->algorithms(&half, &node, algorithms, slow), n);
        for (uint32_t i = 0; i < n; i++)
                cr_expect_float_eq(slow[i] / seconds[i], 2, 1e-9, "algorithm %u", algorithms[i]);
}

static int compile_packed(const struct sl_node_desc *node, const struct sl_packed *weights, struct sl_kernel **ret_kernel)
{
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_packed packed[SL_NODE_INPUTS_MAX] = {[1] = *weights};
        struct sl_error error;

        return sl_backend_cpu.runner->compile(
                NULL, &(struct sl_kernel_source){.node = node, .packed = packed, .constants = constants}, ret_kernel, &error);
}

Test(cpu_convolutions, weights_of_one_algorithm_are_refused_by_another_and_when_damaged)
{
        static const char line[] = "Conv 1x64x14x14 64x64x3x3 64 pads=1,1,1,1";
        struct sl_kernel *kernel = NULL;
        struct sl_node_desc node;
        struct sl_packed weights;

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        sl_cpu_use_one_thread();
        parse_for(line, SL_ALGORITHM_WINOGRAD_4, &node);
        cr_assert_eq(sl_backend_cpu.planner->pack(NULL, &node, 1, &weights), 0);
        parse_for(line, SL_ALGORITHM_WINOGRAD_2, &node);
        cr_expect_eq(compile_packed(&node, &weights, &kernel), -ENOTSUP);
        parse_for(line, SL_ALGORITHM_DIRECT, &node);
        cr_expect_eq(compile_packed(&node, &weights, &kernel), -ENOTSUP);
        parse_for(line, SL_ALGORITHM_AUTO, &node);
        cr_assert_eq(compile_packed(&node, &weights, &kernel), 0);
        sl_backend_cpu.runner->kernel_free(kernel);
        weights.data_bytes -= 64;
        cr_expect_eq(compile_packed(&node, &weights, &kernel), -ENOTSUP);
        weights.data_bytes += 64;
        weights.form[40] ^= 1;
        cr_expect_eq(compile_packed(&node, &weights, &kernel), -ENOTSUP);
}

/* Output of the last of @batch equal samples. The line has a %d for the batch. */
static float *last_sample(const char *format, int batch, uint32_t algorithm, const struct sl_packed *weights, size_t *ret_bytes)
{
        struct sl_node_desc node;
        char line[256];
        float *x, *plain, *bias, *y, *out;
        void *data, *scratch;
        struct sl_kernel *kernel = NULL;

        snprintf(line, sizeof(line), format, batch);
        parse_for(line, algorithm, &node);
        uint64_t in = sl_tensor_bytes(&node.inputs[0]) / (uint64_t)batch,
                 result = sl_tensor_bytes(&node.outputs[0]) / (uint64_t)batch;

        x = malloc(in * (uint64_t)batch);
        for (uint64_t i = 0; i < in / 4 * (uint64_t)batch; i++)
                x[i] = (float)(i % (in / 4) * 7919 % 1009) / 1009.0f - 0.4f;
        plain = malloc(sl_tensor_bytes(&node.inputs[1]));
        for (uint64_t i = 0; i < sl_tensor_bytes(&node.inputs[1]) / 4; i++)
                plain[i] = (float)(i * 104729 % 2003) / 2003.0f - 0.5f;
        bias = calloc(1, sl_tensor_bytes(&node.inputs[2]));
        data = aligned_alloc(64, (weights->data_bytes + 63) / 64 * 64);
        cr_assert_eq(sl_backend_cpu.planner->repack(NULL, &node, 1, weights, plain, data), 0, "%s", line);
        cr_assert_eq(compile_packed(&node, weights, &kernel), 0, "%s", line);
        scratch = aligned_alloc(64, (sl_backend_cpu.runner->scratch_bytes(kernel) + 127) / 64 * 64);
        y = malloc(result * (uint64_t)batch);
        cr_assert_eq(sl_backend_cpu.runner->launch(kernel, &(struct sl_binding){.inputs = (const void *const[]){x, data, bias},
                                                                   .outputs = (void *const[]){y},
                                                                   .scratch = scratch}),
                0);
        out = malloc(result);
        memcpy(out, (char *)y + result * (uint64_t)(batch - 1), result);
        sl_backend_cpu.runner->kernel_free(kernel);
        free(x);
        free(plain);
        free(bias);
        free(data);
        free(scratch);
        free(y);
        *ret_bytes = result;
        return out;
}

static void expect_same_bits(const char *format, uint32_t algorithm)
{
        struct sl_node_desc node;
        struct sl_packed weights;
        char line[256];
        float *alone, *among;
        size_t bytes;

        snprintf(line, sizeof(line), format, 8);
        parse_for(line, algorithm, &node);
        cr_assert_eq(sl_backend_cpu.planner->pack(NULL, &node, 1, &weights), 0, "%s", line);
        alone = last_sample(format, 1, algorithm, &weights, &bytes);
        for (int batch = 2; batch <= 8; batch += 3) {
                among = last_sample(format, batch, algorithm, &weights, &bytes);
                cr_expect_arr_eq(alone, among, bytes, "%s, batch %d, algorithm %u", format, batch, algorithm);
                free(among);
        }
        free(alone);
}

Test(cpu_convolutions, a_sample_has_the_same_bits_in_any_batch)
{
        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        sl_cpu_use_one_thread();
        expect_same_bits("Conv %dx40x9x9 40x1x3x3 40 group=40 pads=1,1,1,1 +swish", SL_ALGORITHM_BLOCKED);
        expect_same_bits("Conv %dx40x5x7 50x40x1x1 50 +gelu", SL_ALGORITHM_BLOCKED);
        expect_same_bits("Conv %dx40x5x7 50x40x3x3 50 pads=1,1,1,1 strides=2,2", SL_ALGORITHM_BLOCKED);
        expect_same_bits("Conv %dx40x9x9 40x4x3x3 40 group=10 pads=1,1,1,1", SL_ALGORITHM_BLOCKED);
        expect_same_bits("Conv %dx24x5 40x24x3 40 pads=1,1", SL_ALGORITHM_BLOCKED);
        expect_same_bits("Conv %dx32x30 32x16x20 32 group=2 pads=10,9 +gelu", SL_ALGORITHM_BLOCKED);
        expect_same_bits("Conv %dx512x30x40 16x512x3x3 16 pads=1,1,1,1", SL_ALGORITHM_BLOCKED);
        for (uint32_t algorithm = SL_ALGORITHM_WINOGRAD_2; algorithm <= SL_ALGORITHM_WINOGRAD_4; algorithm++) {
                expect_same_bits("Conv %dx64x9x9 72x64x3x3 72 pads=1,1,1,1 +relu", algorithm);
                expect_same_bits("Conv %dx20x4x4 160x20x3x3 160 pads=1,1,1,1 +swish", algorithm);
        }
        expect_same_bits("Conv %dx20x9x9 40x20x3x3 40 pads=1,1,1,1 strides=2,2", SL_ALGORITHM_WINOGRAD_2);
        expect_same_bits("Conv %dx20x9x9 40x20x1x7 40 pads=0,3,0,3", SL_ALGORITHM_WINOGRAD_4);
        expect_same_bits("Conv %dx20x9x9 40x20x5x5 40 pads=2,2,2,2 +relu", SL_ALGORITHM_WINOGRAD_4);
}

/* Offsets of both signs lead a part of the taps beside the image. */
static const char *const displaced[] = {
        "DeformConv 1x3x6x5 4x3x3x3 1x18x6x5 pads=1,1,1,1 wide:2",
        "DeformConv 2x3x6x5 7x3x3x3 2x18x6x5 7 2x9x6x5 pads=1,1,1,1 wide:2",
        "DeformConv 1x4x9x9 6x2x3x3 1x36x4x4 6 group=2 offset_group=2 strides=2,2",
        "DeformConv 1x4x11x10 4x4x2x3 1x24x10x8 _ 1x12x10x8 offset_group=2 wide:3",
        "DeformConv 1x4x8x9 5x4x1x1 1x8x8x9 offset_group=4 wide:4",
        "DeformConv 1x2x9x9 1x2x3x3 1x18x5x5 dilations=2,2",
        "DeformConv 1x1x1x1 1x1x1x1 1x2x1x1",
        "DeformConv 1x33x8x8 9x33x3x3 1x18x8x8 9 pads=1,1,1,1",
};

Test(cpu_convolutions, displaced_taps_are_interpolated_as_the_reference_does)
{
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < sizeof(displaced) / sizeof(displaced[0]); i++) {
                cr_expect_eq(case_is_taken(displaced[i]), sl_cpu_has_avx2(), "%s", displaced[i]);
                if (case_is_taken(displaced[i]))
                        case_check(displaced[i]);
        }
}
