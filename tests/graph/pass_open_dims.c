/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a graph of any size: what exporters write by Shape is said by lists, attention is one node and sums are residuals where names
 * of dimensions and the operators' rules prove that shapes agree for all sizes, and nowhere else. What such plans compute is
 * compared in tests/compile/test_any_size.c.
 */
#include "base/error.h"
#include "graph.h"
#include "import.h"
#include "op.h"
#include "pass.h"
#include "pass_attention.h"
#include "pass_bench.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum form {
        OTHER_MASK = 1,     /* as long as something that has another name */
        OTHER_RESIDUAL = 2, /* likewise */
        TURNED_SIZES = 4,   /* heads are cut as [M, N, ...] */
        OTHER_KEYS = 8,     /* keys and values come from K rows */
        NOT_A_SHAPE = 16,   /* sizes that are multiplied, by one */
};

static void project(struct builder *b, const char *inputs, const char *name)
{
        char weights[16], product[64];

        snprintf(weights, sizeof(weights), "w%s", name);
        builder_random(b, weights, DIMS(WIDTH, WIDTH));
        snprintf(product, sizeof(product), "%s,%s", inputs, weights);
        builder_node(b, "MatMul", product, name);
}

/* Heads are cut by arithmetic on shapes, as torch's exporter writes it. */
static void cut(struct builder *b, const char *rows, const char *name, int form)
{
        char text[160], made[8][24];
        static const char *const parts[] = {"shape", "batch", "length", "batches", "lengths", "list", "apart", "long"};

        for (int i = 0; i < 8; i++)
                snprintf(made[i], sizeof(made[i]), "%s_%s", name, parts[i]);
        builder_node(b, "Shape", rows, made[0]);
        snprintf(text, sizeof(text), "%s,zero", made[0]);
        builder_node(b, "Gather", text, made[1]);
        snprintf(text, sizeof(text), "%s,one", made[0]);
        builder_node(b, "Gather", text, made[2]);
        snprintf(text, sizeof(text), "%s,one", made[2]);
        builder_node(b, "Mul", text, made[7]);
        snprintf(text, sizeof(text), "%s,first", made[1]);
        builder_node(b, "Unsqueeze", text, made[3]);
        snprintf(text, sizeof(text), "%s,first", made[form & NOT_A_SHAPE ? 7 : 2]);
        builder_node(b, "Unsqueeze", text, made[4]);
        snprintf(text, sizeof(text), "%s,%s,heads", made[form & TURNED_SIZES ? 4 : 3], made[form & TURNED_SIZES ? 3 : 4]);
        builder_attr_int(b, builder_node(b, "Concat", text, made[5]), "axis", 0);
        snprintf(text, sizeof(text), "%s,%s", rows, made[5]);
        builder_node(b, "Reshape", text, made[6]);
}

static struct builder *layer(int form)
{
        struct builder *b = builder_new(17);

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2, WIDTH));
        builder_input(b, "mask", SL_DTYPE_F32, DIMS(-1, form & (OTHER_MASK | OTHER_KEYS) ? -4 : -2));
        if (form & OTHER_KEYS)
                builder_input(b, "past", SL_DTYPE_F32, DIMS(-1, -4, WIDTH));
        if (form & OTHER_RESIDUAL)
                builder_input(b, "added", SL_DTYPE_F32, DIMS(-1, -4, WIDTH));
        builder_ints(b, "zero", DIMS(), (const int64_t[]){0});
        builder_ints(b, "one", DIMS(), (const int64_t[]){1});
        builder_ints(b, "first", DIMS(1), (const int64_t[]){0});
        builder_ints(b, "heads", DIMS(2), (const int64_t[]){HEADS, HEAD});
        builder_ints(b, "middle", DIMS(2), (const int64_t[]){1, 2});
        builder_ints(b, "rows", DIMS(3), (const int64_t[]){0, 0, WIDTH});
        project(b, "x", "a");
        project(b, form & OTHER_KEYS ? "past" : "x", "b");
        project(b, form & OTHER_KEYS ? "past" : "x", "c");
        cut(b, "a", "a", form);
        cut(b, "b", "b", form);
        cut(b, "c", "c", form);
        builder_transpose(b, "a_apart", "q", DIMS(0, 2, 1, 3));
        builder_transpose(b, "b_apart", "k", DIMS(0, 2, 3, 1));
        builder_transpose(b, "c_apart", "v", DIMS(0, 2, 1, 3));
        builder_node(b, "MatMul", "q,k", "scores");
        builder_node(b, "Unsqueeze", "mask,middle", "wide");
        builder_node(b, "Add", "scores,wide", "masked");
        builder_attr_int(b, builder_node(b, "Softmax", "masked", "weights"), "axis", -1);
        builder_node(b, "MatMul", "weights,v", "mixed");
        builder_transpose(b, "mixed", "turned", DIMS(0, 2, 1, 3));
        builder_node(b, "Reshape", "turned,rows", "seen");
        project(b, "seen", "out");
        builder_node(b, "Add", form & OTHER_RESIDUAL ? "added,out" : "x,out", "y");
        builder_output(b, "y");
        return b;
}

static struct sl_graph *after_passes(struct builder *b)
{
        struct sl_graph_limits limits = sl_graph_limits_default;
        const struct sl_pass_options options = {.backend = NULL};
        struct sl_error error = {{0}};
        struct sl_graph *graph;
        size_t n_bytes;
        const uint8_t *bytes = builder_pack(b, &n_bytes);

        limits.any_size = true;
        cr_assert_eq(sl_import_onnx_bytes_bound(bytes, n_bytes, &limits, NULL, &graph, &error), 0, "%s", error.text);
        cr_assert_eq(sl_passes_run_phase(graph, SL_PASS_PORTABLE, &options, &error), 0, "%s", error.text);
        builder_free(b);
        return graph;
}

static uint32_t count_residuals(const struct sl_graph *graph)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += !graph->nodes[i].dead && graph->nodes[i].epilogue.has_residual;
        return n;
}

static void expect(int form, uint32_t reshapes, uint32_t attentions, uint32_t products, uint32_t residuals)
{
        struct sl_graph *graph = after_passes(layer(form));

        cr_expect_eq(count_ops(graph, SL_OP_RESHAPE), reshapes, "form %d: %u", form, count_ops(graph, SL_OP_RESHAPE));
        cr_expect_eq(count_ops(graph, SL_OP_ROW_ATTENTION), attentions, "form %d", form);
        cr_expect_eq(count_ops(graph, SL_OP_MATMUL), products, "form %d: %u", form, count_ops(graph, SL_OP_MATMUL));
        cr_expect_eq(count_residuals(graph), residuals, "form %d", form);
        sl_graph_free(graph);
}

/* One projection, the attention, and the product that adds its input. */
Test(open_dims, a_layer_of_any_size_has_the_nodes_of_one_of_known_sizes)
{
        expect(0, 0, 1, 2, 1);
}

Test(open_dims, keys_of_another_length_are_attention_where_their_mask_has_it)
{
        expect(OTHER_KEYS, 0, 1, 4, 1);
}

Test(open_dims, a_mask_of_another_name_may_be_broadcast_and_stays)
{
        expect(OTHER_MASK, 4, 0, 6, 1);
}

Test(open_dims, a_sum_with_another_name_is_no_residual)
{
        expect(OTHER_RESIDUAL, 0, 1, 2, 0);
}

/* As many elements in another order are other heads. */
Test(open_dims, heads_that_are_cut_across_samples_are_no_attention)
{
        expect(TURNED_SIZES, 4, 0, 6, 0);
}

/* Sizes that are multiplied are not followed. */
Test(open_dims, what_is_computed_of_sizes_stays)
{
        expect(NOT_A_SHAPE, 4, 0, 6, 0);
}

static uint32_t count_pending(const struct sl_graph *graph)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += !graph->nodes[i].dead && graph->nodes[i].op == SL_OP_RESHAPE && graph->nodes[i].n_inputs > 1;
        return n;
}

/* Lists are made by what is known: of another order, or of a product, nothing is. */
Test(open_dims, reshapes_by_their_own_shape_have_lists)
{
        static const struct {
                int form;
                uint32_t pending;
        } cases[] = {{OTHER_MASK, 0}, {TURNED_SIZES, 3}, {NOT_A_SHAPE, 3}};

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct sl_graph *graph = after_passes(layer(cases[i].form));

                cr_expect_eq(count_pending(graph), cases[i].pending, "form %d: %u", cases[i].form, count_pending(graph));
                sl_graph_free(graph);
        }
}

#define CHANNELS 4

/* A window over an image of M times K, of a Conv or, where it has a name, of that pool. */
struct window {
        int64_t side, stride, dilation, pads[4];
        const char *pool, *same;
        bool ceil;
};

static void look(struct builder *b, const struct window *w, const char *name)
{
        char inputs[32], weights[24];
        Onnx__NodeProto *node;

        snprintf(weights, sizeof(weights), "%s_weights", name);
        snprintf(inputs, sizeof(inputs), w->pool ? "x" : "x,%s", weights);
        if (!w->pool)
                builder_random(b, weights, DIMS(CHANNELS, CHANNELS, w->side, w->side));
        node = builder_node(b, w->pool ? w->pool : "Conv", inputs, name);
        if (w->pool)
                builder_attr_ints(b, node, "kernel_shape", 2, (const int64_t[]){w->side, w->side});
        if (w->ceil)
                builder_attr_int(b, node, "ceil_mode", 1);
        if (w->same)
                builder_attr_string(b, node, "auto_pad", w->same);
        else
                builder_attr_ints(b, node, "pads", 4, w->pads);
        builder_attr_ints(b, node, "strides", 2, (const int64_t[]){w->stride, w->stride});
        builder_attr_ints(b, node, "dilations", 2, (const int64_t[]){w->dilation, w->dilation});
}

/* @one, a Conv, and @other, or the image itself, are added. */
static uint32_t residuals_of(const struct window *one, const struct window *other)
{
        struct builder *b = builder_new(17);
        struct sl_graph *graph;
        uint32_t n;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, CHANNELS, -2, -4));
        if (other)
                look(b, other, "other");
        look(b, one, "one");
        builder_node(b, "Add", other ? "other,one" : "x,one", "y");
        builder_output(b, "y");
        graph = after_passes(b);
        n = count_residuals(graph);
        sl_graph_free(graph);
        return n;
}

Test(open_dims, a_window_that_keeps_the_size_of_an_image_may_add_that_image)
{
        static const struct {
                struct window window;
                uint32_t residuals;
        } cases[] = {
                {{.side = 1, .stride = 1, .dilation = 1}, 1},
                {{.side = 3, .stride = 1, .dilation = 1, .pads = {1, 1, 1, 1}}, 1},
                {{.side = 3, .stride = 1, .dilation = 1, .pads = {0, 0, 2, 2}}, 1},
                {{.side = 3, .stride = 1, .dilation = 2, .pads = {2, 2, 2, 2}}, 1},
                {{.side = 5, .stride = 1, .dilation = 1, .same = "SAME_LOWER"}, 1},
                {{.side = 3, .stride = 1, .dilation = 1}, 0},
                {{.side = 3, .stride = 1, .dilation = 1, .pads = {1, 1, 0, 1}}, 0}, /* along M alone */
                {{.side = 3, .stride = 1, .dilation = 1, .pads = {1, 1, 1, 0}}, 0}, /* along K alone */
                {{.side = 3, .stride = 1, .dilation = 2, .pads = {1, 1, 1, 1}}, 0},
                {{.side = 1, .stride = 2, .dilation = 1}, 0},
                {{.side = 3, .stride = 2, .dilation = 1, .same = "SAME_UPPER"}, 0},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                cr_expect_eq(residuals_of(&cases[i].window, NULL), cases[i].residuals, "case %zu", i);
}

Test(open_dims, windows_with_as_many_places_whatever_the_size_may_be_added)
{
        static const struct window pointwise = {.side = 1, .stride = 2, .dilation = 1},
                                   bare = {.side = 3, .stride = 2, .dilation = 1};
        static const struct {
                struct window other;
                const struct window *one;
                uint32_t residuals;
        } cases[] = {
                {{.side = 3, .stride = 2, .dilation = 1, .pads = {1, 1, 1, 1}}, &pointwise, 1},
                {{.side = 5, .stride = 2, .dilation = 1, .pads = {2, 2, 2, 2}}, &pointwise, 1},
                {{.side = 3, .stride = 2, .dilation = 2, .pads = {2, 2, 2, 2}}, &pointwise, 1},
                {{.side = 3, .stride = 2, .dilation = 1, .same = "SAME_UPPER"}, &pointwise, 1},
                {{.side = 3, .stride = 2, .dilation = 1, .pads = {1, 1, 1, 1}, .pool = "MaxPool"}, &pointwise, 1},
                {{.side = 3, .stride = 2, .dilation = 1, .pool = "AveragePool"}, &bare, 1},
                {{.side = 3, .stride = 2, .dilation = 1}, &pointwise, 0},
                {{.side = 3, .stride = 2, .dilation = 1, .pads = {0, 0, 1, 1}}, &pointwise, 0}, /* as many of an even size */
                {{.side = 1, .stride = 3, .dilation = 1}, &pointwise, 0},
                {{.side = 3, .stride = 2, .dilation = 1, .pads = {1, 1, 1, 1}, .pool = "MaxPool", .ceil = true}, &pointwise, 0},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                cr_expect_eq(residuals_of(cases[i].one, &cases[i].other), cases[i].residuals, "case %zu", i);
}

/* @inputs of the sum are made of the image x, and of what was joined or turned of it. */
static uint32_t residuals_among(const char *inputs)
{
        static const struct window apart = {.side = 1, .stride = 2, .dilation = 1};
        struct builder *b = builder_new(17);
        struct sl_graph *graph;
        uint32_t n;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, CHANNELS, -2, -4));
        builder_random(b, "narrow", DIMS(CHANNELS, CHANNELS, 1, 1));
        builder_random(b, "broad", DIMS(2 * CHANNELS, 2 * CHANNELS, 1, 1));
        builder_attr_int(b, builder_node(b, "Concat", "x,x", "wide"), "axis", 1);
        builder_attr_int(b, builder_node(b, "Concat", "x,x", "tall"), "axis", 2);
        builder_transpose(b, "x", "turned", DIMS(0, 1, 3, 2));
        builder_attr_ints(b, builder_node(b, "Conv", "turned,narrow", "turned_half"), "strides", 2, (const int64_t[]){2, 2});
        look(b, &apart, "half");
        builder_node(b, "Conv", "x,narrow", "of_x");
        builder_node(b, "Conv", "wide,broad", "of_wide");
        builder_node(b, "Add", inputs, "y");
        builder_output(b, "y");
        graph = after_passes(b);
        n = count_residuals(graph);
        sl_graph_free(graph);
        return n;
}

Test(open_dims, images_that_are_joined_or_turned_have_the_sizes_that_they_have_then)
{
        cr_expect_eq(residuals_among("of_x,x"), 1u);
        cr_expect_eq(residuals_among("of_wide,wide"), 1u);
        cr_expect_eq(residuals_among("of_x,tall"), 0u);
        cr_expect_eq(residuals_among("of_x,turned"), 0u);
        cr_expect_eq(residuals_among("half,turned_half"), 0u);
}
