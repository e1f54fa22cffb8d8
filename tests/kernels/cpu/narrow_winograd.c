/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's convolutions of bfloat16: what they give is, bit by bit, what the same algorithm gives of the same numbers in float32,
 * rounded to nearest even.
 */
#include "case.h"

#include "cpu/base/bfloat16.h"
#include "cpu/base/isa.h"
#include "cpu/base/threads.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Each with the type of its tensors left open. */
static const char *const squares[] = {
        "Conv 1x16x8x8%1$s 16x16x3x3%1$s 16%1$s pads=1,1,1,1",
        "Conv 1x1x3x3%1$s 1x1x3x3%1$s",
        "Conv 1x1x1x1%1$s 1x1x3x3%1$s 1%1$s pads=1,1,1,1",
        "Conv 1x3x9x10%1$s 5x3x3x3%1$s pads=0,0,0,0",
        "Conv 2x17x9x7%1$s 33x17x3x3%1$s 33%1$s pads=1,1,1,1 +relu",
        "Conv 3x40x14x14%1$s 48x40x3x3%1$s 48%1$s pads=1,1,1,1 +residual +relu",
        "Conv 1x64x7x7%1$s 100x64x3x3%1$s 100%1$s pads=1,1,1,1 +residual",
        "Conv 1x20x5x5%1$s 80x20x3x3%1$s 80%1$s pads=2,2,2,2 +clip",
        "Conv 2x8x4x4%1$s 144x8x3x3%1$s 144%1$s pads=1,1,1,1 +swish",
        "Conv 1x8x2x2%1$s 300x8x3x3%1$s 300%1$s pads=1,1,1,1 +residual +swish",
        "Conv 1x8x13x21%1$s 24x8x3x3%1$s 24%1$s pads=0,1,2,1 +hardswish",
        "Conv 1x8x13x21%1$s 24x8x3x3%1$s pads=2,0,1,2 +residual +tanh",
        "Conv 1x8x6x6%1$s 21x8x3x3%1$s 21%1$s pads=1,1,1,1 +sigmoid",
        "Conv 1x8x7x6%1$s 24x8x3x3%1$s 24%1$s pads=1,1,1,1 +leaky",
        "Conv 1x8x6x7%1$s 24x8x3x3%1$s 24%1$s pads=1,1,1,1 +elu",
        "Conv 1x8x6x6%1$s 50x8x3x3%1$s 50%1$s pads=1,1,1,1 +gelu",
        "Conv 1x96x30x31%1$s 65x96x3x3%1$s 65%1$s pads=1,1,1,1 +relu",
        "Conv 9x64x16x16%1$s 32x64x3x3%1$s 32%1$s pads=1,1,1,1 +relu",
};

static const char *const strided[] = {
        "Conv 1x16x8x8%1$s 32x16x3x3%1$s 32%1$s pads=1,1,1,1 strides=2,2 +relu",
        "Conv 2x24x17x35%1$s 70x24x3x3%1$s 70%1$s strides=2,2 +swish",
        "Conv 3x33x14x9%1$s 20x33x3x3%1$s pads=0,0,1,1 strides=2,2 +residual",
        "Conv 1x5x2x1%1$s 8x5x3x3%1$s 8%1$s pads=2,2,2,2 strides=2,2 +residual",
};

static const char *const wide[] = {
        "Conv 1x16x17x17%1$s 32x16x1x7%1$s 32%1$s pads=0,3,0,3 +relu",
        "Conv 2x24x9x10%1$s 40x24x7x1%1$s 40%1$s pads=3,0,3,0 +swish",
        "Conv 1x33x8x8%1$s 20x33x1x3%1$s 20%1$s pads=0,1,0,1 +residual +relu",
        "Conv 3x20x9x7%1$s 70x20x3x1%1$s pads=1,0,1,0",
        "Conv 2x48x13x14%1$s 64x48x5x5%1$s 64%1$s pads=2,2,2,2 +relu",
        "Conv 1x5x2x2%1$s 8x5x5x5%1$s 8%1$s pads=4,3,2,4 +residual",
        "Conv 1x16x40%1$s 24x16x3%1$s 24%1$s pads=1,1 +relu",
};

static void make_line(const char *format, const char *type, uint32_t algorithm, char ret_line[256])
{
        size_t length = (size_t)snprintf(ret_line, 256, format, type);

        snprintf(ret_line + length, 256 - length, " packed nhwc algorithm=%u", algorithm);
}

static bool init(struct test_kernel *k, const char *format, const char *type, uint32_t algorithm)
{
        struct test_case test;
        char line[256];

        make_line(format, type, algorithm, line);
        case_parse(line, &test);
        test.line = format; /* the seed of its data, too */
        return test_kernel_init(k, &sl_backend_cpu, &test);
}

/* Of weights that were changed after they had been packed. */
static void pack_again(struct test_kernel *k)
{
        mprotect(k->packed_data[1], k->packed_pages[1], PROT_READ | PROT_WRITE);
        cr_assert_eq(sl_backend_cpu.planner->repack(NULL, &k->node, 1, &k->packed[1], k->tensors.inputs[1], k->packed_data[1]), 0);
}

static void widen_inputs(const struct test_kernel *from, struct test_kernel *to)
{
        for (uint32_t i = 0; i < from->node.n_inputs; i++) {
                const uint16_t *halves = from->tensors.inputs[i];
                float *floats = to->tensors.inputs[i];

                for (uint64_t e = 0; e < sl_shape_elements(&from->node.inputs[i].shape); e++)
                        floats[e] = sl_widen_bf16(halves[e]);
        }
        pack_again(to);
}

static void expect_rounded(const struct test_kernel *k, const float *exact, const char *format)
{
        const uint16_t *halves = k->tensors.outputs[0];
        uint64_t n = sl_shape_elements(&k->node.outputs[0].shape), differ = 0;

        for (uint64_t i = 0; i < n; i++)
                differ += halves[i] != sl_narrow_bf16(exact[i]);
        cr_expect_eq(differ, 0, "%s: %llu of %llu are not what float32 rounds to", format, (unsigned long long)differ,
                (unsigned long long)n);
}

static void check_rounding(const char *format, uint32_t algorithm)
{
        struct test_kernel narrow, real;

        cr_assert(init(&narrow, format, ":bfloat16", algorithm));
        cr_assert(init(&real, format, "", algorithm));
        widen_inputs(&narrow, &real);
        cr_assert_eq(test_kernel_launch(&narrow), 0);
        cr_assert_eq(test_kernel_launch(&real), 0);
        expect_rounded(&narrow, real.tensors.outputs[0], format);
        test_kernel_deinit(&narrow);
        test_kernel_deinit(&real);
}

static void check_all(const char *const *formats, size_t n, uint32_t algorithm)
{
        sl_cpu_use_one_thread();
        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (size_t i = 0; i < n; i++) {
                char line[256];

                if (!case_is_for_this_set(i))
                        continue;
                make_line(formats[i], ":bfloat16", algorithm, line);
                case_check(line);
                check_rounding(formats[i], algorithm);
        }
}

Test(cpu_narrow_winograd, by_tiles_of_two_they_give_what_float32_rounds_to)
{
        check_all(squares, COUNT(squares), SL_ALGORITHM_WINOGRAD_2);
}

Test(cpu_narrow_winograd, by_tiles_of_four_they_give_what_float32_rounds_to)
{
        check_all(squares, COUNT(squares), SL_ALGORITHM_WINOGRAD_4);
}

Test(cpu_narrow_winograd, by_tiles_two_pixels_apart_they_give_what_float32_rounds_to)
{
        check_all(strided, COUNT(strided), SL_ALGORITHM_WINOGRAD_2);
}

Test(cpu_narrow_winograd, by_tiles_of_wide_windows_they_give_what_float32_rounds_to)
{
        check_all(wide, COUNT(wide), SL_ALGORITHM_WINOGRAD_4);
}

static bool is_nan(uint16_t half)
{
        return (half & 0x7fff) > 0x7f80;
}

/* Under an image of zeros all of them come out: subnormal ones and infinities as they are, a NaN as one that does not signal. */
Test(cpu_narrow_winograd, each_number_of_a_residual_stays_what_it_is)
{
        static const char format[] = "Conv 1x16x64x64%1$s 16x16x3x3%1$s pads=1,1,1,1 +residual";

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (uint32_t algorithm = SL_ALGORITHM_WINOGRAD_2; algorithm <= SL_ALGORITHM_WINOGRAD_4; algorithm++) {
                struct test_kernel k;
                const uint16_t *y;
                uint16_t *residual;

                cr_assert(init(&k, format, ":bfloat16", algorithm));
                memset(k.tensors.inputs[0], 0, sl_tensor_bytes(&k.node.inputs[0]));
                residual = k.tensors.inputs[2];
                for (uint32_t i = 0; i < 0x10000; i++)
                        residual[i] = (uint16_t)i;
                cr_assert_eq(test_kernel_launch(&k), 0);
                y = k.tensors.outputs[0];
                for (uint32_t i = 0; i < 0x10000; i++) {
                        bool negative_zero = i == 0x8000; /* to which 0 is added */

                        cr_expect_eq(y[i], is_nan((uint16_t)i) ? i | 0x40 : negative_zero ? 0 : i, "%#x is %#x", i, y[i]);
                }
                test_kernel_deinit(&k);
        }
}

/* What the image has of them reaches its own windows at least, and no other tile. */
static bool is_finite(uint16_t half)
{
        return (half & 0x7fff) < 0x7f80;
}

Test(cpu_narrow_winograd, what_is_not_finite_in_an_image_is_not_lost_and_stays_under_its_windows)
{
        static const char format[] = "Conv 1x8x24x24%1$s 40x8x3x3%1$s 40%1$s pads=1,1,1,1 +relu";
        static const uint16_t values[] = {0x7fc0, 0x7f81, 0xff80, 0x7f80};

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (size_t v = 0; v < COUNT(values); v++) {
                struct test_kernel narrow, real;
                uint16_t *x;
                const uint16_t *y;

                cr_assert(init(&narrow, format, ":bfloat16", SL_ALGORITHM_WINOGRAD_4));
                cr_assert(init(&real, format, "", SL_ALGORITHM_WINOGRAD_4));
                x = narrow.tensors.inputs[0];
                x[(9 * 24 + 9) * 8 + 3] = values[v];
                widen_inputs(&narrow, &real);
                cr_assert_eq(test_kernel_launch(&narrow), 0);
                cr_assert_eq(test_kernel_launch(&real), 0);
                expect_rounded(&narrow, real.tensors.outputs[0], format);
                y = narrow.tensors.outputs[0];
                for (int64_t filter = 0; filter < 40; filter++) {
                        /* Relu makes -infinity 0; the last two are beside each window over it, of its tile and of another. */
                        cr_expect(!is_nan(values[v]) || is_nan(y[(9 * 24 + 9) * 40 + filter]), "filter %d", (int)filter);
                        cr_expect(is_finite(y[(11 * 24 + 9) * 40 + filter]), "filter %d", (int)filter);
                        cr_expect(is_finite(y[(20 * 24 + 20) * 40 + filter]), "filter %d", (int)filter);
                }
                test_kernel_deinit(&narrow);
                test_kernel_deinit(&real);
        }
}

/* Sums that bfloat16 cannot hold are infinite. */
Test(cpu_narrow_winograd, what_is_too_large_becomes_infinite)
{
        static const char format[] = "Conv 1x1x4x4%1$s 1x1x3x3%1$s 1%1$s pads=1,1,1,1";
        struct test_kernel k;
        const uint16_t *y;

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        cr_assert(init(&k, format, ":bfloat16", SL_ALGORITHM_WINOGRAD_2));
        for (int i = 0; i < 16; i++)
                ((uint16_t *)k.tensors.inputs[0])[i] = sl_narrow_bf16(i == 5 ? 0x1p125f : 0.0f);
        for (int i = 0; i < 9; i++)
                ((uint16_t *)k.tensors.inputs[1])[i] = sl_narrow_bf16(i == 4 ? 0x1.fep2f : 0.0f);
        ((uint16_t *)k.tensors.inputs[2])[0] = sl_narrow_bf16(0x1p119f);
        pack_again(&k);
        cr_assert_eq(test_kernel_launch(&k), 0);
        y = k.tensors.outputs[0];
        cr_expect_eq(y[5], 0x7f80, "%#x", y[5]); /* half a step above the largest number: a tie, whose even side is infinite */
        test_kernel_deinit(&k);
}

/* Of as many equal samples, each as it is alone. */
static void check_batch(const char *format, int batch, uint32_t algorithm, const struct test_kernel *alone)
{
        size_t in = sl_tensor_bytes(&alone->node.inputs[0]), out = sl_tensor_bytes(&alone->node.outputs[0]);
        struct test_kernel among;
        char line[256];

        snprintf(line, sizeof(line), format, batch);
        cr_assert(init(&among, line, "", algorithm));
        for (int i = 0; i < batch; i++)
                memcpy((char *)among.tensors.inputs[0] + (size_t)i * in, alone->tensors.inputs[0], in);
        for (uint32_t i = 1; i < among.node.n_inputs; i++)
                memcpy(among.tensors.inputs[i], alone->tensors.inputs[i], sl_tensor_bytes(&among.node.inputs[i]));
        pack_again(&among);
        cr_assert_eq(test_kernel_launch(&among), 0);
        for (int i = 0; i < batch; i++)
                cr_expect(!memcmp((char *)among.tensors.outputs[0] + (size_t)i * out, alone->tensors.outputs[0], out),
                        "%s, sample %d of %d, algorithm %u", format, i, batch, algorithm);
        test_kernel_deinit(&among);
}

Test(cpu_narrow_winograd, a_sample_has_the_same_bits_in_any_batch)
{
        static const char *const formats[] = {
                "Conv %dx64x9x9:bfloat16 72x64x3x3:bfloat16 72:bfloat16 pads=1,1,1,1 +relu",
                "Conv %dx20x4x4:bfloat16 160x20x3x3:bfloat16 160:bfloat16 pads=1,1,1,1 +swish",
        };

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        sl_cpu_use_one_thread();
        for (uint32_t algorithm = SL_ALGORITHM_WINOGRAD_2; algorithm <= SL_ALGORITHM_WINOGRAD_4; algorithm++)
                for (size_t i = 0; i < COUNT(formats); i++) {
                        struct test_kernel alone;
                        char line[256];

                        snprintf(line, sizeof(line), formats[i], 1);
                        cr_assert(init(&alone, line, "", algorithm));
                        cr_assert_eq(test_kernel_launch(&alone), 0);
                        for (int batch = 2; batch <= 8; batch += 3)
                                check_batch(formats[i], batch, algorithm, &alone);
                        test_kernel_deinit(&alone);
                }
}

Test(cpu_narrow_winograd, tensors_of_both_types_are_declined)
{
        struct sl_node_desc node, other;
        struct test_case test;

        case_parse("Conv 1x16x8x8:bfloat16 16x16x3x3:bfloat16 16:bfloat16 pads=1,1,1,1 +residual nhwc algorithm=3", &test);
        node = case_cpu_node(&test);
        cr_expect_eq(sl_backend_cpu.planner->supports(NULL, &node), sl_cpu_has_avx2());
        for (uint32_t i = 0; i < node.n_inputs; i++) {
                other = node;
                other.inputs[i].dtype = SL_DTYPE_F32;
                cr_expect_not(sl_backend_cpu.planner->supports(NULL, &other), "input %u", i);
        }
        other = node;
        other.outputs[0].dtype = SL_DTYPE_F32;
        cr_expect_not(sl_backend_cpu.planner->supports(NULL, &other));
}

/* Where it stands on a core that multiplies bfloat16 @times as fast as float32. */
static uint32_t place_of(uint32_t algorithm, const char *line, double times)
{
        struct sl_target target = sl_target_typical;
        uint32_t algorithms[SL_ALGORITHM_COUNT], n;
        struct test_case test;
        struct sl_node_desc node;

        target.core.bf16 = times * target.core.flops;
        case_parse(line, &test);
        node = case_cpu_node(&test);
        n = sl_backend_cpu.planner->algorithms(&target, &node, algorithms, NULL);
        for (uint32_t i = 0; i < n; i++)
                if (algorithms[i] == algorithm)
                        return i;
        return SL_ALGORITHM_COUNT;
}

/* 3x3 windows of VGG16 and of the last stage of ResNet18. */
Test(cpu_narrow_winograd, they_are_guessed_to_pay_where_they_save_more_than_bfloat16_gains)
{
        static const char many[] = "Conv 1x256x56x56:bfloat16 256x256x3x3:bfloat16 256:bfloat16 pads=1,1,1,1 nhwc";
        static const char few[] = "Conv 1x512x7x7:bfloat16 512x512x3x3:bfloat16 512:bfloat16 pads=1,1,1,1 nhwc";

        if (place_of(SL_ALGORITHM_DIRECT, many, 2) == SL_ALGORITHM_COUNT)
                cr_skip_test("products of bfloat16 want AVX-512");
        cr_expect_lt(place_of(SL_ALGORITHM_WINOGRAD_4, many, 2), place_of(SL_ALGORITHM_DIRECT, many, 2));
        cr_expect_gt(place_of(SL_ALGORITHM_WINOGRAD_4, many, 8), place_of(SL_ALGORITHM_DIRECT, many, 8));
        cr_expect_gt(place_of(SL_ALGORITHM_WINOGRAD_4, few, 2), place_of(SL_ALGORITHM_DIRECT, few, 2));
        cr_expect_lt(place_of(SL_ALGORITHM_WINOGRAD_4, few, 0.1), place_of(SL_ALGORITHM_DIRECT, few, 0.1));
}
