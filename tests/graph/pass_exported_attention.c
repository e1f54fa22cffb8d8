/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaled dot product attention as torch.export writes it: parts cut out of one projection, keys turned while batch and heads are
 * one dimension, masks repeated for as many samples as Shape counts, weights that are not numbers replaced by 0.
 */
#include "base/error.h"
#include "pass.h"
#include "pass_attention.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <math.h>

/* A computed one is infinite where x is small; an empty one everywhere. */
enum mask { NO_MASK, FINITE_MASK, INFINITE_MASK, COMPUTED_MASK, EMPTY_MASK };

static void cut_parts(struct builder *b)
{
        static const char *const cuts[] = {"at,i0,i1,i0", "at,i1,i2,i0", "at,i2,i3,i0"}, *const parts[] = {"cq", "ck", "cv"};
        static const char *const squeezes[] = {"cq,i0", "ck,i0", "cv,i0"}, *const made[] = {"q", "key", "v"};

        builder_ints(b, "parts", DIMS(5), (const int64_t[]){-1, TOKENS, 3, HEADS, HEAD});
        for (int64_t i = 0; i < 4; i++)
                builder_ints(b, (const char *const[]){"i0", "i1", "i2", "i3"}[i], DIMS(1), &i);
        builder_random(b, "w", DIMS(WIDTH, 3 * WIDTH));
        builder_node(b, "MatMul", "x,w", "a");
        builder_node(b, "Reshape", "a,parts", "ah");
        builder_transpose(b, "ah", "at", DIMS(2, 0, 3, 1, 4));
        for (size_t i = 0; i < 3; i++) {
                builder_node(b, "Slice", cuts[i], parts[i]);
                builder_node(b, "Squeeze", squeezes[i], made[i]);
        }
}

/* @heads and @columns: the shape into which the turned keys are split again; columns first but for the counterexample. */
static void turn_keys(struct builder *b, int64_t heads, int64_t columns)
{
        builder_ints(b, "merged", DIMS(3), (const int64_t[]){-1, TOKENS, HEAD});
        builder_ints(b, "split", DIMS(4), (const int64_t[]){-1, heads, columns, HEAD * TOKENS * HEADS / heads / columns});
        builder_node(b, "Reshape", "key,merged", "km");
        builder_transpose(b, "km", "kt", DIMS(0, 2, 1));
        builder_node(b, "Reshape", "kt,split", "k");
}

/* seen [N,1,TOKENS,TOKENS] from the first column of x [N,TOKENS,WIDTH], whose samples are told by numbers from 0 to N - 1. */
static void see_what_is_large(struct builder *b, float bound)
{
        builder_floats(b, "bound", 0, NULL, &bound);
        builder_ints(b, "scalar0", 0, NULL, (const int64_t[]){0});
        builder_ints(b, "scalar1", 0, NULL, (const int64_t[]){1});
        builder_ints(b, "sizes", DIMS(3), (const int64_t[]){1, TOKENS, TOKENS});
        builder_ints(b, "ones", DIMS(2), (const int64_t[]){1, 2});
        builder_node(b, "Shape", "x", "shape");
        builder_node(b, "Gather", "shape,scalar0", "count");
        builder_node(b, "Range", "scalar0,count,scalar1", "numbers");
        builder_attr_int(b, builder_node(b, "Gather", "x,scalar0", "firsts"), "axis", 2);
        builder_node(b, "Greater", "firsts,bound", "large");
        builder_node(b, "Gather", "large,numbers", "gathered");
        builder_node(b, "Unsqueeze", "gathered,ones", "seen4");
        builder_node(b, "Unsqueeze", "count,i0", "counts");
        builder_attr_int(b, builder_node(b, "Concat", "counts,sizes", "wide"), "axis", 0);
        builder_node(b, "Expand", "seen4,wide", "seen");
}

static const char *mask_scores(struct builder *b, enum mask mask)
{
        static const float least[] = {0, -3e38f, -INFINITY, -INFINITY, -INFINITY};

        if (mask == NO_MASK)
                return "scores";
        if (mask < COMPUTED_MASK)
                builder_raw(b, "seen", SL_DTYPE_BOOL, DIMS(1, 1, 1, TOKENS), (const uint8_t[]){1, 1, 1, 0, 1});
        else
                see_what_is_large(b, mask == EMPTY_MASK ? 2 : 0);
        builder_floats(b, "least", 0, NULL, &least[mask]);
        builder_node(b, "Where", "seen,zero,least", "mask");
        builder_node(b, "Add", "scores,mask", "masked");
        return "masked";
}

static struct builder *exported(enum mask mask)
{
        struct builder *b = builder_new_of_x(18, DIMS(-1, TOKENS, WIDTH));

        builder_floats(b, "root", DIMS(1), (const float[]){0.70710677f});
        builder_floats(b, "zero", 0, NULL, (const float[]){0});
        cut_parts(b);
        turn_keys(b, HEADS, HEAD);
        builder_node(b, "Mul", "q,root", "qr");
        builder_node(b, "Mul", "k,root", "kr");
        builder_node(b, "MatMul", "qr,kr", "scores");
        builder_attr_int(b, builder_node(b, "Softmax", mask_scores(b, mask), "weights"), "axis", -1);
        builder_node(b, "IsNaN", "weights", "strange");
        builder_node(b, "Where", "strange,zero,weights", "guarded");
        builder_node(b, "MatMul", "guarded,v", "mixed");
        builder_ints(b, "same", DIMS(4), (const int64_t[]){-1, HEADS, TOKENS, HEAD});
        builder_node(b, "Reshape", "mixed,same", "again");
        builder_transpose(b, "again", "turned", DIMS(0, 2, 1, 3));
        builder_ints(b, "rows", DIMS(3), (const int64_t[]){-1, TOKENS, WIDTH});
        builder_node(b, "Reshape", "turned,rows", "y");
        builder_output(b, "y");
        return b;
}

/* Everything but the folding of constants, so that a mask is still a Where. */
static int to_attention(struct sl_graph *graph, struct sl_error *error)
{
        int result = sl_pass_join_transpose(graph, error);

        if (result == 0)
                result = sl_pass_remove_identity(graph, error);
        return result ? result : sl_pass_fuse_attention(graph, error);
}

Test(passes, exported_attention_is_one_node)
{
        expect_after(exported(NO_MASK), to_attention,
                "a = MatMul(x [N,5,8], w [8,24]) -> a [N,5,24]\n"
                "y = starling.RowAttention(a [N,5,24], a [N,5,24], a [N,5,24]) "
                "{group=2, shape=[4,4], starts=[0,8,16], alpha=0.5} -> y [N,5,8]\n");
}

static bool guards(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && graph->nodes[i].op == SL_OP_ROW_ATTENTION)
                        return sl_attrs_int(&graph->nodes[i].attrs, SL_ATTR_GUARD, 0) != 0;
        return false;
}

Test(passes, attention_guards_rows_without_weights_where_masks_may_be_infinite)
{
        for (enum mask mask = NO_MASK; mask <= EMPTY_MASK; mask++) {
                struct builder *b = exported(mask);
                struct sl_graph *graph = run_pass(b, to_attention);

                cr_expect_eq(count_ops(graph, SL_OP_ROW_ATTENTION), 1, "mask %d", mask);
                cr_expect_eq(count_ops(graph, SL_OP_IS_NAN), 0, "mask %d", mask);
                cr_expect_eq(guards(graph), mask >= INFINITE_MASK, "mask %d", mask);
                sl_graph_free(graph);
                builder_free(b);
        }
}

/* The same three nodes are a Transpose only where the dimensions come back as they were. */
Test(passes, keys_that_are_split_otherwise_are_not_joined)
{
        static const int64_t splits[][2] = {{HEADS, HEAD}, {HEAD, HEADS}, {1, HEAD}, {HEADS, TOKENS}};

        for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
                struct builder *b = builder_new(18);
                struct sl_graph *graph;

                builder_input(b, "key", SL_DTYPE_F32, DIMS(-1, HEADS, TOKENS, HEAD));
                turn_keys(b, splits[i][0], splits[i][1]);
                builder_node(b, "Relu", "k", "y");
                builder_output(b, "y");
                graph = run_pass(b, sl_pass_join_transpose);
                cr_expect_eq(count_ops(graph, SL_OP_RESHAPE), i == 0 ? 0 : 2, "split %zu", i);
                sl_graph_free(graph);
                builder_free(b);
        }
}
