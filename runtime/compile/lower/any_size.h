/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which models have a plan of any size: one of which every step is dynamic, so that the interpreter finds the shapes by the same
 * rules as the compiler, whatever sizes a request brings. Nothing is guessed from some sizes: the graph is the file's with all open
 * dimensions unknown. Compiler's process; pure.
 */
#pragma once

struct sl_error;
struct sl_graph;
struct sl_lower_options;

/*
 * For models without bodies, random numbers and what counts by the data, with weights that may lie beside those of other plans.
 * Return: 0; -ENOTSUP with the node and what it lacks.
 */
int sl_any_size_suits(const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_error *error);
