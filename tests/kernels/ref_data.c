/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators whose data are places, lengths or numbers of images: what lies outside is refused at launch; and shape rules that name
 * what they refuse. That they compute what ONNX says is tests/conformance's to prove.
 */
#include "examples.h"
#include "node_bench.h"
#include "shape/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The example of @op with input @input full of that integer; the launch's result. */
static int run_with(enum sl_op op, uint32_t input, int64_t value)
{
        void *inputs[SL_NODE_INPUTS_MAX] = {NULL}, *outputs[SL_NODE_OUTPUTS_MAX] = {NULL};
        struct sl_node_desc node, inferred;
        struct sl_error error;
        int result;

        cr_assert(example_node(op, 0, &node));
        inferred = node;
        cr_assert_eq(sl_op_infer(&inferred, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < node.n_inputs; i++)
                inputs[i] = node.inputs[i].dtype ? calloc(1, sl_tensor_bytes(&node.inputs[i]) + 8) : NULL;
        for (uint64_t i = 0; i < sl_shape_elements(&node.inputs[input].shape); i++) {
                if (node.inputs[input].dtype == SL_DTYPE_I64)
                        ((int64_t *)inputs[input])[i] = value;
                else
                        ((int32_t *)inputs[input])[i] = (int32_t)value;
        }
        for (uint32_t i = 0; i < node.n_outputs; i++)
                outputs[i] = calloc(1, sl_tensor_bytes(&inferred.outputs[i]) + 8);
        result = bench_run(&node, (const void *const *)inputs, outputs);
        for (uint32_t i = 0; i < node.n_inputs; i++)
                free(inputs[i]);
        for (uint32_t i = 0; i < node.n_outputs; i++)
                free(outputs[i]);
        return result;
}

Test(ref_data, an_index_outside_its_dimension_is_refused)
{
        static const struct {
                enum sl_op op;
                uint32_t input;
                int64_t least, most;
        } rows[] = {
                {SL_OP_GATHER_ELEMENTS, 1, -3, 2},
                {SL_OP_GATHER_ND, 1, -3, 2},
                {SL_OP_SCATTER_ELEMENTS, 1, -3, 2},
                {SL_OP_SCATTER_ND, 1, -2, 1},
                {SL_OP_ROI_ALIGN, 2, 0, 1},
                {SL_OP_MAX_UNPOOL, 1, 0, 31},
                {SL_OP_REVERSE_SEQUENCE, 1, 0, 3},
                {SL_OP_ROTARY_EMBEDDING, 3, 0, 4},
                {SL_OP_CROSS_ENTROPY_LOSS, 1, 0, 2},
                {SL_OP_LSTM, 4, 0, 2},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                const char *name = sl_op_name(rows[i].op);

                cr_expect_eq(run_with(rows[i].op, rows[i].input, rows[i].least), 0, "%s", name);
                cr_expect_eq(run_with(rows[i].op, rows[i].input, rows[i].most), 0, "%s", name);
                cr_expect_eq(run_with(rows[i].op, rows[i].input, rows[i].least - 1), -ERANGE, "%s", name);
                cr_expect_eq(run_with(rows[i].op, rows[i].input, rows[i].most + 1), -ERANGE, "%s", name);
        }
}

Test(ref_data, a_label_to_be_ignored_may_be_outside)
{
        cr_assert_eq(run_with(SL_OP_NLL_LOSS, 1, 0), 0);
        cr_assert_eq(run_with(SL_OP_NLL_LOSS, 1, 3), -ERANGE);
}

Test(ref_data, the_best_boxes_are_counted)
{
        const float boxes[] = {0, 0, 1, 1, 0, 0, 1, 1.05f, 5, 5, 6, 6, 1, 1, 0, 0}, scores[] = {0.5f, 0.9f, 0.2f, 0.8f};
        const float overlap = 0.5f, least = 0.1f;
        struct sl_node_desc node = bench_node(SL_OP_NON_MAX_SUPPRESSION);
        struct sl_kernel *kernel = NULL;
        struct sl_error error;
        int64_t rows[12], scratch[4], made = -1;

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 4, 4));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 4));
        bench_input(&node, SL_DTYPE_NONE, SCALAR);
        bench_input(&node, SL_DTYPE_F32, SCALAR);
        bench_input(&node, SL_DTYPE_F32, SCALAR);
        sl_attrs_set_int(&node.attrs, SL_ATTR_MAX_BOXES, 9);
        cr_assert_eq(sl_op_most_boxes(&node), 4);
        cr_assert_eq(sl_op_infer(&node, &error), 0, "%s", error.text);
        node.outputs[0].shape.dims[0] = 4;
        cr_assert_eq(sl_backend_ref.runner->compile(NULL, &(struct sl_kernel_source){.node = &node}, &kernel, &error), 0, "%s",
                error.text);
        cr_assert_eq(
                sl_backend_ref.runner->launch(kernel, &(struct sl_binding){.inputs = INPUTS(boxes, scores, NULL, &overlap, &least),
                                                              .outputs = (void *[]){rows},
                                                              .scratch = scratch,
                                                              .made = &made}),
                0);
        cr_assert_eq(made, 2);
        cr_assert_eq(rows[2], 1);
        cr_assert_eq(rows[5], 2);
        sl_backend_ref.runner->kernel_free(kernel);
}

/* As numpy.unique(), of which ONNX's text says that it is the same. */
Test(ref_data, what_is_unique_is_sorted_with_one_nan_behind_all_numbers)
{
        const float x[] = {NAN, 2, -INFINITY, NAN, 1, INFINITY, 2, NAN, -INFINITY};
        const float wanted[] = {-INFINITY, 1, 2, INFINITY, NAN};
        struct sl_node_desc node = bench_node(SL_OP_UNIQUE);
        struct sl_kernel *kernel = NULL;
        struct sl_error error;
        int64_t firsts[9], numbers[9], counts[9], scratch[4 * 9], made = -1;
        float y[9];

        bench_input(&node, SL_DTYPE_F32, SHAPE(9));
        node.n_outputs = 4;
        cr_assert_eq(sl_op_infer(&node, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < 4; i++)
                node.outputs[i].shape = SHAPE(9);
        cr_assert_eq(sl_backend_ref.runner->compile(NULL, &(struct sl_kernel_source){.node = &node}, &kernel, &error), 0, "%s",
                error.text);
        cr_assert_leq(sl_backend_ref.runner->scratch_bytes(kernel), sizeof(scratch));
        cr_assert_eq(sl_backend_ref.runner->launch(kernel, &(struct sl_binding){.inputs = INPUTS(x),
                                                                   .outputs = (void *[]){y, firsts, numbers, counts},
                                                                   .scratch = scratch,
                                                                   .made = &made}),
                0);
        cr_assert_eq(made, 5);
        cr_expect(!memcmp(y, wanted, 4 * sizeof(*y)) && isnan(y[4]));
        cr_expect(!memcmp(firsts, (int64_t[]){2, 4, 1, 5, 0}, 5 * sizeof(int64_t)));
        cr_expect(!memcmp(numbers, (int64_t[]){4, 2, 0, 4, 1, 3, 2, 4, 0}, sizeof(numbers)));
        cr_expect(!memcmp(counts, (int64_t[]){2, 1, 2, 1, 3}, 5 * sizeof(int64_t)));
        sl_backend_ref.runner->kernel_free(kernel);
}

Test(ref_data, shape_rules_name_what_does_not_fit)
{
        struct sl_node_desc node;

        example_node(SL_OP_LSTM, 0, &node);
        node.inputs[2].shape.dims[1] = 12;
        bench_expect_error(&node, EINVAL, "input 2 is [1,12,4], wants [1,16,4]");
        example_node(SL_OP_TOP_K, 0, &node);
        sl_attrs_set_int(&node.attrs, SL_ATTR_K, 6);
        bench_expect_error(&node, EINVAL, "attribute k is 6, dimension 1 has 5 elements");
        example_node(SL_OP_RESIZE, 0, &node);
        sl_attrs_set_floats(&node.attrs, SL_ATTR_SCALES, (double[]){1, 1, -1, 1}, 4);
        bench_expect_error(&node, EINVAL, "the scale of dimension 2 is -1, outside (0,2^31)");
        example_node(SL_OP_DEPTH_TO_SPACE, 0, &node);
        node.inputs[0].shape.dims[1] = 7;
        bench_expect_error(&node, EINVAL, "dimension 1 is 7, no multiple of 4");
        example_node(SL_OP_GROUP_NORM, 0, &node);
        sl_attrs_set_int(&node.attrs, SL_ATTR_NUM_GROUPS, 3);
        bench_expect_error(&node, EINVAL, "attribute num_groups is 3, input 0 has 4 channels");
        example_node(SL_OP_SCATTER_ND, 0, &node);
        node.inputs[2].shape.dims[1] = 3;
        bench_expect_error(&node, EINVAL, "input 2 is [2,3], wants [2,4]");
}

Test(ref_data, integers_that_are_resized_with_a_filter_are_rounded)
{
        struct sl_node_desc node = bench_node(SL_OP_RESIZE);
        const uint8_t x[] = {0, 1, 10, 11};

        bench_input(&node, SL_DTYPE_U8, SHAPE(1, 1, 1, 4));
        BENCH_INTS(&node, SL_ATTR_SIZES, 1, 1, 1, 2);
        sl_attrs_set_int(&node.attrs, SL_ATTR_MODE, 1);
        sl_attrs_set_int(&node.attrs, SL_ATTR_ANTIALIAS, 1);
        EXPECT_ELEMENTS(&node, INPUTS(x), uint8_t, 2, 9); /* 1.625 and 9.375 */
}

/* Columns 0, 1, ... of one row, resized to @out of them by the nearest. */
static void expect_nearest(
        uint32_t in, uint32_t out, enum sl_resize_transform transform, enum sl_resize_nearest kind, uint32_t at, float wanted)
{
        struct sl_node_desc node = bench_node(SL_OP_RESIZE);
        float x[64], y[64];

        for (uint32_t i = 0; i < in; i++)
                x[i] = (float)i;
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 1, (int64_t)in));
        BENCH_INTS(&node, SL_ATTR_SIZES, 1, 1, 1, out);
        sl_attrs_set_int(&node.attrs, SL_ATTR_TRANSFORM, transform);
        sl_attrs_set_int(&node.attrs, SL_ATTR_NEAREST, kind);
        cr_assert_eq(bench_run(&node, INPUTS(x), (void *[]){y}), 0);
        cr_expect_eq(y[at], wanted, "%u of %u columns: %g, wants %g", at, out, (double)y[at], (double)wanted);
}

Test(ref_data, what_a_size_makes_whole_or_half_is_taken_as_that)
{
        for (uint32_t i = 0; i < 7; i++)
                expect_nearest(13, 7, SL_RESIZE_ALIGN_CORNERS, SL_RESIZE_FLOOR, i, (float)(2 * i));
        expect_nearest(13, 32, SL_RESIZE_ASYMMETRIC, SL_RESIZE_PREFER_CEIL, 16, 7);
        expect_nearest(30, 39, SL_RESIZE_HALF_PIXEL, SL_RESIZE_PREFER_FLOOR, 19, 14);
}

Test(ref_data, the_batch_is_carried_by_what_keeps_samples_apart)
{
        struct sl_node_desc node = bench_node(SL_OP_RESIZE);

        bench_input(&node, SL_DTYPE_F32, SHAPE(N, 3, 4, 4));
        sl_attrs_set_floats(&node.attrs, SL_ATTR_SCALES, (double[]){1, 1, 2, 2}, 4);
        bench_expect_shape(&node, 0, SHAPE(N, 3, 8, 8));
        example_node(SL_OP_CONV_TRANSPOSE, 0, &node);
        node.inputs[0].shape.dims[0] = N;
        bench_expect_shape(&node, 0, SHAPE(N, 4, 6, 4));
        example_node(SL_OP_GRU, 0, &node);
        node.inputs[0].shape.dims[1] = N;
        bench_expect_shape(&node, 0, SHAPE(2, 2, N, 4));
        example_node(SL_OP_DEPTH_TO_SPACE, 0, &node);
        node.inputs[0].shape.dims[0] = N;
        bench_expect_shape(&node, 0, SHAPE(N, 2, 4, 6));
}
