/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ref kernels of convolutions, pools, products and norms, against values worked out by hand or by a plainer formula.
 */
#include "node_bench.h"
#include "shape/recurrent.h"

#include <math.h>
#include <stdlib.h>

/* Small integers, so that sums in float are exact. */
static void fill(float *values, size_t n, uint32_t seed)
{
        for (size_t i = 0; i < n; i++) {
                seed = seed * 1664525u + 1013904223u;
                values[i] = (float)((int)(seed >> 28) - 8);
        }
}

Test(conv, slides_a_window)
{
        struct sl_node_desc node = bench_node(SL_OP_CONV);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 3, 3));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 2, 2));
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4, 5, 6, 7, 8, 9), FLOATS(1, 10, 100, 1000)), 5421, 6532, 8754, 9865);
}

Test(conv, pads_strides_and_dilates_in_one_dimension)
{
        struct sl_node_desc node = bench_node(SL_OP_CONV);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 5));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 2));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1));
        BENCH_INTS(&node, SL_ATTR_PADS, 1, 2);
        BENCH_INTS(&node, SL_ATTR_STRIDES, 2);
        BENCH_INTS(&node, SL_ATTR_DILATIONS, 3);
        /* Taps at -1 and 2, 1 and 4, 3 and 6. */
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4, 5), FLOATS(1, 10), FLOATS(0.5f)), 30.5f, 52.5f, 4.5f);
}

/* A convolution in two dimensions by its definition, over a padded copy of the coordinates. */
static float conv_by_definition(const float *x, const float *w, int channels, int group_channels, int size, int n, int m, int group,
        int oy, int ox, int stride, int pad, int dilation)
{
        float sum = 0;

        for (int c = 0; c < group_channels; c++)
                for (int ky = 0; ky < 3; ky++)
                        for (int kx = 0; kx < 3; kx++) {
                                int y = oy * stride - pad + ky * dilation, z = ox * stride - pad + kx * dilation;

                                if (y < 0 || z < 0 || y >= size || z >= size)
                                        continue;
                                sum += x[((n * channels + group * group_channels + c) * size + y) * size + z] *
                                       w[((m * group_channels + c) * 3 + ky) * 3 + kx];
                        }
        return sum;
}

Test(conv, agrees_with_the_definition_in_groups)
{
        enum { CHANNELS = 4, FILTERS = 6, SIZE = 9, OUT = 4 };
        struct sl_node_desc node = bench_node(SL_OP_CONV);
        float x[2 * CHANNELS * SIZE * SIZE], w[FILTERS * 2 * 9], want[2 * FILTERS * OUT * OUT], *next = want;

        fill(x, sizeof(x) / 4, 1);
        fill(w, sizeof(w) / 4, 2);
        bench_input(&node, SL_DTYPE_F32, SHAPE(2, CHANNELS, SIZE, SIZE));
        bench_input(&node, SL_DTYPE_F32, SHAPE(FILTERS, 2, 3, 3));
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, 2);
        BENCH_INTS(&node, SL_ATTR_PADS, 1, 1, 1, 1);
        BENCH_INTS(&node, SL_ATTR_STRIDES, 2, 2);
        BENCH_INTS(&node, SL_ATTR_DILATIONS, 2, 2);
        for (int n = 0; n < 2; n++)
                for (int m = 0; m < FILTERS; m++)
                        for (int y = 0; y < OUT; y++)
                                for (int z = 0; z < OUT; z++)
                                        *next++ = conv_by_definition(x, w, CHANNELS, 2, SIZE, n, m, m / 3, y, z, 2, 1, 2);
        bench_expect_floats(&node, INPUTS(x, w), want, sizeof(want) / 4, 0);
}

Test(conv, in_three_dimensions_sums_a_box)
{
        struct sl_node_desc node = bench_node(SL_OP_CONV);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 2, 2, 3));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 2, 2, 2));
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), FLOATS(1, 1, 1, 1, 1, 1, 1, 1)), 48, 56);
}

Test(conv, adds_the_residual_before_the_activation)
{
        struct sl_node_desc node = bench_node(SL_OP_CONV);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 3));
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 1));
        bench_input(&node, SL_DTYPE_NONE, SCALAR);
        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 3));
        node.epilogue = (struct sl_epilogue){.activation = SL_ACT_CLIP, .act_a = 0, .act_b = 6, .has_residual = 1};
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3), FLOATS(2), NULL, FLOATS(-3, 1, 2)), 0, 5, 6);
}

Test(epilogue, takes_the_last_input_for_the_residual_and_never_for_the_bias)
{
        const enum sl_op ops[] = {SL_OP_GEMM, SL_OP_MATMUL};

        for (int i = 0; i < 2; i++) {
                struct sl_node_desc node = bench_node(ops[i]);

                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1));
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1));
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1));
                node.epilogue.has_residual = 1;
                EXPECT_FLOATS(&node, INPUTS(FLOATS(2), FLOATS(3), FLOATS(10)), 16);
                node.inputs[2].shape = SHAPE(1);
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1));
                EXPECT_FLOATS(&node, INPUTS(FLOATS(2), FLOATS(3), FLOATS(10), FLOATS(100)), 116);
        }
        struct sl_node_desc conv = bench_node(SL_OP_CONV);
        for (int i = 0; i < 3; i++)
                bench_input(&conv, SL_DTYPE_F32, SHAPE(1, 1, 1));
        conv.epilogue.has_residual = 1;
        EXPECT_FLOATS(&conv, INPUTS(FLOATS(2), FLOATS(3), FLOATS(10)), 16);
}

Test(epilogue, has_every_activation)
{
        const struct {
                struct sl_epilogue epilogue;
                float want[2]; /* at -1 and 2 */
        } cases[] = {
                {{.activation = SL_ACT_NONE}, {-1, 2}},
                {{.activation = SL_ACT_RELU}, {0, 2}},
                {{.activation = SL_ACT_SIGMOID}, {0.26894142f, 0.88079708f}},
                {{.activation = SL_ACT_TANH}, {-0.76159416f, 0.96402758f}},
                {{.activation = SL_ACT_LEAKY_RELU, .act_a = 0.25f}, {-0.25f, 2}},
                {{.activation = SL_ACT_GELU_ERF}, {-0.15865525f, 1.9544997f}},
                {{.activation = SL_ACT_HARD_SWISH}, {-1.0f / 3, 5.0f / 3}},
                {{.activation = SL_ACT_SWISH, .act_a = 1}, {-0.26894142f, 1.7615942f}},
                {{.activation = SL_ACT_ELU, .act_a = 2}, {-1.2642411f, 2}},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct sl_node_desc node = bench_node(SL_OP_MATMUL);

                bench_input(&node, SL_DTYPE_F32, SHAPE(2, 1));
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1));
                node.epilogue = cases[i].epilogue;
                bench_expect_floats(&node, INPUTS(FLOATS(-1, 2), FLOATS(1)), cases[i].want, 2, 1e-6);
        }
}

Test(gemm, scales_transposes_and_broadcasts_the_bias)
{
        struct sl_node_desc node = bench_node(SL_OP_GEMM);

        bench_input(&node, SL_DTYPE_F32, SHAPE(3, 2));
        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 3));
        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 1));
        sl_attrs_set_int(&node.attrs, SL_ATTR_TRANS_A, 1);
        sl_attrs_set_int(&node.attrs, SL_ATTR_TRANS_B, 1);
        sl_attrs_set_float(&node.attrs, SL_ATTR_ALPHA, 0.5);
        sl_attrs_set_float(&node.attrs, SL_ATTR_BETA, 2);
        /* A' = [1 3 5; 2 4 6], B' = [1 4; 2 5; 3 6]. */
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4, 5, 6), FLOATS(1, 2, 3, 4, 5, 6), FLOATS(10, 20)), 31, 44.5f, 54, 72);
}

Test(matmul, agrees_with_the_definition_beyond_one_tile)
{
        enum { ROWS = 3, INNER = 5, COLUMNS = 37 };
        struct sl_node_desc node = bench_node(SL_OP_MATMUL);
        float a[2 * ROWS * INNER], b[INNER * COLUMNS], bias[COLUMNS], want[2 * ROWS * COLUMNS];

        fill(a, sizeof(a) / 4, 3);
        fill(b, sizeof(b) / 4, 4);
        fill(bias, COLUMNS, 5);
        bench_input(&node, SL_DTYPE_F32, SHAPE(2, ROWS, INNER));
        bench_input(&node, SL_DTYPE_F32, SHAPE(INNER, COLUMNS));
        bench_input(&node, SL_DTYPE_F32, SHAPE(COLUMNS));
        for (int i = 0; i < 2 * ROWS; i++)
                for (int j = 0; j < COLUMNS; j++) {
                        want[i * COLUMNS + j] = bias[j];
                        for (int k = 0; k < INNER; k++)
                                want[i * COLUMNS + j] += a[i * INNER + k] * b[k * COLUMNS + j];
                }
        bench_expect_floats(&node, INPUTS(a, b, bias), want, sizeof(want) / 4, 0);
}

Test(matmul, broadcasts_matrices)
{
        struct sl_node_desc node = bench_node(SL_OP_MATMUL);

        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 1, 1, 2));
        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 2, 1));
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4), FLOATS(1, 10, 100, 1000)), 21, 2100, 43, 4300);
}

Test(matmul, of_vectors_is_a_scalar)
{
        struct sl_node_desc node = bench_node(SL_OP_MATMUL);

        bench_input(&node, SL_DTYPE_F32, SHAPE(3));
        bench_input(&node, SL_DTYPE_F32, SHAPE(3));
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3), FLOATS(4, 5, 6)), 32);
}

Test(matmul, of_integers_is_exact_and_wraps)
{
        struct sl_node_desc node = bench_node(SL_OP_MATMUL);

        bench_input(&node, SL_DTYPE_I64, SHAPE(1, 2));
        bench_input(&node, SL_DTYPE_I64, SHAPE(2, 1));
        EXPECT_ELEMENTS(&node, INPUTS(((int64_t[]){INT64_MAX, 3}), ((int64_t[]){2, 1})), int64_t, 1);
}

Test(matmul, of_half_floats_rounds_once)
{
        struct sl_node_desc node = bench_node(SL_OP_MATMUL);

        bench_input(&node, SL_DTYPE_F16, SHAPE(1, 2));
        bench_input(&node, SL_DTYPE_F16, SHAPE(2, 1));
        /* 2048 * 1 + 1 * 1.5 = 2049.5, between 2048 and 2050. */
        EXPECT_ELEMENTS(&node, INPUTS(((uint16_t[]){0x6800, 0x3c00}), ((uint16_t[]){0x3c00, 0x3e00})), uint16_t, 0x6801);
        node.inputs[0].dtype = node.inputs[1].dtype = SL_DTYPE_BF16;
        EXPECT_ELEMENTS(&node, INPUTS(((uint16_t[]){0x3f80, 0x4000}), ((uint16_t[]){0x3f80, 0x4000})), uint16_t, 0x40a0);
}

static struct sl_node_desc pool(enum sl_op op, int64_t size, int64_t kernel, int64_t stride, int64_t begin, int64_t end)
{
        struct sl_node_desc node = bench_node(op);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, size));
        BENCH_INTS(&node, SL_ATTR_KERNEL_SHAPE, kernel);
        BENCH_INTS(&node, SL_ATTR_STRIDES, stride);
        BENCH_INTS(&node, SL_ATTR_PADS, begin, end);
        return node;
}

Test(pool, max_ignores_padding)
{
        struct sl_node_desc node = pool(SL_OP_MAX_POOL, 4, 3, 1, 1, 1);

        EXPECT_FLOATS(&node, INPUTS(FLOATS(-4, -3, -2, -5)), -3, -2, -2, -2);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, NAN, 2, 3)), NAN, NAN, NAN, 3);
}

/* In each place of the region, and of an aligned one with the weight that it has there; what has none does not count. */
Test(pool, the_largest_of_a_region_is_nan_where_one_is)
{
        for (int at = 0; at < 4; at++) {
                struct sl_node_desc node = bench_node(SL_OP_MAX_ROI_POOL);
                float x[4] = {1, 2, 3, 4};

                x[at] = NAN;
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 2, 2));
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 5));
                BENCH_INTS(&node, SL_ATTR_POOLED_SHAPE, 1, 1);
                EXPECT_FLOATS(&node, INPUTS(x, FLOATS(0, 0, 0, 1, 1)), NAN);
                node = bench_node(SL_OP_ROI_ALIGN);
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 2, 2));
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 4));
                bench_input(&node, SL_DTYPE_I64, SHAPE(1));
                sl_attrs_set_int(&node.attrs, SL_ATTR_MODE, 1);
                sl_attrs_set_int(&node.attrs, SL_ATTR_SAMPLING_RATIO, 1);
                EXPECT_FLOATS(&node, INPUTS(x, FLOATS(0, 0, 2, 2), ((int64_t[]){0})), NAN);
                sl_attrs_set_int(&node.attrs, SL_ATTR_SAMPLING_RATIO, 2);
                EXPECT_FLOATS(&node, INPUTS(x, FLOATS(0, 0, 2, 2), ((int64_t[]){0})), NAN);
                EXPECT_FLOATS(&node, INPUTS(x, FLOATS(-1, -1, 1, 1), ((int64_t[]){0})), at ? 1 : NAN);
        }
}

Test(pool, average_counts_padding_on_request_but_not_what_ceil_adds)
{
        struct sl_node_desc node = pool(SL_OP_AVERAGE_POOL, 4, 3, 2, 1, 0);

        sl_attrs_set_int(&node.attrs, SL_ATTR_CEIL_MODE, 1);
        /* Windows at -1, 1, and at 3 with one element inside. */
        EXPECT_FLOATS(&node, INPUTS(FLOATS(3, 6, 9, 12)), 4.5f, 9);
        node = pool(SL_OP_AVERAGE_POOL, 5, 3, 3, 1, 0);
        sl_attrs_set_int(&node.attrs, SL_ATTR_CEIL_MODE, 1);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(3, 6, 9, 12, 30)), 4.5f, 17);
        node = pool(SL_OP_AVERAGE_POOL, 4, 3, 3, 1, 1);
        sl_attrs_set_int(&node.attrs, SL_ATTR_CEIL_MODE, 1);
        sl_attrs_set_int(&node.attrs, SL_ATTR_COUNT_INCLUDE_PAD, 1);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(3, 6, 9, 12)), 3, 7);
}

Test(pool, average_beyond_the_padding_divides_by_what_is_there)
{
        struct sl_node_desc node = pool(SL_OP_AVERAGE_POOL, 5, 2, 2, 0, 0);

        sl_attrs_set_int(&node.attrs, SL_ATTR_CEIL_MODE, 1);
        sl_attrs_set_int(&node.attrs, SL_ATTR_COUNT_INCLUDE_PAD, 1);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 3, 5, 7, 9)), 2, 6, 9);
}

Test(pool, max_dilates)
{
        struct sl_node_desc node = pool(SL_OP_MAX_POOL, 5, 2, 1, 0, 0);

        BENCH_INTS(&node, SL_ATTR_DILATIONS, 3);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 9, 3, 4, 5)), 4, 9);
}

Test(pool, global_looks_at_all_positions)
{
        struct sl_node_desc node = bench_node(SL_OP_GLOBAL_AVERAGE_POOL);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 2, 2, 2));
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4, -1, -2, -3, -6)), 2.5f, -3);
        node.op = SL_OP_GLOBAL_MAX_POOL;
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4, -1, -2, -3, -6)), 4, -1);
}

Test(batch_norm, normalises_each_channel)
{
        struct sl_node_desc node = bench_node(SL_OP_BATCH_NORM);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 2, 2));
        for (int i = 0; i < 4; i++)
                bench_input(&node, SL_DTYPE_F32, SHAPE(2));
        sl_attrs_set_float(&node.attrs, SL_ATTR_EPSILON, 0);
        EXPECT_FLOATS(
                &node, INPUTS(FLOATS(1, 3, 10, 20), FLOATS(2, 1), FLOATS(0.5f, 0), FLOATS(1, 10), FLOATS(4, 25)), 0.5f, 2.5f, 0, 2);
}

Test(layer_norm, normalises_behind_the_axis)
{
        struct sl_node_desc node = bench_node(SL_OP_LAYER_NORM);

        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 1, 2));
        bench_input(&node, SL_DTYPE_F32, SHAPE(2));
        bench_input(&node, SL_DTYPE_F32, SHAPE(2));
        sl_attrs_set_float(&node.attrs, SL_ATTR_EPSILON, 0);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 3, -10, 10), FLOATS(1, 2), FLOATS(0, 1)), -1, 3, -1, 3);
        sl_attrs_set_float(&node.attrs, SL_ATTR_EPSILON, 3);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 3, 4, 6), FLOATS(2, 2), FLOATS(0, 0)), -1, 1, -1, 1);
}

Test(instance_norm, normalises_each_plane)
{
        struct sl_node_desc node = bench_node(SL_OP_INSTANCE_NORM);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 2, 2));
        bench_input(&node, SL_DTYPE_F32, SHAPE(2));
        bench_input(&node, SL_DTYPE_F32, SHAPE(2));
        sl_attrs_set_float(&node.attrs, SL_ATTR_EPSILON, 0);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 3, 5, 15), FLOATS(1, 10), FLOATS(0, 1)), -1, 1, -9, 11);
}

Test(lrn, sums_squares_across_channels)
{
        struct sl_node_desc node = bench_node(SL_OP_LRN);

        bench_input(&node, SL_DTYPE_F32, SHAPE(1, 4, 1));
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 2);
        sl_attrs_set_float(&node.attrs, SL_ATTR_ALPHA, 2);
        sl_attrs_set_float(&node.attrs, SL_ATTR_BETA, 1);
        sl_attrs_set_float(&node.attrs, SL_ATTR_VALUE, 1);
        /* An even size looks one further behind than before: x0,x1 | x1,x2 | x2,x3 | x3. */
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1, 2, 3, 4)), 1.0f / 6, 2.0f / 14, 3.0f / 26, 4.0f / 17);
}

Test(softmax, adds_up_to_one_and_survives_large_numbers)
{
        struct sl_node_desc node = bench_node(SL_OP_SOFTMAX);

        bench_input(&node, SL_DTYPE_F32, SHAPE(2, 2));
        EXPECT_FLOATS(&node, INPUTS(FLOATS(1000, 1000, 0, 1.0986123f)), 0.5f, 0.5f, 0.25f, 0.75f);
        sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 0);
        EXPECT_FLOATS(&node, INPUTS(FLOATS(0, 7, 1.0986123f, 7)), 0.25f, 0.5f, 0.75f, 0.5f);
        node.op = SL_OP_LOG_SOFTMAX;
        EXPECT_FLOATS(&node, INPUTS(FLOATS(0, 7, 0, -1e9f)), -0.69314718f, 0, -0.69314718f, -1e9f);
}

Test(softmax, may_lie_on_its_input)
{
        struct sl_node_desc node = bench_node(SL_OP_SOFTMAX);
        float data[2] = {0, 1.0986123f};
        void *out = data;

        bench_input(&node, SL_DTYPE_F32, SHAPE(2));
        cr_assert_eq(bench_run(&node, INPUTS(data), &out), 0);
        cr_assert_float_eq(data[0], 0.25f, 1e-6);
        cr_assert_float_eq(data[1], 0.75f, 1e-6);
}

Test(taper, a_symmetric_window_ends_as_it_begins_a_periodic_one_a_step_before)
{
        struct sl_node_desc node = bench_node(SL_OP_HANN_WINDOW);

        sl_attrs_set_int(&node.attrs, SL_ATTR_LENGTH, 4);
        EXPECT_FLOATS(&node, INPUTS(NULL), 0, 0.5f, 1, 0.5f);
        sl_attrs_set_int(&node.attrs, SL_ATTR_LENGTH, 5);
        sl_attrs_set_int(&node.attrs, SL_ATTR_PERIODIC, 0);
        EXPECT_FLOATS(&node, INPUTS(NULL), 0, 0.5f, 1, 0.5f, 0);
}

/* All but the ThresholdedRelu, which makes it 0 as the operator of that name does. */
Test(recurrent, a_gate_keeps_a_nan)
{
        const float weights[1] = {1}, x[1] = {NAN};

        for (int gate = SL_GATE_RELU; gate < SL_GATE_COUNT; gate++) {
                struct sl_node_desc node = bench_node(SL_OP_RNN);

                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 1));
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 1));
                bench_input(&node, SL_DTYPE_F32, SHAPE(1, 1, 1));
                sl_attrs_set_int(&node.attrs, SL_ATTR_HIDDEN_SIZE, 1);
                BENCH_INTS(&node, SL_ATTR_ACTIVATIONS, gate);
                EXPECT_FLOATS(&node, INPUTS(x, weights, weights), gate == SL_GATE_THRESHOLDED_RELU ? 0 : NAN);
        }
}
