/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution plans of cuDNN, made for a GPU that need not be there (cuDNN 9.8 and newer), as text that the process which has the GPU
 * loads; or made there. The same figures, library and convolution give the same text.
 *
 * An engine is taken only if it gives the same bits each time and no coarser sums than its types say: none that transforms
 * (Winograd, FFT), none whose order of sums changes, and of float32 none that rounds its inputs to TF32 unless that is asked for.
 * One that is compiled at run time takes up to seconds and a driver: only who has the device asks for those.
 *
 * A planner belongs to one thread at a time.
 */
#pragma once

#include "cuda/cudnn/convolution.h"
#include "gpu_figures.h"

struct sl_cudnn_planner;

struct sl_cudnn_plan {
        char *text; /* malloc()ed, text_bytes with its terminator */
        uint64_t text_bytes;
        uint64_t workspace_bytes;
        int64_t engine;
        bool tensor_cores, compiles;
        bool whole; /* with the epilogue, not the bare convolution */
};

/* What is wanted of several. */
#define SL_CUDNN_PLANS_MAX 8u
struct sl_cudnn_wish {
        bool tf32;
        bool compiles;                /* those that are compiled at run time, and no others */
        uint32_t n_whole, n_bare;     /* at most; where there is none that is whole, one is bare in any case */
        uint64_t workspace_bytes_max; /* of those behind the first, unless that wants more */
};

/* Return: 0; -EINVAL cuDNN does not take the figures; -ENOMEM. */
int sl_cudnn_planner_new(const struct sl_cudnn *library, const struct sl_cuda_figures *figures,
        struct sl_cudnn_planner **ret_planner, struct sl_error *error);
struct sl_cudnn_planner *sl_cudnn_planner_free(struct sl_cudnn_planner *planner);

/* For the device of a handle, which outlives it. Return: 0; -ENOMEM. */
int sl_cudnn_planner_new_on(
        const struct sl_cudnn *library, cudnnHandle_t handle, struct sl_cudnn_planner **ret_planner, struct sl_error *error);

/*
 * The first plan that comes out of cuDNN's heuristics (A, B, fallback): with the epilogue, else bare. May take seconds the first
 * time, which is when cuDNN loads its parts. Return: 0; -ENOTSUP there is none, the text says for what; -ENOMEM.
 */
int sl_cudnn_plan_make(struct sl_cudnn_planner *planner, const struct sl_cudnn_convolution *convolution, bool tf32,
        struct sl_cudnn_plan *ret_plan, struct sl_error *error);
void sl_cudnn_plan_deinit(struct sl_cudnn_plan *plan);

/*
 * The first ones that come out of the heuristics (the fallback where the others have none), no two alike; the first of them is that
 * of sl_cudnn_plan_make(). Return: as above, 0: there is at least one.
 */
int sl_cudnn_plans_make(struct sl_cudnn_planner *planner, const struct sl_cudnn_convolution *convolution,
        const struct sl_cudnn_wish *wish, struct sl_cudnn_plan ret_plans[SL_CUDNN_PLANS_MAX], uint32_t *ret_n,
        struct sl_error *error);
void sl_cudnn_plans_deinit(struct sl_cudnn_plan *plans, uint32_t n);

/* The text of a finished plan, and its workspace. Return: 0; -ENOTSUP cuDNN does not say them; -ENOMEM. */
int sl_cudnn_plan_describe(const struct sl_cudnn *library, cudnnBackendDescriptor_t made, struct sl_cudnn_plan *plan);

/* Reads a text back. Return: 0; -EBADMSG it is no plan for these figures and this library. */
int sl_cudnn_plan_load(struct sl_cudnn_planner *planner, const char *text, uint64_t text_bytes, uint64_t *ret_workspace_bytes,
        struct sl_error *error);
