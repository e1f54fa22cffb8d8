/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the CUDA backend: a recipe (recipe.h) with what the libraries have made of its steps, on one session; for who makes
 * several of one node to compare them (trial.h). One thread, that of the session.
 */
#pragma once

#include "cuda/cublaslt/matmul.h"
#include "cuda/cudnn/execution.h"
#include "cuda/record.h"
#include "cuda/session.h"

struct sl_error;

/* What a step became on the device. */
struct sl_cuda_made {
        struct sl_cudnn_execution execution;
        struct sl_cublaslt_matmul matmul;
};

struct sl_kernel {
        struct sl_session *session;
        struct sl_cuda_recipe recipe;
        struct sl_cuda_made *made; /* of each step */
        CUdeviceptr *addresses;    /* room for the places of a step */
        size_t scratch_bytes;
};

/* As that candidate; products by what the session's chooser has, or finds. Return: as runner.h has compile(). */
int sl_cuda_kernel_make(struct sl_session *session, const struct sl_kernel_source *source,
        const struct sl_cuda_candidate *candidate, struct sl_kernel **ret_kernel, struct sl_error *error);
struct sl_kernel *sl_cuda_kernel_free(struct sl_kernel *kernel);

/* Queues all of its steps. The session hears nothing of what the answer is. */
CUresult sl_cuda_kernel_queue(struct sl_kernel *kernel, const struct sl_binding *binding);
