/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences and optionals that are known when a model is loaded: the tensors that are left of them, and what is refused.
 */
#include "base/dim_sizes.h"
#include "base/error.h"
#include "builder.h"
#include "import.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <string.h>

static struct builder *model(void)
{
        struct builder *b = builder_new_of_x(17, DIMS(2, 3));

        builder_output(b, "y");
        builder_ints(b, "zero", 0, NULL, (int64_t[]){0});
        builder_ints(b, "last", 0, NULL, (int64_t[]){-1});
        return b;
}

static void expect_graph(struct builder *b, const char *wanted)
{
        struct sl_graph *graph = builder_import(b);

        expect_text(graph, wanted);
        sl_graph_free(graph);
        builder_free(b);
}

static void expect_refused(struct builder *b, int result, const char *text)
{
        builder_expect(b, result, text);
        builder_free(b);
}

Test(sequences, are_lists_of_tensors_that_are_inserted_erased_and_taken)
{
        struct builder *b = model();

        builder_node(b, "Neg", "x", "n");
        builder_node(b, "Abs", "x", "a");
        builder_node(b, "SequenceConstruct", "x,n", "s1");
        builder_node(b, "SequenceInsert", "s1,a,zero", "s2"); /* a x n */
        builder_node(b, "SequenceInsert", "s2,n", "s3");      /* a x n n */
        builder_node(b, "SequenceErase", "s3,last", "s4");    /* a x n */
        builder_node(b, "SequenceErase", "s4", "s5");         /* a x */
        builder_node(b, "Identity", "s5", "s6");
        builder_node(b, "SequenceAt", "s6,zero", "first");
        builder_node(b, "SequenceAt", "s6,last", "second");
        builder_node(b, "Sub", "first,second", "y");
        expect_graph(b, "a = Abs(x [2,3]) -> a [2,3]\n"
                        "y = Sub(a [2,3], x [2,3]) -> y [2,3]\n");
}

Test(sequences, that_are_empty_grow_and_are_joined)
{
        struct builder *b = model();

        builder_node(b, "SequenceEmpty", "", "s0")->n_input = 0;
        builder_node(b, "SequenceInsert", "s0,x", "s1");
        builder_node(b, "SequenceInsert", "s1,x", "s2");
        builder_attr_int(b, builder_node(b, "ConcatFromSequence", "s2", "y"), "axis", 1);
        expect_graph(b, "y = Concat(x [2,3], x [2,3]) {axis=1} -> y [2,6]\n");
        b = model();
        builder_node(b, "SequenceConstruct", "x,x", "s");
        builder_attr_int(b, builder_node(b, "ConcatFromSequence", "s", "y"), "axis", 0);
        builder_attr_int(b, b->graph.node[1], "new_axis", 1);
        expect_graph(b, "y = Unsqueeze(x [2,3]) {axes=[0]} -> y [1,2,3]\n"
                        "y = Unsqueeze(x [2,3]) {axes=[0]} -> y [1,2,3]\n"
                        "y = Concat(y [1,2,3], y [1,2,3]) {axis=0} -> y [2,2,3]\n");
}

Test(sequences, have_a_length_that_is_a_number)
{
        struct builder *b = model();

        builder_node(b, "SequenceConstruct", "x,x,x", "s");
        builder_node(b, "SequenceLength", "s", "n");
        builder_attr_int(b, builder_node(b, "Cast", "n", "f"), "to", SL_DTYPE_F32);
        builder_node(b, "Mul", "x,f", "y");
        expect_graph(b, "f = Cast(n []) {to=1} -> f []\n"
                        "y = Mul(x [2,3], f []) -> y [2,3]\n");
}

/* @lengths: NULL for pieces of one. */
static struct builder *split(int64_t axis, const int64_t *lengths, uint32_t n, int64_t keeps)
{
        struct builder *b = model();
        Onnx__NodeProto *node = builder_node(b, "SplitToSequence", lengths ? "x,lengths" : "x", "s");

        if (lengths)
                builder_ints(b, "lengths", n ? 1 : 0, (int64_t[]){n}, lengths);
        builder_attr_int(b, node, "axis", axis);
        builder_attr_int(b, node, "keepdims", keeps);
        builder_node(b, "SequenceAt", "s,last", "y");
        return b;
}

Test(sequences, of_pieces_end_with_what_is_left)
{
        static const int64_t two = 2, lists[] = {1, 0, 2};

        expect_graph(split(1, &two, 0, 1), "s = Slice(x [2,3]) {starts=[2], ends=[3], axes=[1]} -> y [2,1]\n");
        expect_graph(split(-1, lists, 3, 0), "s = Slice(x [2,3]) {starts=[1], ends=[3], axes=[1]} -> y [2,2]\n");
        expect_graph(split(0, NULL, 0, 0), "s = Slice(x [2,3]) {starts=[1], ends=[2], axes=[0]} -> s [1,3]\n"
                                           "s = Squeeze(s [1,3]) {axes=[0]} -> y [3]\n");
}

Test(sequences, are_refused_where_lengths_do_not_fit)
{
        static const int64_t none = 0, more[] = {2, 2}, less[] = {1, 1}, negative[] = {4, -1};

        expect_refused(split(1, &none, 0, 1), -EBADMSG, "its pieces have no length");
        expect_refused(split(1, more, 2, 1), -EBADMSG, "its lengths exceed what is cut");
        expect_refused(split(1, less, 2, 1), -EBADMSG, "its lengths are less than what is cut");
        expect_refused(split(1, negative, 2, 1), -EBADMSG, "its lengths exceed what is cut");
        expect_refused(split(2, NULL, 0, 1), -EBADMSG, "its axis is outside the input's rank");
}

Test(sequences, of_samples_want_to_know_the_batch)
{
        struct builder *b = builder_new_of_x(17, DIMS(-1, 3));

        builder_output(b, "y");
        builder_node(b, "SplitToSequence", "x", "s");
        builder_node(b, "SequenceLength", "s", "y");
        expect_refused(b, -EDOM, "it cuts the batch into a sequence");
}

Test(sequences, are_refused_where_positions_are_data_or_outside)
{
        struct builder *b = model();

        builder_ints(b, "three", 0, NULL, (int64_t[]){3});
        builder_node(b, "SequenceConstruct", "x,x", "s");
        builder_node(b, "SequenceAt", "s,three", "y");
        builder_expect(b, -EBADMSG, "node \"y\": position 3 of its sequence, which has 2 places");
        b->graph.node[1]->input[1] = (char *)"x";
        builder_expect(b, -ENOTSUP, "data decide its position, which is no scalar");
        b->graph.node[1]->op_type = (char *)"SequenceErase";
        builder_expect(b, -ENOTSUP, "data decide a position or a length");
        b->graph.node[1]->op_type = (char *)"Relu";
        b->graph.node[1]->n_input = 1;
        expect_refused(b, -ENOTSUP, "node \"y\" (Relu): input \"s\" is a sequence or an optional");
        b = model();
        builder_node(b, "SequenceEmpty", "", "s")->n_input = 0;
        builder_attr_int(b, builder_node(b, "ConcatFromSequence", "s", "y"), "axis", 0);
        builder_expect(b, -EBADMSG, "its sequence is empty");
        b->graph.node[1]->op_type = (char *)"SequenceErase";
        b->graph.node[1]->n_attribute = 0;
        builder_expect(b, -EBADMSG, "its sequence is empty");
        b->graph.n_node = 1;
        b->graph.output[0]->name = (char *)"s";
        expect_refused(b, -ENOTSUP, "the outputs of the graph are empty sequences");
}

/* @second: what is in the sequence beside x [2,3]. */
static struct builder *element_by_data(const char *second)
{
        struct builder *b = model();

        builder_input(b, "i", SL_DTYPE_I64, 0, NULL);
        builder_input(b, "z", SL_DTYPE_F32, DIMS(2, 4));
        builder_node(b, "SequenceConstruct", second, "s");
        builder_node(b, "SequenceAt", "s,i", "y");
        return b;
}

Test(sequences, of_elements_that_are_alike_give_the_one_that_data_name)
{
        expect_graph(element_by_data("x,x"), "y = Unsqueeze(x [2,3]) {axes=[0]} -> y [1,2,3]\n"
                                             "y = Unsqueeze(x [2,3]) {axes=[0]} -> y [1,2,3]\n"
                                             "y = Concat(y [1,2,3], y [1,2,3]) {axis=0} -> y [2,2,3]\n"
                                             "y = Gather(y [2,2,3], i []) -> y [2,3]\n");
        expect_refused(element_by_data("x,z"), -ENOTSUP, "data decide its position among tensors of several shapes or types");
}

Test(sequences, of_so_many_pieces_have_lengths_that_data_decide)
{
        struct builder *b = model();
        struct sl_graph *graph;

        builder_input(b, "lengths", SL_DTYPE_I64, DIMS(2));
        builder_attr_int(b, builder_node(b, "SplitToSequence", "x,lengths", "s"), "axis", 1);
        builder_ints(b, "first", 0, NULL, (int64_t[]){0});
        builder_node(b, "SequenceAt", "s,first", "y");
        graph = builder_import(b);
        cr_expect_eq(count_ops(graph, SL_OP_SPLIT), 1u);
        cr_expect(sl_shape_equal(
                &graph->values[graph->outputs[0]].tensor.shape, &(struct sl_shape){.rank = 2, .dims = {2, SL_DIM_UNKNOWN}}));
        sl_graph_free(graph);
        builder_free(b);
}

Test(optionals, hold_a_tensor_or_nothing)
{
        struct builder *b = model(), *yes = builder_new(17), *no = builder_new(17);
        Onnx__NodeProto *node;

        builder_node(b, "Optional", "x", "o");
        builder_node(b, "OptionalHasElement", "o", "has");
        builder_node(yes, "OptionalGetElement", "o", "r");
        builder_output(yes, "r");
        builder_node(no, "Neg", "x", "r");
        builder_output(no, "r");
        node = builder_node(b, "If", "has", "h");
        builder_attr_graph(b, node, "then_branch", yes);
        builder_attr_graph(b, node, "else_branch", no);
        builder_node(b, "Abs", "h", "y");
        node = b->graph.node[0];
        struct sl_graph *graph = builder_import(b);
        expect_text(graph, "y = Abs(x [2,3]) -> y [2,3]\n");
        sl_graph_free(graph);
        node->n_input = 0;
        graph = builder_import(b);
        expect_text(graph, "r = Neg(x [2,3]) -> r [2,3]\n"
                           "y = Abs(r [2,3]) -> y [2,3]\n");
        sl_graph_free(graph);
        b->graph.node[2] = yes->graph.node[0];
        b->graph.node[2]->output[0] = (char *)"h";
        builder_expect(b, -EBADMSG, "its optional is empty");
        builder_free(b);
        builder_free(yes);
        builder_free(no);
}

/* What a body reads of a sequence around it is an input of its node. */
Test(sequences, are_read_in_bodies)
{
        struct builder *b = model(), *yes = builder_new(17), *no = builder_new(17);
        Onnx__NodeProto *node;
        struct sl_graph *graph;

        builder_input(b, "c", SL_DTYPE_BOOL, 0, NULL);
        builder_node(b, "Neg", "x", "n");
        builder_node(b, "SequenceConstruct", "x,n", "s");
        builder_node(yes, "SequenceAt", "s,last", "r");
        builder_output(yes, "r");
        builder_node(no, "SequenceAt", "s,zero", "r");
        builder_output(no, "r");
        node = builder_node(b, "If", "c", "y");
        builder_attr_graph(b, node, "then_branch", yes);
        builder_attr_graph(b, node, "else_branch", no);
        graph = builder_import(b);
        cr_expect_eq(count_ops(graph, SL_OP_IF), 1u);
        cr_expect_eq(graph->nodes[graph->n_nodes - 1].n_inputs, 3u);
        sl_graph_free(graph);
        builder_free(b);
        builder_free(yes);
        builder_free(no);
}

/* Each element is an output of its own. */
Test(sequences, that_are_outputs_are_as_many_as_they_have_elements)
{
        static const int64_t lengths[] = {1, 0, 2};
        struct builder *b = split(1, lengths, 3, 1);
        struct sl_graph *graph;

        b->graph.output[0]->name = (char *)"s";
        builder_output(b, "x");
        graph = builder_import(b);
        cr_assert_eq(graph->n_outputs, 4u);
        for (uint32_t i = 0; i < 3; i++) {
                const struct sl_value *value = &graph->values[graph->outputs[i]];
                char name[8];

                snprintf(name, sizeof(name), "s[%u]", i);
                cr_expect_str_eq(value->name, name);
                cr_expect(sl_shape_equal(&value->tensor.shape, &(struct sl_shape){2, {2, lengths[i]}}));
        }
        cr_expect_str_eq(graph->values[graph->outputs[3]].name, "x");
        sl_graph_free(graph);
        builder_free(b);
}

/* How many there are would be another number for another size. */
Test(sequences, that_are_outputs_have_no_open_dimension_beside_the_batch)
{
        struct builder *b = builder_new_of_x(17, DIMS(-1, -2));
        struct sl_dim_sizes sizes = {0};
        struct sl_graph *graph = NULL;
        struct sl_error error = {0};
        size_t n_bytes;
        uint8_t *bytes;

        builder_output(b, "s");
        builder_attr_int(b, builder_node(b, "SplitToSequence", "x", "s"), "axis", 1);
        bytes = builder_pack(b, &n_bytes);
        cr_assert_eq(sl_dim_sizes_parse("M=3", &sizes, &error), 0);
        cr_expect_eq(sl_import_onnx_bytes_bound(bytes, n_bytes, NULL, &sizes, &graph, &error), -ENOTSUP);
        cr_expect_not_null(strstr(error.text, "output \"s\" is a sequence, of a model with open dimensions"), "%s", error.text);
        builder_free(b);
}

/* The type of input "x" becomes an optional of what it is, or a sequence. */
static void change_type(struct builder *b, int value_case)
{
        Onnx__TypeProto *outer = builder_alloc(b, sizeof(*outer));

        onnx__type_proto__init(outer);
        outer->value_case = (Onnx__TypeProto__ValueCase)value_case;
        if (value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
                outer->optional_type = builder_alloc(b, sizeof(*outer->optional_type));
                onnx__type_proto__optional__init(outer->optional_type);
                outer->optional_type->elem_type = b->graph.input[0]->type;
        } else {
                outer->sequence_type = builder_alloc(b, sizeof(*outer->sequence_type));
                onnx__type_proto__sequence__init(outer->sequence_type);
                outer->sequence_type->elem_type = b->graph.input[0]->type;
        }
        b->graph.input[0]->type = outer;
}

Test(optionals, that_are_inputs_are_given)
{
        struct builder *b = model();

        builder_node(b, "OptionalHasElement", "x", "has");
        builder_node(b, "OptionalGetElement", "x", "t");
        builder_node(b, "Where", "has,t,t", "y");
        change_type(b, ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE);
        expect_graph(b, "y = Where(has [], x [2,3], x [2,3]) -> y [2,3]\n");
}

Test(sequences, that_are_inputs_are_refused)
{
        struct builder *b = model();

        builder_node(b, "Abs", "x", "y");
        change_type(b, ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE);
        builder_expect(b, -ENOTSUP, "input \"x\" is no dense tensor, but a sequence, whose length a request alone would say");
        change_type(b, ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE);
        expect_refused(b, -ENOTSUP, "input \"x\" is no dense tensor, but a sequence");
}

Test(optionals, that_hold_nothing_are_no_outputs)
{
        struct builder *b = model();

        builder_node(b, "Optional", "x", "y");
        expect_graph(b, "y = Identity(x [2,3]) -> y [2,3]\n");
        b = model();
        builder_node(b, "Optional", "", "y")->n_input = 0;
        expect_refused(b, -ENOTSUP, "output \"y\" is an optional that holds nothing");
}
