/* SPDX-License-Identifier: Apache-2.0 */
/* Trees, labels and maps of ai.onnx.ml as nobody in good faith writes them: one clear error each, in time that the file accounts
 * for. */
#include "builder.h"
#include "import.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAVES_DEEP 1000000

/* One node of a tree: its tree and number, what it asks, its children. */
struct node {
        int64_t tree, number, feature, yes, no;
        const char *mode;
        float value;
};

static Onnx__AttributeProto *add_attr(struct builder *b, Onnx__NodeProto *node, const char *name, int type)
{
        Onnx__AttributeProto *attr = builder_alloc(b, sizeof(*attr));
        Onnx__AttributeProto **all = builder_alloc(b, (node->n_attribute + 1) * sizeof(*all));

        onnx__attribute_proto__init(attr);
        attr->name = (char *)name;
        attr->has_type = 1;
        attr->type = (Onnx__AttributeProto__AttributeType)type;
        if (node->n_attribute)
                memcpy(all, node->attribute, node->n_attribute * sizeof(*all));
        all[node->n_attribute++] = attr;
        node->attribute = all;
        return attr;
}

static float *add_floats(struct builder *b, Onnx__NodeProto *node, const char *name, size_t n)
{
        Onnx__AttributeProto *attr = add_attr(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);

        attr->floats = builder_alloc(b, (n + 1) * sizeof(*attr->floats));
        attr->n_floats = n;
        return attr->floats;
}

static int64_t *add_ints(struct builder *b, Onnx__NodeProto *node, const char *name, size_t n)
{
        Onnx__AttributeProto *attr = add_attr(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);

        attr->ints = builder_alloc(b, (n + 1) * sizeof(*attr->ints));
        attr->n_ints = n;
        return attr->ints;
}

static ProtobufCBinaryData *add_strings(struct builder *b, Onnx__NodeProto *node, const char *name, size_t n)
{
        Onnx__AttributeProto *attr = add_attr(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);

        attr->strings = builder_alloc(b, (n + 1) * sizeof(*attr->strings));
        attr->n_strings = n;
        return attr->strings;
}

static void set_string(ProtobufCBinaryData *string, const char *text)
{
        *string = (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static struct builder *rows(void)
{
        struct builder *b = builder_new(17);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 2));
        return b;
}

static Onnx__NodeProto *ml_node(struct builder *b, const char *type, const char *inputs, const char *outputs)
{
        Onnx__NodeProto *node = builder_node(b, type, inputs, outputs);

        node->domain = (char *)(uintptr_t) "ai.onnx.ml";
        return node;
}

/* Each leaf weighs its number. */
static Onnx__NodeProto *add_trees(struct builder *b, const struct node *nodes, size_t n)
{
        Onnx__NodeProto *node = ml_node(b, "TreeEnsembleRegressor", "x", "y");
        int64_t *trees = add_ints(b, node, "nodes_treeids", n), *numbers = add_ints(b, node, "nodes_nodeids", n);
        int64_t *features = add_ints(b, node, "nodes_featureids", n), *yes = add_ints(b, node, "nodes_truenodeids", n);
        int64_t *no = add_ints(b, node, "nodes_falsenodeids", n);
        float *values = add_floats(b, node, "nodes_values", n), *weights;
        ProtobufCBinaryData *modes = add_strings(b, node, "nodes_modes", n);
        size_t n_leaves = 0;

        for (size_t i = 0; i < n; i++) {
                trees[i] = nodes[i].tree;
                numbers[i] = nodes[i].number;
                features[i] = nodes[i].feature;
                yes[i] = nodes[i].yes;
                no[i] = nodes[i].no;
                values[i] = nodes[i].value;
                set_string(&modes[i], nodes[i].mode);
                n_leaves += !strcmp(nodes[i].mode, "LEAF");
        }
        trees = add_ints(b, node, "target_treeids", n_leaves);
        numbers = add_ints(b, node, "target_nodeids", n_leaves);
        add_ints(b, node, "target_ids", n_leaves);
        weights = add_floats(b, node, "target_weights", n_leaves);
        for (size_t i = 0, leaf = 0; i < n; i++)
                if (!strcmp(nodes[i].mode, "LEAF")) {
                        trees[leaf] = nodes[i].tree;
                        numbers[leaf] = nodes[i].number;
                        weights[leaf++] = (float)nodes[i].number;
                }
        builder_attr_int(b, node, "n_targets", 1);
        builder_output(b, "y");
        return node;
}

static void expect_refused(const struct node *nodes, size_t n, const char *text)
{
        struct builder *b = rows();

        add_trees(b, nodes, n);
        builder_expect(b, -EBADMSG, text);
        builder_free(b);
}

#define EXPECT_REFUSED(text, ...)                                                                                                  \
        expect_refused((const struct node[]){__VA_ARGS__}, sizeof((const struct node[]){__VA_ARGS__}) / sizeof(struct node), text)

Test(trees, that_contradict_themselves_are_refused)
{
        EXPECT_REFUSED(
                "has no root", {0, 0, 0, 1, 1, "BRANCH_LEQ", 0}, {0, 1, 0, 0, 0, "BRANCH_LEQ", 0}, {1, 0, 0, 0, 0, "LEAF", 0});
        EXPECT_REFUSED(
                "is led to twice", {0, 0, 0, 1, 2, "BRANCH_LEQ", 0}, {0, 1, 0, 2, 1, "BRANCH_LEQ", 0}, {0, 2, 0, 0, 0, "LEAF", 0});
        EXPECT_REFUSED("is led to twice", {0, 0, 0, 1, 1, "BRANCH_LEQ", 0}, {0, 1, 0, 2, 3, "BRANCH_LEQ", 0},
                {0, 2, 0, 0, 0, "LEAF", 0}, {0, 3, 0, 0, 0, "LEAF", 0});
        EXPECT_REFUSED("child that is not there", {0, 0, 0, 1, 9, "BRANCH_LEQ", 0}, {0, 1, 0, 0, 0, "LEAF", 0});
        EXPECT_REFUSED("child that is not there", {0, 0, 0, 1, 2, "BRANCH_LEQ", 0}, {0, 1, 0, 0, 0, "LEAF", 0},
                {1, 2, 0, 0, 0, "LEAF", 0});
        EXPECT_REFUSED("is there twice", {0, 0, 0, 1, 1, "BRANCH_LEQ", 0}, {0, 1, 0, 0, 0, "LEAF", 0}, {0, 1, 0, 0, 0, "LEAF", 0});
        EXPECT_REFUSED("mode that is unknown", {0, 0, 0, 1, 1, "BRANCH_MAYBE", 0}, {0, 1, 0, 0, 0, "LEAF", 0});
        EXPECT_REFUSED("feature 2 of 2", {0, 0, 2, 1, 2, "BRANCH_LEQ", 0}, {0, 1, 0, 0, 0, "LEAF", 0}, {0, 2, 0, 0, 0, "LEAF", 0});
        EXPECT_REFUSED(
                "feature out of range", {0, 0, -1, 1, 2, "BRANCH_LEQ", 0}, {0, 1, 0, 0, 0, "LEAF", 0}, {0, 2, 0, 0, 0, "LEAF", 0});
}

/* A chain of EQ: equality needs two cuts, and what they share must not grow with each. */
static float evaluate_chain(size_t depth, const char *mode, float x)
{
        struct node *nodes = calloc(2 * depth + 1, sizeof(*nodes));
        struct builder *b = rows();
        float input[2] = {x, 0}, output = NAN;
        struct sl_graph *graph;

        for (size_t i = 0; i < depth; i++) {
                nodes[2 * i] = (struct node){0, (int64_t)(2 * i), 0, (int64_t)(2 * i + 1), (int64_t)(2 * i + 2), mode, (float)i};
                nodes[2 * i + 1] = (struct node){0, (int64_t)(2 * i + 1), 0, 0, 0, "LEAF", 0};
        }
        nodes[2 * depth] = (struct node){0, (int64_t)(2 * depth), 0, 0, 0, "LEAF", 0};
        add_trees(b, nodes, 2 * depth + 1);
        graph = builder_import(b);
        evaluate_floats(graph, 1, input, &output, 1);
        sl_graph_free(graph);
        builder_free(b);
        free(nodes);
        return output;
}

Test(trees, deep_chains_are_walked)
{
        cr_assert_float_eq((double)evaluate_chain(LEAVES_DEEP / 2, "BRANCH_LEQ", 7), 15, 0);
        cr_assert_float_eq((double)evaluate_chain(1000, "BRANCH_LEQ", 1e9f), 2000, 0);
        cr_assert_float_eq((double)evaluate_chain(1000, "BRANCH_EQ", 7), 15, 0);
        cr_assert_float_eq((double)evaluate_chain(1000, "BRANCH_EQ", 7.5f), 2000, 0);
}

Test(trees, a_zip_map_is_the_tensor_that_it_reads)
{
        struct builder *b = rows();
        struct sl_graph *graph;
        float input[2] = {3, 4}, output[2];

        builder_node(b, "Relu", "x", "p");
        add_ints(b, ml_node(b, "ZipMap", "p", "maps"), "classlabels_int64s", 2)[1] = 1;
        builder_output(b, "maps");
        graph = builder_import(b);
        cr_assert_eq(graph->values[graph->outputs[0]].tensor.shape.rank, 2u);
        cr_assert_str_eq(graph->values[graph->outputs[0]].name, "maps");
        evaluate_floats(graph, 1, input, output, 2);
        cr_assert_float_eq((double)output[1], 4, 0);
        sl_graph_free(graph);
        builder_free(b);
}
