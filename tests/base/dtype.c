/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include <criterion/criterion.h>
#include <string.h>

Test(dtype, each_type_has_onnx_number_name_and_size)
{
        cr_expect_eq(SL_DTYPE_F32, 1);
        cr_expect_eq(SL_DTYPE_I64, 7);
        cr_expect_eq(SL_DTYPE_BF16, 16);
#define X(id, number, name, bytes)                                                                                                 \
        cr_expect_eq(sl_dtype_bytes(number), bytes);                                                                               \
        cr_expect_str_eq(sl_dtype_name(number), name);
        SL_DTYPES(X)
#undef X
}

Test(dtype, a_number_that_is_no_type_has_no_bytes)
{
        const uint32_t none[] = {0, 8, 14, 15, 27, 255, UINT32_MAX};

        for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
                cr_expect_eq(sl_dtype_bytes(none[i]), 0);
                cr_expect_str_eq(sl_dtype_name(none[i]), "unknown");
                cr_expect_not(sl_dtype_is_float(none[i]));
        }
}

Test(dtype, floats_are_those_whose_bits_may_be_anything)
{
        int floats = 0;

        for (uint32_t i = 0; i < SL_DTYPE_LIMIT; i++)
                floats += sl_dtype_is_float(i) != 0;
        cr_expect_eq(floats, 10);
        cr_expect(sl_dtype_is_float(SL_DTYPE_F32) && sl_dtype_is_float(SL_DTYPE_BF16));
        cr_expect_not(sl_dtype_is_float(SL_DTYPE_BOOL));
        cr_expect_not(sl_dtype_is_float(SL_DTYPE_U4) || sl_dtype_is_float(SL_DTYPE_I2));
}

Test(dtype, small_ones_take_a_byte_of_which_fewer_bits_may_count)
{
        for (uint32_t i = 0; i < SL_DTYPE_LIMIT; i++) {
                cr_expect_eq(sl_dtype_is_small(i) != 0, i >= 17);
                cr_expect_eq(sl_dtype_bits(i), i == 21 || i == 22 || i == 23 ? 4u : i >= 25 ? 2u : 8 * sl_dtype_bytes(i));
        }
}
