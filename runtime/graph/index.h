/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who makes and who uses a value, without a walk over the nodes. What the index says is a hint that graph.c checks against the
 * nodes: a maker may have changed, a user may be dead or use the value no more. But no user is missing, for all that gives a node
 * an input tells the index. It is made when it is asked for the first time and catches up with nodes that came since.
 * Without memory there is no index, and graph.c walks. Private to this folder; one owner thread, that of the graph.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_graph;
struct sl_graph_index;

struct sl_graph_index *sl_graph_index_new(void);
struct sl_graph_index *sl_graph_index_free(struct sl_graph_index *index);

/* Brings the index up to date. False: there is no memory for it. */
bool sl_graph_index_ready(struct sl_graph_index *index, const struct sl_graph *graph);

/* The node uses, or makes, the value from now on. Of no effect for a node that the index has not seen yet. */
void sl_graph_index_use(struct sl_graph_index *index, uint32_t value, uint32_t node);
void sl_graph_index_make(struct sl_graph_index *index, uint32_t value, uint32_t node);

/* The node that made the value when it was last told; SL_VALUE_NONE. Only when ready. */
uint32_t sl_graph_index_maker(const struct sl_graph_index *index, uint32_t value);

/* The users, one after the other: *state starts at 0. SL_VALUE_NONE behind the last one. A node may come twice. Only when ready. */
uint32_t sl_graph_index_next_user(const struct sl_graph_index *index, uint32_t value, uint32_t *state);
