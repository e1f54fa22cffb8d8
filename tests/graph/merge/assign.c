/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments by cost: never dearer than Algorithm 1's, the cheapest there is where all can be tried, and what they say is made. */
#include "merge/assign.h"
#include "base/error.h"
#include "lanes.h"
#include "merge/prices.h"
#include "op.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#define LANES 3

struct tariff {
        uint64_t seed;
        double of_op[SL_OP_COUNT]; /* where not 0 */
};

static double seconds(void *context, const struct sl_node_desc *node, uint64_t constants)
{
        const struct tariff *tariff = context;
        uint64_t dice =
                (tariff->seed + node->op) * 0x9e3779b97f4a7c15u + constants * 0xbf58476d1ce4e5b9u + node->inputs[0].shape.rank;

        if (tariff->of_op[node->op] != 0)
                return tariff->of_op[node->op];
        return (double)((dice ^ dice >> 31) % 1000 + 1) * 1e-6;
}

/* A small residual network with two branches and a head. */
static void build(struct network *net, uint64_t seed)
{
        uint32_t x, a, b;

        network_init(net);
        net->state += seed * 0x9e3779b97f4a7c15u;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 2, 4, 4));
        a = network_conv(net, x, 2, 2, 3, 1, 1);
        b = network_apply(net, SL_OP_TANH, a);
        x = network_node(net, SL_OP_ADD, VALUES(a, b), 0, NULL);
        x = network_node(net, SL_OP_MUL, VALUES(x, a), 0, NULL);
        x = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(4, 3))), 0, NULL);
        network_output(net, x);
        network_finish(net);
}

struct bench {
        struct network nets[LANES];
        const struct sl_graph *graphs[LANES];
        struct sl_match *match;
};

static void bench_init(struct bench *b)
{
        for (uint32_t i = 0; i < LANES; i++) {
                build(&b->nets[i], i);
                b->graphs[i] = b->nets[i].graph;
        }
        cr_assert_eq(sl_match_new(b->graphs, LANES, &b->match, NULL), 0);
}

static void bench_deinit(struct bench *b)
{
        sl_match_free(b->match);
        for (uint32_t i = 0; i < LANES; i++)
                network_deinit(&b->nets[i]);
}

/* Of every assignment within the bound of copies, if there is one. */
static double cheapest_of_all(struct sl_prices *prices)
{
        uint32_t n = prices->match->n_common, choice[16] = {0}, forms[16], at = 0;
        double best = INFINITY, here;

        while (at < n) {
                for (uint32_t i = 0; i < n; i++)
                        forms[i] = prices->nodes[i].forms[choice[i]].form;
                cr_assert_eq(sl_assign_seconds(prices, forms, &here), 0);
                if (sl_assign_copied_bytes(prices, forms) <= prices->copies_max)
                        best = fmin(best, here);
                for (at = 0; at < n && ++choice[at] == prices->nodes[at].n_forms; at++)
                        choice[at] = 0;
        }
        return best;
}

Test(assign, the_cheapest_of_all_assignments_is_found)
{
        struct bench b;

        bench_init(&b);
        for (uint64_t seed = 0; seed < 40; seed++) {
                struct tariff tariff = {.seed = seed * 7919};
                const struct sl_merge_costs costs = {.seconds = seconds, .context = &tariff, .batch = 2};
                struct sl_prices *prices;
                uint32_t algorithm_1[16], forms[16];
                double found, baseline;

                cr_assert_eq(sl_prices_new(b.match, &costs, NULL, NULL, &prices), 0);
                cr_assert_eq(sl_assign_algorithm_1(prices, algorithm_1), 0);
                cr_assert_eq(sl_assign_cheapest(prices, algorithm_1, forms), 0);
                cr_assert_eq(sl_assign_seconds(prices, forms, &found), 0);
                cr_assert_eq(sl_assign_seconds(prices, algorithm_1, &baseline), 0);
                cr_expect_float_eq(found, cheapest_of_all(prices), 1e-10, "seed %d", (int)seed);
                cr_expect_leq(found, baseline);
                sl_prices_free(prices);
        }
        bench_deinit(&b);
}

static struct sl_merge_report merge_by(struct network *nets, struct tariff *tariff)
{
        const struct sl_merge_costs costs = {.seconds = seconds, .context = tariff, .batch = 1};
        struct sl_merge_report report;
        struct sl_graph *merged = lanes_merge(nets, LANES, &costs, &report);

        lanes_expect_equal(nets, LANES, merged, 2, 1e-5);
        sl_graph_free(merged);
        return report;
}

/* By the graph itself: what its nodes cost at that batch, one by one; what only looks at a value otherwise costs nothing. */
static double seconds_of_nodes(const struct sl_graph *graph, const struct sl_merge_costs *costs)
{
        struct sl_graph *sized;
        double sum = 0;

        cr_assert_eq(sl_graph_specialise(graph, costs->batch, &sized, NULL), 0);
        for (uint32_t i = 0; i < sized->n_nodes; i++) {
                struct sl_node_desc desc;
                uint64_t constants = 0;

                if (sized->nodes[i].dead || (sl_op_traits(sized->nodes[i].op) & SL_OP_VIEW))
                        continue;
                cr_assert_eq(sl_graph_describe(sized, i, &desc), 0);
                for (uint32_t k = 0; k < sized->nodes[i].n_inputs; k++)
                        constants |= (uint64_t)sl_graph_is_constant(sized, sized->nodes[i].inputs[k]) << k;
                sum += costs->seconds(costs->context, &desc, constants);
        }
        sl_graph_free(sized);
        return sum;
}

/* A value that is turned once is there in both forms; lanes that leave, and those that other nodes read, are parted once. */
Test(assign, the_merged_graph_costs_what_its_assignment_was_said_to_cost)
{
        uint32_t n_merged = 0;
        struct bench b;

        bench_init(&b);
        for (uint64_t seed = 0; seed < 120; seed++) {
                struct tariff tariff = {.seed = seed * 7919};
                const struct sl_merge_costs costs = {.seconds = seconds, .context = &tariff, .batch = 2};
                struct sl_merge_report report;
                struct sl_graph *merged;

                /* Of each kind of network: reorders that cost next to nothing, much, and as they come. */
                for (uint32_t op = 0; op < 3 && seed % 3; op++)
                        tariff.of_op[(uint32_t[]){SL_OP_CONCAT, SL_OP_SPLIT, SL_OP_TRANSPOSE}[op]] =
                                (double)(seed % 3 == 1 ? 1 + op : 60 + 7 * op) * 1e-6;
                cr_assert_eq(sl_graph_new(&merged), 0);
                if (sl_merge(b.graphs, LANES, &(struct sl_merge_options){.costs = &costs}, merged, &report, NULL) == 1) {
                        double made = seconds_of_nodes(merged, &costs);

                        cr_expect_float_eq(
                                made / report.seconds, 1, 1e-6, "seed %d: %g, said to be %g", (int)seed, made, report.seconds);
                        n_merged++;
                }
                sl_graph_free(merged);
        }
        cr_expect_gt(n_merged, 20);
        bench_deinit(&b);
}

Test(assign, where_reorders_are_dear_nothing_is_merged)
{
        struct tariff tariff = {.of_op = {[SL_OP_MATMUL] = 1e-9,
                                        [SL_OP_CONV] = 1e-9,
                                        [SL_OP_TANH] = 1e-9,
                                        [SL_OP_ADD] = 1e-9,
                                        [SL_OP_MUL] = 1e-9,
                                        [SL_OP_CONCAT] = 1,
                                        [SL_OP_SPLIT] = 1,
                                        [SL_OP_TRANSPOSE] = 1}};
        struct bench b;
        struct sl_graph *merged;
        struct sl_merge_report report = {0};
        const struct sl_merge_costs costs = {.seconds = seconds, .context = &tariff, .batch = 1};

        bench_init(&b);
        cr_assert_eq(sl_graph_new(&merged), 0);
        cr_expect_eq(sl_merge(b.graphs, LANES, &(struct sl_merge_options){.costs = &costs}, merged, &report, NULL), 0);
        cr_expect_eq(merged->n_nodes, 0);
        cr_expect_eq(report.n_islands, 5);
        cr_expect_str_eq(report.islands[0].reason, "it costs less apart");
        cr_expect_leq(report.seconds, report.algorithm_1_seconds);
        sl_graph_free(merged);
        bench_deinit(&b);
}

/* What only moves data costs next to nothing. */
static const struct tariff free_layouts = {.of_op = {[SL_OP_CONCAT] = 1e-12,
                                                   [SL_OP_SPLIT] = 1e-12,
                                                   [SL_OP_TRANSPOSE] = 1e-12,
                                                   [SL_OP_MATMUL] = 1e-3,
                                                   [SL_OP_CONV] = 1e-3,
                                                   [SL_OP_LANED_CONV] = 1e-3,
                                                   [SL_OP_TANH] = 1e-3,
                                                   [SL_OP_ADD] = 1e-3,
                                                   [SL_OP_MUL] = 1e-3}};

Test(assign, what_gains_less_than_is_asked_for_stays_apart)
{
        struct tariff tariff = free_layouts;
        const struct sl_merge_costs costs = {.seconds = seconds, .context = &tariff, .batch = 1};
        struct sl_merge_options options = {.costs = &costs, .least_gain = 0.7};
        struct sl_merge_report report;
        struct sl_graph *merged;
        struct bench b;

        bench_init(&b);
        cr_assert_eq(sl_graph_new(&merged), 0);
        /* Three lanes in one node gain two thirds. */
        cr_expect_eq(sl_merge(b.graphs, LANES, &options, merged, &report, NULL), 0);
        cr_expect_eq(merged->n_nodes, 0);
        options.least_gain = 0.6;
        cr_expect_eq(sl_merge(b.graphs, LANES, &options, merged, &report, NULL), 1);
        sl_graph_free(merged);
        bench_deinit(&b);
}

Test(assign, runs_that_are_saved_count_in_what_is_gained)
{
        struct tariff tariff = free_layouts;
        const struct sl_merge_costs costs = {.seconds = seconds, .context = &tariff, .batch = 1};
        struct sl_merge_options options = {.costs = &costs};
        struct sl_merge_report report;
        struct sl_graph *merged;
        struct bench b;

        tariff.of_op[SL_OP_TRANSPOSE] = tariff.of_op[SL_OP_CONCAT] = tariff.of_op[SL_OP_SPLIT] = 1e-3;
        bench_init(&b);
        cr_assert_eq(sl_graph_new(&merged), 0);
        cr_assert_eq(sl_merge(b.graphs, LANES, &options, merged, &report, NULL), 1);
        sl_graph_free(merged);
        options.least_gain = 1.01 - report.seconds / report.apart_seconds;
        cr_assert_lt(options.least_gain, 1 - 1.0 / LANES);
        cr_assert_eq(sl_graph_new(&merged), 0);
        cr_expect_eq(sl_merge(b.graphs, LANES, &options, merged, &report, NULL), 0);
        options.run_seconds = 1; /* beside which nodes are nothing */
        cr_expect_eq(sl_merge(b.graphs, LANES, &options, merged, &report, NULL), 1);
        sl_graph_free(merged);
        bench_deinit(&b);
}

Test(assign, what_costs_nothing_to_reorder_is_merged_wherever_that_is_cheaper)
{
        struct tariff tariff = free_layouts;
        struct sl_merge_report report;
        struct bench b;

        bench_init(&b);
        report = merge_by(b.nets, &tariff);
        cr_expect_eq(report.n_merged, 5);
        cr_expect_lt(report.seconds, report.apart_seconds / 2);
        bench_deinit(&b);
}

/* Filters of a convolution are packed otherwise for all lanes, those of a product are not. */
static uint64_t filter_bytes(void *context, const struct sl_node_desc *node, const struct sl_node_desc *single, uint64_t constants)
{
        uint64_t bytes = 0;

        (void)context;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if ((constants >> i & 1) && (!single || single->op == SL_OP_CONV))
                        bytes += sl_tensor_bytes(&node->inputs[i]);
        return bytes;
}

static struct sl_merge_copies within(double share)
{
        return (struct sl_merge_copies){.bytes = filter_bytes, .share_max = share};
}

/* One node copies here, so that nothing lies between two prices of a byte. */
Test(assign, the_cheapest_within_a_bound_of_copies_is_found)
{
        const struct sl_merge_copies copies = within(0.1);
        uint32_t n_bound = 0;
        struct bench b;

        bench_init(&b);
        for (uint64_t seed = 0; seed < 40; seed++) {
                struct tariff tariff = {.seed = seed * 7919};
                const struct sl_merge_costs costs = {.seconds = seconds, .context = &tariff, .batch = 2};
                struct sl_prices *prices;
                uint32_t algorithm_1[16], forms[16];
                double found;

                cr_assert_eq(sl_prices_new(b.match, &costs, &copies, NULL, &prices), 0);
                cr_assert_eq(sl_assign_algorithm_1(prices, algorithm_1), 0);
                cr_assert_eq(sl_assign_cheapest(prices, algorithm_1, forms), 0);
                if (sl_assign_copied_bytes(prices, forms) > prices->copies_max) {
                        cr_assert_eq(sl_assign_cheapest_within(prices, algorithm_1, forms), 0);
                        n_bound++;
                }
                cr_assert_eq(sl_assign_seconds(prices, forms, &found), 0);
                cr_expect_leq(sl_assign_copied_bytes(prices, forms), prices->copies_max);
                cr_expect_float_eq(found, cheapest_of_all(prices), 1e-10, "seed %d", (int)seed);
                sl_prices_free(prices);
        }
        cr_expect_gt(n_bound, 0);
        bench_deinit(&b);
}

static uint32_t merge_within(const struct bench *b, double share, const struct sl_merge_costs *costs, uint32_t *ret_convolutions)
{
        const struct sl_merge_copies copies = within(share);
        struct sl_merge_report report;
        struct sl_graph *merged;

        cr_assert_eq(sl_graph_new(&merged), 0);
        cr_assert_eq(
                sl_merge(b->graphs, LANES, &(struct sl_merge_options){.costs = costs, .copies = &copies}, merged, &report, NULL),
                1);
        cr_expect_leq((double)report.copied_bytes, share * (double)report.lanes_bytes);
        cr_expect_geq(report.wanted_bytes, report.copied_bytes);
        *ret_convolutions = lanes_count(merged, SL_OP_CONV);
        sl_graph_free(merged);
        return report.n_merged;
}

Test(assign, a_convolution_that_would_be_copied_beyond_the_bound_stays_apart_in_both_ways)
{
        struct tariff tariff = free_layouts;
        const struct sl_merge_costs costs = {.seconds = seconds, .context = &tariff, .batch = 1};
        uint32_t n;
        struct bench b;

        bench_init(&b);
        cr_expect_eq(merge_within(&b, 0, NULL, &n), 4);
        cr_expect_eq(n, LANES);
        cr_expect_eq(merge_within(&b, 1, NULL, &n), 5);
        cr_expect_eq(n, 1);
        cr_expect_eq(merge_within(&b, 0, &costs, &n), 4);
        cr_expect_eq(n, LANES);
        cr_expect_eq(merge_within(&b, 1, &costs, &n), 5);
        bench_deinit(&b);
}
