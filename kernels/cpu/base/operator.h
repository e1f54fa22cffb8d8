/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an operator is written as a loop of our own: plan() turns a node into a flat state that owns nothing (what to walk, with
 * which strides and which function), run() does it. The state is all that such a kernel owns. The other way to write one is a call
 * of oneDNN (onednn/describe.h), and an operator may have both.
 *
 * plan() is a pure function of the node, so what supports() promises is what compile() does. Threads: a state is only read by
 * run(); any thread may plan. Each folder lists its loops in loops.h.
 */
#pragma once

#include "backend.h"
#include "cpu/base/reach.h"
#include "node.h"
#include "op.h"
#include "target.h"

/* What a kernel takes. A plan lowers state_bytes when it did not need all of its state, and says how much scratch a launch needs.
 */
struct sl_cpu_sizes {
        size_t state_bytes, scratch_bytes;
        const struct sl_core_figures
                *core; /* of what is planned for, or NULL: what is taken follows from it, never what is declined */
};

struct sl_cpu_loop {
        size_t state_bytes; /* at most */

        /* Fills @state (zeroed, aligned for any type). False: not a node for this loop. */
        bool (*plan)(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes);

        /* As sl_runner.launch. */
        int (*run)(const void *state, const struct sl_binding *binding);

        /*
         * Into how many units it can be cut along an axis, as sl_runner.units; run() then looks at the binding's part. NULL: not at
         * all.
         */
        int64_t (*units)(const void *state, uint32_t axis);
        int64_t (*stages)(const void *state); /* as sl_runner.stages; NULL: one */

        /* As sl_runner.reach; of constants nobody asks. NULL: nobody knows (base/reach.h). */
        bool (*reach)(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach);

        /*
         * A loop over constant weights in a form of its own (sl_cpu_form()); both NULL for all others. form() says false for an
         * input that stays as it is, and must not depend on the batch. It and repack() see only nodes that plan() has taken.
         */
        bool (*form)(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed);
        int (*repack)(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data);
        bool reads_anywhere; /* repack() takes @plain at any address; else it is aligned for its type */

        /* compile() says which inputs lie packed, all of them in the loop's own form; NULL: input 1 does, or nothing is packed. */
        void (*weights)(void *state, const struct sl_packed *packed);

        /* Bytes of scratch, once it is known what lies packed. NULL: what plan() has said. */
        size_t (*scratch)(const void *state);

        /*
         * A loop over constant tables that say where to read: looks at all of them once, when the kernel is made; @constants holds
         * NULL for an input that is none. NULL: nothing to check. -ENOTSUP; -ERANGE: a table leads outside; -ENOMEM.
         */
        int (*check)(const void *state, const void *const *constants);

        /* About, on such a core; only of loops that stand in algorithm.c. */
        double (*seconds)(const struct sl_core_figures *core, const void *state);

        /*
         * Makes of a copy of a state what seconds() should say of one part. NULL: of the seconds a part has the share that it has
         * of the units.
         */
        void (*narrow)(void *state, const struct sl_part *part);

        const struct sl_cpu_loop *instead; /* tried where plan() declines; packs nothing. NULL: none */

        bool fuses_epilogue; /* takes an epilogue: plan() looks at it */
};

/*
 * What lies flat is cut into units of so many elements, so that two parts share no line, whatever the type. The elements that a
 * part has: from first to end.
 */
#define SL_FLAT_UNIT 64

static inline int64_t sl_flat_units(int64_t elements, uint32_t axis)
{
        return axis == SL_AXIS_ROWS ? (elements + SL_FLAT_UNIT - 1) / SL_FLAT_UNIT : 0;
}

static inline struct sl_part sl_flat_part(const struct sl_part *part, int64_t elements)
{
        struct sl_part units = sl_part_along(part, SL_AXIS_ROWS, sl_flat_units(elements, SL_AXIS_ROWS));
        int64_t end = units.end * SL_FLAT_UNIT;

        return (struct sl_part){.first = units.first * SL_FLAT_UNIT, .end = end < elements ? end : elements};
}

/* Of so many bytes an element; a result and its argument may have different ones. */
static inline bool sl_flat_reach(const struct sl_part *part, int64_t elements, int64_t bytes, struct sl_reach *ret_reach)
{
        struct sl_part flat = sl_flat_part(part, elements);

        return sl_reach_rows(&flat, bytes, ret_reach);
}

/* The form of weights of shape @dims (4), which take @floats when packed; @name says how they lie. */
void sl_cpu_form(struct sl_packed *ret_packed, const char *name, const int64_t dims[4], int64_t floats);

/* The same of weights that lie in float16 or bfloat16 (narrow.h); NONE: in float32. */
void sl_cpu_form_narrow(struct sl_packed *ret_packed, const char *name, const int64_t dims[4], int64_t elements, uint32_t narrow);

/* Was it made by sl_cpu_form()? oneDNN's are not. */
bool sl_cpu_form_is_own(const struct sl_packed *packed);

/*
 * Before a function with a hot loop: compiled for AVX-512, AVX2 and the baseline, chosen when the program is loaded. The build
 * defines it as nothing under sanitizers, whose runtime is not up yet when the choice is made.
 */
#ifndef SL_CPU_CLONES
#error "the build file defines SL_CPU_CLONES"
#endif

static inline bool sl_cpu_is_f32(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_F32;
}

static inline bool sl_cpu_is_nhwc_f32(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_F32 && tensor->layout == SL_LAYOUT_CHANNELS_LAST;
}

/* The types that oneDNN multiplies and adds up in float32. */
static inline bool sl_cpu_is_real(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_F32 || tensor->dtype == SL_DTYPE_BF16;
}

static inline bool sl_cpu_is_byte(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_U8 || tensor->dtype == SL_DTYPE_I8;
}

static inline bool sl_cpu_is_empty(const struct sl_tensor *tensor)
{
        return !sl_shape_elements(&tensor->shape);
}

/* Below rank 3 there is one layout only. */
static inline bool sl_cpu_same_layout(const struct sl_tensor *a, const struct sl_tensor *b)
{
        return a->layout == b->layout || a->shape.rank < 3;
}

static inline bool sl_cpu_same_place(const struct sl_tensor *a, const struct sl_tensor *b)
{
        return sl_shape_equal(&a->shape, &b->shape) && sl_cpu_same_layout(a, b);
}

/* The input of the operator itself (not the epilogue's residual), or NULL when it is absent. */
static inline const struct sl_tensor *sl_cpu_input(const struct sl_node_desc *node, uint32_t index)
{
        uint32_t own = node->n_inputs - (node->epilogue.has_residual ? 1 : 0);

        return index < own && node->inputs[index].dtype != SL_DTYPE_NONE ? &node->inputs[index] : NULL;
}
