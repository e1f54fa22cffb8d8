/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend: NVIDIA GPUs by cuDNN, cuBLASLt and own kernels. Programs have it by the module (cuda_front/module.h). */
#include "backend.h"

#include "cuda/halves.h"
#include "cuda/planning.h"

#include <errno.h>
#include <stdio.h>

/*
 * Plans are of cuDNN's version and of the GPU's figures. Where nothing is planned there may be no cuDNN, and who serves loads no
 * library of NVIDIA's to find out: the runner refuses a plan that its cuDNN does not take.
 */
static int key(const struct sl_target *target, char ret_key[SL_BACKEND_KEY_BYTES])
{
        const struct sl_cuda_figures *gpu = sl_cuda_planning_figures(target);
        int version = target ? sl_cuda_planning_version() : 0;

        if (!target)
                return -ENODEV;
        snprintf(ret_key, SL_BACKEND_KEY_BYTES, "cuDNN %d.%d.%d for %s: %lld.%lld, %lld multiprocessors, CUDA %lld.%lld",
                version / 10000, version / 100 % 100, version % 100, gpu->name, (long long)gpu->capability / 100,
                (long long)gpu->capability / 10 % 10, (long long)gpu->n_processors, (long long)gpu->driver_version / 1000,
                (long long)gpu->driver_version % 1000 / 10);
        return 0;
}

const struct sl_backend sl_cuda_backend = {
        .name = "cuda", .step_weight = 1, .key = key, .planner = &sl_cuda_planner, .runner = &sl_cuda_runner};
