/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of float16 on float32: its ports stay, nothing between them does, and it computes the same within what float16 rounds.
 */
#include "widen.h"

#include "base/error.h"
#include "builder.h"
#include "evaluate.h"
#include "ref/half.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#define SAMPLES 2
#define IMAGE   (SAMPLES * 3 * 6 * 6)

static uint16_t *random_halves(struct builder *b, size_t n, uint32_t seed)
{
        float *floats = builder_alloc(b, n * sizeof(*floats));
        uint16_t *halves = builder_alloc(b, n * sizeof(*halves));

        fill_random(floats, n, seed);
        for (size_t i = 0; i < n; i++)
                halves[i] = sl_ref_to_f16((double)floats[i]);
        return halves;
}

static struct builder *network(void)
{
        struct builder *b = builder_new(17);

        builder_input(b, "x", SL_DTYPE_F16, DIMS(-1, 3, 6, 6));
        builder_raw(b, "w", SL_DTYPE_F16, DIMS(4, 3, 3, 3), random_halves(b, 108, 1));
        builder_raw(b, "m", SL_DTYPE_F16, DIMS(4, 5), random_halves(b, 20, 2));
        builder_node(b, "Conv", "x,w", "c");
        builder_node(b, "Relu", "c", "r");
        builder_node(b, "GlobalAveragePool", "r", "p");
        builder_node(b, "Flatten", "p", "f");
        builder_node(b, "MatMul", "f,m", "y");
        builder_attr_int(b, builder_node(b, "Cast", "f", "g"), "to", SL_DTYPE_F16);
        builder_output(b, "y");
        builder_output(b, "g");
        return b;
}

static void evaluate(const struct sl_graph *graph, const uint16_t *x, uint16_t y[SAMPLES * 5], uint16_t g[SAMPLES * 4])
{
        const void *inputs[] = {x};
        void *outputs[] = {y, g};
        struct sl_error error = {0};
        struct sl_graph *special;

        cr_assert_eq(sl_graph_specialise(graph, SAMPLES, &special, &error), 0, "%s", error.text);
        cr_assert_eq(sl_graph_evaluate(special, inputs, outputs, &error), 0, "%s", error.text);
        sl_graph_free(special);
}

static void expect_close(const uint16_t *got, const uint16_t *want, size_t n)
{
        for (size_t i = 0; i < n; i++)
                cr_assert_float_eq(sl_ref_from_f16(got[i]), sl_ref_from_f16(want[i]), 4e-3, "%zu", i);
}

/* Whoever has asked for users before asks for those of nodes that stand elsewhere now. */
Test(widen, users_are_known_behind_it)
{
        struct builder *b = builder_new(17);
        struct sl_graph *graph;
        uint32_t users[3];

        builder_input(b, "x", SL_DTYPE_F16, DIMS(-1, 4));
        builder_node(b, "Abs", "x", "a");
        builder_node(b, "Relu", "a", "b");
        builder_node(b, "Add", "a,b", "c");
        builder_node(b, "Neg", "c", "y");
        builder_output(b, "y");
        graph = builder_import(b);
        cr_assert_eq(sl_graph_users(graph, graph->nodes[0].outputs[0], users, 3), 2);
        cr_assert_eq(sl_graph_widen(graph, NULL), 0);
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (graph->nodes[i].op == SL_OP_ABS)
                        cr_expect_eq(sl_graph_users(graph, graph->nodes[i].outputs[0], users, 3), 2);
        sl_graph_free(graph);
        builder_free(b);
}

Test(widen, a_network_of_float16_computes_the_same_in_float32)
{
        struct builder *b = network();
        struct sl_graph *half = builder_import(b), *wide = builder_import(b);
        const uint16_t *x = random_halves(b, IMAGE, 3);
        uint16_t y[2][SAMPLES * 5], g[2][SAMPLES * 4];

        cr_assert_eq(sl_graph_widen(wide, NULL), 0);
        evaluate(half, x, y[0], g[0]);
        evaluate(wide, x, y[1], g[1]);
        expect_close(y[1], y[0], SAMPLES * 5);
        expect_close(g[1], g[0], SAMPLES * 4);
        sl_graph_free(half);
        sl_graph_free(wide);
        builder_free(b);
}

Test(widen, the_ports_stay_float16_and_only_casts_touch_it)
{
        struct builder *b = network();
        struct sl_graph *graph = builder_import(b);

        cr_assert_eq(sl_graph_widen(graph, NULL), 0);
        cr_assert_eq(graph->values[graph->inputs[0]].tensor.dtype, SL_DTYPE_F16);
        for (uint32_t i = 0; i < graph->n_outputs; i++)
                cr_assert_eq(graph->values[graph->outputs[i]].tensor.dtype, SL_DTYPE_F16);
        cr_assert_str_eq(graph->values[graph->outputs[0]].name, "y");
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                for (uint32_t k = 0; k < graph->nodes[i].n_inputs && graph->nodes[i].op != SL_OP_CAST; k++)
                        cr_assert_eq(
                                graph->values[graph->nodes[i].inputs[k]].tensor.dtype, SL_DTYPE_F32, "%s", graph->nodes[i].name);
        sl_graph_free(graph);
        builder_free(b);
}

Test(widen, what_only_moves_float16_stays_so)
{
        struct builder *b = builder_new(17);
        struct sl_graph *graph;

        builder_input(b, "x", SL_DTYPE_F16, DIMS(-1, 3));
        builder_node(b, "Transpose", "x", "y");
        builder_output(b, "y");
        graph = builder_import(b);
        cr_assert_eq(sl_graph_widen(graph, NULL), 0);
        cr_assert_eq(graph->n_nodes, 1);
        sl_graph_free(graph);
        builder_free(b);
}
