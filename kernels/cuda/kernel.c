/* SPDX-License-Identifier: Apache-2.0 */
/* The half of the backend that computes. */
#include "cuda/kernel.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cuda/attention.h"
#include "cuda/chooser.h"
#include "cuda/forms.h"
#include "cuda/halves.h"
#include "cuda/trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 256

/* Of operands that lie as the plan and the caller put them. */
#define OPERAND_ALIGNMENT 64

struct sl_kernel *sl_cuda_kernel_free(struct sl_kernel *kernel)
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

SL_DEFINE_CLEANUP(struct sl_kernel *, sl_cuda_kernel_free)

/* ---- making one ---- */

/* A convolution over filters that lie otherwise would be of other filters, and any other node reads its constants as they are. */
static int check_forms(const struct sl_kernel_source *source, uint32_t way, struct sl_error *error)
{
        for (uint32_t i = 0; i < source->node->n_inputs; i++)
                if (!sl_cuda_form_is(source->node, way, i, source->packed ? &source->packed[i] : NULL))
                        return sl_error_set(error, EBADMSG, "constant input %u does not lie as its kernel wants it", i);
        return 0;
}

static int check_all_forms(const struct sl_kernel_source *source, const struct sl_cuda_record *record, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < record->n && r == 0; i++)
                r = check_forms(source, record->candidates[i].way, error);
        return r;
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

/* *ret_choice: NULL: nothing is known of it, nor may be found out. Return: 0; -EIO. */
static int choose_product(struct sl_session *session, const struct sl_cublaslt_matmul *matmul,
        const struct sl_cublaslt_ground *ground, const uint64_t key[2], const struct sl_gpu_choice **ret_choice)
{
        struct sl_cuda_chooser *chooser = session->device.chooser;
        int r = 0;

        *ret_choice = sl_cuda_chooser_find(chooser, key);
        if (!*ret_choice && sl_cuda_chooser_options(chooser)->times) {
                r = sl_cuda_trial_product(session, matmul, ground, key);
                *ret_choice = sl_cuda_chooser_find(chooser, key);
        }
        return r;
}

/* What cuBLASLt does not take is chosen once more; else it stays what it is. */
static int use_chosen(struct sl_session *session, struct sl_cublaslt_matmul *matmul, const struct sl_cublaslt_ground *ground)
{
        struct sl_cublaslt_algorithm algorithm;
        const struct sl_gpu_choice *choice;
        uint64_t key[2];
        int r = 0;

        sl_cuda_trial_product_key(&matmul->product, ground, key);
        for (int attempt = 0; attempt < 2; attempt++) {
                r = choose_product(session, matmul, ground, key, &choice);
                if (r < 0 || !choice || !choice->has_algorithm)
                        return r;
                memcpy(&algorithm.algo, choice->algorithm, sizeof(algorithm.algo));
                if (sl_cublaslt_matmul_accepts(matmul, ground, &algorithm)) {
                        sl_cublaslt_matmul_use(matmul, &algorithm);
                        return 0;
                }
                sl_cuda_chooser_forget(session->device.chooser, key);
        }
        return 0;
}

static int make_product(
        struct sl_kernel *kernel, const struct sl_cuda_step *step, struct sl_cublaslt_matmul *matmul, struct sl_error *error)
{
        struct sl_session *session = kernel->session;
        const struct sl_cublaslt_ground ground = {.alignment = alignment_of(step),
                .workspace_bytes = kernel->recipe.workspace_bytes,
                .n_processors = session->device.n_processors};
        int r = sl_cuda_session_use_cublaslt(session, error);

        if (r == 0)
                r = sl_cublaslt_matmul_init(
                        &session->libraries->cublaslt, session->cublaslt, &step->product, &ground, matmul, error);
        if (r == 0 && session->device.chooser && use_chosen(session, matmul, &ground) < 0)
                r = sl_error_set(error, EIO, "the device is lost while products are timed on it");
        return r;
}

static int make_step(struct sl_kernel *kernel, uint32_t number, const struct sl_cuda_candidate *candidate, struct sl_error *error)
{
        const struct sl_cuda_libraries *libraries = kernel->session->libraries;
        const struct sl_cuda_step *step = &kernel->recipe.steps[number];
        struct sl_cuda_made *made = &kernel->made[number];
        int r = 0;

        switch (step->kind) {
        case SL_CUDA_CONVOLVE:
                r = sl_cuda_session_use_cudnn(kernel->session, error);
                return r < 0 ? r
                             : sl_cudnn_execution_init(&libraries->cudnn, kernel->session->cudnn, candidate->text,
                                       candidate->text_bytes, candidate->workspace_bytes, &made->execution, error);
        case SL_CUDA_MULTIPLY:
                return make_product(kernel, step, &made->matmul, error);
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

int sl_cuda_kernel_make(struct sl_session *session, const struct sl_kernel_source *source,
        const struct sl_cuda_candidate *candidate, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_cuda_kernel_free) struct sl_kernel *kernel = calloc(1, sizeof(*kernel));
        bool tf32 = source->target && source->target->tf32;
        int r;

        if (!kernel)
                return sl_error_set(error, ENOMEM, "no memory for a kernel");
        kernel->session = session;
        r = sl_cuda_recipe_make(source->node, candidate->way, candidate->workspace_bytes, tf32, &kernel->recipe);
        if (r == -ENOTSUP && candidate->way != SL_CUDA_WAY_OWN)
                return sl_error_set(error, EBADMSG, "its record is of another node");
        if (r < 0)
                return sl_error_set(error, -r, "backend cuda does not compute it so");
        kernel->scratch_bytes = sl_cuda_recipe_scratch(&kernel->recipe);
        if (allocate_tables(kernel) < 0)
                return sl_error_set(error, ENOMEM, "no memory for a kernel of %u steps", kernel->recipe.n_steps);
        for (uint32_t i = 0; i < kernel->recipe.n_steps && r == 0; i++)
                r = make_step(kernel, i, candidate, error);
        if (r < 0)
                return r;
        *ret_kernel = sl_take(kernel);
        return 0;
}

/* ---- what was chosen ---- */

/* Of what the plan has scratch for, and of a way that it has? */
static bool fits_record(const struct sl_gpu_choice *choice, const struct sl_cuda_record *record)
{
        bool way = false, workspace = false;

        for (uint32_t i = 0; i < record->n; i++) {
                way |= record->candidates[i].way == choice->way;
                workspace |= record->candidates[i].workspace_bytes >= choice->workspace_bytes;
        }
        return way && workspace && (choice->text != NULL) == sl_cuda_way_has_text(choice->way);
}

static int choose_node(struct sl_session *session, const struct sl_kernel_source *source, const struct sl_cuda_record *record,
        const uint64_t key[2], const struct sl_gpu_choice **ret_choice)
{
        struct sl_cuda_chooser *chooser = session->device.chooser;
        int r = 0;

        *ret_choice = sl_cuda_chooser_find(chooser, key);
        if (!*ret_choice && sl_cuda_chooser_options(chooser)->times) {
                r = sl_cuda_trial_node(session, source, record, key);
                *ret_choice = sl_cuda_chooser_find(chooser, key);
        }
        return r;
}

/* What cuDNN does not take is chosen once more. Return: 1, and the kernel; 0: nothing is chosen that can be made; -EIO. */
static int make_chosen(struct sl_session *session, const struct sl_kernel_source *source, const struct sl_cuda_record *record,
        struct sl_kernel **ret_kernel)
{
        const struct sl_gpu_choice *choice;
        uint64_t key[2];
        int r = 0;

        sl_cuda_trial_node_key(source, key);
        for (int attempt = 0; attempt < 2; attempt++) {
                r = choose_node(session, source, record, key, &choice);
                if (r < 0 || !choice)
                        return r;
                const struct sl_cuda_candidate candidate = {.way = choice->way,
                        .workspace_bytes = choice->workspace_bytes,
                        .text = choice->text,
                        .text_bytes = choice->text_bytes};

                if (fits_record(choice, record) && sl_cuda_kernel_make(session, source, &candidate, ret_kernel, NULL) == 0)
                        return 1;
                sl_cuda_chooser_forget(session->device.chooser, key);
        }
        return 0;
}

/* The first candidate that a library takes; what it says of the first one where it takes none. */
static int make_first(struct sl_session *session, const struct sl_kernel_source *source, const struct sl_cuda_record *record,
        struct sl_kernel **ret_kernel, struct sl_error *error)
{
        int r = sl_cuda_kernel_make(session, source, &record->candidates[0], ret_kernel, error), later = r;

        for (uint32_t i = 1; i < record->n && later == -ENOTSUP; i++)
                later = sl_cuda_kernel_make(session, source, &record->candidates[i], ret_kernel, NULL);
        return later == 0 ? 0 : r;
}

static int compile(
        struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        struct sl_cuda_record record;
        int r = sl_cuda_record_read(source->blob, &record, error);

        if (r == 0)
                r = check_all_forms(source, &record, error);
        if (r == 0 && record.n > 1 && source->node->n_outputs != 1)
                r = sl_error_set(error, EBADMSG, "a node of %u outputs has several candidates", source->node->n_outputs);
        if (r == 0 && session->device.chooser && (record.n > 1 || record.candidates[0].text)) {
                r = make_chosen(session, source, &record, ret_kernel);
                if (r < 0)
                        return sl_error_set(error, EIO, "the device is lost while candidates are timed on it");
                if (r > 0)
                        return 0;
        }
        return r < 0 ? r : make_first(session, source, &record, ret_kernel, error);
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

static CUresult tell_cudnn(struct sl_session *session, cudnnStatus_t status)
{
        char words[200] = "";

        session->libraries->cudnn.get_last_error_string(words, sizeof(words));
        words[strcspn(words, "\n")] = 0;
        (void)sl_error_set(session->device.said, EINVAL, "cuDNN says %d%s%s", (int)status, *words ? ", " : "", words);
        return CUDA_ERROR_INVALID_VALUE;
}

static CUresult tell_cublaslt(struct sl_session *session, cublasStatus_t status)
{
        (void)sl_error_set(session->device.said, EINVAL, "cuBLASLt says %d", (int)status);
        return CUDA_ERROR_INVALID_VALUE;
}

static CUresult tell_driver(struct sl_session *session, CUresult result)
{
        (void)sl_cuda_check(session->device.cuda->driver, result, session->device.said, "a kernel of its own");
        return result;
}

/*
 * What a library says, as the driver would: its own words are for who loads a model. That it launched nothing does not mean that
 * the device is lost: if it is, the driver says so of what comes behind it.
 */
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
        cudnnStatus_t convolved;
        cublasStatus_t multiplied;
        CUresult result;

        switch (step->kind) {
        case SL_CUDA_CONVOLVE:
                convolved = sl_cudnn_execution_launch(&kernel->made[number].execution, at, workspace);
                return convolved == CUDNN_STATUS_SUCCESS ? CUDA_SUCCESS : tell_cudnn(kernel->session, convolved);
        case SL_CUDA_MULTIPLY:
                multiplied = sl_cublaslt_matmul_launch(&kernel->made[number].matmul, &operands, kernel->session->device.stream);
                return multiplied == CUBLAS_STATUS_SUCCESS ? CUDA_SUCCESS : tell_cublaslt(kernel->session, multiplied);
        default:
                result = launch_own(kernel, step, binding, workspace);
                return result == CUDA_SUCCESS ? CUDA_SUCCESS : tell_driver(kernel->session, result);
        }
}

CUresult sl_cuda_kernel_queue(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        CUdeviceptr scratch = sl_align_up((uintptr_t)binding->scratch, ALIGNMENT);
        CUresult result = CUDA_SUCCESS;

        for (uint32_t i = 0; i < kernel->recipe.n_steps && result == CUDA_SUCCESS; i++) {
                const struct sl_cuda_step *step = &kernel->recipe.steps[i];
                uint32_t n = step->kind == SL_CUDA_OWN ? step->n_inputs + step->n_outputs : SL_CUDA_PLACES;

                for (uint32_t k = 0; k < n; k++)
                        kernel->addresses[k] = address_of(binding, &step->places[k], scratch);
                result = launch_step(kernel, i, binding, scratch + kernel->recipe.kept_bytes);
        }
        return result;
}

static int launch(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        return kernel->session->lost ? -EIO : sl_cuda_session_queued(kernel->session, sl_cuda_kernel_queue(kernel, binding));
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
        .kernel_free = sl_cuda_kernel_free,
};
