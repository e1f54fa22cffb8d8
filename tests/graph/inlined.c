/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that become nodes of the graph around them: of SequenceMap and of FlexAttention. */
#include "base/error.h"
#include "builder.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <string.h>

/* y = @op(a), or @op(a, x) where it reads the graph around it. */
static struct builder *body(const char *op, bool reads_x)
{
        struct builder *b = builder_new(17);

        builder_input(b, "a", SL_DTYPE_F32, DIMS(-2));
        builder_node(b, op, reads_x ? "a,x" : "a", "r");
        builder_output(b, "r");
        return b;
}

static void free_both(struct builder *b, struct builder *inner)
{
        builder_free(b);
        builder_free(inner);
}

static void expect_graph(struct builder *b, const char *wanted)
{
        struct sl_graph *graph = builder_import(b);

        expect_text(graph, wanted);
        sl_graph_free(graph);
}

/* The sequence x, n of which each element is mapped and the second one taken. */
static struct builder *mapped(struct builder *inner, const char *inputs)
{
        struct builder *b = builder_new_of_x(17, DIMS(2, 3));

        builder_output(b, "y");
        builder_ints(b, "last", 0, NULL, (int64_t[]){-1});
        builder_node(b, "Neg", "x", "n");
        builder_node(b, "SequenceConstruct", "x,n", "s");
        builder_node(b, "SequenceConstruct", "x", "short");
        builder_attr_graph(b, builder_node(b, "SequenceMap", inputs, "t"), "body", inner);
        builder_node(b, "SequenceAt", "t,last", "y");
        return b;
}

Test(inlined, the_body_of_a_sequence_map_is_there_for_each_element)
{
        struct builder *inner = body("Add", true), *b = mapped(inner, "s");

        expect_graph(b, "n = Neg(x [2,3]) -> n [2,3]\n"
                        "r = Add(n [2,3], x [2,3]) -> y [2,3]\n");
        free_both(b, inner);
}

Test(inlined, what_is_no_sequence_is_the_same_for_all_elements)
{
        struct builder *inner = body("Sub", true), *b = mapped(inner, "s,n");

        builder_input(inner, "x", SL_DTYPE_F32, DIMS(-2)); /* hides that of the graph around it */
        expect_graph(b, "n = Neg(x [2,3]) -> n [2,3]\n"
                        "r = Sub(n [2,3], n [2,3]) -> y [2,3]\n");
        free_both(b, inner);
}

Test(inlined, a_sequence_map_is_refused_where_its_body_does_not_fit)
{
        struct builder *inner = body("Abs", false), *b = mapped(inner, "s,short");

        builder_input(inner, "b", SL_DTYPE_F32, DIMS(-2));
        builder_expect(b, -EBADMSG, "its sequences have different lengths");
        b->graph.node[3]->n_input = 1;
        builder_expect(b, -EBADMSG, "a body has 2 inputs, its node gives it 1");
        inner->graph.n_input = 1;
        inner->graph.n_output = 0;
        builder_expect(b, -EBADMSG, "its body has another number of outputs than it wants");
        b->graph.node[3]->n_attribute = 0;
        builder_expect(b, -EBADMSG, "it lacks a body");
        free_both(b, inner);
}

Test(inlined, operators_of_bodies_are_looked_at)
{
        struct builder *inner = body("Unheard", false), *b = mapped(inner, "s");

        builder_expect(b, -ENOTSUP, "operator Unheard of domain ai.onnx, opset 17: the operator is not supported");
        free_both(b, inner);
}

static struct builder *flex(int64_t heads, int64_t key_heads)
{
        struct builder *b = builder_new(26);
        Onnx__NodeProto *node;

        builder_input(b, "q", SL_DTYPE_F32, DIMS(1, heads, 4, 16));
        builder_input(b, "k", SL_DTYPE_F32, DIMS(1, key_heads, 6, 16));
        builder_input(b, "v", SL_DTYPE_F32, DIMS(1, key_heads, 6, 8));
        node = builder_node(b, "FlexAttention", "q,k,v", "y");
        node->domain = (char *)"ai.onnx.preview";
        builder_output(b, "y");
        return b;
}

Test(inlined, flex_attention_has_its_bodies_between_the_products)
{
        struct builder *scores = body("Abs", false), *probabilities = body("Neg", false), *b = flex(2, 2);

        builder_attr_graph(b, b->graph.node[0], "score_mod", scores);
        builder_attr_graph(b, b->graph.node[0], "prob_mod", probabilities);
        builder_attr_float(b, b->graph.node[0], "scale", 0.5f);
        expect_graph(b, "y = Transpose(k [1,2,6,16]) {perm=[0,1,3,2]} -> y [1,2,16,6]\n"
                        "y = MatMul(q [1,2,4,16], y [1,2,16,6]) -> y [1,2,4,6]\n"
                        "y = Mul(y [1,2,4,6], y []) -> y [1,2,4,6]\n"
                        "r = Abs(y [1,2,4,6]) -> r [1,2,4,6]\n"
                        "y = Softmax(r [1,2,4,6]) {axis=-1} -> y [1,2,4,6]\n"
                        "r = Neg(y [1,2,4,6]) -> r [1,2,4,6]\n"
                        "y = MatMul(r [1,2,4,6], v [1,2,6,8]) -> y [1,2,4,8]\n");
        builder_free(probabilities);
        free_both(b, scores);
}

Test(inlined, heads_that_share_keys_lie_below_each_other)
{
        struct builder *b = flex(6, 2);

        expect_graph(b, "y = Transpose(k [1,2,6,16]) {perm=[0,1,3,2]} -> y [1,2,16,6]\n"
                        "y = Reshape(q [1,6,4,16]) {shape=[0,2,12,16]} -> y [1,2,12,16]\n"
                        "y = MatMul(y [1,2,12,16], y [1,2,16,6]) -> y [1,2,12,6]\n"
                        "y = Reshape(y [1,2,12,6]) {shape=[0,6,4,6]} -> y [1,6,4,6]\n"
                        "y = Mul(y [1,6,4,6], y []) -> y [1,6,4,6]\n"
                        "y = Softmax(y [1,6,4,6]) {axis=-1} -> y [1,6,4,6]\n"
                        "y = Reshape(y [1,6,4,6]) {shape=[0,2,12,6]} -> y [1,2,12,6]\n"
                        "y = MatMul(y [1,2,12,6], v [1,2,6,8]) -> y [1,2,12,8]\n"
                        "y = Reshape(y [1,2,12,8]) {shape=[0,6,4,8]} -> y [1,6,4,8]\n");
        builder_free(b);
}

Test(inlined, flex_attention_is_refused_where_heads_or_bodies_do_not_fit)
{
        struct builder *inner = body("Size", false), *b = flex(3, 2);

        builder_expect(b, -EBADMSG, "its heads of keys and values are not as many, or do not divide those of queries");
        builder_free(b);
        b = flex(2, 2);
        builder_attr_graph(b, b->graph.node[0], "score_mod", inner);
        builder_expect(b, -EBADMSG, "score_mod or prob_mod makes another rank or type than it gets");
        builder_attr_int(b, b->graph.node[0], "softmax_precision", SL_DTYPE_I32);
        builder_expect(b, -EBADMSG, "its softmax_precision is no type of floats");
        free_both(b, inner);
}
