/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nodes cost on this machine, measured one by one: what a merge asks (merge/merge.h). Each node is timed once, however often
 * it is asked for, over buffers and constants of its own, images with channels last where the backend has them so. Compiler's
 * process and tools; one owner thread, which runs one thread of oneDNN.
 */
#pragma once

#include "node.h"

#include <stdint.h>

struct sl_node_costs;
struct sl_node_host;

/* @until_ns: what is asked for later is not timed but taken from the work of what was. Return: 0, -ENOMEM. */
int sl_node_costs_new(const struct sl_node_host *host, uint64_t until_ns, struct sl_node_costs **ret_costs);
struct sl_node_costs *sl_node_costs_free(struct sl_node_costs *costs);

/*
 * Seconds of the fastest of a few launches; infinite for a node of unknown size, or that no backend runs. @costs: a struct
 * sl_node_costs; @constants: bit i says that input i is constant.
 */
double sl_node_costs_seconds(void *costs, const struct sl_node_desc *node, uint64_t constants);

/* How many nodes were timed. */
uint32_t sl_node_costs_timed(const struct sl_node_costs *costs);
