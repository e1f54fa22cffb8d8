/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference run: a placement run once, node by node, on seeded inputs and with the backends' own choice of algorithm, so that
 * each node is seen with the activations that really reach it. Buffers live from the node that makes them to the last that reads
 * them. Compiler's process only; one owner thread.
 */
#pragma once

#include "node.h"

#include <stdint.h>

struct sl_placement;
struct sl_node_run;

/* One node, after it has run: valid during the call. */
struct sl_reference_node {
        uint32_t node; /* of the placement's graph */
        const struct sl_node_desc *desc;
        const void *const *constants;  /* plain data of constant inputs; NULL for activations */
        const void *const *inputs;     /* data of activations */
        const struct sl_node_run *run; /* its outputs */
};

/* Return: 0 to go on; 1 to stop; -errno. */
typedef int sl_reference_visitor(void *context, const struct sl_reference_node *reference);

/* A node that cannot run alone is not visited, nor is what reads its results. Return: 0; 1 when the visitor stopped it; -ENOMEM;
 * what the visitor says. */
int sl_reference_run(const struct sl_placement *placement, sl_reference_visitor *visit, void *context);
