/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuDNN computes for us: a convolution over an image in channels-last, with its epilogue where an engine has one. A product by
 * a constant matrix is a convolution of one pixel. Plain values, no ownership; pure but for what is made in a graph.
 */
#pragma once

#include "cuda/cudnn/graph.h"
#include "node.h"

struct sl_cudnn_convolution {
        cudnnDataType_t type; /* of everything, sums are float32; or int8, whose sums are int32, and the result is those */
        int64_t batch, channels, height, width, filters, groups;
        int64_t kernel[2], stride[2], dilation[2], pad_begin[2], pad_end[2];
        bool has_bias, has_residual, has_relu;
};

/* The numbers by which a launch binds the tensors. */
enum sl_cudnn_operand { SL_CUDNN_X = 1, SL_CUDNN_W, SL_CUDNN_BIAS, SL_CUDNN_RESIDUAL, SL_CUDNN_Y, SL_CUDNN_HIDDEN };

/*
 * Of a Conv over a line or an image, of float32, float16 or bfloat16. What of the epilogue is no Relu is left out, and is then to
 * be computed behind the bare convolution. False: it is something else, or something of it is empty.
 */
bool sl_cudnn_convolution_read(const struct sl_node_desc *node, struct sl_cudnn_convolution *ret_convolution);

/* @rows x @depth by a constant @depth x @columns. */
struct sl_cudnn_convolution sl_cudnn_product(cudnnDataType_t type, int64_t rows, int64_t depth, int64_t columns);

/* Without its epilogue. */
struct sl_cudnn_convolution sl_cudnn_bare(const struct sl_cudnn_convolution *convolution);
bool sl_cudnn_is_bare(const struct sl_cudnn_convolution *convolution);

/* The finished operation graph; graph->status says whether it is one. */
cudnnBackendDescriptor_t sl_cudnn_make_convolution(struct sl_cudnn_graph *graph, const struct sl_cudnn_convolution *convolution);
