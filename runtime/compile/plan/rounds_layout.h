/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an If, a Loop or a Scan needs beside its operands when every shape is known: *settled*. Then its bodies read what is carried
 * from one place and write it to another, rows that grow are written where they stay, slices of a Scan are read where they lie, and
 * nothing is taken from the pool. How often a Loop goes round may be data-dependent all the same.
 *
 *     scratch of the step: | workspace of the body that runs | condition, iteration | carried: two places each | rows | slices |
 *
 * The layout follows from the shapes alone, so that the compiler and the process that serves agree on it without a word in the
 * file. Pure.
 */
#pragma once

#include "node.h"
#include "plan_map.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_STEP_BODIES_MAX 2 /* of an If */

/* A body as its node sees it. Tensors of ports; SL_DIM_UNKNOWN where they are data-dependent. */
struct sl_rounds_body {
        uint32_t n_inputs, n_outputs;
        const struct sl_tensor *inputs, *outputs;
        uint64_t workspace_bytes;
};

#define SL_ROUNDS_NOWHERE UINT64_MAX

struct sl_rounds_layout {
        uint64_t bytes; /* of scratch */
        bool settled;   /* what follows holds; else the pool has room for it while it runs */
        uint32_t n_carried, n_scanned, n_grown;
        uint64_t condition_at, iteration_at; /* in the scratch */
        uint64_t carried_at[SL_NODE_OUTPUTS_MAX][2];

        /* Of an input that is sliced, or an output that grows: how the rows lie in the whole tensor. */
        struct sl_rounds_rows {
                int64_t count;         /* rounds */
                uint64_t outer, inner; /* blocks of so many bytes, @count apart */
                bool backwards;
                uint64_t at; /* where one row is gathered or made, in the scratch; SL_ROUNDS_NOWHERE: it lies whole in the tensor */
        } slices[SL_NODE_INPUTS_MAX], rows[SL_NODE_OUTPUTS_MAX];
};

/* Return: 0; -EINVAL the bodies are not the node's; -EOVERFLOW. */
int sl_rounds_layout(const struct sl_node_desc *node, const struct sl_rounds_body *bodies, uint32_t n_bodies,
        struct sl_rounds_layout *ret_layout);

/* The same for a step of a plan file. -ENOMEM besides. */
int sl_rounds_of_step(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_rounds_layout *ret_layout);
