/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake libraries launch: arguments of kernels that are plain loops. */
#pragma once

#include "cuda/cudnn/convolution.h"
#include "cuda/driver/driver.h"

#include <cublasLt.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_CONVOLVE, FAKE_MULTIPLY };

struct fake_convolution {
        int64_t type, w_type, y_type, sums; /* the last three are not in the text of a plan */
        int64_t x[4], w[4], y[4], pad[2], stride[2], dilation[2], bias, residual, relu, engine;
        void *operands[SL_CUDNN_HIDDEN + 8]; /* by enum sl_cudnn_operand */
};

/* A column-major matrix, or a stack of them. */
struct fake_matrix {
        cudaDataType_t type;
        int64_t rows, columns, row, step;
        int32_t batch;
};

struct fake_product {
        struct fake_matrix a, b, c, d;
        bool turn_a, turn_b;
        cublasLtEpilogue_t epilogue;
        float alpha, beta;
        int64_t bias_step;
        const void *at_a, *at_b, *at_c, *bias;
        void *at_d;
        uint64_t algorithm;
};

/* What engines of cuDNN and algorithms of cuBLASLt take by the clock of the device. */
uint64_t fake_engine_ns(const void *convolution);
uint64_t fake_algorithm_ns(const void *product);

void fake_libraries_count(int change);
void fake_libraries_launch(uint32_t kernel, void *argument, CUstream stream);
