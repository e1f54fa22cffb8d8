/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the fake driver share: its one state, behind one lock. */
#pragma once

#include "fake_driver.h"

#include <pthread.h>

#define SPANS_MAX   512
#define OBJECTS_MAX 4096

/* A run of addresses. RESERVED ones hold mappings, which are spans of their own. */
enum span_kind { SPAN_NONE, SPAN_ALLOCATED, SPAN_RESERVED, SPAN_MAPPED, SPAN_REGISTERED, SPAN_PINNED };
struct span {
        enum span_kind kind;
        CUdeviceptr address;
        size_t bytes;
        bool accessible;
};

enum object_kind {
        OBJECT_NONE,
        OBJECT_MEMORY,
        OBJECT_STREAM,
        OBJECT_EVENT,
        OBJECT_LIBRARY,
        OBJECT_CONTEXT,
        OBJECT_GRAPH,
        OBJECT_GRAPH_EXEC,
        OBJECT_SHARE, /* of the multiprocessors: what a green context is described by */
        OBJECT_GREEN,
};

/* Of a stream: what it is to do. Of a graph: a node. */
enum work_kind { WORK_COPY, WORK_SET, WORK_RECORD, WORK_WAIT, WORK_LAUNCH, WORK_WRITE };
struct work {
        enum work_kind kind;
        char *to;
        const char *from;
        size_t bytes;
        uint64_t value;
        struct object *event;
        uint64_t generation;
        const struct fake_cuda_kernel *kernel;
        struct fake_cuda_launch launch;
        void *argument;
        const struct work *node; /* of an executable graph's: the node that it was made of */
        struct work *next;
};

struct object {
        enum object_kind kind;
        int fd; /* MEMORY */
        size_t bytes;
        struct work *first, **end;    /* STREAM, GRAPH, GRAPH_EXEC */
        struct object *capture;       /* STREAM: the graph that it is being made into */
        struct object *green;         /* STREAM: whose it is; NULL */
        uint32_t n_streams;           /* GREEN */
        uint64_t recorded, completed; /* EVENT */
        unsigned int flags;           /* the same */
        uint64_t clock_ns;            /* STREAM: what its launches have taken; EVENT: that of its stream when it completed */
        uint64_t groups;              /* SHARE, GREEN: which ones, by bits */
};

struct fake_state {
        pthread_mutex_t lock;
        struct fake_cuda_options options;
        uint64_t random;
        uint32_t calls[FAKE_CUDA_CALL_COUNT], fails_at[FAKE_CUDA_CALL_COUNT];
        CUresult fails_with[FAKE_CUDA_CALL_COUNT], lost;
        struct span spans[SPANS_MAX];
        struct object objects[OBJECTS_MAX];
        uint32_t n_objects; /* none was ever behind these */
        size_t in_use;
        uint32_t retained;
};

extern struct fake_state fake;

_Noreturn void fake_die(const char *why);

/* Counts a call; what it is to answer. The lock is taken, and released by fake_leave(). */
CUresult fake_enter(enum fake_cuda_call call);
CUresult fake_leave(CUresult result);

#define ENTER(field)                                                                                                               \
        do {                                                                                                                       \
                CUresult entered = fake_enter(FAKE_CUDA_##field);                                                                  \
                if (entered != CUDA_SUCCESS)                                                                                       \
                        return fake_leave(entered);                                                                                \
        } while (0)

/* The lock is held, from here on. */
struct object *fake_add_object(enum object_kind kind);
struct object *fake_get_object(const void *handle, enum object_kind kind);

/* Is it memory of the device? Mappings that touch each other count as one run. */
bool fake_has(CUdeviceptr address, size_t bytes);

/* Is it memory of the host that the device reaches? */
bool fake_has_registered(CUdeviceptr address, size_t bytes);

/* For the stream to do; or, while it is captured, a node of its graph. */
void fake_add_work(CUstream handle, struct work work);
void fake_append(struct object *owner, const struct work *work);
void fake_drop_work(struct object *owner);

/* The functions that other files have. */
CUresult CUDAAPI fake_stream_begin_capture(CUstream handle, CUstreamCaptureMode mode);
CUresult CUDAAPI fake_stream_end_capture(CUstream handle, CUgraph *ret_graph);
CUresult CUDAAPI fake_graph_get_nodes(CUgraph handle, CUgraphNode *nodes, size_t *n_nodes);
CUresult CUDAAPI fake_graph_node_get_type(CUgraphNode handle, CUgraphNodeType *ret_type);
CUresult CUDAAPI fake_graph_memcpy_node_get_params(CUgraphNode handle, CUDA_MEMCPY3D *ret_params);
CUresult CUDAAPI fake_graph_kernel_node_get_params(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *ret_params);
CUresult CUDAAPI fake_graph_instantiate(CUgraphExec *ret_exec, CUgraph handle, unsigned long long flags);
CUresult CUDAAPI fake_graph_exec_memcpy_node_set_params(
        CUgraphExec handle, CUgraphNode node, const CUDA_MEMCPY3D *params, CUcontext context);
CUresult CUDAAPI fake_graph_exec_kernel_node_set_params(
        CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult CUDAAPI fake_graph_launch(CUgraphExec handle, CUstream stream);
CUresult CUDAAPI fake_graph_exec_destroy(CUgraphExec handle);
CUresult CUDAAPI fake_graph_destroy(CUgraph handle);

CUresult CUDAAPI fake_device_get_dev_resource(CUdevice device, CUdevResource *ret_resource, CUdevResourceType type);
CUresult CUDAAPI fake_dev_sm_resource_split_by_count(CUdevResource *ret_groups, unsigned int *n_groups, const CUdevResource *whole,
        CUdevResource *ret_rest, unsigned int flags, unsigned int least);
CUresult CUDAAPI fake_dev_resource_generate_desc(CUdevResourceDesc *ret_desc, CUdevResource *resources, unsigned int n_resources);
CUresult CUDAAPI fake_green_ctx_create(CUgreenCtx *ret_context, CUdevResourceDesc desc, CUdevice device, unsigned int flags);
CUresult CUDAAPI fake_green_ctx_destroy(CUgreenCtx handle);
CUresult CUDAAPI fake_green_ctx_stream_create(CUstream *ret_stream, CUgreenCtx handle, unsigned int flags, int priority);
