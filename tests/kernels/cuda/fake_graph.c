/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that are captured, and graphs: nodes in the order of their capture, each behind the one before. */
#include "fake_state.h"

#include <stdlib.h>
#include <string.h>

CUresult CUDAAPI fake_stream_begin_capture(CUstream handle, CUstreamCaptureMode mode)
{
        struct object *stream;

        (void)mode;
        ENTER(stream_begin_capture);
        stream = fake_get_object(handle, OBJECT_STREAM);
        if (stream->capture)
                return fake_leave(CUDA_ERROR_ILLEGAL_STATE);
        stream->capture = fake_add_object(OBJECT_GRAPH);
        return fake_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_stream_end_capture(CUstream handle, CUgraph *ret_graph)
{
        CUresult result = fake_enter(FAKE_CUDA_stream_end_capture);
        struct object *stream = fake_get_object(handle, OBJECT_STREAM), *graph = stream->capture;

        if (!graph)
                return fake_leave(CUDA_ERROR_ILLEGAL_STATE);
        stream->capture = NULL;
        if (result == CUDA_SUCCESS) {
                *ret_graph = (CUgraph)graph;
        } else { /* the capture is over all the same */
                fake_drop_work(graph);
                graph->kind = OBJECT_NONE;
        }
        return fake_leave(result);
}

CUresult CUDAAPI fake_graph_get_nodes(CUgraph handle, CUgraphNode *nodes, size_t *n_nodes)
{
        size_t n = 0;

        ENTER(graph_get_nodes);
        for (struct work *w = fake_get_object(handle, OBJECT_GRAPH)->first; w; w = w->next, n++)
                if (nodes && n < *n_nodes)
                        nodes[n] = (CUgraphNode)w;
        *n_nodes = n;
        return fake_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_graph_node_get_type(CUgraphNode handle, CUgraphNodeType *ret_type)
{
        const struct work *node = (const struct work *)handle;

        ENTER(graph_node_get_type);
        *ret_type = node->kind == WORK_COPY  ? CU_GRAPH_NODE_TYPE_MEMCPY
                    : node->kind == WORK_SET ? CU_GRAPH_NODE_TYPE_MEMSET
                                             : CU_GRAPH_NODE_TYPE_KERNEL;
        return fake_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_graph_memcpy_node_get_params(CUgraphNode handle, CUDA_MEMCPY3D *ret_params)
{
        const struct work *node = (const struct work *)handle;

        ENTER(graph_memcpy_node_get_params);
        if (node->kind != WORK_COPY)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        *ret_params = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = (CUdeviceptr)node->from,
                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                .dstDevice = (CUdeviceptr)node->to,
                .WidthInBytes = node->bytes,
                .Height = 1,
                .Depth = 1};
        return fake_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_graph_kernel_node_get_params(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *ret_params)
{
        struct work *node = (struct work *)handle;

        ENTER(graph_kernel_node_get_params);
        if (node->kind != WORK_LAUNCH)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        *ret_params = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)(uintptr_t)node->kernel,
                .gridDimX = node->launch.grid[0],
                .gridDimY = node->launch.grid[1],
                .gridDimZ = node->launch.grid[2],
                .blockDimX = node->launch.block[0],
                .blockDimY = node->launch.block[1],
                .blockDimZ = node->launch.block[2],
                .sharedMemBytes = node->launch.shared_bytes,
                .kernelParams = &node->argument};
        return fake_leave(CUDA_SUCCESS);
}

/* With an argument of its own. */
static void append_copy(struct object *owner, const struct work *node)
{
        struct work copy = *node;

        if (node->kind == WORK_LAUNCH) {
                copy.argument = malloc(node->kernel->argument_bytes);
                memcpy(copy.argument, node->argument, node->kernel->argument_bytes);
        }
        fake_append(owner, &copy);
}

CUresult CUDAAPI fake_graph_instantiate(CUgraphExec *ret_exec, CUgraph handle, unsigned long long flags)
{
        struct object *graph, *exec;

        (void)flags;
        ENTER(graph_instantiate);
        graph = fake_get_object(handle, OBJECT_GRAPH);
        exec = fake_add_object(OBJECT_GRAPH_EXEC);
        for (struct work *w = graph->first; w; w = w->next) {
                struct work made = *w;

                made.node = w;
                append_copy(exec, &made);
        }
        *ret_exec = (CUgraphExec)exec;
        return fake_leave(CUDA_SUCCESS);
}

static struct work *work_of(CUgraphExec handle, CUgraphNode node, enum work_kind kind)
{
        for (struct work *w = fake_get_object(handle, OBJECT_GRAPH_EXEC)->first; w; w = w->next)
                if (w->node == (const struct work *)node && w->kind == kind)
                        return w;
        return NULL;
}

CUresult CUDAAPI fake_graph_exec_memcpy_node_set_params(
        CUgraphExec handle, CUgraphNode node, const CUDA_MEMCPY3D *params, CUcontext context)
{
        struct work *work;

        ENTER(graph_exec_memcpy_node_set_params);
        work = work_of(handle, node, WORK_COPY);
        if (!work || !context || params->srcMemoryType != CU_MEMORYTYPE_DEVICE || params->dstMemoryType != CU_MEMORYTYPE_DEVICE ||
                params->WidthInBytes != work->bytes || params->Height != 1 || params->Depth != 1)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        if (!fake_has(params->srcDevice, params->WidthInBytes) || !fake_has(params->dstDevice, params->WidthInBytes))
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        work->from = (const char *)params->srcDevice;
        work->to = (char *)params->dstDevice;
        return fake_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_graph_exec_kernel_node_set_params(CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
        struct work *work;

        ENTER(graph_exec_kernel_node_set_params);
        work = work_of(handle, node, WORK_LAUNCH);
        if (!work || (const struct fake_cuda_kernel *)params->func != work->kernel)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        memcpy(work->argument, params->kernelParams[0], work->kernel->argument_bytes);
        return fake_leave(CUDA_SUCCESS);
}

/* What is launched is as it was then: parameters that are set afterwards are those of the next launch. */
CUresult CUDAAPI fake_graph_launch(CUgraphExec handle, CUstream stream)
{
        struct object *exec, *to;

        ENTER(graph_launch);
        exec = fake_get_object(handle, OBJECT_GRAPH_EXEC);
        to = fake_get_object(stream, OBJECT_STREAM);
        if (to->capture)
                return fake_leave(CUDA_ERROR_NOT_SUPPORTED);
        for (struct work *w = exec->first; w; w = w->next)
                append_copy(to, w);
        return fake_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_graph_exec_destroy(CUgraphExec handle)
{
        struct object *exec;

        ENTER(graph_exec_destroy);
        exec = fake_get_object(handle, OBJECT_GRAPH_EXEC);
        fake_drop_work(exec);
        exec->kind = OBJECT_NONE;
        return fake_leave(CUDA_SUCCESS);
}

/* Executable graphs that were made of it stay; a node that is asked for afterwards is nobody's. */
CUresult CUDAAPI fake_graph_destroy(CUgraph handle)
{
        struct object *graph;

        ENTER(graph_destroy);
        graph = fake_get_object(handle, OBJECT_GRAPH);
        fake_drop_work(graph);
        graph->kind = OBJECT_NONE;
        return fake_leave(CUDA_SUCCESS);
}
