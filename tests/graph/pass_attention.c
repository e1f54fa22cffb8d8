/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention as exporters take it apart, with one projection or three, scaled in any place, masked or not.
 */
#include "pass_attention.h"
#include "base/error.h"
#include "pass.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum form {
        SCALE_SCORES = 1, /* divided; else both operands are multiplied by the root */
        MASKED = 2,
        SWAPPED = 4, /* mask + scores, root * operand */

        /* What is not attention, or none that the kernel knows. */
        VALUES_SCALED = 8,
        DIVISOR_OF_SCORES = 16, /* two / scores */
        MASK_SUBTRACTED = 32,
        OVER_ROWS = 64,    /* the weights of a column add up to one */
        ONE_QUERY = 128,   /* one row, which the mask makes as many as there are tokens */
        HEADS_FIRST = 256, /* the rows of a head stay together */

        ONE_LIST = 512 /* the rows of all samples are one list in the end */
};

static void project_from(struct builder *b, const char *input, const char *name, int64_t columns)
{
        char weights[16], bias[16], product[16], inputs[64];

        snprintf(weights, sizeof(weights), "w%s", name);
        snprintf(bias, sizeof(bias), "b%s", name);
        snprintf(product, sizeof(product), "p%s", name);
        builder_random(b, weights, DIMS(WIDTH, columns));
        builder_random(b, bias, DIMS(columns));
        snprintf(inputs, sizeof(inputs), "%s,%s", input, weights);
        builder_node(b, "MatMul", inputs, product);
        snprintf(inputs, sizeof(inputs), "%s,%s", bias, product);
        builder_node(b, "Add", inputs, name);
}

static void project(struct builder *b, const char *name, int64_t columns)
{
        project_from(b, "x", name, columns);
}

/* From q [N,H,S,D], k [N,H,D,S] and v [N,H,S,D] on. */
static void attend(struct builder *b, int form)
{
        builder_floats(b, "root", 0, NULL, (const float[]){0.70710677f});
        builder_floats(b, "two", 0, NULL, (const float[]){2.0f});
        builder_random(b, "mask", DIMS(1, 1, form & ONE_QUERY ? TOKENS : 1, TOKENS));
        if (form & SCALE_SCORES) {
                builder_node(b, "MatMul", "q,k", "product");
                builder_node(b, "Div", form & DIVISOR_OF_SCORES ? "two,product" : "product,two", "scaled");
        } else {
                builder_node(b, "Mul", form & SWAPPED ? "root,q" : "q,root", "qr");
                builder_node(b, "Mul", form & SWAPPED ? "root,k" : "k,root", "kr");
                builder_node(b, "MatMul", "qr,kr", "scaled");
        }
        if (form & MASKED)
                builder_node(b, form & MASK_SUBTRACTED ? "Sub" : "Add", form & SWAPPED ? "mask,scaled" : "scaled,mask", "scores");
        builder_attr_int(
                b, builder_node(b, "Softmax", form & MASKED ? "scores" : "scaled", "weights"), "axis", form & OVER_ROWS ? 2 : -1);
        if (form & VALUES_SCALED)
                builder_node(b, "Mul", "v,root", "vr");
        builder_node(b, "MatMul", form & VALUES_SCALED ? "weights,vr" : "weights,v", "mixed");
        if (form & HEADS_FIRST)
                builder_transpose(b, "mixed", "turned", DIMS(0, 2, 3, 1));
        else
                builder_transpose(b, "mixed", "turned", DIMS(0, 2, 1, 3));
        if (form & ONE_LIST)
                builder_ints(b, "rows", DIMS(2), (const int64_t[]){-1, WIDTH});
        else
                builder_ints(b, "rows", DIMS(3), (const int64_t[]){0, 0, WIDTH});
        builder_node(b, "Reshape", "turned,rows", "y");
        builder_output(b, "y");
}

static struct builder *three_projections(int form)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, TOKENS, WIDTH));

        builder_ints(b, "heads", DIMS(4), (const int64_t[]){0, 0, HEADS, HEAD});
        if (form & ONE_QUERY)
                builder_attr_ints(b, builder_node(b, "ReduceMean", "x", "mean"), "axes", DIMS(1));
        project_from(b, form & ONE_QUERY ? "mean" : "x", "a", WIDTH);
        project(b, "b", WIDTH);
        project(b, "c", WIDTH);
        builder_node(b, "Reshape", "a,heads", "ah");
        builder_node(b, "Reshape", "b,heads", "bh");
        builder_node(b, "Reshape", "c,heads", "ch");
        builder_transpose(b, "ah", "q", DIMS(0, 2, 1, 3));
        builder_transpose(b, "bh", "k", DIMS(0, 2, 3, 1));
        builder_transpose(b, "ch", "v", DIMS(0, 2, 1, 3));
        attend(b, form);
        return b;
}

static struct builder *one_projection(int form)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, TOKENS, WIDTH));

        builder_ints(b, "parts", DIMS(5), (const int64_t[]){0, 0, 3, HEADS, HEAD});
        builder_ints(b, "first", DIMS(1), (const int64_t[]){0});
        builder_ints(b, "ones", DIMS(3), (const int64_t[]){1, 1, 1});
        project(b, "a", 3 * WIDTH);
        builder_node(b, "Reshape", "a,parts", "ah");
        builder_transpose(b, "ah", "at", DIMS(2, 0, 3, 1, 4));
        builder_attr_int(b, builder_node(b, "Split", "at,ones", "sq,sk,sv"), "axis", 0);
        builder_node(b, "Squeeze", "sq,first", "q");
        builder_node(b, "Squeeze", "sk,first", "key");
        builder_node(b, "Squeeze", "sv,first", "v");
        builder_transpose(b, "key", "k", DIMS(0, 1, 3, 2));
        attend(b, form);
        return b;
}

/* Three blocks of columns, split while they are rows. */
static struct builder *split_rows(int form)
{
        struct builder *b = builder_new_of_x(13, DIMS(-1, TOKENS, WIDTH));

        builder_ints(b, "heads", DIMS(4), (const int64_t[]){0, 0, HEADS, HEAD});
        builder_ints(b, "widths", DIMS(3), (const int64_t[]){WIDTH, WIDTH, WIDTH});
        project(b, "a", 3 * WIDTH);
        builder_attr_int(b, builder_node(b, "Split", "a,widths", "sq,sk,sv"), "axis", 2);
        builder_node(b, "Reshape", "sq,heads", "ah");
        builder_node(b, "Reshape", "sk,heads", "bh");
        builder_node(b, "Reshape", "sv,heads", "ch");
        builder_transpose(b, "ah", "q", DIMS(0, 2, 1, 3));
        builder_transpose(b, "bh", "k", DIMS(0, 2, 3, 1));
        builder_transpose(b, "ch", "v", DIMS(0, 2, 1, 3));
        attend(b, form);
        return b;
}

static int to_attention_alone(struct sl_graph *graph, struct sl_error *error)
{
        int result = sl_pass_fold_constants(graph, error);

        return result ? result : sl_pass_fuse_attention(graph, error);
}

static int to_attention(struct sl_graph *graph, struct sl_error *error)
{
        int result = to_attention_alone(graph, error);

        return result ? result : sl_pass_fuse_bias(graph, error);
}

static int to_one_projection(struct sl_graph *graph, struct sl_error *error)
{
        int result = to_attention(graph, error);

        return result ? result : sl_pass_merge_projections(graph, error);
}

Test(passes, attention_over_three_projections_is_one_node_in_every_form)
{
        for (int form = 0; form < 8; form++) {
                struct builder *b = three_projections(form);
                char want[1024];

                snprintf(want, sizeof(want),
                        "pa = MatMul(x [N,5,8], wa [8,8], pa [8]) -> a [N,5,8]\n"
                        "pb = MatMul(x [N,5,8], wb [8,8], pb [8]) -> b [N,5,8]\n"
                        "pc = MatMul(x [N,5,8], wc [8,8], pc [8]) -> c [N,5,8]\n"
                        "y = starling.RowAttention(a [N,5,8], b [N,5,8], c [N,5,8]%s) "
                        "{group=2, shape=[4,4], starts=[0,0,0], alpha=0.5} -> y [N,5,8]\n",
                        form & MASKED ? ", mask [1,1,1,5]" : "");
                expect_after(b, to_attention, want);
        }
}

Test(passes, attention_reads_its_parts_out_of_one_projection)
{
        expect_after(one_projection(SCALE_SCORES), to_attention,
                "pa = MatMul(x [N,5,8], wa [8,24], pa [24]) -> a [N,5,24]\n"
                "y = starling.RowAttention(a [N,5,24], a [N,5,24], a [N,5,24]) "
                "{group=2, shape=[4,4], starts=[0,8,16], alpha=0.5} -> y [N,5,8]\n");
}

Test(passes, attention_reads_past_a_split_of_rows_and_leaves_one_list_of_rows_to_the_reshape)
{
        expect_after(split_rows(SCALE_SCORES | ONE_LIST), to_attention,
                "pa = MatMul(x [N,5,8], wa [8,24], pa [24]) -> a [N,5,24]\n"
                "turned = starling.RowAttention(a [N,5,24], a [N,5,24], a [N,5,24]) "
                "{group=2, shape=[4,4], starts=[0,8,16], alpha=0.5} -> turned [N,5,8]\n"
                "y = Reshape(turned [N,5,8]) {shape=[-1,8]} -> y [?,8]\n");
}

Test(passes, projections_of_one_attention_stand_side_by_side)
{
        expect_after(three_projections(MASKED), to_one_projection,
                "pa = MatMul(x [N,5,8], pa [8,24], pa [24]) -> pa [N,5,24]\n"
                "y = starling.RowAttention(pa [N,5,24], pa [N,5,24], pa [N,5,24], mask [1,1,1,5]) "
                "{group=2, shape=[4,4], starts=[0,8,16], alpha=0.5} -> y [N,5,8]\n");
}

/* The weights of the attention are an answer of the model themselves. */
Test(passes, attention_whose_weights_somebody_wants_stays)
{
        struct builder *b = three_projections(0);
        struct sl_error error = {0};
        struct sl_graph *graph;

        builder_output(b, "weights");
        graph = builder_import(b);
        cr_assert_eq(to_attention(graph, &error), 0, "%s", error.text);
        cr_assert_eq(count_ops(graph, SL_OP_ROW_ATTENTION), 0);
        sl_graph_free(graph);
        builder_free(b);
}

Test(passes, what_is_not_attention_stays_what_it_is)
{
        static const int forms[] = {SCALE_SCORES | VALUES_SCALED, SCALE_SCORES | DIVISOR_OF_SCORES,
                SCALE_SCORES | MASKED | MASK_SUBTRACTED, SCALE_SCORES | OVER_ROWS, SCALE_SCORES | MASKED | ONE_QUERY,
                SCALE_SCORES | MASKED | ONE_QUERY | ONE_LIST, SCALE_SCORES | HEADS_FIRST};

        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
                struct builder *b = three_projections(forms[i]);
                struct sl_graph *graph = run_pass(b, to_attention_alone);

                cr_expect_eq(count_ops(graph, SL_OP_ROW_ATTENTION), 0, "form %d", forms[i]);
                cr_expect_eq(count_ops(graph, SL_OP_SOFTMAX), 1, "form %d", forms[i]);
                sl_graph_free(graph);
                builder_free(b);
        }
}
