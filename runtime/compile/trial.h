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
struct sl_trial;

/*
 * @constants[i]: plain data of constant input i, NULL for an activation; they must outlive the trial.
 * Return: 0; -ENOMEM; what the backend says (-ENOTSUP among others).
 */
int sl_trial_new(const struct sl_backend *backend, const struct sl_node_desc *node, const void *const *constants,
        struct sl_trial **ret_trial, struct sl_error *error);
struct sl_trial *sl_trial_free(struct sl_trial *trial);

/*
 * What the next launches read and write. @inputs[i]: data of activation i; @outputs[i]: room for result i; @scratch: of
 * sl_trial_scratch_bytes(). What is NULL is a buffer of the trial, inputs seeded. Return: 0; -ENOMEM.
 */
int sl_trial_bind(struct sl_trial *trial, const void *const *inputs, void *const *outputs, void *scratch);
uint64_t sl_trial_scratch_bytes(const struct sl_trial *trial);

/* One launch on what is bound. Return: 0; what the backend says. */
int sl_trial_launch(struct sl_trial *trial);

/* Both, into buffers of the trial. Return: as those. */
int sl_trial_run(struct sl_trial *trial, const void *const *inputs);

/* Result @index of the last launch. */
const void *sl_trial_output(const struct sl_trial *trial, uint32_t index);

/*
 * Numbers as activations have them: float32 from -1 to 1, half of them 0; other floats 0; integers and booleans 1. The same for
 * the same @seed.
 */
void sl_trial_fill(const struct sl_tensor *tensor, uint64_t seed, void *data);
