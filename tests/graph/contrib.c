/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of com.microsoft: what an optimiser fused runs on the nodes that it was before, and what nobody here computes is
 * refused with the node's name. What they compute is in tests/conformance/made.
 */
#include "backend.h"
#include "builder.h"
#include "pass_bench.h"

#include "base/error.h"
#include "nibbles.h"
#include "pass.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS  4
#define WIDTH 8

static Onnx__NodeProto *contrib(struct builder *b, const char *type, const char *inputs, const char *outputs)
{
        Onnx__NodeProto *node = builder_node(b, type, inputs, outputs);

        node->domain = (char *)"com.microsoft";
        return node;
}

static struct builder *sequence(void)
{
        struct builder *b = builder_new(17);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, ROWS, WIDTH));
        builder_output(b, "y");
        return b;
}

/* The graph after all passes. */
static struct sl_graph *fused(struct builder *b)
{
        struct sl_graph *graph = builder_import(b);
        struct sl_error error = {""};

        cr_assert_eq(
                sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error), 0, "%s", error.text);
        return graph;
}

static void expect_ops(struct builder *b, const uint32_t *ops, uint32_t n_ops)
{
        struct sl_graph *graph = fused(b);
        char *text = print_graph(graph);

        for (uint32_t i = 0; i < n_ops; i++)
                cr_expect_geq(count_ops(graph, ops[i]), 1, "no %s in\n%s", sl_op_name(ops[i]), text);
        cr_expect_eq(count_live(graph), n_ops, "more than %u nodes:\n%s", n_ops, text);
        free(text);
        sl_graph_free(graph);
        builder_free(b);
}

#define EXPECT_OPS(b, ...) expect_ops(b, (uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

Test(contrib, a_fused_convolution_is_one_node)
{
        struct builder *b = builder_new(17);
        Onnx__NodeProto *conv;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 3, 8, 8));
        builder_input(b, "z", SL_DTYPE_F32, DIMS(-1, 4, 6, 6));
        builder_output(b, "y");
        builder_random(b, "w", DIMS(4, 3, 3, 3));
        builder_random(b, "bias", DIMS(4));
        conv = contrib(b, "FusedConv", "x,w,bias,z", "y");
        builder_attr_string(b, conv, "activation", "Relu");
        EXPECT_OPS(b, SL_OP_CONV);
}

Test(contrib, a_product_and_the_normalisation_behind_it_are_two_nodes)
{
        struct builder *b = sequence();

        builder_random(b, "w", DIMS(WIDTH, WIDTH));
        builder_random(b, "bias", DIMS(WIDTH));
        builder_random(b, "gamma", DIMS(WIDTH));
        builder_random(b, "beta", DIMS(WIDTH));
        builder_node(b, "MatMul", "x,w", "product");
        contrib(b, "SkipLayerNormalization", "product,x,gamma,beta,bias", "y");
        EXPECT_OPS(b, SL_OP_MATMUL, SL_OP_LAYER_NORM);
}

Test(contrib, an_attention_is_a_projection_and_one_node)
{
        struct builder *b = sequence();

        builder_random(b, "w", DIMS(WIDTH, 3 * WIDTH));
        builder_random(b, "bias", DIMS(3 * WIDTH));
        builder_attr_int(b, contrib(b, "Attention", "x,w,bias", "y"), "num_heads", 2);
        EXPECT_OPS(b, SL_OP_MATMUL, SL_OP_ROW_ATTENTION);
}

Test(contrib, projections_of_one_input_for_one_attention_are_merged)
{
        struct builder *b = sequence();

        for (int i = 0; i < 3; i++) {
                static const char *const names[][3] = {{"wq", "x,wq", "q"}, {"wk", "x,wk", "k"}, {"wv", "x,wv", "v"}};

                builder_random(b, names[i][0], DIMS(WIDTH, WIDTH));
                builder_node(b, "MatMul", names[i][1], names[i][2]);
        }
        builder_random(b, "bias", DIMS(3 * WIDTH));
        builder_attr_int(b, contrib(b, "MultiHeadAttention", "q,k,v,bias", "y"), "num_heads", 2);
        EXPECT_OPS(b, SL_OP_MATMUL, SL_OP_ROW_ATTENTION);
}

static const float scale = 0.05f;
static const uint8_t zero_point = 128;

static void add_quantities(struct builder *b)
{
        builder_floats(b, "scale", DIMS(), &scale);
        builder_raw(b, "zero", SL_DTYPE_U8, DIMS(), &zero_point);
}

Test(contrib, a_sum_of_bytes_is_one_node)
{
        struct builder *b = builder_new(17);

        builder_input(b, "x", SL_DTYPE_U8, DIMS(-1, WIDTH));
        builder_input(b, "z", SL_DTYPE_U8, DIMS(-1, WIDTH));
        builder_output(b, "y");
        add_quantities(b);
        contrib(b, "QLinearAdd", "x,scale,zero,z,scale,zero,scale,zero", "y");
        EXPECT_OPS(b, SL_OP_QUANTIZED_ADD);
}

static void add_bytes(struct builder *b, const char *name, uint8_t first)
{
        uint8_t bytes[WIDTH * WIDTH];

        for (uint32_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t)(first + i);
        builder_raw(b, name, SL_DTYPE_I8, DIMS(WIDTH, WIDTH), bytes);
}

Test(contrib, a_product_by_int8_weights_around_zero_multiplies_bytes)
{
        struct builder *b = sequence();
        struct sl_graph *graph;

        add_quantities(b);
        add_bytes(b, "w", 0);
        contrib(b, "DynamicQuantizeMatMul", "x,w,scale", "y");
        graph = fused(b);
        cr_expect_eq(count_ops(graph, SL_OP_QUANTIZED_MATMUL), 1);
        cr_expect_eq(count_ops(graph, SL_OP_MATMUL_INTEGER), 0);
        cr_expect_eq(count_ops(graph, SL_OP_MATMUL), 0);
        sl_graph_free(graph);
        builder_free(b);
}

Test(contrib, a_product_by_weights_around_another_number_multiplies_floats)
{
        static const int8_t seven = 7;
        struct builder *b = sequence();
        struct sl_graph *graph;

        add_quantities(b);
        add_bytes(b, "w", 0);
        builder_raw(b, "seven", SL_DTYPE_I8, DIMS(), &seven);
        contrib(b, "DynamicQuantizeMatMul", "x,w,scale,seven", "y");
        graph = fused(b);
        cr_expect_eq(count_ops(graph, SL_OP_QUANTIZED_MATMUL), 0);
        cr_expect_eq(count_ops(graph, SL_OP_MATMUL_INTEGER), 0);
        cr_expect_eq(count_ops(graph, SL_OP_MATMUL), 1);
        sl_graph_free(graph);
        builder_free(b);
}

/* Integers that somebody sees stay integers. */
Test(contrib, sums_that_are_not_only_cast_stay_integers)
{
        struct builder *b = builder_new(17);
        struct sl_graph *graph;

        builder_input(b, "x", SL_DTYPE_U8, DIMS(-1, WIDTH));
        builder_output(b, "y");
        builder_output(b, "sums");
        add_bytes(b, "w", 0);
        builder_node(b, "MatMulInteger", "x,w", "sums");
        builder_attr_int(b, builder_node(b, "Cast", "sums", "y"), "to", SL_DTYPE_F32);
        graph = fused(b);
        cr_expect_eq(count_ops(graph, SL_OP_MATMUL_INTEGER), 1);
        sl_graph_free(graph);
        builder_free(b);
}

struct refusal {
        const char *type, *inputs, *attribute;
        int64_t value;
        int result;
        const char *text;
};

static const struct refusal refusals[] = {
        {"Sampling", "x", NULL, 0, -ENOTSUP,
                "node \"y\": operator Sampling of domain com.microsoft, opset 17: the operator is not"},
        {"FastGelu", "x", "surprise", 1, -ENOTSUP, "node \"y\": attribute surprise of operator FastGelu, domain com.microsoft"},
        {"FastGelu", "", NULL, 0, -EBADMSG, "node \"y\": operator FastGelu of domain com.microsoft, opset 17: an input is missing"},
        {"Attention", "x,w", NULL, 0, -EBADMSG, "num_heads is missing, or outside [1,2^31)"},
        {"Attention", "x,w", "num_heads", 5, -EBADMSG, "num_heads does not divide"},
        {"Attention", "x,w,bias,four", "num_heads", 2, -ENOTSUP, "a mask of no or of more than three dimensions"},
        {"Attention", "x,w,bias,many", "num_heads", 2, -ENOTSUP, "a mask of one dimension that is neither"},
        {"Attention", "x,w,bias,,,,many", "num_heads", 2, -ENOTSUP, "past_sequence_length is not supported"},
        {"MultiHeadAttention", "x", "num_heads", 2, -EBADMSG, "keys are missing"},
        {"MultiHeadAttention", "x,x", "num_heads", 2, -EBADMSG, "values are missing"},
        {"MultiHeadAttention", "x,x,x,,,,,,many", "num_heads", 2, -ENOTSUP, "past_sequence_length and cache_indirection"},
        {"QLinearConcat", "x,x,x", "axis", 1, -EBADMSG, "its inputs are not those of the output and three"},
        {"QLinearAdd", "x", NULL, 0, -EBADMSG, "an input is missing"},
        {"MatMulNBits", "x,bytes,w", "bits", 3, -ENOTSUP, "its attribute bits is none of 2, 4 and 8"},
        {"MatMulNBits", "x,bytes,w", "bits", 4, -EBADMSG, "K, N or block_size is missing"},
        {"EmbedLayerNormalization", "x,,w,w,,bias,bias", NULL, 0, -EBADMSG, "input_ids is no matrix"},
};

Test(contrib, what_is_not_supported_is_refused_by_name)
{
        for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
                const struct refusal *r = &refusals[i];
                struct builder *b = sequence();
                Onnx__NodeProto *node;

                builder_random(b, "w", DIMS(WIDTH, 3 * WIDTH));
                builder_random(b, "bias", DIMS(3 * WIDTH));
                builder_input(b, "four", SL_DTYPE_I32, DIMS(-1, 1, ROWS, ROWS));
                builder_input(b, "many", SL_DTYPE_I32, DIMS(3 * 5 + 2));
                builder_input(b, "bytes", SL_DTYPE_U8, DIMS(WIDTH, 1, 8));
                node = contrib(b, r->type, r->inputs, "y");
                if (r->attribute)
                        builder_attr_int(b, node, r->attribute, r->value);
                builder_expect(b, r->result, r->text);
                builder_free(b);
        }
}

static void expect_attention_refuses(const char *attribute, const char *text)
{
        struct builder *b = sequence();
        Onnx__NodeProto *node;

        builder_random(b, "w", DIMS(WIDTH, 3 * WIDTH));
        node = contrib(b, "Attention", "x,w", "y");
        builder_attr_int(b, node, "num_heads", 2);
        builder_attr_int(b, node, attribute, 1);
        builder_expect(b, -ENOTSUP, text);
        builder_free(b);
}

Test(contrib, attributes_that_change_what_attention_computes_are_refused_by_name)
{
        expect_attention_refuses(
                "do_rotary", "node \"y\": operator Attention of domain com.microsoft, opset 17: its attribute do_rotary");
        expect_attention_refuses("past_present_share_buffer", "its attribute past_present_share_buffer");
}

Test(contrib, an_activation_that_nobody_knows_is_refused)
{
        struct builder *b = builder_new(17);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 3, 8, 8));
        builder_output(b, "y");
        builder_random(b, "w", DIMS(4, 3, 3, 3));
        builder_attr_string(b, contrib(b, "FusedConv", "x,w", "y"), "activation", "Wobble");
        builder_expect(b, -ENOTSUP, "its attribute activation names none that is supported");
        builder_free(b);
}

/* Blocks that are shorter than K, N, bits and block_size say are not read. */
Test(contrib, blocks_of_another_size_are_refused)
{
        static const char *const names[] = {"K", "N", "bits", "block_size"};
        static const int64_t numbers[] = {WIDTH, 5, 4, 16};

        for (int64_t less = 0; less < 2; less++) {
                struct builder *b = sequence();
                uint8_t bytes[5 * 8] = {0};
                Onnx__NodeProto *node;

                builder_raw(b, "b", SL_DTYPE_U8, DIMS(5 - less, 1, 8), bytes);
                builder_random(b, "scales", DIMS(4 + less));
                node = contrib(b, "MatMulNBits", "x,b,scales", "y");
                for (int i = 0; i < 4; i++)
                        builder_attr_int(b, node, names[i], numbers[i]);
                builder_expect(b, -EBADMSG, "have another type or size than K, N, bits and block_size say");
                builder_free(b);
        }
}

static struct builder *decoder(Onnx__NodeProto **ret_node)
{
        struct builder *b = builder_new(17);

        builder_input(b, "q", SL_DTYPE_F32, DIMS(-1, 1, 16));
        builder_input(b, "k", SL_DTYPE_F32, DIMS(-1, 1, 8));
        builder_input(b, "past_k", SL_DTYPE_F32, DIMS(-1, 2, 5, 4));
        builder_input(b, "past_v", SL_DTYPE_F32, DIMS(-1, 2, 5, 4));
        builder_input(b, "lengths", SL_DTYPE_I32, DIMS(-1));
        builder_ints(b, "total", 0, NULL, (int64_t[]){6});
        *ret_node = contrib(b, "GroupQueryAttention", "q,k,k,past_k,past_v,lengths,total", "y,nk,nv");
        builder_attr_int(b, *ret_node, "num_heads", 4);
        builder_attr_int(b, *ret_node, "kv_num_heads", 2);
        builder_output(b, "y");
        builder_output(b, "nk");
        return b;
}

Test(contrib, a_group_query_attention_keeps_the_batch_and_grows_the_cache)
{
        Onnx__NodeProto *node;
        struct builder *b = decoder(&node);
        struct sl_graph *graph = builder_import(b);
        const struct sl_shape *y = &graph->values[graph->outputs[0]].tensor.shape,
                              *cache = &graph->values[graph->outputs[1]].tensor.shape;

        cr_expect(sl_shape_equal(y, &(struct sl_shape){3, {SL_DIM_BATCH, 1, 16}}));
        cr_expect(sl_shape_equal(cache, &(struct sl_shape){4, {SL_DIM_BATCH, 2, 6, 4}}));
        cr_expect_eq(count_ops(graph, SL_OP_TENSOR_SCATTER), 2u);
        cr_expect_eq(count_ops(graph, SL_OP_MATMUL), 2u);
        sl_graph_free(graph);
        builder_free(b);
}

Test(contrib, a_group_query_attention_is_refused_where_heads_or_inputs_do_not_fit)
{
        Onnx__NodeProto *node;
        struct builder *b = decoder(&node);

        builder_attr_int(b, node, "smooth_softmax", 1);
        builder_expect(b, -ENOTSUP, "smooth_softmax, qk_output, a sink, or scales of a quantized cache");
        node->n_attribute--;
        builder_attr_int(b, node, "do_rotary", 1);
        builder_expect(b, -EBADMSG, "do_rotary without caches of cosines and sines");
        node->n_attribute--;
        node->input[3] = (char *)"";
        builder_expect(b, -EBADMSG, "past keys and past values come together");
        node->input[3] = (char *)"past_k";
        node->input[5] = (char *)"";
        builder_expect(b, -EBADMSG, "it lacks seqlens_k");
        node->input[5] = (char *)"lengths";
        node->attribute[1]->i = 3;
        builder_expect(b, -EBADMSG, "num_heads or kv_num_heads is missing, or they do not divide each other");
        node->attribute[1]->i = 1;
        builder_expect(b, -EBADMSG, "keys or values have other columns than kv_num_heads of a query's length");
        node->attribute[0]->i = 5;
        builder_expect(b, -EBADMSG, "num_heads does not divide its columns");
        builder_free(b);
}

/* x [batch, ROWS, WIDTH] by 5 columns of @bits bits. */
static struct builder *blocks(int64_t bits)
{
        static const char *const names[] = {"K", "N", "bits", "block_size"};
        const int64_t numbers[] = {WIDTH, 5, bits, 16};
        struct builder *b = sequence();
        uint8_t bytes[5 * 16];
        Onnx__NodeProto *node;

        for (uint32_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t)(i * 83 + 7);
        builder_raw(b, "b", SL_DTYPE_U8, DIMS(5, 1, 2 * bits), bytes);
        builder_random(b, "scales", DIMS(5));
        node = contrib(b, "MatMulNBits", "x,b,scales", "y");
        for (int i = 0; i < 4; i++)
                builder_attr_int(b, node, names[i], numbers[i]);
        return b;
}

static uint64_t constant_bytes(const struct sl_graph *graph, uint32_t dtype)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < graph->n_values; i++)
                if (sl_graph_is_constant(graph, i) && graph->values[i].tensor.dtype == dtype && !graph->values[i].dead)
                        bytes += graph->values[i].data_bytes;
        return bytes;
}

/* 5 columns of a block of 16, and 5 scales; of 2 bits a zero point each as well. */
Test(contrib, weights_of_4_bits_and_fewer_take_4_bits)
{
        for (int64_t bits = 2; bits <= 4; bits += 2) {
                struct builder *b = blocks(bits);
                struct sl_graph *graph = builder_import(b);
                uint64_t zeros = bits == 2 ? 5 : 0;

                cr_expect_eq(count_ops(graph, SL_OP_NIBBLE_MATMUL), 1u);
                cr_expect_eq(count_ops(graph, SL_OP_MATMUL), 0u);
                cr_expect_eq(constant_bytes(graph, SL_DTYPE_U8), 5u * 8 + zeros, "%d bits: %d bytes", (int)bits,
                        (int)constant_bytes(graph, SL_DTYPE_U8));
                sl_graph_free(graph);
                builder_free(b);
        }
}

/* Each of 16 combinations of bits times a scale: what the float matrix gives is what the packed one does, to rounding. */
Test(contrib, weights_of_4_bits_are_floats_where_no_kernel_takes_them)
{
        struct builder *b = blocks(4);
        struct sl_graph *packed = builder_import(b), *floats = builder_import(b);
        float x[2 * ROWS * WIDTH], y[2][2 * ROWS * 5];

        fill_random(x, sizeof(x) / sizeof(*x), 3);
        cr_assert_eq(sl_graph_expand_nibbles(floats, NULL, NULL, NULL), 0);
        cr_expect_eq(count_ops(floats, SL_OP_NIBBLE_MATMUL), 0u);
        cr_expect_eq(count_ops(floats, SL_OP_MATMUL), 1u);
        evaluate_floats(packed, 2, x, y[0], 2 * ROWS * 5);
        evaluate_floats(floats, 2, x, y[1], 2 * ROWS * 5);
        for (uint32_t i = 0; i < 2 * ROWS * 5; i++)
                cr_expect_float_eq(y[0][i], y[1][i], 1e-4, "place %u: %g and %g", i, (double)y[0][i], (double)y[1][i]);
        sl_graph_free(packed);
        sl_graph_free(floats);
        builder_free(b);
}
