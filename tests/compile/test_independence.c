/* SPDX-License-Identifier: Apache-2.0 */
#include "independence.h"
#include "network.h"

#include <criterion/criterion.h>

static struct network net;
static uint32_t x; /* [N, 4, 6] */

static void begin(void)
{
        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 6));
}

static void end(void)
{
        network_deinit(&net);
}

static bool independent_at(int64_t samples)
{
        struct sl_graph *one, *many;
        bool result;

        cr_assert_eq(sl_graph_specialise(net.graph, 1, &one, NULL), 0);
        cr_assert_eq(sl_graph_specialise(net.graph, samples, &many, NULL), 0);
        result = sl_samples_are_independent(one, many, samples);
        sl_graph_free(one);
        sl_graph_free(many);
        return result;
}

static bool independent(uint32_t output)
{
        network_output(&net, output);
        network_finish(&net);
        return independent_at(2);
}

static uint32_t with_axis(uint32_t op, uint32_t input, int64_t axis)
{
        return network_node(&net, op, VALUES(input), ATTRS({SL_ATTR_AXIS, 0, {axis}}));
}

static uint32_t transpose(uint32_t input, int64_t a, int64_t b, int64_t c)
{
        return network_node(&net, SL_OP_TRANSPOSE, VALUES(input), ATTRS({SL_ATTR_PERM, 3, {a, b, c}}));
}

static uint32_t reshape2(uint32_t input, int64_t a, int64_t b)
{
        return network_node(&net, SL_OP_RESHAPE, VALUES(input), ATTRS({SL_ATTR_SHAPE, 2, {a, b}}));
}

static uint32_t reshape3(uint32_t input, int64_t a, int64_t b, int64_t c)
{
        return network_node(&net, SL_OP_RESHAPE, VALUES(input), ATTRS({SL_ATTR_SHAPE, 3, {a, b, c}}));
}

TestSuite(independence, .init = begin, .fini = end);

Test(independence, a_softmax_within_a_sample_keeps_samples_apart)
{
        cr_assert(independent(with_axis(SL_OP_SOFTMAX, x, 1)));
}

Test(independence, a_softmax_over_the_batch_mixes)
{
        cr_assert(!independent(with_axis(SL_OP_SOFTMAX, x, 0)));
}

Test(independence, a_softmax_over_the_batch_behind_a_transpose_mixes)
{
        cr_assert(!independent(transpose(with_axis(SL_OP_SOFTMAX, transpose(x, 1, 0, 2), 1), 1, 0, 2)));
}

Test(independence, a_mean_over_the_batch_mixes_though_it_is_broadcast_back)
{
        uint32_t mean = network_node(&net, SL_OP_REDUCE_MEAN, VALUES(x), ATTRS({SL_ATTR_AXES, 1, {0}}, {SL_ATTR_KEEPDIMS, 0, {1}}));

        cr_assert(!independent(network_node(&net, SL_OP_SUB, VALUES(x, mean), 0, NULL)));
}

Test(independence, a_mean_within_a_sample_keeps_samples_apart)
{
        uint32_t mean = network_node(&net, SL_OP_REDUCE_MEAN, VALUES(x), ATTRS({SL_ATTR_AXES, 1, {2}}, {SL_ATTR_KEEPDIMS, 0, {1}}));

        cr_assert(independent(network_node(&net, SL_OP_SUB, VALUES(x, mean), 0, NULL)));
}

Test(independence, positions_merged_behind_the_batch_and_parted_again_keep_samples_apart)
{
        uint32_t merged = reshape2(x, -1, 6);

        merged = network_node(&net, SL_OP_MATMUL, VALUES(merged, network_weights(&net, DIMS(6, 6))), 0, NULL);
        cr_assert(independent(reshape3(merged, -1, 4, 6)));
}

Test(independence, positions_merged_before_the_batch_and_parted_again_keep_samples_apart)
{
        uint32_t merged = reshape2(transpose(x, 1, 0, 2), -1, 6);

        merged = network_apply(&net, SL_OP_RELU, merged);
        cr_assert(independent(transpose(reshape3(merged, 4, -1, 6), 1, 0, 2)));
}

Test(independence, a_reshape_that_cuts_across_samples_mixes)
{
        uint32_t cut = reshape2(x, 24, -1);

        cr_assert(!independent(network_node(&net, SL_OP_TRANSPOSE, VALUES(cut), ATTRS({SL_ATTR_PERM, 2, {1, 0}}))));
}

Test(independence, a_batch_normalization_keeps_samples_apart)
{
        cr_assert(independent(network_batch_norm(&net, x, 4)));
}

Test(independence, similarities_between_samples_mix)
{
        uint32_t flat = with_axis(SL_OP_FLATTEN, x, 1);
        uint32_t turned = network_node(&net, SL_OP_TRANSPOSE, VALUES(flat), ATTRS({SL_ATTR_PERM, 2, {1, 0}}));
        uint32_t scores = network_node(&net, SL_OP_MATMUL, VALUES(flat, turned), 0, NULL);

        cr_assert(!independent(network_node(&net, SL_OP_MATMUL, VALUES(scores, flat), 0, NULL)));
}

Test(independence, attention_within_a_sample_keeps_samples_apart)
{
        uint32_t scores = network_node(&net, SL_OP_MATMUL, VALUES(x, transpose(x, 0, 2, 1)), 0, NULL);

        cr_assert(independent(network_node(&net, SL_OP_MATMUL, VALUES(with_axis(SL_OP_SOFTMAX, scores, -1), x), 0, NULL)));
}

Test(independence, samples_in_reverse_order_are_mixed)
{
        uint32_t reversed = network_node(&net, SL_OP_SLICE, VALUES(x),
                ATTRS({SL_ATTR_STARTS, 1, {-1}}, {SL_ATTR_ENDS, 1, {-1000000}}, {SL_ATTR_AXES, 1, {0}}, {SL_ATTR_STEPS, 1, {-1}}));

        cr_assert(!independent(reversed));
}

/* The number of samples as a float: 1 in one graph, 2 in the other. */
static uint32_t count_samples(void)
{
        uint32_t first = network_node(&net, SL_OP_SLICE, VALUES(network_apply(&net, SL_OP_SHAPE, x)),
                ATTRS({SL_ATTR_STARTS, 1, {0}}, {SL_ATTR_ENDS, 1, {1}}, {SL_ATTR_AXES, 1, {0}}, {SL_ATTR_STEPS, 1, {1}}));

        return network_node(&net, SL_OP_CAST, VALUES(first), ATTRS({SL_ATTR_TO, 0, {SL_DTYPE_F32}}));
}

Test(independence, a_factor_that_is_the_number_of_samples_mixes)
{
        cr_assert(!independent(network_node(&net, SL_OP_MUL, VALUES(x, count_samples()), 0, NULL)));
}

Test(independence, a_factor_that_is_the_same_for_any_number_of_samples_keeps_them_apart)
{
        uint32_t one = network_node(&net, SL_OP_DIV, VALUES(count_samples(), count_samples()), 0, NULL);

        cr_assert(independent(network_node(&net, SL_OP_MUL, VALUES(x, one), 0, NULL)));
}

/* Its second sample gets what no sample gets alone. */
static uint32_t running_sum(uint32_t per_sample)
{
        return network_node(&net, SL_OP_CUM_SUM, VALUES(per_sample), ATTRS({SL_ATTR_AXIS, 0, {0}}));
}

static uint32_t ones_per_sample(void)
{
        uint32_t ones = network_node(&net, SL_OP_DIV, VALUES(count_samples(), count_samples()), 0, NULL);

        return network_node(&net, SL_OP_EXPAND, VALUES(reshape3(ones, 1, 1, 1), network_apply(&net, SL_OP_SHAPE, x)), 0, NULL);
}

Test(independence, constants_that_are_the_same_for_each_sample_keep_samples_apart)
{
        cr_assert(independent(network_node(&net, SL_OP_ADD, VALUES(x, ones_per_sample()), 0, NULL)));
}

Test(independence, constants_that_count_the_samples_mix)
{
        cr_assert(!independent(network_node(&net, SL_OP_ADD, VALUES(x, running_sum(ones_per_sample())), 0, NULL)));
}

static uint32_t one_integer(int64_t value)
{
        const struct sl_tensor tensor = {.dtype = SL_DTYPE_I64, .shape = {.rank = 1, .dims = {1}}};
        int64_t *data = sl_graph_alloc(net.graph, sizeof(*data));
        uint32_t constant;

        cr_assert_not_null(data);
        *data = value;
        cr_assert_eq(sl_graph_add_constant(net.graph, "integer", &tensor, data, &constant), 0);
        return constant;
}

/* One and two samples have the first column, three the second. */
static uint32_t column_of_count(void)
{
        uint32_t count = network_node(&net, SL_OP_CAST, VALUES(count_samples()), ATTRS({SL_ATTR_TO, 0, {SL_DTYPE_I64}}));
        uint32_t start = network_node(&net, SL_OP_DIV, VALUES(count, one_integer(3)), 0, NULL);
        uint32_t end = network_node(&net, SL_OP_ADD, VALUES(start, one_integer(1)), 0, NULL), axis = one_integer(2);

        return network_node(&net, SL_OP_SLICE, VALUES(x, start, end, axis), 0, NULL);
}

Test(independence, a_place_that_hangs_on_the_number_of_samples_mixes)
{
        cr_assert(independent(column_of_count()));
        cr_assert(!independent_at(3));
}

/* An image of 4 x 6 becomes one of 8 x @width, by sizes that begin with what Shape says. */
static bool independent_resized(struct attribute policy)
{
        static const int64_t size = 8, width = 12;
        const struct sl_tensor one = {.dtype = SL_DTYPE_I64, .shape = {.rank = 1, .dims = {1}}};
        uint32_t heights, widths, sizes;
        uint32_t leading = network_node(&net, SL_OP_SLICE, VALUES(network_apply(&net, SL_OP_SHAPE, x)),
                ATTRS({SL_ATTR_STARTS, 1, {0}}, {SL_ATTR_ENDS, 1, {1}}, {SL_ATTR_AXES, 1, {0}}, {SL_ATTR_STEPS, 1, {1}}));

        cr_assert_eq(sl_graph_add_constant(net.graph, "height", &one, &size, &heights), 0);
        cr_assert_eq(sl_graph_add_constant(net.graph, "width", &one, &width, &widths), 0);
        sizes = network_node(&net, SL_OP_CONCAT, VALUES(leading, heights, widths), ATTRS({SL_ATTR_AXIS, 0, {0}}));
        return independent(network_node(&net, SL_OP_RESIZE, VALUES(x, SL_VALUE_NONE, SL_VALUE_NONE, sizes), 1, &policy));
}

Test(independence, sizes_of_an_image_that_count_the_samples_keep_them_apart)
{
        cr_expect(independent_resized((struct attribute){SL_ATTR_ASPECT_POLICY, 0, {0}}));
}

Test(independence, sizes_that_bound_the_scale_of_an_image_mix)
{
        cr_expect_not(independent_resized((struct attribute){SL_ATTR_ASPECT_POLICY, 0, {1}}));
}

static uint32_t draw_like(uint32_t input)
{
        return network_node(&net, SL_OP_RANDOM_NORMAL_LIKE,
                VALUES(input, network_node(&net, SL_OP_SAMPLE_KEYS, VALUES(x), ATTRS({0}))), ATTRS({SL_ATTR_STREAM, 0, {7}}));
}

Test(independence, numbers_drawn_by_the_keys_of_samples_keep_them_apart)
{
        cr_assert(independent(draw_like(x)));
}

Test(independence, numbers_drawn_where_samples_do_not_lead_mix)
{
        cr_assert(!independent(transpose(draw_like(transpose(x, 1, 0, 2)), 1, 0, 2)));
}
