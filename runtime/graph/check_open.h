/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a graph of any size could be computed at some size. Pure; the graph's owner thread. */
#pragma once

struct sl_error;
struct sl_graph;

/*
 * A dimension that would have to be one number for one node and another for another suits no request. What is not certain is not
 * said. Return: 0; -EBADMSG both nodes and their numbers are in the text; -ENOMEM.
 */
int sl_graph_check_open(const struct sl_graph *graph, struct sl_error *error);
