/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each node of a graph runs and how its tensors lie in memory: the graph written anew, with starling.Reorder nodes where a
 * consumer cannot take what its producer makes. One owner thread.
 *
 * Invariants of the result: model inputs and outputs are PLAIN; every node that is run (backends[i] is not NULL) is supported
 * by its backend with exactly the layouts of its values; a node without a backend is a view and computes nothing.
 *
 * On `cpu` activations of rank 3 to 5 become CHANNELS_LAST at the first convolution and stay so until somebody needs them PLAIN.
 * Tensors whose bytes are the same either way (one channel, or one pixel) are relabelled by a view instead. `ref` is PLAIN
 * throughout. A node whose shapes or path are data-dependent runs on `ref`, of whatever shapes it finds.
 */
#pragma once

#include "tensor.h"

#include "target.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_backend;
struct sl_error;
struct sl_graph;
struct sl_node;

/* How a node's activations should lie before and after it, where its backend can run it so. */
struct sl_placement_wish {
        bool wanted;
        enum sl_layout in, out;
};

struct sl_placement {
        struct sl_graph *graph;             /* owned; constants are shared with the source, which must outlive it */
        struct sl_target target;            /* for which it was made */
        const struct sl_backend **backends; /* of each node; NULL for a view */
        const struct sl_backend *copier;    /* of values that have to be in a second place */
        uint32_t *origins;                  /* the node of the source that each node stands for; SL_VALUE_NONE for an added one */
        uint32_t n_reorders;                /* nodes added that move bytes */
};

/*
 * @graph: specialised. @backend: its name, @target: what it plans for, or NULL; what it cannot run is run by `ref`, unless it is
 * alone (SL_PLANNER_ALONE).
 * Return: 0; -ENOTSUP no backend runs a node (the text names node and operator), or there is no such backend; -ENOMEM, -E2BIG.
 */
int sl_placement_new(const struct sl_graph *graph, const char *backend, const struct sl_target *target,
        struct sl_placement **ret_placement, struct sl_error *error);

/* The same, with a wish for each node of @graph; NULL: none. */
int sl_placement_new_as(const struct sl_graph *graph, const char *backend, const struct sl_target *target,
        const struct sl_placement_wish *wishes, struct sl_placement **ret_placement, struct sl_error *error);
struct sl_placement *sl_placement_free(struct sl_placement *placement);

/* Does input @input lie as the node's way wants it? The others (weights, scales, indices) are PLAIN, whatever the way. Pure. */
bool sl_placement_follows(const struct sl_node *node, uint32_t input);

/* Has a tensor the same bytes in both layouts? Pure. */
bool sl_placement_bytes_agree(const struct sl_tensor *tensor);
