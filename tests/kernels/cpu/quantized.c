/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products and sums of bytes against `ref`: types, zero points, layouts, residuals, activations. A line that stores bytes says
 * y_scale; its results may differ by one where a factor in float32 moves a tie.
 */
#include "base/bytes.h"
#include "base/split_mix.h"
#include "case.h"
#include "cpu/base/isa.h"
#include "cpu/base/threads.h"
#include "cpu/elementwise/quantize_avx512.h"
#include "target.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const convolutions[] = {
        "QuantizedConv 1x64x14x14:uint8 64x64x1x1:int8 64 64:int32 y_scale=2000 packed nhwc positive",
        "QuantizedConv 1x64x14x14:uint8 64x64x1x1:int8 1 64:int32 y_scale=2000 packed nhwc positive",
        "QuantizedConv 2x32x14x14:uint8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 y_scale=3000 packed nhwc positive",
        "QuantizedConv 2x32x14x14:uint8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 x_zero=57 y_scale=3000 packed nhwc positive",
        "QuantizedConv 2x32x14x14:uint8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 y_scale=3000 y_zero=100 packed nhwc positive",
        "QuantizedConv 2x32x14x14:uint8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 y_scale=3000 to=3 packed nhwc positive",
        "QuantizedConv 2x32x14x14:uint8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 to=1 packed nhwc positive",
        "QuantizedConv 2x32x14x14:int8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 y_scale=3000 to=3 packed nhwc positive",
        "QuantizedConv 2x32x14x14:int8 48x32x3x3:int8 48 _ pads=1,1,1,1 x_zero=-9 y_scale=3000 y_zero=100 packed nhwc positive",
        "QuantizedConv 2x3x33x31:uint8 16x3x7x7:int8 16 16:int32 pads=3,3,3,3 strides=2,2 x_zero=60 y_scale=2000 packed nhwc "
        "positive",
        "QuantizedConv 2x32x14x14:uint8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 y_scale=3000 packed nhwc positive +relu",
        "QuantizedConv 2x32x14x14:uint8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 y_scale=3000 y_zero=90 packed nhwc positive +relu",
        "QuantizedConv 2x32x14x14:uint8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 y_scale=0.01 y_zero=90 packed nhwc positive +clip",
        "QuantizedConv 2x32x14x14:uint8 48x32x3x3:int8 48 48:int32 pads=1,1,1,1 y_scale=0.01 y_zero=9 packed nhwc positive "
        "+sigmoid",
        "QuantizedConv 2x32x14x14:uint8 64x32x1x1:int8 64 64:int32 y_scale=900 addend_scale=500 packed nhwc positive +residual "
        "+relu",
        "QuantizedConv 2x32x14x14:uint8 64x32x1x1:int8 64 64:int32 y_scale=900 y_zero=99 addend_scale=500 addend_zero=44 packed "
        "nhwc "
        "positive +residual +relu",
        "QuantizedConv 2x32x14x14:uint8 64x32x1x1:int8 64 64:int32 y_scale=900 y_zero=99 addend_scale=500 addend_zero=44 packed "
        "nhwc "
        "positive +residual",
        "QuantizedConv 2x32x14x14:uint8 64x32x3x3:int8 64 64:int32 pads=1,1,1,1 addend_scale=500 addend_zero=44 to=1 packed nhwc "
        "positive +residual",
        "QuantizedConv 2x24x14x14:uint8 24x1x3x3:int8 24 24:int32 pads=1,1,1,1 group=24 y_scale=99 packed nhwc positive +relu",
        "QuantizedConv 2x24x14x14:uint8 24x1x3x3:int8 24 24:int32 pads=1,1,1,1 group=24 x_zero=50 y_scale=99 packed nhwc positive",
        "QuantizedConv 2x24x14x14:uint8 24x1x3x3:int8 24 24:int32 pads=1,1,1,1 strides=2,2 group=24 y_scale=99 packed nhwc "
        "positive",
        "QuantizedConv 2x32x14x14:uint8 64x8x3x3:int8 64 64:int32 pads=1,1,1,1 group=4 y_scale=900 packed nhwc positive",
        "QuantizedConv 2x7x10x11:uint8 5x7x3x2:int8 5 5:int32 pads=1,0,1,1 y_scale=500 packed nhwc positive",
        "QuantizedConv 1x8x20:uint8 12x8x5:int8 12 12:int32 pads=2,2 y_scale=500 packed nhwc positive",
        "QuantizedConv 1x256x7x7:uint8 64x256x1x1:int8 64 64:int32 strides=2,2 y_scale=5000 packed nhwc positive",
};

Test(cpu_quantized, a_convolution_of_bytes_gives_what_the_reference_gives)
{
        case_check_all(convolutions, sizeof(convolutions) / sizeof(convolutions[0]));
}

/* oneDNN has no code for some of them, which is known before it is asked. */
Test(cpu_quantized, a_convolution_in_groups_with_a_function_has_a_kernel_where_it_is_taken)
{
        static const char *const functions[] = {"+gelu", "+swish", "+tanh", "+sigmoid", "+hardswish", "+elu", "+leaky"};
        static const int sizes[] = {2, 4, 12, 16, 20, 32}; /* of a group */

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < COUNT(sizes) * COUNT(sizes); i++)
                for (size_t f = 0; f < COUNT(functions); f++) {
                        int channels = sizes[i % COUNT(sizes)], filters = sizes[i / COUNT(sizes)];
                        char line[200];

                        snprintf(line, sizeof(line),
                                "QuantizedConv 1x%dx5x9:uint8 %dx%dx3x3:int8 %d %d:int32 group=2 to=1 wide:0.01 nhwc packed "
                                "positive algorithm=1 %s",
                                2 * channels, 2 * filters, channels, 2 * filters, 2 * filters, functions[f]);
                        if (case_is_taken(line))
                                case_check(line);
                }
}

static const char *const products[] = {
        "QuantizedMatMul 1x64:uint8 64x10:int8 10 10:int32 y_scale=1000 packed positive",
        "QuantizedMatMul 8x64:uint8 10x64:int8 1 10:int32 transB=1 y_scale=1000 y_zero=77 packed positive",
        "QuantizedMatMul 8x64:uint8 10x64:int8 10 10:int32 transB=1 to=1 packed positive",
        "QuantizedMatMul 8x64:int8 64x96:int8 96 _ to=1 packed positive",
        "QuantizedMatMul 2x9x64:uint8 64x96:int8 96 96:int32 x_zero=31 y_scale=3000 packed positive +relu",
        "QuantizedMatMul 2x9x64:uint8 64x96:int8 96 96:int32 y_scale=3000 addend_scale=1000 packed positive +residual",
        "QuantizedMatMul 2x9x64:uint8 64x96:int8 96 96:int32 to=1 packed positive +residual",
        "QuantizedMatMul 2x9x64:uint8 64x96:int8 96 96:int32 to=1 packed positive +residual +gelu",
        "QuantizedMatMul 33x200:uint8 200x130:int8 130 130:int32 to=1 packed positive +gelu",
        "QuantizedMatMul 128x384:uint8 384x384:int8 384 384:int32 y_scale=9000 y_zero=128 packed positive",
};

Test(cpu_quantized, a_matrix_product_of_bytes_gives_what_the_reference_gives)
{
        case_check_all(products, sizeof(products) / sizeof(products[0]));
}

/*
 * Asked for by the algorithm: the own kernel, whatever the guess. Depths that are no whole fours, panels that are not full, rows
 * that fill no tile, several blocks of scanlines, and what does not leave the registers as it should: functions, steps that are too
 * small.
 */
static const char *const own[] = {
        "QuantizedConv 3x6x9x11:uint8 70x6x3x3:int8 70 70:int32 pads=1,1,1,1 x_zero=9 y_scale=2000 y_zero=7 packed nhwc positive",
        "QuantizedConv 2x64x30x33:uint8 33x64x3x3:int8 33 33:int32 pads=1,0,2,1 strides=2,1 x_zero=9 y_scale=5000 packed nhwc "
        "positive",
        "QuantizedConv 2x64x60x60:uint8 100x64x3x3:int8 100 100:int32 pads=1,1,1,1 x_zero=200 y_scale=9000 packed nhwc positive "
        "+relu",
        "QuantizedConv 2x32x9x9:int8 48x32x3x3:int8 48 48:int32 dilations=2,2 y_scale=5000 to=3 y_zero=-3 packed nhwc positive",
        "QuantizedConv 2x64x9x11:uint8 96x16x3x3:int8 96 96:int32 pads=1,1,1,1 group=4 x_zero=3 y_scale=900 packed nhwc positive",
        "QuantizedConv 1x16x13x13:uint8 16x16x1x1:int8 16 16:int32 y_scale=900 packed nhwc positive",
        "QuantizedConv 1x64x11x13:uint8 70x64x1x1:int8 70 70:int32 strides=2,2 y_scale=2000 packed nhwc positive",
        "QuantizedConv 1x16x13x13:uint8 40x16x1x1:int8 40 40:int32 y_scale=0.01 y_zero=9 packed nhwc positive",
        "QuantizedConv 1x16x13x13:uint8 40x16x1x1:int8 40 40:int32 y_scale=0.01 y_zero=9 packed nhwc positive +swish",
        "QuantizedConv 1x16x13x13:uint8 40x16x1x1:int8 40 40:int32 y_scale=900 y_zero=-9 to=3 packed nhwc positive +hardswish",
        "QuantizedConv 1x16x14x13:uint8 16x16x3x3:int8 16 16:int32 pads=1,1,1,1 to=1 packed nhwc positive +hardswish",
        "QuantizedConv 1x16x14x13:uint8 24x16x3x3:int8 24 24:int32 pads=1,1,1,1 y_scale=900 y_zero=7 packed nhwc positive "
        "+hardswish",
        "QuantizedConv 1x16x14x14:uint8 64x16x1x1:int8 64 64:int32 y_scale=900 packed nhwc positive +hardswish",
        "QuantizedConv 1x16x14x14:uint8 64x16x1x1:int8 64 64:int32 to=1 packed nhwc positive +residual",
        "QuantizedConv 1x16x13x13:uint8 40x16x1x1:int8 40 40:int32 y_scale=900 addend_scale=700 addend_zero=-5 to=3 packed nhwc "
        "positive +residual +relu",
        "QuantizedConv 2x40x14x14:uint8 40x1x3x3:int8 40 40:int32 pads=1,1,1,1 group=40 x_zero=50 y_scale=99 packed nhwc positive",
        "QuantizedConv 1x144x13x15:uint8 144x1x3x3:int8 144 144:int32 pads=1,1,1,1 group=144 y_scale=99 packed nhwc positive +relu",
        "QuantizedConv 1x120x13x15:uint8 120x1x3x3:int8 120 120:int32 pads=1,1,1,1 strides=2,2 group=120 x_zero=3 y_scale=99 "
        "y_zero=-4 "
        "to=3 "
        "packed nhwc positive +clip",
        "QuantizedConv 1x64x17x18:uint8 64x1x5x5:int8 64 _ pads=2,2,2,2 group=64 x_zero=9 y_scale=199 packed nhwc positive",
        "QuantizedConv 1x96x17x18:uint8 96x1x5x5:int8 96 96:int32 pads=2,2,2,2 strides=2,2 group=96 y_scale=99 packed nhwc "
        "positive "
        "+hardswish",
        "QuantizedConv 1x104x9x10:uint8 104x1x3x3:int8 104 104:int32 pads=1,1,1,1 group=104 x_zero=9 to=1 packed nhwc positive "
        "+hardswish",
        "QuantizedConv 1x104x9x10:uint8 104x1x3x3:int8 104 104:int32 pads=1,1,1,1 group=104 x_zero=9 to=1 packed nhwc positive "
        "+clip",
        "QuantizedConv 2x48x9x10:uint8 48x1x3x3:int8 48 48:int32 pads=1,1,1,1 group=48 x_zero=9 y_scale=0.01 packed nhwc positive "
        "+swish",
        "QuantizedConv 1x64x3x2:uint8 64x1x3x3:int8 64 64:int32 pads=1,1,1,1 group=64 y_scale=30000000 packed nhwc positive "
        "extreme "
        "below:2147483000",
        "QuantizedConv 2x68x9x17:uint8 40x68x1x1:int8 40 40:int32 x_zero=3 y_scale=2000 packed nhwc positive",
        "QuantizedConv 2x68x9x17:uint8 40x68x1x1:int8 40 40:int32 strides=2,2 y_scale=2000 packed nhwc positive +relu",
        "QuantizedConv 1x136x5x35:uint8 70x68x1x1:int8 70 70:int32 group=2 y_scale=2000 y_zero=5 packed nhwc positive",
        "QuantizedConv 1x136x5x35:uint8 70x68x3x3:int8 70 70:int32 group=2 y_scale=4000 y_zero=5 packed nhwc positive",
        "QuantizedConv 1x72x19x21:uint8 40x72x3x3:int8 40 40:int32 to=1 packed nhwc positive +swish",
        "QuantizedConv 1x72x19x19:uint8 33x72x3x1:int8 33 33:int32 y_scale=0.01 packed nhwc positive +swish",
        "QuantizedConv 1x72x19x19:uint8 33x72x3x1:int8 33 33:int32 y_scale=0.01 addend_scale=0.01 packed nhwc positive +residual "
        "+swish",
        "QuantizedConv 1x72x19x19:uint8 47x72x3x1:int8 47 47:int32 pads=1,0,1,0 x_zero=7 to=1 packed nhwc positive +residual "
        "+relu",
        "QuantizedConv 1x116x1x18:int8 58x116x1x1:int8 58 58:int32 x_zero=-3 y_scale=2000 to=3 packed nhwc positive",
        "QuantizedConv 3x8x7x1:uint8 20x8x3x3:int8 20 20:int32 pads=1,1,1,1 x_zero=3 y_scale=500 packed nhwc positive",
        "QuantizedMatMul 33x68:uint8 68x100:int8 100 100:int32 x_zero=11 y_scale=2000 packed positive",
        "QuantizedMatMul 1x1028:uint8 1028x16:int8 16 16:int32 y_scale=9000 packed positive +relu",
        "QuantizedMatMul 300x260:uint8 260x130:int8 130 130:int32 x_zero=11 y_scale=5000 y_zero=3 addend_scale=900 packed "
        "positive +residual",
        "QuantizedMatMul 300x260:uint8 260x130:int8 130 130:int32 x_zero=11 y_scale=0.5 y_zero=3 packed positive +gelu",
        "QuantizedMatMul 9x37:uint8 37x45:int8 45 45:int32 x_zero=11 to=1 packed positive +residual +gelu",
        "QuantizedMatMul 9x36:uint8 36x45:int8 45 45:int32 x_zero=11 to=1 packed positive +clip",
        "QuantizedMatMul 9x36:uint8 36x45:int8 1 45:int32 x_zero=11 to=1 packed positive +residual",
};

Test(cpu_quantized, an_own_product_of_bytes_gives_what_the_reference_gives)
{
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
                char line[256];

                snprintf(line, sizeof(line), "%s algorithm=%u", own[i], SL_ALGORITHM_BLOCKED);
                case_check(line);
        }
}

static const char *const ends[] = {"y_scale=199", "y_scale=199 +relu", "y_scale=99 y_zero=-4 to=3 +clip", "to=1", "to=1 +hardswish",
        "y_scale=150 y_zero=3 +hardswish", "y_scale=0.01", "y_scale=0.01 to=3 +swish"};

/* Windows of single channels: images as narrow as a window and less, blocks of all sizes, edges on each side. */
Test(cpu_quantized, own_windows_of_single_channels_give_what_the_reference_gives)
{
        uint64_t random = 1;

        for (uint32_t round = 0; round < 600; round++) {
                uint64_t chance = sl_split_mix_next(&random);
                uint32_t channels = 20 + (uint32_t)(chance % 140), bits = (uint32_t)(chance >> 8);
                uint32_t kernel[2] = {3 + 2 * (bits & 1), 3 + 2 * (bits >> 1 & 1)},
                         strides[2] = {1 + (bits >> 2 & 1), 1 + (bits >> 3 & 1)};
                uint32_t pads[4], size[2];
                char line[256];

                channels = chance >> 62 ? channels : (channels + 31) / 32 * 32;
                channels += channels > 32 && channels < 40 ? 7 : 0; /* so few of 64 are oneDNN's */
                for (uint32_t i = 0; i < 4; i++)
                        pads[i] = (uint32_t)(chance >> (12 + 2 * i)) % kernel[i % 2];
                for (uint32_t i = 0; i < 2; i++) {
                        size[i] = 1 + (uint32_t)(chance >> (24 + 8 * i)) % 19;
                        if (size[i] + pads[i] + pads[i + 2] < kernel[i])
                                size[i] = kernel[i];
                }
                snprintf(line, sizeof(line),
                        "QuantizedConv 2x%ux%ux%u:uint8 %ux1x%ux%u:int8 %u %u:int32 pads=%u,%u,%u,%u strides=%u,%u group=%u "
                        "x_zero=%u "
                        "packed nhwc positive %s algorithm=%u",
                        channels, size[0], size[1], channels, kernel[0], kernel[1], channels, channels, pads[0], pads[1], pads[2],
                        pads[3], strides[0], strides[1], channels, (uint32_t)(chance >> 48) % 256,
                        ends[(chance >> 56) % (sizeof(ends) / sizeof(ends[0]))], SL_ALGORITHM_BLOCKED);
                if (case_is_for_this_set(round))
                        case_check(line);
        }
}

/* The bytes of the result by the kernel that is planned for a core on which tiles of AMX are so many times as fast. */
static void run_for(const char *line, double gain, struct test_kernel *ret_kernel)
{
        struct sl_target target = sl_target_typical;
        struct test_case test;

        target.core.tiles = gain * target.core.bytes;
        case_parse(line, &test);
        cr_assert(test_kernel_init_for(ret_kernel, &sl_backend_cpu, &test, &target), "%s", line);
        cr_assert_eq(test_kernel_launch(ret_kernel), 0, "%s", line);
}

static void check_bits(const char *own_line)
{
        struct test_kernel vectors, tiles;
        char line[256];

        snprintf(line, sizeof(line), "%s algorithm=%u", own_line, SL_ALGORITHM_BLOCKED);
        run_for(line, 0.5, &vectors);
        run_for(line, 2, &tiles);
        cr_expect_arr_eq(vectors.tensors.outputs[0], tiles.tensors.outputs[0], sl_tensor_bytes(&tiles.node.outputs[0]), "%s", line);
        test_kernel_deinit(&vectors);
        test_kernel_deinit(&tiles);
}

Test(cpu_quantized, tiles_of_amx_give_the_bits_that_vectors_give)
{
        if (!sl_cpu_has_amx())
                cr_skip_test("this processor has no AMX, or may not use it");
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
                check_bits(own[i]);
}

/* Rows so far apart that scanlines times their bytes are 2^64, and count as nothing. */
Test(cpu_quantized, a_window_larger_than_any_image_is_left_to_others)
{
        struct test_case test;
        struct sl_node_desc node;

        case_parse("QuantizedConv 1x1024x1x4:uint8 1024x1024x1x2:int8 1024 _ dilations=1,11599062 pads=0,11599059,0,0 "
                   "strides=1553090841,1 x_zero=3 y_scale=9 packed nhwc positive algorithm=2",
                &test);
        node = case_cpu_node(&test);
        cr_assert_eq(sl_attrs_int(&node.attrs, SL_ATTR_ALGORITHM, 0), SL_ALGORITHM_BLOCKED);
        cr_expect_not(sl_backend_cpu.planner->supports(NULL, &node));
}

/* The input's last byte is the last one of a page behind which there is none. */
static void launch_at_the_end(struct test_kernel *k)
{
        size_t bytes = sl_tensor_bytes(&k->node.inputs[0]), pages = sl_align_up(bytes, SL_PAGE_BYTES);
        char *room = mmap(NULL, pages + SL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void *input = k->tensors.inputs[0];

        cr_assert_neq(room, MAP_FAILED);
        cr_assert_eq(mprotect(room + pages, SL_PAGE_BYTES, PROT_NONE), 0);
        k->tensors.inputs[0] = memcpy(room + pages - bytes, input, bytes);
        cr_expect_eq(test_kernel_launch(k), 0);
        k->tensors.inputs[0] = input;
        munmap(room, pages + SL_PAGE_BYTES);
}

Test(cpu_quantized, no_byte_behind_the_input_is_read)
{
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
                struct test_kernel k;
                struct test_case test;
                char line[256];

                snprintf(line, sizeof(line), "%s algorithm=%u", own[i], SL_ALGORITHM_BLOCKED);
                case_parse(line, &test);
                cr_assert(test_kernel_init(&k, &sl_backend_cpu, &test), "%s", line);
                launch_at_the_end(&k);
                test_kernel_deinit(&k);
        }
}

/* Two neighbouring products do not fit 16 bits, and long sums no float32; a large bias and its sum do not fit 32 bits. */
static const char *const extremes[] = {
        "QuantizedMatMul 7x64:uint8 64x33:int8 33 33:int32 to=1 packed positive extreme loose:1e-6",
        "QuantizedMatMul 7x64:uint8 64x33:int8 33 _ to=1 positive extreme loose:1e-6",
        "QuantizedMatMul 7x63:int8 33x63:int8 33 33:int32 transB=1 to=1 packed positive extreme loose:1e-6",
        "QuantizedMatMul 7x64:int8 64x33:int8 1 33:int32 x_zero=-128 to=1 packed positive extreme loose:1e-6",
        "QuantizedMatMul 7x64:uint8 64x33:int8 33 33:int32 x_zero=255 y_scale=30000 y_zero=128 packed positive extreme",
        "QuantizedMatMul 2x20001:uint8 20001x17:int8 17 17:int32 to=1 packed positive extreme second:127 loose:1e-6",
        "QuantizedMatMul 2x20001:uint8 20001x17:int8 17 17:int32 to=1 packed positive extreme second:-128 loose:1e-6",
        "QuantizedMatMul 5x999:uint8 999x300:int8 300 300:int32 x_zero=99 to=1 packed positive extreme below:2147483000 loose:1e-6",
        "QuantizedConv 2x32x9x11:uint8 24x32x3x3:int8 24 24:int32 pads=1,1,1,1 x_zero=3 to=1 packed nhwc positive extreme "
        "loose:1e-6",
        "QuantizedConv 2x32x9x11:int8 24x32x3x3:int8 24 24:int32 pads=1,1,1,1 to=1 packed nhwc positive extreme loose:1e-6",
        "QuantizedConv 2x32x9x11:uint8 24x32x3x3:int8 24 24:int32 pads=1,1,1,1 to=1 nhwc positive extreme loose:1e-6",
        "QuantizedConv 2x5x9x11:uint8 24x5x3x3:int8 24 24:int32 pads=2,2,2,2 dilations=2,2 x_zero=200 to=1 packed nhwc positive "
        "extreme loose:1e-6",
        "QuantizedConv 2x5x19x11:uint8 24x5x5x3:int8 24 _ pads=2,0,1,3 strides=3,2 x_zero=200 to=1 packed nhwc positive extreme "
        "loose:1e-6",
        "QuantizedConv 2x64x9x11:uint8 24x64x1x1:int8 24 24:int32 y_scale=30000 packed nhwc positive extreme +relu",
        "QuantizedConv 2x64x9x11:uint8 24x64x1x1:int8 24 24:int32 strides=2,3 pads=1,1,0,2 x_zero=9 to=1 packed nhwc positive "
        "extreme loose:1e-6",
        "QuantizedConv 2x24x9x11:uint8 24x1x3x3:int8 24 24:int32 pads=1,1,1,1 group=24 x_zero=9 to=1 packed nhwc positive extreme "
        "loose:1e-6",
        "QuantizedConv 2x24x9x11:int8 24x1x5x3:int8 24 24:int32 pads=1,1,1,1 strides=2,1 group=24 to=1 nhwc positive extreme "
        "loose:1e-6",
        "QuantizedConv 2x24x9x11:uint8 48x4x3x3:int8 48 48:int32 pads=1,1,1,1 group=6 x_zero=9 to=1 packed nhwc positive extreme "
        "loose:1e-6",
        "QuantizedConv 1x24x9x11:uint8 48x1x3x3:int8 48 48:int32 pads=1,1,1,1 group=24 to=1 packed nhwc positive extreme "
        "loose:1e-6",
        "QuantizedConv 3x6x40:uint8 9x6x7:int8 9 9:int32 pads=3,3 x_zero=9 to=1 packed nhwc positive extreme loose:1e-6",
        "QuantizedConv 1x128x150x90:uint8 9x128x3x3:int8 9 9:int32 pads=1,1,1,1 x_zero=9 to=1 packed nhwc positive extreme "
        "loose:1e-6",
        "QuantizedConv 1x32x9x11:uint8 24x32x3x3:int8 24 24:int32 pads=1,1,1,1 y_scale=90000 y_zero=99 addend_scale=50000 "
        "addend_zero=44 packed nhwc positive extreme +residual +relu",
        "QuantizedConv 1x32x9x11:int8 24x32x3x3:int8 24 24:int32 pads=1,1,1,1 y_scale=90000 to=3 packed nhwc positive extreme "
        "+clip",
};

Test(cpu_quantized, bytes_at_the_ends_of_their_range_give_what_the_reference_gives)
{
        case_check_all(extremes, sizeof(extremes) / sizeof(extremes[0]));
}

static const char *const sums[] = {
        "QuantizedAdd 2x7x9x5:uint8 2x7x9x5:uint8 x_scale=0.5 addend_scale=0.25 x_zero=3 addend_zero=90 y_scale=0.4 y_zero=20",
        "QuantizedAdd 2x7x9x5:uint8 2x7x9x5:int8 x_scale=0.5 addend_scale=0.25 x_zero=3 y_scale=0.4 y_zero=20 nhwc +relu",
        "QuantizedAdd 2x7x9x5:int8 2x7x9x5:uint8 x_scale=0.5 addend_scale=0.25 y_scale=0.4 y_zero=-20 to=3 nhwc",
        "QuantizedAdd 2x7x9x5:int8 2x7x9x5:int8 x_scale=0.5 addend_scale=0.25 to=1 nhwc",
        "QuantizedAdd 2x7x9x5:uint8 x_scale=0.01 x_zero=50 y_scale=0.02 y_zero=128 +clip",
        "QuantizedAdd 2x7x9x5:int8 x_scale=0.01 y_scale=0.01 y_zero=128",
        "QuantizedAdd 2x7x9x5:uint8 x_scale=0.01 to=1 +clip",
        "QuantizedAdd 2x7x9x5:uint8 x_scale=0.25 x_zero=50 y_scale=0.5 y_zero=73",
        "QuantizedAdd 2x7x9x5:int8 x_scale=0.25 x_zero=-3 y_scale=0.5 y_zero=-73 to=3",
        "QuantizedAdd 2x7x9x5:uint8 2x7x9x5:int8 x_scale=0.25 addend_scale=0.125 x_zero=50 addend_zero=3 y_scale=0.5 y_zero=73 "
        "+relu",
        "MaxPool 2x32x14x14:uint8 kernel_shape=3,3 strides=2,2 pads=1,1,1,1 nhwc",
        "MaxPool 2x32x14x14:int8 kernel_shape=2,2 strides=2,2 nhwc",
        "MaxPool 2x70x15x13:uint8 kernel_shape=3,3 strides=2,2 pads=1,1,1,1 nhwc",
        "MaxPool 1x3x40:int8 kernel_shape=2 nhwc",
        "MaxPool 1x5x40:uint8 kernel_shape=3 nhwc",
        "MaxPool 1x31x40:uint8 kernel_shape=3 nhwc",
        "MaxPool 1x33x40:int8 kernel_shape=3 nhwc",
        "MaxPool 1x7x4x5x6:uint8 kernel_shape=2,2,2 nhwc",
        "MaxPool 1x40x4x5x6:int8 kernel_shape=2,2,2 nhwc",
        "MaxPool 1x3x15x13:int8 kernel_shape=3,3 pads=1,1,1,1 nhwc",
        "MaxPool 1x130x15x13:int8 kernel_shape=3,2 strides=1,2 dilations=2,1 nhwc",
        "Concat 1x8x5x5:uint8 1x16x5x5:uint8 axis=1 nhwc",
};

Test(cpu_quantized, what_moves_and_adds_bytes_gives_what_the_reference_gives)
{
        case_check_all(sums, sizeof(sums) / sizeof(sums[0]));
}

/* Less than two vectors in all: whoever reads vectors may reach beyond both ends. Not each processor has a kernel for them. */
static const char *const few[] = {
        "MaxPool 1x1x40:int8 kernel_shape=1",
        "MaxPool 1x1x40:int8 kernel_shape=1 nhwc",
        "MaxPool 1x1x36:int8 kernel_shape=1 nhwc",
        "MaxPool 1x1x33:uint8 kernel_shape=2 nhwc",
        "MaxPool 1x1x35:uint8 kernel_shape=1 nhwc",
        "MaxPool 1x3x17:int8 kernel_shape=2 nhwc",
        "MaxPool 1x3x20:uint8 kernel_shape=2 nhwc",
        "MaxPool 1x1x63:uint8 kernel_shape=3 nhwc",
        "MaxPool 1x1x64:uint8 kernel_shape=3 nhwc",
        "MaxPool 3x1x33:uint8 kernel_shape=4 strides=2 nhwc",
        "MaxPool 3x1x33:int8 kernel_shape=4 strides=2 nhwc",
        "MaxPool 3x1x35:uint8 kernel_shape=4 strides=2 nhwc",
        "MaxPool 3x1x37:int8 kernel_shape=4 strides=2 nhwc",
        "MaxPool 1x1x16x7x5:int8 kernel_shape=3,3,3 strides=2,2,2 nhwc",
        "MaxPool 1x2x2x8x8:uint8 kernel_shape=2,2,2 strides=1,2,2 nhwc",
};

Test(cpu_quantized, of_few_bytes_no_neighbour_is_read)
{
        case_check_taken(few, sizeof(few) / sizeof(few[0]));
}

static const char *const borders[] = {
        "QuantizeLinear 2x7x9x5 scalar scalar:uint8 wide:90 positive",
        "QuantizeLinear 2x7x9x5 scalar scalar:uint8 wide:90 positive nhwc",
        "QuantizeLinear 2x7x9x5 1 1:int8 wide:90 positive",
        "QuantizeLinear 3x5 scalar positive",
        "QuantizeLinear 1x3x40x40 scalar scalar:uint8 wide:200 positive tonhwc fromnhwc",
        "DynamicQuantizeLinear 2x7x9x5 wide:90",
        "DynamicQuantizeLinear 1x1 positive",
        "DynamicQuantizeLinear 3x359 wide:9",
        "DequantizeLinear 2x7x9x5:uint8 scalar scalar:uint8 positive nhwc",
        "DequantizeLinear 2x7x9x5:int8 scalar scalar:int8 positive",
        "DequantizeLinear 2x7x9x5:int8 1 positive",
};

Test(cpu_quantized, floats_become_bytes_and_bytes_floats_as_the_reference_says)
{
        case_check_all(borders, sizeof(borders) / sizeof(borders[0]));
}

/* What a division gives, rounded; NaN is the least. */
static uint8_t quantize_one(float x, float scale, int32_t zero, int32_t low)
{
        double steps = rint((double)(x / scale)) + zero;

        if (steps != steps)
                return (uint8_t)low;
        return (uint8_t)(int32_t)(steps < low ? low : steps > low + 255 ? low + 255 : steps);
}

#define TIES 512 /* and a few numbers on each side of each */

static void check_ties(float scale, int32_t zero, int32_t low)
{
        float numbers[TIES * 5 + 7] = {NAN, INFINITY, -INFINITY, 0x1p-149f, 3e38f, -3e38f, 0};
        uint8_t bytes[TIES * 5 + 7];
        uint32_t n = 7;

        for (int32_t tie = 0; tie < TIES; tie++) {
                float number = ((float)(tie - TIES / 2) + 0.5f) * scale;

                for (int32_t i = 0; i < 2; i++)
                        number = nextafterf(number, -INFINITY);
                for (int32_t i = 0; i < 5; i++, number = nextafterf(number, INFINITY))
                        numbers[n++] = number;
        }
        sl_quantize_avx512(n, bytes, numbers, scale, zero, low);
        for (uint32_t i = 0; i < n; i++)
                cr_assert_eq(bytes[i], quantize_one(numbers[i], scale, zero, low), "%.9g / %.9g + %d: %u, not %u",
                        (double)numbers[i], (double)scale, zero, bytes[i], quantize_one(numbers[i], scale, zero, low));
}

Test(cpu_quantized, quotients_are_rounded_as_a_division_rounds_them)
{
        static const float scales[] = {1, 0.1f, 1.0f / 3, 0x1.fffffep-5f, 0x1.000002p-5f, 0x1p-60f, 0x1p-61f, 0x1p-140f, 1e-38f,
                1e38f, 0x1p60f, 0x1p61f, -0.25f, 0};
        uint64_t random = 1;

        if (!sl_cpu_has_avx512()) {
                printf("[SKIP] quotients_are_rounded_as_a_division_rounds_them: the processor has no AVX-512\n");
                return;
        }
        for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++)
                for (int32_t low = -128; low <= 0; low += 128)
                        check_ties(scales[i], low / 3 + 40, low);
        for (uint32_t i = 0; i < 2000; i++) {
                uint64_t chance = sl_split_mix_next(&random);
                int32_t low = chance & 1 ? -128 : 0;

                check_ties(ldexpf(1 + (float)(chance >> 40) * 0x1p-24f, (int)(chance >> 8) % 20 - 20),
                        low + (int32_t)(chance >> 16) % 256, low);
        }
}

static const char *const halves[] = {
        "Conv 2x32x14x14:bfloat16 48x32x3x3:bfloat16 48:bfloat16 pads=1,1,1,1 packed nhwc +relu",
        "Conv 2x32x14x14:bfloat16 64x32x1x1:bfloat16 64:bfloat16 packed nhwc +residual +relu",
        "Conv 2x3x33x31:bfloat16 16x3x7x7:bfloat16 16:bfloat16 pads=3,3,3,3 strides=2,2 packed nhwc",
        "Conv 2x24x10x10:bfloat16 24x1x3x3:bfloat16 24:bfloat16 group=24 pads=1,1,1,1 packed nhwc +clip",
        "Conv 2x24x10x10:bfloat16 24x1x3x3:bfloat16 24:bfloat16 group=24 pads=1,1,1,1 packed nhwc +swish",
        "Conv 1x16x7x7:bfloat16 41x16x1x1:bfloat16 41:bfloat16 packed nhwc +residual +swish",
        "Conv 1x32x1x1:bfloat16 7x32x1x1:bfloat16 7:bfloat16 packed nhwc +sigmoid",
        "Conv 1x8x16x16:bfloat16 8x8x3x3:bfloat16 8:bfloat16 pads=1,1,1,1 packed nhwc +hardswish",
        "Conv 1x8x5x9:bfloat16 24x8x3x3:bfloat16 24:bfloat16 pads=1,1,1,1 packed nhwc +tanh",
        "Conv 1x8x5x9:bfloat16 24x8x3x3:bfloat16 24:bfloat16 pads=1,1,1,1 packed nhwc +elu",
        "Gemm 33x64:bfloat16 100x64:bfloat16 100:bfloat16 transB=1 packed +gelu",
        "Gemm 8x64:bfloat16 10x64:bfloat16 10:bfloat16 transB=1 packed",
        "MatMul 2x5x16:bfloat16 16x8:bfloat16 8:bfloat16 packed +gelu",
        "MatMul 2x3x5x16:bfloat16 2x3x16x7:bfloat16",
        "MaxPool 2x32x14x14:bfloat16 kernel_shape=3,3 strides=2,2 pads=1,1,1,1 nhwc",
        "GlobalAveragePool 2x32x7x7:bfloat16 nhwc",
        "AveragePool 2x8x12x12:bfloat16 kernel_shape=2,2 strides=2,2 nhwc",
        "Concat 1x8x5x5:bfloat16 1x16x5x5:bfloat16 axis=1 nhwc",
        "Add 2x7x9x5:bfloat16 2x7x9x5:bfloat16 nhwc",
        "Sub 2x7x9x5:bfloat16 5:bfloat16",
        "Mul 2x7x9x5:bfloat16 2x7x1x1:bfloat16 nhwc",
        "Relu 2x7x9x5:bfloat16",
        "Clip 2x7x9x5:bfloat16 min=-0.25 max=0.5",
        "Tanh 2x7x9x5:bfloat16",
        "Sigmoid 2x7x9x5:bfloat16",
        "Gelu 2x7x9x5:bfloat16",
        "Cast 3x7x33 to=16",
        "Cast 3x7x33:bfloat16 to=1",
};

Test(cpu_quantized, bfloat16_gives_what_the_reference_gives)
{
        if (!sl_cpu_has_avx512())
                cr_skip_test("products of bfloat16 want AVX-512");
        case_check_all(halves, sizeof(halves) / sizeof(halves[0]));
}
