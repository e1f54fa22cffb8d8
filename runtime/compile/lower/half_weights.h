/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option `weights`: constant weights in float16 or bfloat16, which kernels widen where they use them; all arithmetic stays
 * float32. The nodes of a graph are marked with the attribute WEIGHTS; a kernel that has no such form leaves its weights as they
 * are. Rounded to the nearest, once. One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_node;

/*
 * @weights: enum sl_weights. After the passes. A node of which a weight would become infinite is marked with float32: it stays so.
 * Return: 0; -ENOSPC a node has no room for the attribute.
 */
int sl_half_weights_mark(struct sl_graph *graph, uint32_t weights, struct sl_error *error);

/* Was it to have them, but one does not fit? Pure. */
bool sl_half_weights_overflow(const struct sl_node *node);
