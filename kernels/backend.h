/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend runs nodes on one kind of device. There are two at the start: `ref` (plain C, the oracle: any operator, any type
 * that ONNX allows, PLAIN layout only) and `cpu` (oneDNN and own loops, PLAIN or CHANNELS_LAST).
 *
 * Life of a kernel. In the compiler's child process: supports() -> pack() turns constant inputs into the form that the
 * kernel wants, once per model. In the process that serves: compile() builds an executable kernel for one batch size,
 * over packed constants that lie in the mapped plan file and are shared by all batch sizes and threads.
 */
#pragma once

#include "core_figures.h"
#include "node.h"

#include <stdbool.h>
#include <stddef.h>

struct sl_error;
struct sl_pace;
struct sl_kernel; /* opaque; each backend has its own */

/*
 * A constant input in the form that a backend wants. `form` is opaque bytes of the backend (for oneDNN: the memory
 * descriptor), position-independent, and goes into the plan file; form_bytes 0 means "as in the node's own tensor".
 */
#define SL_PACK_FORM_BYTES 1024
struct sl_packed {
        uint64_t data_bytes; /* 0: input is used unpacked */
        uint32_t form_bytes;
        uint8_t form[SL_PACK_FORM_BYTES];
};

/* Pointers of one launch. All 64-byte aligned where the plan owns them; client memory is 64-byte aligned too. */
struct sl_binding {
        const void *const *inputs; /* n_inputs; NULL for an absent one; packed data for packed inputs */
        void *const *outputs;      /* n_outputs */
        void *scratch;             /* at least the kernel's scratch_bytes, 64-byte aligned */

        /* Where a kernel that fills fewer rows of output 0 than it has says how many; the others are 0. NULL: nobody asks. */
        int64_t *made;

        /* Ends the launch before it is done, where the kernel looks at it (those of ref do). NULL: nobody ends it. */
        struct sl_pace *pace;
};

struct sl_backend {
        const char *name; /* "ref", "cpu": as in the config */

        /*
         * What one elementary step (op.h) counts here. The unit is a multiply-add among those that a core does at once: with two
         * units of 16 lanes 32 of them take as long as one that is done alone, in double, as `ref` does them all.
         */
        uint32_t step_weight;

        /* Can this backend run the node as given (types, shapes, layouts, epilogue)? Pure; any thread. */
        bool (*supports)(const struct sl_node_desc *node);

        /*
         * The algorithms (enum sl_algorithm, never AUTO) that supports() would accept as the node's ALGORITHM attribute, the one
         * that should be fastest by the backend's own model of such a core first, and the seconds that each should take by it (only
         * their ratios count; NULL: nobody asks): this is what counts when nothing is timed. 0: the node has no choice. Its form of
         * packed weights may depend on it. Pure; any thread.
         */
        uint32_t (*algorithms)(const struct sl_node_desc *node, const struct sl_core_figures *core,
                uint32_t ret_algorithms[SL_ALGORITHM_COUNT], double ret_seconds[SL_ALGORITHM_COUNT]);

        /*
         * What a core of this machine reaches: what algorithms() should be told. May block (some tens of milliseconds) and
         * allocate; any thread, but one at a time in the whole machine if the figures shall be worth something. NULL: the backend
         * has no use for them. Return: 0; -ENOTSUP nothing to measure on this processor; -ENOMEM.
         */
        int (*measure)(struct sl_core_figures *ret_figures);

        /*
         * Compiler's process, may block and allocate. Says in which form constant input @index should be stored for this node
         * (fills @ret_packed; data_bytes 0 if it stays as it is). @form_of: if not NULL, a form chosen earlier by another
         * batch size of the same node, to be kept. Then repack() converts. Return: 0, -ENOMEM, -ENOTSUP.
         */
        int (*pack)(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed);
        int (*repack)(
                const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed, const void *plain, void *ret_data);

        /*
         * Load time, in the process that serves; may block and allocate. @packed[i] for each input: data_bytes 0 means plain.
         * @constants[i] is the (packed) data if input i is constant, else NULL: a kernel may look at the values now but must
         * read them from the binding at launch, all but the scales of a quantized product, which it may keep. Return: 0; -ENOTSUP
         * if !supports(); -ENOMEM.
         */
        int (*compile)(const struct sl_node_desc *node, const struct sl_packed *packed, const void *const *constants,
                struct sl_kernel **ret_kernel, struct sl_error *error);

        /* Bytes of scratch that each launch needs. */
        size_t (*scratch_bytes)(const struct sl_kernel *kernel);

        /*
         * Request path: computes on the calling thread and returns; never allocates, never waits. One launch of a kernel at
         * a time. Return: 0; -ERANGE when an index in the data lies outside its bounds; what the binding's pace says (outputs are
         * then undefined).
         */
        int (*launch)(struct sl_kernel *kernel, const struct sl_binding *binding);

        /* NULL is fine. Returns NULL. */
        struct sl_kernel *(*kernel_free)(struct sl_kernel *kernel);
};

extern const struct sl_backend sl_backend_ref;
extern const struct sl_backend sl_backend_cpu;

/* By name; NULL if there is none. */
const struct sl_backend *sl_backend_find(const char *name);
