/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers at the edges of float against `ref`: a NaN and infinities in each place, subnormals, and all of them mixed, in every
 * kernel and around every width of a vector or block. What differs by design stands in kernels/README.md (Edges of float).
 */
#include "case.h"

#include "cpu/base/isa.h"
#include "cpu/base/threads.h"
#include "cpu/reduce/softmax_tile.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define KIND(kind) (1u << (kind))
#define ALL        (KIND(ODD_NAN) | KIND(ODD_INFINITE) | KIND(ODD_MINUS_INFINITE) | KIND(ODD_MIXED) | KIND(ODD_TINY))
#define NOT_TINY   (ALL & ~KIND(ODD_TINY))
#define ZEROS      KIND(ODD_ZEROS)

/* Around the widths of vectors, of blocks and of panels. */
static const int widths[] = {1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 65};

/*
 * Most own kernels want AVX2: without it what is left, and what oneDNN has in their place. bfloat16 wants AVX-512 mostly. Which
 * products of bytes an algorithm takes depends on VNNI and AMX.
 */
static void check_line(const char *line, uint32_t kinds, uint64_t rounds)
{
        bool may_lack = !sl_cpu_has_avx2() || (!sl_cpu_has_avx512() && strstr(line, "bfloat16")) || strstr(line, "Quantized");

        /* kernels/README.md */
        if (strstr(line, "bfloat16") && !strstr(line, "Conv") && !__builtin_cpu_supports("avx512bf16"))
                kinds &= ~(KIND(ODD_INFINITE) | KIND(ODD_MINUS_INFINITE));
        if (case_line_is_for_this_set(line) && (!may_lack || case_is_taken(line)))
                case_check_odd(line, kinds, rounds);
}

#define LINE_BYTES 256

/* A line with each # as a number, and a word more. */
static void write_line(const char *form, int width, const char *word, char line[LINE_BYTES])
{
        size_t n = 0;

        for (; *form; form++)
                if (*form == '#')
                        n += (size_t)snprintf(line + n, LINE_BYTES - n, "%d", width);
                else
                        line[n++] = *form;
        snprintf(line + n, LINE_BYTES - n, " %s", word);
}

/* Where the operator has that type, and a kernel for it. */
static void check_form_of_any(const char *form, int width, const char *word, uint32_t kinds, uint64_t rounds)
{
        char line[LINE_BYTES];

        write_line(form, width, word, line);
        if (case_is_taken(line))
                case_check_odd(line, kinds, rounds);
}

static void check_form(const char *form, int width, const char *word, uint32_t kinds, uint64_t rounds)
{
        char line[LINE_BYTES];

        write_line(form, width, word, line);
        check_line(line, kinds, rounds);
}

/* The same with numbers as they are, and in parts. */
static void check_form_whole(const char *form, int width, const char *word)
{
        char line[LINE_BYTES];

        write_line(form, width, word, line);
        if (case_line_is_for_this_set(line) && case_is_taken(line))
                case_check(line);
}

/* As many rounds for each width as @rounds times that. */
static void check_words(const char *const *forms, size_t n_forms, const char *words, uint32_t kinds, uint64_t rounds)
{
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < n_forms; i++)
                for (size_t k = 0; k < COUNT(widths); k++)
                        check_form(forms[i], widths[k], words, kinds, rounds * (uint64_t)widths[k]);
}

static void check_widths(const char *const *forms, size_t n_forms, uint32_t kinds, uint64_t rounds)
{
        check_words(forms, n_forms, "", kinds, rounds);
}

static void check_signs(const char *const *forms, size_t n_forms, uint32_t kinds, uint64_t rounds)
{
        check_words(forms, n_forms, "signs", kinds, rounds);
}

static const char *const functions[] = {"Relu #", "LeakyRelu #", "HardSigmoid #", "HardSwish #", "Sigmoid #", "Tanh #", "Gelu #",
        "Gelu # approximate=1", "Erf #", "Exp #", "Log #", "Sqrt #", "Reciprocal #", "Neg #", "Abs #", "Floor #", "Ceil #",
        "Round #", "Sign #", "Sin #", "Cos #", "Mish #", "Softplus #", "ThresholdedRelu #", "Softsign #", "Shrink #", "Elu #",
        "Elu # alpha=0.5", "Selu #", "Celu # alpha=2", "Clip # min=-0.5 max=0.25", "IsNaN #", "Cast # to=7", "Cast # to=6",
        "Cast # to=9", "Cast # to=2", "Cast # to=3"};

Test(cpu_odd, a_function_takes_one_in_each_place)
{
        check_signs(functions, COUNT(functions), ALL, 1);
}

/* Of other widths than 32 bits, and those that call the C library. */
static const char *const functions_of_any[] = {"Relu #:float64", "LeakyRelu #:float64", "HardSigmoid #:float64",
        "HardSwish #:float64", "Sigmoid #:float64", "Tanh #:float64", "Erf #:float64", "Exp #:float64", "Log #:float64",
        "Sqrt #:float64", "Reciprocal #:float64", "Neg #:float64", "Abs #:float64", "Floor #:float64", "Ceil #:float64",
        "Round #:float64", "Sign #:float64", "Clip #:float64 min=-0.5 max=0.25", "Elu #:float64", "Relu #:float16",
        "Sigmoid #:float16", "Exp #:float16", "Neg #:float16", "Clip #:float16 min=-0.5 max=0.25", "Exp #:bfloat16",
        "HardSwish #:bfloat16", "Tan #", "Asin #", "Acos #", "Atan #", "Sinh #", "Cosh #", "Asinh #", "Acosh #", "Atanh #"};

Test(cpu_odd, a_function_of_any_type_takes_one_in_each_place)
{
        check_words(functions_of_any, COUNT(functions_of_any), "signs close:1e-3", NOT_TINY, 1);
}

/* Bits are compared, and with them what a NaN has behind it. */
static const char *const casts[] = {"Cast # to=1", "Cast # to=11", "Cast # to=10", "Cast # to=16", "Cast #:float16 to=1",
        "Cast #:bfloat16 to=1", "Cast #:float64 to=1", "Cast #:float64 to=7", "Cast #:float64 to=6", "Cast #:float64 to=9",
        "Cast #:float64 to=3", "IsNaN #:float64", "IsInf #", "IsInf #:float64 detect_negative=0", "IsInf # detect_positive=0"};

Test(cpu_odd, a_cast_takes_one_in_each_place)
{
        check_signs(casts, COUNT(casts), ALL, 2);
}

static const char *const narrow_functions[] = {"Relu #:bfloat16", "Clip #:bfloat16 min=-0.5 max=0.25", "Tanh #:bfloat16",
        "Sigmoid #:bfloat16", "Gelu #:bfloat16", "Cast #:bfloat16 to=1"};

Test(cpu_odd, a_function_of_bfloat16_takes_one_in_each_place)
{
        check_signs(narrow_functions, COUNT(narrow_functions), NOT_TINY, 1);
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
                                check_form(form, widths[k], strstr("Min Max", pairs[i]) ? "" : "signs", KIND(ODD_MIXED), 6);
                        }
}

/* Of other widths than 32 bits. */
Test(cpu_odd, an_operator_on_two_elements_of_any_float_takes_them_on_both_sides)
{
        static const char *const types[] = {"float64", "float16", "bfloat16"};
        char form[96];

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < COUNT(pairs); i++)
                for (size_t t = 0; t < COUNT(types); t++)
                        for (size_t k = 0; k < COUNT(widths); k += 3) {
                                snprintf(form, sizeof(form), "%s 3x#:%s 3x%s:%s close:1e-3", pairs[i], types[t], k % 2 ? "1" : "#",
                                        types[t]);
                                check_form_of_any(form, widths[k], strstr("Min Max", pairs[i]) ? "" : "signs", KIND(ODD_MIXED), 4);
                        }
        check_form("Mod 3x# 3x# fmod=1", 17, "signs", KIND(ODD_MIXED), 30);
        check_form("Mod 3x#:float64 #:float64 fmod=1 close:1e-12", 17, "signs", KIND(ODD_MIXED), 30);
}

static const char *const choices[] = {"Where 3x#:bool 3x# 3x#", "Where 3x1:bool # 3x#", "Concat 2x# 3x# axis=0", "Min 3x# # 3x1",
        "Max 3x# # 3x1", "Sum 3x# # 3x1", "Transpose 3x#", "Pad 3x# pads=1,2,0,1", "Gather #x3 4:int64 axis=0 below:1"};

/* Of two zeros of different signs either is the larger. */
static const char *const choices_of_one[] = {
        "Where 3x#:bool 3x# 3x#", "Concat 2x# 3x# axis=0", "Transpose 3x#", "Pad 3x# pads=1,2,0,1"};

Test(cpu_odd, what_moves_elements_moves_them)
{
        check_signs(choices_of_one, COUNT(choices_of_one), NOT_TINY, 1);
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

/* Rows that are short, long or far apart, of any width; what runs along them; what names their places. */
static const char *const folds[] = {"ReduceMax 20x# axes=1", "ReduceMin 20x# axes=1", "ReduceMax 2x3x# axes=0,2",
        "ReduceMin 2x#x3x2 axes=1,3", "ReduceMax 4x#:float64 axes=1 close:1e-12", "ReduceMin #x70:float64 axes=0 close:1e-12",
        "ReduceMax 4x#:float16 axes=1 close:1e-3", "ReduceMax 4x#:bfloat16 axes=1", "ReduceSum 2x3x# axes=0,2",
        "ReduceSum 20x# axes=1", "ReduceL1 3x#x2 axes=0,2", "ReduceLogSumExp 4x# axes=1", "ReduceLogSumExp 3x#x5 axes=1",
        "ReduceLogSum 4x# axes=1", "ReduceProd 4x# axes=1", "ReduceProd #x5 axes=0", "ArgMax 20x# axis=1", "ArgMin 2x#x3 axis=1",
        "ArgMax 2x# axis=1 mode=1", "ArgMin 4x#:float64 axis=1", "ArgMax 4x#:float16 axis=1", "CumSum 4x# axis=1",
        "CumSum #x3 axis=0", "CumProd 3x# axis=1"};

Test(cpu_odd, a_fold_takes_one_in_each_place)
{
        check_widths(folds, COUNT(folds), ALL, 2);
        case_check_odd("ArgMax 2x300 axis=1", ALL, 100);
        case_check_odd("ArgMin 2x300 axis=1 mode=1", ALL, 100);
        case_check_odd("ReduceMax 2x300x2:float64 axes=0,1 close:1e-12", ALL, 50);
}

static const char *const scatters[] = {"ScatterElements 3x# 3x#:int64 3x# axis=1 below:1 reduction=3",
        "ScatterElements 3x# 3x#:int64 3x# axis=0 below:1 reduction=4",
        "ScatterElements 4x# 2x#:int64 2x# axis=0 below:3 reduction=1",
        "ScatterElements 4x# 2x#:int64 2x# axis=0 below:3 reduction=2", "ScatterND 4x# 6x1:int64 6x# below:3 reduction=3",
        "ScatterND 4x# 6x1:int64 6x# below:3 reduction=4", "ScatterND 4x# 6x1:int64 6x# below:3", "GatherND #x3 4x1:int64 below:1",
        "Trilu 3x#", "Col2Im 1x4x# sizes=2,# kernel_shape=2,2 pads=0,0,0,1", "GridSample 1x2x5x# 1x3x5x2",
        "GridSample 1x2x5x# 1x3x5x2 mode=1", "GridSample 1x2x5x# 1x3x5x2 mode=2 padding_mode=1"};

/* Of two zeros of different signs either is the larger. */
Test(cpu_odd, an_update_takes_one_in_each_place)
{
        static const char *const displaced[] = {"DeformConv 1x2x5x# 3x2x2x2 1x8x4x# pads=0,0,0,1 wide:2"};
        static const char *const regions[] = {
                "RoiAlign 1x2x3x# 3x4 3:int64 output_height=2 output_width=3 sampling_ratio=2 below:0 wide:2 positive",
                "RoiAlign 1x2x3x# 3x4 3:int64 output_height=2 output_width=3 sampling_ratio=2 below:0 wide:2 positive mode=1"};

        check_widths(scatters, COUNT(scatters), NOT_TINY, 1);
        check_widths(displaced, COUNT(displaced), NOT_TINY & ~KIND(ODD_MIXED), 3);
        check_widths(regions, COUNT(regions), NOT_TINY & ~KIND(ODD_MIXED), 3);
}

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
        for (int n = 1; n <= SL_SOFTMAX_SHORT + 1; n++)
                check_form("Softmax 37x#", n, "", ALL, 74 * (uint64_t)n);
        case_check_odd("Softmax 3x1000", ALL, 40);
        case_check_odd("LogSoftmax 3x4100", ALL, 40);
        case_check_odd("Softmax 2x5x7 axis=1", ALL, 70);
        case_check_odd("LogSoftmax 2x5x33 axis=1", ALL, 330);
}

/* Whatever lies beside it; in place, too. */
Test(cpu_odd, a_short_row_of_a_softmax_has_the_bits_that_it_has_by_itself)
{
        float x[SL_SOFTMAX_SHORT * 40], alone[SL_SOFTMAX_SHORT];
        uint64_t state = 5;

        if (!sl_cpu_has_avx2())
                return;
        for (int64_t n = 1; n <= SL_SOFTMAX_SHORT; n++)
                for (int64_t count = 1; count <= 40; count++) {
                        float y[SL_SOFTMAX_SHORT * 40];

                        for (int64_t i = 0; i < count * n; i++) {
                                state = state * 6364136223846793005u + 1442695040888963407u;
                                x[i] = (float)(int32_t)(state >> 32) * 0x1p-28f;
                        }
                        memcpy(y, x, sizeof(y));
                        sl_softmax_short_rows(count, n, y, y);
                        for (int64_t r = 0; r < count; r++) {
                                sl_softmax_row(n, false, alone, x + r * n);
                                cr_assert_arr_eq(y + r * n, alone, (size_t)n * sizeof(float), "row %d of %d, of %d", (int)r,
                                        (int)count, (int)n);
                        }
                }
}

static const char *const windows[] = {"MaxPool 2x#x5x6 kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
        "MaxPool 1x#x6x5 kernel_shape=2,2", "MaxPool 1x#x7 kernel_shape=3 strides=2",
        "MaxPool 1x#x3x4x5 kernel_shape=2,2,2 strides=1,2,1", "MaxPool 1x#x5x6:bfloat16 kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
        "AveragePool 1x#x5x6 kernel_shape=3,3 strides=2,2 pads=1,1,1,1", "AveragePool 1x#x5x6 kernel_shape=2,2 count_include_pad=1",
        "GlobalMaxPool 2x#x3x5", "GlobalMaxPool 2x#x3x5:bfloat16", "GlobalAveragePool 2x#x3x5", "LRN 1x#x3x5 axis=5",
        "LRN 1x#x3x5 axis=3 alpha=0.1 beta=0.5", "LRN 1x#x3x5 axis=5 alpha=0.1 beta=0.7", "Resize 1x#x3x4 scales=1,1,2,1.5 mode=1",
        "Resize 1x#x3x4 scales=1,1,2,1.5 mode=2", "Resize 1x#x5x6 scales=1,1,0.5,0.7 mode=2 exclude_outside=1",
        "Resize 1x#x1x4 scales=1,1,3,1.5 mode=2", "Resize 1x#x3x4 scales=1,1,2,0.5 mode=2 antialias=1"};

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
        "+residual", "+residual +relu", "+residual +swish", "+relu6"};

static void check_ends_of_widths(
        const char *const *forms, size_t n_forms, const int *sizes, size_t n_sizes, const char *words, uint64_t rounds)
{
        char word[96];

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < n_forms; i++)
                for (size_t k = 0; k < n_sizes; k++) {
                        /* Each width meets some of the ends, each end some of the widths. */
                        for (size_t e = (i + k) % 3; e < COUNT(ends); e += 3) {
                                snprintf(word, sizeof(word), "%s %s", ends[e], words);
                                check_form(forms[i], sizes[k], word, NOT_TINY, rounds);
                        }
                }
}

static void check_ends(const char *const *forms, size_t n_forms, const char *words, uint64_t rounds)
{
        check_ends_of_widths(forms, n_forms, widths, COUNT(widths), words, rounds);
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

static const char *const narrow_products[] = {"MatMul 3x9:bfloat16 9x#:bfloat16 loose:1e-2",
        "MatMul 2x3x5:bfloat16 2x5x#:bfloat16 loose:1e-2", "Gemm 4x9:bfloat16 9x#:bfloat16 #:bfloat16 loose:1e-2"};
static const char *const narrow_convolutions[] = {"Conv 1x#x5x4:bfloat16 17x#x1x1:bfloat16 17:bfloat16 loose:1e-2",
        "Conv 1x#x5x4:bfloat16 16x#x3x3:bfloat16 pads=1,1,1,1 loose:1e-2",
        "Conv 2x32x5x6:bfloat16 #x32x3x3:bfloat16 #:bfloat16 pads=1,1,1,1 strides=2,2 loose:1e-2",
        "Conv 1x#x6x5:bfloat16 #x1x3x3:bfloat16 #:bfloat16 group=# pads=1,1,1,1 loose:1e-2",
        "Conv 1x66x3x#:bfloat16 4x33x3x3:bfloat16 4:bfloat16 group=2 pads=1,1,1,1 loose:1e-2"};

/* Of plain weights, where oneDNN has a GEMM that makes NaN of an infinity if the number is odd. */
static const int even_widths[] = {2, 4, 8, 10, 16, 18, 32, 34, 64, 66};
static const int narrow_widths[] = {1, 3, 4, 7, 9, 15, 16, 17, 31, 32, 33, 65};

/* With AMX oneDNN's convolutions of images look at numbers of the pixels behind (kernels/README.md). */
static size_t first_of(const int *sizes)
{
        size_t first = 0;

        while (sl_cpu_has_amx() && sizes[first] <= 4)
                first++;
        return first;
}

static void check_narrow_convolutions(const int *sizes, size_t n_sizes, const char *how)
{
        size_t first = first_of(sizes);

        if (first)
                fprintf(stderr, "bfloat16 convolutions of one to four channels are left out: this processor has AMX\n");
        check_ends_of_widths(narrow_convolutions, COUNT(narrow_convolutions), sizes + first, n_sizes - first, how, 3);
}

Test(cpu_odd, a_product_of_bfloat16_and_its_end_take_one_in_each_row)
{
        check_ends(narrow_products, COUNT(narrow_products), "", 3);
        check_ends(narrow_products, COUNT(narrow_products), "packed", 3);
        check_narrow_convolutions(narrow_widths, COUNT(narrow_widths), "packed nhwc algorithm=1");
        check_narrow_convolutions(even_widths, COUNT(even_widths), "nhwc");
}

/* From an image with its channels first, too, and in parts. */
Test(cpu_odd, an_odd_number_of_channels_of_bfloat16_is_made_even)
{
        static const char *const hows[] = {"packed nhwc algorithm=1", "packed tonhwc algorithm=1"};
        static const char *const forms[] = {"Conv 3x#x7x5:bfloat16 16x#x3x3:bfloat16 16:bfloat16 strides=2,1 loose:1e-2",
                "Conv 2x33x7x5:bfloat16 #x33x1x1:bfloat16 loose:1e-2", "Conv 1x#x9:bfloat16 16x#x3:bfloat16 loose:1e-2",
                "Conv 2x#x3x4x5:bfloat16 16x#x2x2x2:bfloat16 loose:1e-2"};

        sl_cpu_use_one_thread();
        for (size_t f = 0; f < COUNT(forms); f++)
                for (size_t k = first_of(narrow_widths); k < COUNT(narrow_widths); k++)
                        for (size_t h = 0; h < COUNT(hows); h++) {
                                check_form(forms[f], narrow_widths[k], hows[h], NOT_TINY, 5);
                                check_form_whole(forms[f], narrow_widths[k], hows[h]);
                        }
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

static const int64_t lanes[] = {2, 4, 8, 16, 32, 48};
static const char *const laned_ends[] = {"", "+relu", "+residual +swish", "+clip"};

/* @filters of each lane; of convolutions of so many networks in one. */
static void check_laned(int64_t lanes_of_one, int64_t filters, const char *end, int algorithm)
{
        int n = (int)(lanes_of_one * filters);
        char line[160];

        snprintf(line, sizeof(line), "LanedConv 1x%dx7x5 %dx3x3x3 %d group=%d pads=1,0,1,1 %s packed nhwc algorithm=%d",
                (int)lanes_of_one * 3, n, n, (int)lanes_of_one, end, algorithm);
        check_line(line, NOT_TINY, 12);
}

/* A tile of Winograd's is one in its lane alone, of all filters, whichever vectors they lie in. */
Test(cpu_odd, a_lane_spreads_one_over_its_own_windows_alone)
{
        static const int64_t filters[] = {1, 2, 5, 9};

        sl_cpu_use_one_thread();
        for (size_t l = 0; l < COUNT(lanes); l++)
                for (size_t f = 0; f < COUNT(filters); f++)
                        for (int algorithm = SL_ALGORITHM_BLOCKED; algorithm <= SL_ALGORITHM_WINOGRAD_2; algorithm++)
                                check_laned(lanes[l], filters[f], laned_ends[(l + f) % COUNT(laned_ends)], algorithm);
}

static const char *const attentions[] = {"RowAttention 1x5x# 1x7x# 1x7x# group=1 shape=#,#",
        "RowAttention 1x3x8 1x#x8 1x#x8 1x1x1x# group=2 shape=4,4", "RowAttention 1x#x16 1x9x16 1x9x16 group=1 shape=16,16"};
static const char *const masked_attentions[] = {"RowAttention 1x3x8 1x#x8 1x#x8 1x1x1x# group=2 shape=4,4 masked",
        "RowAttention 1x#x16 1x9x16 1x9x16 1x1x#x9 group=1 shape=16,16 masked"};
static const char *const quantizations[] = {"QuantizeLinear # scalar scalar:uint8 positive below:20",
        "DynamicQuantizeLinear # outputs:3", "QuantizeLinear # scalar scalar:int8 positive below:20",
        "QuantizeLinear 3x# scalar scalar:uint8 positive wide:0.01 below:20"};
static const char *const recurrences[] = {"LSTM 3x1x5 1x64x5 1x64x16 hidden_size=16 outputs:3 packed",
        "LSTM 3x2x5 1x36x5 1x36x9 hidden_size=9 outputs:3", "GRU 3x1x5 1x27x5 1x27x9 hidden_size=9 outputs:2",
        "RNN 3x1x5 1x9x5 1x9x9 hidden_size=9 outputs:2"};

Test(cpu_odd, an_attention_and_a_recurrence_take_one_in_each_row)
{
        check_widths(attentions, COUNT(attentions), NOT_TINY, 1);
        check_widths(masked_attentions, COUNT(masked_attentions), NOT_TINY, 1);
        for (size_t i = 0; i < COUNT(recurrences); i++)
                check_line(recurrences[i], NOT_TINY, 15);
}

/* Of few products, which may all be -0. */
static const char *const zero_recurrences[] = {"LSTM 3x2x1 1x64x1 1x64x16 hidden_size=16 outputs:3 packed",
        "LSTM 3x2x1 1x8x1 1x8x2 hidden_size=2 outputs:3", "LSTM 3x2x1 1x8x1 1x8x2 1x16 hidden_size=2 outputs:3 packed",
        "LSTM 3x2x1 1x4x1 1x4x1 1x8 _ 1x2x1 1x2x1 hidden_size=1 outputs:3",
        "LSTM 3x2x1 1x8x1 1x8x2 1x16 _ 1x2x2 1x2x2 1x6 hidden_size=2 outputs:3", "GRU 3x2x1 1x6x1 1x6x2 hidden_size=2 outputs:2",
        "GRU 3x2x1 1x3x1 1x3x1 1x6 _ 1x2x1 hidden_size=1 outputs:2",
        "GRU 3x2x1 1x6x1 1x6x2 1x12 _ 1x2x2 hidden_size=2 linear_before_reset=1 outputs:2 packed",
        "RNN 3x2x1 1x1x1 1x1x1 hidden_size=1 outputs:2", "RNN 3x2x1 1x2x1 1x2x2 1x4 _ 1x2x2 hidden_size=2 outputs:2 packed",
        "RNN 3x2x5 1x9x5 1x9x9 1x18 _ 1x2x9 hidden_size=9 outputs:2"};

Test(cpu_odd, a_recurrence_of_zeros_is_0_and_not_minus_0)
{
        char line[160];

        for (size_t i = 0; i < COUNT(zero_recurrences); i++) {
                snprintf(line, sizeof(line), "%s signs", zero_recurrences[i]);
                check_line(line, ZEROS, 100);
        }
}

/* Bytes are numbers, but what is added to their sums may be none. */
static const char *const byte_products[] = {"QuantizedMatMul 9x36:uint8 36x#:int8 # #:int32 x_zero=11 to=1 +residual",
        "QuantizedMatMul 9x37:uint8 37x#:int8 1 #:int32 to=1 +residual", "QuantizedMatMul 3x40:int8 40x#:int8 # _ to=1 +residual",
        "QuantizedConv 1x16x5x4:uint8 #x16x1x1:int8 # #:int32 to=1 nhwc +residual",
        "QuantizedConv 1x16x5x4:uint8 #x16x3x3:int8 # #:int32 pads=1,1,1,1 x_zero=9 to=1 nhwc +residual",
        "QuantizedConv 1x#x6x5:uint8 #x1x3x3:int8 # #:int32 group=# pads=1,1,1,1 to=1 nhwc +residual",
        "QuantizedConv 1x8x5x#:int8 24x4x3x3:int8 24 24:int32 group=2 pads=1,1,1,1 to=1 nhwc +residual"};

Test(cpu_odd, a_sum_of_bytes_takes_one_in_what_is_added)
{
        static const char *const ends_of_bytes[] = {
                "", "+relu", "+clip", "+sigmoid", "+gelu", "+hardswish", "+swish", "+relu6", "+tanh", "+leaky", "+elu"};
        char word[64];

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < COUNT(byte_products); i++)
                for (size_t k = 0; k < COUNT(widths); k++)
                        for (size_t e = (i + k) % 3; e < COUNT(ends_of_bytes); e += 3)
                                for (int algorithm = 0; algorithm < 3; algorithm++) {
                                        snprintf(word, sizeof(word), "%s packed positive algorithm=%d wide:0.01", ends_of_bytes[e],
                                                algorithm);
                                        check_form(byte_products[i], widths[k], word, KIND(ODD_MIXED), 4);
                                }
}

static const char *const scaled[] = {"QuantizeLinear 3x# scalar scalar:uint8 below:20",
        "QuantizeLinear 3x# scalar scalar:int8 below:20", "QuantizeLinear 3x# 3 3:uint8 axis=0 below:20",
        "DequantizeLinear 3x#:uint8 scalar scalar:uint8 below:20", "DequantizeLinear 3x#:int8 scalar scalar:int8 below:20",
        "DynamicQuantizeLinear # outputs:3"};

/* Scales that are no number or 0, and such whose reciprocal is infinite, of large numbers and of as small ones. */
Test(cpu_odd, a_quantization_takes_any_scale)
{
        static const char *const scales[] = {"second:nan", "second:inf", "second:0", "second:-0", "second:1e-39",
                "second:1e-39 wide:1e-39", "second:1e-45 wide:1e-44", "second:-0.1", "second:0 wide:0", "second:-inf"};
        char word[64];

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < COUNT(scaled); i++)
                for (size_t k = 0; k < COUNT(widths); k++)
                        for (size_t s = 0; s < COUNT(scales); s++) {
                                snprintf(word, sizeof(word), "%s signs", scales[s]);
                                check_form_whole(scaled[i], widths[k], word);
                        }
}

/* The number, not the scale. */
Test(cpu_odd, a_quantization_takes_one_in_each_place)
{
        check_widths(quantizations, COUNT(quantizations), NOT_TINY & ~KIND(ODD_MIXED), 2);
}
