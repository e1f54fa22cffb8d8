/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ref kernels that reduce axes.
 */
#include "node_bench.h"

#include <math.h>

static struct sl_node_desc reduce(enum sl_op op, enum sl_dtype dtype, struct sl_shape x)
{
        struct sl_node_desc node = bench_node(op);

        bench_input(&node, dtype, x);
        return node;
}

Test(reduce, has_every_function)
{
        const struct {
                enum sl_op op;
                float want[2]; /* of {-1, 2, 4} and {3, 0.5, -2} */
        } cases[] = {
                {SL_OP_REDUCE_MEAN, {5.0f / 3, 0.5f}},
                {SL_OP_REDUCE_SUM, {5, 1.5f}},
                {SL_OP_REDUCE_MAX, {4, 3}},
                {SL_OP_REDUCE_MIN, {-1, -2}},
                {SL_OP_REDUCE_PROD, {-8, -3}},
                {SL_OP_REDUCE_L1, {7, 5.5f}},
                {SL_OP_REDUCE_L2, {4.5825757f, 3.6400549f}},
                {SL_OP_REDUCE_SUM_SQUARE, {21, 13.25f}},
                {SL_OP_REDUCE_LOG_SUM_EXP, {4.1328454f, 3.0850973f}},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct sl_node_desc node = reduce(cases[i].op, SL_DTYPE_F32, SHAPE(2, 3));

                BENCH_INTS(&node, SL_ATTR_AXES, 1);
                bench_expect_floats(&node, INPUTS(FLOATS(-1, 2, 4, 3, 0.5f, -2)), cases[i].want, 2, 1e-6);
        }
}

Test(reduce, skips_over_axes_that_stay)
{
        struct sl_node_desc node = reduce(SL_OP_REDUCE_SUM, SL_DTYPE_F32, SHAPE(2, 2, 2));

        BENCH_INTS(&node, SL_ATTR_AXES, 0, -1);
        sl_attrs_set_int(&node.attrs, SL_ATTR_KEEPDIMS, 0);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4, 50, 60, 70, 80)), 113, 157);
        sl_attrs_remove(&node.attrs, SL_ATTR_AXES);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4, 50, 60, 70, 80)), 270);
}

Test(reduce, without_axes_may_change_nothing)
{
        struct sl_node_desc node = reduce(SL_OP_REDUCE_SUM, SL_DTYPE_F32, SHAPE(2));

        sl_attrs_set_int(&node.attrs, SL_ATTR_NOOP_EMPTY_AXES, 1);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(3, 4)), 3, 4);
}

Test(reduce, of_integers_is_exact)
{
        struct sl_node_desc node = reduce(SL_OP_REDUCE_SUM, SL_DTYPE_I64, SHAPE(3));

        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){INT64_MAX, INT64_MIN, 5})), int64_t, 4);
        node.op = SL_OP_REDUCE_MEAN;
        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){1, 3, 4})), int64_t, 2);
        node = reduce(SL_OP_REDUCE_MAX, SL_DTYPE_I8, SHAPE(3));
        EXPECT_ELEMENTS(&node, INPUTS(((int8_t[]){-128, -3, -100})), int8_t, -3);
        node.op = SL_OP_REDUCE_MIN;
        EXPECT_ELEMENTS(&node, INPUTS(((int8_t[]){127, 3, 100})), int8_t, 3);
        node.inputs[0].dtype = SL_DTYPE_U8;
        EXPECT_ELEMENTS(&node, INPUTS(((uint8_t[]){255, 200, 254})), uint8_t, 200);
}

Test(reduce, of_nothing_gives_the_neutral_element)
{
        struct sl_node_desc node = reduce(SL_OP_REDUCE_SUM, SL_DTYPE_F32, SHAPE(2, 0));

        BENCH_INTS(&node, SL_ATTR_AXES, 1);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(0)), 0, 0);
        node.op = SL_OP_REDUCE_PROD;
        EXPECT_FLOATS(&node, INPUTS(FLOATS(0)), 1, 1);
        node.op = SL_OP_REDUCE_MAX;
        EXPECT_FLOATS(&node, INPUTS(FLOATS(0)), -INFINITY, -INFINITY);
        node.op = SL_OP_REDUCE_LOG_SUM_EXP;
        EXPECT_FLOATS(&node, INPUTS(FLOATS(0)), -INFINITY, -INFINITY);
        node.inputs[0].dtype = SL_DTYPE_I8;
        node.op = SL_OP_REDUCE_MAX;
        EXPECT_ELEMENTS(&node, INPUTS(FLOATS(0)), int8_t, -128, -128);
}

Test(reduce, log_sum_exp_survives_large_numbers)
{
        struct sl_node_desc node = reduce(SL_OP_REDUCE_LOG_SUM_EXP, SL_DTYPE_F32, SHAPE(2));

        EXPECT_FLOATS(&node, INPUTS(FLOATS(1000, 1000)), 1000.6931f);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(-INFINITY, -INFINITY)), -INFINITY);
}

Test(argreduce, takes_the_first_or_the_last)
{
        struct sl_node_desc node = reduce(SL_OP_ARG_MAX, SL_DTYPE_F32, SHAPE(2, 4));
        const void *const *inputs = INPUTS(FLOATS(1, 5, 5, 0, -9, -3, -3, -9));

        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 1);
        EXPECT_ELEMENTS(&node, inputs, int64_t, 1, 1);
        sl_attrs_set_int(&node.attrs, SL_ATTR_MODE, 1);
        EXPECT_ELEMENTS(&node, inputs, int64_t, 2, 2);
        node.op = SL_OP_ARG_MIN;
        EXPECT_ELEMENTS(&node, inputs, int64_t, 3, 3);
        sl_attrs_set_int(&node.attrs, SL_ATTR_MODE, 0);
        EXPECT_ELEMENTS(&node, inputs, int64_t, 3, 0);
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 0);
        sl_attrs_set_int(&node.attrs, SL_ATTR_KEEPDIMS, 0);
        EXPECT_ELEMENTS(&node, inputs, int64_t, 1, 1, 1, 1);
}
