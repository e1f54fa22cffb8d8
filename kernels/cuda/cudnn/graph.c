/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cudnn/graph.h"

void sl_cudnn_graph_init(struct sl_cudnn_graph *graph, const struct sl_cudnn *library)
{
        *graph = (struct sl_cudnn_graph){.library = library, .status = CUDNN_STATUS_SUCCESS};
}

void sl_cudnn_graph_deinit(struct sl_cudnn_graph *graph)
{
        while (graph->n_made)
                graph->library->destroy(graph->made[--graph->n_made]);
}

static void note_status(struct sl_cudnn_graph *graph, cudnnStatus_t status)
{
        if (graph->status == CUDNN_STATUS_SUCCESS)
                graph->status = status;
}

cudnnBackendDescriptor_t sl_cudnn_make(struct sl_cudnn_graph *graph, cudnnBackendDescriptorType_t type)
{
        cudnnBackendDescriptor_t made = NULL;

        if (graph->n_made == SL_CUDNN_DESCRIPTORS_MAX)
                note_status(graph, CUDNN_STATUS_ALLOC_FAILED);
        if (graph->status == CUDNN_STATUS_SUCCESS)
                note_status(graph, graph->library->create(type, &made));
        if (graph->status != CUDNN_STATUS_SUCCESS)
                return NULL;
        graph->made[graph->n_made++] = made;
        return made;
}

void sl_cudnn_set(struct sl_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
        cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
        if (graph->status == CUDNN_STATUS_SUCCESS)
                note_status(graph, graph->library->set(descriptor, name, type, count, values));
}

void sl_cudnn_set_int(
        struct sl_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, int64_t value)
{
        sl_cudnn_set(graph, descriptor, name, CUDNN_TYPE_INT64, 1, &value);
}

void sl_cudnn_set_descriptor(struct sl_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
        cudnnBackendDescriptor_t value)
{
        sl_cudnn_set(graph, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void sl_cudnn_finalize(struct sl_cudnn_graph *graph, cudnnBackendDescriptor_t descriptor)
{
        if (graph->status == CUDNN_STATUS_SUCCESS)
                note_status(graph, graph->library->finalize(descriptor));
}

cudnnBackendDescriptor_t sl_cudnn_make_tensor(struct sl_cudnn_graph *graph, const struct sl_cudnn_tensor *tensor)
{
        cudnnBackendDescriptor_t made = sl_cudnn_make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        const int64_t *dims = tensor->dims;
        const int64_t strides[] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};

        sl_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &tensor->type);
        sl_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
        sl_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
        sl_cudnn_set_int(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor->number);
        sl_cudnn_set_int(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
        sl_cudnn_set(graph, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &tensor->hidden);
        sl_cudnn_finalize(graph, made);
        return made;
}

cudnnBackendDescriptor_t sl_cudnn_make_pointwise(struct sl_cudnn_graph *graph, cudnnPointwiseMode_t mode,
        cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
        cudnnBackendDescriptor_t function = sl_cudnn_make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        cudnnBackendDescriptor_t operation = sl_cudnn_make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        const cudnnDataType_t precision = CUDNN_DATA_FLOAT;

        sl_cudnn_set(graph, function, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
        sl_cudnn_set(graph, function, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
        sl_cudnn_finalize(graph, function);
        sl_cudnn_set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
        sl_cudnn_set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
        if (b)
                sl_cudnn_set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
        sl_cudnn_set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
        sl_cudnn_finalize(graph, operation);
        return operation;
}
