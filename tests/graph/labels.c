/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of a file: places in lists of words, which are the labels of inputs and outputs in the end; and what is refused. */
#include "base/labels.h"
#include "base/error.h"
#include "builder.h"
#include "export.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define END "\x1f"

static Onnx__AttributeProto *add_attr(struct builder *b, Onnx__NodeProto *node, const char *name)
{
        builder_attr_int(b, node, name, 0);
        return node->attribute[node->n_attribute - 1];
}

/* @words with commas between. */
static ProtobufCBinaryData *words_of(struct builder *b, const char *words, size_t *ret_n)
{
        ProtobufCBinaryData *list = builder_alloc(b, (strlen(words) + 1) * sizeof(*list));
        size_t n = 0;

        for (const char *at = words;; at++) {
                size_t length = strcspn(at, ",");

                list[n++] = (ProtobufCBinaryData){length, (uint8_t *)(uintptr_t)at};
                at += length;
                if (!*at)
                        break;
        }
        *ret_n = n;
        return list;
}

static void add_words(struct builder *b, Onnx__NodeProto *node, const char *name, const char *words)
{
        Onnx__AttributeProto *attr = add_attr(b, node, name);

        attr->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
        attr->has_i = 0;
        attr->strings = words_of(b, words, &attr->n_strings);
}

static void add_ints(struct builder *b, Onnx__NodeProto *node, const char *name, size_t n, const int64_t *ints)
{
        builder_attr_ints(b, node, name, n, ints);
}

static Onnx__NodeProto *ml_node(struct builder *b, const char *type, const char *inputs, const char *outputs)
{
        Onnx__NodeProto *node = builder_node(b, type, inputs, outputs);

        node->domain = (char *)(uintptr_t) "ai.onnx.ml";
        return node;
}

static void string_tensor(struct builder *b, const char *name, const char *words)
{
        size_t n;
        ProtobufCBinaryData *list = words_of(b, words, &n);
        Onnx__TensorProto *tensor = builder_raw(b, name, SL_DTYPE_I64, DIMS((int64_t)n), builder_alloc(b, n * sizeof(int64_t)));

        tensor->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
        tensor->has_raw_data = 0;
        tensor->raw_data = (ProtobufCBinaryData){0};
        tensor->n_string_data = n;
        tensor->string_data = list;
}

static void expect_labels(struct builder *b, const char *port, const char *wanted)
{
        struct sl_graph *graph = builder_import(b);

        cr_expect_str_eq(sl_graph_labels_of(graph, port), wanted, "%s has %s", port, sl_graph_labels_of(graph, port));
        for (uint32_t i = 0; i < graph->n_outputs; i++)
                if (!strcmp(graph->values[graph->outputs[i]].name, port) && *wanted)
                        cr_expect_eq(graph->values[graph->outputs[i]].tensor.dtype, (uint32_t)SL_DTYPE_I64);
        sl_graph_free(graph);
}

static void expect_refused(struct builder *b, int result, const char *text)
{
        builder_expect(b, result, text);
        builder_free(b);
}

static struct builder *rows(void)
{
        struct builder *b = builder_new(17);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 3));
        builder_output(b, "y");
        return b;
}

/* Says which column of x is the largest, by the words. */
static struct builder *classifier(const char *words, const char *output)
{
        struct builder *b = rows();

        builder_attr_int(b, builder_node(b, "ArgMax", "x", "place"), "axis", 1);
        string_tensor(b, "classes", words);
        ml_node(b, "ArrayFeatureExtractor", "classes,place", output);
        return b;
}

Test(labels, of_a_classifier_are_its_classes_in_their_order)
{
        struct builder *b = rows();
        Onnx__NodeProto *node = ml_node(b, "LinearClassifier", "x", "label,scores");
        Onnx__AttributeProto *attr;
        struct sl_graph *graph;

        add_words(b, node, "classlabels_strings", "setosa,a b,setosa");
        attr = add_attr(b, node, "coefficients");
        attr->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
        attr->floats = builder_alloc(b, 9 * sizeof(float));
        attr->n_floats = 9;
        builder_node(b, "Identity", "label", "y");
        expect_labels(b, "y", "setosa" END "a b" END);
        /* A label that is there twice is one. */
        graph = builder_import(b);
        for (uint32_t i = 0; i < graph->n_values; i++)
                if (graph->values[i].kind == SL_VALUE_CONSTANT && graph->values[i].tensor.dtype == SL_DTYPE_I64)
                        cr_expect_arr_eq(graph->values[i].data, ((int64_t[]){0, 1, 0}), 24);
        sl_graph_free(graph);
        builder_free(b);
}

Test(labels, go_with_what_is_moved)
{
        struct builder *b = classifier("b,a,c", "t");

        builder_ints(b, "one", 1, (int64_t[]){1}, (int64_t[]){1});
        builder_ints(b, "flat", 1, (int64_t[]){1}, (int64_t[]){-1});
        builder_node(b, "Reshape", "t,flat", "r");
        builder_node(b, "Unsqueeze", "r,one", "u");
        builder_node(b, "Squeeze", "u,one", "s");
        builder_attr_int(b, builder_node(b, "Cast", "s", "y"), "to", ONNX__TENSOR_PROTO__DATA_TYPE__STRING);
        expect_labels(b, "y", "b" END "a" END "c" END);
        builder_free(b);
}

Test(labels, of_an_encoder_end_with_what_an_unknown_key_is)
{
        struct builder *b = rows();
        Onnx__NodeProto *node;

        builder_attr_int(b, builder_node(b, "ArgMax", "x", "place"), "axis", 1);
        node = ml_node(b, "LabelEncoder", "place", "y");
        add_ints(b, node, "keys_int64s", 2, (int64_t[]){0, 2});
        add_words(b, node, "values_strings", "low,high");
        expect_labels(b, "y", "low" END "high" END "_Unused" END);
        builder_attr_string(b, node, "default_string", "low");
        expect_labels(b, "y", "low" END "high" END);
        builder_free(b);
}

Test(labels, of_a_zip_map_name_the_columns)
{
        struct builder *b = rows();
        struct sl_graph *graph;

        add_words(b, ml_node(b, "ZipMap", "x", "y"), "classlabels_strings", "r,g,b");
        graph = builder_import(b);
        cr_expect_str_eq(sl_graph_labels_of(graph, "y"), "r" END "g" END "b" END);
        cr_expect_eq(graph->values[graph->outputs[0]].tensor.dtype, (uint32_t)SL_DTYPE_F32);
        sl_graph_free(graph);
        builder_free(b);
}

static struct builder *encoders(const char *first, const char *second)
{
        struct builder *b = builder_new(17);

        builder_input(b, "sex", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, DIMS(-1, 1));
        builder_input(b, "port", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, DIMS(-1, 1));
        builder_output(b, "y");
        builder_output(b, "z");
        add_words(b, ml_node(b, "OneHotEncoder", first, "y"), "cats_strings", "male,female");
        add_words(b, ml_node(b, "OneHotEncoder", second, "z"), "cats_strings", "S,Q,male");
        return b;
}

Test(labels, of_an_input_are_the_words_that_encoders_look_for)
{
        struct builder *b = encoders("sex", "port");

        expect_labels(b, "sex", "male" END "female" END);
        expect_labels(b, "port", "S" END "Q" END "male" END);
        builder_free(b);
        b = encoders("sex", "sex");
        b->graph.n_input = 1;
        expect_labels(b, "sex", "male" END "female" END "S" END "Q" END);
        builder_free(b);
}

Test(labels, of_inputs_that_are_joined_are_the_same)
{
        struct builder *b = encoders("one", "other");

        builder_attr_int(b, builder_node(b, "Concat", "sex,port", "both"), "axis", 1);
        builder_ints(b, "zero", 0, NULL, (int64_t[]){0});
        builder_ints(b, "last", 0, NULL, (int64_t[]){1});
        ml_node(b, "ArrayFeatureExtractor", "both,zero", "one");
        ml_node(b, "ArrayFeatureExtractor", "both,last", "other");
        expect_labels(b, "sex", "male" END "female" END "S" END "Q" END);
        expect_labels(b, "port", "male" END "female" END "S" END "Q" END);
        builder_free(b);
}

Test(labels, that_nothing_reads_are_no_words)
{
        struct builder *b = builder_new(17);

        builder_input(b, "sex", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, DIMS(-1, 1));
        builder_output(b, "y");
        builder_node(b, "Identity", "sex", "y");
        expect_refused(b, -ENOTSUP, "input \"sex\" is of strings, and no encoder of the model says which there are");
}

Test(labels, strings_are_refused_where_they_are_computed_with)
{
        static const char *const binary[] = {"Less", "Add", "Concat"};
        struct builder *b, *yes, *no;
        Onnx__NodeProto *node;

        for (size_t i = 0; i < sizeof(binary) / sizeof(*binary); i++) {
                b = classifier("b,a,c", "t");
                node = builder_node(b, binary[i], i == 2 ? "t,place" : "t,t", "y");
                if (i == 2)
                        builder_attr_int(b, node, "axis", 0);
                expect_refused(b, -ENOTSUP, "it works on strings");
        }
        b = classifier("b,a,c", "t");
        builder_attr_int(b, builder_node(b, "SplitToSequence", "t", "s"), "axis", 1);
        builder_node(b, "SequenceLength", "s", "y");
        expect_refused(b, -ENOTSUP, "it works on strings");
        b = rows();
        builder_attr_int(b, builder_node(b, "Cast", "x", "y"), "to", ONNX__TENSOR_PROTO__DATA_TYPE__STRING);
        expect_refused(b, -ENOTSUP, "a cast to strings");
        b = rows();
        builder_node(b, "StringNormalizer", "x", "y");
        expect_refused(b, -ENOTSUP, "it works on the characters of strings");
        b = rows();
        builder_node(b, "BertTokenizer", "x", "y")->domain = (char *)(uintptr_t) "ai.onnx.contrib";
        expect_refused(b, -ENOTSUP, "it works on the characters of strings");
        b = classifier("b,a,c", "t");
        yes = builder_new(17);
        no = builder_new(17);
        builder_input(b, "c", SL_DTYPE_BOOL, 0, NULL);
        builder_node(yes, "Identity", "t", "r");
        builder_output(yes, "r");
        builder_node(no, "Identity", "place", "r");
        builder_output(no, "r");
        node = builder_node(b, "If", "c", "y");
        builder_attr_graph(b, node, "then_branch", yes);
        builder_attr_graph(b, node, "else_branch", no);
        builder_expect(b, -ENOTSUP, "is an output that Starling does not compute");
        builder_free(yes);
        builder_free(no);
        builder_free(b);
}

Test(labels, are_bounded_and_texts)
{
        static char many[2 * SL_LABELS_BYTES_MAX];
        size_t used = 0;

        expect_refused(classifier("a,\xff", "y"), -EBADMSG, "\"classes\": byte 0 of one of its strings, 0xff, is no UTF-8");
        expect_refused(classifier("a,b\x1f", "y"), -EBADMSG, "byte 1 of one of its strings, 0x1f");
        for (uint32_t i = 0; i <= SL_LABELS_MAX; i++)
                used += (size_t)sprintf(many + used, "%s%x", i ? "," : "", i);
        expect_refused(classifier(many, "y"), -E2BIG, "\"classes\": more than 65536 strings, or than 262144 bytes of them");
        memset(many, 'a', SL_LABELS_BYTES_MAX);
        many[SL_LABELS_BYTES_MAX] = 0;
        expect_refused(classifier(many, "y"), -E2BIG, "or than 262144 bytes of them");
}

Test(labels, a_tensor_of_strings_has_as_many_as_its_shape_says)
{
        struct builder *b = classifier("b,a,c", "y");

        b->graph.initializer[0]->n_string_data = 2;
        expect_refused(b, -EBADMSG, "tensor \"classes\": 2 strings, its shape wants another number");
}

Test(labels, of_keys_and_inputs_have_to_be_of_one_kind)
{
        struct builder *b = encoders("sex", "port");

        b->graph.node[0]->attribute[0]->name = (char *)(uintptr_t) "cats_int64s";
        b->graph.node[0]->attribute[0]->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        expect_refused(b, -EBADMSG, "its input has strings, and its categories are numbers");
        b = rows();
        add_words(b, ml_node(b, "OneHotEncoder", "x", "y"), "cats_strings", "male,female");
        expect_refused(b, -EBADMSG, "it encodes strings, and its input has none");
}

/* It would be written as numbers. */
Test(labels, a_graph_that_has_some_is_not_written)
{
        struct builder *b = classifier("b,a,c", "y");
        struct sl_graph *graph = builder_import(b);
        struct sl_error error = {0};
        uint8_t *file;
        size_t bytes;

        cr_expect_eq(sl_export_onnx(graph, NULL, 0, &file, &bytes, &error), -ENOTSUP);
        cr_expect_not_null(strstr(error.text, "\"y\" has strings"), "%s", error.text);
        sl_graph_free(graph);
        builder_free(b);
}

/* The class that x has, beside "c" and one that is no class. */
static struct builder *compared(const char *words)
{
        struct builder *b = classifier("b,a,c", "t");

        string_tensor(b, "other", words);
        builder_node(b, "Equal", "t,other", "same");
        return b;
}

/* Rows whose largest column is the third: the place of "c" is 2, whatever it is in a list of its own. */
Test(labels, of_two_lists_are_compared_by_their_words)
{
        struct builder *b = compared("z,c,b");
        const float x[3] = {1, 2, 3};
        float y[3];
        struct sl_graph *graph;

        builder_attr_int(b, builder_node(b, "Cast", "same", "y"), "to", SL_DTYPE_F32);
        graph = builder_import(b);
        evaluate_floats(graph, 1, x, y, 3);
        cr_expect_arr_eq(y, ((float[]){0, 1, 0}), sizeof(y));
        cr_expect_str_eq(sl_graph_labels_of(graph, "y"), "");
        sl_graph_free(graph);
        builder_free(b);
}

Test(labels, of_what_a_where_chooses_from_are_those_of_both)
{
        struct builder *b = compared("c");

        string_tensor(b, "rest", "none");
        builder_node(b, "Where", "same,t,rest", "y");
        expect_labels(b, "y", "b" END "a" END "c" END "none" END);
        builder_free(b);
        b = compared("c");
        string_tensor(b, "yes", "right,b");
        string_tensor(b, "no", "b,wrong");
        builder_node(b, "Where", "same,yes,no", "y");
        expect_labels(b, "y", "right" END "b" END "wrong" END);
        builder_free(b);
}

/* The class itself keeps its list. */
Test(labels, of_a_classifier_stay_what_they_are_where_words_are_chosen_beside_them)
{
        struct builder *b = compared("c");

        builder_output(b, "t");
        string_tensor(b, "rest", "none");
        builder_node(b, "Where", "same,t,rest", "y");
        expect_labels(b, "t", "b" END "a" END "c" END);
        builder_free(b);
}

static struct builder *two_inputs(void)
{
        struct builder *b = builder_new(17);

        builder_input(b, "s", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, DIMS(-1, 2));
        builder_input(b, "t", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, DIMS(-1, 2));
        builder_output(b, "y");
        return b;
}

Test(labels, an_input_has_the_words_that_it_is_compared_with)
{
        struct builder *b = two_inputs();

        string_tensor(b, "male", "male");
        string_tensor(b, "port", "S,C");
        builder_node(b, "Equal", "s,male", "a");
        builder_node(b, "Equal", "port,t", "b");
        builder_node(b, "And", "a,b", "y");
        expect_labels(b, "s", "male" END);
        expect_labels(b, "t", "S" END "C" END);
        builder_free(b);
}

Test(labels, strings_of_a_request_are_not_compared_with_each_other)
{
        struct builder *b = two_inputs();

        builder_node(b, "Equal", "s,t", "y");
        expect_refused(b, -ENOTSUP, "its strings come from two lists of words");
        b = two_inputs();
        builder_node(b, "Equal", "s,s", "y");
        expect_refused(b, -ENOTSUP, "it compares strings of a request with each other");
        b = two_inputs();
        builder_node(b, "Equal", "s,x", "y");
        builder_input(b, "x", SL_DTYPE_I64, DIMS(-1, 2));
        expect_refused(b, -ENOTSUP, "it works on strings");
}
