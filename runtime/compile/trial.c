/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64u

struct sl_trial {
        const struct sl_backend *backend;
        struct sl_kernel *kernel;
        struct sl_node_desc node;
        struct sl_packed packed[SL_NODE_INPUTS_MAX];
        const void *constants[SL_NODE_INPUTS_MAX]; /* packed or plain; NULL for an activation */
        void *owned[SL_NODE_INPUTS_MAX];           /* packed constants, and seeded inputs once they are wanted */
        const void *inputs[SL_NODE_INPUTS_MAX];    /* of the launch at hand */
        void *outputs[SL_NODE_OUTPUTS_MAX];        /* of the launch at hand */
        void *own_outputs[SL_NODE_OUTPUTS_MAX];    /* once they are wanted */
        void *scratch, *own_scratch;
};

SL_DEFINE_CLEANUP(struct sl_trial *, sl_trial_free)

static void *buffer_new(uint64_t bytes)
{
        return aligned_alloc(ALIGNMENT, sl_align_up(bytes + 1, ALIGNMENT));
}

static int pack_constant(struct sl_trial *trial, uint32_t input, const void *plain)
{
        struct sl_packed *packed = &trial->packed[input];
        int r = trial->backend->pack(&trial->node, input, packed);

        trial->constants[input] = plain;
        if (r < 0 || !packed->data_bytes)
                return r;
        trial->owned[input] = buffer_new(packed->data_bytes);
        if (!trial->owned[input])
                return -ENOMEM;
        memset(trial->owned[input], 0, packed->data_bytes);
        trial->constants[input] = trial->owned[input];
        return trial->backend->repack(&trial->node, input, packed, plain, trial->owned[input]);
}

/* What is data-dependent cannot be tried without them. */
static bool is_static(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                if (node->inputs[i].dtype != SL_DTYPE_NONE && !sl_shape_is_static(&node->inputs[i].shape))
                        return false;
        }
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                if (node->outputs[i].dtype != SL_DTYPE_NONE && !sl_shape_is_static(&node->outputs[i].shape))
                        return false;
        }
        return true;
}

int sl_trial_new(const struct sl_backend *backend, const struct sl_node_desc *node, const void *const *constants,
        struct sl_trial **ret_trial, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_trial_free) struct sl_trial *trial = NULL;
        int r = 0;

        if (!is_static(node))
                return -ENOTSUP;
        trial = calloc(1, sizeof(*trial));
        if (!trial)
                return -ENOMEM;
        trial->backend = backend;
        trial->node = *node;
        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++)
                r = constants[i] ? pack_constant(trial, i, constants[i]) : 0;
        if (r == 0)
                r = backend->compile(node, trial->packed, trial->constants, &trial->kernel, error);
        if (r < 0)
                return r;
        *ret_trial = sl_take(trial);
        return 0;
}

struct sl_trial *sl_trial_free(struct sl_trial *trial)
{
        if (!trial)
                return NULL;
        trial->backend->kernel_free(trial->kernel);
        for (uint32_t i = 0; i < SL_NODE_INPUTS_MAX; i++)
                free(trial->owned[i]);
        for (uint32_t i = 0; i < SL_NODE_OUTPUTS_MAX; i++)
                free(trial->own_outputs[i]);
        free(trial->own_scratch);
        free(trial);
        return NULL;
}

void sl_trial_fill(const struct sl_tensor *tensor, uint64_t seed, void *data)
{
        uint64_t n = sl_shape_elements(&tensor->shape), state = seed * 2 + 1;
        size_t bytes = sl_dtype_bytes(tensor->dtype);
        bool floats = sl_dtype_is_float(tensor->dtype);

        memset(data, 0, sl_tensor_bytes(tensor));
        for (uint64_t i = 0; i < n && tensor->dtype == SL_DTYPE_F32; i++) {
                float number;

                state = state * 6364136223846793005u + 1442695040888963407u;
                number = (float)(state >> 40) / (float)(1 << 23) - 1.0f;
                ((float *)data)[i] = state >> 20 & 1 ? number : 0;
        }
        for (uint64_t i = 0; i < n && !floats; i++)
                ((uint8_t *)data)[i * bytes] = 1;
}

/* Every activation has data: the caller's, or a buffer that is filled when it is wanted for the first time. */
static int bind_inputs(struct sl_trial *trial, const void *const *inputs)
{
        for (uint32_t i = 0; i < trial->node.n_inputs; i++) {
                const struct sl_tensor *tensor = &trial->node.inputs[i];

                trial->inputs[i] = trial->constants[i] ? trial->constants[i] : inputs ? inputs[i] : NULL;
                if (trial->inputs[i] || tensor->dtype == SL_DTYPE_NONE)
                        continue;
                if (!trial->owned[i]) {
                        trial->owned[i] = buffer_new(sl_tensor_bytes(tensor));
                        if (!trial->owned[i])
                                return -ENOMEM;
                        sl_trial_fill(tensor, i, trial->owned[i]);
                }
                trial->inputs[i] = trial->owned[i];
        }
        return 0;
}

static int bind_outputs(struct sl_trial *trial, void *const *outputs)
{
        for (uint32_t i = 0; i < trial->node.n_outputs; i++) {
                const struct sl_tensor *tensor = &trial->node.outputs[i];

                trial->outputs[i] = outputs && outputs[i] ? outputs[i] : trial->own_outputs[i];
                if (trial->outputs[i] || tensor->dtype == SL_DTYPE_NONE)
                        continue;
                trial->outputs[i] = trial->own_outputs[i] = buffer_new(sl_tensor_bytes(tensor));
                if (!trial->outputs[i])
                        return -ENOMEM;
        }
        return 0;
}

static int bind_scratch(struct sl_trial *trial, void *scratch)
{
        if (!scratch && !trial->own_scratch)
                trial->own_scratch = buffer_new(sl_trial_scratch_bytes(trial));
        trial->scratch = scratch ? scratch : trial->own_scratch;
        return trial->scratch ? 0 : -ENOMEM;
}

uint64_t sl_trial_scratch_bytes(const struct sl_trial *trial)
{
        return trial->backend->scratch_bytes(trial->kernel);
}

int sl_trial_bind(struct sl_trial *trial, const void *const *inputs, void *const *outputs, void *scratch)
{
        int r = bind_inputs(trial, inputs);

        if (r == 0)
                r = bind_outputs(trial, outputs);
        return r < 0 ? r : bind_scratch(trial, scratch);
}

int sl_trial_launch(struct sl_trial *trial)
{
        struct sl_binding binding = {.inputs = trial->inputs, .outputs = trial->outputs, .scratch = trial->scratch};

        return trial->backend->launch(trial->kernel, &binding);
}

int sl_trial_run(struct sl_trial *trial, const void *const *inputs)
{
        int r = sl_trial_bind(trial, inputs, NULL, NULL);

        return r < 0 ? r : sl_trial_launch(trial);
}

const void *sl_trial_output(const struct sl_trial *trial, uint32_t index)
{
        return trial->outputs[index];
}
