/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN in the process that plans: opened once, for the GPU of the target, and kept to its end. The compiler's process has one
 * thread, and so has this.
 */
#pragma once

#include "cuda/cudnn/plan.h"
#include "target.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

/*
 * Opens cuDNN if it is not open yet; takes seconds. @target: NULL: an H100. Return: 0; -ENOENT there is none; what
 * sl_cudnn_planner_new() says.
 */
int sl_cuda_planning_open(const struct sl_target *target, struct sl_cudnn_planner **ret_planner, struct sl_error *error);

/* Scratch of what is not the first candidate of a node. */
#define SL_CUDA_SCRATCH_MAX (32ull << 20)

/*
 * The plans of a convolution on the target's GPU, by which it may be computed: the first is what sl_cudnn_plan_make() makes. They
 * stay until the next call; what was asked for a short while ago is known. @tf32: engines that round float32 so are exact enough.
 * Return: as sl_cudnn_plans_make(), or the above.
 */
int sl_cuda_planning_plans(const struct sl_target *target, const struct sl_cudnn_convolution *convolution, bool tf32,
        const struct sl_cudnn_plan **ret_plans, uint32_t *ret_n, struct sl_error *error);

/* The figures that a target stands for. */
const struct sl_cuda_figures *sl_cuda_planning_figures(const struct sl_target *target);

/* Its version, 91900 for 9.19.0; 0: it cannot be opened. */
int sl_cuda_planning_version(void);

/* From now on those functions in the place of a library; NULL: that of the system. Nothing of the one before is used any more. */
void sl_cuda_planning_use(const struct sl_cudnn *library);
