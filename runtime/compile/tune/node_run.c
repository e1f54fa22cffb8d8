/* SPDX-License-Identifier: Apache-2.0 */
#include "node_run.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64u

struct sl_node_run {
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
        bool divided; /* into parts for a team */
};

SL_DEFINE_CLEANUP(struct sl_node_run *, sl_node_run_free)

static void *buffer_new(uint64_t bytes)
{
        return aligned_alloc(ALIGNMENT, sl_align_up(bytes + 1, ALIGNMENT));
}

static int pack_constant(struct sl_node_run *run, uint32_t input, const void *plain)
{
        struct sl_packed *packed = &run->packed[input];
        int r = run->backend->planner->pack(NULL, &run->node, input, packed);

        run->constants[input] = plain;
        if (r < 0 || !packed->data_bytes)
                return r;
        run->owned[input] = buffer_new(packed->data_bytes);
        if (!run->owned[input])
                return -ENOMEM;
        memset(run->owned[input], 0, packed->data_bytes);
        run->constants[input] = run->owned[input];
        return run->backend->planner->repack(NULL, &run->node, input, packed, plain, run->owned[input]);
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

int sl_node_run_new(const struct sl_backend *backend, const struct sl_node_desc *node, const void *const *constants,
        struct sl_node_run **ret_run, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_node_run_free) struct sl_node_run *run = NULL;
        int r = 0;

        if (!is_static(node))
                return -ENOTSUP;
        run = calloc(1, sizeof(*run));
        if (!run)
                return -ENOMEM;
        run->backend = backend;
        run->node = *node;
        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++)
                r = constants[i] ? pack_constant(run, i, constants[i]) : 0;
        if (r == 0)
                r = backend->runner->compile(NULL,
                        &(struct sl_kernel_source){.node = node, .packed = run->packed, .constants = run->constants}, &run->kernel,
                        error);
        if (r < 0)
                return r;
        *ret_run = sl_take(run);
        return 0;
}

struct sl_node_run *sl_node_run_free(struct sl_node_run *run)
{
        if (!run)
                return NULL;
        run->backend->runner->kernel_free(run->kernel);
        for (uint32_t i = 0; i < SL_NODE_INPUTS_MAX; i++)
                free(run->owned[i]);
        for (uint32_t i = 0; i < SL_NODE_OUTPUTS_MAX; i++)
                free(run->own_outputs[i]);
        free(run->own_scratch);
        free(run);
        return NULL;
}

void sl_node_run_fill(const struct sl_tensor *tensor, uint64_t seed, void *data)
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
static int bind_inputs(struct sl_node_run *run, const void *const *inputs)
{
        for (uint32_t i = 0; i < run->node.n_inputs; i++) {
                const struct sl_tensor *tensor = &run->node.inputs[i];

                run->inputs[i] = run->constants[i] ? run->constants[i] : inputs ? inputs[i] : NULL;
                if (run->inputs[i] || tensor->dtype == SL_DTYPE_NONE)
                        continue;
                if (!run->owned[i]) {
                        run->owned[i] = buffer_new(sl_tensor_bytes(tensor));
                        if (!run->owned[i])
                                return -ENOMEM;
                        sl_node_run_fill(tensor, i, run->owned[i]);
                }
                run->inputs[i] = run->owned[i];
        }
        return 0;
}

static int bind_outputs(struct sl_node_run *run, void *const *outputs)
{
        for (uint32_t i = 0; i < run->node.n_outputs; i++) {
                const struct sl_tensor *tensor = &run->node.outputs[i];

                run->outputs[i] = outputs && outputs[i] ? outputs[i] : run->own_outputs[i];
                if (run->outputs[i] || tensor->dtype == SL_DTYPE_NONE)
                        continue;
                run->outputs[i] = run->own_outputs[i] = buffer_new(sl_tensor_bytes(tensor));
                if (!run->outputs[i])
                        return -ENOMEM;
        }
        return 0;
}

static int bind_scratch(struct sl_node_run *run, void *scratch)
{
        if (!scratch && !run->own_scratch)
                run->own_scratch = buffer_new(sl_node_run_scratch_bytes(run));
        run->scratch = scratch ? scratch : run->own_scratch;
        return run->scratch ? 0 : -ENOMEM;
}

uint64_t sl_node_run_scratch_bytes(const struct sl_node_run *run)
{
        return run->backend->runner->scratch_bytes(run->kernel);
}

int sl_node_run_bind(struct sl_node_run *run, const void *const *inputs, void *const *outputs, void *scratch)
{
        int r = bind_inputs(run, inputs);

        if (r == 0)
                r = bind_outputs(run, outputs);
        return r < 0 ? r : bind_scratch(run, scratch);
}

int sl_node_run_launch(struct sl_node_run *run)
{
        struct sl_binding binding = {.inputs = run->inputs, .outputs = run->outputs, .scratch = run->scratch};

        return run->backend->runner->launch(run->kernel, &binding);
}

static int launch_stage(
        struct sl_node_run *run, const struct sl_part *parts, uint32_t n, int64_t stage, sl_node_run_clock *clock, uint64_t *ret_ns)
{
        uint64_t longest = 0;
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++) {
                struct sl_part part = parts[i];
                struct sl_binding binding = {
                        .inputs = run->inputs, .outputs = run->outputs, .scratch = run->scratch, .part = &part};
                uint64_t start = clock(), took;

                part.stage = stage;
                r = run->backend->runner->launch(run->kernel, &binding);
                took = clock() - start;
                longest = took > longest ? took : longest;
        }
        *ret_ns += longest;
        return r;
}

/* Into how many parts; below 2: it cannot be cut. A kernel that is divided is so once. */
static uint32_t count_parts(struct sl_node_run *run, uint32_t axis, uint32_t members, int64_t *ret_units)
{
        const struct sl_runner *runner = run->backend->runner;

        *ret_units = runner->units ? runner->units(run->kernel, axis) : 0;
        members = *ret_units < members ? (uint32_t)(*ret_units > 0 ? *ret_units : 0) : members;
        if (members > 1 && !run->divided && runner->divide && runner->divide(run->kernel, axis, members) < 0)
                return 0;
        run->divided = run->divided || members > 1;
        return members;
}

int sl_node_run_launch_parts(struct sl_node_run *run, uint32_t axis, uint32_t members, sl_node_run_clock *clock, uint64_t *ret_ns)
{
        const struct sl_runner *runner = run->backend->runner;
        struct sl_part parts[UINT8_MAX];
        int64_t units;
        uint32_t n = members <= UINT8_MAX ? count_parts(run, axis, members, &units) : 0;
        int64_t stages = runner->stages ? runner->stages(run->kernel) : 1;
        int r = n > 1 ? 0 : -ENOTSUP;

        for (uint32_t i = 0; i < n; i++)
                parts[i] = sl_part_of(axis, units, i, n);
        *ret_ns = 0;
        for (int64_t stage = 0; stage < stages && r == 0; stage++)
                r = launch_stage(run, parts, n, stage, clock, ret_ns);
        return r;
}

int sl_node_run_once(struct sl_node_run *run, const void *const *inputs)
{
        int r = sl_node_run_bind(run, inputs, NULL, NULL);

        return r < 0 ? r : sl_node_run_launch(run);
}

const void *sl_node_run_output(const struct sl_node_run *run, uint32_t index)
{
        return run->outputs[index];
}
