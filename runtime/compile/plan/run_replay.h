/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of a plan of any size as it was at some sizes: which kernels it launched, in which order, and on what. The next run of
 * these sizes launches them again. It knows no shape rules, looks nothing up and allocates nothing for a node: what nodes make lies
 * in one arena, at places that were chosen when the run had ended; what follows from sizes alone was kept. Made by a capture
 * (capture.h), as CUDA graphs are by theirs. Immutable; belongs to the thread of its instance.
 */
#pragma once

#include "node.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_backend;
struct sl_error;
struct sl_kept_kernel;
struct sl_kernel;
struct sl_pace;
struct sl_plan_operand;
struct sl_plan_step;

/* Where a tensor lies: so far behind the base of that number. */
struct sl_run_replay_ref {
        uint32_t base;
        uint64_t offset;
};

enum {
        SL_REPLAY_NOTHING, /* at NULL */
        SL_REPLAY_PLAN,    /* the offset is the address: constants, packed or plain, which outlive the replay */
        SL_REPLAY_KEPT,    /* in `kept` */
        SL_REPLAY_ARENA,
        SL_REPLAY_INPUT, /* that of input 0; behind it those of the others */
};

/* A node that `ref` runs: what of sl_node_desc it has, attributes and tensors one behind the other. */
struct sl_run_replay_node {
        struct sl_epilogue epilogue;
        uint32_t op, n_inputs, n_outputs, n_attrs;
        const struct sl_attr *attrs;
        const struct sl_tensor *tensors; /* inputs, then outputs */
};

struct sl_run_replay_step {
        const struct sl_plan_step *source;
        const struct sl_backend *backend; /* NULL: `ref`, of `node` */
        struct sl_kernel *kernel;
        struct sl_kept_kernel *kept;
        struct sl_run_replay_node node;
        const struct sl_run_replay_ref *refs; /* [n_inputs], then [n_outputs] */
        uint32_t n_inputs, n_outputs;
        struct sl_run_replay_ref scratch;
};

/* What the run wrote to an output, behind its last step. */
struct sl_run_replay_output {
        const struct sl_plan_step *source;
        const struct sl_plan_operand *operand;
        struct sl_run_replay_ref ref;
        struct sl_tensor tensor;
};

struct sl_run_replay {
        uint32_t n_inputs, n_steps, n_outputs;
        uint64_t arena_bytes;
        const uint64_t *inputs; /* [n_inputs]: where in the arena there is room for it, where a run has to copy it */
        const struct sl_run_replay_step *steps;
        const struct sl_run_replay_output *outputs;
        const uint8_t *kept;
        uint64_t bytes; /* all of it, which is one block, and the kernels that it holds, others may hold them, too */
};

/* NULL is fine. */
struct sl_run_replay *sl_run_replay_free(struct sl_run_replay *replay);

static inline void *sl_run_replay_at(void *const *bases, const struct sl_run_replay_ref *ref)
{
        return (void *)((uintptr_t)bases[ref->base] + ref->offset);
}

/*
 * @bases: of the refs; those of inputs are the run's. @node: room for a node, zeros at first. Return: 0; what a launch says, with
 * the step in
 * @ret_failed and words as of a run that is not replayed.
 */
int sl_run_replay_run(const struct sl_run_replay *replay, void *const *bases, struct sl_pace *pace, struct sl_node_desc *node,
        const struct sl_plan_step **ret_failed, struct sl_error *error);
