/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bad model is refused with: the node, its operator, what is wrong, and what the node was given, so that it can be found in
 * the file.
 */
#include "base/error.h"
#include "builder.h"
#include "import.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define FLOATS(...) SL_DTYPE_F32, DIMS(__VA_ARGS__)
#define PARTS       8

/* A node "y" of x [2,6,8], of w where there is one, and of attributes; each of @parts has to be in the refusal. */
struct row {
        const char *op, *domain;
        int64_t opset;
        const char *inputs, *outputs;
        struct {
                const char *name;
                int64_t value;
        } attribute;
        const char *text_name, *text; /* an attribute that is a string */
        int64_t w[4];                 /* an initializer "w" of int64; ends with 0 */
        const char *parts[PARTS];
};

static const struct row rows[] = {
        {.op = "Softmax",
                .opset = 13,
                .inputs = "x",
                .attribute = {"axis", 7},
                .parts = {"operator Softmax", "axis = 7", "[2,6,8]"}},
        {.op = "Hardmax",
                .opset = 11,
                .inputs = "x",
                .attribute = {"axis", -4},
                .parts = {"operator Hardmax", "axis = -4", "[2,6,8]"}},
        {.op = "Split",
                .opset = 13,
                .inputs = "x",
                .outputs = "y,z,v,u",
                .attribute = {"axis", 1},
                .parts = {"operator Split of domain ai.onnx, opset 13", "a dimension of 6 does not make 4 equal parts",
                        "float32 [2,6,8]", "axis = 1"}},
        {.op = "Split", .opset = 13, .inputs = "x", .attribute = {"axis", 3}, .parts = {"operator Split", "axis = 3", "[2,6,8]"}},
        {.op = "SplitToSequence",
                .opset = 13,
                .inputs = "x,w",
                .w = {4, 9},
                .attribute = {"axis", 1},
                .parts = {"operator SplitToSequence", "lengths exceed", "int64 [2] of [4,9]"}},
        {.op = "Cast", .opset = 13, .inputs = "x", .attribute = {"to", 99}, .parts = {"operator Cast", "to = 99"}},
        {.op = "MaxPool",
                .opset = 13,
                .inputs = "x",
                .text_name = "auto_pad",
                .text = "SAME_SIDEWAYS",
                .parts = {"operator MaxPool", "auto_pad", "NOTSET, VALID, SAME_UPPER, SAME_LOWER", "\"SAME_SIDEWAYS\""}},
        {.op = "MultiHeadAttention",
                .domain = "com.microsoft",
                .opset = 17,
                .inputs = "x,x,x",
                .attribute = {"num_heads", 0},
                .parts = {"operator MultiHeadAttention of domain com.microsoft", "num_heads is missing, or outside [1,2^31)",
                        "num_heads = 0"}},
        {.op = "Binarizer",
                .domain = "ai.onnx.ml",
                .opset = 17,
                .inputs = "",
                .parts = {"operator Binarizer of domain ai.onnx.ml", "an input is missing (0 inputs)"}},
        {.op = "LinearRegressor",
                .domain = "ai.onnx.ml",
                .opset = 17,
                .inputs = "x",
                .attribute = {"targets", -3},
                .parts = {"operator LinearRegressor", "targets is -3, wants 1 or more", "[2,6,8]"}},
        {.op = "Gelu",
                .opset = 20,
                .inputs = "x",
                .text_name = "approximate",
                .text = "perhaps",
                .parts = {"operator Gelu", "attribute approximate is \"perhaps\"", "none of none tanh"}},
        {.op = "Relu", .opset = 13, .inputs = "x", .attribute = {"slope", 5}, .parts = {"operator Relu", "attribute slope"}},
};

static struct builder *model_of(const struct row *row)
{
        struct builder *b = builder_new(row->opset);
        Onnx__NodeProto *node;
        uint32_t n = 0;

        builder_input(b, "x", FLOATS(2, 6, 8));
        while (n < 4 && row->w[n])
                n++;
        if (n)
                builder_ints(b, "w", 1, &(int64_t){n}, row->w);
        node = builder_node(b, row->op, row->inputs, row->outputs ? row->outputs : "y");
        node->name = (char *)"culprit";
        if (row->domain)
                node->domain = (char *)row->domain;
        if (row->attribute.name)
                builder_attr_int(b, node, row->attribute.name, row->attribute.value);
        if (row->text)
                builder_attr_string(b, node, row->text_name, row->text);
        builder_output(b, "y");
        return b;
}

Test(refusals, name_the_node_its_operator_and_what_it_was_given)
{
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct builder *b = model_of(&rows[i]);
                struct sl_graph *graph = NULL;
                struct sl_error error = {""};
                size_t n_bytes;
                const uint8_t *bytes = builder_pack(b, &n_bytes);

                cr_expect_lt(sl_import_onnx_bytes(bytes, n_bytes, NULL, &graph, &error), 0, "%s is taken", rows[i].op);
                cr_expect(strstr(error.text, "node \"culprit\""), "%s: %s", rows[i].op, error.text);
                for (size_t k = 0; k < PARTS && rows[i].parts[k]; k++)
                        cr_expect(strstr(error.text, rows[i].parts[k]), "\"%s\" is not in: %s", rows[i].parts[k], error.text);
                sl_graph_free(graph);
                builder_free(b);
        }
}

/* However long its names and lists are, what is wrong is there. */
Test(refusals, of_a_node_with_long_lists_say_what_is_wrong_first)
{
        struct builder *b = builder_new(13);
        char name[1500], value[1500];
        struct sl_graph *graph = NULL;
        struct sl_error error = {""};
        Onnx__NodeProto *node;
        size_t n_bytes;
        const uint8_t *bytes;

        memset(name, 'n', sizeof(name));
        memset(value, 'v', sizeof(value));
        name[sizeof(name) - 1] = value[sizeof(value) - 1] = 0;
        builder_input(b, "x", FLOATS(2, 6, 8));
        node = builder_node(b, "MaxPool", "x,x,x,x,x,x,x,x,x,x,x,x", "y");
        node->name = name;
        builder_attr_string(b, node, "auto_pad", value);
        builder_output(b, "y");
        bytes = builder_pack(b, &n_bytes);
        cr_expect_lt(sl_import_onnx_bytes(bytes, n_bytes, NULL, &graph, &error), 0);
        cr_expect(strstr(error.text, "operator MaxPool"), "%s", error.text);
        cr_expect(strstr(error.text, "auto_pad is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER"), "%s", error.text);
        cr_expect(strstr(error.text, "12 inputs: float32 [2,6,8]"), "%s", error.text);
        cr_expect(strstr(error.text, "auto_pad = \"vvv"), "%s", error.text);
        builder_free(b);
}
