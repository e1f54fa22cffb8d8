/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs when, and where each value lies: the nodes of a placement as steps, and a storage for every value. Liveness decides the
 * storages and from when to when each block of the workspace is alive; the memory plan then gives the blocks their offsets.
 *
 *     value --view--> value          share a storage: same bytes
 *     value --in place--> value      share a block: the source's last use is the step that makes the target
 *     model output                   lies in the caller's buffer from the start, when a node makes it (or its view) afresh
 *
 * A body is scheduled like a model, with the ports that its node gives it. A copy step at the end fills an output that nobody makes
 * afresh: a model input, a constant, a second name of another output; or one of integers that other nodes read, since what the
 * caller's memory holds may change before they do.
 */
#pragma once

#include "format.h"
#include "memory_plan.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_backend;
struct sl_placement;

struct sl_storage {
        uint32_t place; /* enum sl_place */
        uint32_t index; /* of the block (WORKSPACE), the value (CONSTANT), the slot or the port */
};

struct sl_step {
        uint32_t node;                    /* of the placement's graph; SL_VALUE_NONE for a copy */
        uint32_t copy_value, copy_output; /* of a copy: from the value to the model's output */
        const struct sl_backend *backend;
        uint64_t scratch_bytes;
        struct sl_split splits[SL_TEAM_SIZE_COUNT];
        struct sl_split_seconds seconds; /* that each of those takes */
        struct sl_blob blob;    /* what the plan file keeps for its kernel; owned */
        uint32_t scratch_block; /* SL_VALUE_NONE without scratch */
        bool dynamic;           /* run by the interpreter: no kernel is made for it */
        uint32_t first_body;    /* among those of its program: sl_program.bodies */
        uint32_t n_bodies;
};

struct sl_schedule {
        uint32_t n_steps, n_values, n_blocks;
        struct sl_step *steps;
        struct sl_storage *storages; /* of each value of the placement's graph */
        struct sl_block *blocks;     /* of values; scratch comes behind */
        uint32_t n_slots;            /* values whose shapes are data-dependent */
        uint32_t *slot_ends;         /* of each slot: the last step that reads it */
        uint64_t workspace_bytes;    /* the last three are filled by sl_schedule_place() */
        uint64_t lower_bound_bytes;
        uint64_t unshared_bytes; /* if no two blocks shared a byte */
};

/*
 * Liveness: steps, storages, blocks without offsets. @body: what it takes and makes of open shape stays in slots, where the node
 * that it is the body of puts and finds it. Return: 0, -ENOMEM.
 */
int sl_schedule_new(const struct sl_placement *placement, bool body, struct sl_schedule **ret_schedule);
struct sl_schedule *sl_schedule_free(struct sl_schedule *schedule);

/* Adds a block for the scratch_bytes of each step and gives every block its offset. Once. Return: 0, -ENOMEM, -EOVERFLOW. */
int sl_schedule_place(struct sl_schedule *schedule);
