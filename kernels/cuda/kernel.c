/* SPDX-License-Identifier: Apache-2.0 */
/* The half of the backend that computes: a recipe (recipe.h) with what the libraries have made of its steps, on one session. */
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cuda/attention.h"
#include "cuda/cublaslt/matmul.h"
#include "cuda/cudnn/execution.h"
#include "cuda/forms.h"
#include "cuda/halves.h"
#include "cuda/record.h"
#include "cuda/session.h"

#include <errno.h>
#include <stdlib.h>

#define ALIGNMENT 256

/* Of operands that lie as the plan and the caller put them. */
#define OPERAND_ALIGNMENT 64

/* What a step became on the device. */
struct made {
        struct sl_cudnn_execution execution;
        struct sl_cublaslt_matmul matmul;
};

struct sl_kernel {
        struct sl_session *session;
        struct sl_cuda_recipe recipe;
        struct made *made;      /* of each step */
        CUdeviceptr *addresses; /* room for the places of a step */
        size_t scratch_bytes;
};

static struct sl_kernel *kernel_free(struct sl_kernel *kernel)
{
        if (!kernel)
                return NULL;
        for (uint32_t i = 0; kernel->made && i < kernel->recipe.n_steps; i++) {
                if (kernel->made[i].execution.library)
                        sl_cudnn_execution_deinit(&kernel->made[i].execution);
                if (kernel->made[i].matmul.library)
                        sl_cublaslt_matmul_deinit(&kernel->made[i].matmul);
        }
        sl_cuda_recipe_deinit(&kernel->recipe);
        free(kernel->made);
        free(kernel->addresses);
        free(kernel);
        return NULL;
}

SL_DEFINE_CLEANUP(struct sl_kernel *, kernel_free)

/* ---- making one ---- */

/* A convolution over filters that lie otherwise would be of other filters, and any other node reads its constants as they are. */
static int check_forms(const struct sl_kernel_source *source, uint32_t way, struct sl_error *error)
{
        bool convolves = way == SL_CUDA_WAY_CONVOLUTION || way == SL_CUDA_WAY_BARE;

        for (uint32_t i = 0; i < source->node->n_inputs; i++) {
                bool packed = source->packed && source->packed[i].data_bytes;
                bool wanted = convolves && i == 1;

                if (packed != wanted || (wanted && !sl_cuda_form_is_filters(&source->node->inputs[i], &source->packed[i])))
                        return sl_error_set(error, EBADMSG, "constant input %u does not lie as its kernel wants it", i);
        }
        return 0;
}

/* Of all addresses of a product. */
static uint32_t alignment_of(const struct sl_cuda_step *step)
{
        uint32_t alignment = OPERAND_ALIGNMENT;

        for (uint32_t i = 0; i < SL_CUDA_PLACES; i++)
                while (step->places[i].bytes % alignment)
                        alignment /= 2;
        return alignment;
}

static int make_step(struct sl_kernel *kernel, uint32_t number, const struct sl_cuda_record *record, struct sl_error *error)
{
        const struct sl_cuda_libraries *libraries = kernel->session->libraries;
        const struct sl_cuda_step *step = &kernel->recipe.steps[number];
        struct made *made = &kernel->made[number];
        struct sl_cublaslt_ground ground = {
                .workspace_bytes = kernel->recipe.workspace_bytes, .n_processors = kernel->session->device.cuda->n_processors};
        int r = 0;

        switch (step->kind) {
        case SL_CUDA_CONVOLVE:
                r = sl_cuda_session_use_cudnn(kernel->session, error);
                return r < 0 ? r
                             : sl_cudnn_execution_init(&libraries->cudnn, kernel->session->cudnn, record->text, record->text_bytes,
                                       record->workspace_bytes, &made->execution, error);
        case SL_CUDA_MULTIPLY:
                ground.alignment = alignment_of(step);
                r = sl_cuda_session_use_cublaslt(kernel->session, error);
                return r < 0 ? r
                             : sl_cublaslt_matmul_init(&libraries->cublaslt, kernel->session->cublaslt, &step->product, &ground,
                                       &made->matmul, error);
        default:
                return 0;
        }
}

static int allocate_tables(struct sl_kernel *kernel)
{
        uint32_t most = SL_CUDA_PLACES;

        for (uint32_t i = 0; i < kernel->recipe.n_steps; i++) {
                const struct sl_cuda_step *step = &kernel->recipe.steps[i];

                most = step->n_inputs + step->n_outputs > most ? step->n_inputs + step->n_outputs : most;
        }
        kernel->made = calloc(kernel->recipe.n_steps + 1u, sizeof(*kernel->made));
        kernel->addresses = calloc(most, sizeof(*kernel->addresses));
        return kernel->made && kernel->addresses ? 0 : -ENOMEM;
}

static int compile(
        struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_kernel_free) struct sl_kernel *kernel = calloc(1, sizeof(*kernel));
        bool tf32 = source->target && source->target->tf32;
        struct sl_cuda_record record;
        int r = sl_cuda_record_read(source->blob, &record, error);

        if (!kernel)
                return sl_error_set(error, ENOMEM, "no memory for a kernel");
        if (r == 0)
                r = check_forms(source, record.way, error);
        if (r < 0)
                return r;
        kernel->session = session;
        r = sl_cuda_recipe_make(source->node, record.way, record.workspace_bytes, tf32, &kernel->recipe);
        if (r == -ENOTSUP && record.way != SL_CUDA_WAY_OWN)
                return sl_error_set(error, EBADMSG, "its record is of another node");
        if (r < 0)
                return sl_error_set(error, -r, "backend cuda does not compute it so");
        kernel->scratch_bytes = sl_cuda_recipe_scratch(&kernel->recipe);
        if (allocate_tables(kernel) < 0)
                return sl_error_set(error, ENOMEM, "no memory for a kernel of %u steps", kernel->recipe.n_steps);
        for (uint32_t i = 0; i < kernel->recipe.n_steps && r == 0; i++)
                r = make_step(kernel, i, &record, error);
        if (r < 0)
                return r;
        *ret_kernel = sl_take(kernel);
        return 0;
}

static size_t scratch_bytes(const struct sl_kernel *kernel)
{
        return kernel->scratch_bytes;
}

/* ---- launching it ---- */

static CUdeviceptr address_of(const struct sl_binding *binding, const struct sl_cuda_place *place, CUdeviceptr scratch)
{
        const void *base = place->kind == SL_CUDA_INPUT ? binding->inputs[place->index] : NULL;

        if (place->kind == SL_CUDA_SCRATCH)
                return scratch + place->bytes;
        if (place->kind == SL_CUDA_OUTPUT)
                base = binding->outputs[place->index];
        return base ? (CUdeviceptr)(uintptr_t)base + place->bytes : 0;
}

static CUresult launch_own(
        struct sl_kernel *kernel, const struct sl_cuda_step *step, const struct sl_binding *binding, CUdeviceptr workspace)
{
        const struct sl_own_binding own = {.inputs = kernel->addresses,
                .outputs = kernel->addresses + step->n_inputs,
                .scratch = workspace,
                .error_word = kernel->session->error_word_there,
                .made = (CUdeviceptr)(uintptr_t)binding->made};

        return sl_cuda_own_launch(&kernel->session->libraries->own, &step->own, &own, kernel->session->device.stream);
}

/* What a library says, as the driver would: its own words are of no use while a request runs. */
static CUresult launch_step(struct sl_kernel *kernel, uint32_t number, const struct sl_binding *binding, CUdeviceptr workspace)
{
        const struct sl_cuda_step *step = &kernel->recipe.steps[number];
        const CUdeviceptr *at = kernel->addresses;
        const struct sl_cublaslt_operands operands = {.left = at[SL_CUDA_LEFT],
                .right = at[SL_CUDA_RIGHT],
                .bias = at[SL_CUDA_BIAS],
                .addend = at[SL_CUDA_ADDEND],
                .out = at[SL_CUDA_OUT],
                .workspace = workspace};

        switch (step->kind) {
        case SL_CUDA_CONVOLVE:
                return sl_cudnn_execution_launch(&kernel->made[number].execution, at, workspace) == CUDNN_STATUS_SUCCESS
                               ? CUDA_SUCCESS
                               : CUDA_ERROR_LAUNCH_FAILED;
        case SL_CUDA_MULTIPLY:
                return sl_cublaslt_matmul_launch(&kernel->made[number].matmul, &operands, kernel->session->device.stream) ==
                                       CUBLAS_STATUS_SUCCESS
                               ? CUDA_SUCCESS
                               : CUDA_ERROR_LAUNCH_FAILED;
        default:
                return launch_own(kernel, step, binding, workspace);
        }
}

static int launch(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        CUdeviceptr scratch = sl_align_up((uintptr_t)binding->scratch, ALIGNMENT);
        CUresult result = CUDA_SUCCESS;

        if (kernel->session->lost)
                return -EIO;
        for (uint32_t i = 0; i < kernel->recipe.n_steps && result == CUDA_SUCCESS; i++) {
                const struct sl_cuda_step *step = &kernel->recipe.steps[i];
                uint32_t n = step->kind == SL_CUDA_OWN ? step->n_inputs + step->n_outputs : SL_CUDA_PLACES;

                for (uint32_t k = 0; k < n; k++)
                        kernel->addresses[k] = address_of(binding, &step->places[k], scratch);
                result = launch_step(kernel, i, binding, scratch + kernel->recipe.kept_bytes);
        }
        return sl_cuda_session_queued(kernel->session, result);
}

const struct sl_runner sl_cuda_runner = {
        .memory = &sl_cuda_memory,
        .prepare = sl_cuda_session_prepare,
        .open = sl_cuda_session_open,
        .close = sl_cuda_session_close,
        .compile = compile,
        .scratch_bytes = scratch_bytes,
        .launch = launch,
        .poll = sl_cuda_session_poll,
        .wait = sl_cuda_session_wait,
        .kernel_free = kernel_free,
};
