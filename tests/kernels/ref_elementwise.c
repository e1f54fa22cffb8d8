/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ref kernels that work element by element.
 */
#include "node_bench.h"

#include <math.h>

static struct sl_node_desc unary(enum sl_op op)
{
        struct sl_node_desc node = bench_node(op);

        bench_input(&node, SL_DTYPE_F32, SHAPE(3));
        return node;
}

Test(unary, has_every_function)
{
        const struct {
                enum sl_op op;
                float want[3]; /* at -1.5, 0.5 and 2 */
        } cases[] = {
                {SL_OP_RELU, {0, 0.5f, 2}},
                {SL_OP_LEAKY_RELU, {-0.015f, 0.5f, 2}},
                {SL_OP_ELU, {-0.77686984f, 0.5f, 2}},
                {SL_OP_SIGMOID, {0.18242552f, 0.62245933f, 0.88079708f}},
                {SL_OP_HARD_SIGMOID, {0.2f, 0.6f, 0.9f}},
                {SL_OP_HARD_SWISH, {-0.375f, 0.29166667f, 1.6666667f}},
                {SL_OP_TANH, {-0.90514825f, 0.46211716f, 0.96402758f}},
                {SL_OP_SOFTPLUS, {0.20141328f, 0.97407698f, 2.126928f}},
                {SL_OP_GELU, {-0.10021079f, 0.34573123f, 1.9544997f}},
                {SL_OP_ERF, {-0.96610515f, 0.52049988f, 0.99532227f}},
                {SL_OP_EXP, {0.22313016f, 1.6487213f, 7.3890561f}},
                {SL_OP_LOG, {NAN, -0.69314718f, 0.69314718f}},
                {SL_OP_SQRT, {NAN, 0.70710678f, 1.4142136f}},
                {SL_OP_RECIPROCAL, {-0.66666667f, 2, 0.5f}},
                {SL_OP_NEG, {1.5f, -0.5f, -2}},
                {SL_OP_ABS, {1.5f, 0.5f, 2}},
                {SL_OP_FLOOR, {-2, 0, 2}},
                {SL_OP_CEIL, {-1, 1, 2}},
                {SL_OP_ROUND, {-2, 0, 2}},
                {SL_OP_SIGN, {-1, 1, 1}},
                {SL_OP_SIN, {-0.99749499f, 0.47942554f, 0.90929743f}},
                {SL_OP_COS, {0.070737202f, 0.87758256f, -0.41614684f}},
                {SL_OP_IDENTITY, {-1.5f, 0.5f, 2}},
                {SL_OP_CLIP, {-1.5f, 0.5f, 2}},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct sl_node_desc node = unary(cases[i].op);

                bench_expect_floats(&node, INPUTS(FLOATS(-1.5f, 0.5f, 2)), cases[i].want, 3, 1e-6);
        }
}

Test(unary, gelu_by_tanh_differs_from_erf)
{
        struct sl_node_desc node = unary(SL_OP_GELU);

        sl_attrs_set_int(&node.attrs, SL_ATTR_APPROXIMATE, 1);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(-1.5f, 0.5f, 2)), -0.10042847f, 0.34571401f, 1.9545977f);
}

Test(unary, reads_its_attributes)
{
        struct sl_node_desc node = unary(SL_OP_HARD_SIGMOID);

        sl_attrs_set_float(&node.attrs, SL_ATTR_ALPHA, 1);
        sl_attrs_set_float(&node.attrs, SL_ATTR_BETA, 0.25);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(-1, 0.5f, 1)), 0, 0.75f, 1);
        node = unary(SL_OP_CLIP);
        sl_attrs_set_float(&node.attrs, SL_ATTR_MIN, 0);
        sl_attrs_set_float(&node.attrs, SL_ATTR_MAX, 6);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(-1, NAN, 7)), 0, NAN, 6);
        node.inputs[0].dtype = SL_DTYPE_I8;
        EXPECT_ELEMENTS(&node, INPUTS(((int8_t[]){-128, 5, 7})), int8_t, 0, 5, 6);
}

Test(unary, wraps_integers)
{
        struct sl_node_desc node = unary(SL_OP_NEG);

        node.inputs[0].dtype = SL_DTYPE_I64;
        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){INT64_MIN, 0, 7})), int64_t, INT64_MIN, 0, -7);
        node.op = SL_OP_ABS;
        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){INT64_MIN, -1, 7})), int64_t, INT64_MIN, 1, 7);
        node.inputs[0].dtype = SL_DTYPE_U8;
        EXPECT_ELEMENTS(&node, INPUTS(((uint8_t[]){200, 0, 7})), uint8_t, 200, 0, 7);
}

Test(logic, takes_any_nonzero_byte_for_true)
{
        struct sl_node_desc node = unary(SL_OP_NOT);

        node.inputs[0].dtype = SL_DTYPE_BOOL;
        EXPECT_ELEMENTS(&node, INPUTS(((uint8_t[]){0, 1, 77})), uint8_t, 1, 0, 0);
        node.op = SL_OP_AND;
        bench_input(&node, SL_DTYPE_BOOL, SHAPE(3));
        EXPECT_ELEMENTS(&node, INPUTS(((uint8_t[]){0, 1, 77}), ((uint8_t[]){1, 2, 0})), uint8_t, 0, 1, 0);
        node.op = SL_OP_OR;
        EXPECT_ELEMENTS(&node, INPUTS(((uint8_t[]){0, 1, 77}), ((uint8_t[]){0, 2, 0})), uint8_t, 0, 1, 1);
}

static struct sl_node_desc binary(enum sl_op op, enum sl_dtype dtype)
{
        struct sl_node_desc node = bench_node(op);

        bench_input(&node, dtype, SHAPE(2, 2));
        bench_input(&node, dtype, SHAPE(2));
        return node;
}

Test(arithmetic, broadcasts)
{
        struct sl_node_desc node = binary(SL_OP_ADD, SL_DTYPE_F32);

        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4), FLOATS(10, 20)), 11, 22, 13, 24);
        node.inputs[1].shape = SHAPE(2, 1);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4), FLOATS(10, 20)), 11, 12, 23, 24);
        node.inputs[1].shape = SHAPE(3, 1, 1);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4), FLOATS(10, 20, 30)), 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34);
}

Test(arithmetic, has_every_function)
{
        struct sl_node_desc node = binary(SL_OP_SUB, SL_DTYPE_F32);
        const void *const *inputs = INPUTS(FLOATS(1, 2, -3, 4), FLOATS(2, -4));

        EXPECT_FLOATS(&node, inputs, -1, 6, -5, 8);
        node.op = SL_OP_MUL;
        EXPECT_FLOATS(&node, inputs, 2, -8, -6, -16);
        node.op = SL_OP_DIV;
        EXPECT_FLOATS(&node, inputs, 0.5f, -0.5f, -1.5f, -1);
        node.op = SL_OP_POW;
        EXPECT_FLOATS(&node, inputs, 1, 0.0625f, 9, 0.00390625f);
        node.op = SL_OP_MIN;
        EXPECT_FLOATS(&node, inputs, 1, -4, -3, -4);
        node.op = SL_OP_MAX;
        EXPECT_FLOATS(&node, inputs, 2, 2, 2, 4);
        node.op = SL_OP_MEAN;
        EXPECT_FLOATS(&node, inputs, 1.5f, -1, -0.5f, 0);
}

Test(arithmetic, folds_many_inputs_and_keeps_a_nan)
{
        struct sl_node_desc node = binary(SL_OP_SUM, SL_DTYPE_F32);
        const void *const *inputs = INPUTS(FLOATS(1, 2, 3, 4), FLOATS(10, NAN), FLOATS(100));

        bench_input(&node, SL_DTYPE_F32, SCALAR);
        EXPECT_FLOATS(&node, inputs, 111, NAN, 113, NAN);
        node.op = SL_OP_MAX;
        EXPECT_FLOATS(&node, inputs, 100, NAN, 100, NAN);
}

Test(arithmetic, of_integers_never_traps)
{
        struct sl_node_desc node = binary(SL_OP_DIV, SL_DTYPE_I32);

        EXPECT_ELEMENTS(&node, INPUTS(((int32_t[]){INT32_MIN, 7, -7, 1}), ((int32_t[]){-1, 0})), int32_t, INT32_MIN, 0, 7, 0);
        node.inputs[0].dtype = node.inputs[1].dtype = SL_DTYPE_I64;
        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){INT64_MIN, -7, 0, 9}), ((int64_t[]){-1, 2})), int64_t, INT64_MIN, -3, 0, 4);
        node.inputs[0].dtype = node.inputs[1].dtype = SL_DTYPE_U8;
        EXPECT_ELEMENTS(&node, INPUTS(((uint8_t[]){255, 7, 0, 9}), ((uint8_t[]){2, 0})), uint8_t, 127, 0, 0, 0);
        node.op = SL_OP_ADD;
        EXPECT_ELEMENTS(&node, INPUTS(((uint8_t[]){255, 7, 0, 9}), ((uint8_t[]){2, 255})), uint8_t, 1, 6, 2, 8);
        node.op = SL_OP_MAX;
        EXPECT_ELEMENTS(&node, INPUTS(((uint8_t[]){255, 7, 0, 9}), ((uint8_t[]){2, 200})), uint8_t, 255, 200, 2, 200);
}

Test(power, of_integers_wraps_and_knows_negative_exponents)
{
        struct sl_node_desc node = binary(SL_OP_POW, SL_DTYPE_I64);

        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){3, 2, -1, -1}), ((int64_t[]){4, -3})), int64_t, 81, 0, 1, -1);
        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){2, 1, 0, 0}), ((int64_t[]){64, -1})), int64_t, 0, 1, 0, 0);
        node.inputs[1].dtype = SL_DTYPE_F32;
        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){9, 2, 10, 4}), FLOATS(0.5f, 2)), int64_t, 3, 4, 3, 16);
}

Test(prelu, has_a_slope_per_channel)
{
        struct sl_node_desc node = bench_node(SL_OP_PRELU);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 2, 2));
        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 1));
        EXPECT_FLOATS(&node, INPUTS(FLOATS(-1, 1, -2, 2), FLOATS(0.5f, 3)), -0.5f, 1, -6, 2);
}

Test(comparison, orders_floats_integers_and_nan)
{
        struct sl_node_desc node = binary(SL_OP_LESS, SL_DTYPE_F32);
        const void *const *inputs = INPUTS(FLOATS(1, 2, 3, NAN), FLOATS(2, 2));

        EXPECT_ELEMENTS(&node, inputs, uint8_t, 1, 0, 0, 0);
        node.op = SL_OP_LESS_OR_EQUAL;
        EXPECT_ELEMENTS(&node, inputs, uint8_t, 1, 1, 0, 0);
        node.op = SL_OP_GREATER;
        EXPECT_ELEMENTS(&node, inputs, uint8_t, 0, 0, 1, 0);
        node.op = SL_OP_GREATER_OR_EQUAL;
        EXPECT_ELEMENTS(&node, inputs, uint8_t, 0, 1, 1, 0);
        node.op = SL_OP_EQUAL;
        EXPECT_ELEMENTS(&node, inputs, uint8_t, 0, 1, 0, 0);
        node = binary(SL_OP_LESS, SL_DTYPE_I64);
        /* Neighbours that a double cannot tell apart. */
        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){INT64_MAX - 1, -1, 0, 1}), ((int64_t[]){INT64_MAX, 0})), uint8_t, 1, 1, 1, 0);
        node = binary(SL_OP_LESS, SL_DTYPE_U64);
        EXPECT_ELEMENTS(&node, INPUTS(((uint64_t[]){UINT64_MAX, 0, 1, 2}), ((uint64_t[]){1, 1})), uint8_t, 0, 1, 0, 0);
}

Test(where, picks_by_element)
{
        struct sl_node_desc node = bench_node(SL_OP_WHERE);

        bench_input(&node, SL_DTYPE_BOOL, SHAPE(2, 1));
        bench_input(&node, SL_DTYPE_I64, SHAPE(2));
        bench_input(&node, SL_DTYPE_I64, SCALAR);
        EXPECT_ELEMENTS(&node, INPUTS(((uint8_t[]){9, 0}), ((int64_t[]){1, 2}), ((int64_t[]){-5})), int64_t, 1, 2, -5, -5);
}

static struct sl_node_desc cast(enum sl_dtype from, enum sl_dtype to, int64_t elements)
{
        struct sl_node_desc node = bench_node(SL_OP_CAST);

        bench_input(&node, from, SHAPE(elements));
        sl_attrs_set_int(&node.attrs, SL_ATTR_TO, to);
        return node;
}

Test(cast, saturates_floats_that_do_not_fit)
{
        const void *const *inputs = INPUTS(FLOATS(-1e30f, -1.9f, 1.9f, 1e30f, NAN));
        struct sl_node_desc node = cast(SL_DTYPE_F32, SL_DTYPE_I8, 5);

        EXPECT_ELEMENTS(&node, inputs, int8_t, -128, -1, 1, 127, 0);
        node = cast(SL_DTYPE_F32, SL_DTYPE_U8, 5);
        EXPECT_ELEMENTS(&node, inputs, uint8_t, 0, 0, 1, 255, 0);
        node = cast(SL_DTYPE_F32, SL_DTYPE_I64, 5);
        EXPECT_ELEMENTS(&node, inputs, int64_t, INT64_MIN, -1, 1, INT64_MAX, 0);
        node = cast(SL_DTYPE_F32, SL_DTYPE_U64, 5);
        EXPECT_ELEMENTS(&node, inputs, uint64_t, 0, 0, 1, UINT64_MAX, 0);
        node = cast(SL_DTYPE_F32, SL_DTYPE_BOOL, 5);
        EXPECT_ELEMENTS(&node, inputs, uint8_t, 1, 1, 1, 1, 1);
}

Test(cast, wraps_integers_and_rounds_them_once)
{
        struct sl_node_desc node = cast(SL_DTYPE_I32, SL_DTYPE_U8, 3);

        EXPECT_ELEMENTS(&node, INPUTS(((int32_t[]){-1, 256, 300})), uint8_t, 255, 0, 44);
        node = cast(SL_DTYPE_I64, SL_DTYPE_F32, 1);
        /* By way of double this would become a tie, and then the even neighbour below. */
        EXPECT_FLOATS(&node, INPUTS(((int64_t[]){(1ll << 60) + (1ll << 36) + 1})), 0x1.000002p60f);
        node = cast(SL_DTYPE_BOOL, SL_DTYPE_F32, 2);
        EXPECT_FLOATS(&node, INPUTS(((uint8_t[]){0, 9})), 0, 1);
}

Test(cast, to_float16_rounds_to_nearest_even)
{
        struct sl_node_desc node = cast(SL_DTYPE_F32, SL_DTYPE_F16, 8);

        /* 1, the largest, what rounds down to it, what rounds up to infinity, the least subnormal, half of it, -0, NaN. */
        EXPECT_ELEMENTS(&node, INPUTS(FLOATS(1, 65504, 65519, 65520, 0x1p-24f, 0x1p-25f, -0.0f, NAN)), uint16_t, 0x3c00, 0x7bff,
                0x7bff, 0x7c00, 0x0001, 0x0000, 0x8000, 0x7e00);
        EXPECT_ELEMENTS(&node, INPUTS(FLOATS(2049, 2051, -2, 0x1p-14f, 0x1.ff8p-15f, 0x1.ffep-15f, INFINITY, -INFINITY)), uint16_t,
                0x6800, 0x6802, 0xc000, 0x0400, 0x03ff, 0x0400, 0x7c00, 0xfc00);
}

Test(cast, there_and_back_keeps_every_float16_and_bfloat16)
{
        for (int which = 0; which < 2; which++) {
                enum sl_dtype half = which ? SL_DTYPE_BF16 : SL_DTYPE_F16;
                unsigned infinity = which ? 0x7f80 : 0x7c00;

                for (unsigned bits = 0; bits < 0x10000; bits += 4093) {
                        struct sl_node_desc there = cast(half, SL_DTYPE_F32, 1), back = cast(SL_DTYPE_F32, half, 1);
                        uint16_t in = (uint16_t)bits, out;
                        float middle;

                        if ((bits & 0x7fff) > infinity)
                                continue;
                        cr_assert_eq(bench_run(&there, INPUTS(&in), (void *[]){&middle}), 0);
                        cr_assert_eq(bench_run(&back, INPUTS(&middle), (void *[]){&out}), 0);
                        cr_assert_eq(in, out, "%04x became %04x by way of %g", in, out, (double)middle);
                }
        }
}
