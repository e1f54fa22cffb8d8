/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product as cuBLASLt wants it: descriptors and an algorithm, which its heuristics choose when it is made, on the device that is
 * current. One owner; one thread at a time.
 */
#pragma once

#include "cuda/cublaslt/library.h"
#include "cuda/product.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct sl_error;

struct sl_cublaslt_matmul {
        const struct sl_cublaslt *library;
        cublasLtHandle_t handle;
        struct sl_cuda_product product;
        cublasLtMatmulDesc_t desc;
        cublasLtMatrixLayout_t left, right, addend, out;
        cublasLtMatmulAlgo_t algo;
        size_t workspace_bytes;
};

/* What is taken for granted of a product's operands. */
struct sl_cublaslt_ground {
        uint32_t alignment; /* of all addresses, in bytes */
        size_t workspace_bytes;
        int n_processors; /* multiprocessors that it may use; 0: all */
};

/* An algorithm as cuBLASLt has it, opaque, and what it takes of workspace. */
struct sl_cublaslt_algorithm {
        cublasLtMatmulAlgo_t algo;
        size_t workspace_bytes;
};

/* Load time. Return: 0, it is to be deinitialised; -ENOTSUP there is no algorithm; -ENOMEM. */
int sl_cublaslt_matmul_init(const struct sl_cublaslt *library, cublasLtHandle_t handle, const struct sl_cuda_product *product,
        const struct sl_cublaslt_ground *ground, struct sl_cublaslt_matmul *ret_matmul, struct sl_error *error);
void sl_cublaslt_matmul_deinit(struct sl_cublaslt_matmul *matmul);

/* The first that the heuristics name, the one that it has at first in front. Return: how many. */
#define SL_CUBLASLT_ALGORITHMS_MAX 6u
uint32_t sl_cublaslt_matmul_list(const struct sl_cublaslt_matmul *matmul, const struct sl_cublaslt_ground *ground,
        struct sl_cublaslt_algorithm ret_algorithms[SL_CUBLASLT_ALGORITHMS_MAX]);

/* Does cuBLASLt take it for this product, on this device and ground? Then its workspace is set. Whoever wrote it is not believed.
 */
bool sl_cublaslt_matmul_accepts(
        const struct sl_cublaslt_matmul *matmul, const struct sl_cublaslt_ground *ground, struct sl_cublaslt_algorithm *algorithm);

/* Later launches are by that one, which was listed or accepted. */
void sl_cublaslt_matmul_use(struct sl_cublaslt_matmul *matmul, const struct sl_cublaslt_algorithm *algorithm);

/* Addresses on the device; 0 for what the product does not have. */
struct sl_cublaslt_operands {
        CUdeviceptr left, right, bias, addend, out, workspace;
};

/* Queues it. */
cublasStatus_t sl_cublaslt_matmul_launch(
        struct sl_cublaslt_matmul *matmul, const struct sl_cublaslt_operands *operands, CUstream stream);
