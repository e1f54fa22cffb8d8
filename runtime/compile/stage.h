/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the nodes of a placement are run one after the other outside of a plan: seeded inputs, and a buffer for each value from the
 * node that makes it to the last that reads it. Buffers that are given back are taken again, the smallest that fits, so that a
 * second run takes no new memory and its caches look like those of a workspace. Compiler's process only; one owner thread.
 */
#pragma once

#include "node.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_placement;
struct sl_stage;

/* The node that is on: valid until the next one. */
struct sl_stage_scene {
        struct sl_node_desc desc;
        const void *constants[SL_NODE_INPUTS_MAX]; /* plain data of constant inputs; NULL for activations */
        const void *inputs[SL_NODE_INPUTS_MAX];    /* data of activations; NULL where the node that makes them did not run */
        void *outputs[SL_NODE_OUTPUTS_MAX];
        bool complete; /* every activation is there */
};

/* Return: 0, -ENOMEM. */
int sl_stage_new(const struct sl_placement *placement, struct sl_stage **ret_stage);
struct sl_stage *sl_stage_free(struct sl_stage *stage);

/* Takes the buffers of the node's outputs. Return: 0; -ENOMEM; what the shape rules say. */
int sl_stage_enter(struct sl_stage *stage, uint32_t node, struct sl_stage_scene **ret_scene);

/* Gives back what only this node still had to read. @done: its outputs are there for the others. */
void sl_stage_leave(struct sl_stage *stage, uint32_t node, bool done);

/* Before the next run over the graph: only the inputs are there. */
void sl_stage_clear(struct sl_stage *stage);

/* For the node's scratch; @ret_data stays taken until sl_stage_leave(). Return: 0, -ENOMEM. */
int sl_stage_scratch(struct sl_stage *stage, uint64_t bytes, void **ret_data);
