/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv, Gemm and MatMul against `ref`: shapes, layouts, packed and plain weights, epilogues.
 */
#include "case.h"
#include "cpu/base/isa.h"

#include <criterion/criterion.h>

static const char *const convolutions[] = {
        "Conv 1x3x12x12 8x3x3x3",
        "Conv 1x3x12x12 8x3x3x3 packed",
        "Conv 2x3x17x13 16x3x3x3 16 pads=1,1,1,1 packed",
        "Conv 2x3x17x13 16x3x3x3 16 pads=1,1,1,1 packed nhwc",
        "Conv 2x3x17x13 16x3x3x3 16 pads=1,1,1,1 packed tonhwc",
        "Conv 2x3x17x13 16x3x3x3 16 pads=1,1,1,1 packed fromnhwc",
        "Conv 1x3x32x32 16x3x7x7 16 pads=3,3,3,3 strides=2,2 packed tonhwc +relu",
        "Conv 1x1x28x28 6x1x5x5 6 pads=2,2,2,2 packed nhwc +relu",
        "Conv 2x16x9x9 32x16x1x1 32 packed nhwc",
        "Conv 2x16x9x9 32x16x1x1 32 strides=2,2 packed nhwc +residual +relu",
        "Conv 2x16x9x9 32x16x1x1 packed +residual +relu",
        "Conv 2x32x14x14 32x32x3x3 32 pads=1,1,1,1 packed nhwc +residual +relu",
        "Conv 2x32x14x14 32x32x3x3 32 pads=1,1,1,1 packed +residual +relu",
        "Conv 2x32x14x14 32x32x3x3 32 pads=1,1,1,1 nhwc +residual +relu",
        "Conv 2x32x14x14 48x32x3x3 48 pads=0,1,2,1 strides=2,1 packed nhwc",
        "Conv 2x32x14x14 48x32x3x3 48 pads=2,2,2,2 dilations=2,2 packed nhwc",
        "Conv 2x32x14x14 48x32x3x3 48 pads=2,2,2,2 dilations=2,2 packed",
        "Conv 2x24x10x10 24x1x3x3 24 group=24 pads=1,1,1,1 packed nhwc +clip",
        "Conv 2x24x10x10 24x1x3x3 24 group=24 pads=1,1,1,1 strides=2,2 packed +hardswish",
        "Conv 2x24x10x10 24x1x5x5 24 group=24 pads=2,2,2,2 packed nhwc +residual +swish",
        "Conv 2x16x10x10 32x4x3x3 32 group=4 pads=1,1,1,1 packed nhwc +relu",
        "Conv 2x16x10x10 32x4x3x3 32 group=4 pads=1,1,1,1 packed",
        "Conv 2x7x10x11 5x7x3x2 5 pads=1,0,1,1 packed nhwc +residual +tanh",
        "Conv 1x8x20 12x8x5 12 pads=2,2 packed",
        "Conv 1x8x20 12x8x5 12 pads=2,2 strides=2 packed nhwc +relu",
        "Conv 1x4x6x7x5 8x4x3x3x3 8 pads=1,1,1,1,1,1 packed nhwc",
        "Conv 1x4x6x7x5 8x4x3x3x3 8 pads=1,1,1,1,1,1 packed +residual",
        "Conv 3x16x8x8 16x16x3x3 16 pads=1,1,1,1 packed nhwc +sigmoid",
        "Conv 3x16x8x8 16x16x3x3 16 pads=1,1,1,1 packed nhwc +tanh",
        "Conv 3x16x8x8 16x16x3x3 16 pads=1,1,1,1 packed nhwc +leaky",
        "Conv 3x16x8x8 16x16x3x3 16 pads=1,1,1,1 packed nhwc +gelu",
        "Conv 3x16x8x8 16x16x3x3 16 pads=1,1,1,1 packed nhwc +hardswish",
        "Conv 3x16x8x8 16x16x3x3 16 pads=1,1,1,1 packed nhwc +swish",
        "Conv 3x16x8x8 16x16x3x3 16 pads=1,1,1,1 packed nhwc +elu",
        "Conv 3x16x8x8 16x16x3x3 16 pads=1,1,1,1 packed +residual +gelu",
        "Conv 1x64x7x7 256x64x1x1 256 packed nhwc +residual +relu",
        "Conv 1x256x7x7 64x256x1x1 64 packed nhwc +clip",
        /* oneDNN's matrix product mixes up the channels of an addend here (some only below AVX-512). */
        "Conv 2x25x12x12 25x1x1x1 group=25 nhwc +residual +clip",
        "Conv 3x14x12x13 6x7x4x3 6 group=2 pads=0,2,1,0 strides=2,1 nhwc packed +residual",
        "Conv 2x35x15x14 15x7x2x4 15 group=5 pads=0,1,0,0 strides=1,2 tonhwc packed +residual +tanh",
        "Conv 2x39x11x13 78x1x2x1 group=39 strides=2,2 dilations=2,2 nhwc packed +residual",
};

Test(cpu_products, a_convolution_gives_what_the_reference_gives)
{
        case_check_all(convolutions, sizeof(convolutions) / sizeof(convolutions[0]));
}

static const char *const gemms[] = {
        "Gemm 1x64 64x10 10 packed",
        "Gemm 1x64 10x64 10 transB=1 packed",
        "Gemm 8x64 10x64 10 transB=1 packed +relu",
        "Gemm 8x64 10x64 10 transB=1 +relu",
        "Gemm 64x8 64x10 transA=1",
        "Gemm 64x8 10x64 10 transA=1 transB=1 packed",
        "Gemm 33x200 130x200 130 transB=1 packed +residual +gelu",
        "Gemm 33x200 200x130 1x130 packed +sigmoid",
        "Gemm 5x7 7x3 5x3 packed",
        "Gemm 5x7 7x3 5x1 packed",
        "Gemm 5x7 7x3 1x1 packed",
        "Gemm 5x7 7x3 scalar packed",
        "Gemm 5x7 7x3 3 alpha=0.5 packed",
        "Gemm 5x7 7x3 3 beta=0.5 packed +relu",
        "Gemm 5x7 7x3 3 alpha=0.25 beta=2 packed +residual +elu",
        "Gemm 5x7 7x3 3 alpha=3 beta=0 packed",
        "Gemm 5x7 7x3 alpha=3 packed",
        "Gemm 1x1 1x1 1 packed",
        "Gemm 16x256 256x512 512 packed +residual",
        "Gemm 6x32 102x32 6x1 transB=1 packed +relu",
        "Gemm 44x69 94x44 69x1 transA=1 transB=1 beta=2 packed +residual +swish",
};

Test(cpu_products, a_gemm_gives_what_the_reference_gives)
{
        case_check_all(gemms, sizeof(gemms) / sizeof(gemms[0]));
}

static const char *const matmuls[] = {
        "MatMul 4x16 16x8 packed",
        "MatMul 3x5x16 3x16x8 packed",
        "MatMul 3x5x16 3x16x8 3x1x8 packed +relu",
        "MatMul 3x5x16 3x16x40 3x1x40 packed +residual +gelu",
        "MatMul 3x5x16 3x16x8 3x1x8 +residual",
        "MatMul 3x1x33 3x33x7 7 packed",
        "MatMul 8x1x64 8x64x64 8x1x64 packed +relu",
        "MatMul 5x1x33 5x33x200 5x1x200 packed +residual +swish",
        "MatMul 16x1x7 16x7x48 packed +residual +clip",
        "MatMul 2x1x160 2x160x129 2x1x129 packed",
        "MatMul 3x2x33 3x33x7 3x1x7",
        "MatMul 4x16 16x8",
        "MatMul 4x16 16x8 8 packed +relu",
        "MatMul 2x5x16 16x8 8 packed +gelu",
        "MatMul 2x5x16 16x8 8 +gelu",
        "MatMul 2x5x16 16x8 packed +residual",
        "MatMul 2x3x5x16 2x3x16x7",
        "MatMul 2x3x5x16 2x3x16x7 packed",
        "MatMul 2x3x5x16 2x3x16x7 7 +residual +relu",
        "MatMul 2x3x5x16 1x3x16x7",
        "MatMul 2x3x5x16 3x16x7",
        "MatMul 5x16 3x16x7",
        "MatMul 1x5x16 3x16x7 7 +tanh",
        "MatMul 2x1x5x16 1x3x16x7",
        "MatMul 16 16x7 packed",
        "MatMul 3x16 16",
        "MatMul 16 16",
        "MatMul 2x3x16 16",
        "MatMul 16 2x16x5",
        "MatMul 12x64x32 12x32x64",
        "MatMul 128x96 96x384 384 packed +gelu",
        "MatMul 1x128x96 96x96 96 packed +residual",
};

Test(cpu_products, a_matmul_gives_what_the_reference_gives)
{
        case_check_all(matmuls, sizeof(matmuls) / sizeof(matmuls[0]));
}

static const char *const halves[] = {
        "MatMul 1x64 64x96 weights:f16 packed",
        "MatMul 1x64 64x96 96 weights:bf16 packed +gelu",
        "MatMul 2x5x16 16x40 40 weights:f16 packed +residual +relu",
        "MatMul 1x768 768x1000 1000 weights:f16 packed",
        "MatMul 3x768 768x1000 1000 weights:bf16 packed",
        "MatMul 1x128x96 96x384 384 weights:f16 packed +gelu",
        "Gemm 1x300 200x300 200 transB=1 weights:f16 packed +relu",
        "Gemm 16x256 256x512 512 weights:bf16 packed +residual",
};

Test(cpu_products, weights_in_halves_give_what_the_reference_gives_of_the_same_numbers)
{
        if (!sl_cpu_has_f16c())
                cr_skip_test("this processor does not widen float16");
        case_check_all(halves, sizeof(halves) / sizeof(halves[0]));
}

static const char *const pools[] = {
        "MaxPool 2x8x12x12 kernel_shape=2,2 strides=2,2",
        "MaxPool 2x8x12x12 kernel_shape=2,2 strides=2,2 nhwc",
        "MaxPool 2x8x13x11 kernel_shape=3,3 strides=2,2 pads=1,1,1,1 nhwc",
        "MaxPool 2x8x13x11 kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
        "MaxPool 2x8x12x12 kernel_shape=3,3 strides=2,2 ceil_mode=1 nhwc",
        "MaxPool 2x8x12x12 kernel_shape=3,3 strides=2,2 pads=0,1,1,0 ceil_mode=1",
        "MaxPool 2x8x13x13 kernel_shape=3,3 strides=1,1 dilations=2,2",
        "MaxPool 2x8x13x13 kernel_shape=3,3 strides=1,1 dilations=2,2 nhwc",
        "MaxPool 2x7x9x11 kernel_shape=5,4 strides=1,2 pads=2,1,2,2 nhwc",
        "MaxPool 1x19x8x8 kernel_shape=1,3 strides=1,1 pads=0,1,0,1 nhwc",
        "MaxPool 1x3x8x8 kernel_shape=6,2 strides=1,3 pads=3,0,3,1 nhwc",
        "MaxPool 2x5x9x9 kernel_shape=3,3 strides=1,1 dilations=3,2 pads=3,2,3,2 nhwc",
        "MaxPool 2x5x13 kernel_shape=3 strides=2",
        "MaxPool 1x3x6x6x6 kernel_shape=2,2,2 strides=2,2,2 nhwc",
        "AveragePool 2x8x12x12 kernel_shape=2,2 strides=2,2",
        "AveragePool 2x8x12x12 kernel_shape=2,2 strides=2,2 nhwc",
        "AveragePool 2x8x13x11 kernel_shape=3,3 strides=2,2 pads=1,1,1,1 nhwc",
        "AveragePool 2x8x13x11 kernel_shape=3,3 strides=2,2 pads=1,1,1,1 count_include_pad=1 nhwc",
        "AveragePool 2x8x13x11 kernel_shape=3,3 strides=1,1 pads=1,0,1,2 count_include_pad=1",
        "AveragePool 2x8x12x12 kernel_shape=3,3 strides=2,2 ceil_mode=1",
        "AveragePool 2x8x13x13 kernel_shape=3,3 strides=2,2 ceil_mode=1 count_include_pad=1 nhwc",
        "AveragePool 2x5x13 kernel_shape=3 strides=2",
        "GlobalAveragePool 2x32x7x7",
        "GlobalAveragePool 2x32x7x7 nhwc",
        "GlobalAveragePool 2x5x7 nhwc",
        "GlobalAveragePool 2x5x3x4x5",
        "GlobalMaxPool 2x32x7x7",
        "GlobalMaxPool 2x32x7x7 nhwc",
};

Test(cpu_products, a_pooling_gives_what_the_reference_gives)
{
        case_check_all(pools, sizeof(pools) / sizeof(pools[0]));
}

/* Nobody walks over 2^40 places of which 9 are there: who would leaves it to the reference. */
static const char *const wide_windows[] = {
        "MaxPool 1x16x3x3 kernel_shape=1048576,1048576 strides=1048576,1048576 pads=1048575,1048575,1048575,1048575",
        "MaxPool 1x16x3x3 kernel_shape=1048576,1048576 strides=1048576,1048576 pads=1048575,1048575,1048575,1048575 nhwc",
        "AveragePool 1x16x3x3 kernel_shape=1048576,1048576 strides=1048576,1048576 pads=1048575,1048575,1048575,1048575",
        "AveragePool 1x16x3x3 kernel_shape=1048576,1048576 strides=1048576,1048576 pads=1048575,1048575,1048575,1048575 nhwc",
};

Test(cpu_products, windows_far_wider_than_the_image_take_no_longer_than_the_image, .timeout = 30)
{
        case_check_taken(wide_windows, sizeof(wide_windows) / sizeof(wide_windows[0]));
}
