/* SPDX-License-Identifier: Apache-2.0 */
/* What several graphs have in common, where that ends and why, and what an architecture is. */
#include "merge/match.h"
#include "base/clock.h"
#include "base/error.h"
#include "merge/architecture.h"
#include "network.h"

#include <criterion/criterion.h>
#include <string.h>

/* Gemms of @width with a Relu behind each, and a head of another width. */
static void build_mlp(struct network *net, uint64_t seed, uint32_t layers, int64_t width, int64_t head)
{
        uint32_t x;

        network_init(net);
        net->state += seed * 0x9e3779b97f4a7c15u;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, width));
        for (uint32_t i = 0; i < layers; i++) {
                x = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(width, width))), 0, NULL);
                x = network_apply(net, SL_OP_RELU, x);
        }
        x = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(width, head))), 0, NULL);
        network_output(net, x);
        network_finish(net);
}

static struct sl_match *match_of(struct network *nets, uint32_t n)
{
        static const struct sl_graph *graphs[SL_MATCH_GRAPHS_MAX];
        struct sl_error error = {0};
        struct sl_match *match;

        for (uint32_t i = 0; i < n; i++)
                graphs[i] = nets[i].graph;
        cr_assert_eq(sl_match_new(graphs, n, &match, &error), 0, "%s", error.text);
        return match;
}

static void free_all(struct network *nets, uint32_t n, struct sl_match *match)
{
        sl_match_free(match);
        for (uint32_t i = 0; i < n; i++)
                network_deinit(&nets[i]);
}

static struct sl_architecture architecture_of(const struct sl_graph *graph)
{
        struct sl_architecture architecture;

        cr_assert_eq(sl_architecture_of(graph, &architecture), 0);
        return architecture;
}

Test(match, models_that_differ_in_weights_alone_are_common_as_a_whole)
{
        struct network nets[3];
        struct sl_match *match;

        for (uint32_t i = 0; i < 3; i++)
                build_mlp(&nets[i], i, 4, 8, 3);
        match = match_of(nets, 3);
        cr_expect(sl_match_is_whole(match));
        cr_expect_eq(match->n_common, 9);
        cr_expect_eq(match->lane_of[2][nets[0].graph->outputs[0]], nets[2].graph->outputs[0]);
        free_all(nets, 3, match);
}

Test(match, own_heads_end_the_common_part_and_the_report_names_the_node_and_the_graph)
{
        struct network nets[3];
        struct sl_match *match;

        for (uint32_t i = 0; i < 3; i++)
                build_mlp(&nets[i], i, 4, 8, i == 2 ? 5 : 3);
        match = match_of(nets, 3);
        cr_expect_eq(match->n_common, 8);
        cr_assert_eq(match->n_breaks, 1);
        cr_expect_eq(match->breaks[0].node, 8);
        cr_expect_eq(match->breaks[0].graph, 2);
        cr_expect(strstr(match->breaks[0].text, "MatMul"), "%s", match->breaks[0].text);
        cr_expect(strstr(match->breaks[0].text, "[8,3] here"), "%s", match->breaks[0].text);
        cr_expect(strstr(match->breaks[0].text, "[8,5] there"), "%s", match->breaks[0].text);
        free_all(nets, 3, match);
}

/* Own beginnings and own ends around a common trunk; one of the beginnings has more nodes. */
static void build_trunk(struct network *net, uint64_t seed, uint32_t stem, uint32_t trunk, uint32_t head)
{
        static const uint32_t stems[] = {SL_OP_SIN, SL_OP_COS, SL_OP_ERF}, heads[] = {SL_OP_EXP, SL_OP_SOFTPLUS, SL_OP_ELU};
        uint32_t x;

        network_init(net);
        net->state += seed * 0x9e3779b97f4a7c15u;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 6));
        for (uint32_t i = 0; i <= stem; i++)
                x = network_apply(net, stems[stem], x);
        for (uint32_t i = 0; i < trunk; i++) {
                x = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(6, 6))), 0, NULL);
                x = network_apply(net, SL_OP_TANH, x);
        }
        x = network_apply(net, heads[head], x);
        network_output(net, x);
        network_finish(net);
}

Test(match, an_inner_region_is_common_between_own_beginnings_and_own_ends)
{
        struct network nets[3];
        struct sl_match *match;

        for (uint32_t i = 0; i < 3; i++)
                build_trunk(&nets[i], i, i, 5, i);
        match = match_of(nets, 3);
        cr_assert_eq(match->n_common, 10);
        cr_expect_eq(match->common[0], 1);
        cr_expect_eq(match->nodes[2][0], 3);
        cr_expect_eq(match->n_breaks, 2);
        free_all(nets, 3, match);
}

Test(match, an_own_node_inside_leaves_both_sides_common)
{
        struct network nets[2];
        struct sl_match *match;

        for (uint32_t i = 0; i < 2; i++) {
                struct network *net = &nets[i];

                network_init(net);
                net->state += i;
                uint32_t x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 6));

                x = network_apply(net, SL_OP_TANH, network_apply(net, SL_OP_RELU, network_apply(net, SL_OP_NEG, x)));
                x = network_apply(net, i ? SL_OP_SIN : SL_OP_COS, x);
                x = network_apply(net, SL_OP_ABS, network_apply(net, SL_OP_SIGMOID, network_apply(net, SL_OP_EXP, x)));
                network_output(net, x);
                network_finish(net);
        }
        match = match_of(nets, 2);
        cr_expect_eq(match->n_common, 6);
        cr_expect_eq(match->n_breaks, 1);
        free_all(nets, 2, match);
}

/* Two branches of one form: the second graph adds what the first subtracts from. */
static void build_branches(struct network *net, bool swapped)
{
        uint32_t x, a, b;

        network_init(net);
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 6));
        a = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(6, 6))), 0, NULL);
        b = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(6, 6))), 0, NULL);
        x = network_node(net, SL_OP_SUB, VALUES(swapped ? b : a, swapped ? a : b), 0, NULL);
        network_output(net, x);
        network_finish(net);
}

Test(match, wiring_counts)
{
        struct network nets[2];
        struct sl_match *match;

        build_branches(&nets[0], false);
        build_branches(&nets[1], true);
        match = match_of(nets, 2);
        cr_expect_eq(match->n_common, 2);
        cr_expect(strstr(match->breaks[0].text, "stands for another value"), "%s", match->breaks[0].text);
        cr_expect_neq(architecture_of(nets[0].graph).digest[0], architecture_of(nets[1].graph).digest[0]);
        free_all(nets, 2, match);
}

Test(match, attributes_and_epilogues_count)
{
        struct network nets[2];
        struct sl_match *match;

        build_mlp(&nets[0], 0, 2, 8, 3);
        build_mlp(&nets[1], 1, 2, 8, 3);
        nets[1].graph->nodes[2].epilogue.activation = SL_ACT_RELU;
        match = match_of(nets, 2);
        cr_expect_eq(match->n_common, 4);
        cr_expect_eq(match->breaks[0].node, 2);
        cr_expect(strstr(match->breaks[0].text, "epilogue"), "%s", match->breaks[0].text);
        free_all(nets, 2, match);
}

Test(match, digests_know_architectures_and_families)
{
        struct network nets[4];
        struct sl_architecture a[4];

        build_mlp(&nets[0], 0, 2, 8, 3);
        build_mlp(&nets[1], 1, 2, 8, 3);
        build_mlp(&nets[2], 2, 2, 8, 4);
        build_mlp(&nets[3], 3, 3, 8, 3);
        for (uint32_t i = 0; i < 4; i++)
                a[i] = architecture_of(nets[i].graph);
        cr_expect_arr_eq(a[0].digest, a[1].digest, sizeof(a[0].digest));
        cr_expect_arr_neq(a[0].digest, a[2].digest, sizeof(a[0].digest));
        cr_expect_arr_eq(a[0].family, a[2].family, sizeof(a[0].family));
        cr_expect_arr_neq(a[0].family, a[3].family, sizeof(a[0].family));
        free_all(nets, 4, NULL);
}

Test(match, counts_of_graphs_have_limits)
{
        const struct sl_graph *graphs[1] = {NULL};
        struct sl_match *match = NULL;
        struct sl_error error = {0};

        cr_expect_eq(sl_match_new(graphs, 1, &match, &error), -EINVAL);
        cr_expect(strstr(error.text, "2 to 64"), "%s", error.text);
        cr_expect_eq(sl_match_new(graphs, 65, &match, &error), -EINVAL);
}

/* Repetitive networks are what an alignment takes long for when it looks at every place for every node. */
Test(match, thousands_of_nodes_of_sixty_four_models_whose_beginnings_differ)
{
        static struct network nets[SL_MATCH_GRAPHS_MAX];
        struct sl_match *match;

        for (uint32_t i = 0; i < SL_MATCH_GRAPHS_MAX; i++)
                build_trunk(&nets[i], i, i % 3, 1000, i % 2);
        match = match_of(nets, SL_MATCH_GRAPHS_MAX);
        cr_expect_eq(match->n_common, 2000);
        free_all(nets, SL_MATCH_GRAPHS_MAX, match);
}
