/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN and cuBLASLt without a GPU: what they are asked for is computed by plain loops in double, as launches of the fake driver, so
 * in the order of its streams. Of cuDNN's graphs a convolution with its epilogue, of which a plan is a line of numbers; of cuBLASLt
 * what kernels/cuda asks.
 */
#pragma once

#include "cuda/cublaslt/library.h"
#include "cuda/cudnn/library.h"
#include "fake_driver.h"

/* For fake_cuda_options.kernels, behind others. */
#define FAKE_LIBRARY_KERNELS 2
extern const struct fake_cuda_kernel fake_library_kernels[FAKE_LIBRARY_KERNELS];

/* Launches go through @driver. */
void fake_libraries_begin(const struct sl_cuda_driver *driver);
extern const struct sl_cudnn fake_cudnn;
extern const struct sl_cublaslt fake_cublaslt;

/* Said by tests. */
struct fake_libraries_control {
        bool lacks_epilogues; /* cuDNN has engines for bare convolutions only */
        bool lacks_all;       /* it has no engine */
        bool lacks_products;  /* cuBLASLt has no algorithm */
};
extern struct fake_libraries_control fake_libraries;

/* Descriptors, handles and the like that were not given back. */
uint32_t fake_libraries_held(void);
