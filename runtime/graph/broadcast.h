/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repetitions that an operator makes anyway. An Expand whose shape an exporter computes is settled only when the batch is, so this
 * is no pass over the open graph: the passes cannot tell what it repeats.
 */
#pragma once

#include <stdint.h>

struct sl_graph;

/*
 * Node @index, where it broadcasts: each input that an Expand makes, and that some other input of the node's own shape would repeat
 * as well, becomes what the Expand read. Only where all shapes are known. The Expand stays, perhaps unused.
 */
void sl_broadcast_skip_expands(struct sl_graph *graph, uint32_t index);
