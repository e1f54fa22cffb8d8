/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cudnn/convolution.h"

#include "op.h"
#include "shape/window.h"

static bool read_type(uint32_t dtype, cudnnDataType_t *ret_type)
{
        *ret_type = dtype == SL_DTYPE_BF16 ? CUDNN_DATA_BFLOAT16 : dtype == SL_DTYPE_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
        return dtype == SL_DTYPE_F32 || dtype == SL_DTYPE_F16 || dtype == SL_DTYPE_BF16;
}

/* A line is an image of height 1. */
static void read_axis(const struct sl_window *window, uint32_t from, uint32_t to, struct sl_cudnn_convolution *convolution)
{
        convolution->kernel[to] = window->kernel[from];
        convolution->stride[to] = window->stride[from];
        convolution->dilation[to] = window->dilation[from];
        convolution->pad_begin[to] = window->pad_begin[from];
        convolution->pad_end[to] = window->pad_end[from];
}

bool sl_cudnn_convolution_read(const struct sl_node_desc *node, struct sl_cudnn_convolution *ret_convolution)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        struct sl_cudnn_convolution convolution = {.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
        struct sl_window window;

        if (node->op != SL_OP_CONV || !read_type(node->inputs[0].dtype, &convolution.type) || !sl_shape_is_static(x) ||
                sl_window_read(node, &window, NULL) < 0 || window.rank > 2)
                return false;
        for (uint32_t i = 0; i < window.rank; i++)
                read_axis(&window, i, i + 2 - window.rank, &convolution);
        convolution.batch = x->dims[0];
        convolution.channels = x->dims[1];
        convolution.height = window.rank == 2 ? x->dims[2] : 1;
        convolution.width = x->dims[x->rank - 1];
        convolution.filters = w->dims[0];
        convolution.groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        convolution.has_residual = node->epilogue.has_residual;
        convolution.has_bias = node->n_inputs - convolution.has_residual > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;
        convolution.has_relu = node->epilogue.activation == SL_ACT_RELU;
        *ret_convolution = convolution;
        return convolution.batch && convolution.channels && convolution.height && convolution.width && convolution.filters;
}

struct sl_cudnn_convolution sl_cudnn_product(cudnnDataType_t type, int64_t rows, int64_t depth, int64_t columns)
{
        return (struct sl_cudnn_convolution){.type = type,
                .batch = rows,
                .channels = depth,
                .height = 1,
                .width = 1,
                .filters = columns,
                .groups = 1,
                .kernel = {1, 1},
                .stride = {1, 1},
                .dilation = {1, 1}};
}

struct sl_cudnn_convolution sl_cudnn_bare(const struct sl_cudnn_convolution *convolution)
{
        struct sl_cudnn_convolution bare = *convolution;

        bare.has_bias = bare.has_residual = bare.has_relu = false;
        return bare;
}

bool sl_cudnn_is_bare(const struct sl_cudnn_convolution *convolution)
{
        return !convolution->has_bias && !convolution->has_residual && !convolution->has_relu;
}

static int64_t positions(const struct sl_cudnn_convolution *c, int axis, int64_t size)
{
        return (size + c->pad_begin[axis] + c->pad_end[axis] - c->dilation[axis] * (c->kernel[axis] - 1) - 1) / c->stride[axis] + 1;
}

static cudnnDataType_t sums_type(const struct sl_cudnn_convolution *c)
{
        return c->type == CUDNN_DATA_INT8 ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT;
}

static struct sl_cudnn_tensor output_tensor(const struct sl_cudnn_convolution *c, int64_t number, bool hidden)
{
        return (struct sl_cudnn_tensor){.number = number,
                .type = hidden || c->type == CUDNN_DATA_INT8 ? sums_type(c) : c->type,
                .dims = {c->batch, c->filters, positions(c, 0, c->height), positions(c, 1, c->width)},
                .hidden = hidden};
}

static cudnnBackendDescriptor_t make_window(struct sl_cudnn_graph *graph, const struct sl_cudnn_convolution *c)
{
        cudnnBackendDescriptor_t window = sl_cudnn_make(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
        const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
        const cudnnDataType_t sums = sums_type(c);

        sl_cudnn_set(graph, window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
        sl_cudnn_set(graph, window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
        sl_cudnn_set_int(graph, window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
        sl_cudnn_set(graph, window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, c->pad_begin);
        sl_cudnn_set(graph, window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, c->pad_end);
        sl_cudnn_set(graph, window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, c->stride);
        sl_cudnn_set(graph, window, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, c->dilation);
        sl_cudnn_finalize(graph, window);
        return window;
}

static cudnnBackendDescriptor_t make_forward(
        struct sl_cudnn_graph *graph, const struct sl_cudnn_convolution *c, cudnnBackendDescriptor_t y)
{
        const struct sl_cudnn_tensor x = {
                .number = SL_CUDNN_X, .type = c->type, .dims = {c->batch, c->channels, c->height, c->width}};
        const struct sl_cudnn_tensor w = {
                .number = SL_CUDNN_W, .type = c->type, .dims = {c->filters, c->channels / c->groups, c->kernel[0], c->kernel[1]}};
        cudnnBackendDescriptor_t operation = sl_cudnn_make(graph, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
        const float one = 1, zero = 0;

        sl_cudnn_set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, sl_cudnn_make_tensor(graph, &x));
        sl_cudnn_set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, sl_cudnn_make_tensor(graph, &w));
        sl_cudnn_set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
        sl_cudnn_set_descriptor(graph, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, make_window(graph, c));
        sl_cudnn_set(graph, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
        sl_cudnn_set(graph, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
        sl_cudnn_finalize(graph, operation);
        return operation;
}

/*
 * Behind the convolution: + residual, + bias, then Relu, the order of the engines that have all of it. Each is one row; the last
 * that is there writes y.
 */
cudnnBackendDescriptor_t sl_cudnn_make_convolution(struct sl_cudnn_graph *graph, const struct sl_cudnn_convolution *c)
{
        const struct sl_cudnn_tensor residual = output_tensor(c, SL_CUDNN_RESIDUAL, false);
        const struct sl_cudnn_tensor bias = {.number = SL_CUDNN_BIAS, .type = c->type, .dims = {1, c->filters, 1, 1}};
        const struct {
                bool there;
                cudnnPointwiseMode_t mode;
                const struct sl_cudnn_tensor *with;
        } rows[] = {
                {c->has_residual, CUDNN_POINTWISE_ADD, &residual},
                {c->has_bias, CUDNN_POINTWISE_ADD, &bias},
                {c->has_relu, CUDNN_POINTWISE_RELU_FWD, NULL},
        };
        uint32_t left = (uint32_t)c->has_residual + c->has_bias + c->has_relu, n = 0;
        cudnnBackendDescriptor_t operations[4], result, whole;
        struct sl_cudnn_tensor tensor = output_tensor(c, left ? SL_CUDNN_HIDDEN : SL_CUDNN_Y, left > 0);

        result = sl_cudnn_make_tensor(graph, &tensor);
        operations[n++] = make_forward(graph, c, result);
        for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                cudnnBackendDescriptor_t with = rows[i].there && rows[i].with ? sl_cudnn_make_tensor(graph, rows[i].with) : NULL,
                                         next;

                if (!rows[i].there)
                        continue;
                left--;
                tensor = output_tensor(c, left ? SL_CUDNN_HIDDEN + n : SL_CUDNN_Y, left > 0);
                next = sl_cudnn_make_tensor(graph, &tensor);
                operations[n++] = sl_cudnn_make_pointwise(graph, rows[i].mode, result, with, next);
                result = next;
        }
        whole = sl_cudnn_make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        if (graph->handle)
                sl_cudnn_set(graph, whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &graph->handle);
        sl_cudnn_set(graph, whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, operations);
        sl_cudnn_finalize(graph, whole);
        return whole;
}
