/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ref kernels that move elements or make them from parameters.
 */
#include "node_bench.h"

#include <math.h>
#include <string.h>

static const int32_t six[] = {1, 2, 3, 4, 5, 6};

static struct sl_node_desc one_input(enum sl_op op, struct sl_shape x)
{
        struct sl_node_desc node = bench_node(op);

        bench_input(&node, SL_DTYPE_I32, x);
        return node;
}

Test(view, keeps_the_bytes)
{
        struct sl_node_desc node = one_input(SL_OP_RESHAPE, SHAPE(2, 3));

        BENCH_INTS(&node, SL_ATTR_SHAPE, 3, -1);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 2, 3, 4, 5, 6);
        node = one_input(SL_OP_FLATTEN, SHAPE(2, 3));
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 2, 3, 4, 5, 6);
        node = one_input(SL_OP_SQUEEZE, SHAPE(1, 6));
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 2, 3, 4, 5, 6);
        node = one_input(SL_OP_UNSQUEEZE, SHAPE(6));
        BENCH_INTS(&node, SL_ATTR_AXES, 0);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 2, 3, 4, 5, 6);
}

Test(transpose, permutes)
{
        struct sl_node_desc node = one_input(SL_OP_TRANSPOSE, SHAPE(2, 3));

        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 4, 2, 5, 3, 6);
        node.inputs[0].shape = SHAPE(1, 2, 3);
        BENCH_INTS(&node, SL_ATTR_PERM, 2, 0, 1);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 4, 2, 5, 3, 6);
}

Test(reorder, moves_channels_behind_and_back)
{
        struct sl_node_desc node = one_input(SL_OP_REORDER, SHAPE(1, 2, 3));

        sl_attrs_set_int(&node.attrs, SL_ATTR_LAYOUT, SL_LAYOUT_CHANNELS_LAST);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 4, 2, 5, 3, 6);
        node.inputs[0].layout = SL_LAYOUT_CHANNELS_LAST;
        sl_attrs_set_int(&node.attrs, SL_ATTR_LAYOUT, SL_LAYOUT_PLAIN);
        EXPECT_ELEMENTS(&node, INPUTS(((int32_t[]){1, 4, 2, 5, 3, 6})), int32_t, 1, 2, 3, 4, 5, 6);
}

Test(concat, joins_along_any_axis)
{
        struct sl_node_desc node = one_input(SL_OP_CONCAT, SHAPE(2, 1));
        const void *const *inputs = INPUTS(((int32_t[]){8, 9}), ((int32_t[]){1, 2, 3, 4}));

        bench_input(&node, SL_DTYPE_I32, SHAPE(2, 2));
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, -1);
        EXPECT_ELEMENTS(&node, inputs, int32_t, 8, 1, 2, 9, 3, 4);
        node.inputs[0].shape = SHAPE(1, 2);
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 0);
        EXPECT_ELEMENTS(&node, inputs, int32_t, 8, 9, 1, 2, 3, 4);
}

Test(split, cuts_along_the_axis)
{
        struct sl_node_desc node = one_input(SL_OP_SPLIT, SHAPE(2, 3));
        int32_t first[4], second[2];

        node.n_outputs = 2;
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 1);
        cr_assert_eq(bench_run(&node, INPUTS(six), (void *[]){first, second}), 0);
        cr_assert_arr_eq(first, ((int32_t[]){1, 2, 4, 5}), sizeof(first));
        cr_assert_arr_eq(second, ((int32_t[]){3, 6}), sizeof(second));
}

static void set_slice(struct sl_node_desc *node, int64_t start, int64_t end, int64_t axis, int64_t step)
{
        BENCH_INTS(node, SL_ATTR_STARTS, start);
        BENCH_INTS(node, SL_ATTR_ENDS, end);
        BENCH_INTS(node, SL_ATTR_AXES, axis);
        BENCH_INTS(node, SL_ATTR_STEPS, step);
}

Test(slice, steps_both_ways)
{
        struct sl_node_desc node = one_input(SL_OP_SLICE, SHAPE(2, 3));

        set_slice(&node, 1, INT64_MAX, 1, 1);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 2, 3, 5, 6);
        set_slice(&node, -1, INT64_MIN, 1, -2);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 3, 1, 6, 4);
        set_slice(&node, 1, INT64_MAX, 0, INT64_MAX);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 4, 5, 6);
        set_slice(&node, -1, INT64_MIN, 0, INT64_MIN);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 4, 5, 6);
}

Test(slice, of_nothing_writes_nothing)
{
        struct sl_node_desc node = one_input(SL_OP_SLICE, SHAPE(2, 3));
        int32_t untouched = 77;

        set_slice(&node, 2, 1, 1, 1);
        cr_assert_eq(bench_run(&node, INPUTS(six), (void *[]){&untouched}), 0);
        cr_assert_eq(untouched, 77);
}

static struct sl_node_desc pad(int64_t mode, int64_t begin, int64_t end)
{
        struct sl_node_desc node = one_input(SL_OP_PAD, SHAPE(3));

        sl_attrs_set_int(&node.attrs, SL_ATTR_MODE, mode);
        sl_attrs_set_float(&node.attrs, SL_ATTR_VALUE, -7);
        BENCH_INTS(&node, SL_ATTR_PADS, begin, end);
        return node;
}

Test(pad, has_every_mode)
{
        struct sl_node_desc node = pad(0, 2, 1);

        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, -7, -7, 1, 2, 3, -7);
        node = pad(1, 2, 1);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 3, 2, 1, 2, 3, 2);
        node = pad(2, 2, 1);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 1, 1, 2, 3, 3);
        node = pad(3, 4, 2);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 3, 1, 2, 3, 1, 2, 3, 1, 2);
        node = pad(0, -1, 2);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 2, 3, -7, -7);
}

Test(pad, touches_the_named_axes_alone)
{
        struct sl_node_desc node = one_input(SL_OP_PAD, SHAPE(2, 2));

        BENCH_INTS(&node, SL_ATTR_AXES, 0);
        BENCH_INTS(&node, SL_ATTR_PADS, 1, 0);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 0, 0, 1, 2, 3, 4);
}

Test(expand, repeats_ones)
{
        struct sl_node_desc node = one_input(SL_OP_EXPAND, SHAPE(3, 1));

        BENCH_INTS(&node, SL_ATTR_SHAPE, 2, 1, 2);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3);
}

Test(tile, repeats_the_whole)
{
        struct sl_node_desc node = one_input(SL_OP_TILE, SHAPE(2, 2));

        BENCH_INTS(&node, SL_ATTR_SHAPE, 1, 2);
        EXPECT_ELEMENTS(&node, INPUTS(six), int32_t, 1, 2, 1, 2, 3, 4, 3, 4);
}

Test(gather, wraps_negative_indices)
{
        struct sl_node_desc node = one_input(SL_OP_GATHER, SHAPE(3, 2));

        bench_input(&node, SL_DTYPE_I64, SHAPE(2));
        EXPECT_ELEMENTS(&node, INPUTS(six, ((int64_t[]){-1, 0})), int32_t, 5, 6, 1, 2);
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 1);
        node.inputs[1].dtype = SL_DTYPE_I32;
        EXPECT_ELEMENTS(&node, INPUTS(six, ((int32_t[]){1, -1})), int32_t, 2, 2, 4, 4, 6, 6);
}

Test(shape, tells_the_dimensions)
{
        struct sl_node_desc node = one_input(SL_OP_SHAPE, SHAPE(2, 3));

        EXPECT_ELEMENTS(&node, INPUTS(six), int64_t, 2, 3);
        BENCH_INTS(&node, SL_ATTR_STARTS, -1);
        EXPECT_ELEMENTS(&node, INPUTS(six), int64_t, 3);
}

Test(constant_of_shape, fills)
{
        struct sl_node_desc node = bench_node(SL_OP_CONSTANT_OF_SHAPE);

        BENCH_INTS(&node, SL_ATTR_SHAPE, 3);
        EXPECT_FLOATS(&node, INPUTS(NULL), 0, 0, 0);
        sl_attrs_set_int(&node.attrs, SL_ATTR_TO, SL_DTYPE_I64);
        sl_attrs_set_float(&node.attrs, SL_ATTR_VALUE, -2);
        EXPECT_ELEMENTS(&node, INPUTS(NULL), int64_t, -2, -2, -2);
}

Test(range, steps_from_the_start)
{
        struct sl_node_desc node = bench_node(SL_OP_RANGE);

        for (int i = 0; i < 3; i++)
                bench_input(&node, SL_DTYPE_I64, SCALAR);
        EXPECT_ELEMENTS(&node, INPUTS(&(int64_t){10}, &(int64_t){3}, &(int64_t){-3}), int64_t, 10, 7, 4);
        for (int i = 0; i < 3; i++)
                node.inputs[i].dtype = SL_DTYPE_F32;
        EXPECT_FLOATS(&node, INPUTS(&(float){1}, &(float){2}, &(float){0.5f}), 1, 1.5f);
}
