/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of 8, 4 and 2 bits on the ref backend.
 */
#include "base/dtype.h"
#include "node_bench.h"
#include "ref/small.h"

#include <criterion/criterion.h>
#include <math.h>

/* The standard's largest numbers, and the smallest ones above 0. */
static const struct {
        uint32_t dtype;
        double most, least;
} limits[] = {
        {SL_DTYPE_F8E4M3FN, 448, 0x1p-9},
        {SL_DTYPE_F8E4M3FNUZ, 240, 0x1p-10},
        {SL_DTYPE_F8E5M2, 57344, 0x1p-16},
        {SL_DTYPE_F8E5M2FNUZ, 57344, 0x1p-17},
        {SL_DTYPE_F4E2M1, 6, 0.5},
        {SL_DTYPE_F8E8M0, 0x1p127, 0x1p-127},
};
#define N_LIMITS (sizeof(limits) / sizeof(*limits))

Test(small, numbers_come_back_as_they_went)
{
        for (size_t i = 0; i < N_LIMITS; i++)
                for (uint32_t code = 0; code < 1u << sl_dtype_bits(limits[i].dtype); code++) {
                        double value = sl_ref_from_small((uint8_t)code, limits[i].dtype);

                        if (isnan(value))
                                cr_expect(isnan(sl_ref_from_small(
                                        sl_ref_to_small(value, limits[i].dtype, true, SL_REF_ROUND_UP), limits[i].dtype)));
                        else
                                cr_expect_eq(sl_ref_to_small(value, limits[i].dtype, false, SL_REF_ROUND_UP), code, "%s 0x%x: %g",
                                        sl_dtype_name(limits[i].dtype), code, value);
                }
}

Test(small, numbers_end_where_the_standard_says)
{
        for (size_t i = 0; i < N_LIMITS; i++) {
                uint32_t dtype = limits[i].dtype;
                double most = sl_ref_from_small(sl_ref_to_small(1e30 * 1e30, dtype, true, 0), dtype);
                double beyond = sl_ref_from_small(sl_ref_to_small(limits[i].most * 4, dtype, false, 0), dtype);

                cr_expect_eq(most, limits[i].most, "%s: %g", sl_dtype_name(dtype), most);
                cr_expect_eq(sl_ref_from_small(sl_ref_to_small(limits[i].least, dtype, true, 0), dtype), limits[i].least);
                if (dtype == SL_DTYPE_F4E2M1)
                        cr_expect_eq(beyond, 6);
                else
                        cr_expect(dtype == SL_DTYPE_F8E5M2 ? isinf(beyond) : isnan(beyond), "%s: %g", sl_dtype_name(dtype), beyond);
        }
}

Test(small, numbers_round_to_the_nearest_and_ties_to_even)
{
        static const struct {
                uint32_t dtype;
                double value, rounded;
        } cases[] = {{SL_DTYPE_F8E4M3FN, 17, 16}, {SL_DTYPE_F8E4M3FN, 19, 20}, {SL_DTYPE_F8E4M3FN, 464, 448},
                {SL_DTYPE_F8E4M3FN, 480, 448}, {SL_DTYPE_F8E5M2, 65536, 57344}, {SL_DTYPE_F8E5M2, 9, 8}, {SL_DTYPE_F8E5M2, 11, 12},
                {SL_DTYPE_F4E2M1, 2.5, 2}, {SL_DTYPE_F4E2M1, 5, 4}, {SL_DTYPE_F4E2M1, -0.25, 0}, {SL_DTYPE_F8E4M3FN, 0x1p-10, 0},
                {SL_DTYPE_F8E4M3FN, 0x1.8p-9, 0x1p-8}};

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                cr_expect_eq(sl_ref_from_small(sl_ref_to_small(cases[i].value, cases[i].dtype, true, 0), cases[i].dtype),
                        cases[i].rounded, "%g", cases[i].value);
}

Test(small, powers_round_as_they_are_told)
{
        static const double value[] = {2.5, 3, 3.5}, rounded[3][3] = {{4, 4, 4}, {2, 2, 2}, {2, 4, 4}};

        for (int64_t mode = 0; mode < 3; mode++)
                for (int i = 0; i < 3; i++)
                        cr_expect_eq(sl_ref_from_small(sl_ref_to_small(value[i], SL_DTYPE_F8E8M0, true, mode), SL_DTYPE_F8E8M0),
                                rounded[mode][i]);
}

/* A client may put anything into the bits that do not count. */
Test(small, integers_are_their_low_bits)
{
        static const uint32_t dtypes[] = {SL_DTYPE_U4, SL_DTYPE_I4, SL_DTYPE_U2, SL_DTYPE_I2};
        static const float wanted[4][2] = {{9, 7}, {-7, 7}, {1, 3}, {1, -1}};
        const uint8_t bytes[2] = {0xf9, 0x67};
        float y[2];

        for (int i = 0; i < 4; i++) {
                struct sl_node_desc node = bench_node(SL_OP_CAST);

                bench_input(&node, dtypes[i], SHAPE(2));
                sl_attrs_set_int(&node.attrs, SL_ATTR_TO, SL_DTYPE_F32);
                cr_assert_eq(bench_run(&node, INPUTS(bytes), (void *[]){y}), 0);
                cr_expect(y[0] == wanted[i][0] && y[1] == wanted[i][1], "%g %g", (double)y[0], (double)y[1]);
        }
}
