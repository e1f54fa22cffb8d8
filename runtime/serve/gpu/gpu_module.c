/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the CUDA module. */
#include "backend.h"
#include "cuda_front/module.h"
#include "gpu_process.h"

__attribute__((visibility("default"))) const struct sl_cuda_module starling_cuda_module = {
        .version = SL_CUDA_MODULE_VERSION,
        .release = SL_CUDA_MODULE_RELEASE,
        .backend = &sl_cuda_backend,
        .serve = sl_gpu_serve,
};
