/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the cheapest chain of layouts against all chains there are.
 */
#include "layout.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 8
#define READS_MAX 3

/* Value 0 is the input; value i + 1 is what node i makes. */
struct example {
        struct sl_layout_way ways[NODES_MAX][SL_LAYOUT_WAYS_MAX];
        struct sl_layout_read reads[NODES_MAX][READS_MAX];
        uint32_t makes[NODES_MAX], outputs[2];
        struct sl_layout_node nodes[NODES_MAX];
        double reorders[NODES_MAX + 1];
        struct sl_layout_problem problem;
};

static uint32_t next_number(uint64_t *state, uint32_t below)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(*state >> 40) % below;
}

static void random_node(struct example *example, uint32_t i, uint64_t *state)
{
        struct sl_layout_node *node = &example->nodes[i];

        node->n_ways = 1 + next_number(state, SL_LAYOUT_WAYS_MAX);
        node->n_reads = 1 + next_number(state, READS_MAX);
        node->n_makes = 1;
        node->ways = example->ways[i];
        node->reads = example->reads[i];
        node->makes = &example->makes[i];
        example->makes[i] = i + 1;
        for (uint32_t k = 0; k < node->n_ways; k++)
                example->ways[i][k] =
                        (struct sl_layout_way){next_number(state, 2), next_number(state, 2), 1 + next_number(state, 20)};
        for (uint32_t k = 0; k < node->n_reads; k++)
                example->reads[i][k] = (struct sl_layout_read){next_number(state, i + 1), next_number(state, 4) == 0};
}

static void random_example(struct example *example, uint64_t seed)
{
        uint64_t state = seed;
        uint32_t n = 3 + next_number(&state, NODES_MAX - 2);

        memset(example, 0, sizeof(*example));
        for (uint32_t i = 0; i < n; i++)
                random_node(example, i, &state);
        for (uint32_t i = 0; i <= n; i++)
                example->reorders[i] = next_number(&state, 12);
        example->outputs[0] = n;
        example->outputs[1] = next_number(&state, n);
        example->problem = (struct sl_layout_problem){.n_nodes = n,
                .n_values = n + 1,
                .n_outputs = 2,
                .nodes = example->nodes,
                .reorder_seconds = example->reorders,
                .outputs = example->outputs};
}

/* What a chain takes, by the rules and nothing else. */
static double price(const struct example *example, const uint32_t *ways)
{
        bool lies[NODES_MAX + 1][2] = {[0] = {true, false}};
        double seconds = 0;

        for (uint32_t i = 0; i < example->problem.n_nodes; i++) {
                const struct sl_layout_node *node = &example->nodes[i];
                const struct sl_layout_way *way = &node->ways[ways[i]];

                seconds += way->seconds;
                for (uint32_t k = 0; k < node->n_reads; k++) {
                        uint32_t value = node->reads[k].value, layout = node->reads[k].plain ? SL_LAYOUT_PLAIN : way->in;

                        seconds += lies[value][layout] ? 0 : example->reorders[value];
                        lies[value][layout] = true;
                }
                lies[i + 1][way->out] = true;
        }
        for (uint32_t i = 0; i < 2; i++) {
                seconds += lies[example->outputs[i]][SL_LAYOUT_PLAIN] ? 0 : example->reorders[example->outputs[i]];
                lies[example->outputs[i]][SL_LAYOUT_PLAIN] = true;
        }
        return seconds;
}

static double cheapest(const struct example *example)
{
        uint32_t ways[NODES_MAX] = {0};
        double least = INFINITY;

        for (uint32_t i = 0; i < example->problem.n_nodes;) {
                least = fmin(least, price(example, ways));
                for (i = 0; i < example->problem.n_nodes && ++ways[i] == example->nodes[i].n_ways; i++)
                        ways[i] = 0;
        }
        return least;
}

Test(layout, the_chain_is_the_cheapest_of_all)
{
        for (uint64_t seed = 1; seed <= 60; seed++) {
                struct example example;
                uint32_t ways[NODES_MAX];
                double seconds;

                random_example(&example, seed);
                cr_assert_eq(sl_layout_solve(&example.problem, ways, &seconds), 0);
                cr_expect_float_eq(seconds, price(&example, ways), 1e-9, "seed %lu: the chain costs what it says", seed);
                cr_expect_float_eq(seconds, cheapest(&example), 1e-9, "seed %lu", seed);
        }
}

/* A slow way pays when it saves the reorders on both sides of it. */
Test(layout, a_node_that_is_slower_alone_can_be_faster_in_its_chain)
{
        const struct sl_layout_way first[] = {{SL_LAYOUT_PLAIN, SL_LAYOUT_CHANNELS_LAST, 1}};
        const struct sl_layout_way middle[] = {
                {SL_LAYOUT_PLAIN, SL_LAYOUT_PLAIN, 2}, {SL_LAYOUT_CHANNELS_LAST, SL_LAYOUT_CHANNELS_LAST, 4}};
        const struct sl_layout_way last[] = {{SL_LAYOUT_CHANNELS_LAST, SL_LAYOUT_PLAIN, 1}};
        const struct sl_layout_read reads[] = {{0, false}, {1, false}, {2, false}};
        const uint32_t makes[] = {1, 2, 3};
        const struct sl_layout_node nodes[] = {{1, 1, 1, first, &reads[0], &makes[0]}, {2, 1, 1, middle, &reads[1], &makes[1]},
                {1, 1, 1, last, &reads[2], &makes[2]}};
        double reorders[] = {5, 5, 5, 5}, seconds;
        struct sl_layout_problem problem = {3, 4, 1, nodes, reorders, &makes[2]};
        uint32_t ways[3];

        cr_assert_eq(sl_layout_solve(&problem, ways, &seconds), 0);
        cr_expect_eq(ways[1], 1);
        cr_expect_float_eq(seconds, 6, 1e-9);
        reorders[1] = reorders[2] = 0.5;
        cr_assert_eq(sl_layout_solve(&problem, ways, &seconds), 0);
        cr_expect_eq(ways[1], 0);
        cr_expect_float_eq(seconds, 5, 1e-9);
}

Test(layout, more_live_values_than_there_is_room_for_are_refused)
{
        struct sl_layout_way way = {SL_LAYOUT_PLAIN, SL_LAYOUT_PLAIN, 1};
        struct sl_layout_read reads[SL_LAYOUT_LIVE_MAX + 1];
        double reorders[SL_LAYOUT_LIVE_MAX + 2], seconds;
        uint32_t makes = SL_LAYOUT_LIVE_MAX + 1, chosen;
        struct sl_layout_node node = {1, SL_LAYOUT_LIVE_MAX + 1, 1, &way, reads, &makes};
        struct sl_layout_problem problem = {1, SL_LAYOUT_LIVE_MAX + 2, 0, &node, reorders, NULL};

        for (uint32_t i = 0; i <= makes; i++)
                reorders[i] = 1;
        for (uint32_t i = 0; i < makes; i++)
                reads[i] = (struct sl_layout_read){i, false};
        cr_expect_eq(sl_layout_solve(&problem, &chosen, &seconds), -E2BIG);
        node.n_reads--;
        node.n_ways = 0;
        reads[SL_LAYOUT_LIVE_MAX - 1].value = 0;
        cr_expect_eq(sl_layout_solve(&problem, &chosen, &seconds), -ENOTSUP);
}
