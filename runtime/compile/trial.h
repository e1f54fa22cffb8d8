/*
 * One node made runnable on its own: constants packed as the node alone would have them, buffers of its own. What the tuner runs
 * and times. Compiler's process only; one owner thread, the calling one, which runs one thread of the library.
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
 * One launch. @inputs[i]: data of activation i, NULL: a seeded buffer of the trial. The results lie in the trial until the next
 * launch. Return: 0; what the launch says.
 */
int sl_trial_run(struct sl_trial *trial, const void *const *inputs);
const void *sl_trial_output(const struct sl_trial *trial, uint32_t index);

/*
 * The median of launches in microseconds, at least 3 of them and for about @seconds. Before each, the core's own caches are filled
 * with
 * @sweep (memory of the caller, larger than they are), and then with the activations: in a model, a node finds what the node before
 * it has made, and its weights are where they were left a run ago. Return: 0; what a launch says.
 */
struct sl_trial_sweep {
        const uint8_t *bytes;
        uint64_t n_bytes;
};
int sl_trial_time(struct sl_trial *trial, const void *const *inputs, const struct sl_trial_sweep *sweep, double seconds,
        double *ret_microseconds);

/*
 * Numbers as activations have them: float32 from -1 to 1, half of them 0; other floats 0; integers and booleans 1. The same for
 * the same @seed.
 */
void sl_trial_fill(const struct sl_tensor *tensor, uint64_t seed, void *data);
