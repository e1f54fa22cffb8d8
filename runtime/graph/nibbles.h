/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices of 4 bits an element in a graph (kernels/shape/nibbles.h), from what files have, and back to floats. One owner thread.
 */
#pragma once

#include <stdint.h>

struct sl_backend;
struct sl_error;
struct sl_graph;
struct sl_node;
struct sl_target;

/*
 * The products by such matrices that @backend has no kernel for become MatMul by float32 constants. NULL: all of them. Return: 0;
 * -ENOMEM; as sl_graph_infer().
 */
int sl_graph_expand_nibbles(
        struct sl_graph *graph, const struct sl_backend *backend, const struct sl_target *target, struct sl_error *error);
