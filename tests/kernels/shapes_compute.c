/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shape rules of operators that compute: convolutions, pools, products, norms, elementwise, reductions.
 */
#include "node_bench.h"

#include <stdio.h>

static struct sl_node_desc conv(struct sl_shape x, struct sl_shape w)
{
        struct sl_node_desc node = bench_node(SL_OP_CONV);

        bench_input(&node, SL_DTYPE_F32, x);
        bench_input(&node, SL_DTYPE_F32, w);
        return node;
}

Test(conv, keeps_the_batch_and_takes_channels_from_the_weights)
{
        struct sl_node_desc node = conv(SHAPE(N, 3, 224, 224), SHAPE(64, 3, 7, 7));

        BENCH_INTS(&node, SL_ATTR_STRIDES, 2, 2);
        BENCH_INTS(&node, SL_ATTR_PADS, 3, 3, 3, 3);
        bench_expect_shape(&node, 0, SHAPE(N, 64, 112, 112));
}

Test(conv, counts_dilation_and_uneven_pads)
{
        struct sl_node_desc node = conv(SHAPE(1, 1, 10), SHAPE(1, 1, 3));

        BENCH_INTS(&node, SL_ATTR_DILATIONS, 2);
        BENCH_INTS(&node, SL_ATTR_PADS, 0, 1);
        bench_expect_shape(&node, 0, SHAPE(1, 1, 7));
}

Test(conv, leaves_unknown_sizes_unknown)
{
        struct sl_node_desc node = conv(SHAPE(N, 3, U, 8), SHAPE(4, 3, 3, 3));

        bench_expect_shape(&node, 0, SHAPE(N, 4, U, 6));
}

Test(conv, names_what_does_not_fit)
{
        struct sl_node_desc node = conv(SHAPE(N, 3, 8, 8), SHAPE(4, 5, 3, 3));

        bench_expect_error(&node, EINVAL, "input 0 has 3 channels, input 1 wants 5");
        node = conv(SHAPE(N, 3, 8, 8), SHAPE(4, 3, 3));
        bench_expect_error(&node, EINVAL, "input 1 has rank 3, input 0 has rank 4");
        node = conv(SHAPE(N, 3, 2, 8), SHAPE(4, 3, 3, 3));
        bench_expect_error(&node, EINVAL, "2 elements with padding along spatial dimension 0, the window needs 3");
        node = conv(SHAPE(N, 3), SHAPE(4, 3));
        bench_expect_error(&node, EINVAL, "rank 2, outside [3,5]");
        node = conv(SHAPE(N, 4, 8, 8), SHAPE(3, 2, 3, 3));
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, 2);
        bench_expect_error(&node, EINVAL, "3 output channels, not a multiple of group 2");
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, 0);
        bench_expect_error(&node, EINVAL, "group is 0");
}

Test(conv, refuses_bad_lists)
{
        struct sl_node_desc node = conv(SHAPE(N, 3, 8, 8), SHAPE(4, 3, 3, 3));

        BENCH_INTS(&node, SL_ATTR_STRIDES, 1);
        bench_expect_error(&node, EINVAL, "attribute strides has 1 elements, wants 2");
        BENCH_INTS(&node, SL_ATTR_STRIDES, 1, 0);
        bench_expect_error(&node, EINVAL, "attribute strides has the element 0");
        BENCH_INTS(&node, SL_ATTR_STRIDES, 1, 1);
        BENCH_INTS(&node, SL_ATTR_PADS, INT64_MAX, 0, 0, 0);
        bench_expect_error(&node, EINVAL, "attribute pads has the element 9223372036854775807");
        BENCH_INTS(&node, SL_ATTR_PADS, 0, 0, 0, 0);
        BENCH_INTS(&node, SL_ATTR_KERNEL_SHAPE, 5, 3);
        bench_expect_error(&node, EINVAL, "kernel size 3, attribute kernel_shape says 5");
}

Test(conv, checks_bias_and_residual)
{
        struct sl_node_desc node = conv(SHAPE(N, 3, 8, 8), SHAPE(4, 3, 3, 3));

        bench_input(&node, SL_DTYPE_F32, SHAPE(5));
        bench_expect_error(&node, EINVAL, "input 2 is [5], wants [4]");
        node.inputs[2] = (struct sl_tensor){.dtype = SL_DTYPE_NONE};
        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 4, 6, 6));
        node.epilogue.has_residual = 1;
        bench_expect_shape(&node, 0, SHAPE(N, 4, 6, 6));
        node.inputs[3].shape = SHAPE(N, 4, 6, 1);
        bench_expect_error(&node, EINVAL, "the residual is float32 [N,4,6,1], output 0 is float32 [N,4,6,6]");
}

Test(conv_integer, has_one_zero_point_or_one_for_each_filter)
{
        struct sl_node_desc node = bench_node(SL_OP_CONV_INTEGER);

        bench_input(&node, SL_DTYPE_U8, SHAPE(N, 3, 8, 8));
        bench_input(&node, SL_DTYPE_I8, SHAPE(4, 3, 3, 3));
        bench_input(&node, SL_DTYPE_U8, SHAPE(1));
        bench_input(&node, SL_DTYPE_I8, SHAPE(4));
        bench_expect_shape(&node, 0, SHAPE(N, 4, 6, 6));
        node.inputs[3].shape = SHAPE(1);
        bench_expect_shape(&node, 0, SHAPE(N, 4, 6, 6));
        node.inputs[3].shape = SHAPE(3);
        bench_expect_error(&node, EINVAL, "input 3 is [3], wants [4]");
        node.inputs[3].shape = SHAPE(4);
        node.inputs[2].shape = SHAPE(3);
        bench_expect_error(&node, EINVAL, "input 2 is [3], wants [1]");
}

Test(matmul_integer, has_one_zero_point_or_one_for_each_row_or_column)
{
        struct sl_node_desc node = bench_node(SL_OP_MATMUL_INTEGER);

        bench_input(&node, SL_DTYPE_U8, SHAPE(5, 3));
        bench_input(&node, SL_DTYPE_I8, SHAPE(3, 4));
        bench_input(&node, SL_DTYPE_U8, SHAPE(5));
        bench_input(&node, SL_DTYPE_I8, SHAPE(4));
        bench_expect_shape(&node, 0, SHAPE(5, 4));
        node.inputs[2].shape = SHAPE(3);
        bench_expect_error(&node, EINVAL, "input 2 is [3], wants [5]");
        node.inputs[2].shape = SHAPE(1);
        node.inputs[3].shape = SHAPE(3);
        bench_expect_error(&node, EINVAL, "input 3 is [3], wants [4]");
}

Test(mel_weights, wants_a_rate_and_two_edges_of_one_element)
{
        struct sl_node_desc node = bench_node(SL_OP_MEL_WEIGHTS);

        bench_input(&node, SL_DTYPE_I64, SHAPE(1));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1));
        sl_attrs_set_int(&node.attrs, SL_ATTR_BINS, 4);
        sl_attrs_set_int(&node.attrs, SL_ATTR_LENGTH, 16);
        bench_expect_shape(&node, 0, SHAPE(9, 4));
        for (uint32_t i = 0; i < 3; i++) {
                char text[64];

                snprintf(text, sizeof(text), "input %u wants one element", i);
                node.inputs[i].shape = SHAPE(0);
                bench_expect_error(&node, EINVAL, text);
                node.inputs[i].shape = SHAPE(1);
        }
}

static struct sl_node_desc mbconv(void)
{
        struct sl_node_desc node = bench_node(SL_OP_MBCONV);

        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 3, 8, 8));
        bench_input(&node, SL_DTYPE_F32, SHAPE(6, 1, 3, 3));
        bench_input(&node, SL_DTYPE_F32, SHAPE(6));
        bench_input(&node, SL_DTYPE_F32, SHAPE(6, 3, 1, 1));
        bench_input(&node, SL_DTYPE_F32, SHAPE(6));
        bench_input(&node, SL_DTYPE_F32, SHAPE(4, 6, 1, 1));
        bench_input(&node, SL_DTYPE_F32, SHAPE(4));
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, 6);
        BENCH_INTS(&node, SL_ATTR_STRIDES, 2, 2);
        return node;
}

Test(mbconv, has_the_shape_of_its_last_part)
{
        struct sl_node_desc node = mbconv();

        bench_expect_shape(&node, 0, SHAPE(N, 4, 3, 3));
        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 4, 3, 3));
        node.epilogue.has_residual = 1;
        bench_expect_shape(&node, 0, SHAPE(N, 4, 3, 3));
        node.inputs[7].shape = SHAPE(N, 4, 3, 1);
        bench_expect_error(&node, EINVAL, "the residual is float32 [N,4,3,1], output 0 is float32 [N,4,3,3]");
        node = mbconv();
        node.n_inputs = 5;
        bench_expect_shape(&node, 0, SHAPE(N, 6, 3, 3));
}

Test(mbconv, refuses_parts_that_do_not_fit)
{
        struct sl_node_desc node = mbconv();

        node.inputs[3].shape = SHAPE(6, 2, 1, 1);
        bench_expect_error(&node, EINVAL, "input 0 has 3 channels, input 1 wants 2");
        node = mbconv();
        node.inputs[5].shape = SHAPE(4, 5, 1, 1);
        bench_expect_error(&node, EINVAL, "input 0 has 6 channels, input 1 wants 5");
        node = mbconv();
        node.inputs[5].shape = SHAPE(4, 6, 1, 3);
        bench_expect_error(&node, EINVAL, "input 5 is [4,6,1,3], wants 1 as dimension 3");
        node = mbconv();
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, 3);
        node.inputs[1].shape = SHAPE(6, 2, 3, 3);
        bench_expect_error(&node, EINVAL, "input 1 is [6,2,3,3], wants 1 as dimension 1");
        node.inputs[1].shape = SHAPE(12, 1, 3, 3);
        node.inputs[2].shape = SHAPE(12);
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, 6);
        bench_expect_error(&node, EINVAL, "input 1 is [12,1,3,3], wants one filter for each of 6 channels");
}

Test(mbconv, refuses_activations_that_nothing_runs)
{
        struct sl_node_desc node = mbconv();

        BENCH_INTS(&node, SL_ATTR_ACTIVATIONS, 1);
        bench_expect_error(&node, EINVAL, "attribute activations has 1 elements, wants 2");
        BENCH_INTS(&node, SL_ATTR_ACTIVATIONS, 1, 77);
        bench_expect_error(&node, EINVAL, "attribute activations has the element 77 at 1, outside [0,9]");
        BENCH_INTS(&node, SL_ATTR_ACTIVATIONS, -1, 1);
        bench_expect_error(&node, EINVAL, "attribute activations has the element -1 at 0, outside [0,9]");
        BENCH_INTS(&node, SL_ATTR_ACTIVATIONS, 1, 1);
        node.n_inputs = 5;
        bench_expect_error(&node, EINVAL, "attribute activations has the element 1 at 1, outside [0,0]");
}

Test(every_operator, refuses_wrong_counts_types_and_epilogues)
{
        struct sl_node_desc node = bench_node(SL_OP_CONV);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 1));
        bench_expect_error(&node, EINVAL, "1 inputs, wants 2 to 4");
        bench_input(&node, SL_DTYPE_NONE, SCALAR);
        bench_expect_error(&node, EINVAL, "input 1 is missing");
        node.inputs[1] = (struct sl_tensor){.dtype = 99};
        bench_expect_error(&node, EINVAL, "element type 99");
        node = bench_node(SL_OP_RELU);
        bench_input(&node, SL_DTYPE_F32, SHAPE(-3));
        bench_expect_error(&node, EINVAL, "dimension -3");
        node.inputs[0].shape = SHAPE(3);
        node.epilogue.activation = SL_ACT_RELU;
        bench_expect_error(&node, EINVAL, "epilogue");
        node.epilogue.activation = SL_ACT_NONE;
        node.n_outputs = 2;
        bench_expect_error(&node, EINVAL, "2 outputs, wants 1 to 1");
}

Test(every_operator, refuses_outputs_beyond_64_bits)
{
        struct sl_node_desc node = bench_node(SL_OP_ADD);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1ll << 40, 1));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1ll << 40));
        bench_expect_error(&node, EOVERFLOW, "output 0");
}

static struct sl_node_desc pool(struct sl_shape x, int64_t kernel, int64_t stride)
{
        struct sl_node_desc node = bench_node(SL_OP_MAX_POOL);

        bench_input(&node, SL_DTYPE_F32, x);
        BENCH_INTS(&node, SL_ATTR_KERNEL_SHAPE, kernel);
        BENCH_INTS(&node, SL_ATTR_STRIDES, stride);
        return node;
}

Test(pool, rounds_down_or_up)
{
        struct sl_node_desc node = pool(SHAPE(N, 3, 8), 3, 2);

        bench_expect_shape(&node, 0, SHAPE(N, 3, 3));
        sl_attrs_set_int(&node.attrs, SL_ATTR_CEIL_MODE, 1);
        bench_expect_shape(&node, 0, SHAPE(N, 3, 4));
}

Test(pool, drops_a_last_window_that_starts_in_the_padding_behind)
{
        struct sl_node_desc node = pool(SHAPE(1, 1, 4), 2, 3);

        sl_attrs_set_int(&node.attrs, SL_ATTR_CEIL_MODE, 1);
        BENCH_INTS(&node, SL_ATTR_PADS, 1, 1);
        /* Windows start at -1, 2, and would at 5: behind the input. */
        bench_expect_shape(&node, 0, SHAPE(1, 1, 2));
}

Test(pool, refuses_padding_as_wide_as_the_window)
{
        struct sl_node_desc node = pool(SHAPE(1, 1, 4), 2, 1);

        BENCH_INTS(&node, SL_ATTR_PADS, 2, 0);
        bench_expect_error(&node, EINVAL, "padding 2 of spatial dimension 0 is not below the window's 2");
        sl_attrs_remove(&node.attrs, SL_ATTR_KERNEL_SHAPE);
        bench_expect_error(&node, EINVAL, "kernel_shape is missing");
}

Test(pool, global_leaves_ones)
{
        struct sl_node_desc node = bench_node(SL_OP_GLOBAL_AVERAGE_POOL);

        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 512, 7, 7));
        bench_expect_shape(&node, 0, SHAPE(N, 512, 1, 1));
}

Test(gemm, transposes_and_keeps_the_batch)
{
        struct sl_node_desc node = bench_node(SL_OP_GEMM);

        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 512));
        bench_input(&node, SL_DTYPE_F32, SHAPE(10, 512));
        bench_input(&node, SL_DTYPE_F32, SHAPE(10));
        sl_attrs_set_int(&node.attrs, SL_ATTR_TRANS_B, 1);
        bench_expect_shape(&node, 0, SHAPE(N, 10));
        node.inputs[2].shape = SHAPE(11);
        bench_expect_error(&node, EINVAL, "input 2 [11] does not broadcast to [N,10]");
        sl_attrs_set_int(&node.attrs, SL_ATTR_TRANS_B, 0);
        bench_expect_error(&node, EINVAL, "input 0 has 512 columns, input 1 has 10 rows");
}

static struct sl_node_desc matmul(struct sl_shape a, struct sl_shape b)
{
        struct sl_node_desc node = bench_node(SL_OP_MATMUL);

        bench_input(&node, SL_DTYPE_F32, a);
        bench_input(&node, SL_DTYPE_F32, b);
        return node;
}

Test(matmul, broadcasts_leading_dimensions)
{
        struct sl_node_desc node = matmul(SHAPE(N, 12, 128, 64), SHAPE(N, 12, 64, 128));

        bench_expect_shape(&node, 0, SHAPE(N, 12, 128, 128));
        node = matmul(SHAPE(N, 128, 768), SHAPE(768, 3072));
        bench_expect_shape(&node, 0, SHAPE(N, 128, 3072));
        node = matmul(SHAPE(5, 1, 2, 3), SHAPE(4, 3, 6));
        bench_expect_shape(&node, 0, SHAPE(5, 4, 2, 6));
        node = matmul(SHAPE(5, 2, 3), SHAPE(4, 3, 6));
        bench_expect_error(&node, EINVAL, "shapes [5] and [4] do not broadcast");
}

Test(matmul, takes_vectors_on_either_side)
{
        struct sl_node_desc node = matmul(SHAPE(3), SHAPE(3));

        bench_expect_shape(&node, 0, SCALAR);
        node = matmul(SHAPE(N, 2, 3), SHAPE(3));
        bench_expect_shape(&node, 0, SHAPE(N, 2));
        node = matmul(SHAPE(3), SHAPE(4, 3, 5));
        bench_expect_shape(&node, 0, SHAPE(4, 5));
        node = matmul(SCALAR, SHAPE(3));
        bench_expect_error(&node, EINVAL, "input 0 is a scalar");
}

Test(norms, check_their_vectors)
{
        struct sl_node_desc node = bench_node(SL_OP_BATCH_NORM);

        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 4, 8, 8));
        for (int i = 0; i < 4; i++)
                bench_input(&node, SL_DTYPE_F32, SHAPE(4));
        bench_expect_shape(&node, 0, SHAPE(N, 4, 8, 8));
        node.inputs[3].shape = SHAPE(3);
        bench_expect_error(&node, EINVAL, "input 3 is [3], wants [4]");

        node = bench_node(SL_OP_LAYER_NORM);
        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 128, 768));
        bench_input(&node, SL_DTYPE_F32, SHAPE(768));
        bench_expect_shape(&node, 0, SHAPE(N, 128, 768));
        node.inputs[1].shape = SHAPE(769);
        bench_expect_error(&node, EINVAL, "input 1 [769] does not broadcast");
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 3);
        bench_expect_error(&node, EINVAL, "axis 3 is outside [-3,2]");

        node = bench_node(SL_OP_SOFTMAX);
        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 10));
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, -3);
        bench_expect_error(&node, EINVAL, "axis -3 is outside [-2,1]");
}

static struct sl_node_desc add(struct sl_shape a, struct sl_shape b)
{
        struct sl_node_desc node = bench_node(SL_OP_ADD);

        bench_input(&node, SL_DTYPE_F32, a);
        bench_input(&node, SL_DTYPE_F32, b);
        return node;
}

Test(broadcast, carries_the_batch)
{
        struct sl_node_desc node = add(SHAPE(N, 3), SHAPE(N, 3));

        bench_expect_shape(&node, 0, SHAPE(N, 3));
        node = add(SHAPE(N, 3), SHAPE(1, 3));
        bench_expect_shape(&node, 0, SHAPE(N, 3));
        node = add(SHAPE(3), SHAPE(N, 1));
        bench_expect_shape(&node, 0, SHAPE(N, 3));
        node = add(SHAPE(N, 3), SHAPE(U, 3));
        bench_expect_shape(&node, 0, SHAPE(U, 3));
        node = add(SHAPE(2, 3), SHAPE(4, 3));
        bench_expect_error(&node, EINVAL, "shapes [2,3] and [4,3] do not broadcast");
}

Test(broadcast, wants_one_type)
{
        struct sl_node_desc node = add(SHAPE(3), SHAPE(3));

        node.inputs[1].dtype = SL_DTYPE_I64;
        bench_expect_error(&node, EINVAL, "input 1 is int64, input 0 is float32");
        node.op = SL_OP_POW;
        bench_expect_shape(&node, 0, SHAPE(3));
        cr_assert_eq(node.outputs[0].dtype, SL_DTYPE_F32);
}

Test(comparison, gives_booleans)
{
        struct sl_node_desc node = add(SHAPE(N, 3), SHAPE(3));

        node.op = SL_OP_LESS;
        bench_expect_shape(&node, 0, SHAPE(N, 3));
        cr_assert_eq(node.outputs[0].dtype, SL_DTYPE_BOOL);
        node.op = SL_OP_AND;
        bench_expect_error(&node, EINVAL, "input 0 is float32, wants bool");
}

Test(where, takes_its_type_from_the_branches)
{
        struct sl_node_desc node = bench_node(SL_OP_WHERE);

        bench_input(&node, SL_DTYPE_BOOL, SHAPE(N, 1));
        bench_input(&node, SL_DTYPE_I64, SHAPE(5));
        bench_input(&node, SL_DTYPE_I64, SCALAR);
        bench_expect_shape(&node, 0, SHAPE(N, 5));
        cr_assert_eq(node.outputs[0].dtype, SL_DTYPE_I64);
        node.inputs[2].dtype = SL_DTYPE_F32;
        bench_expect_error(&node, EINVAL, "input 1 is int64, input 2 is float32");
}

Test(cast, wants_a_type)
{
        struct sl_node_desc node = bench_node(SL_OP_CAST);

        bench_input(&node, SL_DTYPE_F32, SHAPE(N));
        bench_expect_error(&node, EINVAL, "attribute to is 0");
        sl_attrs_set_int(&node.attrs, SL_ATTR_TO, 8);
        bench_expect_error(&node, EINVAL, "attribute to is 8");
        sl_attrs_set_int(&node.attrs, SL_ATTR_TO, SL_DTYPE_BF16);
        bench_expect_shape(&node, 0, SHAPE(N));
        cr_assert_eq(node.outputs[0].dtype, SL_DTYPE_BF16);
}

static struct sl_node_desc reduce(struct sl_shape x)
{
        struct sl_node_desc node = bench_node(SL_OP_REDUCE_MEAN);

        bench_input(&node, SL_DTYPE_F32, x);
        return node;
}

Test(reduce, keeps_or_drops_the_axes)
{
        struct sl_node_desc node = reduce(SHAPE(N, 3, 4));

        bench_expect_shape(&node, 0, SHAPE(1, 1, 1));
        BENCH_INTS(&node, SL_ATTR_AXES, -1);
        bench_expect_shape(&node, 0, SHAPE(N, 3, 1));
        sl_attrs_set_int(&node.attrs, SL_ATTR_KEEPDIMS, 0);
        bench_expect_shape(&node, 0, SHAPE(N, 3));
        BENCH_INTS(&node, SL_ATTR_AXES, 1, -2);
        bench_expect_error(&node, EINVAL, "axis -2 is given twice");
        BENCH_INTS(&node, SL_ATTR_AXES, 3);
        bench_expect_error(&node, EINVAL, "axis 3 is outside [-3,2]");
}

Test(reduce, without_axes_does_everything_or_nothing)
{
        struct sl_node_desc node = reduce(SHAPE(N, 3));

        sl_attrs_set_ints(&node.attrs, SL_ATTR_AXES, NULL, 0);
        sl_attrs_set_int(&node.attrs, SL_ATTR_KEEPDIMS, 0);
        bench_expect_shape(&node, 0, SCALAR);
        sl_attrs_set_int(&node.attrs, SL_ATTR_NOOP_EMPTY_AXES, 1);
        bench_expect_shape(&node, 0, SHAPE(N, 3));
}

Test(reduce, with_pending_axes_knows_the_rank)
{
        struct sl_node_desc node = reduce(SHAPE(N, 3, 4));

        bench_input(&node, SL_DTYPE_I64, SHAPE(2));
        bench_expect_shape(&node, 0, SHAPE(U, U, U));
        sl_attrs_set_int(&node.attrs, SL_ATTR_KEEPDIMS, 0);
        bench_expect_shape(&node, 0, SHAPE(U));
        node.inputs[1].shape = SHAPE(U);
        bench_expect_error(&node, ENOTSUP, "unknown length");
}

Test(argreduce, gives_int64)
{
        struct sl_node_desc node = bench_node(SL_OP_ARG_MAX);

        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 10));
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 1);
        sl_attrs_set_int(&node.attrs, SL_ATTR_KEEPDIMS, 0);
        bench_expect_shape(&node, 0, SHAPE(N));
        cr_assert_eq(node.outputs[0].dtype, SL_DTYPE_I64);
        node.inputs[0].shape = SHAPE(N, 0);
        bench_expect_error(&node, EINVAL, "no elements along axis 1");
}
