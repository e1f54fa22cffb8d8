/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers of a run of a placement, node by node and outside of a plan: seeded inputs, and one for each value from the node that
 * makes it to the last that reads it. Buffers that are given back are taken again, the smallest that fits, so that a
 * second run takes no new memory and its caches look like those of a workspace. Compiler's process only; one owner thread.
 */
#pragma once

#include "node.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_placement;
struct sl_run_buffers;

/* The node that is on: valid until the next one. */
struct sl_run_node {
        struct sl_node_desc desc;
        const void *constants[SL_NODE_INPUTS_MAX]; /* plain data of constant inputs; NULL for activations */
        const void *inputs[SL_NODE_INPUTS_MAX];    /* data of activations; NULL where the node that makes them did not run */
        void *outputs[SL_NODE_OUTPUTS_MAX];
        bool complete; /* every activation is there */
};

/* Return: 0, -ENOMEM. */
int sl_run_buffers_new(const struct sl_placement *placement, struct sl_run_buffers **ret_buffers);
struct sl_run_buffers *sl_run_buffers_free(struct sl_run_buffers *buffers);

/* Takes the buffers of the node's outputs. Return: 0; -ENOMEM; what the shape rules say. */
int sl_run_buffers_enter(struct sl_run_buffers *buffers, uint32_t node, struct sl_run_node **ret_current);

/* Gives back what only this node still had to read. @done: its outputs are there for the others. */
void sl_run_buffers_leave(struct sl_run_buffers *buffers, uint32_t node, bool done);

/* Before the next run over the graph: only the inputs are there. */
void sl_run_buffers_clear(struct sl_run_buffers *buffers);

/* For the node's scratch; @ret_data stays taken until sl_run_buffers_leave(). Return: 0, -ENOMEM. */
int sl_run_buffers_scratch(struct sl_run_buffers *buffers, uint64_t bytes, void **ret_data);
