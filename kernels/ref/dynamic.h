/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running nodes whose shapes, or whose paths, are data-dependent: one node at a time, shapes worked out from the actual inputs,
 * memory from a bounded pool, kernels of `ref` unless the caller has better ones. One thread; nobody else touches the pool
 * meanwhile.
 */
#pragma once

#include "live.h"
#include "node.h"

#include <stdbool.h>

struct sl_backend;
struct sl_error;
struct sl_kept_kernel;
struct sl_kernel;
struct sl_pace;

/* For what a kernel is wanted. */
struct sl_dynamic_wish {
        const struct sl_node_desc *node; /* its shapes are static */
        const void *const *constants;    /* of each input, its data where those are constant, else NULL. NULL: none are */
        uint64_t work;                   /* elementary steps */
        bool at_once;                    /* `ref` cannot run it so: it is in another layout */
        bool returns;                    /* it will run again: the run is recorded */
};

/* Inputs, from the first on, of which a kernel may have constants in a form of its own. */
#define SL_DYNAMIC_PACKED_MAX 6

struct sl_dynamic_kernel {
        const struct sl_backend *backend;
        struct sl_kernel *kernel;
        const void *packed[SL_DYNAMIC_PACKED_MAX]; /* what it reads in place of an input; NULL: the input */
        uint64_t *spent_ns;          /* where none is better yet: the own time of the thread that `ref` takes is added there; NULL:
                                        nobody asks */
        struct sl_kept_kernel *kept; /* by which who found it keeps it; NULL */
};

/* Is there a better kernel than that of `ref`? What it reads packed stays until the next is looked for. */
typedef bool (*sl_dynamic_find_fn)(void *context, const struct sl_dynamic_wish *wish, struct sl_dynamic_kernel *ret_kernel);

/* A kernel that has been launched: what a run of the same shapes would launch as well. */
struct sl_dynamic_launch {
        const struct sl_node_desc *node; /* with its tensors as they lay */
        const struct sl_dynamic_kernel *kernel;
        const struct sl_live *inputs; /* [node->n_inputs] */
        struct sl_live *outputs;      /* [node->n_outputs], whose numbers are given here */
        uint64_t scratch_bytes;
};

/* Who notes what a run does, to do it again. */
struct sl_dynamic_recorder {
        /* Before each node: its @inputs, of which some are parameters. */
        void (*begin)(void *context, const struct sl_node_desc *node, const struct sl_live *inputs);
        /* Behind each launch, of which a node may take several. */
        void (*launched)(void *context, const struct sl_dynamic_launch *launch);
        void *context;
};

struct sl_dynamic {
        struct sl_pool pool;
        uint64_t steps_left;  /* nodes and rounds of loops that may still run: what bounds a loop */
        uint64_t work_left;   /* elementary steps (op.h) that they may still be */
        struct sl_pace *pace; /* looked at before each of them and while they run; NULL: nothing ends them */
        struct sl_error *error;
        sl_dynamic_find_fn find; /* NULL: all run on `ref` */
        void *find_context;
        bool layouts;                               /* tensors may be CHANNELS_LAST between nodes (layouts.h); else all are PLAIN */
        const struct sl_dynamic_recorder *recorder; /* NULL: nobody notes the run */
};

/* One run of a body: @inputs are the caller's, @ret_outputs are new holders. Return: 0, or what a node said. */
typedef int (*sl_body_fn)(void *context, uint32_t body, const struct sl_live *inputs, uint32_t n_inputs,
        struct sl_live *ret_outputs, uint32_t n_outputs);

/*
 * Runs @node: its operator, attributes, epilogue and numbers of inputs and outputs are read; its tensors are filled here, from
 * @inputs. Those that hold data may be parameters. @ret_outputs: n_outputs new holders.
 * Return: 0; -ENOMEM the pool's limit; -E2BIG no steps left, or less work than the node is; -EINVAL shapes that the operator
 * refuses; -ENOTSUP no such kernel; -ERANGE an index is out of bounds; what the pace says. The text says which operator, and the
 * limit.
 */
int sl_dynamic_run(
        struct sl_dynamic *dynamic, struct sl_node_desc *node, const struct sl_live *inputs, struct sl_live *ret_outputs);

/* Turns what a node has made into what everybody reads: PLAIN. Return: 0; -ENOMEM as above. */
int sl_dynamic_settle(struct sl_dynamic *dynamic, struct sl_live *live);

/*
 * The same for If, Loop and Scan, whose bodies @run knows: If has two, then and else. node->outputs say the types of outputs
 * that no round has made.
 */
int sl_control_run(struct sl_dynamic *dynamic, const struct sl_node_desc *node, const struct sl_live *inputs, sl_body_fn run,
        void *context, struct sl_live *ret_outputs);

/* Takes a step. -E2BIG: none is left; what the pace says. */
int sl_dynamic_step(struct sl_dynamic *dynamic, uint32_t op);

/* Takes so much work, before it is done. -E2BIG: there is not as much left. */
int sl_dynamic_work(struct sl_dynamic *dynamic, uint32_t op, uint64_t work);
