/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that are timed one by one for a merge. That a time is finite and asked for once is all that is said of it here. */
#include "backend.h"
#include "base/clock.h"
#include "lower_options.h"
#include "merge/merge.h"
#include "network.h"
#include "node_alone.h"
#include "node_costs.h"
#include "op.h"

#include <criterion/criterion.h>
#include <math.h>

static struct sl_node_desc relu_of(int64_t n)
{
        const struct sl_tensor x = {.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {1, n}}};

        return (struct sl_node_desc){.op = SL_OP_RELU, .n_inputs = 1, .n_outputs = 1, .inputs = {x}, .outputs = {x}};
}

static struct sl_node_costs *costs_new(uint64_t until_ns)
{
        struct sl_node_costs *costs;

        cr_assert_eq(sl_node_costs_new(&(struct sl_node_host){sl_backend_find("cpu"), sl_target_typical, 1}, until_ns, &costs), 0);
        return costs;
}

Test(node_costs, a_node_is_timed_once)
{
        struct sl_node_costs *costs = costs_new(UINT64_MAX);
        const struct sl_node_desc small = relu_of(100), large = relu_of(1000);
        double seconds = sl_node_costs_seconds(costs, &small, 0);

        cr_expect(isfinite(seconds));
        cr_expect_eq(sl_node_costs_seconds(costs, &small, 0), seconds);
        cr_expect_eq(sl_node_costs_timed(costs), 1);
        sl_node_costs_seconds(costs, &large, 0);
        cr_expect_eq(sl_node_costs_timed(costs), 2);
        sl_node_costs_free(costs);
}

Test(node_costs, when_time_is_up_the_work_counts)
{
        struct sl_node_costs *costs = costs_new(0);
        const struct sl_node_desc small = relu_of(100), large = relu_of(1000);
        double seconds = sl_node_costs_seconds(costs, &small, 0);

        cr_expect_float_eq(sl_node_costs_seconds(costs, &large, 0), 10 * seconds, 1e-3 * seconds);
        cr_expect_eq(sl_node_costs_timed(costs), 1);
        sl_node_costs_free(costs);
}

Test(node_costs, a_node_of_unknown_size_costs_without_end)
{
        struct sl_node_costs *costs = costs_new(UINT64_MAX);
        const struct sl_node_desc open = relu_of(SL_DIM_BATCH);

        cr_expect(isinf(sl_node_costs_seconds(costs, &open, 0)));
        sl_node_costs_free(costs);
}

/* Convolutions, products, a normalization and an operator that `ref` alone runs. */
Test(node_costs, whole_networks_are_merged_by_them)
{
        struct sl_node_costs *costs = costs_new(UINT64_MAX);
        const struct sl_merge_costs merge_costs = {.seconds = sl_node_costs_seconds, .context = costs, .batch = 1};
        struct sl_merge_report report = {0};
        const struct sl_graph *graphs[4];
        struct network nets[4];
        struct sl_graph *merged;

        for (uint32_t i = 0; i < 4; i++) {
                struct network *net = &nets[i];
                uint32_t x;

                network_init(net);
                net->state += i;
                x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 3, 8, 8));
                x = network_conv(net, x, 3, 4, 3, 1, 1);
                x = network_apply(net, SL_OP_RELU, network_batch_norm(net, x, 4));
                x = network_node(net, SL_OP_LP_NORM, 1, &x, 0, NULL);
                x = network_node(net, SL_OP_FLATTEN, 1, &x, ATTRS({SL_ATTR_AXIS, 0, {1}}));
                x = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(256, 10))), 0, NULL);
                network_output(net, x);
                network_finish(net);
                graphs[i] = net->graph;
        }
        cr_assert_eq(sl_graph_new(&merged), 0);
        cr_assert_geq(sl_merge(graphs, 4, &(struct sl_merge_options){.costs = &merge_costs}, merged, &report, NULL), 0);
        cr_expect(isfinite(report.apart_seconds));
        cr_expect(isfinite(report.algorithm_1_seconds));
        cr_expect_leq(report.seconds, fmin(report.algorithm_1_seconds, report.apart_seconds));
        sl_graph_free(merged);
        for (uint32_t i = 0; i < 4; i++)
                network_deinit(&nets[i]);
        sl_node_costs_free(costs);
}

static struct sl_tensor matrix(uint32_t rank, int64_t lanes, int64_t rows, int64_t columns)
{
        if (rank == 2)
                return (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {.rank = 2, .dims = {rows, columns}}};
        return (struct sl_tensor){.dtype = SL_DTYPE_F32, .shape = {.rank = 3, .dims = {lanes, rows, columns}}};
}

/* One row by a matrix of each lane, and what one lane has. */
static uint64_t copies_of_products(const char *option, int64_t width)
{
        struct sl_lower_options options;
        struct sl_node_desc lanes = {.op = SL_OP_MATMUL,
                .n_inputs = 2,
                .n_outputs = 1,
                .inputs = {matrix(3, 8, 1, width), matrix(3, 8, width, width)},
                .outputs = {matrix(3, 8, 1, width)}};
        struct sl_node_desc one = {.op = SL_OP_GEMM,
                .n_inputs = 2,
                .n_outputs = 1,
                .inputs = {matrix(2, 0, 1, width), matrix(2, 0, width, width)},
                .outputs = {matrix(2, 0, 1, width)}};
        struct sl_node_host host = {.backend = sl_backend_find("cpu"), .batch_max = 32};

        sl_lower_options_init(&options);
        cr_assert_eq(sl_lower_options_parse(&options, option, NULL), 0);
        host.target = sl_lower_options_target(&options);
        cr_assert_eq(sl_node_alone_copies(&host, &lanes, NULL, 1 << 1), 8 * (uint64_t)(width * width) * sizeof(float));
        return sl_node_alone_copies(&host, &lanes, &one, 1 << 1);
}

/* By the second figures oneDNN's products are a little faster, by the third twice as fast: those are packed otherwise. */
Test(node_costs, lanes_share_what_is_packed_alike_and_is_whole_pages)
{
        static const char a_little[] = "core=product=0.62,onednn_call=1e-9", much[] = "core=product=0.3,onednn_call=1e-9";

        cr_expect_eq(copies_of_products("core=product=1", 64), 0);
        cr_expect_eq(copies_of_products(a_little, 64), 0);
        cr_expect_eq(copies_of_products(much, 64), 8 * 64 * 64 * sizeof(float));
        /* A quarter of a page of each lane. */
        cr_expect_eq(copies_of_products("core=product=1", 16), 8 * 16 * 16 * sizeof(float));
}
