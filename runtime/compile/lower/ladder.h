/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch sizes of a model and what its ports look like at each. Pure functions of the graph.
 */
#pragma once

#include "plan.h"

#include <stdint.h>

struct sl_error;
struct sl_graph;

/*
 * Fills name, ports, batchable and batches of @ret_info; the rest is zero. The ladder is 1, 2, 4, ... @batch_max, or {1} for a
 * model that cannot be batched; *ret_single is the graph of the first size. Return: 0; -E2BIG too many ports or sizes; what
 * sl_graph_specialise() says at batch 1.
 */
int sl_ladder_choose(const struct sl_graph *graph, uint32_t batch_max, struct sl_plan_info *ret_info, struct sl_graph **ret_single,
        struct sl_error *error);

/* Name and ports alone, as far as they are known without a size for the batch. Return: 0; -E2BIG too many ports. */
int sl_ladder_describe(const struct sl_graph *graph, struct sl_plan_info *ret_info, struct sl_error *error);

/* Are the ports of @graph, specialised for @batch, those that @info promises? */
int sl_ladder_confirm(const struct sl_graph *graph, uint32_t batch, const struct sl_plan_info *info, struct sl_error *error);
