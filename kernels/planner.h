/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half of a backend that plans: which nodes it runs, by which algorithm, over constants in which form. It runs in the
 * compiler's process, which has no device, no files and one thread; but for measure(), nothing here touches what it plans for.
 * @target says what that is; NULL: a typical one.
 */
#pragma once

#include "kernel_source.h"
#include "part.h"
#include "target.h"

#include <stdbool.h>
#include <stddef.h>

struct sl_error;

enum sl_planner_trait {
        /* Tensors of float16 stay what they are; else the graph is widened to float32 before its passes. */
        SL_PLANNER_HALVES = 1 << 0,
        /* Activations of int8 become uint8, with zero points that are 128 higher. */
        SL_PLANNER_UNSIGNED_BYTES = 1 << 1,
        /* Its kernels run in any process: they can be timed where they are planned. */
        SL_PLANNER_TIMES = 1 << 2,
        /* Its kernels see no memory of the host: what it cannot run nobody runs in its place. */
        SL_PLANNER_ALONE = 1 << 3,
        /* In bfloat16 it computes whatever lies between products, too: what is float32 among them is a cost. */
        SL_PLANNER_NARROW = 1 << 4,
};

/* What a kernel needs beside its constants. */
struct sl_provision {
        uint64_t scratch_bytes; /* of each launch, at most */
        void *blob;             /* malloc()ed, the caller's; goes into the plan file and comes back with the node. NULL: none */
        uint64_t blob_bytes;
        struct sl_split splits[SL_TEAM_SIZE_COUNT]; /* what should be fastest; zeros: never cut */
        struct sl_split_seconds seconds;            /* what it takes so */
};

struct sl_planner {
        uint32_t traits; /* enum sl_planner_trait */

        /*
         * Once in the compiler's process, before it gives up files and memory: opens what planning takes. May take seconds. NULL:
         * nothing has to be opened. Return: 0; -ENOENT a library is missing; -errno, the text says which.
         */
        int (*prepare)(const struct sl_target *target, struct sl_error *error);

        /* Can this backend run the node as given (types, shapes, layouts, epilogue)? Pure; any thread. */
        bool (*supports)(const struct sl_target *target, const struct sl_node_desc *node);

        /*
         * The node, which supports() accepts, stands for several (starling.MBConv): is it faster than those? Shapes are those of
         * one sample. NULL: nothing is. Pure; any thread.
         */
        bool (*gains)(const struct sl_target *target, const struct sl_node_desc *node);

        /*
         * The algorithms (enum sl_algorithm, never AUTO) that supports() would accept as the node's ALGORITHM attribute, the one
         * that should be fastest by the backend's own model of such a core first, and the seconds that each should take by it (only
         * their ratios count; NULL: nobody asks): this is what counts when nothing is timed. 0: the node has no choice. Its form of
         * packed weights may depend on it. Pure; any thread.
         */
        uint32_t (*algorithms)(const struct sl_target *target, const struct sl_node_desc *node,
                uint32_t ret_algorithms[SL_ALGORITHM_COUNT], double ret_seconds[SL_ALGORITHM_COUNT]);

        /*
         * What there is to plan for on this machine. May block (some tens of milliseconds) and allocate; any thread, but one at a
         * time in the whole machine if the figures shall be worth something. NULL: the backend has no use for it. Return: 0;
         * -ENOTSUP nothing to measure on this processor; -ENOMEM.
         */
        int (*measure)(struct sl_target *ret_target);

        /*
         * May block and allocate. Says in which form constant input @index should be stored for this node (fills @ret_packed;
         * data_bytes 0 if it stays as it is). repack() converts to a form, also one that another batch size of the same node has
         * chosen; @plain may lie at any address. Return: 0, -ENOMEM, -ENOTSUP.
         */
        int (*pack)(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed);
        int (*repack)(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index,
                const struct sl_packed *packed, const void *plain, void *ret_data);

        /*
         * The last word on a node, when its algorithm and all forms are known; may block and allocate. Return: 0; -ENOTSUP the
         * runner would not compile it so; -ENOMEM.
         */
        int (*provide)(const struct sl_kernel_source *source, struct sl_provision *ret_provision, struct sl_error *error);

        /*
         * Of a backend that has several libraries: which of them computes a node, by its name, for people. @blob: what provide()
         * gave for it; NULL: nothing. NULL: the backend has one. Pure.
         */
        const char *(*engine)(const struct sl_blob *blob);
};
