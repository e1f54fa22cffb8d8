/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan file: one header, then the bytes of the constants, then sections of plain structs. Everything is found by index or by
 * offset, nothing by pointer; all numbers are little-endian as the processor has them, since a plan belongs to one kind of
 * processor.
 *
 *     header | DATA | INFO | PORTS | NAMES | BACKENDS | PROGRAMS | STEPS | OPERANDS | ATTRS | CONSTANTS | PIECES | MEMBERS | FORMS
 *            | BLOBS | BLOB_DATA
 *
 *     info                          -> its inputs, the optional ones, its outputs, in PORTS; texts in NAMES, each terminated there
 *     backend                       -> who runs steps, by name and by what its part of the plan depends on; its blobs, in order
 *     program (one per batch size)  -> its steps, in order
 *     program of a body             -> behind those, nested ones behind those that run them; of one step each. Its workspace lies
 *                                      in the scratch of that step, its ports are what the step gives it: rounds.h
 *     step                          -> its backend, its operands (inputs, then outputs) and attributes, and a blob of its backend
 *     operand                       -> a place: workspace offset, constant, or a port of the model or the body
 *     constant                      -> bytes in DATA, and the form in FORMS in which a backend wants them; or a constant of the
 *                                      base
 *     piece                         -> bytes of a constant of a member's plan; a constant of several is their bytes in order
 *     blob                          -> bytes in BLOB_DATA, of any number, which nobody but its backend understands
 *
 * A plan of other sizes of the same model may be *derived* from a base plan: constants that are equal in content and form are not
 * in it, but in the base, which is named by its identity in the header; a merged plan is the base of its members' plans, whose
 * constants are parts of its own. A base stands alone: there are no chains.
 *
 * The other way round, a merged plan may leave its lanes' constants where they are, in the plans of its *members*: those are named
 * in MEMBERS, and its constants are pieces of theirs (share.h). A member stands alone, too.
 *
 * The writer zeroes every byte that it does not use, so that the same model gives the same file. The checksum lies in front of
 * everything that it covers. A reader trusts nothing: plan_check.c walks all of it before any use.
 */
#pragma once

#include "attr.h"
#include "backend.h"
#include "base/bytes.h"
#include "node.h"
#include "part.h"
#include "plan_info.h"
#include "step_choice.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define SL_PLAN_MAGIC   "SLPLAN\r\n"
#define SL_PLAN_VERSION 26u

/* No tensor, constant or workspace of a plan is larger: sums of a few such numbers cannot overflow. */
#define SL_PLAN_BYTES_MAX (1ull << 44)

/* What every plan depends on besides the file's own version; its backends have keys of their own. Two plans with different keys do
 * not understand each other. */
struct sl_plan_key {
        uint64_t operators; /* hash of the names of all operators and attributes, in order */
        uint32_t struct_bytes[14];
};

enum sl_place {
        SL_PLACE_NONE,      /* an absent input: NULL */
        SL_PLACE_WORKSPACE, /* offset: from the start of the workspace */
        SL_PLACE_CONSTANT,  /* index: of the constant */
        SL_PLACE_INPUT,     /* index: of the input port of the model, or of the body */
        SL_PLACE_OUTPUT,    /* index: of its output port */
        SL_PLACE_SLOT,      /* index: of a tensor whose shape is known when it runs; offset 1: read for the last time */
        SL_PLACE_COUNT,
};

/* Pointers are 0; texts are offsets in NAMES. */
struct sl_plan_description {
        struct sl_plan_info info;
        uint32_t name, symbols[SL_SYMBOLS_MAX];
        uint32_t reserved; /* 0 */
};

struct sl_plan_port {
        struct sl_port port;
        uint64_t name, labels;
};

#define SL_PLAN_BACKENDS_MAX 16

/* A backend that some step names. All blobs are somebody's: the first ones those of the first, the next those of the second. */
struct sl_plan_backend {
        char name[SL_BACKEND_NAME_BYTES];
        char key[SL_BACKEND_KEY_BYTES]; /* sl_backend.key, terminated */
        uint64_t first_blob, n_blobs;
};

struct sl_plan_blob {
        uint64_t offset, bytes; /* in BLOB_DATA; offset is a multiple of 64 */
};

#define SL_PLAN_NO_BLOB UINT32_MAX

struct sl_plan_operand {
        struct sl_tensor tensor;
        uint32_t place; /* enum sl_place */
        uint32_t index;
        uint64_t offset;
};

struct sl_plan_step {
        uint32_t name;    /* of the node, in NAMES; 0: it has none. For people, and for plans of other sizes */
        uint32_t op;      /* enum sl_op */
        uint32_t backend; /* number in BACKENDS; of a dynamic step, none */
        uint32_t blob;    /* of its backend's, or SL_PLAN_NO_BLOB */
        uint32_t n_inputs, n_outputs, n_attrs;
        uint32_t dynamic; /* 1: shapes, or the path, are data-dependent: the interpreter runs it */
        struct sl_epilogue epilogue;
        struct sl_step_choice choice;               /* for people only */
        struct sl_split splits[SL_TEAM_SIZE_COUNT]; /* how teams compute it; of a dynamic step, zeros */
        uint64_t first_operand, first_attr;
        uint64_t scratch_offset, scratch_bytes; /* inside the workspace */
        uint64_t first_body, n_bodies;          /* programs, of a dynamic step: 2 of If, 1 of Loop and Scan; its alone */
};

struct sl_plan_program {
        uint64_t batch; /* 0: of a body */
        uint64_t first_step, n_steps;
        uint64_t workspace_bytes;
        uint64_t n_slots;
        uint64_t n_inputs, n_outputs, first_operand; /* of a body: inputs, then outputs: port i, or a slot if its shape is open. Of
                                                        a program of any size, which a request says: its inputs, in the same way */
        uint64_t dynamic_bytes, dynamic_steps;       /* what one run may take: options dynamic_bytes_max, dynamic_steps_max */
        uint64_t work;                               /* elementary steps that one run may take on ref: option work_max */
};

/* Where the bytes of a constant are. */
enum sl_plan_sharing {
        SL_PLAN_OWN,    /* in DATA */
        SL_PLAN_WHOLE,  /* they are constant base_index of the base, which has the same size, form and hash */
        SL_PLAN_PART,   /* they lie in it: the base is a merged plan, this one is a lane's; the form is its own */
        SL_PLAN_PIECES, /* this one is merged: they are pieces of its members' constants, in order */
        SL_PLAN_SHARING_COUNT,
};

/* Mappings that the constants of one plan may take. */
#define SL_PLAN_SIDE_BY_SIDE_MAX 8192u

/* Bytes of a constant of a member's plan, which are its own there. Where a constant has more than one piece, each is whole pages of
 * the member's file, so that they can be mapped side by side. */
struct sl_plan_piece {
        uint32_t member, index; /* in MEMBERS, and of the constant in that plan */
        uint64_t offset, bytes; /* in that constant; a multiple of 64 */
};

struct sl_plan_constant {
        uint64_t offset, bytes; /* in DATA; offset is a multiple of 64; 0 of one in the base */
        uint64_t form_offset;   /* in FORMS */
        uint32_t form_bytes;    /* 0 for a plain one */
        uint32_t packed;        /* 1 if the data is in the form, 0 if it is the tensor's own bytes */
        uint64_t hash;          /* of content and form */
        uint32_t in_base;       /* enum sl_plan_sharing */
        uint32_t base_index;
        uint64_t base_offset;           /* of a PART: where in constant base_index of the base it begins, a multiple of 64 */
        uint64_t first_piece, n_pieces; /* of PIECES, else 0 */
};

/* id, element type: also the order in the file, but for DATA, which comes first */
#define SL_PLAN_SECTIONS(X)                                                                                                        \
        X(INFO, struct sl_plan_description)                                                                                        \
        X(PORTS, struct sl_plan_port)                                                                                              \
        X(NAMES, uint8_t)                                                                                                          \
        X(BACKENDS, struct sl_plan_backend)                                                                                        \
        X(PROGRAMS, struct sl_plan_program)                                                                                        \
        X(STEPS, struct sl_plan_step)                                                                                              \
        X(OPERANDS, struct sl_plan_operand)                                                                                        \
        X(ATTRS, struct sl_attr)                                                                                                   \
        X(CONSTANTS, struct sl_plan_constant)                                                                                      \
        X(PIECES, struct sl_plan_piece)                                                                                            \
        X(MEMBERS, struct sl_plan_identity)                                                                                        \
        X(FORMS, uint8_t)                                                                                                          \
        X(BLOBS, struct sl_plan_blob)                                                                                              \
        X(BLOB_DATA, uint8_t)                                                                                                      \
        X(DATA, uint8_t)

enum sl_plan_section_id {
#define X(id, type) SL_PLAN_SECTION_##id,
        SL_PLAN_SECTIONS(X)
#undef X
                SL_PLAN_SECTION_COUNT,
};

struct sl_plan_section {
        uint64_t offset; /* from the start of the file, a multiple of 64 */
        uint64_t count;  /* of elements */
};

struct sl_plan_header {
        char magic[8];
        uint32_t version;
        uint32_t header_bytes;
        uint64_t checksum; /* XXH3-64 of all that follows this field, to the end of the file (plan_sum.h) */
        uint64_t file_bytes;
        struct sl_plan_identity base; /* of a derived plan; zeros of one that stands alone */
        struct sl_plan_key key;
        struct sl_target target; /* for which it was planned */
        struct sl_plan_section sections[SL_PLAN_SECTION_COUNT];
};

#define SL_PLAN_NOT_SUMMED   0 /* nobody has computed the checksum: of a file in sealed memory */
#define SL_PLAN_CHECKED_FROM (offsetof(struct sl_plan_header, checksum) + sizeof(uint64_t))

static_assert(offsetof(struct sl_plan_header, file_bytes) == SL_PLAN_CHECKED_FROM, "the checksum covers all that follows it");

/* Bytes of one element of a section. */
size_t sl_plan_section_bytes(enum sl_plan_section_id id);

/* The key of this process: its operators, its structs. */
struct sl_plan_key sl_plan_key_here(void);
