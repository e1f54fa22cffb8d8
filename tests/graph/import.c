/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What import makes of the forms that operators had in different opsets, of the batch, and of what it refuses.
 */
#include "import.h"
#include "base/error.h"
#include "builder.h"
#include "evaluate.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Imports and compares the printed graph. */
static void expect_graph(struct builder *b, const char *wanted)
{
        struct sl_graph *graph = builder_import(b);

        expect_text(graph, wanted);
        sl_graph_free(graph);
        builder_free(b);
}

static struct builder *input_4(int64_t opset, int64_t a, int64_t b, int64_t c, int64_t d)
{
        struct builder *made = builder_new(opset);

        builder_input(made, "x", SL_DTYPE_F32, DIMS(a, b, c, d));
        builder_output(made, "y");
        return made;
}

Test(import, axes_are_an_attribute_in_every_opset)
{
        const char *wanted = "y = Unsqueeze(x [N,2,3,4]) {axes=[1]} -> y [N,1,2,3,4]\n";
        struct builder *b = input_4(11, -1, 2, 3, 4);

        builder_attr_ints(b, builder_node(b, "Unsqueeze", "x", "y"), "axes", DIMS(1));
        expect_graph(b, wanted);
        b = input_4(13, -1, 2, 3, 4);
        builder_ints(b, "axes", DIMS(1), (int64_t[]){1});
        builder_node(b, "Unsqueeze", "x,axes", "y");
        expect_graph(b, wanted);
}

/* One sample alone loses the dimension that counts it, two do not. */
Test(import, a_squeeze_without_axes_wants_to_know_the_batch)
{
        struct builder *b = input_4(13, -1, 1, 3, 1);

        builder_node(b, "Squeeze", "x", "y");
        builder_expect(b, -EDOM, "node \"y\": operator Squeeze of domain ai.onnx, opset 13: without axes, it takes a batch of one");
        builder_free(b);
        b = input_4(13, 1, 1, 3, 1);
        builder_node(b, "Squeeze", "x", "y");
        expect_graph(b, "y = Squeeze(x [1,1,3,1]) {axes=[0,1,3]} -> y [3]\n");
        b = input_4(13, 2, 1, 3, 1);
        builder_node(b, "Squeeze", "x", "y");
        expect_graph(b, "y = Squeeze(x [2,1,3,1]) {axes=[1,3]} -> y [2,3]\n");
}

static struct builder *squeeze_of(const char *input)
{
        struct builder *body = builder_new(13);

        builder_ints(body, "axis", DIMS(1), (int64_t[]){2});
        builder_node(body, "Squeeze", "x,axis", input);
        builder_output(body, input);
        return body;
}

/* y = x.squeeze(2) as exporters write it: an If on dimension @axis of x being @wanted, which nothing but shapes decides. */
static struct builder *squeeze_if(int64_t n, int64_t axis, int64_t wanted, struct builder *bodies[2])
{
        struct builder *b = input_4(13, n, 2, 1, 4);
        Onnx__NodeProto *node;

        bodies[0] = squeeze_of("squeezed");
        bodies[1] = builder_new(13);
        builder_node(bodies[1], "Identity", "x", "kept");
        builder_output(bodies[1], "kept");
        builder_ints(b, "axis", DIMS(1), &axis);
        builder_ints(b, "wanted", DIMS(1), &wanted);
        builder_node(b, "Shape", "x", "shape");
        builder_node(b, "Gather", "shape,axis", "size");
        builder_node(b, "Equal", "size,wanted", "is_one");
        node = builder_node(b, "If", "is_one", "y");
        builder_attr_graph(b, node, "then_branch", bodies[0]);
        builder_attr_graph(b, node, "else_branch", bodies[1]);
        return b;
}

static void expect_branch(int64_t axis, int64_t wanted, const char *graph)
{
        struct builder *bodies[2], *b = squeeze_if(-1, axis, wanted, bodies);

        expect_graph(b, graph);
        builder_free(bodies[0]);
        builder_free(bodies[1]);
}

Test(import, an_if_on_a_size_that_is_known_goes_one_way_whatever_the_batch)
{
        expect_branch(2, 1, "squeezed = Squeeze(x [N,2,1,4]) {axes=[2]} -> y [N,2,4]\n");
        expect_branch(3, 1, "kept = Identity(x [N,2,1,4]) -> y [N,2,1,4]\n");
}

Test(import, an_if_on_the_batch_wants_to_know_it)
{
        struct builder *bodies[2], *b = squeeze_if(-1, 0, 1, bodies);

        builder_expect(b, -EDOM, "which way it goes depends on the size of the batch");
        builder_free(b);
        builder_free(bodies[0]);
        builder_free(bodies[1]);
}

Test(import, clip_has_its_limits_as_attributes_in_every_opset)
{
        const char *wanted = "y = Clip(x [N,2,3,4]) {min=0, max=6} -> y [N,2,3,4]\n";
        struct builder *b = input_4(7, -1, 2, 3, 4);
        Onnx__NodeProto *clip = builder_node(b, "Clip", "x", "y");

        builder_attr_float(b, clip, "min", 0);
        builder_attr_float(b, clip, "max", 6);
        expect_graph(b, wanted);
        b = input_4(13, -1, 2, 3, 4);
        builder_floats(b, "low", 0, NULL, (float[]){0});
        builder_floats(b, "high", 0, NULL, (float[]){6});
        builder_node(b, "Clip", "x,low,high", "y");
        expect_graph(b, wanted);
        b = input_4(13, -1, 2, 3, 4);
        builder_floats(b, "high", 0, NULL, (float[]){6});
        builder_node(b, "Clip", "x,,high", "y");
        expect_graph(b, "y = Clip(x [N,2,3,4]) {max=6} -> y [N,2,3,4]\n");
}

Test(import, slice_has_its_lists_as_attributes_in_every_opset)
{
        struct builder *b = input_4(9, -1, 4, 5, 6);
        Onnx__NodeProto *slice = builder_node(b, "Slice", "x", "y");

        builder_attr_ints(b, slice, "starts", DIMS(1, 0));
        builder_attr_ints(b, slice, "ends", DIMS(3, -1));
        builder_attr_ints(b, slice, "axes", DIMS(1, 3));
        expect_graph(b, "y = Slice(x [N,4,5,6]) {starts=[1,0], ends=[3,-1], axes=[1,3]} -> y [N,2,5,5]\n");
        b = input_4(13, -1, 4, 5, 6);
        builder_ints(b, "starts", DIMS(2), (int64_t[]){1, 0});
        builder_ints(b, "ends", DIMS(2), (int64_t[]){3, -1});
        builder_ints(b, "axes", DIMS(2), (int64_t[]){1, 3});
        builder_ints(b, "steps", DIMS(2), (int64_t[]){1, 2});
        builder_node(b, "Slice", "x,starts,ends,axes,steps", "y");
        expect_graph(b, "y = Slice(x [N,4,5,6]) {starts=[1,0], ends=[3,-1], axes=[1,3], steps=[1,2]} -> y [N,2,5,3]\n");
}

Test(import, pads_of_some_axes_become_pads_of_all)
{
        struct builder *b = input_4(10, -1, 2, 3, 4);
        Onnx__NodeProto *pad = builder_node(b, "Pad", "x", "y");

        builder_attr_ints(b, pad, "pads", DIMS(0, 0, 1, 0, 0, 0, 2, 0));
        builder_attr_string(b, pad, "mode", "constant");
        expect_graph(b, "y = Pad(x [N,2,3,4]) {pads=[0,0,1,0,0,0,2,0], mode=0} -> y [N,2,6,4]\n");
        b = input_4(18, -1, 2, 3, 4);
        builder_ints(b, "pads", DIMS(2), (int64_t[]){1, 2});
        builder_ints(b, "axes", DIMS(1), (int64_t[]){-2});
        builder_node(b, "Pad", "x,pads,,axes", "y");
        expect_graph(b, "y = Pad(x [N,2,3,4]) {pads=[0,0,1,0,0,0,2,0]} -> y [N,2,6,4]\n");
}

Test(import, split_into_uneven_parts_has_its_sizes)
{
        struct builder *b = builder_new(18);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 7));
        Onnx__NodeProto *split = builder_node(b, "Split", "x", "a,b,c");
        builder_attr_int(b, split, "axis", 1);
        builder_attr_int(b, split, "num_outputs", 3);
        builder_output(b, "a");
        builder_output(b, "c");
        expect_graph(b, "a,b,c = Split(x [N,7]) {axis=1, split=[3,3,1]} -> a [N,3], b [N,3], c [N,1]\n");
}

/* Seventy parts and as many inputs: more than a node of the graph has room for. */
Test(import, a_split_into_many_parts_and_a_concat_of_many_inputs_become_several_nodes)
{
        struct builder *b = builder_new(13);
        struct sl_graph *graph, *special;
        char names[70 * 4] = "";
        float x[140], y[140];
        const void *inputs[] = {x};
        void *outputs[] = {y};

        for (int i = 0; i < 70; i++)
                snprintf(names + strlen(names), sizeof(names) - strlen(names), "%sp%d", i ? "," : "", i);
        for (int i = 0; i < 140; i++)
                x[i] = (float)i;
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 70));
        builder_attr_int(b, builder_node(b, "Split", "x", names), "axis", 1);
        builder_attr_int(b, builder_node(b, "Concat", names, "y"), "axis", -1);
        builder_output(b, "y");
        graph = builder_import(b);
        cr_assert_eq(sl_graph_specialise(graph, 2, &special, NULL), 0);
        cr_assert_eq(sl_graph_evaluate(special, inputs, outputs, NULL), 0);
        cr_assert_eq(memcmp(x, y, sizeof(x)), 0);
        sl_graph_free(special);
        sl_graph_free(graph);
        builder_free(b);
}

/* int32 would be read as half as many int64. */
Test(import, sizes_of_many_parts_are_a_constant_of_int64)
{
        static const int32_t sizes[20] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
        struct builder *b = builder_new(13);
        char names[20 * 4] = "";

        for (int i = 0; i < 20; i++)
                snprintf(names + strlen(names), sizeof(names) - strlen(names), "%sp%d", i ? "," : "", i);
        builder_input(b, "x", SL_DTYPE_F32, DIMS(40));
        builder_raw(b, "sizes", SL_DTYPE_I32, DIMS(20), sizes);
        builder_node(b, "Split", "x,sizes", names);
        builder_node(b, "Concat", names, "y");
        builder_output(b, "y");
        builder_expect(b, -ENOTSUP, "whose sizes are no constant");
        builder_free(b);
}

Test(import, old_softmax_is_over_everything_behind_its_axis)
{
        struct builder *b = input_4(11, -1, 2, 3, 1);

        builder_attr_int(b, builder_node(b, "Softmax", "x", "y"), "axis", 1);
        expect_graph(b, "y = Flatten(x [N,2,3,1]) {axis=1} -> y [N,6]\n"
                        "y = Softmax(y [N,6]) {axis=1} -> y [N,6]\n"
                        "y = Reshape(y [N,6]) {shape=[-1,2,3,1]} -> y [N,2,3,1]\n");
        b = input_4(11, -1, 2, 1, 1);
        builder_attr_int(b, builder_node(b, "Softmax", "x", "y"), "axis", 1);
        expect_graph(b, "y = Softmax(x [N,2,1,1]) {axis=1} -> y [N,2,1,1]\n");
        b = input_4(13, -1, 2, 3, 4);
        builder_attr_int(b, builder_node(b, "Softmax", "x", "y"), "axis", 1);
        expect_graph(b, "y = Softmax(x [N,2,3,4]) {axis=1} -> y [N,2,3,4]\n");
}

Test(import, auto_pad_is_resolved_from_the_spatial_sizes)
{
        static const struct {
                const char *auto_pad, *pads;
        } cases[] = {{"SAME_UPPER", "pads=[0,1,1,1]"}, {"SAME_LOWER", "pads=[1,1,0,1]"}};

        for (size_t i = 0; i < 2; i++) {
                struct builder *b = input_4(13, -1, 4, 6, 5);

                builder_random(b, "w", DIMS(4, 4, 3, 3));
                Onnx__NodeProto *conv = builder_node(b, "Conv", "x,w", "y");
                builder_attr_string(b, conv, "auto_pad", cases[i].auto_pad);
                builder_attr_ints(b, conv, "strides", DIMS(2, 2));
                struct sl_graph *graph = builder_import(b);
                char *printed = print_graph(graph);

                cr_assert(strstr(printed, cases[i].pads), "%s", printed);
                cr_assert(strstr(printed, "-> y [N,4,3,3]"), "%s", printed);
                free(printed);
                sl_graph_free(graph);
                builder_free(b);
        }
}

Test(import, constants_of_every_form_are_constants)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 6));
        Onnx__NodeProto *shape = builder_node(b, "Constant", "", "shape");
        builder_attr_ints(b, shape, "value_ints", DIMS(-1, 2, 3));
        builder_node(b, "Reshape", "x,shape", "r");
        Onnx__NodeProto *factor = builder_node(b, "Constant", "", "factor");
        builder_attr_float(b, factor, "value_float", 3);
        builder_node(b, "Mul", "r,factor", "y");
        builder_output(b, "y");
        expect_graph(b, "r = Reshape(x [N,6]) {shape=[-1,2,3]} -> r [N,2,3]\n"
                        "y = Mul(r [N,2,3], factor []) -> y [N,2,3]\n");
}

Test(import, a_reshape_to_batch_and_the_rest_holds_for_any_batch)
{
        struct builder *b = input_4(13, -1, 2, 3, 4);

        builder_ints(b, "zero", 0, NULL, (int64_t[]){0});
        builder_ints(b, "axis", DIMS(1), (int64_t[]){0});
        builder_ints(b, "rest", DIMS(1), (int64_t[]){-1});
        builder_node(b, "Shape", "x", "s");
        builder_node(b, "Gather", "s,zero", "n");
        builder_node(b, "Unsqueeze", "n,axis", "u");
        builder_attr_int(b, builder_node(b, "Concat", "u,rest", "c"), "axis", 0);
        builder_node(b, "Reshape", "x,c", "y");
        expect_graph(b, "y = Reshape(x [N,2,3,4]) {shape=[0,-1]} -> y [N,24]\n");
}

Test(import, arithmetic_on_the_batch_that_is_no_reshape_is_settled_for_each_batch)
{
        struct builder *b = input_4(13, -1, 2, 3, 1);

        builder_ints(b, "four", DIMS(4), (int64_t[]){1, 1, 1, 4});
        builder_node(b, "Shape", "x", "s");
        builder_node(b, "Mul", "s,four", "m");
        builder_node(b, "Expand", "x,m", "y");
        struct sl_graph *graph = builder_import(b), *five;
        struct sl_error error = {0};

        cr_assert_eq(sl_graph_specialise(graph, 5, &five, &error), 0, "%s", error.text);
        char *printed = print_graph(five);

        cr_assert_str_eq(printed, "y = Expand(x [5,2,3,1]) {shape=[5,2,3,4]} -> y [5,2,3,4]\n", "%s", printed);
        free(printed);
        sl_graph_free(five);
        sl_graph_free(graph);
        builder_free(b);
}

Test(import, a_reshape_to_batch_and_fixed_sizes_holds_for_any_batch)
{
        struct builder *b = input_4(13, -1, 2, 3, 4);

        builder_ints(b, "first", DIMS(1), (int64_t[]){0});
        builder_ints(b, "rest", DIMS(2), (int64_t[]){6, 4});
        builder_node(b, "Shape", "x", "s");
        builder_node(b, "Gather", "s,first", "n");
        builder_attr_int(b, builder_node(b, "Concat", "n,rest", "c"), "axis", 0);
        builder_node(b, "Reshape", "x,c", "y");
        expect_graph(b, "y = Reshape(x [N,2,3,4]) {shape=[-1,6,4]} -> y [N,6,4]\n");
}

Test(import, nodes_out_of_order_are_sorted)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        builder_node(b, "Exp", "r", "y");
        builder_node(b, "Relu", "x", "r");
        builder_output(b, "y");
        expect_graph(b, "r = Relu(x [N,2]) -> r [N,2]\ny = Exp(r [N,2]) -> y [N,2]\n");
}

Test(import, an_initializer_that_is_an_input_too_is_a_constant)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        builder_input(b, "w", SL_DTYPE_F32, DIMS(2));
        builder_random(b, "w", DIMS(2));
        builder_node(b, "Mul", "x,w", "y");
        builder_output(b, "y");
        struct sl_graph *graph = builder_import(b);

        cr_assert_eq(graph->n_inputs, 1u);
        sl_graph_free(graph);
        builder_free(b);
}

Test(import, every_output_is_computed_by_a_node_of_its_own)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        builder_node(b, "Relu", "x", "y");
        builder_output(b, "x");
        builder_output(b, "y");
        expect_graph(b, "y = Relu(x [N,2]) -> y [N,2]\nx = Identity(x [N,2]) -> x [N,2]\n");
}

/* The rows that a Loop of @count rounds puts one behind the other; @starts: its condition at first. */
static int64_t rows_of_loop(int64_t count, bool starts)
{
        struct builder *body = builder_new(16), *b = builder_new(16);
        struct sl_graph *graph;
        Onnx__NodeProto *node;
        int64_t rows;

        builder_input(body, "i", SL_DTYPE_I64, DIMS());
        builder_input(body, "go", SL_DTYPE_BOOL, DIMS());
        builder_node(body, "Identity", "go", "goes_on");
        builder_node(body, "Relu", "x", "row");
        builder_output(body, "goes_on");
        builder_output(body, "row");
        builder_input(b, "x", SL_DTYPE_F32, DIMS(2));
        builder_ints(b, "n", DIMS(), &count);
        builder_raw(b, "starts", SL_DTYPE_BOOL, DIMS(), (uint8_t[]){starts});
        node = builder_node(b, "Loop", "n,starts", "y");
        builder_attr_graph(b, node, "body", body);
        builder_output(b, "y");
        graph = builder_import(b);
        rows = graph->values[graph->outputs[0]].tensor.shape.dims[0];
        sl_graph_free(graph);
        builder_free(body);
        builder_free(b);
        return rows;
}

Test(import, a_loop_of_constant_rounds_makes_as_many_rows)
{
        cr_expect_eq(rows_of_loop(3, true), 3);
        cr_expect_eq(rows_of_loop(3, false), 0);
        cr_expect_eq(rows_of_loop(0, true), 0);
        cr_expect_eq(rows_of_loop(-4, true), 0);
}

/* @times: that the initializer is listed. */
static int import_optional(int64_t ir_version, int64_t declared, int times, struct sl_graph **ret_graph, struct sl_error *error)
{
        struct sl_graph_limits limits = sl_graph_limits_default;
        struct builder *b = builder_new(17);
        uint8_t *bytes;
        size_t n_bytes;
        int r;

        limits.optional_inputs = true;
        b->model.ir_version = ir_version;
        for (int i = 0; i < times; i++)
                builder_input(b, "w", SL_DTYPE_F32, DIMS(declared));
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 4));
        builder_random(b, "w", DIMS(4));
        builder_node(b, "Mul", "x,w", "y");
        builder_output(b, "y");
        bytes = builder_pack(b, &n_bytes);
        r = sl_import_onnx_bytes(bytes, n_bytes, &limits, ret_graph, error);
        builder_free(b);
        return r;
}

Test(import, an_initializer_that_is_an_input_is_the_last_input_where_that_is_wanted)
{
        struct sl_error error = {""};
        struct sl_graph *graph;

        cr_assert_eq(import_optional(4, 4, 1, &graph, &error), 0, "%s", error.text);
        cr_assert_eq(graph->n_inputs, 2);
        cr_expect_str_eq(graph->values[graph->inputs[0]].name, "x");
        cr_expect_str_eq(graph->values[graph->inputs[1]].name, "w");
        cr_expect_not_null(graph->values[graph->inputs[1]].data);
        sl_graph_free(graph);
        cr_assert_eq(import_optional(3, 4, 1, &graph, &error), 0, "%s", error.text);
        cr_expect_eq(graph->n_inputs, 1, "of a file that had to list it, it is a constant");
        sl_graph_free(graph);
        cr_assert_eq(import_optional(8, 5, 1, &graph, &error), -EBADMSG);
        cr_expect_str_eq(error.text, "input \"w\" is declared otherwise than its initializer, which is float32 [4]");
        cr_assert_eq(import_optional(8, 4, 2, &graph, &error), -EBADMSG);
        cr_expect_str_eq(error.text, "input \"w\" is there twice");
}

static uint32_t count_nodes(const struct sl_graph *graph, uint32_t op)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += !graph->nodes[i].dead && graph->nodes[i].op == op;
        return n;
}

Test(import, nodes_that_draw_read_one_value_of_keys_and_are_told_apart)
{
        struct builder *b = input_4(15, -1, 2, 3, 4);
        struct sl_graph *graph;
        const struct sl_node *draws[2];
        uint32_t n = 0;

        builder_node(b, "RandomNormalLike", "x", "a");
        builder_node(b, "RandomNormalLike", "x", "b");
        builder_node(b, "Add", "a,b", "y");
        graph = builder_import(b);
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (graph->nodes[i].op == SL_OP_RANDOM_NORMAL_LIKE && n < 2)
                        draws[n++] = &graph->nodes[i];
        cr_assert_eq(n, 2);
        cr_expect_eq(count_nodes(graph, SL_OP_SAMPLE_KEYS), 1);
        cr_expect_eq(draws[0]->inputs[1], draws[1]->inputs[1]);
        cr_expect_neq(sl_attrs_int(&draws[0]->attrs, SL_ATTR_STREAM, 0), sl_attrs_int(&draws[1]->attrs, SL_ATTR_STREAM, 0));
        sl_graph_free(graph);
        builder_free(b);
}

Test(import, numbers_drawn_once_for_all_samples_want_a_size_of_the_batch)
{
        struct builder *b = input_4(15, -1, 2, 3, 4);
        Onnx__NodeProto *node = builder_node(b, "RandomNormal", "", "n");

        builder_attr_ints(b, node, "shape", 1, (int64_t[]){4});
        builder_node(b, "Add", "x,n", "y");
        builder_expect(b, -EDOM,
                "node \"n\": operator RandomNormal of domain ai.onnx, opset 15: it draws for all samples of a request "
                "together, so the leading dimension of the inputs wants a size");
        builder_free(b);
        b = input_4(15, -1, 2, 3, 4);
        builder_node(b, "RandomNormalLike", "", "y");
        builder_expect(b, -EBADMSG, "it wants one input");
        builder_free(b);
}

Test(import, an_unknown_operator_is_named_with_domain_opset_and_node)
{
        struct builder *b = input_4(13, -1, 2, 3, 4);

        builder_node(b, "ImageDecoder", "x", "y");
        builder_expect(b, -ENOTSUP, "node \"y\": operator ImageDecoder of domain ai.onnx, opset 13");
        builder_free(b);
        b = input_4(13, -1, 2, 3, 4);
        builder_node(b, "Relu", "x", "y")->domain = (char *)"com.example";
        builder_expect(b, -ENOTSUP, "node \"y\": operator Relu of domain com.example, opset 13");
        builder_free(b);
        b = input_4(13, -1, 2, 3, 4);
        builder_node(b, "starling.Reorder", "x", "y");
        builder_expect(b, -ENOTSUP, "operator starling.Reorder");
        builder_free(b);
}

Test(import, an_unknown_attribute_is_refused)
{
        struct builder *b = input_4(13, -1, 2, 3, 4);

        builder_attr_int(b, builder_node(b, "Relu", "x", "y"), "surprise", 1);
        builder_expect(b, -ENOTSUP, "attribute surprise of operator Relu");
        builder_free(b);
}

Test(import, names_of_ports_that_cannot_be_shown_are_refused)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 4));
        builder_input(b, "im\xffg", SL_DTYPE_F32, DIMS(-1, 4));
        builder_output(b, "y");
        builder_node(b, "Add", "x,im\xffg", "y");
        builder_expect(b, -EBADMSG, "input 1: byte 2 of its name, 0xff, is of a control character or no UTF-8");
        builder_free(b);
        b = builder_new_of_x(13, DIMS(-1, 4));
        builder_output(b, "\x1b[2J");
        builder_node(b, "Relu", "x", "\x1b[2J");
        builder_expect(b, -EBADMSG, "output 0: byte 0 of its name, 0x1b, is of a control character or no UTF-8");
        builder_free(b);
        b = builder_new_of_x(13, DIMS(-1, 4));
        builder_output(b, "gr\xc3\xb6\xc3\x9f");
        builder_node(b, "Relu", "x", "gr\xc3\xb6\xc3\x9f");
        expect_graph(b, "gr\xc3\xb6\xc3\x9f = Relu(x [N,4]) -> gr\xc3\xb6\xc3\x9f [N,4]\n");
}

Test(import, opsets_outside_the_range_are_refused)
{
        static const int64_t opsets[] = {0, 29};

        for (size_t i = 0; i < 2; i++) {
                struct builder *b = input_4(opsets[i], -1, 2, 3, 4);

                builder_node(b, "Relu", "x", "y");
                builder_expect(b, -ENOTSUP, i ? "supported are 1 to 28" : "imports no opset");
                builder_free(b);
        }
}

Test(import, specialising_keeps_the_indices_of_nodes_and_values)
{
        struct builder *b = input_4(13, -1, 2, 3, 4);

        builder_ints(b, "axis", DIMS(1), (int64_t[]){1});
        builder_node(b, "Shape", "x", "s");
        builder_node(b, "ReduceSum", "x,axis", "r");
        builder_node(b, "Expand", "r,s", "y");
        struct sl_graph *graph = builder_import(b), *one, *four;

        cr_assert_eq(sl_graph_specialise(graph, 1, &one, NULL), 0);
        cr_assert_eq(sl_graph_specialise(graph, 4, &four, NULL), 0);
        cr_assert_eq(one->n_nodes, graph->n_nodes);
        cr_assert_eq(four->n_nodes, graph->n_nodes);
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                cr_assert_eq(one->nodes[i].dead, four->nodes[i].dead);
        cr_assert_eq(four->values[four->outputs[0]].tensor.shape.dims[0], 4);
        sl_graph_free(four);
        sl_graph_free(one);
        sl_graph_free(graph);
        builder_free(b);
}

/* The gate of an image, as efficient channel attention writes it; and two of which each repeats what the other lacks. */
Test(import, specialising_leaves_out_what_broadcasting_repeats_anyway)
{
        struct builder *b = input_4(13, -1, 2, 3, 4);
        float x[3 * 24], before[3 * 24], after[3 * 24], expected[3 * 24];
        struct sl_graph *graph, *three;

        builder_ints(b, "axes", DIMS(2), (int64_t[]){2, 3});
        builder_ints(b, "axis", DIMS(1), (int64_t[]){1});
        builder_node(b, "Shape", "x", "s");
        builder_node(b, "ReduceSum", "x,axes", "gate");
        builder_node(b, "Expand", "gate,s", "gates");
        builder_node(b, "Mul", "x,gates", "gated");
        builder_node(b, "ReduceSum", "x,axis", "row");
        builder_node(b, "Expand", "row,s", "rows");
        builder_node(b, "Sub", "gates,rows", "both");
        builder_node(b, "Add", "gated,both", "y");
        graph = builder_import(b);
        cr_assert_eq(sl_graph_specialise(graph, 3, &three, NULL), 0);
        cr_expect_eq(count_ops(graph, SL_OP_EXPAND), 2);
        cr_expect_eq(count_ops(three, SL_OP_EXPAND), 0);
        fill_random(x, 72, 5);
        evaluate_floats(graph, 3, x, before, 72);
        evaluate_floats(three, 3, x, after, 72);
        for (uint32_t i = 0; i < 72; i++) {
                float gate = 0, row = x[i / 24 * 24 + i % 12] + x[i / 24 * 24 + 12 + i % 12];

                for (uint32_t k = 0; k < 12; k++)
                        gate += x[i / 12 * 12 + k];
                expected[i] = x[i] * gate + (gate - row);
                cr_expect_float_eq(before[i], expected[i], 1e-4);
                cr_expect_float_eq(after[i], expected[i], 1e-4);
        }
        sl_graph_free(three);
        sl_graph_free(graph);
        builder_free(b);
}

Test(import, typed_data_of_every_element_type_is_decoded)
{
        static const int32_t types[] = {SL_DTYPE_F32, SL_DTYPE_U8, SL_DTYPE_I8, SL_DTYPE_U16, SL_DTYPE_I16, SL_DTYPE_I32,
                SL_DTYPE_I64, SL_DTYPE_F64, SL_DTYPE_U32, SL_DTYPE_U64, SL_DTYPE_F16, SL_DTYPE_BF16};

        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
                struct builder *b = builder_new(13);
                Onnx__TensorProto *tensor = builder_random(b, "w", DIMS(2));
                /* 1 and 2 as a number, as float16 and as bfloat16. */
                int32_t narrow[2] = {1, 2}, half[2] = {0x3c00, 0x4000}, bfloat[2] = {0x3f80, 0x4000};
                float sums[1], singles[2] = {1, 2};
                double doubles[2] = {1, 2};
                int64_t wide[2] = {1, 2};
                uint64_t unsigned_wide[2] = {1, 2};

                tensor->has_raw_data = 0;
                tensor->data_type = types[i];
                switch (types[i]) {
                case SL_DTYPE_F32:
                        tensor->n_float_data = 2;
                        tensor->float_data = singles;
                        break;
                case SL_DTYPE_F64:
                        tensor->n_double_data = 2;
                        tensor->double_data = doubles;
                        break;
                case SL_DTYPE_I64:
                        tensor->n_int64_data = 2;
                        tensor->int64_data = wide;
                        break;
                case SL_DTYPE_U32:
                case SL_DTYPE_U64:
                        tensor->n_uint64_data = 2;
                        tensor->uint64_data = unsigned_wide;
                        break;
                default:
                        tensor->n_int32_data = 2;
                        tensor->int32_data = types[i] == SL_DTYPE_F16 ? half : types[i] == SL_DTYPE_BF16 ? bfloat : narrow;
                }
                builder_input(b, "x", SL_DTYPE_F32, DIMS(1, 2));
                builder_attr_int(b, builder_node(b, "Cast", "w", "f"), "to", SL_DTYPE_F32);
                builder_node(b, "MatMul", "x,f", "y");
                builder_output(b, "y");
                struct sl_graph *graph = builder_import(b);

                evaluate_floats(graph, 1, (float[]){10, 1}, sums, 1);
                cr_assert_float_eq(sums[0], 12, 1e-6, "type %s gives %g", sl_dtype_name((uint32_t)types[i]), (double)sums[0]);
                sl_graph_free(graph);
                builder_free(b);
        }
}

/* Each on x = 0, 1, ... 5 of two rows and v = 1, 10. */
Test(import, an_einsum_without_inner_sums_is_made_of_common_operators)
{
        static const struct {
                const char *equation;
                uint32_t op; /* the last node's */
                uint32_t n;
                float wanted[6];
        } forms[] = {
                {"ij->ji", SL_OP_TRANSPOSE, 6, {0, 3, 1, 4, 2, 5}}, {"ij->j", SL_OP_TRANSPOSE, 3, {3, 5, 7}},
                {"ij,i->ij", SL_OP_MUL, 6, {0, 1, 2, 30, 40, 50}}, {"ij,i->ji", SL_OP_MUL, 6, {0, 30, 1, 40, 2, 50}},
                {"ij->", SL_OP_IDENTITY, 1, {15}}, /* behind a ReduceSum */
        };

        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
                struct builder *b = builder_new(17);
                float got[6];

                builder_input(b, "x", SL_DTYPE_F32, DIMS(2, 3));
                builder_floats(b, "v", DIMS(2), (float[]){1, 10});
                builder_attr_string(b, builder_node(b, "Einsum", strchr(forms[i].equation, ',') ? "x,v" : "x", "y"), "equation",
                        forms[i].equation);
                builder_output(b, "y");
                struct sl_graph *graph = builder_import(b);

                cr_assert_eq(graph->nodes[graph->n_nodes - 1].op, forms[i].op, "%s", forms[i].equation);
                evaluate_floats(graph, 1, (float[]){0, 1, 2, 3, 4, 5}, got, forms[i].n);
                for (uint32_t k = 0; k < forms[i].n; k++)
                        cr_expect_float_eq(got[k], forms[i].wanted[k], 1e-6, "%s: %g", forms[i].equation, (double)got[k]);
                sl_graph_free(graph);
                builder_free(b);
        }
}

/* x [N,2,3,4] of an operator of opset @opset with one attribute. */
static struct builder *attribute_of(int64_t opset, const char *op, const char *name, int64_t value)
{
        struct builder *b = input_4(opset, -1, 2, 3, 4);

        builder_attr_int(b, builder_node(b, op, "x,x", "y"), name, value);
        return b;
}

Test(import, operators_of_opsets_24_to_28_become_older_ones)
{
        struct builder *b = input_4(24, -1, 2, 3, 4);

        builder_node(b, "Swish", "x", "y");
        expect_graph(b, "y = Sigmoid(x [N,2,3,4]) -> y [N,2,3,4]\n"
                        "y = Mul(x [N,2,3,4], y [N,2,3,4]) -> y [N,2,3,4]\n");
        b = input_4(28, -1, 2, 3, 4);
        builder_node(b, "SwiGLU", "x,x", "y");
        expect_graph(b, "y = Sigmoid(x [N,2,3,4]) -> y [N,2,3,4]\n"
                        "y = Mul(x [N,2,3,4], y [N,2,3,4]) -> y [N,2,3,4]\n"
                        "y = Mul(y [N,2,3,4], x [N,2,3,4]) -> y [N,2,3,4]\n");
}

Test(import, a_remainder_of_floats_rounds_down_from_opset_28_on)
{
        struct builder *b = attribute_of(27, "Mod", "fmod", 0);

        builder_expect(b, -EBADMSG, "of floats its attribute fmod must be 1");
        builder_free(b);
        expect_graph(attribute_of(28, "Mod", "fmod", 0), "y = Mod(x [N,2,3,4], x [N,2,3,4]) {fmod=0} -> y [N,2,3,4]\n");
}

Test(import, a_bit_cast_keeps_the_width)
{
        struct builder *b = input_4(26, -1, 2, 3, 4);

        builder_attr_int(b, builder_node(b, "BitCast", "x", "y"), "to", SL_DTYPE_I64);
        builder_expect(b, -EBADMSG, "input 0 is float32, whose bits are no int64");
        builder_free(b);
}
