/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers at the edges of float against `ref`: a NaN and infinities in each place, subnormals, and all of them mixed, in every
 * kernel and around every width of a vector or block. What differs by design stands in kernels/README.md (Edges of float).
 */
#include "case.h"

#include "cpu/base/threads.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define KIND(kind) (1u << (kind))
#define ALL        (KIND(ODD_NAN) | KIND(ODD_INFINITE) | KIND(ODD_MINUS_INFINITE) | KIND(ODD_MIXED) | KIND(ODD_TINY))
#define NOT_TINY   (ALL & ~KIND(ODD_TINY))

/* Around the widths of vectors, of blocks and of panels. */
static const int widths[] = {1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 65};

/* A line with each # as a number, and a word more. */
static void check_form(const char *form, int width, const char *word, uint32_t kinds, uint64_t rounds)
{
        char line[256];
        size_t n = 0;

        for (; *form; form++)
                if (*form == '#')
                        n += (size_t)snprintf(line + n, sizeof(line) - n, "%d", width);
                else
                        line[n++] = *form;
        snprintf(line + n, sizeof(line) - n, " %s", word);
        case_check_odd(line, kinds, rounds);
}

/* As many rounds for each width as @rounds times that. */
static void check_widths(const char *const *forms, size_t n_forms, uint32_t kinds, uint64_t rounds)
{
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < n_forms; i++)
                for (size_t k = 0; k < COUNT(widths); k++)
                        check_form(forms[i], widths[k], "", kinds, rounds * (uint64_t)widths[k]);
}

static const char *const functions[] = {"Relu #", "LeakyRelu #", "HardSigmoid #", "HardSwish #", "Sigmoid #", "Tanh #", "Gelu #",
        "Gelu # approximate=1", "Erf #", "Exp #", "Log #", "Sqrt #", "Reciprocal #", "Neg #", "Abs #", "Floor #", "Ceil #",
        "Round #", "Sign #", "Sin #", "Cos #", "Mish #", "Softplus #", "ThresholdedRelu #", "Softsign #", "Shrink #",
        "Clip # min=-0.5 max=0.25", "IsNaN #", "Cast # to=7", "Cast # to=6", "Cast # to=9", "Cast # to=2", "Cast # to=3"};

/* e^x - 1 has the digits that e^x has. */
static const char *const rough_functions[] = {"Elu #", "Selu #", "Celu # alpha=2"};

Test(cpu_odd, a_function_takes_one_in_each_place)
{
        check_widths(functions, COUNT(functions), ALL, 1);
        check_widths(rough_functions, COUNT(rough_functions), NOT_TINY, 1);
}

static const char *const narrow_functions[] = {"Relu #:bfloat16", "Clip #:bfloat16 min=-0.5 max=0.25", "Tanh #:bfloat16",
        "Sigmoid #:bfloat16", "Gelu #:bfloat16", "Cast #:bfloat16 to=1"};

Test(cpu_odd, a_function_of_bfloat16_takes_one_in_each_place)
{
        check_widths(narrow_functions, COUNT(narrow_functions), NOT_TINY, 1);
}

static const char *const pairs[] = {"Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Min", "Max", "Sum", "Mean", "Equal", "Greater",
        "GreaterOrEqual", "Less", "LessOrEqual"};

Test(cpu_odd, an_operator_on_two_elements_takes_them_on_both_sides)
{
        static const char *const forms[] = {" 3x# 3x#", " 3x# #", " 3x# 3x1", " 3x# scalar"};
        char form[64];

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < COUNT(pairs); i++)
                for (size_t f = 0; f < COUNT(forms); f++)
                        for (size_t k = 0; k < COUNT(widths); k++) {
                                snprintf(form, sizeof(form), "%s%s", pairs[i], forms[f]);
                                check_form(form, widths[k], "", KIND(ODD_MIXED), 6);
                        }
}

static const char *const choices[] = {"Where 3x#:bool 3x# 3x#", "Where 3x1:bool # 3x#", "Concat 2x# 3x# axis=0", "Min 3x# # 3x1",
        "Max 3x# # 3x1", "Sum 3x# # 3x1", "Transpose 3x#", "Pad 3x# pads=1,2,0,1", "Gather #x3 4:int64 axis=0 below:1"};

Test(cpu_odd, what_moves_elements_moves_them)
{
        check_widths(choices, COUNT(choices), NOT_TINY, 1);
}

static const char *const rows[] = {"ReduceMean 4x# axes=1", "ReduceMean 4x# axes=0 loose:1e-4", "ReduceSum 4x# axes=1",
        "ReduceSum 4x# axes=0 loose:1e-4", "ReduceMax 4x# axes=1", "ReduceMax 4x# axes=0", "ReduceMin 4x# axes=1",
        "ReduceMin 4x# axes=0", "ReduceL1 4x# axes=1", "ReduceL1 4x# axes=0", "TopK 3x# k=1 outputs:2",
        "TopK 3x# k=1 largest=0 outputs:2"};

/* Squares of subnormals are 0 in float32. */
static const char *const squares[] = {"ReduceL2 4x# axes=1", "ReduceL2 4x# axes=0", "ReduceSumSquare 4x# axes=1",
        "ReduceSumSquare 4x# axes=0", "LayerNormalization 3x# # #", "RMSNormalization 3x# #", "InstanceNormalization 2x3x# 3 3",
        "GroupNormalization 2x4x# 4 4 num_groups=2", "BatchNormalization 3x# # # # # positive",
        "BatchNormalization 2x#x3x2 # # # # positive nhwc +relu", "BatchNormalization 2x3x# 3 3 3 3 positive +clip"};

Test(cpu_odd, a_row_takes_one_in_each_place)
{
        check_widths(rows, COUNT(rows), ALL, 2);
        check_widths(squares, COUNT(squares), NOT_TINY, 2);
        case_check_odd("TopK 3x50 k=50 largest=0 outputs:2", KIND(ODD_MIXED), 20);
        case_check_odd("TopK 3x50 k=50 outputs:2", KIND(ODD_MIXED), 20);
}

Test(cpu_odd, a_softmax_takes_one_in_each_place)
{
        sl_cpu_use_one_thread();
        for (int n = 1; n <= 70; n++) {
                check_form("Softmax 2x#", n, "", ALL, 2 * (uint64_t)n);
                check_form("LogSoftmax 2x#", n, "", ALL, 2 * (uint64_t)n);
        }
        case_check_odd("Softmax 3x1000", ALL, 40);
        case_check_odd("LogSoftmax 3x4100", ALL, 40);
        case_check_odd("Softmax 2x5x7 axis=1", ALL, 70);
        case_check_odd("LogSoftmax 2x5x33 axis=1", ALL, 330);
}

static const char *const windows[] = {"MaxPool 2x#x5x6 kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
        "MaxPool 1x#x6x5 kernel_shape=2,2", "MaxPool 1x#x7 kernel_shape=3 strides=2",
        "MaxPool 1x#x3x4x5 kernel_shape=2,2,2 strides=1,2,1", "MaxPool 1x#x5x6:bfloat16 kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
        "AveragePool 1x#x5x6 kernel_shape=3,3 strides=2,2 pads=1,1,1,1", "AveragePool 1x#x5x6 kernel_shape=2,2 count_include_pad=1",
        "GlobalMaxPool 2x#x3x5", "GlobalMaxPool 2x#x3x5:bfloat16", "GlobalAveragePool 2x#x3x5", "LRN 1x#x3x5 axis=5",
        "LRN 1x#x3x5 axis=3 alpha=0.1 beta=0.5", "Resize 1x#x3x4 scales=1,1,2,1.5 mode=1"};

Test(cpu_odd, a_window_spreads_one_over_its_own_places_alone)
{
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < COUNT(windows); i++)
                for (size_t k = 0; k < COUNT(widths); k++) {
                        check_form(windows[i], widths[k], "", NOT_TINY, 8);
                        check_form(windows[i], widths[k], "nhwc", NOT_TINY, 8);
                }
}

static const char *const ends[] = {"", "+relu", "+clip", "+leaky", "+sigmoid", "+tanh", "+gelu", "+hardswish", "+swish", "+elu",
        "+residual", "+residual +relu", "+residual +swish"};

static void check_ends(const char *const *forms, size_t n_forms, const char *words, uint64_t rounds)
{
        char word[96];

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < n_forms; i++)
                for (size_t k = 0; k < COUNT(widths); k++) {
                        /* Each width meets some of the ends, each end some of the widths. */
                        for (size_t e = (i + k) % 3; e < COUNT(ends); e += 3) {
                                snprintf(word, sizeof(word), "%s %s", ends[e], words);
                                check_form(forms[i], widths[k], word, NOT_TINY, rounds);
                        }
                }
}

static const char *const products[] = {"MatMul 3x9 9x#", "MatMul 15x33 33x#", "MatMul 1x#  #x40", "MatMul 2x3x5 2x5x#",
        "Gemm 4x9 9x# #", "Gemm 4x9 #x9 # transB=1", "Gemm 4x7 7x# # beta=0.5"};

Test(cpu_odd, a_product_and_its_end_take_one_in_each_row)
{
        check_ends(products, COUNT(products), "", 3);
        check_ends(products, COUNT(products), "packed", 3);
}

static const char *const convolutions[] = {"Conv 1x#x5x4 17x#x1x1 17", "Conv 1x9x5x4 #x9x1x1 #",
        "Conv 1x#x5x4 16x#x3x3 pads=1,1,1,1", "Conv 2x8x5x6 #x8x3x3 # pads=1,1,1,1 strides=2,2",
        "Conv 1x#x6x5 #x1x3x3 # group=# pads=1,1,1,1", "Conv 1x#x9x8 #x1x5x5 # group=# pads=2,2,2,2",
        "Conv 1x16x5x4 #x16x2x3 # dilations=2,1"};

Test(cpu_odd, a_convolution_and_its_end_spread_one_over_its_windows_alone)
{
        check_ends(convolutions, COUNT(convolutions), "packed nhwc algorithm=2", 3);
}

Test(cpu_odd, a_convolution_by_onednn_and_its_end_spread_one_over_its_windows_alone)
{
        check_ends(convolutions, COUNT(convolutions), "packed nhwc algorithm=1", 3);
}

static const char *const winograds[] = {"Conv 1x#x9x8 17x#x3x3 17 pads=1,1,1,1", "Conv 2x9x6x10 #x9x3x3 # pads=0,1,2,1"};
static const char *const wide_winograds[] = {"Conv 1x8x9x7 #x8x3x3 # pads=1,1,1,1", "Conv 1x#x9x7 17x#x3x3 17",
        "Conv 1x#x6x7 12x#x5x5 12 pads=2,2,2,2", "Conv 1x9x5x9 #x9x1x7 # pads=0,3,0,3", "Conv 1x9x9x5 #x9x7x1 pads=3,0,3,0",
        "Conv 1x8x5x9 #x8x1x3 # pads=0,1,0,1", "Conv 1x8x9x5 #x8x3x1 # pads=1,0,1,0"};
static const char *const strided_winograds[] = {
        "Conv 1x#x9x7 12x#x3x3 12 pads=1,1,1,1 strides=2,2", "Conv 1x9x8x9 #x9x3x3 # strides=2,2"};

/* The transforms would make all of a tile NaN. */
Test(cpu_odd, a_tile_of_winograds_spreads_one_over_its_windows_alone)
{
        check_ends(winograds, COUNT(winograds), "packed nhwc algorithm=3", 3);
        check_ends(wide_winograds, COUNT(wide_winograds), "packed nhwc algorithm=4", 3);
        check_ends(strided_winograds, COUNT(strided_winograds), "packed nhwc algorithm=3", 3);
}

static const char *const attentions[] = {"RowAttention 1x5x# 1x7x# 1x7x# group=1 shape=#,#",
        "RowAttention 1x3x8 1x#x8 1x#x8 1x1x1x# group=2 shape=4,4", "RowAttention 1x#x16 1x9x16 1x9x16 group=1 shape=16,16"};
static const char *const recurrences[] = {"LSTM 3x1x5 1x64x5 1x64x16 hidden_size=16 outputs:3 packed",
        "LSTM 3x2x5 1x36x5 1x36x9 hidden_size=9 outputs:3", "GRU 3x1x5 1x27x5 1x27x9 hidden_size=9 outputs:2",
        "RNN 3x1x5 1x9x5 1x9x9 hidden_size=9 outputs:2"};

Test(cpu_odd, an_attention_and_a_recurrence_take_one_in_each_row)
{
        check_widths(attentions, COUNT(attentions), NOT_TINY, 1);
        for (size_t i = 0; i < COUNT(recurrences); i++)
                case_check_odd(recurrences[i], NOT_TINY, 15);
}
