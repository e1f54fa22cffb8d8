/* SPDX-License-Identifier: Apache-2.0 */
/* Merging a few networks, and whether the merged one computes what they do. One thread. */
#pragma once

#include "merge/merge.h"
#include "network.h"

/* Fails the test when they do not merge. The caller frees the graph. */
struct sl_graph *lanes_merge(
        struct network *nets, uint32_t n, const struct sl_merge_costs *costs, struct sl_merge_report *ret_report);

/* Each network on inputs of its own, and the merged graph on all of them, evaluated on `ref` for @batch. */
void lanes_expect_equal(struct network *nets, uint32_t n, const struct sl_graph *merged, int64_t batch, double tolerance);

uint32_t lanes_count(const struct sl_graph *graph, uint32_t op);

/* The only live node of that operator. */
const struct sl_node *lanes_find(const struct sl_graph *graph, uint32_t op);
