/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape rules of operators that move elements or make them from parameters.
 */
#include "node_bench.h"

static struct sl_node_desc one_input(enum sl_op op, struct sl_shape x)
{
        struct sl_node_desc node = bench_node(op);

        bench_input(&node, SL_DTYPE_F32, x);
        return node;
}

Test(reshape, with_zero_first_keeps_the_batch)
{
        struct sl_node_desc node = one_input(SL_OP_RESHAPE, SHAPE(N, 128, 768));

        BENCH_INTS(&node, SL_ATTR_SHAPE, 0, 128, 12, 64);
        bench_expect_shape(&node, 0, SHAPE(N, 128, 12, 64));
        BENCH_INTS(&node, SL_ATTR_SHAPE, 0, -1, 12, 64);
        bench_expect_shape(&node, 0, SHAPE(N, 128, 12, 64));
}

Test(reshape, proves_that_the_open_dimension_is_the_batch)
{
        struct sl_node_desc node = one_input(SL_OP_RESHAPE, SHAPE(N, 16, 5, 5));

        BENCH_INTS(&node, SL_ATTR_SHAPE, -1, 400);
        bench_expect_shape(&node, 0, SHAPE(N, 400));
        BENCH_INTS(&node, SL_ATTR_SHAPE, -1, 200);
        bench_expect_shape(&node, 0, SHAPE(U, 200));
}

Test(reshape, finds_the_open_dimension_of_a_static_shape)
{
        struct sl_node_desc node = one_input(SL_OP_RESHAPE, SHAPE(2, 3, 4));

        BENCH_INTS(&node, SL_ATTR_SHAPE, -1, 6);
        bench_expect_shape(&node, 0, SHAPE(4, 6));
        BENCH_INTS(&node, SL_ATTR_SHAPE, -1, 5);
        bench_expect_error(&node, EINVAL, "input 0 is [2,3,4], its elements do not make [?,5]");
        BENCH_INTS(&node, SL_ATTR_SHAPE, 5, 5);
        bench_expect_error(&node, EINVAL, "do not make [5,5]");
        BENCH_INTS(&node, SL_ATTR_SHAPE, -1, -1);
        bench_expect_error(&node, EINVAL, "negative element at 1");
        BENCH_INTS(&node, SL_ATTR_SHAPE, 24, 1, 1, 0);
        bench_expect_error(&node, EINVAL, "a 0 at 3, input 0 has rank 3");
        sl_attrs_set_ints(&node.attrs, SL_ATTR_SHAPE, (int64_t[9]){24, 1, 1, 1, 1, 1, 1, 1, 1}, 9);
        bench_expect_error(&node, EINVAL, "9 elements, the highest rank is 8");
}

Test(reshape, takes_a_zero_literally_on_request)
{
        struct sl_node_desc node = one_input(SL_OP_RESHAPE, SHAPE(0, 3));

        sl_attrs_set_int(&node.attrs, SL_ATTR_ALLOW_ZERO, 1);
        BENCH_INTS(&node, SL_ATTR_SHAPE, 3, 0);
        bench_expect_shape(&node, 0, SHAPE(3, 0));
}

Test(reshape, with_a_pending_shape_knows_the_rank)
{
        struct sl_node_desc node = one_input(SL_OP_RESHAPE, SHAPE(N, 400));

        bench_expect_error(&node, EINVAL, "neither attribute shape nor input 1 is given");
        bench_input(&node, SL_DTYPE_I64, SHAPE(3));
        bench_expect_shape(&node, 0, SHAPE(U, U, U));
        node.inputs[1].shape = SHAPE(9);
        bench_expect_error(&node, EINVAL, "input 1 has 9 elements, the highest rank is 8");
}

Test(flatten, multiplies_what_is_known)
{
        struct sl_node_desc node = one_input(SL_OP_FLATTEN, SHAPE(N, 16, 5, 5));

        bench_expect_shape(&node, 0, SHAPE(N, 400));
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 2);
        bench_expect_shape(&node, 0, SHAPE(U, 25));
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 0);
        bench_expect_shape(&node, 0, SHAPE(1, U));
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 5);
        bench_expect_error(&node, EINVAL, "axis 5 is outside [-4,4]");
}

Test(squeeze, drops_ones_only)
{
        struct sl_node_desc node = one_input(SL_OP_SQUEEZE, SHAPE(N, 512, 1, 1));

        bench_expect_error(&node, ENOTSUP, "no axes are given");
        BENCH_INTS(&node, SL_ATTR_AXES, 2, -1);
        bench_expect_shape(&node, 0, SHAPE(N, 512));
        BENCH_INTS(&node, SL_ATTR_AXES, 1);
        bench_expect_error(&node, EINVAL, "axis 1 of input 0 has 512 elements, wants 1");
        node = one_input(SL_OP_SQUEEZE, SHAPE(1, 3, 1));
        bench_expect_shape(&node, 0, SHAPE(3));
}

Test(unsqueeze, counts_axes_in_the_output)
{
        struct sl_node_desc node = one_input(SL_OP_UNSQUEEZE, SHAPE(N, 4));

        BENCH_INTS(&node, SL_ATTR_AXES, 1, -1);
        bench_expect_shape(&node, 0, SHAPE(N, 1, 4, 1));
        BENCH_INTS(&node, SL_ATTR_AXES, 0, 1, 2, 3, 4, 5, 6);
        bench_expect_error(&node, EINVAL, "rank 9, the highest is 8");
        BENCH_INTS(&node, SL_ATTR_AXES, 3);
        bench_expect_error(&node, EINVAL, "axis 3 is outside [-3,2]");
}

Test(transpose, permutes_and_reverses_by_default)
{
        struct sl_node_desc node = one_input(SL_OP_TRANSPOSE, SHAPE(N, 3, 4));

        bench_expect_shape(&node, 0, SHAPE(4, 3, N));
        BENCH_INTS(&node, SL_ATTR_PERM, 0, 2, 1);
        bench_expect_shape(&node, 0, SHAPE(N, 4, 3));
        BENCH_INTS(&node, SL_ATTR_PERM, 0, 2, 2);
        bench_expect_error(&node, EINVAL, "the element 2, outside [0,2] or twice");
        BENCH_INTS(&node, SL_ATTR_PERM, 0, 1);
        bench_expect_error(&node, EINVAL, "attribute perm has 2 elements, input 0 has rank 3");
}

Test(concat, adds_along_the_axis_and_keeps_the_rest)
{
        struct sl_node_desc node = one_input(SL_OP_CONCAT, SHAPE(N, 3, 8, 8));

        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 5, 8, 8));
        bench_expect_error(&node, EINVAL, "axis is missing");
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 1);
        bench_expect_shape(&node, 0, SHAPE(N, 8, 8, 8));
        node.inputs[1].shape = SHAPE(U, 5, 8, 8);
        bench_expect_shape(&node, 0, SHAPE(N, 8, 8, 8));
        node.inputs[1].shape = SHAPE(N, 5, 8, 7);
        bench_expect_error(&node, EINVAL, "input 1 is [N,5,8,7], the ones before it make [N,3,8,8]");
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 0);
        node.inputs[1].shape = SHAPE(N, 3, 8, 8);
        bench_expect_shape(&node, 0, SHAPE(U, 3, 8, 8));
}

static struct sl_node_desc slice(struct sl_shape x, int64_t start, int64_t end, int64_t axis, int64_t step)
{
        struct sl_node_desc node = one_input(SL_OP_SLICE, x);

        BENCH_INTS(&node, SL_ATTR_STARTS, start);
        BENCH_INTS(&node, SL_ATTR_ENDS, end);
        BENCH_INTS(&node, SL_ATTR_AXES, axis);
        BENCH_INTS(&node, SL_ATTR_STEPS, step);
        return node;
}

Test(slice, clamps_its_bounds)
{
        struct sl_node_desc node = slice(SHAPE(N, 10), 2, 7, 1, 2);

        bench_expect_shape(&node, 0, SHAPE(N, 3));
        node = slice(SHAPE(N, 10), -3, INT64_MAX, 1, 1);
        bench_expect_shape(&node, 0, SHAPE(N, 3));
        node = slice(SHAPE(N, 10), INT64_MAX, INT64_MIN, 1, -1);
        bench_expect_shape(&node, 0, SHAPE(N, 10));
        node = slice(SHAPE(N, 10), 9, 0, -1, -4);
        bench_expect_shape(&node, 0, SHAPE(N, 3));
        node = slice(SHAPE(N, 10), INT64_MAX, INT64_MIN, 1, INT64_MIN);
        bench_expect_shape(&node, 0, SHAPE(N, 1));
        node = slice(SHAPE(N, 10), 5, 5, 1, 1);
        bench_expect_shape(&node, 0, SHAPE(N, 0));
        node = slice(SHAPE(N, 0), 0, 5, 1, -1);
        bench_expect_shape(&node, 0, SHAPE(N, 0));
}

Test(slice, keeps_the_batch_only_when_all_of_it_is_taken)
{
        struct sl_node_desc node = slice(SHAPE(N, 10), 0, INT64_MAX, 0, 1);

        bench_expect_shape(&node, 0, SHAPE(N, 10));
        node = slice(SHAPE(N, 10), -1, INT64_MIN, 0, -1);
        bench_expect_shape(&node, 0, SHAPE(N, 10));
        node = slice(SHAPE(N, 10), 0, 5, 0, 1);
        bench_expect_shape(&node, 0, SHAPE(U, 10));
        node = slice(SHAPE(N, 10), 1, INT64_MAX, 0, 1);
        bench_expect_shape(&node, 0, SHAPE(U, 10));
}

Test(slice, refuses_bad_lists)
{
        struct sl_node_desc node = slice(SHAPE(N, 10), 0, 1, 1, 0);

        bench_expect_error(&node, EINVAL, "steps has the element 0");
        node = slice(SHAPE(N, 10), 0, 1, 2, 1);
        bench_expect_error(&node, EINVAL, "axis 2 is outside [-2,1]");
        node = slice(SHAPE(N, 10), 0, 1, 1, 1);
        BENCH_INTS(&node, SL_ATTR_ENDS, 1, 2);
        bench_expect_error(&node, EINVAL, "attribute ends has 2 elements, the others have 1");
}

Test(slice, with_pending_bounds_is_unknown_on_its_axes_alone)
{
        struct sl_node_desc node = one_input(SL_OP_SLICE, SHAPE(N, 10));

        bench_input(&node, SL_DTYPE_I64, SHAPE(1));
        bench_input(&node, SL_DTYPE_I64, SHAPE(1));
        BENCH_INTS(&node, SL_ATTR_AXES, 1);
        bench_expect_shape(&node, 0, SHAPE(N, U));
        sl_attrs_remove(&node.attrs, SL_ATTR_AXES);
        bench_expect_shape(&node, 0, SHAPE(U, U));
}

Test(split, is_even_unless_told)
{
        struct sl_node_desc node = one_input(SL_OP_SPLIT, SHAPE(N, 6));

        node.n_outputs = 2;
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 1);
        bench_expect_shape(&node, 1, SHAPE(N, 3));
        node.inputs[0].shape = SHAPE(N, 7);
        bench_expect_shape(&node, 0, SHAPE(N, 4));
        bench_expect_shape(&node, 1, SHAPE(N, 3));
        BENCH_INTS(&node, SL_ATTR_SPLIT, 2, 5);
        bench_expect_shape(&node, 0, SHAPE(N, 2));
        BENCH_INTS(&node, SL_ATTR_SPLIT, 2, 4);
        bench_expect_error(&node, EINVAL, "adds up to 6, the dimension has 7 elements");
        BENCH_INTS(&node, SL_ATTR_SPLIT, 7);
        bench_expect_error(&node, EINVAL, "attribute split has 1 elements, the node has 2 outputs");
}

Test(pad, adds_and_cuts)
{
        struct sl_node_desc node = one_input(SL_OP_PAD, SHAPE(N, 4));

        BENCH_INTS(&node, SL_ATTR_PADS, 0, 1, 0, 2);
        bench_expect_shape(&node, 0, SHAPE(N, 7));
        BENCH_INTS(&node, SL_ATTR_PADS, 1, -1, 0, -1);
        bench_expect_shape(&node, 0, SHAPE(U, 2));
        BENCH_INTS(&node, SL_ATTR_PADS, 0, -3, 0, -2);
        bench_expect_error(&node, EINVAL, "padding cuts 5 elements off dimension 1, which has 4");
        BENCH_INTS(&node, SL_ATTR_PADS, 0, 4, 0, 0);
        sl_attrs_set_int(&node.attrs, SL_ATTR_MODE, 1);
        bench_expect_error(&node, EINVAL, "needs 5 elements in this mode");
        BENCH_INTS(&node, SL_ATTR_PADS, 1, 1);
        bench_expect_error(&node, EINVAL, "attribute pads has 2 elements, wants 4");
        BENCH_INTS(&node, SL_ATTR_AXES, -1);
        bench_expect_shape(&node, 0, SHAPE(N, 6));
}

Test(expand, joins_both_ways)
{
        struct sl_node_desc node = one_input(SL_OP_EXPAND, SHAPE(N, 1, 4));

        BENCH_INTS(&node, SL_ATTR_SHAPE, 3, 1);
        bench_expect_shape(&node, 0, SHAPE(N, 3, 4));
        BENCH_INTS(&node, SL_ATTR_SHAPE, 3);
        bench_expect_error(&node, EINVAL, "shapes [N,1,4] and [3] do not broadcast");
        sl_attrs_remove(&node.attrs, SL_ATTR_SHAPE);
        bench_input(&node, SL_DTYPE_I64, SHAPE(3));
        bench_expect_shape(&node, 0, SHAPE(U, U, 4));
}

Test(tile, multiplies)
{
        struct sl_node_desc node = one_input(SL_OP_TILE, SHAPE(N, 4));

        BENCH_INTS(&node, SL_ATTR_SHAPE, 1, 3);
        bench_expect_shape(&node, 0, SHAPE(N, 12));
        BENCH_INTS(&node, SL_ATTR_SHAPE, 2, 1);
        bench_expect_shape(&node, 0, SHAPE(U, 4));
        BENCH_INTS(&node, SL_ATTR_SHAPE, 1, INT64_MAX);
        bench_expect_error(&node, EOVERFLOW, "dimension 1 exceeds 64 bits");
        BENCH_INTS(&node, SL_ATTR_SHAPE, 2);
        bench_expect_error(&node, EINVAL, "1 repeats are given, input 0 has rank 2");
}

Test(gather, puts_the_indices_in_place_of_the_axis)
{
        struct sl_node_desc node = one_input(SL_OP_GATHER, SHAPE(30522, 768));

        bench_input(&node, SL_DTYPE_I64, SHAPE(N, 128));
        bench_expect_shape(&node, 0, SHAPE(N, 128, 768));
        node.inputs[1].shape = SCALAR;
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, -1);
        bench_expect_shape(&node, 0, SHAPE(30522));
        node.inputs[1].dtype = SL_DTYPE_F32;
        bench_expect_error(&node, EINVAL, "input 1 is float32, wants int32 or int64");
}

Test(shape, is_as_long_as_the_rank)
{
        struct sl_node_desc node = one_input(SL_OP_SHAPE, SHAPE(N, 3, 4));

        bench_expect_shape(&node, 0, SHAPE(3));
        BENCH_INTS(&node, SL_ATTR_STARTS, -2);
        bench_expect_shape(&node, 0, SHAPE(2));
        BENCH_INTS(&node, SL_ATTR_ENDS, 1);
        bench_expect_shape(&node, 0, SHAPE(0));
}

Test(constant_of_shape, has_the_shape_it_is_given)
{
        struct sl_node_desc node = bench_node(SL_OP_CONSTANT_OF_SHAPE);

        bench_expect_error(&node, EINVAL, "neither attribute shape nor input 0");
        BENCH_INTS(&node, SL_ATTR_SHAPE, 2, 3);
        sl_attrs_set_int(&node.attrs, SL_ATTR_TO, SL_DTYPE_I64);
        bench_expect_shape(&node, 0, SHAPE(2, 3));
        cr_assert_eq(node.outputs[0].dtype, SL_DTYPE_I64);
        sl_attrs_remove(&node.attrs, SL_ATTR_SHAPE);
        bench_input(&node, SL_DTYPE_I64, SHAPE(2));
        bench_expect_shape(&node, 0, SHAPE(U, U));
}

Test(range, hangs_on_its_values)
{
        struct sl_node_desc node = bench_node(SL_OP_RANGE);

        for (int i = 0; i < 3; i++)
                bench_input(&node, SL_DTYPE_I64, SCALAR);
        bench_expect_shape(&node, 0, SHAPE(U));
        node.inputs[1].shape = SHAPE(2);
        bench_expect_error(&node, EINVAL, "input 1 has rank 1, wants a scalar");
}

Test(reorder, sets_the_layout)
{
        struct sl_node_desc node = one_input(SL_OP_REORDER, SHAPE(N, 3, 8, 8));

        bench_expect_error(&node, EINVAL, "attribute layout is -1");
        sl_attrs_set_int(&node.attrs, SL_ATTR_LAYOUT, SL_LAYOUT_CHANNELS_LAST);
        bench_expect_shape(&node, 0, SHAPE(N, 3, 8, 8));
        cr_assert_eq(node.outputs[0].layout, SL_LAYOUT_CHANNELS_LAST);
        node.inputs[0].shape = SHAPE(N, 3);
        bench_expect_error(&node, EINVAL, "rank 2, outside [3,5]");
}

Test(dft, along_an_axis_of_data_may_change_any_dimension)
{
        struct sl_node_desc node = one_input(SL_OP_DFT, SHAPE(2, 10, 8, 1));

        node.n_inputs = 1;
        bench_input(&node, SL_DTYPE_NONE, SCALAR);
        bench_input(&node, SL_DTYPE_I64, SCALAR);
        bench_expect_shape(&node, 0, SHAPE(2, 10, 8, 2));
        sl_attrs_set_int(&node.attrs, SL_ATTR_ONESIDED, 1);
        bench_expect_shape(&node, 0, SHAPE(U, U, U, 2));
        sl_attrs_set_int(&node.attrs, SL_ATTR_INVERSE, 1);
        node.inputs[0].shape.dims[3] = 2;
        bench_expect_shape(&node, 0, SHAPE(U, U, U, 1));
        sl_attrs_remove(&node.attrs, SL_ATTR_ONESIDED);
        node.inputs[1] = (struct sl_tensor){.dtype = SL_DTYPE_I64};
        bench_expect_shape(&node, 0, SHAPE(U, U, U, 2));
}

Test(col2im, of_sizes_of_data_has_their_rank)
{
        struct sl_node_desc node = one_input(SL_OP_COL2IM, SHAPE(N, 4, 9));

        bench_input(&node, SL_DTYPE_I64, SHAPE(2));
        bench_input(&node, SL_DTYPE_I64, SHAPE(2));
        bench_expect_shape(&node, 0, SHAPE(N, U, U, U));
        BENCH_INTS(&node, SL_ATTR_SIZES, 4, 5);
        bench_expect_shape(&node, 0, SHAPE(N, U, 4, 5));
        BENCH_INTS(&node, SL_ATTR_SIZES, 4, -5);
        bench_expect_error(&node, EINVAL, "the image has the size -5");
        sl_attrs_remove(&node.attrs, SL_ATTR_SIZES);
        node.inputs[1].shape = SHAPE(7);
        bench_expect_error(&node, EINVAL, "an image of 7 dimensions");
        node.inputs[1].shape = SHAPE(U);
        bench_expect_error(&node, ENOTSUP, "so the rank of the output is unknown");
        node.n_inputs = 2;
        bench_expect_error(&node, EINVAL, "the sizes of image or block are missing");
}

Test(affine_grid, of_sizes_of_data_has_the_rank_of_its_matrices)
{
        struct sl_node_desc node = one_input(SL_OP_AFFINE_GRID, SHAPE(N, 2, 3));

        bench_input(&node, SL_DTYPE_I64, SHAPE(4));
        bench_expect_shape(&node, 0, SHAPE(N, U, U, 2));
        node.inputs[0].shape = SHAPE(N, U, U);
        node.inputs[1].shape = SHAPE(5);
        bench_expect_shape(&node, 0, SHAPE(N, U, U, U, 3));
        node.inputs[1].shape = SHAPE(3);
        bench_expect_error(&node, EINVAL, "wants matrices of 2 x 3 and 4 sizes, or of 3 x 4 and 5");
        node.inputs[0].shape = SHAPE(N, U, 4);
        node.inputs[1].shape = SHAPE(U);
        bench_expect_shape(&node, 0, SHAPE(N, U, U, U, 3));
        node.inputs[1].shape = SHAPE(4);
        bench_expect_error(&node, EINVAL, "wants matrices of 2 x 3 and 4 sizes, or of 3 x 4 and 5");
        node.n_inputs = 1;
        bench_expect_error(&node, EINVAL, "the sizes of the grid are missing");
}
