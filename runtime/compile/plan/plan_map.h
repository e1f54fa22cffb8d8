/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan file in memory: where its sections lie. Private to sl_plan. Immutable after sl_plan_open(), but for the count of its
 * holders and the store, which has a lock; any thread.
 *
 * Invariant: plan_check.c has walked all of it, so an index or an offset in it may be followed without looking again.
 */
#pragma once

#include "backend.h"
#include "format.h"

#include <stdatomic.h>
#include <stdbool.h>

struct sl_error;
struct sl_packed_store;

struct sl_plan {
        atomic_uint holders;
        int fd;
        struct sl_plan *base;     /* held; NULL of a plan that stands alone */
        struct sl_plan **members; /* held; those whose constants it has pieces of */
        uint32_t n_members;
        const uint8_t **gathered; /* where the constants are that are pieces: in a member's mapping, or */
        void *side_by_side;       /* here; NULL: none has several */
        uint64_t side_by_side_bytes;
        void (*ended)(void *context, const struct sl_plan *plan); /* NULL: nobody watches for its end */
        void *ended_context;
        struct sl_packed_store *packed; /* of all instances of a plan of any size; NULL of another one */
        const uint8_t *bytes; /* the whole file, mapped read-only; NULL before that */
        uint64_t n_bytes;
        bool intact; /* nothing can have damaged it since it was written, or since its checksum was found right: it is not read for
                        that */
        bool is_for_people; /* its info is read and nothing runs: what its base or its members have is not looked at */
        const struct sl_plan_header *header;
        _Atomic uint64_t sum;      /* of a file that has none: when it was first asked for; whoever computes it comes to the same */
        struct sl_plan_info *info; /* made from its sections; one block with its ports; texts are in the file */
        const struct sl_plan_backend *backends;
        const struct sl_plan_program *programs;
        const struct sl_plan_step *steps;
        const char *names; /* where texts begin */
        const struct sl_plan_operand *operands;
        const struct sl_attr *attrs;
        const struct sl_plan_constant *constants;
        const struct sl_plan_piece *pieces;
        const uint8_t *forms;
        const struct sl_plan_blob *blobs;
        const uint8_t *blob_data;
        const uint8_t *data;
};

/*
 * Checks magic, sizes, version, checksum (unless it is intact), key and sections of the mapped bytes, points the sections, then
 * checks every index, offset, type and name in them. Return: 0, -EBADMSG, -EPROTONOSUPPORT; the text says what is wrong.
 */
int sl_plan_check(struct sl_plan *plan, struct sl_error *error);

/* Of the node that it computes; "": it has none. */
static inline const char *sl_plan_step_name(const struct sl_plan *plan, const struct sl_plan_step *step)
{
        return plan->names + step->name;
}

/* The bytes of a constant, wherever they lie. */
static inline const uint8_t *sl_plan_constant_data(const struct sl_plan *plan, const struct sl_plan_constant *constant)
{
        if (constant->in_base == SL_PLAN_OWN)
                return plan->data + constant->offset;
        if (constant->in_base == SL_PLAN_PIECES)
                return plan->gathered[constant - plan->constants];
        return plan->base->data + plan->base->constants[constant->base_index].offset + constant->base_offset;
}

/* Where bytes of a constant that is the plan's own lie in its file. */
static inline uint64_t sl_plan_file_offset(const struct sl_plan *plan, const struct sl_plan_constant *constant, uint64_t offset)
{
        return plan->header->sections[SL_PLAN_SECTION_DATA].offset + constant->offset + offset;
}

/* Blob @number of a backend of the plan. */
static inline struct sl_blob sl_plan_blob(const struct sl_plan *plan, const struct sl_plan_backend *backend, uint64_t number)
{
        const struct sl_plan_blob *blob = &plan->blobs[backend->first_blob + number];

        return (struct sl_blob){.data = plan->blob_data + blob->offset, .bytes = blob->bytes};
}

/* Elements of a section. */
static inline uint64_t sl_plan_count(const struct sl_plan *plan, enum sl_plan_section_id id)
{
        return plan->header->sections[id].count;
}

/*
 * The step as a kernel wants it, with the forms and data of its constants. The arrays have SL_NODE_INPUTS_MAX elements.
 * Return: 0; -EBADMSG when shapes and types are not what the operator makes of its inputs.
 */
struct sl_plan_call {
        struct sl_node_desc node;
        struct sl_packed packed[SL_NODE_INPUTS_MAX];
        const void *constants[SL_NODE_INPUTS_MAX];
};
int sl_plan_read_step(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_plan_call *ret_call);
