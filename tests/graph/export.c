/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is exported comes back as the same: words, parameters and numbers that import brought into another form, and the opset that
 * they want. The cases of ONNX go the same way in tests/conformance.
 */
#include "export.h"
#include "base/error.h"
#include "builder.h"
#include "evaluate.h"
#include "import.h"
#include "ref/live.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH      2
#define FLOATS_MAX 4096

static struct sl_graph *export_and_import(struct sl_graph *graph)
{
        struct sl_graph *back = NULL;
        struct sl_error error = {""};
        uint8_t *file = NULL;
        size_t bytes = 0;

        cr_assert_eq(sl_export_onnx(graph, NULL, 0, &file, &bytes, &error), 0, "%s", error.text);
        cr_assert_eq(sl_import_onnx_bytes(file, bytes, NULL, &back, &error), 0, "%s", error.text);
        free(file);
        return back;
}

/* Output 0 for random floats in input 0, and ones in an input of integers. */
static void evaluate(const struct sl_graph *graph, struct sl_pool *pool, struct sl_live *ret_output)
{
        static _Alignas(64) float x[FLOATS_MAX];
        static const int32_t ones[4] = {1, 1, 1, 1};
        struct sl_live outputs[SL_NODE_OUTPUTS_MAX] = {0};
        struct sl_error error = {""};
        struct sl_graph *special = NULL;

        fill_random(x, FLOATS_MAX, 7);
        cr_assert_eq(sl_graph_specialise(graph, BATCH, &special, &error), 0, "%s", error.text);
        cr_assert_eq(sl_graph_evaluate_open(special, (const void *[]){x, ones}, pool, outputs, &error), 0, "%s", error.text);
        sl_live_own(pool, &outputs[0]);
        *ret_output = outputs[0];
        for (uint32_t i = 1; i < special->n_outputs; i++)
                sl_live_drop(pool, &outputs[i]);
        sl_graph_free(special);
}

/* The graph as it is imported and what its export says give the same bytes. Frees the builder. */
static void expect_same(struct builder *b, int64_t opset)
{
        struct sl_graph *graph = builder_import(b), *back = export_and_import(graph);
        struct sl_pool pool = {.limit_bytes = 1 << 24};
        struct sl_live want, got;

        cr_expect_eq(back->opset, opset, "opset %lld, not %lld", (long long)back->opset, (long long)opset);
        evaluate(graph, &pool, &want);
        evaluate(back, &pool, &got);
        cr_assert(sl_shape_equal(&want.tensor.shape, &got.tensor.shape));
        cr_assert_eq(want.tensor.dtype, got.tensor.dtype);
        cr_assert_arr_eq(want.data, got.data, sl_tensor_bytes(&want.tensor));
        sl_live_drop(&pool, &want);
        sl_live_drop(&pool, &got);
        sl_graph_free(graph);
        sl_graph_free(back);
        builder_free(b);
}

static struct builder *image(int64_t opset)
{
        return builder_new_of_x(opset, DIMS(-1, 4, 6, 6));
}

static void expect_word(struct builder *b, Onnx__NodeProto *node, const char *attribute, const char *word)
{
        builder_attr_string(b, node, attribute, word);
        builder_output(b, "y");
        expect_same(b, 20);
}

Test(export, words_go_back_as_words)
{
        struct builder *b = image(13);
        Onnx__NodeProto *node = builder_node(b, "DepthToSpace", "x", "y");

        builder_attr_int(b, node, "blocksize", 2);
        expect_word(b, node, "mode", "CRD");

        b = image(13);
        builder_ints(b, "pads", DIMS(8), (int64_t[]){0, 0, 1, 1, 0, 0, 2, 0});
        expect_word(b, builder_node(b, "Pad", "x,pads", "y"), "mode", "reflect");

        b = image(20);
        expect_word(b, builder_node(b, "Gelu", "x", "y"), "approximate", "tanh");

        b = image(16);
        builder_random(b, "grid", DIMS(BATCH, 3, 3, 2));
        node = builder_node(b, "GridSample", "x,grid", "y");
        builder_attr_string(b, node, "mode", "bicubic");
        expect_word(b, node, "padding_mode", "border");

        b = image(16);
        builder_floats(b, "rois", DIMS(1, 4), (float[]){0, 1, 4, 5});
        builder_ints(b, "samples", DIMS(1), (int64_t[]){1});
        node = builder_node(b, "RoiAlign", "x,rois,samples", "y");
        builder_attr_string(b, node, "mode", "max");
        expect_word(b, node, "coordinate_transformation_mode", "output_half_pixel");

        b = image(18);
        builder_ints(b, "at", DIMS(1, 4), (int64_t[]){0, 1, 2, 3});
        builder_floats(b, "more", DIMS(1), (float[]){5});
        expect_word(b, builder_node(b, "ScatterND", "x,at,more", "y"), "reduction", "add");

        b = builder_new_of_x(13, DIMS(6, 3));
        builder_ints(b, "labels", DIMS(6), (int64_t[]){0, 1, 2, 2, 1, 0});
        expect_word(b, builder_node(b, "SoftmaxCrossEntropyLoss", "x,labels", "y"), "reduction", "sum");
}

Test(export, the_direction_of_a_shift_goes_back)
{
        struct builder *b = image(13);
        uint8_t two = 2;

        builder_attr_int(b, builder_node(b, "Cast", "x", "c"), "to", SL_DTYPE_U8);
        builder_raw(b, "two", SL_DTYPE_U8, 0, NULL, &two);
        expect_word(b, builder_node(b, "BitShift", "c,two", "y"), "direction", "LEFT");
}

Test(export, a_resize_has_its_words_and_its_lists)
{
        for (int sizes = 0; sizes < 2; sizes++) {
                struct builder *b = builder_new_of_x(13, DIMS(1, 4, 6, 6));
                Onnx__NodeProto *node;

                builder_floats(b, "scales", DIMS(4), (float[]){1, 1, 2, 1.5f});
                builder_ints(b, "sizes", DIMS(4), (int64_t[]){1, 4, 9, 13});
                node = builder_node(b, "Resize", sizes ? "x,,,sizes" : "x,,scales", "y");
                builder_attr_string(b, node, "mode", sizes ? "cubic" : "nearest");
                builder_attr_string(b, node, "nearest_mode", "floor");
                expect_word(b, node, "coordinate_transformation_mode", sizes ? "align_corners" : "asymmetric");
        }
}

static void expect_recurrent(const char *type, uint32_t gates, const char *direction, size_t n, const char *const *functions)
{
        struct builder *b = builder_new_of_x(14, DIMS(3, 2, 4));
        int64_t directions = !strcmp(direction, "bidirectional") ? 2 : 1;
        Onnx__NodeProto *node;
        Onnx__AttributeProto *names;

        builder_random(b, "w", DIMS(directions, gates * 5, 4));
        builder_random(b, "r", DIMS(directions, gates * 5, 5));
        node = builder_node(b, type, "x,w,r", "y");
        builder_attr_int(b, node, "hidden_size", 5);
        builder_attr_ints(b, node, "activations", 0, (int64_t[]){0});
        names = node->attribute[node->n_attribute - 1];
        names->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
        names->n_strings = n;
        names->strings = builder_alloc(b, n * sizeof(*names->strings));
        for (size_t i = 0; i < n; i++)
                names->strings[i] = (ProtobufCBinaryData){.len = strlen(functions[i]), .data = (uint8_t *)functions[i]};
        builder_attr_ints(b, node, "activation_alpha", 0, (int64_t[]){0});
        names = node->attribute[node->n_attribute - 1];
        names->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
        names->n_floats = 1;
        names->floats = builder_alloc(b, sizeof(float));
        names->floats[0] = 0.3f;
        expect_word(b, node, "direction", direction);
}

/* The parameters of functions stand one behind the other, for those that have any. */
Test(export, recurrent_layers_have_their_functions_by_name)
{
        expect_recurrent("LSTM", 4, "bidirectional", 6,
                (const char *const[]){"Sigmoid", "HardSigmoid", "Tanh", "Softsign", "LeakyRelu", "Affine"});
        expect_recurrent("GRU", 3, "reverse", 2, (const char *const[]){"Elu", "ThresholdedRelu"});
        expect_recurrent("RNN", 1, "forward", 1, (const char *const[]){"ScaledTanh"});
}

static struct builder *parameterised(const char *type, const char *inputs, int64_t opset)
{
        struct builder *b = image(opset);

        builder_ints(b, "one", DIMS(1), (int64_t[]){1});
        builder_ints(b, "two", 0, NULL, (int64_t[]){2});
        builder_node(b, type, inputs, "y");
        builder_output(b, "y");
        return b;
}

Test(export, parameters_are_initializers_of_their_own_types)
{
        expect_same(parameterised("TopK", "x,one", 11), 20);
        expect_same(parameterised("Trilu", "x,two", 14), 20);
        expect_same(parameterised("CumSum", "x,two", 14), 20);
        expect_same(parameterised("Expand", "x,one", 13), 20);
}

Test(export, limits_have_the_type_of_the_data)
{
        static const uint32_t types[] = {SL_DTYPE_I8, SL_DTYPE_I32, SL_DTYPE_I64, SL_DTYPE_F16, SL_DTYPE_F64};

        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
                struct builder *b = image(13);

                builder_floats(b, "four", 0, NULL, (float[]){4});
                builder_floats(b, "three", 0, NULL, (float[]){3});
                builder_node(b, "Mul", "x,four", "large");
                builder_attr_int(b, builder_node(b, "Cast", "large", "c"), "to", types[i]);
                builder_attr_int(b, builder_node(b, "Cast", "three", "limit"), "to", types[i]);
                builder_node(b, "Clip", "c,,limit", "y");
                builder_output(b, "y");
                expect_same(b, 20);
        }
}

/* ONNX wants one type for all of them. */
Test(export, parameters_of_a_slice_have_the_type_of_those_that_requests_bring)
{
        struct builder *b = builder_new_of_x(13, DIMS(8));

        builder_input(b, "starts", SL_DTYPE_I32, DIMS(1));
        builder_raw(b, "ends", SL_DTYPE_I32, DIMS(1), (int32_t[]){INT32_MAX});
        builder_node(b, "Slice", "x,starts,ends", "y");
        builder_output(b, "y");
        struct sl_graph *graph = builder_import(b), *back = export_and_import(graph);

        for (uint32_t i = 0; i < back->n_values; i++)
                if (back->values[i].kind == SL_VALUE_CONSTANT)
                        cr_expect_eq(back->values[i].tensor.dtype, SL_DTYPE_I32, "%s", back->values[i].name);
        sl_graph_free(graph);
        sl_graph_free(back);
        expect_same(b, 20);
}

Test(export, inputs_go_back_into_the_order_of_onnx)
{
        static const int32_t types[] = {SL_DTYPE_F32, SL_DTYPE_I32, SL_DTYPE_I64};
        static const float floats[2] = {-1, 3};
        static const int32_t ints[2] = {-1, 3};
        static const int64_t longs[2] = {-1, 3};
        const void *values[] = {floats, ints, longs};

        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
                struct builder *b = builder_new(11);

                builder_input(b, "x", SL_DTYPE_I32, DIMS(3));
                builder_ints(b, "depth", 0, NULL, (int64_t[]){5});
                builder_raw(b, "values", types[i], DIMS(2), values[i]);
                builder_node(b, "OneHot", "x,depth,values", "y");
                builder_output(b, "y");
                expect_same(b, 20);
        }
}

Test(export, an_equation_has_letters_and_an_ellipsis)
{
        struct builder *b = image(13);

        builder_attr_string(b, builder_node(b, "Einsum", "x,x", "y"), "equation", "...ii,...ij->j...");
        builder_output(b, "y");
        expect_same(b, 20);
}

static struct builder *group_norm(int64_t opset, int64_t scales)
{
        struct builder *b = image(opset);

        builder_random(b, "scale", DIMS(scales));
        builder_random(b, "bias", DIMS(scales));
        builder_attr_int(b, builder_node(b, "GroupNormalization", "x,scale,bias", "g"), "num_groups", 2);
        return b;
}

static struct builder *bytes_of(uint32_t dtype, int64_t block)
{
        struct builder *b = image(21);
        int64_t dims[] = {1, 4, 6, 2};
        float *scales = builder_alloc(b, 48 * sizeof(*scales));
        int16_t *zeros = builder_alloc(b, 48 * sizeof(*zeros));
        Onnx__NodeProto *node;

        for (int i = 0; i < 48; i++)
                scales[i] = 0.01f * (float)(i + 1);
        builder_floats(b, "scale", block ? 4 : 0, dims, scales);
        builder_raw(b, "zero", (int32_t)dtype, block ? 4 : 0, dims, zeros);
        b->graph.input[0]->type->tensor_type->shape->dim[0]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        b->graph.input[0]->type->tensor_type->shape->dim[0]->dim_value = 1;
        node = builder_node(b, "QuantizeLinear", "x,scale,zero", "y");
        if (block) {
                builder_attr_int(b, node, "axis", 3);
                builder_attr_int(b, node, "block_size", block);
        }
        builder_output(b, "y");
        return b;
}

Test(export, a_file_has_the_least_opset_from_20_on_that_its_operators_want)
{
        struct builder *b = group_norm(18, 2);

        builder_node(b, "Relu", "g", "y");
        builder_output(b, "y");
        expect_same(b, 20);

        b = group_norm(21, 4);
        builder_node(b, "Relu", "g", "y");
        builder_output(b, "y");
        expect_same(b, 21);

        expect_same(bytes_of(SL_DTYPE_I16, 0), 21);
        expect_same(bytes_of(SL_DTYPE_I8, 3), 21);
        expect_same(bytes_of(SL_DTYPE_I8, 0), 20);

        b = image(23);
        builder_random(b, "scale", DIMS(6));
        builder_node(b, "RMSNormalization", "x,scale", "y");
        builder_output(b, "y");
        expect_same(b, 23);
}

Test(export, nodes_that_draw_have_no_keys_there)
{
        struct builder *b = image(15);

        builder_attr_float(b, builder_node(b, "RandomNormalLike", "x", "n"), "seed", 5);
        builder_attr_float(b, builder_node(b, "RandomUniformLike", "n", "y"), "low", -3);
        builder_output(b, "y");
        expect_same(b, 20);
}

static void expect_refused(struct sl_graph *graph, const char *text)
{
        struct sl_error error = {""};
        uint8_t *file = NULL;
        size_t bytes = 0;

        cr_expect_eq(sl_export_onnx(graph, NULL, 0, &file, &bytes, &error), -ENOTSUP);
        cr_expect(strstr(error.text, text), "%s", error.text);
        cr_expect_null(file);
        sl_graph_free(graph);
}

/* SimplifiedLayerNormalization is in no opset, and becomes what opset 23 has. */
Test(export, operators_that_no_opset_has_together_are_refused)
{
        struct builder *b = group_norm(18, 2);

        builder_random(b, "weight", DIMS(6));
        builder_node(b, "SimplifiedLayerNormalization", "g,weight", "y");
        builder_output(b, "y");
        expect_refused(builder_import(b), "node \"g\": a GroupNormalization with one scale for each group is not in opset 23");
        builder_free(b);
}

Test(export, what_onnx_has_no_attribute_for_is_refused)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, 4));
        struct sl_graph *graph;

        builder_random(b, "w", DIMS(4, 4));
        builder_node(b, "Gemm", "x,w", "y");
        builder_output(b, "y");
        graph = builder_import(b);
        sl_attrs_set_int(&graph->nodes[0].attrs, SL_ATTR_WEIGHTS, SL_DTYPE_F16);
        expect_refused(graph, "node \"y\": this Gemm cannot be written as ONNX, for its starling.weights");
        builder_free(b);
}

/* Nobody but the importer can say so of a graph that was made by hand. */
Test(export, what_cannot_be_read_again_is_refused)
{
        struct builder *b = image(13);
        struct sl_graph *graph;

        builder_attr_ints(b, builder_node(b, "Transpose", "x", "y"), "perm", DIMS(0, 1, 3, 2));
        builder_output(b, "y");
        graph = builder_import(b);
        sl_attrs_set_ints(&graph->nodes[0].attrs, SL_ATTR_PERM, (int64_t[]){0, 1, 1, 2}, 4);
        expect_refused(graph, "the file that was written cannot be read: node \"0:y\"");
        builder_free(b);
}
