#include "trial.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64u
#define RUNS_MIN  3
#define RUNS_MAX  64

struct sl_trial {
        const struct sl_backend *backend;
        struct sl_kernel *kernel;
        struct sl_node_desc node;
        struct sl_packed packed[SL_NODE_INPUTS_MAX];
        const void *constants[SL_NODE_INPUTS_MAX]; /* packed or plain; NULL for an activation */
        void *owned[SL_NODE_INPUTS_MAX];           /* packed constants, and seeded inputs once they are wanted */
        const void *inputs[SL_NODE_INPUTS_MAX];    /* of the launch at hand */
        void *outputs[SL_NODE_OUTPUTS_MAX];
        void *scratch;
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

static int allocate_results(struct sl_trial *trial)
{
        trial->scratch = buffer_new(trial->backend->scratch_bytes(trial->kernel));
        if (!trial->scratch)
                return -ENOMEM;
        for (uint32_t i = 0; i < trial->node.n_outputs; i++) {
                if (trial->node.outputs[i].dtype == SL_DTYPE_NONE)
                        continue;
                trial->outputs[i] = buffer_new(sl_tensor_bytes(&trial->node.outputs[i]));
                if (!trial->outputs[i])
                        return -ENOMEM;
        }
        return 0;
}

/* What hangs on data cannot be tried without them. */
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
        if (r == 0)
                r = allocate_results(trial);
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
                free(trial->outputs[i]);
        free(trial->scratch);
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

static int launch(struct sl_trial *trial)
{
        struct sl_binding binding = {.inputs = trial->inputs, .outputs = trial->outputs, .scratch = trial->scratch};

        return trial->backend->launch(trial->kernel, &binding);
}

int sl_trial_run(struct sl_trial *trial, const void *const *inputs)
{
        int r = bind_inputs(trial, inputs);

        return r < 0 ? r : launch(trial);
}

const void *sl_trial_output(const struct sl_trial *trial, uint32_t index)
{
        return trial->outputs[index];
}

static int by_size(const void *a, const void *b)
{
        uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

        return (left > right) - (left < right);
}

/* One byte of each line; volatile, so that the reads are made. */
static void touch(const uint8_t *bytes, uint64_t n_bytes)
{
        const volatile uint8_t *line = bytes;

        for (uint64_t at = 0; at < n_bytes; at += SL_LINE_BYTES)
                (void)line[at];
}

static void prepare_caches(const struct sl_trial *trial, const struct sl_trial_sweep *sweep)
{
        touch(sweep->bytes, sweep->n_bytes);
        for (uint32_t i = 0; i < trial->node.n_inputs; i++) {
                if (!trial->constants[i] && trial->inputs[i])
                        touch(trial->inputs[i], sl_tensor_bytes(&trial->node.inputs[i]));
        }
}

int sl_trial_time(struct sl_trial *trial, const void *const *inputs, const struct sl_trial_sweep *sweep, double seconds,
        double *ret_microseconds)
{
        uint64_t times[RUNS_MAX], until = sl_clock_ns() + (uint64_t)(seconds * (double)SL_NS_PER_SECOND);
        uint32_t n = 0;
        int r = bind_inputs(trial, inputs);

        if (r == 0)
                r = launch(trial);
        while (r == 0 && n < RUNS_MAX && (n < RUNS_MIN || sl_clock_ns() < until)) {
                uint64_t before;

                prepare_caches(trial, sweep);
                before = sl_clock_ns();
                r = launch(trial);
                times[n++] = sl_clock_ns() - before;
        }
        if (r < 0)
                return r;
        qsort(times, n, sizeof(*times), by_size);
        *ret_microseconds = (double)times[n / 2] / (double)SL_NS_PER_US;
        return 0;
}
