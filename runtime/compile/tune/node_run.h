/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node made runnable on its own: constants packed as the node alone would have them, buffers of its own. What the tuner runs
 * and times. Compiler's process only; one owner thread, the calling one, which runs one thread of oneDNN.
 */
#pragma once

#include "node.h"

#include <stdint.h>

struct sl_backend;
struct sl_error;
struct sl_node_run;

/* Nanoseconds that only grow. */
typedef uint64_t sl_node_run_clock(void);

/*
 * @constants[i]: plain data of constant input i, NULL for an activation; they must outlive the run.
 * Return: 0; -ENOMEM; what the backend says (-ENOTSUP among others).
 */
int sl_node_run_new(const struct sl_backend *backend, const struct sl_node_desc *node, const void *const *constants,
        struct sl_node_run **ret_run, struct sl_error *error);
struct sl_node_run *sl_node_run_free(struct sl_node_run *run);

/*
 * What the next launches read and write. @inputs[i]: data of activation i; @outputs[i]: room for result i; @scratch: of
 * sl_node_run_scratch_bytes(). What is NULL is a buffer of the run, inputs seeded. Return: 0; -ENOMEM.
 */
int sl_node_run_bind(struct sl_node_run *run, const void *const *inputs, void *const *outputs, void *scratch);
uint64_t sl_node_run_scratch_bytes(const struct sl_node_run *run);

/* One launch on what is bound. Return: 0; what the backend says. */
int sl_node_run_launch(struct sl_node_run *run);

/*
 * The same in parts along @axis for a team of @members, one behind the other; the bits are those of a launch. @ret_ns: of the
 * longest part of each stage, by @clock. Return: 0; -ENOTSUP it cannot be cut so; what the backend says.
 */
int sl_node_run_launch_parts(struct sl_node_run *run, uint32_t axis, uint32_t members, sl_node_run_clock *clock, uint64_t *ret_ns);

/* Both, into buffers of the run. Return: as those. */
int sl_node_run_once(struct sl_node_run *run, const void *const *inputs);

/* Result @index of the last launch. */
const void *sl_node_run_output(const struct sl_node_run *run, uint32_t index);

/*
 * Numbers as activations have them: float32 from -1 to 1, half of them 0; other floats 0; integers and booleans 1. The same for
 * the same @seed.
 */
void sl_node_run_fill(const struct sl_tensor *tensor, uint64_t seed, void *data);
