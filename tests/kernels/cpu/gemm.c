/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The own matrix product: every count of rows and columns around its blocks, strides, bias, residual, activations. Each row of c is
 * followed by a guard, each matrix ends where its memory ends, so that a sanitizer sees a read beyond it.
 */
#include "cpu/gemm/gemm.h"
#include "base/dtype.h"
#include "cpu/base/bfloat16.h"
#include "cpu/base/float16.h"
#include "cpu/base/isa.h"
#include "cpu/gemm/epilogue.h"

#include "target.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define GUARD 77.0f

static float *random_floats(int64_t n, uint32_t seed)
{
        float *floats = malloc((size_t)n * sizeof(float) + 1);

        for (int64_t i = 0; i < n; i++) {
                seed = seed * 1664525u + 1013904223u;
                floats[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
        }
        return floats;
}

static double activate(const struct sl_cpu_epilogue *epilogue, double x)
{
        double a = (double)epilogue->act_a;

        x = fmin((double)epilogue->most, fmax((double)epilogue->least, x));
        switch (epilogue->activation) {
        case SL_ACT_SIGMOID:
                return 1 / (1 + exp(-x));
        case SL_ACT_TANH:
                return tanh(x);
        case SL_ACT_LEAKY_RELU:
                return x < 0 ? a * x : x;
        case SL_ACT_HARD_SWISH:
                return x * fmax(0, fmin(1, x / 6 + 0.5));
        case SL_ACT_SWISH:
                return x / (1 + exp(-a * x));
        case SL_ACT_GELU_ERF:
                return x * 0.5 * erfc(-x / sqrt(2));
        case SL_ACT_ELU:
                return x < 0 ? a * expm1(x) : x;
        default:
                return x;
        }
}

static void check(int64_t rows, int64_t depth, int64_t columns, int64_t spare, const struct sl_cpu_epilogue *epilogue)
{
        int64_t a_stride = depth + spare, c_stride = columns + spare + 1;
        float *a = random_floats((rows - 1) * a_stride + depth, 1), *b = random_floats(depth * columns, 2);
        float *bias = random_floats(columns, 3), *residual = random_floats((rows - 1) * c_stride + columns, 4);
        float *packed = malloc((size_t)sl_gemm_packed_floats(depth, columns) * sizeof(float));
        float *c = malloc((size_t)(rows * c_stride) * sizeof(float));
        struct sl_gemm gemm = {.a = a,
                .b = packed,
                .c = c,
                .rows = rows,
                .depth = depth,
                .columns = columns,
                .a_stride = a_stride,
                .c_stride = c_stride,
                .bias = epilogue ? bias : NULL,
                .residual = epilogue && epilogue->has_residual ? residual : NULL,
                .residual_stride = c_stride,
                .epilogue = epilogue};

        for (int64_t i = 0; i < rows * c_stride; i++)
                c[i] = GUARD;
        sl_gemm_pack(b, depth, columns, 1, depth, packed);
        sl_gemm_run(&gemm);
        for (int64_t m = 0; m < rows; m++)
                for (int64_t n = 0; n < c_stride; n++) {
                        double sum = gemm.bias && n < columns ? (double)bias[n] : 0, got = (double)c[m * c_stride + n];

                        for (int64_t k = 0; k < depth && n < columns; k++)
                                sum += (double)a[m * a_stride + k] * (double)b[n * depth + k];
                        if (gemm.residual && n < columns)
                                sum += (double)residual[m * c_stride + n];
                        sum = n >= columns ? (double)GUARD : epilogue ? activate(epilogue, sum) : sum;
                        cr_assert_float_eq(got, sum, 1e-6 * (double)(depth + 4), "%d x %d x %d: (%d, %d) is %g, not %g", (int)rows,
                                (int)depth, (int)columns, (int)m, (int)n, got, sum);
                }
        free(a);
        free(b);
        free(c);
        free(bias);
        free(residual);
        free(packed);
}

Test(cpu_gemm, every_count_of_rows_and_columns_gives_the_product)
{
        static const int64_t columns[] = {1, 15, 16, 17, 31, 32, 33, 48, 64, 65, 96, 130, 144};
        static const int64_t depths[] = {1, 3, 4, 7, 24};

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (int64_t rows = 1; rows <= 30; rows++)
                for (size_t n = 0; n < sizeof(columns) / sizeof(columns[0]); n++)
                        check(rows, depths[(size_t)rows % 5], columns[n], rows % 3, NULL);
        check(200, 1500, 100, 0, NULL);
        check(3, 1500, 700, 0, NULL);
        check(31, 2500, 75, 1, NULL);
        /* Several blocks of rows at a time, more than once. */
        check(300, 60, 90, 1, NULL);
        check(601, 16, 24, 0, NULL);
}

Test(cpu_gemm, the_epilogue_is_bias_residual_and_activation_in_this_order)
{
        static const struct sl_cpu_epilogue epilogues[] = {{-INFINITY, INFINITY, SL_ACT_NONE, 0, false},
                {-INFINITY, INFINITY, SL_ACT_NONE, 0, true}, {0, INFINITY, SL_ACT_NONE, 0, true},
                {-0.5f, 0.25f, SL_ACT_NONE, 0, false}, {-INFINITY, INFINITY, SL_ACT_SIGMOID, 0, true},
                {-INFINITY, INFINITY, SL_ACT_TANH, 0, false}, {-INFINITY, INFINITY, SL_ACT_LEAKY_RELU, 0.1f, false},
                {-INFINITY, INFINITY, SL_ACT_HARD_SWISH, 0, true}, {-INFINITY, INFINITY, SL_ACT_SWISH, 1.5f, false},
                {-INFINITY, INFINITY, SL_ACT_ELU, 0.75f, false}, {-INFINITY, INFINITY, SL_ACT_GELU_ERF, 0, true},
                {-INFINITY, 0.5f, SL_ACT_NONE, 0, true}};

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (size_t i = 0; i < sizeof(epilogues) / sizeof(epilogues[0]); i++) {
                check(17, 9, 53, 2, &epilogues[i]);
                check(5, 30, 80, 0, &epilogues[i]);
                check(16, 1300, 110, 3, &epilogues[i]);
        }
}

/* However the loops are cut: by all panels at once, by one after the other, in parts of the depth. */
Test(cpu_gemm, where_the_matrix_comes_from_changes_no_bits)
{
        static const int64_t shapes[][3] = {{40, 60, 90}, {300, 60, 90}, {270, 16, 33}, {45, 1300, 110}, {14, 700, 256}};

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
                int64_t rows = shapes[i][0], depth = shapes[i][1], columns = shapes[i][2];
                float *a = random_floats(rows * depth, 7), *b = random_floats(sl_gemm_packed_floats(depth, columns), 8);
                float *near = random_floats(rows * columns, 9), *far = random_floats(rows * columns, 10);
                struct sl_gemm gemm = {.a = a, .b = b, .c = near, .rows = rows, .depth = depth, .columns = columns};

                gemm.a_stride = depth;
                gemm.c_stride = columns;
                sl_gemm_run(&gemm);
                gemm.c = far;
                gemm.streams = true;
                sl_gemm_run(&gemm);
                cr_expect_arr_eq(near, far, (size_t)(rows * columns) * sizeof(float), "shape %d", (int)i);
                free(a);
                free(b);
                free(near);
                free(far);
        }
}

Test(cpu_gemm, a_residual_may_lie_where_the_result_comes)
{
        static const int64_t shapes[][3] = {{40, 60, 90}, {45, 1300, 110}, {100, 2400, 70}};

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
                int64_t rows = shapes[i][0], depth = shapes[i][1], columns = shapes[i][2];
                float *a = random_floats(rows * depth, 11), *b = random_floats(sl_gemm_packed_floats(depth, columns), 12);
                float *apart = random_floats(rows * columns, 13), *on = random_floats(rows * columns, 14);
                float *residual = random_floats(rows * columns, 14);
                struct sl_gemm gemm = {.a = a, .b = b, .c = apart, .rows = rows, .depth = depth, .columns = columns};

                gemm.a_stride = depth;
                gemm.c_stride = gemm.residual_stride = columns;
                gemm.residual = residual;
                sl_gemm_run(&gemm);
                gemm.c = on;
                gemm.residual = on;
                sl_gemm_run(&gemm);
                cr_expect_arr_eq(apart, on, (size_t)(rows * columns) * sizeof(float), "shape %d", (int)i);
                free(a);
                free(b);
                free(apart);
                free(on);
                free(residual);
        }
}

Test(cpu_gemm, a_row_has_the_same_bits_among_any_number_of_rows)
{
        enum { ROWS = 20, DEPTH = 70, COLUMNS = 150 };
        float *a, *b, packed[DEPTH * 160], one[COLUMNS], all[ROWS * COLUMNS];

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        a = random_floats(ROWS * DEPTH, 5);
        b = random_floats(DEPTH * COLUMNS, 6);
        sl_gemm_pack(b, DEPTH, COLUMNS, COLUMNS, 1, packed);
        for (int64_t rows = 1; rows <= ROWS; rows++) {
                struct sl_gemm gemm = {.a = a, .b = packed, .c = all, .rows = rows, .depth = DEPTH, .columns = COLUMNS};

                gemm.a_stride = DEPTH;
                gemm.c_stride = COLUMNS;
                sl_gemm_run(&gemm);
                gemm.rows = 1;
                gemm.a = a + (rows - 1) * DEPTH;
                gemm.c = one;
                sl_gemm_run(&gemm);
                cr_expect_arr_eq(one, all + (rows - 1) * COLUMNS, sizeof(one), "row %d", (int)rows);
        }
        free(a);
        free(b);
}

/* The same product, of a matrix in halves and of the same numbers in float32. */
static void check_narrow(uint32_t dtype, const int64_t shape[3], bool streams, struct sl_gemm_reading reading)
{
        static const struct sl_cpu_epilogue epilogue = {-INFINITY, 0.75f, SL_ACT_GELU_ERF, 0, true};
        int64_t rows = shape[0], depth = shape[1], columns = shape[2], elements = sl_gemm_packed_floats(depth, columns);
        float *a = random_floats(rows * depth, 21), *b = random_floats(depth * columns, 22), *bias = random_floats(columns, 23);
        float *wide = malloc((size_t)elements * sizeof(*wide)), *want = random_floats(rows * columns, 24);
        float *got = random_floats(rows * columns, 25);
        uint16_t *narrow = malloc((size_t)elements * sizeof(*narrow));
        struct sl_gemm gemm = {.a = a, .b = wide, .c = want, .rows = rows, .depth = depth, .columns = columns, .bias = bias};

        gemm.a_stride = depth;
        gemm.c_stride = columns;
        gemm.streams = streams;
        gemm.epilogue = &epilogue;
        cr_assert_eq(sl_gemm_pack_narrow(b, depth, columns, columns, 1, dtype, narrow), 0);
        for (int64_t i = 0; i < elements; i++)
                wide[i] = dtype == SL_DTYPE_F16 ? sl_widen_f16(narrow[i]) : sl_widen_bf16(narrow[i]);
        sl_gemm_run(&gemm);
        gemm.b = NULL;
        gemm.narrow = narrow;
        gemm.narrow_dtype = dtype;
        gemm.reading = reading;
        gemm.c = got;
        sl_gemm_run(&gemm);
        cr_expect_arr_eq(want, got, (size_t)(rows * columns) * sizeof(float), "%s, %d x %d x %d", sl_dtype_name(dtype), (int)rows,
                (int)depth, (int)columns);
        free(a);
        free(b);
        free(bias);
        free(wide);
        free(want);
        free(got);
        free(narrow);
}

Test(cpu_gemm, halves_give_the_bits_of_the_same_numbers_in_float32)
{
        static const int64_t columns[] = {1, 16, 17, 33, 64, 130, 144};
        static const int64_t large[][3] = {{1, 700, 1000}, {2, 1300, 500}, {4, 700, 1000}, {6, 700, 1000}, {14, 700, 1000},
                {40, 1500, 200}, {300, 60, 90}, {45, 1300, 110}};

        if (!sl_cpu_has_f16c())
                cr_skip_test("this processor does not widen float16");
        for (uint32_t i = 0; i < 2; i++) {
                uint32_t dtype = i ? SL_DTYPE_BF16 : SL_DTYPE_F16;

                for (int64_t rows = 1; rows <= 30; rows++)
                        for (size_t n = 0; n < sizeof(columns) / sizeof(columns[0]); n++)
                                check_narrow(dtype, (int64_t[]){rows, 3 + rows % 5, columns[n]}, rows % 2, (struct sl_gemm_reading){0});
                for (size_t k = 0; k < sizeof(large) / sizeof(large[0]); k++)
                        check_narrow(dtype, large[k], k % 4 != 3, (struct sl_gemm_reading){0});
        }
}

/* Columns of a matrix in halves that no L2 cache holds, and some that fill no panel. */
Test(cpu_gemm, how_a_matrix_that_passes_is_read_changes_no_bits)
{
        enum { DEPTH = 1024 };
        int64_t columns = sl_gemm_resident_bytes() / (DEPTH * (int64_t)sizeof(uint16_t)) + 150;

        if (!sl_cpu_has_f16c())
                cr_skip_test("this processor does not widen float16");
        for (int64_t rows = 1; rows <= SL_GEMM_PASSING_ROWS; rows++) {
                cr_assert(sl_gemm_passes(rows, DEPTH * columns * (int64_t)sizeof(uint16_t)));
                for (uint32_t i = 0; i < 4; i++)
                        check_narrow(i & 1 ? SL_DTYPE_BF16 : SL_DTYPE_F16, (int64_t[]){rows, DEPTH, columns}, true,
                                (struct sl_gemm_reading){.abreast = i & 1, .fetched = i & 2});
        }
}

Test(cpu_gemm, what_gains_as_much_as_noise_is_not_read_so)
{
        struct sl_core_figures core = sl_target_typical.core;
        struct sl_gemm_reading reading = sl_gemm_reading(&core);

        cr_expect(!reading.abreast && !reading.fetched);
        core.abreast = core.fetched = 1.1;
        reading = sl_gemm_reading(&core);
        cr_expect(reading.abreast && reading.fetched);
        reading = sl_gemm_reading(NULL);
        cr_expect(!reading.abreast && !reading.fetched, "nobody measured");
}

Test(cpu_gemm, a_number_that_float16_has_no_room_for_is_refused)
{
        const float last = 65519.0f, first = 65520.0f, infinite = INFINITY;
        uint16_t packed[16];

        cr_expect_eq(sl_gemm_pack_narrow(&last, 1, 1, 1, 1, SL_DTYPE_F16, packed), 0);
        cr_expect_eq(sl_gemm_pack_narrow(&first, 1, 1, 1, 1, SL_DTYPE_F16, packed), -ERANGE);
        cr_expect_eq(sl_gemm_pack_narrow(&first, 1, 1, 1, 1, SL_DTYPE_BF16, packed), 0);
        cr_expect_eq(sl_gemm_pack_narrow(&infinite, 1, 1, 1, 1, SL_DTYPE_F16, packed), 0);
}
