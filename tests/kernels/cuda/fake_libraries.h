/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN and cuBLASLt without a GPU: what they are asked for is computed by plain loops in double, as launches of the fake driver,
 * so in the order of its streams. Of cuDNN's graphs a convolution with its epilogue, of which a plan is a line of numbers; of
 * cuBLASLt what kernels/cuda asks.
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
        bool convolves_nothing, multiplies_nothing; /* one of them refuses every launch */
        uint64_t epilogue_ns; /* what a convolution takes more with one */
        uint32_t n_compiled;  /* plans that were compiled at run time; theirs */
        uint32_t n_asked;     /* heuristics; the same */
        uint32_t n_int8;      /* convolutions and products of int8 that were launched; the same */
};

/*
 * Engines of convolutions, as the heuristics A, B and fallback name them: A 7, 8, 9, 10, 13, B 8, 11, fallback 12; and algorithms
 * of products: 1, 2, 3. What of them is fastest depends on who may be taken: 9 is not exact, 10 is compiled at run time on the
 * device, 13 rounds float32 to TF32.
 */
enum {
        FAKE_ENGINE_FIRST = 7,
        FAKE_ENGINE_FAST,
        FAKE_ENGINE_ROUGH,
        FAKE_ENGINE_COMPILED,
        FAKE_ENGINE_OTHER,
        FAKE_ENGINE_LAST,
        FAKE_ENGINE_TENSORS,
        FAKE_ALGORITHM_FIRST = 1,
        FAKE_ALGORITHM_FAST,
        FAKE_ALGORITHM_LAST,
};
extern struct fake_libraries_control fake_libraries;

/* Descriptors, handles and the like that were not given back. */
uint32_t fake_libraries_held(void);
