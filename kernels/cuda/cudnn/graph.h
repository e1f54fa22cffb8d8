/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of cuDNN while something is made of them: whoever makes several asks once, at the end, whether all went well, and
 * frees them all. After the first that fails nothing more is done. One thread.
 */
#pragma once

#include "cuda/cudnn/library.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_CUDNN_DESCRIPTORS_MAX 64

struct sl_cudnn_graph {
        const struct sl_cudnn *library;
        cudnnHandle_t handle; /* of the device that it is for; NULL: it need not be there */
        cudnnStatus_t status; /* of the first that failed */
        uint32_t n_made;
        cudnnBackendDescriptor_t made[SL_CUDNN_DESCRIPTORS_MAX];
};

void sl_cudnn_graph_init(struct sl_cudnn_graph *graph, const struct sl_cudnn *library);
void sl_cudnn_graph_deinit(struct sl_cudnn_graph *graph);

/* A new descriptor, the graph's; NULL after a failure. */
cudnnBackendDescriptor_t sl_cudnn_make(struct sl_cudnn_graph *graph, cudnnBackendDescriptorType_t type);

void sl_cudnn_set(struct sl_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
        cudnnBackendAttributeType_t type, int64_t count, const void *values);
void sl_cudnn_set_int(
        struct sl_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, int64_t value);
void sl_cudnn_set_descriptor(struct sl_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
        cudnnBackendDescriptor_t value);
void sl_cudnn_finalize(struct sl_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor);

/* A tensor of four dimensions N, C, H, W that lies as N, H, W, C. @hidden: it never lies in memory. */
struct sl_cudnn_tensor {
        int64_t number; /* by which a launch binds it */
        cudnnDataType_t type;
        int64_t dims[4];
        bool hidden;
};
cudnnBackendDescriptor_t sl_cudnn_make_tensor(struct sl_cudnn_graph *graph, const struct sl_cudnn_tensor *tensor);

/* @y = mode(@x, @b); @b NULL: mode(@x). In float32. */
cudnnBackendDescriptor_t sl_cudnn_make_pointwise(struct sl_cudnn_graph *graph, cudnnPointwiseMode_t mode,
        cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y);
