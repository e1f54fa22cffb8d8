/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of float16 on float32: the processor multiplies no float16 that a library would use, and the reference kernels are slow.
 * Inputs and outputs of the model keep their type, with a Cast at each; everything between is float32, so that results are at
 * least as exact as the file asks for, and numbers beyond 65504 do not become infinite. One owner thread.
 */
#pragma once

struct sl_error;
struct sl_graph;

/*
 * Before the passes, so that they see float32. Does nothing to a graph that only moves float16 about, nor to one with bodies.
 * Indices of values stay, those of nodes change. Return: 0, -ENOMEM, -E2BIG, what inference says.
 */
int sl_graph_widen(struct sl_graph *graph, struct sl_error *error);
