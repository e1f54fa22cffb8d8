/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes with bodies: If (then, else), Loop and Scan (one each). A body is a graph of its own, owned by its node; what it reads of
 * the outer graph comes in through further inputs at the end, the same for both bodies of an If. Constants are in the body itself.
 *
 *     If    node: condition, captured...                          body: captured...
 *     Loop  node: trip count, condition, carried..., captured...  body: iteration, condition, carried..., captured...
 *           body makes: condition, carried..., rows of the growing outputs...
 *     Scan  node: carried..., scanned..., captured...             body: carried..., slices..., captured...
 *           body makes: carried..., rows...
 *
 * One owner thread.
 */
#pragma once

#include "graph.h"

/* Levels of bodies inside bodies. */
#define SL_GRAPH_DEPTH_MAX 4

static inline bool sl_op_has_bodies(uint32_t op)
{
        return sl_op_traits(op) & SL_OP_CONTROL;
}

/* What goes into and comes out of a node with bodies. */
struct sl_control {
        uint32_t op;
        const struct sl_attrs *attrs;
        uint32_t n_inputs, n_outputs, n_bodies;
        struct sl_tensor inputs[SL_NODE_INPUTS_MAX]; /* dtype SL_DTYPE_NONE: absent */
        struct sl_tensor outputs[SL_NODE_OUTPUTS_MAX];
        struct sl_graph *const *bodies;
        int64_t trips; /* rounds of a Loop; SL_DIM_UNKNOWN */
};

/*
 * Infers the bodies and from them control->outputs. A dimension that a body changes from round to round is unknown; the inputs of
 * the bodies then say so. Return: 0; -EINVAL the numbers of inputs, outputs and bodies, or their types, do not fit; -ENOTSUP the
 * rank depends on the path; or what the bodies say.
 */
int sl_control_infer(struct sl_control *control, struct sl_error *error);

/* The same for a node of a graph: sl_graph_infer_node() calls it. */
int sl_graph_infer_control(struct sl_graph *graph, uint32_t node, struct sl_error *error);
