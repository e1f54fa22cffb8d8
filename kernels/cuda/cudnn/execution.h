/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan of cuDNN on the device that is there: made of its text, launched on the stream of a handle. One owner, one thread at a
 * time.
 */
#pragma once

#include "cuda/cudnn/convolution.h"

#include <cuda.h>
#include <stdint.h>

struct sl_error;

/* Numbers of operands, less 1: enum sl_cudnn_operand without what is hidden. */
#define SL_CUDNN_OPERANDS (SL_CUDNN_Y - SL_CUDNN_X + 1)

struct sl_cudnn_execution {
        const struct sl_cudnn *library;
        cudnnHandle_t handle;
        cudnnBackendDescriptor_t plan;
        uint64_t workspace_bytes;

        /* Of the last launch: made again where an address has changed. */
        cudnnBackendDescriptor_t pack;
        CUdeviceptr addresses[SL_CUDNN_OPERANDS], workspace;
};

/*
 * Load time. Return: 0, it is to be deinitialised; -EBADMSG the text is no plan for this device and library, or wants more
 * workspace than @workspace_bytes; -ENOMEM.
 */
int sl_cudnn_execution_init(const struct sl_cudnn *library, cudnnHandle_t handle, const char *text, uint64_t text_bytes,
        uint64_t workspace_bytes, struct sl_cudnn_execution *ret_execution, struct sl_error *error);
void sl_cudnn_execution_deinit(struct sl_cudnn_execution *execution);

/* Queues it. @addresses: 0 for an operand that the plan does not have. */
cudnnStatus_t sl_cudnn_execution_launch(
        struct sl_cudnn_execution *execution, const CUdeviceptr addresses[SL_CUDNN_OPERANDS], CUdeviceptr workspace);
