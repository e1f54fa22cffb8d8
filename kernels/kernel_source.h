/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel is made from: a node, and what its planner has said in the plan file. Plain values; everything is the caller's.
 */
#pragma once

#include "node.h"
#include "part.h"
#include "target.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A constant input in the form that a backend wants. `form` is opaque bytes of the backend (for oneDNN: the memory
 * descriptor), position-independent, and goes into the plan file; form_bytes 0 means "as in the node's own tensor". Two forms
 * that begin with the same SL_PACK_FORM_KIND_BYTES lie alike, of whatever sizes.
 */
#define SL_PACK_FORM_BYTES      1024
#define SL_PACK_FORM_KIND_BYTES 32
struct sl_packed {
        uint64_t data_bytes; /* 0: input is used unpacked */
        uint32_t form_bytes;
        uint8_t form[SL_PACK_FORM_BYTES];
};

/* Opaque bytes of a backend, position-independent: the plan of a library, compiled code. 64-byte aligned, as long as the plan. */
struct sl_blob {
        const void *data;
        uint64_t bytes;
};

struct sl_kernel_source {
        const struct sl_node_desc *node;

        /* For each input: data_bytes 0 means plain. NULL: all are. */
        const struct sl_packed *packed;

        /*
         * For each input: the (packed) data if it is constant, else NULL. A kernel may look at the values while it is made, but
         * must read them from the binding at launch, all but the scales of a quantized product, which it may keep. To a planner
         * large ones that are not packed may lie at any address.
         */
        const void *const *constants;

        const struct sl_blob *blob;     /* what provide() gave for this node; NULL: nothing */
        const struct sl_target *target; /* what was planned for, also where it runs; NULL: what is typical */
        bool uncut;                     /* to a planner: no team will compute it, splits are not asked for */
        bool planned;                   /* a backend's own: nothing is launched, the kernel needs no code */

        const struct sl_part_times *times; /* to a planner: what parts of it took; NULL: nobody has timed them */
};
