/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA module with a backend that computes by `ref` on the fake driver (fake_backend.h); all else is the module's. */
#include "cuda_front/module.h"
#include "fake_backend.h"
#include "gpu_process.h"

__attribute__((visibility("default"))) const struct sl_cuda_module starling_cuda_module = {
        .version = SL_CUDA_MODULE_VERSION,
        .release = SL_CUDA_MODULE_RELEASE,
        .backend = &fake_backend,
        .serve = sl_gpu_serve,
};
